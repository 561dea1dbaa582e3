"""Coefficients of features of comparisons, such as who went first, which the ranking leaves out."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import cg

from sadrec._core.types import Doubles

_TIGHT = 1e-6  # relative error of the response of scores to a feature


class Coefficients:
    """Coefficients of features of comparisons: normal around 0; a feature of usual size adds about 1 to the margin.

    ``features`` are in favour of the item of each row, (rows, features).
    """

    def __init__(self, features: Doubles, weight: Doubles) -> None:
        size = np.sqrt(weight @ features**2 / weight.sum())
        self._size = np.where(size > 0, size, 1.0)
        self._features = features / self._size
        self.mean: Any = np.zeros(features.shape[1])

    def margins(self, rows: slice) -> Doubles:
        """Return the features' part of the margins of rows."""
        return np.asarray(self._features[rows] @ self.mean)

    def step(
        self, item: NDArray[Any], rival: NDArray[Any], curvature: Doubles, rest: Doubles, precision: Doubles
    ) -> Doubles:
        """Move coefficients and item scores to where both are best; return by how much the scores move.

        ``rest`` is the slope of each row where its margin is now, ``precision`` that of the prior of the scores.
        """
        information, response = self._information(item, rival, curvature, precision)
        change = np.linalg.solve(information, self._features.T @ rest - self.mean)
        self.mean = self.mean + change
        return np.asarray(-(response @ change))

    def moments(
        self, item: NDArray[Any], rival: NDArray[Any], curvature: Doubles, precision: Doubles
    ) -> tuple[Doubles, Doubles]:
        """Return mean and covariance of the coefficients in the units of the features."""
        information, _ = self._information(item, rival, curvature, precision)
        return self.mean / self._size, np.linalg.inv(information) / np.outer(self._size, self._size)

    def _information(
        self, item: NDArray[Any], rival: NDArray[Any], curvature: Doubles, precision: Doubles
    ) -> tuple[Doubles, Doubles]:
        """Return the precision of the coefficients with scores marginalised, and the response of scores to each."""
        items, f = len(precision), self._features
        weighted = curvature[:, None] * f
        by_item = np.stack([np.bincount(item, w, items) - np.bincount(rival, w, items) for w in weighted.T], axis=1)
        total = np.bincount(item, curvature, items) + np.bincount(rival, curvature, items) + precision
        met = sp.coo_array((curvature, (item, rival)), shape=(items, items)).tocsr()
        laplacian, scale = sp.diags_array(total) - met - met.T, sp.diags_array(1 / total)
        response = np.stack([cg(laplacian, column, rtol=_TIGHT, M=scale)[0] for column in by_item.T], axis=1)
        return f.T @ weighted + np.eye(f.shape[1]) - by_item.T @ response, response
