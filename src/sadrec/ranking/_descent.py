"""The compiled part of a logistic regression: its curvature, and the top of a parabola with corners."""

import math

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import inlined, kernel
from sadrec._types import Doubles, Floats, Positions

Flags = NDArray[np.bool_]
Rows = NDArray[np.float32] | NDArray[np.int16]
Tables = tuple[Rows, Rows, Floats]
"""eta, tau and bias of items; the last two are empty for a model without. Negatives may be whole numbers."""

_SWEEPS = 1000
"""Rounds over the entries, at most."""
_FLAT, _TRIES = 0.2, 3
"""Which part of the slope may be left for a direction to be flat, and how often to look for such a place."""


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
    items: Tables,
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
def wedge_rows(ours: Tables, theirs: Tables, winners: Positions, losers: Positions, design: Doubles) -> None:
    """Fill ``design`` with ``eta_i tau_j - eta_j tau_i``; products of floats are exact in double precision."""
    eta_i, tau_i, eta_j, tau_j = ours[0], ours[1], theirs[0], theirs[1]
    rivals = tau_i.shape[0] > 0
    for p in range(winners.shape[0]):
        i, j = winners[p], losers[p]
        row = design[p]
        if rivals:
            for h in range(row.shape[0]):
                row[h] = np.float64(eta_i[i, h]) * np.float64(tau_j[j, h])
                row[h] -= np.float64(eta_j[j, h]) * np.float64(tau_i[i, h])
        else:
            for h in range(row.shape[0]):
                row[h] = np.float64(eta_i[i, h]) - np.float64(eta_j[j, h])


@kernel
def logistic_slope(design: Doubles, offset: Doubles, weight: Doubles, vector: Doubles, slope: Doubles) -> None:
    """Fill ``slope`` with the gradient of the sum of ``weight log sigmoid(design . vector + offset)``."""
    slope[:] = 0.0
    for p in range(design.shape[0]):
        row = design[p]
        x = 0.0
        for h in range(row.shape[0]):
            x += row[h] * vector[h]
        missing = weight[p] * _missing(x + offset[p])
        for h in range(row.shape[0]):
            slope[h] += missing * row[h]


@kernel
def logistic_height(design: Doubles, offset: Doubles, weight: Doubles, vector: Doubles) -> float:
    """Return the sum of ``weight log sigmoid(design . vector + offset)``."""
    height = 0.0
    for p in range(design.shape[0]):
        row = design[p]
        x = 0.0
        for h in range(row.shape[0]):
            x += row[h] * vector[h]
        height += weight[p] * _log_sigmoid(x + offset[p])
    return height


@inlined
def _missing(x: float) -> float:
    """Compute ``1 / (1 + exp(x))`` without overflow."""
    e = math.exp(-abs(x))
    return (e if x > 0.0 else 1.0) / (1.0 + e)


@inlined
def _log_sigmoid(x: float) -> float:
    """Compute ``log(1 / (1 + exp(-x)))`` without overflow."""
    return -math.log1p(math.exp(-abs(x))) - max(-x, 0.0)


