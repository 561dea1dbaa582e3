r"""Update steps: the best beliefs of a user, or of an item, given its comparisons and the beliefs about all others.

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

from typing import Any

import numpy as np

from sadrec._core.kernel import inlined, kernel
from sadrec._core.linear import invert, solve
from sadrec._core.moments import Beliefs
from sadrec.training.variational.arrays import Entries, Packed, Rows, pack_users
from sadrec.training.variational.priors import CentredPrior

_PASSES = 10  # over the coordinates of an item's vectors, where tau would be below 0


@kernel
def update_users(
    first: int, last: int, rows: Rows, beliefs: Beliefs, packed: Packed, prior: CentredPrior, mutual: float
) -> None:
    """Update the beliefs about users first, ..., last - 1, given their comparisons.

    ``mutual`` is the share of the items' variance that counts as noise in what a comparison tells of the user.
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
            shared += curvature * share_of_precision(mutual * curvature, variance, along)
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
    prior: CentredPrior,
    mutual: float,
    scale: float,
) -> None:
    """Write the new beliefs about some items, given their comparisons and the present beliefs about all others.

    Into ``share`` goes the share of the comparisons' curvature that counts; ``mutual``: see :func:`update_users`;
    ``scale`` is the variance of pairings where ``rows.sites`` leaves it out, else 0. What is alike for all rows of two
    items is computed once: entries of one other item stand together.
    """
    k, size = beliefs.user.shape[1], packed.twice.shape[0]
    precision, factor, covariance = np.empty((2 * k, 2 * k)), np.empty((2 * k, 2 * k)), np.empty((2 * k, 2 * k))
    linear, total, unknown, by_user = np.empty(2 * k), np.empty((4, size)), np.empty((4, size)), np.empty(k)
    seen, along = np.empty(size), np.empty(size)
    prior_precision = np.concatenate((prior.item_precision, prior.rival_precision))
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
                of_pair += curvature * share_of_precision(mutual * curvature, variance, spread)
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
            precision[h, h] += prior_precision[h]
        solve(precision, linear, factor, mean[at])
        keep_rivals_positive(precision, linear, mean[at])
        share[at] = shared / whole
        widen(precision, prior_precision, share[at], factor, covariance, mean[at], moment[at])


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


@inlined
def centre_of(centre: Any, row: int, h: int, common: float) -> Any:
    """Return the prior mean of a row: predicted by features, or common to all."""
    if centre is None:
        return common
    return centre[row, h]


@inlined
def share_of_precision(noise: float, variance: float, own: float) -> float:
    """Return the share of a comparison's precision that one side gets, given the uncertainty of the other two.

    ``variance`` is that of the margin, ``own`` what of it is the side's.
    """
    return 1.0 / (1.0 + noise * max(variance - max(own, 0.0), 0.0))


@kernel
def widen(
    precision: Any, prior_precision: Any, share: float, factor: Any, covariance: Any, mean: Any, moment: Any
) -> None:
    """Write the second moment for a share of the data's precision, with the mean unchanged."""
    n = mean.shape[0]
    for p in range(n):
        for q in range(n):
            precision[p, q] *= share
        precision[p, p] += (1.0 - share) * prior_precision[p]
    invert(precision, factor, covariance)
    for p in range(n):
        for q in range(n):
            moment[p, q] = covariance[p, q] + mean[p] * mean[q]
