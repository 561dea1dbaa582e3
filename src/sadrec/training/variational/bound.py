"""Parabolas in place of the log likelihood of comparisons: its bound in the first sweeps, later the best fit."""

from math import exp, log1p, pi, sqrt, tanh
from typing import Any

from sadrec._core.kernel import kernel
from sadrec.training.variational.arrays import Rows

_FLATTEST = 1e-5


@kernel
def parabola(mean: float, variance: float, bound: bool, flattest: float) -> tuple[float, float]:
    """Return curvature and slope of ``log sigmoid(x)`` where x is normal: ``slope x - curvature x^2 / 2 + const``.

    ``bound`` takes the parabola below the curve that touches it (Jaakkola and Jordan, 2000), which always improves the
    beliefs but makes them too narrow; else the expected curve is matched, with the logistic integral of MacKay (1992).
    """
    if bound:
        size = sqrt(max(mean * mean + variance, 1e-12))
        return (tanh(0.5 * size) / (2.0 * size) if size > 1e-3 else 0.25), 0.5
    damping = 1.0 / sqrt(1.0 + pi * variance / 8.0)
    p = 1.0 / (1.0 + exp(-damping * mean))
    curvature = max(damping * p * (1.0 - p), flattest)
    return curvature, curvature * mean + 1.0 - p


@kernel
def fit_parabolas(first: int, last: int, rows: Rows, offset: Any, more_variance: Any, bound: bool, step: float) -> None:
    """Fit the parabolas of rows first, ..., last - 1 to the beliefs about their margins.

    ``offset`` and ``more_variance`` of these rows are added to mean and variance by the factors. A loss is a win of the
    opposite margin: its parabola has the same curvature, and its slope is less by 1.
    """
    for t in range(first, last):
        variance = rows.variance[t] + more_variance[t - first]
        flattest = _FLATTEST / max(rows.weight[t], 1.0)  # of the whole row
        curvature, slope = parabola(rows.mean[t] + offset[t - first], variance, bound, flattest)
        slope = rows.weight[t] * (slope - 1.0) + rows.wins[t]
        rows.curvature[t] = step * rows.weight[t] * curvature + (1.0 - step) * rows.curvature[t]
        rows.slope[t] = step * slope + (1.0 - step) * rows.slope[t]
        if rows.sites.shape[0]:
            rows.sites[t, 0], rows.sites[t, 2] = rows.curvature[t], variance
            rows.sites[t, 1] = rows.slope[t] - rows.curvature[t] * offset[t - first]


@kernel
def log_likelihood_of(first: int, last: int, rows: Rows, offset: Any, more_variance: Any) -> float:
    """Return the expected log likelihood of rows first, ..., last - 1; see fit_parabolas."""
    total = 0.0
    for t in range(first, last):
        x = rows.mean[t] + offset[t - first]
        x /= sqrt(1.0 + pi * (rows.variance[t] + more_variance[t - first]) / 8.0)
        total += rows.wins[t] * x - rows.weight[t] * (max(x, 0.0) + log1p(exp(-abs(x))))
    return total
