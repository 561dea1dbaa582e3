"""Coefficients of features of comparisons; margins are for items that are equal in these features."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtri

from sadrec._core import check
from sadrec._core.types import Doubles


@dataclass(frozen=True, eq=False)
class Controls:
    """Coefficients: how much each feature raises the log-odds of the side that it favours."""

    names: tuple[str, ...]
    mean: Doubles
    covariance: Doubles

    def to_frame(self, level: float = 0.9) -> pl.DataFrame:
        """Return the coefficients with their deviations and intervals."""
        deviation = np.sqrt(np.diagonal(self.covariance))
        reach = float(ndtri((1 + check.share(level, "level", inside=True)) / 2)) * deviation
        sides = {"lower": self.mean - reach, "upper": self.mean + reach}
        return pl.DataFrame({"feature": self.names, "coefficient": self.mean, "deviation": deviation, **sides})
