"""Circles in the draws: how probable each is, and how much of a user's preferences no scores explain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec.posterior.draws import Draws
from sadrec.posterior.questions import Sampled, check_count
from sadrec.posterior.settings import is_number

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

MOST_ITEMS = 400
"""Most items among which all triads are looked at."""


@dataclass(frozen=True)
class CredibleCycle:
    """Three items, each preferred to the next and the last to the first.

    Attributes
    ----------
    path
        Ids, in order.
    probability
        That all three preferences hold.
    weakest
        The smallest of the three probabilities that one item beats the next.
    """

    path: tuple[Any, ...]
    probability: float
    weakest: float


@kernel
def ones(word: np.uint64) -> np.uint64:
    """Count the bits that are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def count_triads(wins: Words, counts: NDArray[np.int32]) -> None:
    """Count, for all i < j < k, in how many draws i > j > k > i and in how many i < j < k < i.

    Parameters
    ----------
    wins
        (items, items, words): bit d of entry (i, j) says that i beats j in draw d.
    counts
        (triads, 2), filled in the order of i, j, k.
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


def packed_wins(draws: Draws, user: int | None, rows: NDArray[np.int64]) -> tuple[Words, Floats]:
    """Return who beats whom, a bit per draw, (items, items, words), and how often."""
    if user is None:
        draws, user = draws.crowd(), 0
    words = -(-len(draws) // 64)
    packed, share = np.zeros((len(rows), len(rows), words * 8), np.uint8), np.zeros((len(rows), len(rows)))
    for place, item in enumerate(rows):
        bits = draws.preference(user, item, rows) > 0
        bits[:, place] = False
        share[place] = bits.mean(axis=0)
        packed[place, :, : -(-len(draws) // 8)] = np.packbits(bits, axis=0).T
    return packed.view(np.uint64), share


def check_share(least: float) -> float:
    """Return the smallest probability worth a mention, checked."""
    if not is_number(least) or not 0 <= least <= 1:
        raise ValueError(f"least must be a probability, a number from 0 to 1, not {least!r}")
    return float(least)


class CycleQuestions(Sampled):
    """Whether taste runs in circles, and how surely. ``user=None`` is the mean over all users."""

    def cycle_probability(self, user: Any, items: Any) -> float:
        """Return the probability that a circle is real: each item preferred to the next, and the last to the first.

        Parameters
        ----------
        user
            An id, or None for the crowd.
        items
            Three or more ids, in the order of the circle.
        """
        rows = self._item_rows(items)
        if len(rows) < 3:
            raise ValueError(f"a circle has at least three items, not {len(rows)}")
        x = self.drawn.preference(self._user_row(user), rows, np.roll(rows, -1))
        return float((x > 0).all(axis=1).mean())

    def credible_cycles(
        self, user: Any = None, items: Any = None, least: float = 0.5, N: int | None = 20
    ) -> list[CredibleCycle]:
        """Return the circles of three items that are probably real, the most probable first.

        Parameters
        ----------
        user
            An id, or None for the crowd.
        items
            Ids to look among; None means all, at most 400.
        least
            Smallest probability worth a mention.
        N
            At most so many; None for no limit.
        """
        check_share(least)
        if N is not None:
            check_count("N", N)
        rows = self._item_rows(items)
        if len(rows) > MOST_ITEMS:
            raise ValueError(
                f"{len(rows)} items have too many triads: name at most {MOST_ITEMS} items, the best ones say"
            )
        if len(rows) < 3:
            return []
        wins, beats = packed_wins(self.drawn, self._user_row(user), rows)
        counts = np.zeros((len(rows) * (len(rows) - 1) * (len(rows) - 2) // 6, 2), np.int32)
        count_triads(wins, counts)
        probability = counts.max(axis=1) / len(self.drawn)
        order = np.argsort(-probability, kind="stable")
        chosen = order[: np.count_nonzero(probability >= least)][:N]
        triads = _triads(len(rows), chosen)
        found = []
        for row, (i, j, k) in zip(chosen, triads, strict=True):
            path = (i, j, k) if counts[row, 0] >= counts[row, 1] else (i, k, j)
            weakest = min(beats[a, b] for a, b in zip(path, (*path[1:], path[0]), strict=True))
            ids = tuple(self.item_ids.array[rows[list(path)]].tolist())
            found.append(CredibleCycle(ids, float(probability[row]), float(weakest)))
        return found

    def cyclic_triads(self, user: Any = None, items: Any = None) -> NDArray[np.int64]:
        """Return draws of the number of circles of three among some items.

        Where many items are nearly equal, some circle is in every draw without any one being probable: see
        :meth:`credible_cycles`.

        Parameters
        ----------
        user
            An id, or None for the crowd.
        items
            Ids; None means all.
        """
        rows = self._item_rows(items)
        row = self._user_row(user)
        draws, row = (self.drawn.crowd(), 0) if row is None else (self.drawn, row)
        wins = np.stack([(draws.preference(row, item, rows) > 0).sum(axis=1) for item in rows], axis=1)
        count = len(rows)
        # Every triad that is not a circle has exactly one item that beats both others.
        return np.asarray(count * (count - 1) * (count - 2) // 6 - (wins * (wins - 1) // 2).sum(axis=1))

    def intransitivity(self, user: Any = None) -> Floats:
        """Return draws of the share of a user's preferences that no scores can explain, in [0, 1].

        Parameters
        ----------
        user
            An id, or None for the crowd.
        """
        xi = self.drawn.user_vectors(self._user_row(user))
        _, eta, tau = self.drawn.flat()
        result = np.empty(len(xi))
        for d in range(len(xi)):
            h, t = eta[d].astype(np.float64), tau[d].astype(np.float64)
            mixed = h.T @ t
            size = 2 * xi[d] @ ((h.T @ h) * (t.T @ t) - mixed * mixed.T) @ xi[d]
            score = (h * xi[d]) @ t.mean(axis=0) - (t * xi[d]) @ h.mean(axis=0)
            explained = 2 * len(h) * float(score @ score)
            result[d] = 1 - explained / size if size > 1e-12 * max(explained, 1e-300) else 0.0
        return result.clip(0, 1)


def _triads(items: int, chosen: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Return the triads at some places of the order i < j < k."""
    found = {}
    wanted = set(chosen.tolist())
    row = 0
    for i in range(items - 2):
        for j in range(i + 1, items - 1):
            last = row + items - j - 1
            for place in range(row, last):
                if place in wanted:
                    found[place] = (i, j, j + 1 + place - row)
            row = last
    return [found[place] for place in chosen.tolist()]
