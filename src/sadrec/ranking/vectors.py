"""Mean margins as inner products: vectors that any index for nearest neighbours can serve.

The mean margin of an item against a set of rivals is linear in what the item is,

``mean_j x_uij = xi . (eta_i * mean_J(tau) - tau_i * mean_J(eta)) + b_i - mean_J(b)``,

so one inner product per item ranks a catalogue, and no two items tie by accident.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._check import positions
from sadrec._types import Doubles, Positions
from sadrec.ranking.parameters import Parameters, User, item_positions, user_vector

_BLOCK = 4096
"""Items worked on at a time: they stay near the processor."""


def item_vectors(parameters: Parameters, rivals: ArrayLike | None = None) -> NDArray[Any]:
    """Compute one vector per item whose inner product with a user's vector is the item's mean margin over ``rivals``.

    By default rivals are the whole catalogue, the item itself included (its margin against itself is 0). A last column
    stands for the bias if there is one: :func:`user_vectors` has a 1 there.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> user_vectors(model) @ item_vectors(model).T
    array([[ 0.5, -0.5],
           [-1.5,  1.5]])
    """
    mean_eta, mean_tau = (mean.astype(parameters.dtype) for mean in parameters.mean_items(_rivals(parameters, rivals)))
    answer = np.empty((parameters.n_items, mean_eta.size), parameters.dtype)
    for start in range(0, parameters.n_items, _BLOCK):
        part = slice(start, start + _BLOCK)
        eta, tau = parameters.extend_items(part)
        np.multiply(eta, mean_tau, out=answer[part])
        answer[part] -= tau * mean_eta
    return answer


def user_vectors(parameters: Parameters, users: ArrayLike | None = None) -> NDArray[Any]:
    """Compute the vectors of users, given as positions or as vectors, that go with :func:`item_vectors`."""
    if users is None:
        vectors = parameters.user_factors
    else:
        given = np.asarray(users)
        if given.dtype.kind == "f" and given.size:
            if given.ndim != 2 or given.shape[1] != parameters.n_factors:
                raise ValueError(
                    f"users' vectors must be a matrix (users, {parameters.n_factors}), not of shape {given.shape}"
                )
            vectors = given
        else:
            vectors = parameters.user_factors[np.atleast_1d(positions(given, parameters.n_users, "users"))]
    return np.ascontiguousarray(parameters.extend_users(vectors), parameters.dtype)


def nearest_bpr(parameters: Parameters) -> Parameters:
    """Return the parameters with T = 1 whose margins are nearest: of every margin, the part that scores explain.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[1.0, 1.0], [1.0, 2.0]]))
    >>> nearest_bpr(model).item_factors
    array([[ 0.5, -1.5],
           [-0.5,  1.5]])
    """
    k = parameters.n_factors
    vectors = item_vectors(parameters)
    bias = None if parameters.item_bias is None else vectors[:, k]
    return replace(parameters, item_factors=vectors[:, :k], rival_factors=None, item_bias=bias)


def duel_vectors(parameters: Parameters) -> NDArray[Any]:
    """Compute one vector per item whose inner product with a :func:`duel_query` is a margin.

    These do not depend on the rivals: one index serves every user against every opponent, or set of opponents. They are
    (items, 2 factors): eta beside tau; for BPR (items, factors + 1): eta and a 1. A bias counts as a factor.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[1.0, 1.0], [1.0, 2.0]]))
    >>> duel_vectors(model) @ duel_query(model, 1, [0])
    array([0., 3.])
    """
    eta, tau = parameters.extend_items()
    return np.hstack([eta, tau if parameters.rival_factors is not None else tau[:, :1]]).astype(parameters.dtype)


def duel_query(parameters: Parameters, user: User, rivals: ArrayLike | None) -> NDArray[Any]:
    """Compute the vector whose product with row i of :func:`duel_vectors` is ``mean_j x_uij`` over some rivals."""
    xi = parameters.extend_users(user_vector(parameters, user)[None, :])[0].astype(np.float64)
    mean_eta, mean_tau = parameters.mean_items(_rivals(parameters, rivals))
    against = -xi * mean_eta
    parts = xi * mean_tau, against if parameters.rival_factors is not None else against.sum(keepdims=True)
    return np.concatenate(parts).astype(parameters.dtype)


def mean_margins(
    parameters: Parameters, user: User, items: ArrayLike | None, rivals: ArrayLike | None = None
) -> Doubles:
    """Compute the mean margin of items against a set of rivals, in double precision."""
    xi = parameters.extend_users(user_vector(parameters, user)[None, :])[0].astype(np.float64)
    chosen = item_positions(parameters, items)
    mean_eta, mean_tau = parameters.mean_items(_rivals(parameters, rivals))
    strength, against = xi * mean_tau, xi * mean_eta
    x = np.empty(chosen.size)
    for start in range(0, chosen.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        eta, tau = parameters.extend_items(chosen[part])
        x[part] = eta @ strength
        x[part] -= tau @ against if parameters.rival_factors is not None else against.sum()
    return x


def _rivals(parameters: Parameters, rivals: ArrayLike | None) -> Positions | None:
    """Return positions of rivals, of which there must be one at least, or None for all."""
    if rivals is None:
        return None
    j = item_positions(parameters, rivals, "rivals")
    if not j.size:
        raise ValueError("rivals is empty, but a mean margin needs at least one rival; None stands for all items")
    return j
