"""One stage of a sweep: the vectors eta and tau of every item, one item after the other.

``x`` is linear in (eta_i, tau_i) together. With features ``a_t = +- s_t (xi_u * tau_o, -xi_u * eta_o)`` over the
comparisons of item i with others o, and P the 2k x 2k precision, the conditional distribution of the pair is
``N(P^-1 q, P^-1)`` restricted to tau >= 0, so with P = L L':

- First tau_i is drawn, with eta_i integrated out. Its distribution is normal with precision B B', where B is the lower
  right k x k block of L, restricted to tau_i >= 0. One draw of the unrestricted normal is tried; it is taken if no
  entry is negative. Otherwise the coordinates of the present tau_i are drawn one at a time, ``PASSES`` times. Which
  case happens does not depend on the present tau_i, so the distribution is kept.
- Then eta_i is drawn from its normal distribution given tau_i.
- At last eta_i, tau_i and the latent margins of the item are multiplied by a common factor g, drawn from its
  conditional distribution (cf. users.py).

An item bias is one more entry of eta_i, whose xi and tau_o are 1. Those of the others, o, are then a part of the
preferences that g does not multiply.
"""

import math

import numpy as np

from sadrec._core.kernel import kernel
from sadrec._core.linear import factorise, solve_lower, solve_upper
from sadrec._core.random import normal, uniform
from sadrec._core.types import Doubles
from sadrec.posterior.chain import (
    BIAS_PRECISION,
    ITEM_PRECISION,
    RIVAL_MEAN,
    RIVAL_PRECISION,
    ByItem,
    ChainState,
    Clock,
    stream,
)
from sadrec.posterior.truncated import positive_normal
from sadrec.posterior.users import BLOCK, add_products, fitted, log_scale_step

RIVAL, RIVAL_COORDINATE, ITEM, ITEM_SCALE = 3, 4, 5, 6
"""Stages that draw random numbers, for the keys of their streams."""
PASSES = 3
"""Number of passes over the coordinates of tau when it lies near the border of the orthant."""


@kernel
def gather_item(first: int, last: int, state: ChainState, data: ByItem, features: Doubles) -> None:
    """Put the features of entries first, ..., last - 1 (at most a block) into columns; zeros behind them."""
    factors, own = state.tau.shape[1], state.eta.shape[1]
    for b in range(last - first):
        e = first + b
        o = data.other[e]
        xi_u, eta_o, tau_o = state.xi[data.user[e]], state.eta[o], state.tau[o]
        s = np.float64(data.sign[e])
        for h in range(factors):
            v = s * xi_u[h]
            features[h, b] = v * tau_o[h]
            features[own + h, b] = -v * eta_o[h]
        if own > factors:
            features[factors, b] = s
    features[:, last - first :] = 0.0


@kernel
def item_conditional(
    i: int, size: int, state: ChainState, data: ByItem, residual: Doubles, precision: Doubles, linear: Doubles
) -> None:
    """Write ``sum a a'`` (lower triangle) and ``sum a (residual + a . theta)`` for an item, without the prior.

    ``size`` is 2k for the pair (eta, tau), or k for eta alone, tau being given; and 1 more with a bias.
    """
    own = state.eta.shape[1]
    features, part = np.zeros((own + state.tau.shape[1], BLOCK)), np.empty(BLOCK)
    precision[:], linear[:] = 0.0, 0.0
    for first in range(data.start[i], data.start[i + 1], BLOCK):
        last = min(first + BLOCK, data.start[i + 1])
        gather_item(first, last, state, data, features)
        for b in range(last - first):
            part[b] = residual[data.row[first + b]]
        part[last - first :] = 0.0
        add_products(features, part, size, precision, linear)
    for p in range(size):
        total = linear[p]
        for q in range(size):
            entry = precision[p, q] if q <= p else precision[q, p]
            total += entry * (state.eta[i, q] if q < own else state.tau[i, q - own])
        linear[p] = total


@kernel
def draw_orthant(
    i: int, key: np.uint64, coordinate_key: np.uint64, factor: Doubles, rotated: Doubles, current: Doubles
) -> None:
    """Draw tau_i >= 0 from the normal with precision ``L L'`` and mean ``L'^-1 rotated``, in place of ``current``."""
    size = current.shape[0]
    proposal = np.empty(size)
    for h in range(size):
        proposal[h] = rotated[h] + normal(key, i * size + h)
    solve_upper(factor, proposal, size)
    if proposal.min() >= 0.0:
        current[:] = proposal
        return
    for turn in range(PASSES):
        for p in range(size):
            # Row p of the precision, and of its product with the mean, from the factor.
            diagonal = 0.0
            total = 0.0
            for r in range(p + 1):
                diagonal += factor[p, r] * factor[p, r]
                total += factor[p, r] * rotated[r]
            for q in range(size):
                if q != p:
                    entry = 0.0
                    for r in range(min(p, q) + 1):
                        entry += factor[p, r] * factor[q, r]
                    total -= entry * current[q]
            deviation = 1.0 / math.sqrt(diagonal)
            u = uniform(coordinate_key, (i * PASSES + turn) * size + p)
            current[p] = deviation * positive_normal(total * deviation, u)


