"""Mean margins as inner products: vectors that any index for nearest neighbours can serve.

The mean margin of an item against a set of rivals is linear in what the item is,

``mean_j x_uij = xi . (eta_i * mean_J(tau) - tau_i * mean_J(eta)) + b_i - mean_J(b)``,

so one inner product per item ranks a catalogue, and no two items tie by accident.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec.ranking._arguments import Indices, User, item_positions, positions, user_vector
from sadrec.ranking.parameters import Parameters


def item_vectors(parameters: Parameters, rivals: ArrayLike | None = None) -> NDArray[Any]:
    """Compute one vector per item whose inner product with a user's vector is the item's mean margin.

    Parameters
    ----------
    parameters
        Of the model.
    rivals
        Positions of the items that margins are averaged over; ``None`` for the whole catalogue, the item itself
        included (its margin against itself is 0).

    Returns
    -------
    ndarray
        (items, factors), and a last column for the bias if there is one: :func:`user_vectors` has a 1 there.

    Examples
    --------
    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> user_vectors(model) @ item_vectors(model).T
    array([[ 0.5, -0.5],
           [-1.5,  1.5]])
    """
    eta, tau, bias = parameters.item_factors, parameters.rival_factors, parameters.item_bias
    j = _rivals(parameters, rivals)
    mean_eta = _mean(eta, j)
    columns = parameters.n_factors + (bias is not None)
    answer = np.empty((parameters.n_items, columns), parameters.dtype)
    part = answer[:, : parameters.n_factors]
    if tau is None:
        np.subtract(eta, mean_eta, out=part, casting="same_kind")
    else:
        np.multiply(eta, _mean(tau, j).astype(parameters.dtype), out=part, casting="same_kind")
        part -= tau * mean_eta.astype(parameters.dtype)
    if bias is not None:
        answer[:, -1] = bias - _mean(bias, j)
    return answer


def user_vectors(parameters: Parameters, users: ArrayLike | None = None) -> NDArray[Any]:
    """Compute the vectors of users that go with :func:`item_vectors`.

    Parameters
    ----------
    parameters
        Of the model.
    users
        Positions of users, or the vectors (users, factors) of anybody; ``None`` for all users.

    Returns
    -------
    ndarray
        (users, factors), and a last column of ones if there is a bias.
    """
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
    if parameters.item_bias is None:
        return np.ascontiguousarray(vectors, parameters.dtype)
    answer = np.ones((len(vectors), parameters.n_factors + 1), parameters.dtype)
    answer[:, :-1] = vectors
    return answer


def duel_vectors(parameters: Parameters) -> NDArray[Any]:
    """Compute one vector per item whose inner product with a :func:`duel_query` is a margin.

    These do not depend on the rivals: one index serves every user against every opponent, or set of opponents.

    Returns
    -------
    ndarray
        (items, 2 factors): eta beside tau; for BPR (items, factors + 1): eta and a 1. A last column holds the bias
        if there is one.

    Examples
    --------
    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[1.0, 1.0], [1.0, 2.0]]))
    >>> duel_vectors(model) @ duel_query(model, 1, [0])
    array([0., 3.])
    """
    eta, tau, bias = parameters.item_factors, parameters.rival_factors, parameters.item_bias
    parts = [eta, np.ones((parameters.n_items, 1)) if tau is None else tau]
    if bias is not None:
        parts.append(bias[:, None])
        if tau is not None:
            parts.append(np.ones((parameters.n_items, 1)))
    return np.hstack(parts).astype(parameters.dtype)


def duel_query(parameters: Parameters, user: User, rivals: ArrayLike | None) -> NDArray[Any]:
    """Compute the vector that asks how items fare, for this user, against these rivals on average.

    Its inner product with row i of :func:`duel_vectors` is ``mean_j x_uij`` over the rivals.

    Parameters
    ----------
    parameters
        Of the model.
    user
        A position, or a vector of floats for somebody new.
    rivals
        Positions of at least one opponent; ``None`` for the whole catalogue.
    """
    xi = user_vector(parameters, user).astype(np.float64)
    tau, bias = parameters.rival_factors, parameters.item_bias
    j = _rivals(parameters, rivals)
    mean_eta = _mean(parameters.item_factors, j)
    if tau is None:
        constant = -(xi @ mean_eta) - (0.0 if bias is None else float(_mean(bias, j)))
        parts = [xi, np.array([constant])]
    else:
        parts = [xi * _mean(tau, j), -xi * mean_eta]
    if bias is not None:
        parts.append(np.ones(1))
        if tau is not None:
            parts.append(np.array([-float(_mean(bias, j))]))
    return np.concatenate(parts).astype(parameters.dtype)


def mean_margins(
    parameters: Parameters, user: User, items: ArrayLike | None, rivals: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Compute the mean margin of items against a set of rivals, in double precision.

    Parameters
    ----------
    parameters
        Of the model.
    user
        A position, or a vector of floats for somebody new.
    items
        Positions; ``None`` for the whole catalogue.
    rivals
        Positions of at least one opponent; ``None`` for the whole catalogue.

    Examples
    --------
    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> mean_margins(model, 1, [0, 1])
    array([-1.5,  1.5])
    """
    xi = user_vector(parameters, user).astype(np.float64)
    i, j = item_positions(parameters, items), _rivals(parameters, rivals)
    eta, tau, bias = parameters.item_factors, parameters.rival_factors, parameters.item_bias
    against = xi * _mean(eta, j)
    strength = xi if tau is None else xi * _mean(tau, j)
    x = eta[i] @ strength - (against.sum() if tau is None else tau[i] @ against)
    if bias is not None:
        x = x + (bias[i] - float(_mean(bias, j)))
    return np.asarray(x, np.float64)


def _rivals(parameters: Parameters, rivals: ArrayLike | None) -> Indices | None:
    """Return positions of rivals, of which there must be one at least, or None for all."""
    if rivals is None:
        return None
    j = item_positions(parameters, rivals, "rivals")
    if not j.size:
        raise ValueError("rivals is empty, but a mean margin needs at least one rival; None stands for all items")
    return j


def _mean(values: NDArray[Any], j: Indices | None) -> NDArray[np.float64]:
    """Return the mean over items, in double precision; over an empty catalogue, 0."""
    chosen = values if j is None else values[j]
    return np.asarray(chosen.sum(axis=0, dtype=np.float64) / max(1, len(chosen)))
