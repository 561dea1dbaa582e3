"""How many factors: those that move no margin go, and those that are the same for everybody join the bias."""

import numpy as np
from numpy.typing import NDArray

from sadrec._core.moments import Beliefs
from sadrec._core.types import Doubles
from sadrec.training.variational.beliefs import AT_ONCE, Prior, outer

LEAST = 0.03  # root mean square of a factor's part of the margins below which it carries nothing
STRAIGHT = 0.25  # spread of a factor's rival factors around 1 below which they are 1
ALIKE = 0.1  # spread of users around their mean, as a share of it, below which they are all alike


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
