"""Rows of interactions, taken from where they are."""

from typing import Any

import numpy as np

from sadrec._kernel import kernel


@kernel
def row_starts(indptr: Any, users: Any) -> Any:
    """Return where the rows of users start when they stand one after another, and where the last one ends."""
    start = np.zeros(users.shape[0] + 1, np.int64)
    for t in range(users.shape[0]):
        start[t + 1] = start[t] + indptr[users[t] + 1] - indptr[users[t]]
    return start


@kernel
def take_rows(indptr: Any, values: Any, users: Any, start: Any, taken: Any) -> None:
    """Write the rows of users one after another."""
    for t in range(users.shape[0]):
        first = indptr[users[t]]
        for entry in range(start[t + 1] - start[t]):
            taken[start[t] + entry] = values[first + entry]
