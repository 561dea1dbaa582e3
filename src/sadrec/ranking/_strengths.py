"""Joint uncertainty of items' strengths: their mean margins over a field of rivals.

The solver believes in each item by itself, given the others. So what its belief leaves out is that a chain of games is
less sure the longer it is. Here the scores of all items are uncertain together: a comparison of two of them is an edge
of a graph, and its precision the curvature of its log likelihood. The precision of all scores is the Laplacian of that
graph and the prior, as that of Bradley and Terry's scores is (Laplace's approximation). What a pair of items has beyond
its scores (its own margin, and the part of the factors that is no score) is normal and independent of other pairs:
integrated out, it makes the edge less precise; and given the scores it is uncertain, too.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from sadrec._core.types import Doubles, Positions
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.results import Results

if TYPE_CHECKING:
    from sadrec.ranking.belief import Gaussian

MOST_ITEMS = 4000
"""Items of a catalogue up to which all scores are uncertain together; above, each is by itself."""


def strength_covariance(
    belief: "Gaussian", alone: Any, items: Positions, field: Positions, results: Results | None
) -> Doubles:
    """Return the covariance of the strengths of items, for the one user or group in ``alone``."""
    catalogue = alone.parameters.n_items
    mean, covariance = alone._item_side[0], alone.item_covariance.astype(np.float64)
    xi = np.concatenate(([1.0], alone.parameters.user_factors[0].astype(np.float64)))
    eta, tau = np.split(mean, 2, axis=1)
    # A margin changes with the item's parameters by (xi tau_j, -xi eta_j): on average over the field, by `along`.
    changes = np.hstack((xi * tau, -xi * eta))
    along = changes[field].mean(axis=0)
    score_variance = np.einsum("h,ihg,g->i", along, covariance, along)
    if results is None or catalogue > MOST_ITEMS:
        everything = np.union1d(items, field)
        rows = np.searchsorted(everything, items)
        inside = np.searchsorted(everything, field)
        scores: Any = np.diag(score_variance[everything])
        rest = _rest(alone, everything, changes - along, covariance)
        curvature = np.zeros(rest.shape)
    else:
        rows, inside, everything = items, field, np.arange(catalogue)
        rest = _rest(alone, everything, changes - along, covariance)
        curvature = _curvature(belief, results, rest, score_variance)
        edges = curvature / (1.0 + curvature * rest)
        score = mean @ along
        prior = float(((score - score.mean()) ** 2 + score_variance).mean())
        precision = np.diag(edges.sum(axis=1) + 1.0 / prior) - edges
        scores = np.linalg.inv(precision)
    kept = 1.0 / (1.0 + curvature * rest)  # what of a change of the scores the pair's rest does not take back
    share = kept[np.ix_(rows, inside)] / len(inside)
    moves = np.zeros((len(rows), len(everything)))
    moves[:, inside] = -share
    moves[np.arange(len(rows)), rows] += share.sum(axis=1)
    answer = moves @ scores @ moves.T
    left = rest * kept
    np.fill_diagonal(left, 0.0)
    among = np.isin(rows, inside)
    answer -= left[np.ix_(rows, rows)] * np.outer(among, among) / len(inside) ** 2
    answer[np.diag_indices(len(rows))] += left[np.ix_(rows, inside)].sum(axis=1) / len(inside) ** 2
    by_user = eta[items] * tau[field].mean(axis=0) - tau[items] * eta[field].mean(axis=0)
    answer += by_user @ alone.user_covariance[0] @ by_user.T
    own = np.broadcast_to(alone.own_scores(0, np.arange(catalogue))[1], catalogue)
    centred = np.zeros((len(items), catalogue))
    centred[np.arange(len(items)), items] = 1.0
    centred[:, field] -= 1.0 / len(field)
    return np.asarray(answer + (centred * own) @ centred.T)


def _rest(belief: "Gaussian", items: Positions, multiplier: Doubles, covariance: Doubles) -> Doubles:
    """Return the variance of the part of each margin beyond scores: (items, items)."""
    squares = (multiplier[items, :, None] * multiplier[items, None, :]).reshape(len(items), -1)
    factors = covariance[items].reshape(len(items), -1) @ squares.T
    return np.asarray(np.maximum(factors + factors.T, 0.0) + belief.pairing_scale)


def _curvature(belief: "Gaussian", results: Results, rest: Doubles, score_variance: Doubles) -> Doubles:
    """Return the precision that all judges' comparisons of two items add to their margin: (items, items)."""
    user, item, rival = results.user, results.item, results.rival
    mean, variance = belief.distribution(user, item, rival)
    flatter = 1.0 / np.sqrt(1.0 + np.pi * variance / 8.0)
    p = sigmoid(mean * flatter)
    curvature = results.decided * p * (1.0 - p) * flatter
    common = rest[item, rival] - belief.pairing_scale + score_variance[item] + score_variance[rival]
    if belief.parameters.n_users > 1:  # what is the judge's alone is noise to all others
        of_judge = variance - common - belief._pairing(item, rival)[1]
        curvature = curvature / (1.0 + curvature * np.maximum(of_judge, 0.0))
    size = len(rest)
    total = np.bincount(item.astype(np.int64) * size + rival, curvature, size * size).reshape(size, size)
    return np.asarray(total + total.T)
