"""A vector for a new user: from what they liked, or from what they said they prefer.

With the items' parameters fixed, the likelihood in a user's vector is that of a logistic regression. In training each
liked item meets one sampled negative per epoch and pays ``regularization * |xi|^2`` each time. So the vector of
a new user maximises

``sum_i [ mean_j log sigmoid(x_ij) - regularization |xi|^2 ]``, i over the liked items and j over their negatives,

which is concave and has one maximum. Newton's method reaches it in a few steps of factors squared times pairs.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._check import whole
from sadrec._types import Doubles, Positions
from sadrec.ranking.logistic import Estimate, check_regularization, maximise, maximise_hardest
from sadrec.ranking.parameters import Parameters, item_positions

_PAIRS, _FEWEST = 4096, 8
"""Pairs for a user, and at least how many negatives for each liked item, when their number is left open."""

_MANY = 2048
"""Pairs from which on it pays to start with a quarter of them, against hard negatives."""

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class FoldIn:
    """The vector of a new user."""

    vector: Doubles = field(repr=False)  # xi, (factors,): a user for every function that takes one
    covariance: Doubles = field(repr=False)  # (factors, factors): Laplace's approximation
    pairs: int  # how many pairs it was computed from
    steps: int  # how many steps Newton's method took

    def __repr__(self) -> str:
        size = float(np.linalg.norm(self.vector))
        return (
            f"FoldIn(vector of {self.vector.size} factors and length {size:.3g}, "
            f"pairs={self.pairs}, steps={self.steps})"
        )

    def deviation(self, parameters: Parameters, item: int, rival: int) -> float:
        """Return the standard deviation of the margin of an item against a rival, given what is known of the user."""
        z = pair_design(parameters, np.array([item]), np.array([rival]))[0][0]
        return float(np.sqrt(z @ self.covariance @ z))


def fold_in(
    parameters: Parameters,
    liked: ArrayLike,
    *,
    regularization: float = 0.01,
    negatives: int | None = None,
    popularity: ArrayLike | None = None,
    candidates: int = 1,
    spread: Doubles | None = None,
) -> FoldIn:
    """Compute the vector of a new user from the items they liked.

    ``negatives`` is how many negatives each liked item meets, spread evenly over all other items; ``None`` for 4096
    pairs in all, but at least 8 each. ``popularity`` says how often each item is a negative, for a model that was
    trained so. ``candidates`` is for a model trained against the hardest of that many negatives: each pair is the
    hardest of as many, for the resulting vector, and the problem stays concave. ``spread`` is by how much users differ
    in each factor: given, the vector stays near the average user by as much, and ``regularization`` is not used.

    >>> tastes = Parameters(np.zeros((0, 2)), np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-0.1, 0.9]]))
    >>> fold_in(tastes, [0, 1]).vector.round(2)
    array([ 1.81, -1.63])
    """
    chosen = np.unique(item_positions(parameters, liked, "liked"))
    if not chosen.size:
        raise ValueError(
            "liked is empty, and nothing is known of a user who liked nothing; "
            "average_user gives the vector whose margins are everybody's mean"
        )
    check_regularization(regularization)
    candidates = whole(candidates, "candidates", least=1)
    winners, pool, each = liked_pairs(parameters, chosen, negatives, popularity, candidates)
    penalty = np.full(parameters.n_factors, regularization * chosen.size)
    weight = np.full(winners.size, 1.0 / each)
    if candidates == 1:
        estimate = _solve_around(parameters, winners, pool, weight, penalty, spread)
        return FoldIn(estimate.vector, estimate.covariance, winners.size, estimate.steps)

    pairs = Pool(parameters, winners, pool)

    def search(every: int, start: Doubles, turns: int) -> Estimate:
        return maximise_hardest(
            lambda vector: pairs.hardest(vector, every)[1:], every * weight[::every], penalty, start, turns
        )

    rough = search(4 if winners.size >= _MANY else 1, np.zeros(parameters.n_factors), 12)
    estimate = search(1, rough.vector, 4)
    return FoldIn(estimate.vector, estimate.covariance, winners.size, rough.steps + estimate.steps)


def fold_in_comparisons(
    parameters: Parameters,
    winners: ArrayLike,
    losers: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    regularization: float = 0.01,
    spread: Doubles | None = None,
) -> FoldIn:
    """Compute the vector of a user who stated preferences between pairs of items.

    ``weight`` is how much each comparison counts, ``None`` for 1; ``regularization`` is paid once per comparison;
    ``spread`` is as for :func:`fold_in`.
    """
    i = item_positions(parameters, winners, "winners")
    j = item_positions(parameters, losers, "losers")
    if i.size != j.size:
        raise ValueError(f"there must be a loser for every winner, but there are {i.size} winners and {j.size} losers")
    if not i.size:
        raise ValueError("there are no comparisons; average_user gives the vector whose margins are everybody's mean")
    if (i == j).any():
        raise ValueError(f"item {int(i[i == j][0])} is compared with itself: give two different items")
    check_regularization(regularization)
    weights = np.ones(i.size) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != i.shape or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weight must hold one number, 0 or more, for each of the {i.size} comparisons")
    penalty = np.full(parameters.n_factors, regularization * i.size)
    estimate = _solve_around(parameters, i, j, weights, penalty, spread)
    return FoldIn(estimate.vector, estimate.covariance, i.size, estimate.steps)


def average_user(parameters: Parameters) -> Doubles:
    """Return the vector of a user of whom nothing is known: what the model expects, or the mean of all users."""
    if parameters.user_mean is not None:
        return parameters.user_mean.astype(np.float64)
    return np.asarray(parameters.user_factors.sum(axis=0, dtype=np.float64) / max(1, parameters.n_users))


def pair_design(parameters: Parameters, items: Positions, rivals: Positions) -> tuple[Doubles, Doubles]:
    """Return what a user's vector is multiplied with to give margins, (pairs, factors), and what is added: the bias."""
    bias = parameters.item_bias
    offset = np.zeros(len(items)) if bias is None else np.subtract(bias[items], bias[rivals], dtype=np.float64)
    return replace(parameters, item_bias=None).wedge(items, rivals), offset


