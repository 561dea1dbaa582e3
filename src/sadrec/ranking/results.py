"""Results of the comparisons that a model was fitted to."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Doubles, Floats, Positions


class Results(NamedTuple):
    """Counted comparisons: a row for each judge and pair of items, sorted by judge, item and rival."""

    user: NDArray[np.int32]
    item: NDArray[np.int32]  # of lower position than its rival
    rival: NDArray[np.int32]
    wins: Floats  # how often the item won
    losses: Floats  # how often its rival won
    ties: Floats  # how often neither won

    @classmethod
    def of(cls, decided: Any, ties: Any, items: int) -> "Results":
        """Return the results of comparisons that were counted: user, item, rival, weight and wins; ties or None."""
        user, item, rival, weight, wins, *_ = decided
        losses = np.asarray(weight - wins, np.float32)
        results = cls(user, item, rival, np.asarray(wins, np.float32), losses, np.zeros(len(losses), np.float32))
        if ties is None:
            return results
        none = np.zeros(len(ties[0]), np.float32)
        user, item, rival, weight, *_ = ties
        return results.and_more(cls(user, item, rival, none, none, np.asarray(weight, np.float32)), items)

    def and_more(self, other: "Results", items: int) -> "Results":
        """Return these results and others, of at most ``items`` items."""
        both = [np.concatenate(sides) for sides in zip(self, other, strict=True)]
        keys, row = np.unique((both[0].astype(np.int64) * items + both[1]) * items + both[2], return_inverse=True)
        user, pair = np.divmod(keys, items**2)
        places: Any = [side.astype(np.int32) for side in (user, *np.divmod(pair, items))]
        return Results(*places, *[np.bincount(row, side).astype(np.float32) for side in both[3:]])

    @property
    def decided(self) -> Doubles:
        """Number of decided comparisons."""
        return np.asarray(self.wins + self.losses, np.float64)

    def by(self, users: Positions | None, among: Positions, count: int) -> "Results":
        """Return the results by some judges (None: all) among some of ``count`` items."""
        inside = np.zeros(count, np.bool_)
        inside[among] = True
        chosen = inside[self.item] & inside[self.rival]
        if users is not None:
            chosen &= np.isin(self.user, users)
        sides: Any = [side[chosen] for side in self]
        return self if chosen.all() else Results(*sides)

    def totals(self, count: int) -> tuple[Doubles, Doubles, Doubles]:
        """Return how often each of ``count`` items won, tied and lost."""

        def total(item: Any, rival: Any) -> Doubles:
            sides = np.bincount(self.item, item, count), np.bincount(self.rival, rival, count)
            return np.add(*sides, dtype=np.float64)

        return total(self.wins, self.losses), total(self.ties, self.ties), total(self.losses, self.wins)
