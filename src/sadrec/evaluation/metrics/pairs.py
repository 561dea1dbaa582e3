"""Consistency: a held-out item against the items that the user rated and kept in training."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Doubles

# A probability of exactly 0 for what happened would make one pair decide the average of all.
FLOOR = 1e-15


def mean_by(group: NDArray[Any], values: NDArray[Any], groups: int) -> Doubles:
    """Average values inside each of the groups 0, 1, ...; NaN for a group without any."""
    total = np.bincount(group, weights=values, minlength=groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / np.bincount(group, minlength=groups), dtype=np.float64)


@dataclass(frozen=True)
class RatedPairs:
    """Pairs (held-out item o, item j kept in training), grouped into cases: one case is one (user, o)."""

    margin: NDArray[Any]  # x_uoj
    outcome: NDArray[Any]  # the sign of r_uo - r_uj: 1 where o was rated higher, -1 where j was
    case: NDArray[Any]  # which case a pair belongs to, in 0 .. cases - 1
    cases: int  # one without a pair has the value NaN in every measure
    probability: NDArray[Any] | None = None  # P(o preferred to j), if the model offers it

    def mean(self, values: NDArray[Any], where: NDArray[np.bool_] | None = None) -> Doubles:
        """Average ``values`` (one per pair) inside each case, over all pairs or those in ``where``."""
        if where is None:
            return mean_by(self.case, values, self.cases)
        return mean_by(self.case[where], values[where], self.cases)

    @property
    def unequal(self) -> NDArray[np.bool_]:
        """Pairs whose two ratings differ."""
        return np.asarray(self.outcome != 0)

    @property
    def oriented(self) -> Doubles:
        """Margins turned so that each is the margin of the item rated higher; 0 where both are rated alike."""
        return np.asarray(self.margin * self.outcome, dtype=np.float64)

    @property
    def of_winner(self) -> Doubles:
        """Probability given to the item rated higher."""
        if self.probability is None:
            raise ValueError("this model offers no probability; give it probability(user, item, rival)")
        p = np.asarray(self.probability, dtype=np.float64)
        return np.where(self.outcome < 0, 1.0 - p, p)


def mean_margin(pairs: RatedPairs) -> Doubles:
    r"""Mean margin in the direction of the user's ratings, per case.

    .. math:: \frac{1}{|I_u| - 1} \sum_{j \in I_u, j \ne o} x_{uoj} 1(o \succ j) + x_{ujo} 1(j \succ o)

    The average is taken inside the user first, then over users. Pairs with equal ratings contribute 0 and stay in the
    denominator, as printed. Source: the SAD paper, "Applications for Real Data", first evaluation equation (with the
    user as the index of x, and the factor inside the sum over users).

    Examples
    --------
    >>> mean_margin(RatedPairs(np.array([2.0, -1.0, 5.0]), np.array([1, 1, 0]), np.zeros(3, int), 1))
    array([0.33333333])
    """
    return pairs.mean(pairs.oriented)


def match(pairs: RatedPairs) -> Doubles:
    r"""Share of all pairs ordered as the user's ratings order them, per case.

    .. math:: \frac{1}{|I_u| - 1} \sum_{j \in I_u, j \ne o} 1(x_{uoj} > 0) 1(o \succ j) + 1(x_{ujo} > 0) 1(j \succ o)

    Pairs with equal ratings, and margins of exactly 0, count as no match: the ceiling is the share of unequal pairs.
    The mean over users is ``match``, the median over users ``match_per_user``. Source: the SAD paper, "Applications
    for Real Data", second evaluation equation.

    Examples
    --------
    >>> match(RatedPairs(np.array([2.0, -1.0, -4.0, 5.0]), np.array([1, 1, -1, 0]), np.zeros(4, int), 1))
    array([0.5])
    """
    return pairs.mean(pairs.oriented > 0)


def unequal_accuracy(pairs: RatedPairs) -> Doubles:
    r"""Accuracy over the pairs whose ratings differ, per case; a case without one has none (NaN).

    .. math:: \frac{1}{|\{j: r_{uj} \ne r_{uo}\}|} \sum_{j: r_{uj} \ne r_{uo}}
        1(s_{oj} x_{uoj} > 0) + \tfrac12 1(x_{uoj} = 0), \qquad s_{oj} = \mathrm{sign}(r_{uo} - r_{uj})

    A margin of exactly 0 counts half, so a model that says nothing has 0.5. It is what ``match`` would be if pairs
    without a known order were left out; averaged per user it is the area under the ROC curve of one held-out item.

    Examples
    --------
    >>> unequal_accuracy(RatedPairs(np.array([2.0, -1.0, 0.0, 5.0]), np.array([1, 1, -1, 0]), np.zeros(4, int), 1))
    array([0.5])
    """
    oriented = pairs.oriented
    return pairs.mean((oriented > 0) + 0.5 * np.equal(oriented, 0), where=pairs.unequal)


def rated_brier(pairs: RatedPairs) -> Doubles:
    r"""Mean squared error of the probability given to what happened, over unequally rated pairs, per case.

    .. math:: \frac{1}{|\{j: r_{uj} \ne r_{uo}\}|} \sum_{j: r_{uj} \ne r_{uo}} (1 - p_{uj})^2

    where p is the probability given to the item that was rated higher. 0.25 is what "one half" always scores; lower
    is better. Source: Brier, Monthly Weather Review 78 (1950), in the two-class form.

    Examples
    --------
    >>> p = np.array([0.5, 0.9])
    >>> rated_brier(RatedPairs(np.array([0.0, 2.2]), np.array([1, 1]), np.zeros(2, int), 1, p)).round(3)
    array([0.13])
    """
    return pairs.mean((1.0 - pairs.of_winner) ** 2, where=pairs.unequal)


def rated_log_loss(pairs: RatedPairs) -> Doubles:
    r"""Mean negative log probability of what happened, over unequally rated pairs, per case.

    .. math:: -\frac{1}{|\{j: r_{uj} \ne r_{uo}\}|} \sum_{j: r_{uj} \ne r_{uo}} \log p_{uj}

    where p is the probability given to the item that was rated higher, at least 1e-15. log 2 = 0.693 is what "one
    half" always scores; lower is better. Source: Good, JRSS B 14 (1952).

    Examples
    --------
    >>> p = np.array([0.5, 0.5])
    >>> rated_log_loss(RatedPairs(np.zeros(2), np.array([1, -1]), np.zeros(2, int), 1, p)).round(4)
    array([0.6931])
    """
    return pairs.mean(-np.log(np.maximum(pairs.of_winner, FLOOR)), where=pairs.unequal)
