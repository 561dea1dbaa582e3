"""Run a program, keep what it says, and leave nothing of it behind."""

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_TAIL = 25


def run_logged(
    command: Sequence[str | Path],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> int:
    """Run ``command`` with its output in the file ``log``, and return how it ended.

    When time is up, or the waiting is interrupted, the process and its children are killed.

    Parameters
    ----------
    environment
        Variables on top of those of this process.
    timeout
        Seconds.

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
            stdout=file,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
        )
        try:
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
