"""Rows of interactions, taken from where they are."""

from typing import Any

import numpy as np

from sadrec._core.kernel import kernel
from sadrec._core.random import hashed


@kernel
def row_starts(indptr: Any, users: Any) -> Any:
    """Return where the rows of users start when they stand one after another, and where the last one ends."""
    start = np.zeros(users.shape[0] + 1, np.int64)
    for t in range(users.shape[0]):
        start[t + 1] = start[t] + indptr[users[t] + 1] - indptr[users[t]]
    return start


@kernel
def take_rows(indptr: Any, values: Any, users: Any, start: Any, out: Any) -> None:
    """Write the rows of users one after another."""
    for t in range(users.shape[0]):
        first = indptr[users[t]]
        for entry in range(start[t + 1] - start[t]):
            out[start[t] + entry] = values[first + entry]


@kernel
def put_rows(start: Any, users: Any, values: Any, put: Any) -> None:
    """Write consecutive rows to the places where the rows of these users start."""
    entry = 0
    for t in range(users.shape[0]):
        for place in range(start[users[t]], start[users[t] + 1]):
            put[place] = values[entry]
            entry += 1


@kernel
def mixed(key: Any, salt: Any) -> Any:
    """Return 64 bits that look random, the same for the same two numbers."""
    return hashed(key ^ hashed(salt))


@kernel
def mixed_sum(keys: Any, first: Any, salt: Any) -> Any:
    """Return a sum over keys and their positions, which are counted from ``first``."""
    total = np.uint64(0)
    for t in range(keys.shape[0]):
        total += mixed(keys[t], mixed(first + np.uint64(t), salt))
    return total


@kernel
def digest(indptr: Any, indices: Any, bits: Any, first: Any) -> Any:
    """Return a sum over interactions, whose users are counted from ``first`` and whose ratings are given as bits."""
    total = np.uint64(0)
    for u in range(indptr.shape[0] - 1):
        user = mixed(first + np.uint64(u), np.uint64(0))
        for t in range(indptr[u], indptr[u + 1]):
            total += mixed((np.uint64(indices[t]) << np.uint64(32)) | np.uint64(bits[t]), user)
    return total