@kernel
def others_part(e: int, state: ChainState, data: ByItem) -> float:
    """Return what the bias of the other item adds to the margin of an entry."""
    factors = state.tau.shape[1]
    return -np.float64(data.sign[e]) * state.eta[data.other[e], factors] if state.eta.shape[1] > factors else 0.0


@kernel
def draw_items(clock: Clock, state: ChainState, data: ByItem, residual: Doubles) -> None:
    """Draw (eta_i, tau_i) for every item in turn, keeping ``residual = z - x``.

    A precision of infinity for tau means that tau stays as it is (BPR).
    """
    eta, tau = state.eta, state.tau
    items, own = eta.shape
    factors = tau.shape[1]
    prior = state.prior
    rivals, bias = not math.isinf(prior[RIVAL_PRECISION]), own > factors
    size = own + factors if rivals else own
    rival_key, coordinate_key = stream(clock, RIVAL), stream(clock, RIVAL_COORDINATE)
    item_key, scale_key = stream(clock, ITEM), stream(clock, ITEM_SCALE)
    precision, linear = np.empty((own + factors, own + factors)), np.empty(own + factors)
    step, features, x = np.empty(own + factors), np.zeros((own + factors, BLOCK)), np.empty(BLOCK)
    prior_precision, prior_mean = np.full(own + factors, prior[ITEM_PRECISION]), np.zeros(own + factors)
    prior_precision[own:], prior_mean[own:] = prior[RIVAL_PRECISION], prior[RIVAL_MEAN]
    if bias:
        prior_precision[factors] = prior[BIAS_PRECISION]
    for i in range(items):
        item_conditional(i, size, state, data, residual, precision, linear)
        if bias:
            prior_mean[factors] = state.bias_centre[i]
        for p in range(size):
            precision[p, p] += prior_precision[p]
            linear[p] += prior_precision[p] * prior_mean[p]
        step[:own], step[own:] = eta[i], tau[i]
        factorise(precision, size)
        solve_lower(precision, linear, size)
        if rivals:
            draw_orthant(i, rival_key, coordinate_key, precision[own:, own:], linear[own:], tau[i])
            for q in range(factors):
                for h in range(own):
                    linear[h] -= precision[own + q, h] * tau[i, q]
        for h in range(own):
            linear[h] += normal(item_key, i * own + h)
        solve_upper(precision, linear, own)
        for h in range(own):
            eta[i, h] = linear[h]
            step[h] = eta[i, h] - step[h]
        for h in range(factors):
            step[own + h] = tau[i, h] - step[own + h]
        quadratic, given = 0.0, 0.0
        for first in range(data.start[i], data.start[i + 1], BLOCK):
            last = min(first + BLOCK, data.start[i + 1])
            gather_item(first, last, state, data, features)
            fitted(features, step, x)
            for b in range(last - first):
                e = first + b
                rest = residual[data.row[e]] - x[b]
                residual[data.row[e]] = rest
                others = others_part(e, state, data)
                quadratic += (rest + others) ** 2
                given += (rest + others) * others
        if rivals:
            for h in range(own):
                quadratic += prior_precision[h] * eta[i, h] * eta[i, h]
                given += prior_precision[h] * prior_mean[h] * eta[i, h]
            for h in range(factors):
                quadratic += prior[RIVAL_PRECISION] * tau[i, h] * tau[i, h]
                given += prior[RIVAL_PRECISION] * prior[RIVAL_MEAN] * tau[i, h]
            count = float(data.start[i + 1] - data.start[i] + own + factors)
            g = log_scale_step(count, quadratic, given, normal(scale_key, 2 * i), uniform(scale_key, 4 * i + 2))
            if g != 1.0:
                for h in range(own):
                    eta[i, h] *= g
                for h in range(factors):
                    tau[i, h] *= g
                for e in range(data.start[i], data.start[i + 1]):
                    others = others_part(e, state, data)
                    residual[data.row[e]] = g * (residual[data.row[e]] + others) - others
