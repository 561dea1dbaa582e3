"""Cycles in the draws: how probable each is, and how many there are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.types import Doubles, Positions
from sadrec._core.words import titled
from sadrec.posterior.draws import Draws

MOST_ITEMS = 400
"""The largest number of items for counting all triads."""


@dataclass(frozen=True)
class CredibleCycle:
    """Three items (their ids), each preferred to the next and the last to the first."""

    path: tuple[Any, ...]
    probability: float  # that all three preferences hold
    weakest: float  # the smallest of the three probabilities that one item beats the next

    def named(self, titles: Mapping[Any, str]) -> "CredibleCycle":
        """Return the same with titles (:class:`sadrec.Items`, or a mapping) in place of ids."""
        return replace(self, path=tuple(titled(self.path, titles).tolist()))


@kernel
def ones(word: np.uint64) -> np.uint64:
    """Count the bits that are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def count_triads(wins: NDArray[np.uint64], counts: NDArray[np.int32]) -> None:
    """Write for every triad i < j < k the number of draws with either cycle, (triads, 2).

    In column 0, i beats j, j beats k and k beats i; in column 1 the cycle runs the other way. Bit d of entry (i, j) of
    ``wins``, (items, items, words), says that i beats j in draw d.
    """
    items, words = wins.shape[0], wins.shape[2]
    row = 0
    for i in range(items):
        for j in range(i + 1, items):
            for k in range(j + 1, items):
                forth, back = np.uint64(0), np.uint64(0)
                for w in range(words):
                    forth += ones(wins[i, j, w] & wins[j, k, w] & wins[k, i, w])
                    back += ones(wins[j, i, w] & wins[k, j, w] & wins[i, k, w])
                counts[row, 0] = forth
                counts[row, 1] = back
                row += 1


def packed_wins(draws: Draws, user: int, items: Positions) -> tuple[NDArray[np.uint64], Doubles]:
    """Return who beats whom, a bit per draw, (items, items, words), and how often."""
    words = -(-len(draws) // 64)
    packed, share = np.zeros((len(items), len(items), words * 8), np.uint8), np.zeros((len(items), len(items)))
    for place, item in enumerate(items):
        bits = draws.preference(user, item, items) > 0
        bits[:, place] = False
        share[place] = bits.mean(axis=0)
        packed[place, :, : -(-len(draws) // 8)] = np.packbits(bits, axis=0).T
    return packed.view(np.uint64), share


def credible_cycles(draws: Draws, user: int, items: Positions, least: float, N: int | None) -> list[CredibleCycle]:
    """Return the cycles of three items, as rows, whose probability is at least ``least``, the most probable first."""
    size = len(items)
    if size > MOST_ITEMS:
        raise ValueError(f"{size} items have too many triads: name at most {MOST_ITEMS} items, for example the best")
    if size < 3:
        return []
    wins, beats = packed_wins(draws, user, items)
    counts = np.zeros((size * (size - 1) * (size - 2) // 6, 2), np.int32)
    count_triads(wins, counts)
    probability = counts.max(axis=1) / len(draws)
    order = np.argsort(-probability, kind="stable")
    chosen = order[: np.count_nonzero(probability >= least)][:N]
    # Triads come in the order of their pairs i < j, each of which has one for every k > j.
    first, second = np.triu_indices(size, 1)
    ends = np.cumsum(size - 1 - second)
    pair = np.searchsorted(ends, chosen, side="right")
    triads = np.stack([first[pair], second[pair], size + chosen - ends[pair]], axis=1)
    backward = counts[chosen, 0] < counts[chosen, 1]
    triads[backward] = triads[backward][:, [0, 2, 1]]
    weakest = beats[triads, np.roll(triads, -1, axis=1)].min(axis=1, initial=1.0)
    return [
        CredibleCycle(tuple(items[triad].tolist()), float(probability[row]), float(weak))
        for triad, row, weak in zip(triads, chosen, weakest, strict=True)
    ]
