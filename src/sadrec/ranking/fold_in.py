"""The vector of a new user, from liked items or from comparisons.

With the items' parameters fixed, the likelihood in a user's vector is that of a logistic regression. In training each
liked item meets one sampled negative per epoch and pays ``regularization * |xi|^2`` each time. So the vector of
a new user maximises

``sum_i [ mean_j log sigmoid(x_ij) - regularization |xi|^2 ]``, i over the liked items and j over their negatives,

which is concave and has one maximum. Newton's method reaches it in a few steps of factors squared times pairs.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from sadrec._core.check import whole
from sadrec._core.memory import need
from sadrec._core.types import Doubles, Positions
from sadrec.ranking.logistic import Design, Estimate, check_regularization, maximise, polish
from sadrec.ranking.parameters import Parameters, average_user, item_positions

_PAIRS, _FEWEST = 4096, 8
"""Pairs for a user, and at least how many negatives for each liked item, when their number is left open."""

_MANY, _STAGED = 512, 4
"""About how many pairs a search starts with that has many more, and how many times as many that is."""
_LARGEST = 1e16
"""The square of an entry of the design, some thousand times, is a number of single precision."""
_NEARLY = 1e-4
"""The largest expected gain of a step, relative to the objective, that ends the iteration with these pairs."""


def fold_in(
    parameters: Parameters,
    liked: ArrayLike,
    *,
    regularization: float = 0.01,
    negatives: int | None = None,
    spread: Doubles | None = None,
) -> Estimate:
    """Compute the vector of a new user from the items they liked.

    ``negatives`` is how many negatives each liked item meets, spread evenly over all other items; ``None`` for 4096
    pairs in all, but at least 8 each. ``spread`` is by how much users differ in each factor: given, the vector stays
    near the average user by as much, and ``regularization`` is not used.

    >>> tastes = Parameters(np.zeros((0, 2)), np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-0.1, 0.9]]))
    >>> fold_in(tastes, [0, 1]).vector.round(2)
    array([ 1.81, -1.63])
    """
    chosen = np.unique(item_positions(parameters, liked, "liked"))
    if not chosen.size:
        raise ValueError(
            "liked is empty: give ids of items; for a user without history, recommend(None) gives what is popular"
        )
    check_regularization(regularization)
    winners, losers, each = liked_pairs(parameters, chosen, negatives)
    single = parameters.dtype == np.float32 and winners.size >= _STAGED * _MANY
    with np.errstate(over="ignore", invalid="ignore"):
        design, offset = pair_design(parameters, winners, losers, np.float32 if single else np.float64)
    if not np.abs(design).max() < _LARGEST:
        raise ValueError("the factors of the items are too large to compute a vector with: scale them down")
    weight, penalty = np.full(winners.size, 1.0 / each), np.full(parameters.n_factors, regularization * chosen.size)
    return _solve_around(parameters, design, offset, weight, penalty, spread)


def fold_in_comparisons(
    parameters: Parameters,
    winners: ArrayLike,
    losers: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    regularization: float = 0.01,
    spread: Doubles | None = None,
) -> Estimate:
    """Compute the vector of a new user from their comparisons.

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
    need(8 * i.size * (2 * parameters.n_factors + 3), f"folding in {i.size:,} comparisons", "give fewer")
    weights = np.ones(i.size) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != i.shape or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weight must hold one number, 0 or more, for each of the {i.size} comparisons")
    penalty = np.full(parameters.n_factors, regularization * i.size)
    return _solve_around(parameters, *pair_design(parameters, i, j), weights, penalty, spread)


def pair_design(
    parameters: Parameters, items: Positions, rivals: Positions, precision: type[np.floating] = np.float64
) -> tuple[Design, Doubles]:
    """Return what a user's vector is multiplied with to give margins, (pairs, factors), and what is added: the bias."""
    parts, factors = parameters.wedge(items, rivals, precision), parameters.n_factors
    offset = np.zeros(len(items)) if parameters.item_bias is None else parts[:, factors].astype(np.float64)
    return parts[:, :factors], offset


def liked_pairs(
    parameters: Parameters, liked: Positions, negatives: int | None = None
) -> tuple[Positions, Positions, int]:
    """Pair liked items with negatives among all other items, as training would, but without chance.

    Returns winners, in which every liked item stands ``each`` times in a row; a negative for each; and ``each``.
    """
    others = parameters.n_items - liked.size
    if not others:
        raise ValueError(f"liked holds all {parameters.n_items} items: there is no other item to compare them with")
    left_open = max(_FEWEST, -(-_PAIRS // liked.size))
    each = min(others, left_open if negatives is None else whole(negatives, "negatives", least=1))
    what = f"folding in {liked.size:,} liked items against {each:,} negatives each"
    need(8 * liked.size * each * (2 * parameters.n_factors + 3), what, "give fewer")
    winners = np.repeat(liked, each)
    places = np.tile(np.arange(others), liked.size) if each == others else draw(winners.size, others)
    # The n-th of the items that are not liked is n + 1 places further on for each liked item before it.
    return winners, places + (liked - np.arange(liked.size)).searchsorted(places, "right"), each


def draw(number: int, size: int) -> Positions:
    """Return positions below ``size`` from a deterministic sequence, evenly spread in every run."""
    points = _golden_points(1 << max(12, (number - 1).bit_length()))[:number]
    return np.minimum((points * size).astype(np.int64), size - 1)


@lru_cache(maxsize=4)
def _golden_points(number: int) -> Doubles:
    """Return points of the golden-ratio sequence, evenly spread over [0, 1) in every run."""
    points = ((np.arange(number) + 0.5) * ((5**0.5 - 1) / 2)) % 1.0
    points.flags.writeable = False
    return np.asarray(points)


def _solve_around(
    parameters: Parameters,
    design: Design,
    offset: Doubles,
    weight: Doubles,
    penalty: Doubles,
    spread: Doubles | None,
) -> Estimate:
    """Return the best vector: near 0 by ``penalty``, or near the average user by how much users differ."""
    if spread is None:
        return _solve(design, offset, weight, penalty)
    average, prior = average_user(parameters), 0.5 / np.maximum(spread, 1e-4) ** 2
    around = _solve(design, offset + design @ average.astype(design.dtype), weight, prior)
    return replace(around, vector=average + around.vector)


def _solve(design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Estimate:
    """Return the best vector; with many pairs, fit a subset first and reuse its curvature for the last steps."""
    every = len(design) // _MANY
    if every < _STAGED or not weight[::every].any():
        return maximise(design.astype(np.float64, copy=False), offset, weight, penalty)
    scale = float(weight.sum() / weight[::every].sum())
    some: Design = design[::every].copy()
    rough = maximise(some, offset[::every].copy(), scale * weight[::every], penalty, near=_NEARLY)
    return polish(rough, design, offset, weight, penalty)
