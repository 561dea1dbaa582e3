"""Variances that are learnt: of scores, factors, pairings and own scores, under priors of their standard deviations."""

from math import exp, sqrt
from typing import Any

import numpy as np

from sadrec._core.kernel import kernel
from sadrec._core.types import Doubles

SMALL = 1e-3
"""The square that holds the variance of a factor above 0."""
_DEVIATES = 0.25  # how likely pairs deviate from scores: the prior of their standard deviation has its mode at 0.5
_HALVINGS = 24  # of the interval in which the logarithm of a variance is looked for


@kernel
def learnt_variance(squares: float, count: float, likely: float = 1.0) -> float:
    """Return the variance of ``count`` numbers around 0 with this sum of squares, under the prior of a scale.

    The standard deviation s has a density of ``s**likely exp(-s**2 / 2)``, by default a Rayleigh distribution, with its
    mode at the root of ``likely`` log-odds: a scale neither vanishes where there is little data nor grows without bound
    where one side wins every comparison, and it hardly changes many numbers.
    """
    squares, count = squares + SMALL, count - likely
    root = sqrt(count * count + 4.0 * squares)
    return 2.0 * squares / (count + root) if count > 0.0 else 0.5 * (root - count)


@kernel
def factor_variance(squares: float, count: float) -> float:
    """Return the variance of a factor's ``count`` numbers around 0: the data has to support it, or it vanishes.

    The standard deviation has a half-normal distribution with the scale of 0.5 log-odds, and there is one more number
    of a small square.
    """
    squares, count = squares + SMALL, count + 1.0
    return 2.0 * squares / (count + sqrt(count * count + 16.0 * squares))


@kernel
def variance_of(information: Any, linear: Any) -> float:
    """Return the variance of numbers around 0 of which ``information`` and ``linear`` are known.

    That is the fixed point of MacKay (1992): the sum of squares of the means over the number of them that the data
    determines, under a prior that has nearly as much room for no such numbers (``_DEVIATES``): scores alone may explain
    all. Iterating may jump between a large and a small variance, so it is found by bisection.
    """
    low, high = -18.0, 12.0  # logarithms
    for _ in range(_HALVINGS):
        scale = exp(0.5 * (low + high))
        squares, determined = 0.0, 0.0
        for c in range(len(information)):
            precision = 1.0 / scale + information[c]
            squares += (linear[c] / precision) ** 2
            determined += information[c] / precision
        if learnt_variance(squares, determined, _DEVIATES) > scale:
            low = 0.5 * (low + high)
        else:
            high = 0.5 * (low + high)
    return exp(0.5 * (low + high))


def variances(squares: Doubles, bias: bool = False) -> Doubles:
    """Return the variance of each factor, given squares by row; with ``bias``, the first is that of the bias."""
    learnt = [learnt_variance if bias and not h else factor_variance for h in range(squares.shape[1])]
    return np.array([of(total, len(squares)) for of, total in zip(learnt, squares.sum(axis=0), strict=True)])


def half_way(variance: Doubles) -> Doubles:
    """Return variances half way to the mean of all but the first, which is that of the bias."""
    if len(variance) < 2:
        return variance
    return np.append(variance[:1], (variance[1:] + variance[1:].mean()) / 2)
