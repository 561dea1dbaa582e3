"""The compiled part of a logistic regression: its curvature, and the top of a parabola with corners."""

import math

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import inlined, kernel
from sadrec._linear import factorise, solve_lower, solve_upper
from sadrec._types import Doubles, Floats, Positions

Flags = NDArray[np.bool_]
Tables = tuple[Floats, Floats, Floats]
"""eta, tau and bias of items; the last two are empty for a model without."""
Rows = NDArray[np.float32] | NDArray[np.int16]
Side = tuple[Rows, Floats]
"""Rows of items, tau and then eta, or eta alone for a model without rivals; and their bias, empty for one without.

A margin is an inner product of such a row with one of the winner, and what it takes is read in one piece. Negatives may
be whole numbers.
"""

_BLOCK = 96
"""Pairs that are taken at a time: a block of 64 factors stays in the nearest cache."""
_SWEEPS = 1000
"""Rounds over the entries, at most."""
_FLAT, _TRIES = 0.2, 3
"""Which part of the slope may be left for a direction to be flat, and how often to look for such a place."""


@kernel
def weighted_gram(design: Doubles | Floats, weight: Doubles) -> Doubles:
    """Compute ``design' diag(weight) design`` on one thread, weights 0 or more; for up to a few hundred factors.

    A matrix product of this size is over before the threads of a BLAS have come together. Pairs are taken a block at a
    time, factors as rows: eight sums of products stay in registers. Blocks are added up in double precision.
    """
    pairs, size = design.shape
    zero, rows = design.dtype.type(0), (size + 3) // 4 * 4
    total, z = np.zeros((rows, rows)), np.zeros((rows, _BLOCK), design.dtype)
    for start in range(0, pairs, _BLOCK):
        count = min(_BLOCK, pairs - start)
        if count < _BLOCK:
            z[:] = zero
        for p in range(count):
            row, root = design[start + p], design.dtype.type(math.sqrt(weight[start + p]))
            for h in range(size):
                z[h, p] = root * row[h]
        for h in range(0, rows, 2):
            a, b = z[h], z[h + 1]
            for g in range(0, h + 2, 4):
                z0, z1, z2, z3 = z[g], z[g + 1], z[g + 2], z[g + 3]
                a0, a1, a2, a3, b0, b1, b2, b3 = zero, zero, zero, zero, zero, zero, zero, zero
                for p in range(_BLOCK):
                    a0 += a[p] * z0[p]
                    a1 += a[p] * z1[p]
                    a2 += a[p] * z2[p]
                    a3 += a[p] * z3[p]
                    b0 += b[p] * z0[p]
                    b1 += b[p] * z1[p]
                    b2 += b[p] * z2[p]
                    b3 += b[p] * z3[p]
                total[h, g] += a0
                total[h, g + 1] += a1
                total[h, g + 2] += a2
                total[h, g + 3] += a3
                total[h + 1, g] += b0
                total[h + 1, g + 1] += b1
                total[h + 1, g + 2] += b2
                total[h + 1, g + 3] += b3
    gram = np.empty((size, size))
    for h in range(size):
        for g in range(h + 1):
            gram[h, g] = gram[g, h] = total[h, g]
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
def wedge_rows(ours: Side, theirs: Side, winners: Positions, losers: Positions, design: Doubles | Floats) -> None:
    """Fill ``design`` with ``eta_i tau_j - eta_j tau_i``, in its precision."""
    factors, number = design.shape[1], design.dtype.type
    rivals = ours[0].shape[1] > factors
    for p in range(winners.shape[0]):
        ours_i, theirs_j, row = ours[0][winners[p]], theirs[0][losers[p]], design[p]
        if rivals:
            for h in range(factors):
                row[h] = number(ours_i[factors + h]) * number(theirs_j[h])
                row[h] -= number(theirs_j[factors + h]) * number(ours_i[h])
        else:
            for h in range(factors):
                row[h] = number(ours_i[h]) - number(theirs_j[h])


@inlined
def _decay(x: float) -> float:
    """Compute ``exp(-|x|)`` by products alone, which run in vector registers; from 40 on it is that of 40: nothing."""
    y = -min(abs(x), 40.0) / 128.0  # a power series of twelve terms is exact, and is squared seven times
    e = 1.0 + y / 12.0
    for n in range(11, 0, -1):
        e = 1.0 + e * y / n
    for _ in range(7):
        e *= e
    return e


@inlined
def _missing(x: float) -> float:
    """Compute ``1 / (1 + exp(x))`` without overflow."""
    e = _decay(x)
    return (e if x > 0.0 else 1.0) / (1.0 + e)


