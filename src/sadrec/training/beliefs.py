r"""Beliefs about all parameters, and the stages that fit them to comparisons.

Every user's vector and every item's pair of vectors has a normal distribution of its own (mean-field variational
Bayes). With :math:`a = \eta_i \tau_j - \eta_j \tau_i` and :math:`x = \xi_u \cdot a`, users and items being independent,

- :math:`E[x] = \sum_h E\xi_{uh} (E\eta_{ih} E\tau_{jh} - E\eta_{jh} E\tau_{ih})`: the mean margins are those of a SAD
  model, whose factors are the means;
- :math:`E[x^2] = \sum_{hg} E[\xi_h \xi_g] E[a_h a_g]` needs the second moments only.

Each comparison is replaced by a parabola in x that fits :math:`\log \sigma(x)` where x is believed to lie. Given the
items, the best beliefs of a user then solve a linear system, and given the users and the other items those of an item.

Beliefs that are independent of each other are too sure: a comparison of two items that nobody knows says little about
either. So where covariances are concerned, what a comparison tells of one side counts less the less is known of the
others (its *share*); means are right as they are.

The bias is the first factor, with xi and tau held at 1.
"""

from math import exp, log1p, pi, sqrt, tanh
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import inlined, kernel
from sadrec._core.moments import Beliefs
from sadrec._core.types import Doubles

HELD = 1e9
"""The precision of what does not move."""
SMALL = 1e-3
"""The square that holds the variance of a factor above 0."""
_DEVIATES = 0.25  # how likely pairs deviate from scores: the prior of their standard deviation has its mode at 0.5
_FLATTEST = 1e-5
_HALVINGS = 24  # of the interval in which the logarithm of a variance is looked for
_PASSES = 10  # over the coordinates of an item's vectors, where tau would be below 0


class Rows(NamedTuple):
    """Counted comparisons: one row for each user and pair of items that the user compared, and its parabola.

    ``start`` says where the rows of each user begin. ``item`` is the item of lower position, ``wins`` is how often it
    won, ``weight`` how often the two were compared. ``pairing`` is the position of the pair among all pairs.
    ``curvature`` and ``slope`` are those of the parabola, ``mean`` and ``variance`` those of the margin by the factors,
    ``sites`` are what users and items are updated with, side by side: the curvature, the slope less what is not of the
    factors, and the variance of the whole margin; empty once users and items are no longer updated.
    """

    start: NDArray[np.int64]
    user: NDArray[np.int32]
    item: NDArray[np.int32]
    rival: NDArray[np.int32]
    weight: Doubles
    wins: Doubles
    pairing: NDArray[np.int32]
    curvature: Doubles
    slope: Doubles
    mean: Doubles
    variance: Doubles
    sites: Doubles


class Entries(NamedTuple):
    """The same rows item by item, and for each by the other item; two entries for each row."""

    start: NDArray[np.int64]
    row: NDArray[np.int32]
    other: NDArray[np.int32]  # the other item
    lower: NDArray[np.bool_]  # whether the item has the lower position


class Packed(NamedTuple):
    """Lower triangles of second moments, each in a row, which processors add up many numbers at a time.

    ``user_mean`` and ``item_mean`` are the moments of the means alone. The four rows of an item are those of eta and
    eta, eta and tau, tau and eta, tau and tau. ``twice`` is 2 but for the diagonal: what a sum over all entries takes.
    """

    twice: Doubles
    user: Doubles  # (users, k (k + 1) / 2)
    user_mean: Doubles
    item: Doubles  # (items, 4, k (k + 1) / 2)
    item_mean: Doubles

    @staticmethod
    def empty(users: int, items: int, k: int) -> "Packed":
        """Return room for moments of vectors of length k."""
        row, column = np.tril_indices(k)
        user, item = (users, len(row)), (items, 4, len(row))
        return Packed(np.where(row == column, 1.0, 2.0), *map(np.empty, (user, user, item, item)))


class Prior(NamedTuple):
    """The prior, factor by factor: eta around 0, tau around 1, xi around its mean."""

    user_mean: Doubles
    user_precision: Doubles
    item_precision: Doubles
    rival_precision: Doubles


class Expected(NamedTuple):
    """A prior with the predictions of features for every user and item, if any."""

    user_mean: Doubles
    user_precision: Doubles
    item_precision: Doubles
    rival_precision: Doubles
    user_centre: Doubles | None  # (users, k); None: the mean of all
    item_centre: Doubles | None  # (items, 2 k): of eta and tau; None: 0 and 1


