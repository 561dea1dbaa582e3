"""The compiled part of a sparse logistic regression: the top of a parabola with corners."""

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel

Doubles = NDArray[np.float64]

_SWEEPS = 1000
"""Rounds over the entries, at most."""


@kernel
def top_of_parabola(
    slope: Doubles, shape: Doubles, start: Doubles, l1: Doubles, lowest: Doubles, precision: float
) -> Doubles:
    """Maximise ``slope . d - d' shape d / 2 - sum l1 |start + d|`` with ``start + d >= lowest``, entry by entry.

    Returns
    -------
    ndarray
        ``start + d``, once no entry moves by more than ``precision``.
    """
    point = start.copy()
    rising = slope.copy()
    for _ in range(_SWEEPS):
        largest = 0.0
        for h in range(point.shape[0]):
            if shape[h, h] <= 0.0:
                continue
            free = point[h] + rising[h] / shape[h, h]
            give = l1[h] / shape[h, h]
            if free > give:
                goal = free - give
            elif free < -give:
                goal = free + give
            else:
                goal = 0.0
            move = max(goal, lowest[h]) - point[h]
            if move != 0.0:
                point[h] += move
                row = shape[h]
                for g in range(point.shape[0]):
                    rising[g] -= row[g] * move
                largest = max(largest, abs(move))
        if largest <= precision:
            break
    return point