@kernel
def logistic_margins(
    design: Doubles | Floats, offset: Doubles, vector: Doubles | Floats, first: int, x: Doubles
) -> None:
    """Fill ``x`` with ``design . vector + offset`` of the pairs from ``first`` on.

    ``vector`` is of the type of ``design``, in which products are computed.
    """
    zero = design.dtype.type(0)
    for p in range(x.shape[0]):
        row, total = design[first + p], zero
        for h in range(row.shape[0]):
            total += row[h] * vector[h]
        x[p] = total + offset[first + p]


@kernel
def logistic_slope(
    design: Doubles | Floats, offset: Doubles, weight: Doubles, vector: Doubles | Floats, slope: Doubles
) -> None:
    """Fill ``slope`` with the gradient of the sum of ``weight log sigmoid(design . vector + offset)``.

    Products are computed in the precision of ``design``; blocks of them are added up in double precision.
    """
    pairs, factors = design.shape
    part, x = np.empty(factors, design.dtype), np.empty(_BLOCK)
    slope[:] = 0.0
    for start in range(0, pairs, _BLOCK):
        count = min(_BLOCK, pairs - start)
        logistic_margins(design, offset, vector, start, x[:count])
        for p in range(count):
            x[p] = weight[start + p] * _missing(x[p])
        part[:] = design.dtype.type(0)
        for p in range(count):
            row, missing = design[start + p], design.dtype.type(x[p])
            for h in range(factors):
                part[h] += missing * row[h]
        for h in range(factors):
            slope[h] += part[h]


@kernel
def logistic_height(design: Doubles | Floats, offset: Doubles, weight: Doubles, vector: Doubles | Floats) -> float:
    """Return the sum of ``weight log sigmoid(design . vector + offset)``."""
    x, height = np.empty(design.shape[0]), 0.0
    logistic_margins(design, offset, vector, 0, x)
    for p in range(x.shape[0]):
        height -= weight[p] * (math.log1p(_decay(x[p])) + max(-x[p], 0.0))
    return height


@kernel
def logistic_bends(
    design: Doubles | Floats, offset: Doubles, weight: Doubles, vector: Doubles | Floats, bends: Doubles
) -> None:
    """Fill ``bends`` with minus the second derivative of ``weight log sigmoid`` by the margin, for each pair."""
    logistic_margins(design, offset, vector, 0, bends)
    for p in range(bends.shape[0]):
        missing = _missing(bends[p])
        bends[p] = weight[p] * missing * (1.0 - missing)


@kernel
def pool_margins(
    xi: Floats,
    ours: Side,
    theirs: Side,
    winners: Positions,
    pool: Positions,
    every: int,
    biased: bool,
    near: Flags,
    x: Floats,
) -> None:
    """Write the margins of winners over each of their negatives in ``pool``, (pairs, negatives), to ``x``.

    ``x`` is (negatives, pairs), for every n-th pair. ``ours`` are the winners, ``theirs`` the negatives; their bias
    counts where ``biased``. Where ``near``, which may be empty, is False, 0 is written.
    """
    rows, bias = theirs
    factors, width = xi.shape[0], rows.shape[1]
    rivals, some = width > factors, near.shape[0] > 0
    biased = biased and bias.shape[0] > 0
    effect = np.empty(width, np.float32)
    last, own = np.int64(-1), np.float32(0.0)
    for q in range(x.shape[1]):
        p = q * every
        i = winners[p]
        if i != last:
            ours_i, own = ours[0][i], np.float32(0.0)
            if rivals:
                for h in range(factors):
                    effect[h] = xi[h] * ours_i[factors + h]
                    effect[factors + h] = -xi[h] * ours_i[h]
            else:
                for h in range(factors):
                    effect[h] = -xi[h]
                    own += xi[h] * ours_i[h]
            if biased:
                own += ours[1][i]
            last = i
        for c in range(pool.shape[1]):
            if some and not near[c, q]:
                x[c, q] = np.float32(0.0)
                continue
            j = pool[p, c]
            row, total = rows[j], own
            for h in range(width):
                total += effect[h] * np.float32(row[h])
            if biased:
                total -= bias[j]
            x[c, q] = total


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
    ours: Side,
    theirs: Side,
    winners: Positions,
    pool: Positions,
    every: int,
    weight: float,
    chosen: Positions,
    slope: Doubles,
) -> None:
    """Fill ``slope`` with the gradient of the sum of ``weight log sigmoid`` of the least margin of each pair.

    ``chosen`` holds the places in ``pool`` of the negatives that have it.
    """
    factors, width = slope.shape[0], theirs[0].shape[1]
    slope[:] = 0.0
    met, counted = np.zeros(width, np.float32), 0.0
    missing = np.empty(least.shape[0], np.float32)
    for q in range(least.shape[0]):
        missing[q] = weight * _missing(np.float64(least[q]))
    last = np.int64(-1)
    for q in range(least.shape[0] + 1):
        i = winners[q * every] if q < least.shape[0] else np.int64(-1)
        if i != last:
            if last >= 0:  # what the pairs of one winner have in common
                ours_i = ours[0][last]
                if width > factors:
                    for h in range(factors):
                        slope[h] += ours_i[factors + h] * met[h] - ours_i[h] * met[factors + h]
                else:
                    for h in range(factors):
                        slope[h] += ours_i[h] * counted - met[h]
            met[:] = np.float32(0.0)
            counted = 0.0
            last = i
        if q == least.shape[0]:
            break
        counted += missing[q]
        row = theirs[0][pool[q * every, chosen[q]]]
        for h in range(width):
            met[h] += missing[q] * np.float32(row[h])