@kernel
def pool_margins(
    xi: Floats, ours: Tables, theirs: Tables, winners: Positions, pool: Positions, every: int, near: Flags, x: Floats
) -> None:
    """Write the margins of winners over each of their negatives in ``pool``, (pairs, negatives), to ``x``.

    ``x`` is (negatives, pairs), for every n-th pair.
    ``ours`` holds eta, tau and bias of the winners, ``theirs`` those of the negatives; the last two are empty for a
    model without, or where a bias is not to count. Where ``near``, which may be empty, is False, 0 is written.
    """
    eta, tau, bias = theirs
    factors, rivals, biased, some = xi.shape[0], tau.shape[0] > 0, bias.shape[0] > 0, near.shape[0] > 0
    strength, effect = np.zeros(factors, np.float32), xi.copy()
    last, own = np.int64(-1), np.float32(0.0)
    for q in range(x.shape[1]):
        p = q * every
        i = winners[p]
        if i != last:
            own = np.float32(0.0)
            for h in range(factors):
                strength[h] = xi[h] * ours[0][i, h]
                effect[h] = xi[h] * ours[1][i, h] if rivals else xi[h]
            if not rivals:
                for h in range(factors):
                    own += strength[h]
            if biased:
                own += ours[2][i]
            last = i
        for c in range(pool.shape[1]):
            if some and not near[c, q]:
                x[c, q] = np.float32(0.0)
                continue
            j = pool[p, c]
            eta_j = eta[j]
            total = np.float32(0.0)
            if rivals:
                tau_j = tau[j]
                for h in range(factors):
                    total += strength[h] * np.float32(tau_j[h]) - effect[h] * np.float32(eta_j[h])
            else:
                for h in range(factors):
                    total -= effect[h] * np.float32(eta_j[h])
            if biased:
                total -= bias[j]
            x[c, q] = own + total


@kernel
def find_least(x: Floats, least: Floats, chosen: Positions) -> None:
    """Find the least margin of each pair, and the place of the negative that has it."""
    least[:] = x[0]
    chosen[:] = 0
    for c in range(1, x.shape[0]):
        row = x[c]
        for q in range(row.shape[0]):
            if row[q] < least[q]:
                least[q] = row[q]
                chosen[q] = c


@kernel
def mark_near(x: Floats, least: Floats, near: Flags) -> None:
    """Mark the negatives that may become the hardest of their pair when margins move by a tenth of their size."""
    size = 0.0
    for c in range(x.shape[0]):
        for q in range(x.shape[1]):
            size += abs(x[c, q])
    within = np.float32(0.1 + 0.1 * size / max(x.size, 1))
    for c in range(x.shape[0]):
        for q in range(x.shape[1]):
            near[c, q] = x[c, q] <= least[q] + within


@kernel
def hardest_slope(
    least: Floats,
    ours: Tables,
    theirs: Tables,
    winners: Positions,
    pool: Positions,
    every: int,
    weight: float,
    chosen: Positions,
    slope: Doubles,
) -> float:
    """Sum ``weight log sigmoid`` of the least margin of each pair; fill ``slope`` with the gradient.

    ``chosen`` holds the places in ``pool`` of the negatives that have it.
    """
    eta, tau, _ = theirs
    factors, rivals = eta.shape[1], tau.shape[0] > 0
    height = 0.0
    slope[:] = 0.0
    for_winner, for_negative = np.zeros(factors, np.float32), np.zeros(factors, np.float32)
    last = np.int64(-1)
    for q in range(least.shape[0] + 1):
        i = winners[q * every] if q < least.shape[0] else np.int64(-1)
        if i != last:
            if last >= 0:  # what the pairs of one winner have in common
                for h in range(factors):
                    slope[h] += ours[0][last, h] * for_winner[h]
                    slope[h] -= (ours[1][last, h] if rivals else 1.0) * for_negative[h]
            for_winner[:] = np.float32(0.0)
            for_negative[:] = np.float32(0.0)
            last = i
        if q == least.shape[0]:
            break
        margin = np.float64(least[q])
        height += weight * _log_sigmoid(margin)
        missing = np.float32(weight * _missing(margin))
        j = pool[q * every, chosen[q]]
        eta_j = eta[j]
        if rivals:
            tau_j = tau[j]
            for h in range(factors):
                for_winner[h] += missing * np.float32(tau_j[h])
                for_negative[h] += missing * np.float32(eta_j[h])
        else:
            for h in range(factors):
                for_winner[h] += missing
                for_negative[h] += missing * np.float32(eta_j[h])
    return height


