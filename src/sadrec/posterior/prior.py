"""Two stages of a sweep: the prior of xi, eta and tau, and that of the item bias.

Of the first three are drawn:

- The mean of xi in each factor, itself N(0, 1): how far people agree. Its conditional is normal.
- The scales of xi, eta and tau, each half normal with scale 1 itself: random steps in the logarithm.
- If the scales of xi and eta are both learnt, and the means of xi are learnt or 0: xi, its means and its scale are
  multiplied by c; eta and its scale are divided by c. Margins do not change. log c makes random steps.

The bias is ``b_i ~ N(c_i, s^2)`` around a line, ``c_i = a m_i``: m_i is the logarithm of how many different items an
item met, less the mean of all; in sports, those who meet more are better. ``a ~ N(0, 1/16)``, and s is half normal with
scale 1. Drawn are:

- a and s, with ``(b_i - c_i) / s`` fixed, so the bias moves too. Given the latent margins, both are normal. If s comes
  out negative, its size is taken and the differences change sign. This is fast where there is little bias;
- a common part of all b_i, which no preference depends on;
- a and s, with the bias fixed: fast where the data knows it. Both together: Yu and Meng (2011).
"""

import math

import numpy as np

from sadrec._core.kernel import kernel
from sadrec._core.random import normal, uniform
from sadrec._core.types import Doubles
from sadrec.posterior.chain import (
    BIAS_PRECISION,
    BIAS_SLOPE,
    ITEM_PRECISION,
    RIVAL_MEAN,
    RIVAL_PRECISION,
    USER_PRECISION,
    ByUser,
    ChainState,
    Clock,
    stream,
)
from sadrec.posterior.truncated import log_normal_cdf

HYPER, BIAS = 8, 11
"""The stages that draw random numbers, for the keys of their streams."""
STEPS = 4
"""Metropolis steps for each scale in a sweep."""
RISE = 16.0
"""The precision of the slope a of the bias."""
_MEANS = 64  # positions of the stream from here on are for the means


@kernel
def scale_prior(log_scale: float) -> float:
    """Log density of the logarithm of a scale that is half normal."""
    return log_scale - 0.5 * math.exp(2.0 * log_scale)


@kernel
def scale_posterior(log_scale: float, count: float, squares: float, mean: float, positive: bool) -> float:
    """Log density of the logarithm of a scale, given how many numbers have it and how far they lie from their mean."""
    value = scale_prior(log_scale) - count * log_scale - 0.5 * squares * math.exp(-2.0 * log_scale)
    if positive:
        value -= count * log_normal_cdf(mean * math.exp(-log_scale))
    return value


@kernel
def moved_scale(
    key: np.uint64,
    normals: int,
    uniforms: int,
    log_scale: float,
    count: float,
    squares: float,
    mean: float,
    positive: bool,
) -> float:
    """Return the logarithm of a scale after Metropolis steps; their numbers begin at two positions of the stream."""
    now = scale_posterior(log_scale, count, squares, mean, positive)
    for turn in range(STEPS):
        new = log_scale + normal(key, normals + turn) * 1.7 / math.sqrt(count)
        then = scale_posterior(new, count, squares, mean, positive)
        if math.log(uniform(key, uniforms + turn)) < then - now:
            log_scale, now = new, then
    return log_scale


@kernel
def squares_about(values: Doubles, factors: int, means: Doubles, mean: float) -> float:
    """Return the sum of squared differences of the factors from one mean for each of them, or from one for all."""
    total = 0.0
    for row in range(values.shape[0]):
        for h in range(factors):
            total += (values[row, h] - (means[h] if means.shape[0] else mean)) ** 2
    return total


@kernel
def draw_prior(clock: Clock, state: ChainState) -> None:
    """Draw the learnt parts of the prior."""
    key = stream(clock, HYPER)
    prior, mean = state.prior, state.mean
    users, factors = state.xi.shape
    if state.learn[3]:
        weight = 1.0 + users * prior[USER_PRECISION]
        for h in range(factors):
            total = 0.0
            for u in range(users):
                total += state.xi[u, h]
            mean[h] = total * prior[USER_PRECISION] / weight + normal(key, _MEANS + h) / math.sqrt(weight)
    for part in range(3):
        if not state.learn[part]:
            continue
        values = state.xi if part == 0 else (state.eta if part == 1 else state.tau)
        place = (USER_PRECISION, ITEM_PRECISION, RIVAL_PRECISION)[part]
        middle = prior[RIVAL_MEAN] if part == 2 else 0.0
        squares = squares_about(values, factors, mean if part == 0 else mean[:0], middle)
        count = float(values.shape[0] * factors)
        at, log_scale = part * STEPS, -0.5 * math.log(prior[place])
        log_scale = moved_scale(key, at, 64 + at, log_scale, count, squares, middle, part == 2)
        prior[place] = math.exp(-2.0 * log_scale)
    size = 0.0
    for h in range(factors):
        size += mean[h] * mean[h]
    if state.learn[0] and state.learn[1] and (state.learn[3] or size == 0.0):
        shift_scales(key, state, size)


