"""The arrays of the variational solver: counted comparisons, packed moments, and the kernel that computes margins."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.moments import Beliefs
from sadrec._core.types import Doubles

AT_ONCE = 256
"""Items whose covariances are changed at once."""


class Rows(NamedTuple):
    """Counted comparisons: one row for each user and pair of items that the user compared, and its parabola."""

    start: NDArray[np.int64]  # (users + 1): where the rows of each user begin
    user: NDArray[np.int32]
    item: NDArray[np.int32]  # of lower position than its rival
    rival: NDArray[np.int32]
    weight: Doubles  # how often the user compared the two
    wins: Doubles  # how often the item won
    pairing: NDArray[np.int32]  # the position of the pair of items among all pairs
    curvature: Doubles  # of the parabola
    slope: Doubles
    mean: Doubles  # of the margin by the factors
    variance: Doubles
    # For the updates of users and items, and empty after the last: the curvature; the slope, less what is not of the
    # factors; and the variance of the whole margin.
    sites: Doubles


class Entries(NamedTuple):
    """The rows of each item, sorted by the other item; every row has two entries, one for either item."""

    start: NDArray[np.int64]
    row: NDArray[np.int32]
    other: NDArray[np.int32]  # the other item
    lower: NDArray[np.bool_]  # whether the item has the lower position


class Packed(NamedTuple):
    """Lower triangles of second moments, each in a row, so that processors add up many numbers at a time.

    ``user_mean`` and ``item_mean`` are the moments of the means alone. The four rows of an item are those of eta and
    eta, eta and tau, tau and eta, tau and tau. In a sum over all entries of a matrix, an entry of the triangle counts
    ``twice``: 1 on the diagonal, else 2.
    """

    twice: Doubles
    user: Doubles  # (users, k (k + 1) / 2)
    user_mean: Doubles
    item: Doubles  # (items, 4, k (k + 1) / 2)
    item_mean: Doubles

    @staticmethod
    def empty(users: int, items: int, k: int) -> "Packed":
        """Return room for moments of vectors of length k."""
        row, column = np.tril_indices(k)
        user, item = (users, len(row)), (items, 4, len(row))
        return Packed(np.where(row == column, 1.0, 2.0), *map(np.empty, (user, user, item, item)))


@kernel
def pack_users(first: int, last: int, beliefs: Beliefs, packed: Packed) -> None:
    """Pack the moments of users first, ..., last - 1."""
    k = beliefs.user.shape[1]
    for u in range(first, last):
        mean, moment, p = beliefs.user[u], beliefs.user_moment[u], 0
        for h in range(k):
            for g in range(h + 1):
                packed.user[u, p] = moment[h, g]
                packed.user_mean[u, p] = mean[h] * mean[g]
                p += 1


@kernel
def pack_items(items: Any, beliefs: Beliefs, packed: Packed) -> None:
    """Pack the moments of some items."""
    k = beliefs.user.shape[1]
    for i in items:
        mean, moment, p = beliefs.item[i], beliefs.item_moment[i], 0
        for h in range(k):
            for g in range(h + 1):
                for block in range(4):
                    row, column = h + k * (block // 2), g + k * (block % 2)
                    packed.item[i, block, p] = moment[row, column]
                    packed.item_mean[i, block, p] = mean[row] * mean[column]
                p += 1


@kernel
def find_margins(first: int, last: int, rows: Rows, beliefs: Beliefs, packed: Packed) -> float:
    """Write mean and variance of the margins of rows first, ..., last - 1.

    Returned is the weighted sum of the squares by which means moved.
    """
    k, size, moved = beliefs.user.shape[1], packed.twice.shape[0], 0.0
    for t in range(first, last):
        u, i, j = rows.user[t], rows.item[t], rows.rival[t]
        user, item, rival = beliefs.user[u], beliefs.item[i], beliefs.item[j]
        mean, square = 0.0, 0.0
        for h in range(k):
            mean += user[h] * (item[h] * rival[k + h] - rival[h] * item[k + h])
        moment, one, other = packed.user[u], packed.item[i], packed.item[j]
        for p in range(size):
            pair = one[0, p] * other[3, p] - one[1, p] * other[2, p]
            square += packed.twice[p] * moment[p] * (pair - one[2, p] * other[1, p] + one[3, p] * other[0, p])
        moved += rows.weight[t] * (mean - rows.mean[t]) ** 2
        rows.mean[t], rows.variance[t] = mean, max(square - mean * mean, 0.0)
    return moved


def outer(vectors: Doubles) -> Doubles:
    """Return the products of every vector with itself."""
    return np.ascontiguousarray(vectors[:, :, None] * vectors[:, None, :])
