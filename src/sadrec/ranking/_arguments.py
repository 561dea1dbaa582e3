"""What the functions of this folder accept as a user, as items, as a count, and how they refuse the rest."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec.ranking.parameters import Parameters

User = int | np.integer[Any] | NDArray[Any] | Sequence[float]
"""A user: the position of a row of ``user_factors``, or a vector of floats, one per factor, for anybody else."""

Indices = NDArray[np.int64]


def positions(values: ArrayLike, size: int, name: str) -> Indices:
    """Return ``values`` as int64 positions of any shape, all in ``range(size)``."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, positions in 0..{size - 1}, not {array.dtype}: {values!r}")
    if array.min() < 0 or array.max() >= size:
        wrong = array[(array < 0) | (array >= size)].flat[0]
        raise ValueError(
            f"{name} holds {int(wrong)}, but there are {size}: give positions from 0 to {size - 1}"
            if size
            else f"{name} holds {int(wrong)}, but there are none"
        )
    return array.astype(np.int64, copy=False)


def item_positions(parameters: Parameters, items: ArrayLike | None, name: str = "items") -> Indices:
    """Return a 1-D array of item positions; ``None`` stands for the whole catalogue."""
    if items is None:
        return np.arange(parameters.n_items)
    array = positions(items, parameters.n_items, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a list of positions, not an array of shape {array.shape}")
    return array


def is_vector(user: object) -> bool:
    """Say whether ``user`` is a vector of factors rather than a position or positions."""
    return np.asarray(user).dtype.kind == "f"


def user_vector(parameters: Parameters, user: User) -> NDArray[Any]:
    """Return xi, the vector of a user given by position or, for somebody new, by the vector itself."""
    if not is_vector(user):
        position = positions(user, parameters.n_users, "user")
        if position.ndim != 0 or position.size != 1:
            raise ValueError(f"user must be one position or one vector of {parameters.n_factors} floats, not {user!r}")
        vector: NDArray[Any] = parameters.user_factors[int(position)]
        return vector
    vector = np.asarray(user)
    if vector.shape != (parameters.n_factors,):
        raise ValueError(
            f"a user's vector must hold one float per factor, shape {(parameters.n_factors,)}, not {vector.shape}"
        )
    if not np.isfinite(vector).all():
        raise ValueError("a user's vector must be finite, but this one holds NaN or infinity")
    return vector.astype(parameters.dtype, copy=False)