@kernel
def shift_scales(key: np.uint64, state: ChainState, size: float) -> None:
    """Move scale from eta to xi or back, everything else staying as it is. ``size`` is the sum of squared means."""
    prior = state.prior
    user, item = -0.5 * math.log(prior[USER_PRECISION]), -0.5 * math.log(prior[ITEM_PRECISION])
    # A learnt mean is multiplied too, and is N(0, 1) itself.
    count = float(state.mean.shape[0]) if state.learn[3] else 0.0
    log_c = 0.0
    now = scale_prior(user) + scale_prior(item) - 0.5 * size
    for turn in range(STEPS):
        new = log_c + 0.7 * normal(key, 16 + turn)
        then = scale_prior(user + new) + scale_prior(item - new) + count * new - 0.5 * size * math.exp(2.0 * new)
        if math.log(uniform(key, 88 + turn)) < then - now:
            log_c, now = new, then
    c = math.exp(log_c)
    prior[USER_PRECISION] /= c * c
    prior[ITEM_PRECISION] *= c * c
    for h in range(state.mean.shape[0]):
        state.mean[h] *= c
    for u in range(state.xi.shape[0]):
        for h in range(state.xi.shape[1]):
            state.xi[u, h] *= c
    for i in range(state.eta.shape[0]):
        for h in range(state.xi.shape[1]):
            state.eta[i, h] /= c


@kernel
def draw_bias_prior(clock: Clock, state: ChainState, data: ByUser, residual: Doubles) -> None:
    """Draw slope and scale of the bias; ``residual`` is ``z - x``, and is not kept up to date."""
    key, prior = stream(clock, BIAS), state.prior
    eta, centre, meetings, at = state.eta, state.bias_centre, state.meetings, state.tau.shape[1]
    items = eta.shape[0]
    scale = prior[BIAS_PRECISION] ** -0.5
    # Products of the residuals, the differences in meetings and those of (b - c) / s.
    rise_rise, rise_own, own_own, rise_rest, own_rest = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(residual.shape[0]):
        i, j, rest = data.winner[t], data.loser[t], residual[t]
        rise = data.root[t] * (meetings[i] - meetings[j])
        own = data.root[t] * ((eta[i, at] - centre[i]) - (eta[j, at] - centre[j])) / scale
        rise_rise += rise * rise
        rise_own += rise * own
        own_own += own * own
        rise_rest += rise * rest
        own_rest += own * rest
    weight = RISE + rise_rise
    change = (rise_rest - RISE * prior[BIAS_SLOPE]) / weight + normal(key, 0) / math.sqrt(weight)
    weight = 1.0 + own_own
    drawn = (own_rest - change * rise_own + scale * own_own) / weight + normal(key, 1) / math.sqrt(weight)
    prior[BIAS_SLOPE] += change
    level = 0.0
    for i in range(items):
        own = drawn * (eta[i, at] - centre[i]) / scale
        centre[i] += change * meetings[i]
        eta[i, at] = centre[i] + own
        level += own / items
    scale = abs(drawn)
    level -= normal(key, 2) * scale / math.sqrt(items)
    rise_rise, rise_own = 0.0, 0.0
    for i in range(items):
        eta[i, at] -= level
        rise_rise += meetings[i] * meetings[i]
        rise_own += meetings[i] * (eta[i, at] - centre[i])
    weight = RISE + rise_rise / (scale * scale)
    slope = (rise_own + prior[BIAS_SLOPE] * rise_rise) / (scale * scale) / weight + normal(key, 3) / math.sqrt(weight)
    change = slope - prior[BIAS_SLOPE]
    prior[BIAS_SLOPE] = slope
    squares = 0.0
    for i in range(items):
        centre[i] += change * meetings[i]
        squares += (eta[i, at] - centre[i]) ** 2
    log_scale = moved_scale(key, 8, 64, math.log(scale), float(items), squares, 0.0, False)
    prior[BIAS_PRECISION] = math.exp(-2.0 * log_scale)
