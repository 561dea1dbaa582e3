"""Small dense linear algebra inside kernels: Cholesky factors and the draws made with them."""

import math

from sadrec._kernel import kernel
from sadrec._types import Doubles

BLOCK = 64
"""How many observations are gathered before their products are added up."""


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
        row[p] = math.sqrt(total)


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
def add_products(features: Doubles, targets: Doubles, size: int, precision: Doubles, linear: Doubles) -> None:
    """Add ``F F'`` to the lower triangle of ``precision`` and ``F y`` to ``linear``.

    ``features`` holds one row of length :data:`BLOCK` per coefficient, so that every sum runs along contiguous numbers,
    in registers; places past the last observation hold zeros.
    """
    for p in range(size):
        left = features[p]
        total = 0.0
        for b in range(BLOCK):
            total += left[b] * targets[b]
        linear[p] += total
        row = precision[p]
        for q in range(p + 1):
            right = features[q]
            total = 0.0
            for b in range(BLOCK):
                total += left[b] * right[b]
            row[q] += total
