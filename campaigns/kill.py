"""SIGKILL at random moments, at chosen operations on files and in the middle of a write; then the same call again.

Half of the kills come at the n-th opening, renaming, removing or flushing of a file, a tenth when a file that is being
written reaches some size, the rest at any time. Work is killed one to three times and then left to end: its files are
those of undisturbed work, byte for byte, and there is nothing beside them.
"""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from campaigns._trials import Campaign, Outcome, Random, in_fork, main, quiet_warnings
from campaigns._works import OPERATIONS, done_again, results, works


class Subject(NamedTuple):
    """What is done, and for each the files that remain, the operations on files and the seconds it takes."""

    calls: dict[str, Callable[[Path], None]]
    files: dict[str, dict[str, bytes]]
    operations: dict[str, int]
    seconds: dict[str, float]


def prepare(folder: Path) -> Subject:
    """Do everything undisturbed, twice: the first time compiles."""
    calls = works()
    results(folder / "first", calls)
    files = results(folder / "second", calls)
    operations, seconds = {}, {}
    for name, call in calls.items():
        place = folder / "third" / name
        place.mkdir(parents=True)
        counted = place.parent / f"{name}.count"

        def count(call: Callable[[Path], None] = call, place: Path = place, counted: Path = counted) -> None:
            total = 0

            def add(event: str) -> None:
                nonlocal total
                total += 1

            _watch(add)
            with quiet_warnings():
                call(place)
            done = str(total)
            counted.write_text(done)

        ended = in_fork(count, place)
        operations[name], seconds[name] = int(counted.read_text()), ended.seconds
    return Subject(calls, files, operations, seconds)


def _watch(note: Callable[[str], None]) -> None:
    """Call something before each operation on files, from now on."""
    sys.addaudithook(lambda event, arguments: note(event) if event in OPERATIONS else None)
    flush = os.fsync

    def fsync(handle: Any) -> None:
        note("os.fsync")
        flush(handle)

    os.fsync = fsync  # type: ignore[assignment]


def _killed_at(operation: int) -> None:
    """Have this process killed at the n-th operation on files."""
    left = operation

    def note(event: str) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _watch(note)


def trial(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Kill some work a few times, then let it end."""
    name = list(subject.calls)[int(rng.integers(len(subject.calls)))]
    call, place = subject.calls[name], folder / "work"
    place.mkdir()
    story = []
    for _ in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        kind = ("operation", "size", "moment")[int(rng.choice(3, p=[0.5, 0.1, 0.4]))]
        operation = int(rng.integers(1, subject.operations[name] + 1))
        size = int(rng.integers(1, 30_000))
        delay = float(rng.uniform(0, subject.seconds[name]))
        story.append({"operation": f"operation {operation}", "size": f"{size} bytes", "moment": f"{delay:.4f} s"}[kind])

        def work(kind: str = kind, operation: int = operation, size: int = size) -> None:
            if kind == "operation":
                _killed_at(operation)
            elif kind == "size":
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # ends the process
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            with quiet_warnings():
                call(place)

        def disturb(child: int, delay: float = delay) -> None:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)

        in_fork(work, place, disturb if kind == "moment" else lambda child: None)
    return done_again(call, place, subject.files[name], f"{name}, killed at {', '.join(story)}")


CAMPAIGN = Campaign(
    unit="runs killed",
    kept=("same bits",),
    broken=("wrong bits", "failed again", "litter"),
    prepare=prepare,
    trial=trial,
    seconds=400,
    memory=4.0,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=200)
