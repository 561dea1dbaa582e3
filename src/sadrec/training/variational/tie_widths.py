"""The probability of a tie: a width for each item and each judge, fitted after the margins.

Of a comparison that is decided, the margin says who wins. Whether it is decided depends on how far apart the two are:
``log P(tie) / P(decided) = c + w_i + w_j + w_u - s log(2 cosh(x / 2))``. With s = 1 that is the model of Davidson
(1970), with s = 2 nearly that of Rao and Kupper (1967); s is learnt. Given the margins, all of it is one concave
problem, and ties do not change who is better.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from sadrec._core.types import Doubles
from sadrec.training.variational.priors import learnt_variance

_ROUNDS = 6  # in which the variances of widths are learnt
_STEPS = 50  # of L-BFGS in each
_LEAST = 1e-300


class Outcomes(NamedTuple):
    """Counted comparisons: how many were ties, how many were decided, and how far apart the margin sets the two."""

    user: NDArray[Any]
    item: NDArray[Any]
    rival: NDArray[Any]
    ties: Doubles
    decided: Doubles
    distance: Doubles


class _Widths:
    """The problem over theta: c, s, the widths of items and, where there are several, of users."""

    def __init__(self, outcomes: Outcomes, users: int, items: int) -> None:
        self.outcomes, self.items = outcomes, items
        self.users = users if users > 1 else 0
        self.start = np.zeros(2 + items + self.users)
        self.start[:2] = np.log(outcomes.ties.sum() / max(outcomes.decided.sum(), 1.0)), 1.0
        self.centre = np.concatenate(([0.0, 1.0], np.zeros(items + self.users)))
        self.precision = np.concatenate(([0.1], np.ones(1 + items + self.users)))

    def parts(self, theta: Doubles) -> tuple[Doubles, Doubles]:
        """Return the widths of items and of users."""
        return theta[2 : 2 + self.items], theta[2 + self.items :]

    def probability(self, theta: Doubles) -> Doubles:
        """Return the probability of a tie, row by row."""
        of, (item, user) = self.outcomes, self.parts(theta)
        x = theta[0] - theta[1] * of.distance + item[of.item] + item[of.rival]
        return np.asarray(expit(x + user[of.user] if self.users else x))

    def gathered(self, of_row: Doubles, of_slope: Doubles) -> Doubles:
        """Return the sums of numbers of rows for each entry of theta."""
        of = self.outcomes
        item = np.bincount(of.item, of_row, self.items) + np.bincount(of.rival, of_row, self.items)
        user = np.bincount(of.user, of_row, self.users) if self.users else np.empty(0)
        return np.concatenate(([of_row.sum(), of_slope.sum()], item, user))

    def loss(self, theta: Doubles) -> tuple[float, Doubles]:
        """Return the penalised negative log likelihood, and its gradient."""
        of, p, off = self.outcomes, self.probability(theta), theta - self.centre
        rest = of.decided * p - of.ties * (1 - p)
        value = -float(of.ties @ np.log(np.maximum(p, _LEAST)) + of.decided @ np.log(np.maximum(1 - p, _LEAST)))
        gradient = self.gathered(rest, -rest * of.distance) + self.precision * off
        return value + 0.5 * float(self.precision @ off**2), gradient

    def information(self, theta: Doubles) -> Doubles:
        """Return the information of the rows about each entry of theta, given the others."""
        of, p = self.outcomes, self.probability(theta)
        of_row = (of.ties + of.decided) * p * (1 - p)
        return self.gathered(of_row, of_row * of.distance**2)


def fit_widths(outcomes: Outcomes, users: int, items: int) -> tuple[float, float, Doubles, Doubles]:
    """Return c, s, and the widths of items and of users, each normal around 0 with a learnt variance.

    One user has the width 0.
    """
    problem = _Widths(outcomes, users, items)
    bounds = [(None, None), (0.0, None), *[(None, None)] * (items + problem.users)]
    theta, options = problem.start, {"maxiter": _STEPS}
    for _ in range(_ROUNDS):
        theta = minimize(problem.loss, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        information = problem.information(theta)
        determined = information / (information + problem.precision)
        parts = zip(*(problem.parts(values) for values in (theta, determined, problem.precision)), strict=True)
        for width, number, precision in parts:
            if len(width):
                precision[:] = 1.0 / learnt_variance(float(width @ width), float(number.sum()))
    item, user = problem.parts(theta)
    return float(theta[0]), float(theta[1]), item, user if problem.users else np.zeros(users)
