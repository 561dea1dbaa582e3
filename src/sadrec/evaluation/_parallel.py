"""Work on blocks of users, by several threads, results in the order of the blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

T = TypeVar("T")
R = TypeVar("R")


def threads_of(num_threads: int) -> int:
    """Return how many threads ``num_threads`` asks for: 0 means all cores."""
    if num_threads < 0:
        raise ValueError(f"num_threads must be 0 (all cores) or more, got {num_threads}")
    return num_threads or os.cpu_count() or 1


def over_blocks(
    work: Callable[[T], R], blocks: Sequence[T], threads: int, progress: bool = False, title: str = ""
) -> Iterator[R]:
    """Yield ``work(block)`` for every block, in order, whichever thread did it.

    BLAS is held to one thread meanwhile: its products here are small, and its threads would wait for each other and
    for ours (ten times slower on a busy machine, and the bits could depend on the number of cores).
    """
    with (
        threadpool_limits(1, user_api="blas"),
        tqdm(total=len(blocks), desc=title, disable=not progress, leave=False) as bar,
    ):
        if threads <= 1 or len(blocks) <= 1:
            for block in blocks:
                yield work(block)
                bar.update()
            return
        with ThreadPoolExecutor(threads) as pool:
            for result in pool.map(work, blocks):
                yield result
                bar.update()
