"""SIGKILL of workers and of the program itself while everybody is recommended to on Ray; then the same call again.

In half of the trials one to three workers are killed, each at any time while it writes a part; the call ends by itself.
In the others the program is killed once or twice, at any time from its start, and run again. In all, the folder holds
in the end the files that one process writes, byte for byte, and nothing beside them. The cluster is one node on this
machine, in a network namespace of its own.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from campaigns import _namespace
from campaigns._trials import Campaign, Outcome, Random, main, tree

ASKED: dict[str, Any] = {"N": 5, "method": "wins", "part_users": 25, "show_progress": False}
_PATIENT = {  # no node is killed here, and one that a busy machine keeps waiting is not dead
    "RAY_health_check_initial_delay_ms": "60000",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_health_check_failure_threshold": "10",
}


class Subject(NamedTuple):
    """A cluster, a model, the files that one process writes, and the seconds that a program takes."""

    address: str
    model: Path
    files: dict[str, bytes]
    seconds: float


def prepare(folder: Path) -> Subject:
    """Start the cluster, make a model, and write its lists here and, once undisturbed, there."""
    import numpy as np
    import scipy.sparse as sp

    from sadrec import SAD

    made = _namespace.start(1, cpus=2)
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(500, 8)), rng.normal(size=(900, 8)), rng.random((900, 8))
    model = SAD.from_factors(*factors, seen=sp.random(500, 900, 0.02, "csr", np.float32, rng))
    model.save(folder / "m.sad")
    model.recommend_all(output=folder / "here", **ASKED)
    began = time.monotonic()
    _start(made.address, folder / "m.sad", folder / "there").wait()
    return Subject(made.address, folder / "m.sad", tree(folder / "here"), time.monotonic() - began)


def ask(address: str, model: str, output: str) -> None:
    """Be the program."""
    from sadrec import SAD
    from sadrec.cluster import Ray

    SAD.load(model, mmap=True).recommend_all(output=output, engine=Ray(workers=2, address=address), **ASKED)


def _start(address: str, model: Path, output: Path) -> "subprocess.Popen[bytes]":
    """Start the program."""
    code = f"from campaigns.recommend_all import ask; ask({address!r}, {str(model)!r}, {str(output)!r})"
    return subprocess.Popen([sys.executable, "-c", code])


def _writers() -> list[int]:
    """Return the processes that write a part now."""
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cmdline").read_bytes().startswith(b"ray::write_part"):
                processes.append(int(entry.name))
    return processes


def trial(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Kill workers or the program, and let the call end."""
    output = folder / "lists"
    if rng.random() < 0.5:
        code, story = _kill_workers(subject, rng, output)
    else:
        code, story = _kill_the_program(subject, rng, output)
    if code != 0:
        return Outcome("failed", f"{story}: exit code {code}")
    files = tree(output)
    if any(files.get(name) != content for name, content in subject.files.items()):
        return Outcome("wrong files", story)
    if set(files) - set(subject.files):
        return Outcome("litter", f"{story}: {sorted(set(files) - set(subject.files))}")
    return Outcome("same files")


def _kill_workers(subject: Subject, rng: Random, output: Path) -> tuple[int, str]:
    """Kill some of the processes that write, while the program runs."""
    driver, killed = _start(subject.address, subject.model, output), 0
    for _ in range(int(rng.integers(1, 4))):
        time.sleep(float(rng.uniform(0, 0.3)))
        while not (writers := _writers()) and driver.poll() is None:
            time.sleep(0.002)
        if writers:
            with suppress(ProcessLookupError):
                os.kill(int(rng.choice(writers)), signal.SIGKILL)
                killed += 1
    return driver.wait(), f"{killed} workers killed"


def _kill_the_program(subject: Subject, rng: Random, output: Path) -> tuple[int, str]:
    """Kill the program once or twice, then run it to its end."""
    moments = rng.uniform(0.3, 1, int(rng.integers(1, 3))) * subject.seconds  # before, it only loads libraries
    for moment in moments:
        driver = _start(subject.address, subject.model, output)
        time.sleep(float(moment))
        driver.kill()
        driver.wait()
    story = f"program killed at {', '.join(f'{moment:.2f} s' for moment in moments)}"
    return _start(subject.address, subject.model, output).wait(), story


CAMPAIGN = Campaign(
    unit="calls of recommend_all disturbed",
    kept=("same files",),
    broken=("wrong files", "failed", "litter"),
    prepare=prepare,
    trial=trial,
    seconds=240,
    memory=256.0,
)


def _alone() -> Any:
    """Run this program again, in a namespace."""
    if reason := _namespace.reason_against():
        return reason
    patient = ("env", *(f"{name}={value}" for name, value in _PATIENT.items()))
    return _namespace.run(*patient, sys.executable, "-m", "campaigns.recommend_all", *sys.argv[1:]).returncode


if __name__ == "__main__":
    if not _namespace.inside():
        sys.exit(_alone())
    main(CAMPAIGN, usual=20)
