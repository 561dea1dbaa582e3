"""Products of observations, added up inside kernels."""

from sadrec._kernel import kernel
from sadrec._types import Doubles

BLOCK = 64
"""How many observations are gathered before their products are added up."""


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
