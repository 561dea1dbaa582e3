"""One stage of a sweep: what is learnt of the prior itself.

- The mean of xi in each factor, itself N(0, 1): how far people agree. Its conditional is normal.
- The scales of xi, eta and tau, each half normal with scale 1 itself: random steps in the logarithm.
- When the scales of xi and eta are both learnt, multiplying xi, its means and its scale by c and dividing eta and its
  scale by c changes nothing but these priors: random steps in log c.
"""

import math

import numpy as np

from sadrec._kernel import kernel
from sadrec._random import normal, uniform
from sadrec._types import Doubles
from sadrec.posterior.layout import Clock, State, stream
from sadrec.posterior.truncated import log_normal_cdf

HYPER = 8
"""The stage that draws random numbers, for the key of its stream."""
STEPS = 4
"""How many random steps are tried for each scale in a sweep."""
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
def squares_about(values: Doubles, factors: int, means: Doubles, mean: float) -> float:
    """Return the sum of squared differences of the factors from one mean for each of them, or from one for all."""
    total = 0.0
    for row in range(values.shape[0]):
        for h in range(factors):
            total += (values[row, h] - (means[h] if means.shape[0] else mean)) ** 2
    return total


@kernel
def draw_prior(clock: Clock, state: State) -> None:
    """Draw what is learnt of the prior."""
    key = stream(clock, HYPER)
    prior, mean = state.prior, state.mean
    users, factors = state.xi.shape
    if state.learn[3]:
        weight = 1.0 + users * prior[0]
        for h in range(factors):
            total = 0.0
            for u in range(users):
                total += state.xi[u, h]
            mean[h] = total * prior[0] / weight + normal(key, _MEANS + h) / math.sqrt(weight)
    for part in range(3):
        if not state.learn[part]:
            continue
        values = state.xi if part == 0 else (state.eta if part == 1 else state.tau)
        place = 3 if part == 2 else part
        middle = prior[2] if part == 2 else 0.0
        squares = squares_about(values, factors, mean if part == 0 else mean[:0], middle)
        count = float(values.shape[0] * factors)
        log_scale = -0.5 * math.log(prior[place])
        now = scale_posterior(log_scale, count, squares, middle, part == 2)
        for turn in range(STEPS):
            at = part * STEPS + turn
            new = log_scale + normal(key, at) * 1.7 / math.sqrt(count)
            then = scale_posterior(new, count, squares, middle, part == 2)
            if math.log(uniform(key, 64 + at)) < then - now:
                log_scale, now = new, then
        prior[place] = math.exp(-2.0 * log_scale)
    size = 0.0
    for h in range(factors):
        size += mean[h] * mean[h]
    if state.learn[0] and state.learn[1] and (state.learn[3] or size == 0.0):
        shift_scales(key, state, size)


@kernel
def shift_scales(key: np.uint64, state: State, size: float) -> None:
    """Move scale from eta to xi or back, everything else staying as it is. ``size`` is the sum of squared means."""
    prior = state.prior
    user, item = -0.5 * math.log(prior[0]), -0.5 * math.log(prior[1])
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
    prior[0] /= c * c
    prior[1] *= c * c
    for h in range(state.mean.shape[0]):
        state.mean[h] *= c
    for u in range(state.xi.shape[0]):
        for h in range(state.xi.shape[1]):
            state.xi[u, h] *= c
    for i in range(state.eta.shape[0]):
        for h in range(state.xi.shape[1]):
            state.eta[i, h] /= c
