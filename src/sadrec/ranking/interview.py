"""Statistics of an interview: the probability of each answer, and intervals of the items' ranks."""

from typing import NamedTuple

import numpy as np

from sadrec._core.types import Doubles, Positions
from sadrec.ranking.belief import Belief, Gaussian, information
from sadrec.ranking.fold_in import pair_design
from sadrec.ranking.pairs import sigmoid

_DRAWS = 1000


class PlaceIntervals(NamedTuple):
    """Rank intervals of items, from 1, and the probability of being first."""

    lower: Positions
    upper: Positions
    first: Doubles


def surprises(belief: Belief, winners: Positions, losers: Positions) -> Doubles:
    """Return the probability of each answer given the visitor's others, by one Newton step that removes it.

    ``belief`` has the visitor as its only user, given all answers.
    """
    x = belief.mean(0, winners, losers)
    design, _ = pair_design(belief.parameters, winners, losers)
    variance = np.einsum("ph,ph->p", design @ _covariance(belief), design)
    variance += sum(belief.own_scores(0, side)[1] for side in (winners, losers))
    p = sigmoid(x)
    left = np.maximum(1 - p * (1 - p) * variance, 0.05)
    return information(x - variance * (1 - p) / left, variance / left)[1]


def places(belief: Belief, items: Positions, others: Positions, level: float = 0.9) -> PlaceIntervals:
    """Return the places of some items by a visitor's mean margin over the catalogue, among these items and others.

    What is drawn is the visitor's vector and own scores, and the scores of the items as far as they are uncertain;
    ``belief`` has the visitor as its only user.
    """
    both = np.concatenate([items, others[~np.isin(others, items)]])
    covariance, rng = _covariance(belief), np.random.default_rng(0)
    values, axes = np.linalg.eigh(covariance)
    noise = rng.standard_normal((_DRAWS, len(values))) * np.sqrt(np.maximum(values, 0.0))
    vectors = belief.item_vectors[both, : len(values)].astype(np.float64)
    scores = belief.scores([0])[0][both] + noise @ axes.T @ vectors.T
    own = belief.own_scores(0, both)[1] + _item_variance(belief, both)
    if np.any(own):
        scores += np.sqrt(own) * rng.standard_normal(scores.shape)
    place = np.empty(scores.shape, np.int64)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.put_along_axis(place, order, np.arange(1, len(both) + 1)[None], axis=1)
    place = place[:, : len(items)]
    lower, upper = np.quantile(place, ((1 - level) / 2, (1 + level) / 2), axis=0, method="nearest")
    return PlaceIntervals(lower, upper, (place == 1).mean(axis=0))


def _item_variance(belief: Belief, items: Positions) -> Doubles:
    """Return the variance that the uncertainty of each item gives to its mean margin over the catalogue."""
    if not isinstance(belief, Gaussian):
        return np.zeros(len(items))
    xi = np.concatenate(([1.0], belief.parameters.user_factors[0]))
    eta, tau = np.split(belief._item_side[0].mean(axis=0), 2)
    along = np.concatenate((xi * tau, -xi * eta))
    return np.asarray(np.einsum("h,ihg,g->i", along, belief.item_covariance[items], along))


def _covariance(belief: Belief) -> Doubles:
    covariance = belief.user_covariance_of(0)
    if covariance is None:
        raise ValueError("the belief has no covariance of a vector: give the belief of a model.visitor(...)")
    return covariance
