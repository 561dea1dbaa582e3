r"""Weighted ridge regression with an intercept, for many targets at once.

:math:`\min_{W, c} \sum_i w_i |\theta_i - c - W' f_i|^2 + \lambda |W|^2`. With few columns the penalty of every group of
targets is chosen by generalised cross-validation (Golub, Heath and Wahba, 1979), from one eigendecomposition that all
fits share. With many columns the equations are solved by conjugate gradients, and the penalty is the mean square of a
row: features and what is one's own then explain as much in advance.

The order of additions does not depend on the number of threads or cores.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sadrec._core.linear import blas_threads
from sadrec._core.types import Doubles

FEW = 1024
"""Columns up to which the eigendecomposition is made."""
HALF = 5.0
"""Number of observations of a row that counts half as much as one of very many."""
STEPS = 30
"""Of conjugate gradients, at most."""
_GRID = np.logspace(-3, 6, 37)
_ENOUGH = 1e-4  # of the first residual


@dataclass(frozen=True, eq=False)
class Linear:
    """A prediction: ``intercept + rows @ coefficients``."""

    coefficients: Doubles  # (columns, targets)
    intercept: Doubles  # (targets,)

    def predict(self, rows: Any) -> Doubles:
        """Return the predictions for rows of features, (rows, targets)."""
        return np.asarray(self.intercept + rows @ self.coefficients)


class Ridge:
    """The regression on given rows, CSR (rows, columns), with given weights; prepared once, fitted to many targets."""

    @classmethod
    def observed(cls, rows: Any, counts: Doubles) -> "Ridge":
        """Prepare the regression on rows, from the number of observations of each."""
        return cls(rows, counts / (counts + HALF))

    def __init__(self, rows: Any, weight: Doubles) -> None:
        self.rows = rows
        self._kept = np.flatnonzero(weight > 0)
        if not len(self._kept):
            raise ValueError("no row has a weight above 0")
        self._rows = rows[self._kept]
        self._weight = weight[self._kept] / weight[self._kept].mean()
        self._total = float(self._weight.sum())
        self._mean = np.asarray(self._rows.T @ self._weight) / self._total
        self._eigen: tuple[Doubles, Doubles] | None = None
        if rows.shape[1] <= FEW:
            with blas_threads(1):
                weighted = self._rows.multiply(self._weight[:, None])
                gram = (self._rows.T @ weighted).toarray() - self._total * np.outer(self._mean, self._mean)
                values, vectors = np.linalg.eigh(gram)
            self._eigen = np.maximum(values, 0.0), vectors

    def fit(self, targets: Doubles, groups: tuple[int, ...]) -> Linear:
        """Return the regression of targets, (rows, targets); ``groups`` of columns share a penalty."""
        with blas_threads(1):
            own = targets[self._kept]
            mean = self._weight @ own / self._total
            centred = own - mean
            weighted = self._weight[:, None] * centred
            linear = np.asarray(self._rows.T @ weighted)  # the weighted targets sum to 0: no mean is to be taken off
            if self._eigen is None:
                coefficients = self._conjugate(linear)
            else:
                coefficients = self._direct(linear, np.einsum("it,it->t", weighted, centred), groups)
            return Linear(coefficients, mean - self._mean @ coefficients)

    def _direct(self, linear: Doubles, squares: Doubles, groups: tuple[int, ...]) -> Doubles:
        assert self._eigen is not None
        values, vectors = self._eigen
        along = vectors.T @ linear
        usual = float(values.sum()) / max(len(self._kept), 1)  # the mean square of a row
        penalties = _GRID * max(usual, 1e-12)
        freedom = (values[None] / (values[None] + penalties[:, None])).sum(axis=1)
        left = np.maximum(len(self._kept) - 1 - freedom, 0.0)
        explained = (values[None] + 2 * penalties[:, None]) / (values[None] + penalties[:, None]) ** 2
        solved = np.empty_like(along)
        start = 0
        for size in groups:
            part = slice(start, start + size)
            start += size
            rest = np.maximum(squares[part].sum() - explained @ (along[:, part] ** 2).sum(axis=1), 0.0)
            score = np.where(left > 0.5, rest / np.maximum(left, 0.5) ** 2, np.inf)
            # Ties go to the strongest penalty.
            best = len(score) - 1 - int(np.argmin(score[::-1]))
            solved[:, part] = along[:, part] / (values[:, None] + penalties[best])
        return np.asarray(vectors @ solved)

    def _conjugate(self, linear: Doubles) -> Doubles:
        rows, weight, mean, total = self._rows, self._weight[:, None], self._mean, self._total
        squares = float(self._weight @ np.asarray(rows.multiply(rows).sum(axis=1)).ravel()) / total
        penalty = max(squares - float(mean @ mean), 1e-12)

        def times(vectors: Doubles) -> Doubles:
            moved = rows.T @ (weight * (rows @ vectors)) - total * np.outer(mean, mean @ vectors)
            return np.asarray(moved + penalty * vectors)

        solved, residual = np.zeros_like(linear), linear.copy()
        direction = residual.copy()
        size = np.einsum("pt,pt->t", residual, residual)
        first = np.maximum(size, 1e-300)
        for _ in range(STEPS):
            if (size <= _ENOUGH**2 * first).all():
                break
            moved = times(direction)
            step = size / np.maximum(np.einsum("pt,pt->t", direction, moved), 1e-300)
            solved += step * direction
            residual -= step * moved
            new = np.einsum("pt,pt->t", residual, residual)
            direction = residual + new / np.maximum(size, 1e-300) * direction
            size = new
        return solved
