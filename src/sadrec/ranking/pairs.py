"""Preferences of users between pairs of items: margins and probabilities.

``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) + b_i - b_j``
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.check import positions
from sadrec._core.memory import need
from sadrec._core.types import Doubles, Positions
from sadrec.ranking.parameters import Parameters, User, is_vector, item_positions, user_vector

_CHUNK = 1 << 20
"""The largest number of contributions held at a time."""


def contributions(parameters: Parameters, user: User | ArrayLike, item: ArrayLike, rival: ArrayLike) -> Doubles:
    """Split preferences into what each factor contributes, in double precision: one more axis, the bias last.

    Summed over that axis they are :func:`preference`, to the last bit.
    """
    vectors, u, i, j = _broadcast(parameters, user, item, rival)
    flat = _contributions(parameters, vectors[u.ravel()], i.ravel(), j.ravel())
    return flat.reshape(*i.shape, flat.shape[1])


def preference(parameters: Parameters, user: User | ArrayLike, item: ArrayLike, rival: ArrayLike) -> Doubles:
    """Compute ``x_uij``: by how much a user prefers an item to a rival, in log-odds, for positions that broadcast.

    In double precision. Exchanging item and rival changes the sign and nothing else, to the last bit.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> preference(model, [0, 1], 0, 1)
    array([ 1., -3.])
    """
    vectors, u, i, j = _broadcast(parameters, user, item, rival)
    u_flat, i_flat, j_flat = u.ravel(), i.ravel(), j.ravel()
    x = np.empty(i.size)
    step = max(1, _CHUNK // (parameters.n_factors + 1))
    for start in range(0, i.size, step):
        part = slice(start, start + step)
        x[part] = _contributions(parameters, vectors[u_flat[part]], i_flat[part], j_flat[part]).sum(axis=-1)
    return x.reshape(i.shape)


def probability(parameters: Parameters, user: User | ArrayLike, item: ArrayLike, rival: ArrayLike) -> Doubles:
    """Compute the probability that a user prefers an item to a rival: the sigmoid of :func:`preference`."""
    return sigmoid(preference(parameters, user, item, rival))


def margins(parameters: Parameters, user: User, items: ArrayLike | None, rivals: ArrayLike | None) -> NDArray[Any]:
    """Compute ``x_uij`` for all of some items against all of some rivals, (items, rivals), by two matrix products.

    ``(H_I * xi) T_J' - (T_I * xi) H_J'``, in the precision of the factors; for BPR a difference of scores. Rounding
    makes it anti-symmetric only nearly; a :func:`~sadrec.ranking.tournament.tournament` is so exactly.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> margins(model, 1, [0, 1], [0])
    array([[0.],
           [3.]])
    """
    i, j = item_positions(parameters, items), item_positions(parameters, rivals, "rivals")
    what = f"the margins of {i.size:,} items against {j.size:,} rivals"
    need(2 * parameters.dtype.itemsize * i.size * j.size, what, "ask about fewer at a time")
    xi = parameters.extend_users(user_vector(parameters, user)[None, :])
    (eta, tau), (other_eta, other_tau) = parameters.extend_items(i), parameters.extend_items(j)
    if parameters.rival_factors is None:
        x = np.subtract.outer(eta @ xi[0], other_eta @ xi[0])
    else:
        x = (eta * xi) @ other_tau.T
        x -= (tau * xi) @ other_eta.T
    answer: NDArray[Any] = x.astype(parameters.dtype, copy=False)
    return answer


def sigmoid(x: ArrayLike) -> Doubles:
    """Compute ``1 / (1 + exp(-x))`` without overflow."""
    from scipy.special import expit

    return np.asarray(expit(np.asarray(x, np.float64)))


def _broadcast(
    parameters: Parameters, user: User | ArrayLike, item: ArrayLike, rival: ArrayLike
) -> tuple[NDArray[Any], Positions, Positions, Positions]:
    """Return a matrix of users' vectors, and positions in it, of items and of rivals, broadcast."""
    if is_vector(user):
        vectors, u = user_vector(parameters, np.asarray(user))[None, :], np.zeros((), np.int64)
    else:
        vectors, u = parameters.user_factors, positions(np.asarray(user), parameters.n_users, "user")
    i = positions(item, parameters.n_items, "item")
    j = positions(rival, parameters.n_items, "rival")
    try:
        u, i, j = np.broadcast_arrays(u, i, j)
    except ValueError:
        raise ValueError(
            f"users, items and rivals must broadcast against each other, but their shapes are {u.shape}, {i.shape} "
            f"and {j.shape}"
        ) from None
    return vectors, u, i, j


def _contributions(parameters: Parameters, vectors: NDArray[Any], i: Positions, j: Positions) -> Doubles:
    """Compute contributions for flat positions."""
    parts = parameters.wedge(i, j)
    parts[:, : parameters.n_factors] *= vectors
    return parts
