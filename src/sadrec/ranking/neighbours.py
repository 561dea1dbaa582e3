"""Who and what is alike: cosines between items, and between users."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._check import whole
from sadrec.ranking.parameters import Parameters, User, is_vector, positions, user_vector
from sadrec.ranking.top_n import ItemIndex
from sadrec.ranking.vectors import item_vectors

Neighbours = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Positions, nearest first, and their cosines."""


def similar_items(parameters: Parameters, item: ArrayLike, N: int = 10, *, num_threads: int = 0) -> Neighbours:
    """Return the N items nearest to an item, or to each of several, and their cosines; the item itself is among them.

    The vectors are those of :func:`~sadrec.ranking.vectors.item_vectors`, whose inner product with a user's vector is
    the mean margin: items are alike if the same users prefer them to the catalogue. Equals come in order of position. A
    vector of zeros has the cosine 0 with everything.

    >>> similar_items(Parameters(np.zeros((0, 1)), np.array([[3.0], [2.0], [-5.0]])), 1)
    (array([0, 1, 2]), array([ 1.,  1., -1.], dtype=float32))
    """
    return _nearest(item_vectors(parameters), positions(item, parameters.n_items, "item"), N, num_threads)


def similar_users(parameters: Parameters, user: User | ArrayLike, N: int = 10, *, num_threads: int = 0) -> Neighbours:
    """Return the users nearest to a user, to each of several, or to the vector of a new user, and their cosines."""
    if is_vector(user):
        given: NDArray[Any] = user_vector(parameters, np.asarray(user))
        return _search(parameters.user_factors, given[None, :], N, num_threads, single=True)
    return _nearest(parameters.user_factors, positions(np.asarray(user), parameters.n_users, "user"), N, num_threads)


def _nearest(vectors: NDArray[Any], asked: NDArray[np.int64], N: int, num_threads: int) -> Neighbours:
    """Return the nearest rows to some rows."""
    return _search(vectors, vectors[np.atleast_1d(asked)], N, num_threads, single=asked.ndim == 0)


def _search(vectors: NDArray[Any], queries: NDArray[Any], N: int, num_threads: int, single: bool) -> Neighbours:
    """Return the nearest rows to some vectors."""
    N = min(whole(N, "N"), len(vectors))
    nearest, cosines = ItemIndex(_unit(vectors)).search(_unit(queries), N, num_threads=num_threads)
    cosines = np.clip(cosines, -1.0, 1.0)
    return (nearest[0], cosines[0]) if single else (nearest, cosines)


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Scale rows to length 1; rows of zeros stay."""
    wide = vectors.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(length > 0, length, 1.0), np.float32)
