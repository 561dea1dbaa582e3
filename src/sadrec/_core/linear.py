"""Linear algebra: Cholesky factors and triangular solves inside kernels, and the threads of NumPy's own."""

import math
from functools import cache
from typing import Any

from sadrec._core.kernel import kernel
from sadrec._core.types import Doubles

_LEAST = 1e-12  # what rounding may leave of a pivot


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks at every library that is loaded: once is enough


def blas_threads(number: int) -> Any:
    """Return a context in which the linear algebra of NumPy and SciPy runs on a number of threads.

    On one thread its sums have the same bits on any machine, and small products do not wait for each other.
    """
    return _controller().limit(limits=number, user_api="blas")


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


@kernel
def solve(matrix: Any, right: Any, factor: Any, solution: Any) -> None:
    """Write the solution of a positive definite system."""
    n = right.shape[0]
    factor[:], solution[:] = matrix, right
    factorise(factor, n)
    solve_lower(factor, solution, n)
    solve_upper(factor, solution, n)


@kernel
def invert(matrix: Any, factor: Any, inverse: Any) -> None:
    """Write the inverse of a positive definite matrix (its lower triangle is read)."""
    n = matrix.shape[0]
    factor[:] = matrix
    factorise(factor, n)
    # The rows of the inverse of the factor take its place.
    for p in range(n):
        diagonal = 1.0 / factor[p, p]
        for q in range(p):
            total = 0.0
            for r in range(q, p):
                total -= factor[p, r] * inverse[r, q]
            inverse[p, q] = total * diagonal
        inverse[p, p] = diagonal
    for p in range(n):
        for q in range(p + 1):
            total = 0.0
            for r in range(p, n):
                total += inverse[r, p] * inverse[r, q]
            factor[p, q] = total
    for p in range(n):
        for q in range(p + 1):
            inverse[p, q] = inverse[q, p] = factor[p, q]
