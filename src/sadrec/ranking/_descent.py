"""The compiled part of a logistic regression: its curvature, and the top of a parabola with corners."""

import numpy as np

from sadrec._kernel import kernel
from sadrec._types import Doubles, Floats, Positions

_SWEEPS = 1000
"""Rounds over the entries, at most."""


@kernel
def weighted_gram(design: Doubles, weight: Doubles) -> Doubles:
    """Compute ``design' diag(weight) design`` on one thread, four pairs at a time; for up to a few hundred factors.

    A matrix product of this size is over before the threads of a BLAS have come together.
    """
    pairs, size = design.shape
    gram = np.zeros((size, size))
    for p in range(0, pairs - pairs % 4, 4):
        z0, z1, z2, z3 = design[p], design[p + 1], design[p + 2], design[p + 3]
        w0, w1, w2, w3 = weight[p], weight[p + 1], weight[p + 2], weight[p + 3]
        for h in range(size):
            a0, a1, a2, a3 = w0 * z0[h], w1 * z1[h], w2 * z2[h], w3 * z3[h]
            row = gram[h]
            for g in range(h + 1):
                row[g] += a0 * z0[g] + a1 * z1[g] + a2 * z2[g] + a3 * z3[g]
    for p in range(pairs - pairs % 4, pairs):
        z = design[p]
        for h in range(size):
            a = weight[p] * z[h]
            row = gram[h]
            for g in range(h + 1):
                row[g] += a * z[g]
    for h in range(size):
        for g in range(h):
            gram[g, h] = gram[h, g]
    return gram


@kernel
def top_of_parabola(
    slope: Doubles, shape: Doubles, start: Doubles, l1: Doubles, lowest: Doubles, precision: float
) -> Doubles:
    """Maximise ``slope . d - d' shape d / 2 - sum l1 |start + d|`` with ``start + d >= lowest``, entry by entry.

    Returns ``start + d``, once no entry moves by more than ``precision``.
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


@kernel
def hardest_pairs(
    xi: Floats,
    items: tuple[Floats, Floats, Floats],
    winners: Positions,
    pool: Positions,
    chosen: Positions,
    design: Doubles,
    offset: Doubles,
) -> None:
    """Choose, for each pair, the one of its negatives in ``pool``, (pairs, negatives), that the winner beats by least.

    ``items`` holds eta, tau and bias; the last two are empty for a model without. ``chosen``, ``design`` and ``offset``
    are filled with the negatives, and with the wedges and differences of bias of the pairs.
    """
    eta, tau, bias = items
    factors, rivals = xi.shape[0], tau.shape[0] > 0
    strength, effect = np.zeros(factors, np.float32), xi.copy()
    last = np.int64(-1)
    for p in range(winners.shape[0]):
        i = winners[p]
        if rivals and i != last:
            for h in range(factors):
                strength[h] = xi[h] * eta[i, h]
                effect[h] = xi[h] * tau[i, h]
            last = i
        least, j = np.float32(np.inf), pool[p, 0]
        for c in range(pool.shape[1]):
            candidate = pool[p, c]
            eta_c = eta[candidate]
            x = np.float32(0.0)
            for h in range(factors):
                x -= effect[h] * eta_c[h]
            if rivals:
                tau_c = tau[candidate]
                for h in range(factors):
                    x += strength[h] * tau_c[h]
            if bias.shape[0]:
                x -= bias[candidate]
            if x < least:
                least, j = x, candidate
        chosen[p] = j
        row = design[p]
        for h in range(factors):
            row[h] = np.float64(eta[i, h]) * (np.float64(tau[j, h]) if rivals else 1.0)
            row[h] -= np.float64(eta[j, h]) * (np.float64(tau[i, h]) if rivals else 1.0)
        offset[p] = np.float64(bias[i]) - np.float64(bias[j]) if bias.shape[0] else 0.0
