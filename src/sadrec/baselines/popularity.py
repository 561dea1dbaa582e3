"""Popularity: the floor under every table."""

from __future__ import annotations

import numpy as np

from sadrec.baselines.scored import Array, Rows, ScoreModel
from sadrec.data import Interactions


class Popularity(ScoreModel):
    """Everybody likes best what most people touched.

    The score of an item touched ``c`` times is ``log(c + 1)``, so a margin is the logarithm of how many times more
    popular one item is than the other.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from sadrec import Interactions
    >>> data = Interactions.from_csr(csr_matrix([[1, 1, 0], [1, 0, 0]]))
    >>> Popularity().fit(data).scores([1]).round(2)
    array([[1.1 , 0.69, 0.  ]], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__("popularity", {})

    @property
    def trained_on(self) -> str:
        """What the baseline learns from, as a sentence for a table."""
        return "how often each item was touched"

    def _learn(self, interactions: Interactions) -> None:
        matrix = interactions.matrix
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        self._scores = np.log1p(counts).astype(np.float32)

    def _block(self, rows: Rows) -> Array:
        return np.tile(self._scores, (len(rows), 1))
