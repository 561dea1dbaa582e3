r"""What is believed of every parameter, and the stages that bring the beliefs into agreement with comparisons.

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

from sadrec._kernel import inlined, kernel
from sadrec._moments import Beliefs, pair_moment
from sadrec._types import Doubles

HELD = 1e9
"""The precision of what does not move."""
SMALL = 1e-3
"""The square that holds the variance of a factor above 0."""
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
    """The same rows item by item, two entries for each: first those in which the item has the lower position."""

    start: NDArray[np.int64]
    row: NDArray[np.int32]
    other: NDArray[np.int32]  # the other item
    lower: NDArray[np.bool_]  # whether the item has the lower position


class Prior(NamedTuple):
    """What is expected before any data, factor by factor: eta around 0, tau around 1, xi around its mean."""

    user_mean: Doubles
    user_precision: Doubles
    item_precision: Doubles
    rival_precision: Doubles


class Expected(NamedTuple):
    """A prior as the stages take it: with what features predict of every user and item, where there are some."""

    user_mean: Doubles
    user_precision: Doubles
    item_precision: Doubles
    rival_precision: Doubles
    user_centre: Doubles | None  # (users, k); None: the mean of all
    item_centre: Doubles | None  # (items, 2 k): of eta and tau; None: 0 and 1


@inlined
def centre_of(centre: Any, row: int, h: int, common: float) -> Any:
    """Return what is expected of an entry: by features, or in common."""
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
def invert(matrix: Any, factor: Any, inverse: Any) -> None:
    """Write the inverse of a positive definite matrix (its lower triangle is read)."""
    n = matrix.shape[0]
    for p in range(n):
        for q in range(p + 1):
            total = matrix[p, q]
            for r in range(q):
                total -= factor[p, r] * factor[q, r]
            factor[p, q] = sqrt(max(total, 1e-12)) if p == q else total / factor[q, q]
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
def believe(precision: Any, linear: Any, factor: Any, covariance: Any, mean: Any, moment: Any) -> None:
    """Write mean and second moment of the normal distribution with this precision and precision times mean."""
    n = linear.shape[0]
    invert(precision, factor, covariance)
    for p in range(n):
        total = 0.0
        for q in range(n):
            total += covariance[p, q] * linear[q]
        mean[p] = total
    for p in range(n):
        for q in range(n):
            moment[p, q] = covariance[p, q] + mean[p] * mean[q]


@kernel
def variance_along(mean: Any, moment: Any, direction: Any) -> float:
    """Return the variance of the product of a vector with a direction."""
    square, product = 0.0, 0.0
    for p in range(mean.shape[0]):
        total, row = 0.0, moment[p]
        for q in range(mean.shape[0]):
            total += row[q] * direction[q]
        square += total * direction[p]
        product += mean[p] * direction[p]
    return max(square - product * product, 0.0)


@kernel
def widen(precision: Any, prior: Any, share: float, factor: Any, covariance: Any, mean: Any, moment: Any) -> None:
    """Write the second moment that goes with a share of the data's precision, the mean being what it is."""
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
    """Fit the parabolas of rows first, ..., last - 1 to what is believed of their margins.

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
    """Return the log likelihood of rows first, ..., last - 1, averaged over what is not known; see fit_parabolas."""
    total = 0.0
    for t in range(first, last):
        x = rows.mean[t] + offset[t - start]
        x /= sqrt(1.0 + pi * (rows.variance[t] + more_variance[t - start]) / 8.0)
        total += rows.wins[t] * x - rows.weight[t] * (max(x, 0.0) + log1p(exp(-abs(x))))
    return total


@kernel
def bias_margins(first: int, last: int, rows: Rows, bias: Any, variance: Any) -> None:
    """Write mean and variance of the margins of rows first, ..., last - 1 where there is the bias alone."""
    for t in range(first, last):
        rows.mean[t] = bias[rows.item[t]] - bias[rows.rival[t]]
        rows.variance[t] = variance[rows.item[t]] + variance[rows.rival[t]]


@kernel
def share_of(noise: float, variance: float, mean: Any, moment: Any, direction: Any) -> float:
    """Return how much of what a comparison tells counts for one side, given how little is known of the other two.

    ``variance`` is that of the margin; ``direction`` is what the side is multiplied with.
    """
    return 1.0 / (1.0 + noise * max(variance - variance_along(mean, moment, direction), 0.0))


@kernel
def update_users(first: int, last: int, rows: Rows, beliefs: Beliefs, prior: Expected, mutual: float) -> None:
    """Bring the beliefs of users first, ..., last - 1 into agreement with their comparisons.

    ``mutual`` is how much of the variance of its other sides is noise in what a comparison tells of one.
    """
    k = beliefs.user.shape[1]
    precision, moment, factor = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    covariance, linear, direction = np.empty((k, k)), np.empty(k), np.empty(k)
    for u in range(first, last):
        for h in range(k):
            linear[h] = prior.user_precision[h] * centre_of(prior.user_centre, u, h, prior.user_mean[h])
            for g in range(k):
                precision[h, g] = 0.0
            precision[h, h] = prior.user_precision[h]
        whole, shared = 0.0, 0.0
        for t in range(rows.start[u], rows.start[u + 1]):
            i, j = rows.item[t], rows.rival[t]
            item, rival = beliefs.item[i], beliefs.item[j]
            pair_moment(beliefs.item_moment[i], beliefs.item_moment[j], moment)
            curvature, slope, variance = rows.sites[t, 0], rows.sites[t, 1], rows.sites[t, 2]
            for h in range(k):
                direction[h] = item[h] * rival[k + h] - rival[h] * item[k + h]
            whole += curvature
            shared += curvature * share_of(
                mutual * curvature, variance, beliefs.user[u], beliefs.user_moment[u], direction
            )
            for h in range(k):
                linear[h] += slope * direction[h]
                row, other = precision[h], moment[h]
                for g in range(k):
                    row[g] += curvature * other[g]
        believe(precision, linear, factor, covariance, beliefs.user[u], beliefs.user_moment[u])
        if whole > 0.0:
            share = shared / whole
            widen(precision, prior.user_precision, share, factor, covariance, beliefs.user[u], beliefs.user_moment[u])


@kernel
def update_items(
    same_users: bool,
    items: Any,
    mean: Any,
    moment: Any,
    share: Any,
    rows: Rows,
    entries: Entries,
    beliefs: Beliefs,
    prior: Expected,
    mutual: float,
) -> None:
    """Write what is to be believed of some items, given their comparisons and the present beliefs of all others.

    ``share`` is how much of the comparisons' curvature counts. ``same_users``: all users have the moments of the first
    (there is but one), which saves a product per entry. ``mutual``: see :func:`update_users`.
    """
    k = beliefs.user.shape[1]
    size = 2 * k
    total, precision, factor = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    covariance, linear, direction = np.empty((size, size)), np.empty(size), np.empty(size)
    expected = np.concatenate((prior.item_precision, prior.rival_precision))
    for at in range(items.shape[0]):
        i = items[at]
        for h in range(k):
            linear[h] = prior.item_precision[h] * centre_of(prior.item_centre, i, h, 0.0)
            linear[k + h] = prior.rival_precision[h] * centre_of(prior.item_centre, i, k + h, 1.0)
        for h in range(size):
            for g in range(size):
                total[h, g] = 0.0
        whole, shared = 0.0, 0.0
        for e in range(entries.start[i], entries.start[i + 1]):
            t, other = entries.row[e], entries.other[e]
            u = 0 if same_users else rows.user[t]
            curvature, slope, variance = rows.sites[t, 0], rows.sites[t, 1], rows.sites[t, 2]
            slope *= 1.0 if entries.lower[e] else -1.0
            whole += curvature
            user, rival, rival_moment = beliefs.user[u], beliefs.item[other], beliefs.item_moment[other]
            for h in range(k):
                direction[h], direction[k + h] = user[h] * rival[k + h], -user[h] * rival[h]
                linear[h] += slope * direction[h]
                linear[k + h] += slope * direction[k + h]
            noise = mutual * curvature
            shared += curvature * share_of(noise, variance, beliefs.item[i], beliefs.item_moment[i], direction)
            # The part of (tau, eta) is that of (eta, tau), mirrored.
            if same_users:
                for h in range(k):
                    row, source, row_tau, source_tau = total[h], rival_moment[h], total[k + h], rival_moment[k + h]
                    for g in range(size):
                        row[g] += curvature * source[g]
                    for g in range(k, size):
                        row_tau[g] += curvature * source_tau[g]
            else:
                for h in range(k):
                    weights = beliefs.user_moment[u, h]
                    row, source, row_tau, source_tau = total[h], rival_moment[h], total[k + h], rival_moment[k + h]
                    for g in range(k):
                        weight = curvature * weights[g]
                        row[g] += weight * source[g]
                        row[k + g] += weight * source[k + g]
                        row_tau[k + g] += weight * source_tau[k + g]
        # The features of (eta_i, tau_i) are (tau_o, -eta_o).
        for h in range(k):
            for g in range(k):
                weight = beliefs.user_moment[0, h, g] if same_users else 1.0
                precision[h, g] = weight * total[k + h, k + g]
                precision[h, k + g] = -weight * total[g, k + h]
                precision[k + h, g] = -weight * total[h, k + g]
                precision[k + h, k + g] = weight * total[h, g]
        for h in range(size):
            precision[h, h] += expected[h]
        believe(precision, linear, factor, covariance, mean[at], moment[at])
        keep_rivals_positive(precision, linear, mean[at])
        share[at] = shared / whole
        widen(precision, expected, share[at], factor, covariance, mean[at], moment[at])


@kernel
def update_scores(
    same_users: bool,
    items: Any,
    mean: Any,
    moment: Any,
    share: Any,
    rows: Rows,
    entries: Entries,
    beliefs: Beliefs,
    prior: Expected,
    mutual: float,
) -> None:
    """Do what :func:`update_items` does where every tau is 1, in a quarter of the time or less."""
    k = beliefs.user.shape[1]
    precision, factor, covariance = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    linear = np.empty(k)
    for at in range(items.shape[0]):
        i = items[at]
        for h in range(k):
            linear[h] = prior.item_precision[h] * centre_of(prior.item_centre, i, h, 0.0)
            for g in range(k):
                precision[h, g] = 0.0
            precision[h, h] = prior.item_precision[h]
        whole, shared = 0.0, 0.0
        for e in range(entries.start[i], entries.start[i + 1]):
            t, other = entries.row[e], entries.other[e]
            u = 0 if same_users else rows.user[t]
            curvature, slope, variance = rows.sites[t, 0], rows.sites[t, 1], rows.sites[t, 2]
            slope *= 1.0 if entries.lower[e] else -1.0
            whole += curvature
            user, user_moment, rival = beliefs.user[u], beliefs.user_moment[u], beliefs.item[other]
            noise, known = mutual * curvature, beliefs.item_moment[i, :k, :k]
            shared += curvature * share_of(noise, variance, beliefs.item[i, :k], known, user)
            for h in range(k):
                row, source, score = precision[h], user_moment[h], 0.0
                for g in range(k):
                    row[g] += curvature * source[g]
                    score += source[g] * rival[g]
                linear[h] += slope * user[h] + curvature * score
        own_mean, own_moment = mean[at, :k], moment[at, :k, :k]
        believe(precision, linear, factor, covariance, own_mean, own_moment)
        share[at] = shared / whole
        widen(precision, prior.item_precision, share[at], factor, covariance, own_mean, own_moment)
        for h in range(k):
            mean[at, k + h] = 1.0
            for g in range(k):
                moment[at, h, k + g] = moment[at, k + g, h] = mean[at, h]
                moment[at, k + h, k + g] = 1.0


@kernel
def update_biases(
    items: Any,
    mean: Any,
    moment: Any,
    share: Any,
    rows: Rows,
    entries: Entries,
    beliefs: Beliefs,
    prior: Expected,
    mutual: float,
) -> None:
    """Do what :func:`update_items` does where there is the bias alone."""
    bias, square = beliefs.item, beliefs.item_moment
    for at in range(items.shape[0]):
        i = items[at]
        own = max(square[i, 0, 0] - bias[i, 0] * bias[i, 0], 0.0)
        expected = prior.item_precision[0]
        linear, whole, shared = expected * centre_of(prior.item_centre, i, 0, 0.0), 0.0, 0.0
        for e in range(entries.start[i], entries.start[i + 1]):
            t = entries.row[e]
            curvature, slope = rows.sites[t, 0], rows.sites[t, 1]
            linear += (slope if entries.lower[e] else -slope) + curvature * bias[entries.other[e], 0]
            whole += curvature
            shared += curvature / (1.0 + mutual * curvature * max(rows.sites[t, 2] - own, 0.0))
        share[at] = shared / whole
        score = linear / (expected + whole)
        mean[at, 0], mean[at, 1] = score, 1.0
        moment[at, 0, 0] = score * score + 1.0 / (expected + shared)
        moment[at, 0, 1] = moment[at, 1, 0] = score
        moment[at, 1, 1] = 1.0


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
def learnt_variance(squares: float, count: float) -> float:
    """Return the variance of ``count`` numbers around 0 with this sum of squares, under the prior of a scale.

    The standard deviation has a Rayleigh distribution with its mode at 1 log-odds: a scale neither vanishes where there
    is little data nor grows for ever where one side wins every comparison, and many numbers hardly feel it.
    """
    squares, count = squares + SMALL, count - 1.0
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
    determines, under the prior of :func:`learnt_variance`. Iterating may jump between a large and a small variance, so
    it is found by bisection.
    """
    low, high = -18.0, 12.0  # logarithms
    for _ in range(_HALVINGS):
        scale = exp(0.5 * (low + high))
        squares, determined = 0.0, 0.0
        for c in range(len(information)):
            precision = 1.0 / scale + information[c]
            squares += (linear[c] / precision) ** 2
            determined += information[c] / precision
        if learnt_variance(squares, determined) > scale:
            low = 0.5 * (low + high)
        else:
            high = 0.5 * (low + high)
    return exp(0.5 * (low + high))


class Places(NamedTuple):
    """Where the users' own scores of items stand: user by user, and for each by item."""

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
        known = np.unique(items[: 2 * count])
        for t in range(first, last):
            places.item[t] = place + np.searchsorted(known, rows.item[t])
            places.rival[t] = place + np.searchsorted(known, rows.rival[t])
        place += known.shape[0]
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
    """Write what users first, ..., last - 1 think of items beside the factors, one after the other.

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
