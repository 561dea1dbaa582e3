"""Coefficients of features of comparisons, which margins leave out: they are those of items alike in all of them."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtri

from sadrec import _check
from sadrec._types import Doubles


@dataclass(frozen=True, eq=False)
class Controls:
    """By how much each feature of a comparison raises the log-odds of the side that it is in favour of."""

    names: tuple[str, ...]
    mean: Doubles
    covariance: Doubles

    def to_frame(self, level: float = 0.9) -> pl.DataFrame:
        """Return the coefficients with their deviations and intervals."""
        deviation = np.sqrt(np.diagonal(self.covariance))
        reach = float(ndtri((1 + _check.share(level, "level", inside=True)) / 2)) * deviation
        sides = {"lower": self.mean - reach, "upper": self.mean + reach}
        return pl.DataFrame({"feature": self.names, "coefficient": self.mean, "deviation": deviation, **sides})
