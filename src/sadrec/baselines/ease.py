"""EASE (Steck 2019): a linear autoencoder in closed form, today's strong and simple one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from sadrec.baselines.scored import Array, Rows, ScoreModel
from sadrec.baselines.settings import check_settings
from sadrec.data import Interactions


class EASE(ScoreModel):
    """Item-to-item weights that best rebuild every user's row from the other items.

    With ``X`` the users x items matrix of ones and zeros, ``P`` the inverse of ``X'X + regularization I``:
    ``B = I - P / diag(P)`` minimises ``|X - XB|^2 + regularization |B|^2`` among matrices with a zero diagonal, and
    the scores are ``XB``.

    Parameters
    ----------
    regularization
        Weight of the penalty, in units of interactions.

    References
    ----------
    Harald Steck. Embarrassingly shallow autoencoders for sparse data. WWW 2019.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from sadrec import Interactions
    >>> data = Interactions.from_csr(csr_matrix([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]]))
    >>> model = EASE(regularization=1.0).fit(data)
    >>> bool(model.margins(2, [1], [2]) > 0)
    True
    """

    def __init__(self, regularization: float = 500.0) -> None:
        super().__init__("ease", check_settings("ease", {"regularization": regularization}))

    @property
    def trained_on(self) -> str:
        """What the baseline learns from, as a sentence for a table."""
        return "every cell of the matrix: an interaction is 1, any other cell is 0"

    def _learn(self, interactions: Interactions) -> None:
        given = interactions.matrix
        ones = np.ones(given.nnz, dtype=np.float32)
        self._rows = scipy.sparse.csr_matrix((ones, given.indices, given.indptr), shape=given.shape)
        gram = np.asarray((self._rows.T @ self._rows).todense(), dtype=np.float64)
        gram[np.diag_indices_from(gram)] += self.settings["regularization"]
        factor = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        inverse: Any = scipy.linalg.cho_solve(factor, np.eye(given.shape[1]), overwrite_b=True)
        weights = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0)
        # The solver returns columns; scoring a few users reads rows.
        self._weights = np.ascontiguousarray(weights, dtype=np.float32)

    def _block(self, rows: Rows) -> Array:
        return np.asarray(self._rows[rows] @ self._weights)
