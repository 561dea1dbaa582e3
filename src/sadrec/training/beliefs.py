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
others (``share``); means are right as they are.

The bias is the first factor, with xi and tau held at 1.
"""

from math import exp, pi, sqrt, tanh
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._moments import Beliefs, pair_moment
from sadrec._types import Doubles

HELD = 1e9
"""The precision of what does not move."""
_FLATTEST = 1e-5
_PASSES = 10  # over the coordinates of an item's vectors, where tau would be below 0


class Rows(NamedTuple):
    """Comparisons in the order of their users, and the parabola of each.

    ``start`` says where those of each user begin. ``curvature`` and ``slope`` are those of the parabola, ``mean`` and
    ``variance`` those of the margin by the factors, ``offset`` and ``offset_variance`` what is added to it (see
    ``variational.py``). ``share`` says how much of what a comparison tells counts for the winner, the loser and the
    user, given how little is known of the other two.
    """

    start: NDArray[np.int64]
    user: NDArray[np.int32]
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    weight: Doubles
    curvature: Doubles
    slope: Doubles
    mean: Doubles
    variance: Doubles
    offset: Doubles
    offset_variance: Doubles
    share: Doubles  # (rows, 3)


class Entries(NamedTuple):
    """The same comparisons item by item, two entries for each; ``sign`` is -1 where the item lost."""

    start: NDArray[np.int64]
    row: NDArray[np.int32]
    other: NDArray[np.int32]
    sign: Doubles


class Prior(NamedTuple):
    """What is expected before any data, factor by factor: eta around 0, tau around 1, xi around its mean."""

    user_mean: Doubles
    user_precision: Doubles
    item_precision: Doubles
    rival_precision: Doubles


@kernel
def parabola(mean: float, variance: float, bound: bool) -> tuple[float, float]:
    """Return curvature and slope of ``log sigmoid(x)`` where x is normal: ``slope x - curvature x^2 / 2 + const``.

    ``bound`` takes the parabola below the curve that touches it (Jaakkola and Jordan, 2000), which always improves the
    beliefs but makes them too narrow; else the expected curve is matched, with the logistic integral of MacKay (1992).
    """
    if bound:
        size = sqrt(max(mean * mean + variance, 1e-12))
        return (tanh(0.5 * size) / (2.0 * size) if size > 1e-3 else 0.25), 0.5
    damping = 1.0 / sqrt(1.0 + pi * variance / 8.0)
    p = 1.0 / (1.0 + exp(-damping * mean))
    curvature = max(damping * p * (1.0 - p), _FLATTEST)
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
def fit_parabolas(first: int, last: int, rows: Rows, beliefs: Beliefs, bound: bool, step: float, mutual: float) -> None:
    """Fit the parabolas of comparisons first, ..., last - 1 to what is believed of their margins.

    ``mutual`` is how much of the variance of its other sides is noise in what a comparison tells of one; where it is
    negative, shares are left as they are.
    """
    k = beliefs.user.shape[1]
    to_item, to_rival, to_user = np.empty(2 * k), np.empty(2 * k), np.empty(k)
    for t in range(first, last):
        variance = rows.variance[t] + rows.offset_variance[t]
        curvature, slope = parabola(rows.mean[t] + rows.offset[t], variance, bound)
        weight = step * rows.weight[t]
        rows.curvature[t] = weight * curvature + (1.0 - step) * rows.curvature[t]
        rows.slope[t] = weight * slope + (1.0 - step) * rows.slope[t]
        if mutual < 0.0:
            continue
        u, i, j = rows.user[t], rows.winner[t], rows.loser[t]
        user, item, rival = beliefs.user[u], beliefs.item[i], beliefs.item[j]
        for h in range(k):
            to_item[h], to_item[k + h] = user[h] * rival[k + h], -user[h] * rival[h]
            to_rival[h], to_rival[k + h] = user[h] * item[k + h], -user[h] * item[h]
            to_user[h] = item[h] * rival[k + h] - rival[h] * item[k + h]
        noise = mutual * rows.curvature[t]
        share = rows.share[t]
        share[0] = 1.0 / (1.0 + noise * max(variance - variance_along(item, beliefs.item_moment[i], to_item), 0.0))
        share[1] = 1.0 / (1.0 + noise * max(variance - variance_along(rival, beliefs.item_moment[j], to_rival), 0.0))
        share[2] = 1.0 / (1.0 + noise * max(variance - variance_along(user, beliefs.user_moment[u], to_user), 0.0))


@kernel
def update_users(first: int, last: int, rows: Rows, beliefs: Beliefs, prior: Prior) -> None:
    """Bring the beliefs of users first, ..., last - 1 into agreement with their comparisons."""
    k = beliefs.user.shape[1]
    precision, moment, factor = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    covariance, linear = np.empty((k, k)), np.empty(k)
    for u in range(first, last):
        for h in range(k):
            linear[h] = prior.user_precision[h] * prior.user_mean[h]
            for g in range(k):
                precision[h, g] = 0.0
            precision[h, h] = prior.user_precision[h]
        whole, shared = 0.0, 0.0
        for t in range(rows.start[u], rows.start[u + 1]):
            i, j = rows.winner[t], rows.loser[t]
            item, rival = beliefs.item[i], beliefs.item[j]
            pair_moment(beliefs.item_moment[i], beliefs.item_moment[j], moment)
            curvature = rows.curvature[t]
            slope = rows.slope[t] - curvature * rows.offset[t]
            whole += curvature
            shared += curvature * rows.share[t, 2]
            for h in range(k):
                linear[h] += slope * (item[h] * rival[k + h] - rival[h] * item[k + h])
                row, other = precision[h], moment[h]
                for g in range(k):
                    row[g] += curvature * other[g]
        believe(precision, linear, factor, covariance, beliefs.user[u], beliefs.user_moment[u])
        if whole > 0.0:
            share = shared / whole
            widen(precision, prior.user_precision, share, factor, covariance, beliefs.user[u], beliefs.user_moment[u])


@kernel
def update_items(
    items: Any, mean: Any, moment: Any, rows: Rows, entries: Entries, beliefs: Beliefs, prior: Prior, same_users: bool
) -> None:
    """Write what is to be believed of some items, given their comparisons and the present beliefs of all others.

    ``same_users``: all users have the moments of the first (there is but one), which saves a product per entry.
    """
    k = beliefs.user.shape[1]
    size = 2 * k
    total, precision, factor = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    covariance, linear = np.empty((size, size)), np.empty(size)
    expected = np.concatenate((prior.item_precision, prior.rival_precision))
    for at in range(items.shape[0]):
        i = items[at]
        for h in range(k):
            linear[h] = 0.0
            linear[k + h] = prior.rival_precision[h]
        for h in range(size):
            for g in range(size):
                total[h, g] = 0.0
        whole, shared = 0.0, 0.0
        for e in range(entries.start[i], entries.start[i + 1]):
            t, other = entries.row[e], entries.other[e]
            u = rows.user[t]
            curvature = rows.curvature[t]
            slope = entries.sign[e] * (rows.slope[t] - curvature * rows.offset[t])
            whole += curvature
            shared += curvature * rows.share[t, 0 if entries.sign[e] > 0 else 1]
            user, rival, rival_moment = beliefs.user[u], beliefs.item[other], beliefs.item_moment[other]
            for h in range(k):
                linear[h] += slope * user[h] * rival[k + h]
                linear[k + h] -= slope * user[h] * rival[h]
            if same_users:
                for h in range(size):
                    row, source = total[h], rival_moment[h]
                    for g in range(size):
                        row[g] += curvature * source[g]
            else:
                for h in range(k):
                    weights = beliefs.user_moment[u, h]
                    row, source, row_tau, source_tau = total[h], rival_moment[h], total[k + h], rival_moment[k + h]
                    for g in range(k):
                        weight = curvature * weights[g]
                        row[g] += weight * source[g]
                        row[k + g] += weight * source[k + g]
                        row_tau[g] += weight * source_tau[g]
                        row_tau[k + g] += weight * source_tau[k + g]
        # The features of (eta_i, tau_i) are (tau_o, -eta_o).
        for h in range(k):
            for g in range(k):
                weight = beliefs.user_moment[0, h, g] if same_users else 1.0
                precision[h, g] = weight * total[k + h, k + g]
                precision[h, k + g] = -weight * total[k + h, g]
                precision[k + h, g] = -weight * total[h, k + g]
                precision[k + h, k + g] = weight * total[h, g]
        for h in range(size):
            precision[h, h] += expected[h]
        believe(precision, linear, factor, covariance, mean[at], moment[at])
        keep_rivals_positive(precision, linear, mean[at])
        widen(precision, expected, shared / whole, factor, covariance, mean[at], moment[at])


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
def update_own_scores(
    start: Any, row: Any, other: Any, sign: Any, rows: Rows, rest: Any, precision: float, mean: Any, variance: Any
) -> None:
    """Write what people think of items beside the factors, one after the other, given the ``rest`` of all margins.

    The entries of each (user, item) are comparisons (``row``) with another item (``other`` is the place of that one),
    won or lost (``sign``).
    """
    for c in range(mean.shape[0]):
        information, linear = precision, 0.0
        for e in range(start[c], start[c + 1]):
            curvature = rows.curvature[row[e]]
            information += curvature
            linear += sign[e] * (rows.slope[row[e]] - curvature * rest[row[e]]) + curvature * mean[other[e]]
        mean[c], variance[c] = linear / information, 1.0 / information