@kernel
def hardest_curvature(
    least: Floats,
    ours: Tables,
    theirs: Tables,
    winners: Positions,
    pool: Positions,
    every: int,
    weight: float,
    chosen: Positions,
    step: int,
) -> Doubles:
    """Return minus the Hessian of what :func:`hardest_slope` sums, from every n-th of its pairs."""
    count = (least.shape[0] + step - 1) // step
    design, counts = np.empty((count, ours[0].shape[1])), np.empty(count)
    i, j = np.empty(count, np.int64), np.empty(count, np.int64)
    for r in range(count):
        q = r * step
        i[r], j[r] = winners[q * every], pool[q * every, chosen[q]]
        e = math.exp(-abs(np.float64(least[q])))
        counts[r] = weight * (least.shape[0] / count) * e / ((1.0 + e) * (1.0 + e))
    wedge_rows(ours, theirs, i, j, design)
    return weighted_gram(design, counts)


@kernel
def slope_along(x: Floats, along: Floats, length: float, weight: float, least: Floats, rising: Floats) -> float:
    """Return the slope at ``length`` of the sum of ``weight log sigmoid`` of the least of ``x + length along``.

    ``least`` and ``rising`` are filled with the least of each pair, and how fast that rises.
    """
    far = np.float32(length)
    for q in range(x.shape[1]):
        least[q] = x[0, q] + far * along[0, q]
        rising[q] = along[0, q]
    for c in range(1, x.shape[0]):
        for q in range(x.shape[1]):
            value = x[c, q] + far * along[c, q]
            lower = value < least[q]
            least[q] = value if lower else least[q]
            rising[q] = along[c, q] if lower else rising[q]
    total = 0.0
    for q in range(x.shape[1]):
        total += rising[q] * _missing(least[q])
    return weight * total


@kernel
def where_flat(
    x: Floats, along: Floats, weight: float, first: float, bends: tuple[float, float], least: Floats, rising: Floats
) -> float:
    """Return how far along a direction the slope falls to about 0, which is ``first`` at 0; at most 4.

    The slope is that of :func:`slope_along` less ``bends[0] + length * bends[1]``, the penalty's.
    """
    bend, bending = bends
    low, high, left = 0.0, 1.0, first
    right = slope_along(x, along, high, weight, least, rising) - bend - high * bending
    while right > _FLAT * first and high < 4.0:
        low, left, high = high, right, 2.0 * high
        right = slope_along(x, along, high, weight, least, rising) - bend - high * bending
    if right >= -_FLAT * first:
        return high
    for _ in range(_TRIES):
        middle = low + (high - low) * min(max(left / (left - right), 0.1), 0.9)
        value = slope_along(x, along, middle, weight, least, rising) - bend - middle * bending
        if abs(value) <= _FLAT * first:
            return middle
        if value > 0.0:
            low, left = middle, value
        else:
            high, right = middle, value
    return low + (high - low) * left / (left - right)


@kernel
def factorise(shape: Doubles) -> None:
    """Put the Cholesky factor L of a positive definite matrix ``L L'`` in the place of its lower triangle."""
    for h in range(shape.shape[0]):
        row = shape[h]
        for g in range(h + 1):
            other = shape[g]
            total = row[g]
            for n in range(g):
                total -= row[n] * other[n]
            row[g] = math.sqrt(total) if g == h else total / other[g]


@kernel
def solve_factorised(lower: Doubles, point: Doubles) -> None:
    """Put the solution of ``L L' solution = point`` in the place of ``point``."""
    size = point.shape[0]
    for h in range(size):
        row = lower[h]
        total = point[h]
        for g in range(h):
            total -= row[g] * point[g]
        point[h] = total / row[h]
    for h in range(size - 1, -1, -1):
        row = lower[h]
        point[h] /= row[h]
        for g in range(h):
            point[g] -= row[g] * point[h]


