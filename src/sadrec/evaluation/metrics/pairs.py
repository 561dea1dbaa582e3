"""Held-out items against the rated items of the same user, as the consistency measures take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Pairs (held-out item o, item j kept in training), grouped into cases: one case is one (user, o).

    Attributes
    ----------
    margin
        x_uoj, one per pair.
    outcome
        The sign of r_uo - r_uj: 1 where o was rated higher, -1 where j was, 0 where both were rated alike.
    case
        Which case a pair belongs to, in ``0 .. cases - 1``.
    cases
        The number of cases; one without a pair has the value NaN in every measure.
    probability
        P(o preferred to j), one per pair, or ``None`` when the model offers none.
    """

    margin: NDArray[Any]
    outcome: NDArray[Any]
    case: NDArray[Any]
    cases: int
    probability: NDArray[Any] | None = None

    def mean(self, values: NDArray[Any], where: NDArray[np.bool_] | None = None) -> Floats:
        """Average ``values`` (one per pair) inside each case, over all pairs or those in ``where``."""
        case = self.case
        if where is not None:
            values, case = values[where], case[where]
        total = np.bincount(case, weights=values, minlength=self.cases)
        count = np.bincount(case, minlength=self.cases)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / count, dtype=np.float64)

    @property
    def unequal(self) -> NDArray[np.bool_]:
        """Pairs whose two ratings differ."""
        return np.asarray(self.outcome != 0)

    @property
    def oriented(self) -> Floats:
        """Margins turned so that each is the margin of the item rated higher; 0 where both are rated alike."""
        return np.asarray(self.margin * self.outcome, dtype=np.float64)

    @property
    def of_winner(self) -> Floats:
        """Probability given to the item rated higher."""
        if self.probability is None:
            raise ValueError("this model offers no probability; give it probability(user, item, rival)")
        p = np.asarray(self.probability, dtype=np.float64)
        return np.where(self.outcome < 0, 1.0 - p, p)
