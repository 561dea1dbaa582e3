"""Cells of the matrix as examples: an interaction is a 1, a cell without one is a 0."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exchange import Settings, Training


@dataclass(frozen=True)
class Cells:
    """Examples ``(user, item, value)`` in random order, and a sentence that says which cells they are."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    described: str

    def known_users(self, count: int) -> NDArray[np.bool_]:
        """Tell for each of ``count`` users whether there is an example of theirs."""
        return np.bincount(self.users, minlength=count) > 0

    def known_items(self, count: int) -> NDArray[np.bool_]:
        """Tell for each of ``count`` items whether there is an example of it."""
        return np.bincount(self.items, minlength=count) > 0


def choose_cells(training: Training, settings: Settings) -> Cells:
    """Make the examples that ``settings["cells"]`` asks for.

    ``"all"``: every cell of the matrix, which is what the paper's own code gives to SVD, MF and PMF.
    ``"sampled"``: every interaction, and ``settings["zeros"]`` empty cells of the same user for each of them,
    drawn once.
    """
    rng = np.random.default_rng(settings["random_state"])
    if settings["cells"] == "all":
        return _all_cells(training, rng)
    return _sampled_cells(training, int(settings["zeros"]), rng)


def _all_cells(training: Training, rng: np.random.Generator) -> Cells:
    n, m = training.shape
    order = rng.permutation(np.arange(n * m, dtype=np.uint32 if n * m < 2**32 else np.int64))
    values = np.zeros(n * m, dtype=np.float32)
    values[training.keys] = 1
    ones = len(training.indices)
    described = f"every cell of the matrix: {ones:,} interactions as 1, the other {n * m - ones:,} cells as 0"
    users, items = np.divmod(order, m)
    return Cells(users.astype(np.int32), items.astype(np.int32), values[order], described)


def _sampled_cells(training: Training, zeros: int, rng: np.random.Generator) -> Cells:
    ones = training.users
    users, items = empty_cells(training, np.repeat(ones, zeros), rng)
    order = rng.permutation(len(ones) + len(users))
    values = np.concatenate([np.ones(len(ones), np.float32), np.zeros(len(users), np.float32)])
    described = f"{len(ones):,} interactions as 1 and {len(users):,} empty cells as 0 ({zeros} drawn for each)"
    return Cells(
        np.concatenate([ones, users])[order],
        np.concatenate([training.indices, items])[order],
        values[order],
        described,
    )


def empty_cells(
    training: Training, users: NDArray[Any], rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw for each of ``users`` an item they have not touched, uniformly; leave out users who touched all.

    Returns
    -------
    users, items
        Of the drawn cells.
    """
    m = training.shape[1]
    keys = training.keys
    users = users[np.diff(training.indptr)[users] < m].astype(np.int32)
    items = rng.integers(m, size=len(users), dtype=np.int32)
    left = np.arange(len(users))
    while len(left):
        drawn = users[left].astype(np.int64) * m + items[left]
        place = np.searchsorted(keys, drawn)
        left = left[keys[np.minimum(place, len(keys) - 1)] == drawn]
        items[left] = rng.integers(m, size=len(left), dtype=np.int32)
    return users, items
