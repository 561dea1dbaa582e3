"""Paired tests: whether one model is better than another on the same questions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PairedTest:
    """The difference of two models on the same users, or on the same splits.

    Attributes
    ----------
    difference
        Mean of (first - second).
    error
        Its standard error.
    t
        ``difference / error``.
    p_t
        Two-sided p-value of Student's t.
    p_wilcoxon
        Two-sided p-value of Wilcoxon's signed ranks: no assumption of normality.
    low, high
        95 % interval of the difference, by Student's t.
    n
        Number of pairs.
    """

    difference: float
    error: float
    t: float
    p_t: float
    p_wilcoxon: float
    low: float
    high: float
    n: int


def paired_test(first: NDArray[Any], second: NDArray[Any], test_to_train: float = 0.0) -> PairedTest:
    r"""Test whether two models differ on paired values; pairs with a NaN are left out.

    Parameters
    ----------
    first, second
        Values of the two models on the same users, or on the same splits.
    test_to_train
        For values of random splits of one data set: test interactions per training interaction. The training parts
        overlap, so the values are not independent; the variance of the mean is taken as :math:`(1/n + r) s^2` instead
        of :math:`s^2/n` (Nadeau and Bengio, Machine Learning 52, 2003). 0 for independent pairs such as users.

    Examples
    --------
    >>> result = paired_test(np.array([0.5, 0.6, 0.7, 0.8]), np.array([0.4, 0.5, 0.6, 0.8]))
    >>> round(result.difference, 3), result.n, round(result.p_t, 3)
    (0.075, 4, 0.058)
    """
    from scipy import stats

    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"paired values must be two vectors of one length, got shapes {first.shape} and {second.shape}"
        )
    differences = first - second
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    nan = float("nan")
    if n == 0:
        return PairedTest(nan, nan, nan, nan, nan, nan, nan, 0)
    mean = float(differences.mean())
    if n == 1:
        return PairedTest(mean, nan, nan, nan, nan, nan, nan, 1)
    if not differences.any():
        return PairedTest(0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, n)
    error = float(differences.std(ddof=1) * np.sqrt(1.0 / n + test_to_train))
    t = mean / error if error > 0 else float(np.copysign(np.inf, mean))
    p_t = float(2 * stats.t.sf(abs(t), n - 1))
    p_wilcoxon = float(stats.wilcoxon(differences).pvalue)
    half = float(stats.t.ppf(0.975, n - 1)) * error
    return PairedTest(mean, error, t, p_t, p_wilcoxon, mean - half, mean + half, n)


def holm(p_values: NDArray[Any]) -> NDArray[np.float64]:
    """Adjust p-values of several comparisons (Holm, Scand. J. Statist. 6, 1979); NaN stays NaN and does not count.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    out = np.full(p.shape, np.nan)
    valid = np.flatnonzero(~np.isnan(p))
    order = valid[np.argsort(p[valid], kind="stable")]
    scaled = p[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return out
