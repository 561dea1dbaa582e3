"""One stage of a sweep: what is learnt of the prior of the item bias.

``b_i ~ N(c_i, s^2)`` around a line, ``c_i = a m_i``: m_i is the logarithm of how many
different items an item met, less the mean of all; in sports, those who meet more are better. ``a ~ N(0, 1/16)``, and s
is half normal with scale 1. Drawn are:

- a and s with the differences ``(b_i - c_i) / s`` held, so that the bias moves with them: both have normal conditionals
  given the margins (s has a sign here, which the differences take up). This is fast where there is little bias;
- a common part of all b_i, which no preference depends on;
- a and s with the bias held: fast where the data knows it. Together see Yu and Meng (2011).
"""

import math

from sadrec._kernel import kernel
from sadrec._random import normal, uniform
from sadrec._types import Doubles
from sadrec.posterior.hyper import STEPS, scale_posterior
from sadrec.posterior.layout import ByUser, Clock, State, stream

BIAS = 11
"""The stage that draws random numbers, for the key of its stream."""
RISE = 16.0
"""The precision of the slope a."""


@kernel
def draw_bias_prior(clock: Clock, state: State, data: ByUser, residual: Doubles) -> None:
    """Draw slope and scale of the bias; ``residual`` is ``z - x``, and is not kept up to date."""
    key, prior = stream(clock, BIAS), state.prior
    eta, centre, meetings, at = state.eta, state.bias_centre, state.meetings, state.tau.shape[1]
    items = eta.shape[0]
    scale = prior[4] ** -0.5
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
    more = (rise_rest - RISE * prior[5]) / weight + normal(key, 0) / math.sqrt(weight)
    weight = 1.0 + own_own
    drawn = (own_rest - more * rise_own + scale * own_own) / weight + normal(key, 1) / math.sqrt(weight)
    prior[5] += more
    level = 0.0
    for i in range(items):
        own = drawn * (eta[i, at] - centre[i]) / scale
        centre[i] += more * meetings[i]
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
    slope = (rise_own + prior[5] * rise_rise) / (scale * scale) / weight + normal(key, 3) / math.sqrt(weight)
    more = slope - prior[5]
    prior[5] = slope
    squares = 0.0
    for i in range(items):
        centre[i] += more * meetings[i]
        squares += (eta[i, at] - centre[i]) ** 2
    log_scale = math.log(scale)
    now = scale_posterior(log_scale, float(items), squares, 0.0, False)
    for turn in range(STEPS):
        new = log_scale + normal(key, 8 + turn) * 1.7 / math.sqrt(items)
        then = scale_posterior(new, float(items), squares, 0.0, False)
        if math.log(uniform(key, 64 + turn)) < then - now:
            log_scale, now = new, then
    prior[4] = math.exp(-2.0 * log_scale)
