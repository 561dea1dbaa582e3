"""Mean and variance of margins when the parameters are uncertain.

Users and items are independent, each normal. With ``a = eta_i tau_j - eta_j tau_i`` and ``x = xi_u . a`` the first two
moments of x follow from those of xi_u and of the pairs of vectors (eta_i, tau_i): no sampling is needed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.types import Doubles

_LEAST = 0.002  # share of a precision that has to be left: beliefs are approximate, and differences of them more so


class Beliefs(NamedTuple):
    """Means and second moments of the users' vectors xi and of the items' pairs of vectors (eta, tau)."""

    user: Doubles  # (users, k)
    user_moment: Doubles  # (users, k, k)
    item: Doubles  # (items, 2k)
    item_moment: Doubles  # (items, 2k, 2k)


@kernel
def pair_moment(first: Any, second: Any, moment: Any) -> None:
    """Write ``E[a a']`` of two items, given their second moments."""
    k = moment.shape[0]
    for h in range(k):
        eta_i, tau_i, eta_j, tau_j = first[h], first[k + h], second[h], second[k + h]
        row = moment[h]
        for g in range(k):
            row[g] = (
                eta_i[g] * tau_j[k + g] - eta_i[k + g] * tau_j[g] - tau_i[g] * eta_j[k + g] + tau_i[k + g] * eta_j[g]
            )


@kernel
def margin_moments(user: Any, user_moment: Any, item: Any, rival: Any, moment: Any) -> tuple[float, float]:
    """Return mean and variance of a margin, given ``E[a a']``."""
    k = user.shape[0]
    mean, square = 0.0, 0.0
    for h in range(k):
        mean += user[h] * (item[h] * rival[k + h] - rival[h] * item[k + h])
        row, other = moment[h], user_moment[h]
        for g in range(k):
            square += row[g] * other[g]
    return mean, max(square - mean * mean, 0.0)


@kernel
def margin_distribution(
    first: int, last: int, users: Any, items: Any, rivals: Any, beliefs: Beliefs, mean: Any, variance: Any
) -> None:
    """Write mean and variance of the margins of users for items over rivals, from the first to before the last."""
    k = beliefs.user.shape[1]
    moment = np.empty((k, k))
    for t in range(first, last):
        u, i, j = users[t], items[t], rivals[t]
        pair_moment(beliefs.item_moment[i], beliefs.item_moment[j], moment)
        mean[t], variance[t] = margin_moments(
            beliefs.user[u], beliefs.user_moment[u], beliefs.item[i], beliefs.item[j], moment
        )


def moderated(mean: Doubles, variance: Doubles) -> Doubles:
    """Return the log-odds of ``E[sigmoid(x)]`` for normal x; the probability is right to within 0.02 (MacKay, 1992)."""
    return np.asarray(mean / np.sqrt(1 + np.pi * variance / 8))


def divided(mean: Any, variance: Any, curvature: Any, slope: Any, left: float = _LEAST) -> tuple[Doubles, Doubles]:
    """Return mean and variance of a normal distribution from which a parabola is divided out.

    Where a belief is too wide for the parabola to have been a part of it, its mean stays, with the share ``left`` of
    its precision.
    """
    positive = np.maximum(variance, 1e-12)
    precision = 1 / positive - curvature
    enough = precision > _LEAST / positive
    precision = np.where(enough, precision, left / positive)
    return np.where(enough, (mean / positive - slope) / precision, mean), 1 / precision


def pairing_keys(items: NDArray[Any], rivals: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return a number for each pair of items, whichever of them comes first.

    >>> pairing_keys(np.array([0, 2]), np.array([2, 0]), 3)
    array([2, 2])
    """
    return np.asarray(np.minimum(items, rivals).astype(np.int64) * count + np.maximum(items, rivals))
