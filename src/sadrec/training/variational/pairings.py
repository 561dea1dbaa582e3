"""Pairings: a margin of their own for two items, beyond what the factors give."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sadrec._core.moments import divided
from sadrec._core.types import Doubles
from sadrec.training.variational.arrays import Rows
from sadrec.training.variational.own_scores import FIRST_SCALE, OwnScores, Part
from sadrec.training.variational.priors import variance_of


class Pairings:
    """Margins of single pairings beyond the factors: normal around 0, with a learnt variance."""

    def __init__(self, count: int) -> None:
        self.mean: Any = np.zeros(count)
        self.variance: Any = np.zeros(count)
        self.scale = 0.0  # the learnt variance; 0 until it is learnt

    def update(
        self, rows: Rows, parts: list[Part], own: OwnScores | None, common: Callable[[slice], Doubles], final: bool
    ) -> None:
        """Fit the margins to the unexplained part, and learn their variance.

        ``common`` is what is added to the margins by the factors, for all users alike. Factors that are fitted to a row
        leave less of it unexplained than they would of a new one. So once they stay (``final``), the variance is that
        of what they leave when the row is taken out of them.
        """
        information, linear = self.variance, self.mean  # until they are known, in the same place
        spread, left = (np.zeros(len(linear)) for _ in range(2)) if final else (information, linear)
        information[:], linear[:] = 0.0, 0.0
        scale = self.scale or FIRST_SCALE
        for part in parts:
            at = part.rows
            curvature, pairing = rows.curvature[at], rows.pairing[at].astype(np.intp)
            of_own, mean = 0.0 if own is None else own.margins(at), rows.mean[at] + common(at)
            rest = rows.slope[at] - curvature * (mean + of_own)
            np.add.at(information, pairing, curvature)
            np.add.at(linear, pairing, rest)
            if final:
                unknown = 0.0 if own is None else own.margin_variances(part)
                seen = curvature / (1 + curvature * (scale + unknown))
                target = rows.slope[at] / curvature - of_own
                mean, variance = divided(mean, rows.variance[at], seen, seen * target, left=1.0)
                precision = 1 / (1 / curvature + variance + unknown)
                np.add.at(spread, pairing, precision)
                np.add.at(left, pairing, precision * (target - mean))
        self.scale = variance_of(spread, left)
        self.variance += 1.0 / self.scale
        np.divide(1.0, self.variance, out=self.variance)
        self.mean *= self.variance
