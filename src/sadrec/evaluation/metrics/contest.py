"""Held-out items among sampled ones, as the measures of recommendation take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.evaluation.metrics.expected_hit import expected_hit
from sadrec.evaluation.metrics.pairs import Floats


@dataclass(frozen=True)
class Contest:
    """Each held-out item o against items sampled from those its user has not met; one case is one (user, o).

    "Flat" arrays have one entry per (case, sampled item), the others one per case.

    Attributes
    ----------
    case
        Flat: which case a sampled item belongs to, in ``0 .. cases - 1``.
    margin
        Flat: x_uoj of the held-out item over the sampled item j.
    wins, mean
        Flat: how many items of the user's training set the sampled item is preferred to, and its mean margin over them.
    held_out_wins, held_out_mean
        The same for the held-out item.
    liked
        How many items the user's training set has.
    probability
        Flat: P(o preferred to j), or ``None`` when the model offers none.
    cut, out_of
        A hit is to have fewer than ``cut`` of ``out_of`` sampled items ahead.
    """

    case: NDArray[Any]
    margin: NDArray[Any]
    wins: NDArray[Any]
    mean: NDArray[Any]
    held_out_wins: NDArray[Any]
    held_out_mean: NDArray[Any]
    liked: NDArray[Any]
    probability: NDArray[Any] | None = None
    cut: int = 20
    out_of: int = 100

    @property
    def cases(self) -> int:
        """The number of cases."""
        return len(self.liked)

    @property
    def sampled(self) -> NDArray[np.int64]:
        """How many items were sampled, per case."""
        return np.bincount(self.case, minlength=self.cases)

    def count(self, where: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count the sampled items in ``where``, per case."""
        return np.bincount(self.case[where], minlength=self.cases)

    def average(self, values: NDArray[Any]) -> Floats:
        """Average flat ``values`` inside each case; NaN for a case without sampled items."""
        total = np.bincount(self.case, weights=values, minlength=self.cases)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / self.sampled, dtype=np.float64)

    def hit(self, ahead: NDArray[np.bool_], equal: NDArray[np.bool_]) -> Floats:
        """Expected hit per case, from which sampled items are ahead of the held-out one and which equal to it."""
        return expected_hit(self.count(ahead), self.count(equal), self.sampled, self.cut, self.out_of)
