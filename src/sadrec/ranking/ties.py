"""The probability of a tie: it falls with the margin, and rises with the widths of both items and the judge."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sadrec._core.types import Doubles, Floats

Outcome = Literal["win", "loss", "tie"]


@dataclass(frozen=True, eq=False)
class Ties:
    """``log P(tie) / P(decided) = common + item_i + item_j + user_u - slope log(2 cosh(x / 2))``.

    With ``slope`` 1 that is the model of Davidson (1970).
    """

    common: float
    slope: float
    item: Floats  # (items,)
    user: Floats  # (users,)

    def probability(self, users: Any, items: Any, rivals: Any, mean: Any, variance: Any) -> Doubles:
        """Return the probability of a tie where margins have these means and variances."""
        width = self.common + self.user[users] + self.item[items] + self.item[rivals]
        return np.asarray(1 / (1 + np.exp(self.slope * distance(mean, variance) - width)))

    def of_user(self) -> "Ties":
        """Return the ties of one user, who is like the average of all."""
        return replace(self, user=np.zeros(1, np.float32))

    def enlarged(self, users: int, items: int) -> "Ties":
        """Return the same for more users and items, which are like the average."""
        zeros = (np.zeros(users - len(self.user), np.float32), np.zeros(items - len(self.item), np.float32))
        return replace(self, user=np.append(self.user, zeros[0]), item=np.append(self.item, zeros[1]))


def distance(mean: Any, variance: Any) -> Doubles:
    """Return ``log(2 cosh(x / 2))`` where x is as large as a margin of this mean and variance usually is."""
    half = 0.5 * np.sqrt(np.square(mean) + variance)
    return np.asarray(np.logaddexp(half, -half))