@inlined
def centre_of(centre: Any, row: int, h: int, common: float) -> Any:
    """Return the prior mean of a row: predicted by features, or common to all."""
    if centre is None:
        return common
    return centre[row, h]


@kernel
def parabola(mean: float, variance: float, bound: bool, flattest: float) -> tuple[float, float]:
    """Return curvature and slope of ``log sigmoid(x)`` where x is normal: ``slope x - curvature x^2 / 2 + const``.

    ``bound`` takes the parabola below the curve that touches it (Jaakkola and Jordan, 2000), which always improves the
    beliefs but makes them too narrow; else the expected curve is matched, with the logistic integral of MacKay (1992).
    """
    if bound:
        size = sqrt(max(mean * mean + variance, 1e-12))
        return (tanh(0.5 * size) / (2.0 * size) if size > 1e-3 else 0.25), 0.5
    damping = 1.0 / sqrt(1.0 + pi * variance / 8.0)
    p = 1.0 / (1.0 + exp(-damping * mean))
    curvature = max(damping * p * (1.0 - p), flattest)
    return curvature, curvature * mean + 1.0 - p


@kernel
def decompose(matrix: Any, factor: Any) -> None:
    """Write the Cholesky factor of a positive definite matrix (its lower triangle is read)."""
    for p in range(matrix.shape[0]):
        for q in range(p + 1):
            total = matrix[p, q]
            for r in range(q):
                total -= factor[p, r] * factor[q, r]
            factor[p, q] = sqrt(max(total, 1e-12)) if p == q else total / factor[q, q]


@kernel
def solve(matrix: Any, right: Any, factor: Any, solution: Any) -> None:
    """Write the solution of a positive definite system."""
    n = right.shape[0]
    decompose(matrix, factor)
    for p in range(n):
        total = right[p]
        for q in range(p):
            total -= factor[p, q] * solution[q]
        solution[p] = total / factor[p, p]
    for p in range(n - 1, -1, -1):
        total = solution[p]
        for q in range(p + 1, n):
            total -= factor[q, p] * solution[q]
        solution[p] = total / factor[p, p]


@kernel
def invert(matrix: Any, factor: Any, inverse: Any) -> None:
    """Write the inverse of a positive definite matrix (its lower triangle is read)."""
    n = matrix.shape[0]
    decompose(matrix, factor)
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


@kernel
def widen(precision: Any, prior: Any, share: float, factor: Any, covariance: Any, mean: Any, moment: Any) -> None:
    """Write the second moment for a share of the data's precision, with the mean unchanged."""
    n = mean.shape[0]
    for p in range(n):
        for q in range(n):
            precision[p, q] *= share
        precision[p, p] += (1.0 - share) * prior[p]
    invert(precision, factor, covariance)
    for p in range(n):
        for q in range(n):
            moment[p, q] = covariance[p, q] + mean[p] * mean[q]


@kernel
def fit_parabolas(
    first: int, last: int, start: int, rows: Rows, offset: Any, more_variance: Any, bound: bool, step: float
) -> None:
    """Fit the parabolas of rows first, ..., last - 1 to the beliefs about their margins.

    ``offset`` and ``more_variance``, from row ``start`` on, are added to mean and variance by the factors. A loss is a
    win of the opposite margin: its parabola has the same curvature, and its slope is less by 1.
    """
    for t in range(first, last):
        variance = rows.variance[t] + more_variance[t - start]
        flattest = _FLATTEST / max(rows.weight[t], 1.0)  # of the whole row
        curvature, slope = parabola(rows.mean[t] + offset[t - start], variance, bound, flattest)
        slope = rows.weight[t] * (slope - 1.0) + rows.wins[t]
        rows.curvature[t] = step * rows.weight[t] * curvature + (1.0 - step) * rows.curvature[t]
        rows.slope[t] = step * slope + (1.0 - step) * rows.slope[t]
        if rows.sites.shape[0]:
            rows.sites[t, 0], rows.sites[t, 2] = rows.curvature[t], variance
            rows.sites[t, 1] = rows.slope[t] - rows.curvature[t] * offset[t - start]