@kernel
def climb(
    vector: Doubles,
    ours: Tables,
    theirs: Tables,
    winners: Positions,
    pool: Positions,
    every: int,
    weight: float,
    penalty: Doubles,
    limits: tuple[int, int, int, float],
    x: Floats,
    least: Floats,
    chosen: Positions,
) -> int:
    """Move ``vector`` towards where the penalised likelihood against the hardest negatives is highest.

    ``limits`` are how many steps are made, for how many of them the curvature is computed anew, from about how many
    pairs, and what a step may promise, relative to the objective, for it to be left out. ``x``, (negatives, pairs),
    ``least`` and ``chosen`` are filled with the margins of every n-th pair, the least of each, and the place of the
    hardest negative. Returns how many steps were made.

    The curvature of the pairs at hand is too low, because other pairs become the hardest on the way. What the slope
    lost on the steps made so far corrects it (L-BFGS).
    """
    turns, anew, gram, enough = limits
    factors, count = vector.shape[0], x.shape[1]
    nothing = np.empty(0, np.float32)
    our_wedge, their_wedge = (ours[0], ours[1], nothing), (theirs[0], theirs[1], nothing)
    along, rising, near = np.empty_like(x), np.empty_like(least), np.empty((0, 0), np.bool_)
    slope, before, direction = np.empty(factors), np.empty(factors), np.empty(factors)
    moved, lost, portion = np.empty((turns, factors)), np.empty((turns, factors)), np.empty(turns)
    kept, steps = 0, 0
    pool_margins(vector.astype(np.float32), ours, theirs, winners, pool, every, near, x)
    find_least(x, least, chosen)
    if every == 1:  # by now the vector moves little
        near = np.empty(x.shape, np.bool_)
        mark_near(x, least, near)
    lower = np.empty((0, 0))
    for turn in range(turns + 1):
        height = hardest_slope(least, ours, theirs, winners, pool, every, weight, chosen, slope)
        for h in range(factors):
            height -= penalty[h] * vector[h] ** 2
            slope[h] -= 2.0 * penalty[h] * vector[h]
        if turn == turns:
            break
        if steps:
            product = 0.0
            for h in range(factors):
                lost[kept, h] = before[h] - slope[h]
                product += lost[kept, h] * moved[kept, h]
            if product > 0.0:
                kept += 1
        if turn < anew:
            lower = hardest_curvature(least, ours, theirs, winners, pool, every, weight, chosen, max(1, count // gram))
            for h in range(factors):
                lower[h, h] += 2.0 * penalty[h]
            factorise(lower)
        direction[:] = slope
        for m in range(kept - 1, -1, -1):
            portion[m] = _dot(moved[m], direction) / _dot(moved[m], lost[m])
            for h in range(factors):
                direction[h] -= portion[m] * lost[m, h]
        solve_factorised(lower, direction)
        for m in range(kept):
            back = _dot(lost[m], direction) / _dot(moved[m], lost[m])
            for h in range(factors):
                direction[h] += (portion[m] - back) * moved[m, h]
        promise = _dot(slope, direction)
        if promise <= enough * (1.0 + abs(height)):
            break
        pool_margins(direction.astype(np.float32), our_wedge, their_wedge, winners, pool, every, near, along)
        bend, bending = 0.0, 0.0
        for h in range(factors):
            bend += 2.0 * penalty[h] * direction[h] * vector[h]
            bending += 2.0 * penalty[h] * direction[h] ** 2
        length = where_flat(x, along, weight, promise, (bend, bending), least, rising)
        before[:] = slope
        for h in range(factors):
            moved[kept, h] = length * direction[h]
            vector[h] += moved[kept, h]
        far = np.float32(length)
        for c in range(x.shape[0]):
            for q in range(count):
                x[c, q] += far * along[c, q]
        find_least(x, least, chosen)
        steps += 1
    return steps


@inlined
def _dot(a: Doubles, b: Doubles) -> float:
    total = 0.0
    for h in range(a.shape[0]):
        total += a[h] * b[h]
    return total