@kernel
def hardest_curvature(
    factors: int,
    least: Floats,
    ours: Side,
    theirs: Side,
    winners: Positions,
    pool: Positions,
    every: int,
    weight: float,
    chosen: Positions,
    step: int,
) -> Doubles:
    """Return minus the Hessian of what :func:`hardest_slope` sums, from every n-th of its pairs."""
    count = (least.shape[0] + step - 1) // step
    design, counts = np.empty((count, factors), np.float32), np.empty(count)
    i, j = np.empty(count, np.int64), np.empty(count, np.int64)
    for r in range(count):
        q = r * step
        i[r], j[r] = winners[q * every], pool[q * every, chosen[q]]
        e = _decay(np.float64(least[q]))
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
        total += rising[q] * _missing(np.float64(least[q]))
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
def climb(
    vector: Doubles,
    ours: Side,
    theirs: Side,
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
    pairs, and what a step may promise, relative to the objective at the start, for it to be left out. ``x``,
    (negatives, pairs), ``least`` and ``chosen`` are filled with the margins of every n-th pair, the least of each, and
    the place of the hardest negative. Returns how many steps were made.

    The curvature of the pairs at hand is too low, because other pairs become the hardest on the way. What the slope
    lost on the steps made so far corrects it (L-BFGS).
    """
    turns, anew, gram, enough = limits
    factors, count = vector.shape[0], x.shape[1]
    along, rising, near = np.empty_like(x), np.empty_like(least), np.empty((0, 0), np.bool_)
    slope, before, direction = np.empty(factors), np.empty(factors), np.empty(factors)
    moved, lost, portion = np.empty((turns, factors)), np.empty((turns, factors)), np.empty(turns)
    kept, steps = 0, 0
    pool_margins(vector.astype(np.float32), ours, theirs, winners, pool, every, True, near, x)
    find_least(x, least, chosen)
    if every == 1:  # by now the vector moves little
        near = np.empty(x.shape, np.bool_)
        mark_near(x, least, near)
    lower = np.empty((0, 0))
    height = 0.0
    for q in range(count):  # log1p(e) is e (6 + e) / (6 + 4 e), nearly: what is enough need not be exact
        e = _decay(np.float64(least[q]))
        height += weight * (e * (6.0 + e) / (6.0 + 4.0 * e) + max(-np.float64(least[q]), 0.0))
    for h in range(factors):
        height += penalty[h] * vector[h] ** 2
    for turn in range(turns):
        hardest_slope(least, ours, theirs, winners, pool, every, weight, chosen, slope)
        for h in range(factors):
            slope[h] -= 2.0 * penalty[h] * vector[h]
        if steps:
            product = 0.0
            for h in range(factors):
                lost[kept, h] = before[h] - slope[h]
                product += lost[kept, h] * moved[kept, h]
            if product > 0.0:
                kept += 1
        if turn < anew:
            step = max(1, count // gram)
            lower = hardest_curvature(factors, least, ours, theirs, winners, pool, every, weight, chosen, step)
            for h in range(factors):
                lower[h, h] += 2.0 * penalty[h]
            factorise(lower, factors)
        direction[:] = slope
        for m in range(kept - 1, -1, -1):
            portion[m] = _dot(moved[m], direction) / _dot(moved[m], lost[m])
            for h in range(factors):
                direction[h] -= portion[m] * lost[m, h]
        solve_lower(lower, direction, factors)
        solve_upper(lower, direction, factors)
        for m in range(kept):
            back = _dot(lost[m], direction) / _dot(moved[m], lost[m])
            for h in range(factors):
                direction[h] += (portion[m] - back) * moved[m, h]
        promise = _dot(slope, direction)
        if promise <= enough * (1.0 + height):
            break
        pool_margins(direction.astype(np.float32), ours, theirs, winners, pool, every, False, near, along)
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
