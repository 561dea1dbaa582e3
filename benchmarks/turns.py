"""The clock of the benchmarks: contenders take turns in one process, since machines are shared and noisy."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol


class Turn(Protocol):
    """A contender that clocks itself."""

    def turn(self) -> tuple[float, float]:
        """Return updates and seconds."""


def take_turns(
    contenders: Mapping[str, Callable[[], object]], turns: int, warm_up: bool = True
) -> dict[str, list[float]]:
    """Return the seconds of each contender in each turn; with ``warm_up`` all do their work once before."""
    for work in contenders.values() if warm_up else ():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, work in contenders.items():
            began = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - began)
    return seconds


def best(contenders: Mapping[str, Callable[[], object]], turns: int, warm_up: bool = True) -> dict[str, float]:
    """Return the seconds of each contender in its best turn."""
    return {name: min(seconds) for name, seconds in take_turns(contenders, turns, warm_up).items()}


def best_rate(contenders: Mapping[str, Turn], turns: int) -> dict[str, float]:
    """Return the updates a second of each contender in its best turn, which it clocks itself."""
    rates = dict.fromkeys(contenders, 0.0)
    for _ in range(turns):
        for name, contender in contenders.items():
            updates, seconds = contender.turn()
            rates[name] = max(rates[name], updates / seconds)
    return rates
