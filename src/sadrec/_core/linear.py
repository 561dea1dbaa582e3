"""Small dense linear algebra inside kernels: Cholesky factors and triangular solves."""

import math

from sadrec._core.kernel import kernel
from sadrec._core.types import Doubles

_LEAST = 1e-12  # what rounding may leave of a pivot


@kernel
def factorise(precision: Doubles, size: int) -> None:
    """Overwrite the lower triangle of the leading block with its Cholesky factor."""
    for p in range(size):
        row = precision[p]
        for q in range(p):
            other = precision[q]
            total = row[q]
            for r in range(q):
                total -= row[r] * other[r]
            row[q] = total / other[q]
        total = row[p]
        for r in range(p):
            total -= row[r] * row[r]
        row[p] = math.sqrt(max(total, _LEAST))


@kernel
def solve_lower(factor: Doubles, vector: Doubles, size: int) -> None:
    """Overwrite ``vector`` with ``inverse(L) vector``."""
    for p in range(size):
        row = factor[p]
        total = vector[p]
        for q in range(p):
            total -= row[q] * vector[q]
        vector[p] = total / row[p]


@kernel
def solve_upper(factor: Doubles, vector: Doubles, size: int) -> None:
    """Overwrite ``vector`` with ``inverse(L') vector``."""
    for p in range(size - 1, -1, -1):
        row = factor[p]
        value = vector[p] / row[p]
        vector[p] = value
        for q in range(p):
            vector[q] -= row[q] * value
