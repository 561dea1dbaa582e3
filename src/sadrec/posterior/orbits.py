"""One stage of a sweep: moves that leave every preference as it is, and the scales of the prior.

The wedge product of (eta^h, tau^h) does not change under a 2 x 2 matrix of determinant 1, nor x when xi^h takes up a
factor that eta^h gives away. Along these lines the likelihood is constant, only the prior decides, and a sweep over
single users and items hardly moves: items hold each other in place. Each move here is a Metropolis or Gibbs step on one
such line, its density taken with respect to the invariant measure of the group:

- ``eta^h + c tau^h``: normal in c, drawn exactly;
- ``(a eta^h, tau^h / a)`` and ``(c xi^h, eta^h / c)``: random steps in the logarithm;
- ``(-xi^h, -eta^h)``, when the prior of xi is not symmetric about 0.
"""

import math

import numpy as np

from sadrec._kernel import kernel
from sadrec.posterior.counters import normal, stream, uniform
from sadrec.posterior.layout import Clock, Floats, State
from sadrec.posterior.truncated import log_normal_cdf

ORBIT, HYPER = 7, 8
"""Stages that draw random numbers, for the keys of their streams."""
STEPS = 4
"""How many random steps are tried on each line in a sweep."""
_NUMBERS = 64  # positions of the stream reserved for one factor


@kernel
def scale_density(log_a: float, log_c: float, sums: Floats, prior: Floats, users: float, items: float) -> float:
    """Log density, on the lines of scales, of ``c xi``, ``(a / c) eta`` and ``tau / a``.

    ``sums`` holds the sums over the factor of xi, xi^2, eta^2, tau and tau^2.
    """
    c, a = math.exp(log_c), math.exp(log_a)
    value: float = prior[1] * c * (prior[0] * sums[0] - 0.5 * c * sums[1]) - 0.5 * prior[2] * sums[2] * (a / c) ** 2
    if not math.isinf(prior[4]):
        value += prior[4] / a * (prior[3] * sums[3] - 0.5 * sums[4] / a)
    value += (users - items) * log_c
    return value


@kernel
def move_along_orbits(clock: Clock, state: State) -> None:
    """Move every factor along the lines on which preferences are constant."""
    prior, xi, eta, tau = state.prior, state.xi, state.eta, state.tau
    n, factors = xi.shape
    m = eta.shape[0]
    key = stream(clock, ORBIT)
    sums = np.empty(5)
    rivals = not math.isinf(prior[4])
    for h in range(factors):
        at = h * _NUMBERS
        square = 0.0
        product = 0.0
        for i in range(m):
            square += tau[i, h] * tau[i, h]
            product += tau[i, h] * eta[i, h]
        if square > 0.0:
            c = -product / square + normal(key, at) / math.sqrt(square * prior[2])
            for i in range(m):
                eta[i, h] += c * tau[i, h]
        for p in range(5):
            sums[p] = 0.0
        for u in range(n):
            sums[0] += xi[u, h]
            sums[1] += xi[u, h] * xi[u, h]
        for i in range(m):
            sums[2] += eta[i, h] * eta[i, h]
            sums[3] += tau[i, h]
            sums[4] += tau[i, h] * tau[i, h]
        log_a, log_c = 0.0, 0.0
        now = scale_density(log_a, log_c, sums, prior, n, m)
        for turn in range(2 * STEPS):
            new_a, new_c = log_a, log_c
            noise = normal(key, at + 1 + turn)
            if turn % 2 == 0:
                new_c += noise * 1.7 / math.sqrt(n + m)
            elif rivals:
                new_a += noise * 1.4 / math.sqrt(m)
            then = scale_density(new_a, new_c, sums, prior, n, m)
            if math.log(uniform(key, 2 * at + 32 + turn)) < then - now:
                log_a, log_c, now = new_a, new_c, then
        sign = 1.0
        if prior[0] != 0.0:
            gain = -2.0 * prior[1] * prior[0] * math.exp(log_c) * sums[0]
            if math.log(uniform(key, 2 * at + 60)) < gain:
                sign = -1.0
        for u in range(n):
            xi[u, h] *= sign * math.exp(log_c)
        for i in range(m):
            eta[i, h] *= sign * math.exp(log_a - log_c)
            tau[i, h] *= math.exp(-log_a)


@kernel
def hyper_density(log_scale: float, count: float, squares: float, mean: float, positive: bool) -> float:
    """Log density of the logarithm of a learnt prior scale, itself half normal with scale 1."""
    scale = math.exp(log_scale)
    value = log_scale - 0.5 * scale * scale - count * log_scale - 0.5 * squares / (scale * scale)
    if positive:
        value -= count * log_normal_cdf(mean / scale)
    return value


@kernel
def draw_scales(clock: Clock, state: State) -> None:
    """Draw the scales of the prior that are to be learnt (of xi, eta, tau), by random steps in the logarithm."""
    prior = state.prior
    key = stream(clock, HYPER)
    for part in range(3):
        if not state.learn[part]:
            continue
        values = state.xi if part == 0 else (state.eta if part == 1 else state.tau)
        place = 1 if part == 0 else (2 if part == 1 else 4)
        mean = prior[0] if part == 0 else (0.0 if part == 1 else prior[3])
        squares = 0.0
        for row in range(values.shape[0]):
            for h in range(values.shape[1]):
                squares += (values[row, h] - mean) ** 2
        count = float(values.size)
        log_scale = -0.5 * math.log(prior[place])
        now = hyper_density(log_scale, count, squares, mean, part == 2)
        for turn in range(STEPS):
            at = part * STEPS + turn
            new = log_scale + normal(key, at) * 1.7 / math.sqrt(count)
            then = hyper_density(new, count, squares, mean, part == 2)
            if math.log(uniform(key, 64 + at)) < then - now:
                log_scale, now = new, then
        prior[place] = math.exp(-2.0 * log_scale)
