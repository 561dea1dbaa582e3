"""The compiled part of a logistic regression: its curvature, and the top of a parabola with corners."""

import math

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._types import Doubles, Floats, Positions

Flags = NDArray[np.bool_]

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


@kernel
def pool_margins(
    xi: Floats,
    items: tuple[Floats, Floats, Floats],
    winners: Positions,
    pool: Positions,
    every: int,
    near: Flags,
    x: Floats,
) -> None:
    """Write the margins of winners over each of their negatives in ``pool`` to ``x``, for every n-th pair.

    ``items`` holds eta, tau and bias; the last two are empty for a model without, or where a bias is not to count.
    Where ``near``, which may be empty, is False, 0 is written.
    """
    eta, tau, bias = items
    factors, rivals, biased, some = xi.shape[0], tau.shape[0] > 0, bias.shape[0] > 0, near.shape[0] > 0
    strength, effect = np.zeros(factors, np.float32), xi.copy()
    last, own = np.int64(-1), np.float32(0.0)
    for q in range(x.shape[0]):
        p = q * every
        i = winners[p]
        if i != last:
            own = np.float32(0.0)
            for h in range(factors):
                strength[h] = xi[h] * eta[i, h]
                effect[h] = xi[h] * tau[i, h] if rivals else xi[h]
            if not rivals:
                for h in range(factors):
                    own += strength[h]
            if biased:
                own += bias[i]
            last = i
        for c in range(pool.shape[1]):
            if some and not near[q, c]:
                x[q, c] = np.float32(0.0)
                continue
            j = pool[p, c]
            eta_j = eta[j]
            total = np.float32(0.0)
            if rivals:
                tau_j = tau[j]
                for h in range(factors):
                    total += strength[h] * tau_j[h] - effect[h] * eta_j[h]
            else:
                for h in range(factors):
                    total -= effect[h] * eta_j[h]
            if biased:
                total -= bias[j]
            x[q, c] = own + total


@kernel
def mark_near(x: Floats, near: Flags) -> None:
    """Mark the negatives that may become the hardest of their pair when margins move by a quarter of their size."""
    size = 0.0
    for q in range(x.shape[0]):
        for c in range(x.shape[1]):
            size += abs(x[q, c])
    within = np.float32(0.25 + 0.25 * size / max(x.size, 1))
    for q in range(x.shape[0]):
        least = x[q, 0]
        for c in range(1, x.shape[1]):
            least = min(least, x[q, c])
        for c in range(x.shape[1]):
            near[q, c] = x[q, c] <= least + within


@kernel
def hardest_slope(
    x: Floats,
    items: tuple[Floats, Floats, Floats],
    winners: Positions,
    pool: Positions,
    every: int,
    weight: float,
    chosen: Positions,
    slope: Doubles,
) -> float:
    """Sum ``weight log sigmoid`` of the least margin of each pair.

    ``chosen`` gets the place of the negative that has it, and ``slope`` the gradient.
    """
    eta, tau, _ = items
    factors, rivals = eta.shape[1], tau.shape[0] > 0
    height = 0.0
    slope[:] = 0.0
    ours, theirs = np.zeros(factors), np.zeros(factors)
    last = np.int64(-1)
    for q in range(x.shape[0] + 1):
        i = winners[q * every] if q < x.shape[0] else np.int64(-1)
        if i != last:
            if last >= 0:  # what the pairs of one winner have in common
                for h in range(factors):
                    slope[h] += eta[last, h] * ours[h] - (tau[last, h] if rivals else 1.0) * theirs[h]
            ours[:] = 0.0
            theirs[:] = 0.0
            last = i
        if q == x.shape[0]:
            break
        best = 0
        for c in range(1, x.shape[1]):
            if x[q, c] < x[q, best]:
                best = c
        chosen[q] = best
        least = np.float64(x[q, best])
        e = math.exp(-abs(least))
        height -= weight * (math.log1p(e) + max(-least, 0.0))
        missing = weight * (e / (1.0 + e) if least > 0.0 else 1.0 / (1.0 + e))
        j = pool[q * every, best]
        eta_j = eta[j]
        if rivals:
            tau_j = tau[j]
            for h in range(factors):
                ours[h] += missing * tau_j[h]
                theirs[h] += missing * eta_j[h]
        else:
            for h in range(factors):
                ours[h] += missing
                theirs[h] += missing * eta_j[h]
    return height


@kernel
def hardest_curvature(
    x: Floats,
    items: tuple[Floats, Floats, Floats],
    winners: Positions,
    pool: Positions,
    every: int,
    weight: float,
    chosen: Positions,
    step: int,
) -> Doubles:
    """Return minus the Hessian of what :func:`hardest_slope` sums, from every n-th of its pairs."""
    eta, tau, _ = items
    factors, rivals = eta.shape[1], tau.shape[0] > 0
    count = (x.shape[0] + step - 1) // step
    design, counts = np.empty((count, factors)), np.empty(count)
    for r in range(count):
        q = r * step
        i, j = winners[q * every], pool[q * every, chosen[q]]
        row = design[r]
        if rivals:
            for h in range(factors):
                row[h] = eta[i, h] * tau[j, h] - eta[j, h] * tau[i, h]
        else:
            for h in range(factors):
                row[h] = eta[i, h] - eta[j, h]
        e = math.exp(-abs(np.float64(x[q, chosen[q]])))
        counts[r] = weight * (x.shape[0] / count) * e / ((1.0 + e) * (1.0 + e))
    return weighted_gram(design, counts)


@kernel
def slope_along(x: Floats, along: Floats, length: float, weight: float) -> float:
    """Return the slope at ``length`` of the sum of ``weight log sigmoid`` of the least of ``x + length along``."""
    total = 0.0
    far = np.float32(length)
    for q in range(x.shape[0]):
        best = 0
        least = x[q, 0] + far * along[q, 0]
        for c in range(1, x.shape[1]):
            value = x[q, c] + far * along[q, c]
            if value < least:
                least, best = value, c
        total += weight * along[q, best] / (1.0 + math.exp(np.float64(least)))
    return total
