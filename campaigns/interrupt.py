"""Ctrl-C and SIGTERM, once, twice and many times, on one thread and on several; then the same call again.

SIGTERM ends the process, or meets a handler that raises SystemExit, as servers have one. After a single Ctrl-C the
model in memory, too, is that of a whole epoch. The resumed work leaves the files of undisturbed work, byte for byte.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from campaigns._subjects import clicks
from campaigns._trials import Campaign, Outcome, Random, in_fork, main, quiet_warnings
from campaigns._works import done_again, results, works
from sadrec import SAD
from sadrec._core.files import fingerprint


class Subject(NamedTuple):
    """What is done on each number of threads, its files and seconds, and the epochs of a fit that is looked at."""

    calls: dict[int, dict[str, Callable[[Path], None]]]
    files: dict[int, dict[str, dict[str, bytes]]]
    seconds: dict[str, float]
    epochs: set[str]
    fit_seconds: float


THREADS = (1, 2)


def prepare(folder: Path) -> Subject:
    """Do everything undisturbed, twice: the first time compiles."""
    calls = {threads: works(threads) for threads in THREADS}
    files, seconds = {}, {}
    for threads in THREADS:
        results(folder / f"{threads}, first", calls[threads])
        files[threads] = results(folder / f"{threads}, second", calls[threads])
    for name, call in calls[1].items():
        place = folder / "third" / name
        place.mkdir(parents=True)
        seconds[name] = in_fork(partial(call, place), place).seconds
    epochs = {""}
    began = time.monotonic()
    _model(1).fit(clicks(), show_progress=False, callbacks=[lambda epoch, _, model: epochs.add(_digest(model))])
    return Subject(calls, files, seconds, epochs, time.monotonic() - began)


def _model(threads: int) -> SAD:
    return SAD(factors=4, iterations=30, bias=True, num_threads=threads)


def _digest(model: Any) -> str:
    if not model.is_fitted:
        return ""
    return fingerprint(model.user_factors, model.item_factors, model.rival_factors, model.item_bias)


def _raise_exit(number: int, frame: Any) -> None:
    raise SystemExit(143)


def _sending(signals: list[tuple[float, int]]) -> Callable[[int], None]:
    """Return what sends signals to a process, each so many seconds after the last."""

    def send(child: int) -> None:
        for delay, number in signals:
            time.sleep(delay)
            with suppress(ProcessLookupError):
                os.kill(child, number)

    return send


def trial(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Interrupt some work, then let it end; one in six looks at the model in memory instead."""
    threads = int(rng.choice(THREADS))
    if rng.random() < 1 / 6:
        return _in_memory(subject, threads, rng, folder)
    name = list(subject.files[threads])[int(rng.integers(len(subject.files[threads])))]
    call, place = subject.calls[threads][name], folder / "work"
    place.mkdir()
    story = []
    for _ in range(int(rng.choice([1, 2], p=[0.8, 0.2]))):
        count = int(rng.choice([1, 2, 3, 6, 12]))
        which = signal.SIGTERM if rng.random() < 0.3 else signal.SIGINT
        gentle = rng.random() < 0.7  # SIGTERM raises
        first = float(rng.uniform(0, subject.seconds[name]))
        delays = [first, *rng.exponential(rng.choice([0.0002, 0.002, 0.01]), count - 1).tolist()]
        story.append(f"{count} {which.name} from {first:.4f} s on")

        def work(gentle: bool = gentle) -> None:
            if gentle:
                signal.signal(signal.SIGTERM, _raise_exit)
            with quiet_warnings():
                call(place)

        in_fork(work, place, _sending([(delay, which) for delay in delays]))
    return done_again(call, place, subject.files[threads][name], f"{name} on {threads} threads, {', '.join(story)}")


def _in_memory(subject: Subject, threads: int, rng: Random, folder: Path) -> Outcome:
    """Press Ctrl-C once and look at the model."""
    delay = float(rng.uniform(0, subject.fit_seconds))

    def work() -> None:
        model = _model(threads)
        try:
            with quiet_warnings():
                model.fit(clicks(), show_progress=False)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if _digest(model) not in subject.epochs:
                raise RuntimeError(f"the model is of no whole epoch: {len(model.state.history)}") from None

    ended = in_fork(work, folder / "memory", _sending([(delay, signal.SIGINT)]))
    if ended.code in (0, 130):
        return Outcome("same bits")
    return Outcome("wrong bits", f"in memory, on {threads} threads, after {delay:.4f} s: {ended.code} {ended.output}")


CAMPAIGN = Campaign(
    unit="runs interrupted",
    kept=("same bits",),
    broken=("wrong bits", "failed again", "litter"),
    prepare=prepare,
    trial=trial,
    seconds=400,
    memory=4.0,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=200)