def liked_pairs(
    parameters: Parameters,
    liked: Positions,
    negatives: int | None = None,
    popularity: ArrayLike | None = None,
    candidates: int = 1,
) -> tuple[Positions, Positions, int]:
    """Pair liked items with negatives among all other items, as training would, but without chance.

    Returns winners, in which every liked item stands ``each`` times in a row; a negative for each, or (pairs,
    candidates) of them; and ``each``.
    """
    others = np.setdiff1d(np.arange(parameters.n_items), liked, assume_unique=True)
    if not others.size:
        raise ValueError(f"liked holds all {parameters.n_items} items: there is no other item to compare them with")
    each = max(_FEWEST, -(-_PAIRS // liked.size)) if negatives is None else whole(negatives, "negatives", least=1)
    plain = popularity is None and candidates == 1
    if plain:
        each = min(each, others.size)
    winners = np.repeat(liked, each)
    if plain and each == others.size:
        return winners, np.tile(others, liked.size), each
    shares = None if popularity is None else _shares(parameters, popularity, others)
    losers = others[draw(winners.size * candidates, others.size, shares)]
    return winners, losers if candidates == 1 else losers.reshape(-1, candidates), each


def draw(number: int, size: int, shares: Doubles | None = None) -> Positions:
    """Draw positions below ``size`` without chance, as often as ``shares`` say: every run of draws is spread out."""
    points = even_points(number)
    drawn = (points * size).astype(np.int64) if shares is None else np.cumsum(shares).searchsorted(points, "right")
    return np.minimum(drawn, size - 1)


def even_points(number: int, step: float = _GOLDEN) -> Doubles:
    """Return points of [0, 1), each run of which covers it evenly: multiples of an irrational number."""
    return np.asarray(((np.arange(number) + 0.5) * step) % 1.0, np.float64)


def _solve_around(
    parameters: Parameters, i: Positions, j: Positions, weight: Doubles, penalty: Doubles, spread: Doubles | None
) -> Estimate:
    """Return the best vector: near 0 by ``penalty``, or near the average user by how much users differ."""
    design, offset = pair_design(parameters, i, j)
    if spread is None:
        return maximise(design, offset, weight, penalty)
    average = average_user(parameters)
    estimate = maximise(design, offset + design @ average, weight, 0.5 / np.maximum(spread, 1e-4) ** 2)
    return Estimate(average + estimate.vector, estimate.covariance, estimate.steps)


class Pool:
    """Pairs of a winner and several negatives, of which the hardest counts: the one that the winner beats by least.

    ``winners`` and ``negatives`` are positions, (pairs,) and (pairs, negatives). Their rows are copied once.
    """

    def __init__(self, parameters: Parameters, winners: Positions, negatives: Positions) -> None:
        self.items = np.arange(parameters.n_items)
        if negatives.size < parameters.n_items:
            self.items = np.unique(np.append(negatives, winners))
            winners, negatives = np.searchsorted(self.items, winners), np.searchsorted(self.items, negatives)
        self.winners, self.negatives = winners, negatives
        eta, tau, bias = (
            np.empty((0,) * dimensions, np.float32) if side is None else side[self.items].astype(np.float32)
            for side, dimensions in (
                (parameters.item_factors, 2),
                (parameters.rival_factors, 2),
                (parameters.item_bias, 1),
            )
        )
        self._tables = eta, tau, bias

    def hardest(self, vector: Doubles, every: int = 1) -> tuple[Positions, Doubles, Doubles]:
        """Return the hardest negatives of the pairs, or of every n-th, with :func:`pair_design` of these pairs."""
        from sadrec.ranking._descent import hardest_pairs  # numba is worth loading only now

        winners, negatives = self.winners[::every], np.ascontiguousarray(self.negatives[::every])
        chosen, design, offset = np.empty_like(winners), np.empty((winners.size, vector.size)), np.empty(winners.size)
        hardest_pairs(vector.astype(np.float32), self._tables, winners, negatives, chosen, design, offset)
        return self.items[chosen], design, offset


def _shares(parameters: Parameters, popularity: ArrayLike, others: Positions) -> Doubles:
    """Return how often each of some items is drawn, adding up to 1."""
    given: NDArray[Any] = np.asarray(popularity, np.float64)
    if given.shape != (parameters.n_items,) or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(f"popularity must hold one number, 0 or more, for each of the {parameters.n_items} items")
    total = given[others].sum()
    if not total > 0:
        raise ValueError("popularity is 0 for every item that could be a negative")
    return np.asarray(given[others] / total)
