"""Priors, which are learnt: variances under priors of their standard deviations, and which factors go.

A factor that moves no margin is dropped, and one that is the same for everybody joins the bias.
"""

from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.moments import Beliefs
from sadrec._core.types import Doubles
from sadrec.training.variational.arrays import AT_ONCE, outer

SMALL = 1e-3
"""The square that holds the variance of a factor above 0."""
_DEVIATES = 0.25  # how likely pairs deviate from scores: the prior of their standard deviation has its mode at 0.5
_HALVINGS = 24  # of the interval in which the logarithm of a variance is looked for
LEAST = 0.03  # root mean square of a factor's part of the margins below which it carries nothing
STRAIGHT = 0.25  # spread of a factor's rival factors around 1 below which they are 1
ALIKE = 0.1  # spread of users around their mean, as a share of it, below which they are all alike


class Prior(NamedTuple):
    """The prior, factor by factor: eta around 0, tau around 1, xi around its mean."""

    user_mean: Doubles
    user_precision: Doubles
    item_precision: Doubles
    rival_precision: Doubles


class CentredPrior(NamedTuple):
    """A prior with the predictions of features for every user and item, if any."""

    user_mean: Doubles
    user_precision: Doubles
    item_precision: Doubles
    rival_precision: Doubles
    user_centre: Doubles | None  # (users, k); None: the mean of all
    item_centre: Doubles | None  # (items, 2 k): of eta and tau; None: 0 and 1


@kernel
def learnt_variance(squares: float, count: float, likely: float = 1.0) -> float:
    """Return the variance of ``count`` numbers around 0 with this sum of squares, under the prior of a scale.

    The standard deviation s has a density of ``s**likely exp(-s**2 / 2)``, by default a Rayleigh distribution, with its
    mode at the root of ``likely`` log-odds: a scale neither vanishes where there is little data nor grows without bound
    where one side wins every comparison, and it hardly changes many numbers.
    """
    squares, count = squares + SMALL, count - likely
    root = sqrt(count * count + 4.0 * squares)
    return 2.0 * squares / (count + root) if count > 0.0 else 0.5 * (root - count)


@kernel
def factor_variance(squares: float, count: float) -> float:
    """Return the variance of a factor's ``count`` numbers around 0: the data has to support it, or it vanishes.

    The standard deviation has a half-normal distribution with the scale of 0.5 log-odds, and there is one more number
    of a small square.
    """
    squares, count = squares + SMALL, count + 1.0
    return 2.0 * squares / (count + sqrt(count * count + 16.0 * squares))


@kernel
def variance_of(information: Any, linear: Any) -> float:
    """Return the variance of numbers around 0, given the information of the data about each and its linear term.

    That is the fixed point of MacKay (1992): the sum of squares of the means over the number of them that the data
    determines. Its prior hardly counts against 0 (``_DEVIATES``), as scores alone may explain all. Iterating may jump
    between a large and a small variance, so it is found by bisection.
    """
    low, high = -18.0, 12.0  # logarithms
    for _ in range(_HALVINGS):
        scale = exp(0.5 * (low + high))
        squares, determined = 0.0, 0.0
        for c in range(len(information)):
            precision = 1.0 / scale + information[c]
            squares += (linear[c] / precision) ** 2
            determined += information[c] / precision
        if learnt_variance(squares, determined, _DEVIATES) > scale:
            low = 0.5 * (low + high)
        else:
            high = 0.5 * (low + high)
    return exp(0.5 * (low + high))


def variances(squares: Doubles, bias: bool = False) -> Doubles:
    """Return the variance of each factor, given squares by row; with ``bias``, the first is that of the bias."""
    learnt = [learnt_variance if bias and not h else factor_variance for h in range(squares.shape[1])]
    return np.array([of(total, len(squares)) for of, total in zip(learnt, squares.sum(axis=0), strict=True)])


def half_way(variance: Doubles) -> Doubles:
    """Return variances half way to the mean of all but the first, which is that of the bias."""
    if len(variance) < 2:
        return variance
    return np.append(variance[:1], (variance[1:] + variance[1:].mean()) / 2)


def idle_factors(beliefs: Beliefs, comparisons: Doubles, meetings: Doubles) -> NDArray[np.bool_]:
    """Return which factors are idle, by margins of an item and a rival drawn from all comparisons.

    ``comparisons`` are the numbers of those of each user, ``meetings`` of each item.
    """
    eta, tau = np.split(beliefs.item, 2, axis=1)
    ends = [meetings @ product / meetings.sum() for product in (eta**2, tau**2, eta * tau)]
    user = comparisons @ beliefs.user**2 / comparisons.sum()
    idle = np.sqrt(2 * user * (ends[0] * ends[1] - ends[2] ** 2)) < LEAST
    idle[0] = False
    return np.asarray(idle)


def move_to_bias(beliefs: Beliefs, prior: Prior) -> NDArray[np.bool_]:
    """Add factors that are equal for all users, with rival factors of 1, to the bias; return which."""
    common = prior.rival_precision > STRAIGHT**-2
    common &= np.sqrt(prior.user_precision) * np.abs(prior.user_mean) > 1 / ALIKE
    common[0] = False
    if common.any():
        at = np.concatenate(([0], np.flatnonzero(common)))
        weights = prior.user_mean[at]
        scores = beliefs.item[:, at] @ weights
        for start in range(0, len(beliefs.item), AT_ONCE):
            item, covariance = (array[start : start + AT_ONCE] for array in (beliefs.item, beliefs.item_moment))
            covariance -= outer(item)
            item[:, 0] = scores[start : start + AT_ONCE]
            covariance[:, 0, :] = np.einsum("p,ipq->iq", weights, covariance[:, at, :])
            covariance[:, :, 0] = np.einsum("p,iqp->iq", weights, covariance[:, :, at])
            covariance += outer(item)
        prior.item_precision[0] = 1.0 / float(weights**2 @ (1.0 / prior.item_precision[at]))
    return np.asarray(common)


def without(dropped: NDArray[np.bool_], beliefs: Beliefs, prior: Prior) -> tuple[Beliefs, Prior]:
    """Return beliefs and prior without some factors."""
    kept = np.flatnonzero(~dropped)
    both = np.concatenate((kept, len(dropped) + kept))
    users = beliefs.user[:, kept], beliefs.user_moment[:, kept[:, None], kept]
    items = beliefs.item[:, both], beliefs.item_moment[:, both[:, None], both]
    return Beliefs(*map(np.ascontiguousarray, (*users, *items))), Prior(*(values[kept] for values in prior))