@kernel
def log_likelihood_of(first: int, last: int, start: int, rows: Rows, offset: Any, more_variance: Any) -> float:
    """Return the expected log likelihood of rows first, ..., last - 1; see fit_parabolas."""
    total = 0.0
    for t in range(first, last):
        x = rows.mean[t] + offset[t - start]
        x /= sqrt(1.0 + pi * (rows.variance[t] + more_variance[t - start]) / 8.0)
        total += rows.wins[t] * x - rows.weight[t] * (max(x, 0.0) + log1p(exp(-abs(x))))
    return total


@inlined
def share_of(noise: float, variance: float, own: float) -> float:
    """Return the share of a comparison's precision that one side gets, given the uncertainty of the other two.

    ``variance`` is that of the margin, ``own`` what of it is the side's.
    """
    return 1.0 / (1.0 + noise * max(variance - max(own, 0.0), 0.0))


@kernel
def pack_users(first: int, last: int, beliefs: Beliefs, packed: Packed) -> None:
    """Pack what is believed of users first, ..., last - 1."""
    k = beliefs.user.shape[1]
    for u in range(first, last):
        mean, moment, p = beliefs.user[u], beliefs.user_moment[u], 0
        for h in range(k):
            for g in range(h + 1):
                packed.user[u, p] = moment[h, g]
                packed.user_mean[u, p] = mean[h] * mean[g]
                p += 1


