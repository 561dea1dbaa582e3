"""Run a program, keep what it says, and leave nothing of it behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_TAIL = 25


def run_logged(
    command: Sequence[str | Path],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    line: Callable[[str], None] | None = None,
    lock: int | None = None,
) -> int:
    """Run ``command`` with its output in the file ``log``, and return how it ended.

    When time is up, or the waiting is interrupted, the process and its children are killed.

    Parameters
    ----------
    environment
        Variables on top of those of this process.
    timeout
        Seconds.
    line
        Called with every line of output as it comes; the log is then written along the way. It does not go
        together with ``timeout``.
    lock
        File descriptor of a lock that the program keeps should this process be killed (on Unix).

    Raises
    ------
    subprocess.TimeoutExpired
        When time is up.
    """
    variables = {**os.environ, **(environment or {})}
    with log.open("ab") as file:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if line else file,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
            pass_fds=() if lock is None or sys.platform == "win32" else (lock,),
        )
        try:
            if line and process.stdout:
                for said in process.stdout:
                    file.write(said)
                    line(said.decode(errors="replace").rstrip())
            return process.wait(timeout)
        except BaseException:
            kill_group(process)
            raise


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its own session, and all its children."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], check=False, capture_output=True)
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(log: Path, lines: int = _TAIL) -> str:
    """Give the last lines of a log that are not blank."""
    if not log.exists():
        return "(it said nothing)"
    with log.open(errors="replace") as file:
        last = deque((line.rstrip() for line in file if line.strip()), maxlen=lines)
    return "\n".join(last) or "(it said nothing)"
