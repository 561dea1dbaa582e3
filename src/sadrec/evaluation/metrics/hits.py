"""Lists of recommended items against the items that came true, as the top-N measures take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    """Which of the recommended items are among a user's test items.

    Attributes
    ----------
    hit
        Boolean, users x N, best first; a place that could not be filled is no hit.
    relevant
        How many test items each user has; at least 1.
    items
        The recommended columns, users x N; -1 where a place could not be filled (fewer than N items left).
    """

    hit: NDArray[np.bool_]
    relevant: NDArray[Any]
    items: NDArray[Any]

    @property
    def length(self) -> int:
        """N, the length of the lists."""
        return int(self.hit.shape[1])

    def first(self, n: int) -> Hits:
        """Return the same with shorter lists."""
        return Hits(self.hit[:, :n], self.relevant, self.items[:, :n])

    def mean_over_list(self, of_item: NDArray[Any]) -> Floats:
        """Average a property of items over each user's list, places not filled left out (NaN if none is)."""
        filled = self.items >= 0
        total = np.where(filled, of_item[self.items], 0.0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / filled.sum(axis=1), dtype=np.float64)

    def exposure(self, n_items: int) -> NDArray[np.int64]:
        """How often each item of the catalogue is recommended."""
        return np.bincount(self.items[self.items >= 0], minlength=n_items)