@kernel
def pack_items(items: Any, beliefs: Beliefs, packed: Packed) -> None:
    """Pack what is believed of some items."""
    k = beliefs.user.shape[1]
    for i in items:
        mean, moment, p = beliefs.item[i], beliefs.item_moment[i], 0
        for h in range(k):
            for g in range(h + 1):
                for block in range(4):
                    row, column = h + k * (block // 2), g + k * (block % 2)
                    packed.item[i, block, p] = moment[row, column]
                    packed.item_mean[i, block, p] = mean[row] * mean[column]
                p += 1


@kernel
def find_margins(first: int, last: int, rows: Rows, beliefs: Beliefs, packed: Packed) -> float:
    """Write mean and variance of the margins of rows first, ..., last - 1; return the squares by which means moved."""
    k, size, moved = beliefs.user.shape[1], packed.twice.shape[0], 0.0
    for t in range(first, last):
        u, i, j = rows.user[t], rows.item[t], rows.rival[t]
        user, item, rival = beliefs.user[u], beliefs.item[i], beliefs.item[j]
        mean, square = 0.0, 0.0
        for h in range(k):
            mean += user[h] * (item[h] * rival[k + h] - rival[h] * item[k + h])
        moment, one, other = packed.user[u], packed.item[i], packed.item[j]
        for p in range(size):
            pair = one[0, p] * other[3, p] - one[1, p] * other[2, p]
            square += packed.twice[p] * moment[p] * (pair - one[2, p] * other[1, p] + one[3, p] * other[0, p])
        moved += rows.weight[t] * (mean - rows.mean[t]) ** 2
        rows.mean[t], rows.variance[t] = mean, max(square - mean * mean, 0.0)
    return moved


@kernel
def update_users(
    first: int, last: int, rows: Rows, beliefs: Beliefs, packed: Packed, prior: Expected, mutual: float
) -> None:
    """Update the beliefs about users first, ..., last - 1, given their comparisons.

    ``mutual`` is how much of the variance of its other sides is noise in what a comparison tells of one.
    """
    k, size = beliefs.user.shape[1], packed.twice.shape[0]
    precision, factor, covariance = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    linear, direction, total, unknown = np.empty(k), np.empty(k), np.empty(size), np.empty(size)
    for u in range(first, last):
        for h in range(k):
            linear[h] = prior.user_precision[h] * centre_of(prior.user_centre, u, h, prior.user_mean[h])
        for p in range(size):
            total[p] = 0.0
            unknown[p] = packed.twice[p] * (packed.user[u, p] - packed.user_mean[u, p])
        whole, shared = 0.0, 0.0
        for t in range(rows.start[u], rows.start[u + 1]):
            i, j = rows.item[t], rows.rival[t]
            item, rival = beliefs.item[i], beliefs.item[j]
            curvature, slope, variance = rows.sites[t, 0], rows.sites[t, 1], rows.sites[t, 2]
            one, other = packed.item[i], packed.item[j]
            for p in range(size):
                pair = one[0, p] * other[3, p] - one[1, p] * other[2, p]
                total[p] += curvature * (pair - one[2, p] * other[1, p] + one[3, p] * other[0, p])
            along, p = 0.0, 0
            for h in range(k):
                direction[h] = item[h] * rival[k + h] - rival[h] * item[k + h]
                linear[h] += slope * direction[h]
                of_row = 0.0
                for g in range(h + 1):
                    of_row += unknown[p + g] * direction[g]
                along += of_row * direction[h]
                p += h + 1
            whole += curvature
            shared += curvature * share_of(mutual * curvature, variance, along)
        p = 0
        for h in range(k):
            for g in range(h + 1):
                precision[h, g] = precision[g, h] = total[p]
                p += 1
            precision[h, h] += prior.user_precision[h]
        solve(precision, linear, factor, beliefs.user[u])
        share = shared / whole if whole > 0.0 else 1.0
        widen(precision, prior.user_precision, share, factor, covariance, beliefs.user[u], beliefs.user_moment[u])
    pack_users(first, last, beliefs, packed)


@kernel
def update_items(
    items: Any,
    mean: Any,
    moment: Any,
    share: Any,
    rows: Rows,
    entries: Entries,
    beliefs: Beliefs,
    packed: Packed,
    prior: Expected,
    mutual: float,
    scale: float,
) -> None:
    """Write the new beliefs about some items, given their comparisons and the present beliefs about all others.

    ``share`` is how much of the comparisons' curvature counts; ``mutual``: see :func:`update_users`; ``scale`` is the
    variance of the part of two items beyond the factors, as far as the rows' variance leaves it out. What is alike for
    all rows of two items is computed once: entries of one other item stand together.
    """
    k, size = beliefs.user.shape[1], packed.twice.shape[0]
    precision, factor, covariance = np.empty((2 * k, 2 * k)), np.empty((2 * k, 2 * k)), np.empty((2 * k, 2 * k))
    linear, total, unknown, by_user = np.empty(2 * k), np.empty((4, size)), np.empty((4, size)), np.empty(k)
    seen, along = np.empty(size), np.empty(size)
    expected = np.concatenate((prior.item_precision, prior.rival_precision))
    for at in range(items.shape[0]):
        i = items[at]
        for h in range(k):
            linear[h] = prior.item_precision[h] * centre_of(prior.item_centre, i, h, 0.0)
            linear[k + h] = prior.rival_precision[h] * centre_of(prior.item_centre, i, k + h, 1.0)
        for block in range(4):
            for p in range(size):
                total[block, p] = 0.0
                unknown[block, p] = packed.item[i, block, p] - packed.item_mean[i, block, p]
        whole, shared = 0.0, 0.0
        e, end = entries.start[i], entries.start[i + 1]
        while e < end:
            o, sign, of_pair = entries.other[e], 1.0 if entries.lower[e] else -1.0, 0.0
            other = packed.item_mean[o]
            for p in range(size):
                seen[p] = 0.0
                pair = unknown[0, p] * other[3, p] - unknown[1, p] * other[2, p]
                along[p] = packed.twice[p] * (pair - unknown[2, p] * other[1, p] + unknown[3, p] * other[0, p])
            for h in range(k):
                by_user[h] = 0.0
            while e < end and entries.other[e] == o:
                t = entries.row[e]
                u = rows.user[t]
                curvature, slope, variance = rows.sites[t, 0], sign * rows.sites[t, 1], rows.sites[t, 2]
                user, user_moment, user_mean = beliefs.user[u], packed.user[u], packed.user_mean[u]
                spread = 0.0
                for p in range(size):
                    seen[p] += curvature * user_moment[p]
                    spread += along[p] * user_mean[p]
                for h in range(k):
                    by_user[h] += slope * user[h]
                whole += curvature
                of_pair += curvature * share_of(mutual * curvature, variance, spread)
                e += 1
            shared += of_pair / (1.0 + scale * of_pair)
            other = packed.item[o]
            for block in range(4):
                for p in range(size):
                    total[block, p] += seen[p] * other[3 - block, p]
            for h in range(k):
                linear[h] += by_user[h] * beliefs.item[o, k + h]
                linear[k + h] -= by_user[h] * beliefs.item[o, h]
        p = 0
        for h in range(k):  # a margin depends on (eta, tau) of the item by (tau, -eta) of the other
            for g in range(h + 1):
                precision[h, g] = precision[g, h] = total[0, p]
                precision[h, k + g] = precision[k + g, h] = -total[1, p]
                precision[k + h, g] = precision[g, k + h] = -total[2, p]
                precision[k + h, k + g] = precision[k + g, k + h] = total[3, p]
                p += 1
        for h in range(2 * k):
            precision[h, h] += expected[h]
        solve(precision, linear, factor, mean[at])
        keep_rivals_positive(precision, linear, mean[at])
        share[at] = shared / whole
        widen(precision, expected, share[at], factor, covariance, mean[at], moment[at])


@kernel
def keep_rivals_positive(precision: Any, linear: Any, mean: Any) -> None:
    """Move an item's mean to the best place with tau >= 0, coordinate by coordinate."""
    k = mean.shape[0] // 2
    lowest = 0.0
    for h in range(k):
        lowest = min(lowest, mean[k + h])
        mean[k + h] = max(mean[k + h], 0.0)
    if lowest == 0.0:
        return
    for _ in range(_PASSES):
        for p in range(2 * k):
            value = linear[p]
            for q in range(2 * k):
                if q != p:
                    value -= precision[p, q] * mean[q]
            value /= precision[p, p]
            mean[p] = max(value, 0.0) if p >= k else value


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


class Places(NamedTuple):
    """Index of the users' own scores of items: user by user, then by item."""

    start: NDArray[np.int64]  # (users + 1): where those of each user begin
    item: NDArray[np.int32]  # of each row: the place of (user, item)
    rival: NDArray[np.int32]


@kernel
def find_places(rows: Rows, places: Places) -> None:
    """Number the items that each user compared, and write where those of each comparison stand."""
    largest = 0
    for u in range(rows.start.shape[0] - 1):
        largest = max(largest, rows.start[u + 1] - rows.start[u])
    items = np.empty(2 * largest, np.int32)
    place = 0
    for u in range(rows.start.shape[0] - 1):
        first, last = rows.start[u], rows.start[u + 1]
        places.start[u] = place
        count = last - first
        items[:count] = rows.item[first:last]
        items[count : 2 * count] = rows.rival[first:last]
        compared = np.unique(items[: 2 * count])
        for t in range(first, last):
            places.item[t] = place + np.searchsorted(compared, rows.item[t])
            places.rival[t] = place + np.searchsorted(compared, rows.rival[t])
        place += compared.shape[0]
    places.start[rows.start.shape[0] - 1] = place


@kernel
def own_variances(first: int, last: int, rows: Rows, places: Places, precision: float, variance: Any) -> None:
    """Write the variances of the own scores of users first, ..., last - 1, from that of their first place on."""
    start = places.start[first]
    variance[: places.start[last] - start] = precision
    for side in (places.item, places.rival):
        for t in range(rows.start[first], rows.start[last]):
            variance[side[t] - start] += rows.curvature[t]
    for c in range(places.start[last] - start):
        variance[c] = 1.0 / variance[c]


@kernel
def update_own_scores(
    first: int, last: int, rows: Rows, places: Places, rest: Any, precision: float, mean: Any
) -> None:
    """Update the own scores of users first, ..., last - 1, one score after the other.

    ``rest`` is what else the margins are made of, from that of their first comparison on.
    """
    begin = rows.start[first]
    most, largest = 0, 0
    for u in range(first, last):
        most = max(most, places.start[u + 1] - places.start[u])
        largest = max(largest, rows.start[u + 1] - rows.start[u])
    end, row = np.empty(most + 1, np.int64), np.empty(2 * largest, np.int64)
    for u in range(first, last):
        # The rows of each place, those in which the item has the lower position first.
        start, count = places.start[u], places.start[u + 1] - places.start[u]
        end[: count + 1] = 0
        for side in (places.item, places.rival):
            for t in range(rows.start[u], rows.start[u + 1]):
                end[side[t] - start + 1] += 1
        for c in range(count):
            end[c + 1] += end[c]
        for side in (places.item, places.rival):
            for t in range(rows.start[u], rows.start[u + 1]):
                row[end[side[t] - start]] = t
                end[side[t] - start] += 1
        entry = 0
        for c in range(start, start + count):
            information, linear = precision, 0.0
            while entry < end[c - start]:
                t = row[entry]
                lower = places.item[t] == c
                other, sign = (places.rival[t], 1.0) if lower else (places.item[t], -1.0)
                curvature = rows.curvature[t]
                information += curvature
                linear += sign * (rows.slope[t] - curvature * rest[t - begin]) + curvature * mean[other]
                entry += 1
            mean[c] = linear / information
