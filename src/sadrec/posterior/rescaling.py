"""One stage of a sweep: moves that leave every preference as it is.

The wedge product of (eta^h, tau^h) does not change under a 2 x 2 matrix of determinant 1, nor x when xi^h takes up a
factor that eta^h gives away. Along these lines the likelihood is constant, so the prior alone decides. Stages that move
one user or one item hardly move along them. Each move here is a Metropolis or Gibbs step on one such line, its density
taken with respect to the invariant measure of the group:

- ``eta^h + c tau^h``: normal in c, drawn exactly;
- ``(a eta^h, tau^h / a)`` and ``(c xi^h, eta^h / c)``: random steps in the logarithm;
- ``(-xi^h, -eta^h)``, which matters when the prior of xi is not symmetric about 0.
"""

import math

import numpy as np

from sadrec._core.kernel import kernel
from sadrec._core.random import normal, uniform
from sadrec._core.types import Doubles
from sadrec.posterior.chain import (
    ITEM_PRECISION,
    RIVAL_MEAN,
    RIVAL_PRECISION,
    USER_PRECISION,
    ChainState,
    Clock,
    stream,
)

RESCALE = 7
"""The stage that draws random numbers, for the key of its stream."""
STEPS = 4
"""Metropolis steps on each line in a sweep."""
_NUMBERS = 64  # positions of the stream reserved for one factor


@kernel
def scale_density(log_a: float, log_c: float, sums: Doubles, prior: Doubles) -> float:
    """Log density, on the lines of scales, of ``c xi``, ``(a / c) eta`` and ``tau / a``.

    ``sums``: [0], [1] linear and quadratic coefficient of c in the prior of xi; [2] sum of eta^2; [3] sum of tau;
    [4] sum of tau^2; [5] how many numbers c multiplies, minus how many it divides.
    """
    c, a = math.exp(log_c), math.exp(log_a)
    of_item = prior[ITEM_PRECISION] * sums[2] * (a / c) ** 2
    value: float = c * (sums[0] - 0.5 * c * sums[1]) - 0.5 * of_item + sums[5] * log_c
    if not math.isinf(prior[RIVAL_PRECISION]):
        value += prior[RIVAL_PRECISION] / a * (prior[RIVAL_MEAN] * sums[3] - 0.5 * sums[4] / a)
    return value


@kernel
def add_up(h: int, state: ChainState, sums: Doubles) -> None:
    """Fill in the sums of :func:`scale_density` for a factor. A learnt mean of xi is multiplied with xi."""
    sums[:] = 0.0
    weight, mean = state.prior[USER_PRECISION], state.mean[h]
    learnt = state.learn[3]
    for u in range(state.xi.shape[0]):
        value = state.xi[u, h]
        if learnt:
            sums[1] += weight * (value - mean) ** 2
        else:
            sums[0] += weight * mean * value
            sums[1] += weight * value * value
    for i in range(state.eta.shape[0]):
        sums[2] += state.eta[i, h] ** 2
        sums[3] += state.tau[i, h]
        sums[4] += state.tau[i, h] ** 2
    sums[5] = float(state.xi.shape[0] - state.eta.shape[0])
    if learnt:
        sums[1] += mean * mean
        sums[5] += 1.0


@kernel
def rescale_factors(clock: Clock, state: ChainState) -> None:
    """Move every factor along the lines on which preferences are constant."""
    prior, xi, eta, tau = state.prior, state.xi, state.eta, state.tau
    n, factors = xi.shape
    m = eta.shape[0]
    key = stream(clock, RESCALE)
    sums = np.empty(6)
    rivals = not math.isinf(prior[RIVAL_PRECISION])
    for h in range(factors):
        at = h * _NUMBERS
        square = 0.0
        product = 0.0
        for i in range(m):
            square += tau[i, h] * tau[i, h]
            product += tau[i, h] * eta[i, h]
        if square > 0.0:
            c = -product / square + normal(key, at) / math.sqrt(square * prior[ITEM_PRECISION])
            for i in range(m):
                eta[i, h] += c * tau[i, h]
        add_up(h, state, sums)
        log_a, log_c = 0.0, 0.0
        now = scale_density(log_a, log_c, sums, prior)
        for turn in range(2 * STEPS):
            new_a, new_c = log_a, log_c
            noise = normal(key, at + 1 + turn)
            if turn % 2 == 0:
                new_c += noise * 1.7 / math.sqrt(n + m)
            elif rivals:
                new_a += noise * 1.4 / math.sqrt(m)
            then = scale_density(new_a, new_c, sums, prior)
            if math.log(uniform(key, 2 * at + 32 + turn)) < then - now:
                log_a, log_c, now = new_a, new_c, then
        factor = math.exp(log_c)
        if state.learn[3]:
            state.mean[h] *= factor
        elif math.log(uniform(key, 2 * at + 60)) < -2.0 * factor * sums[0]:
            factor = -factor
        for u in range(n):
            xi[u, h] *= factor
        for i in range(m):
            eta[i, h] *= math.exp(log_a) / factor
            tau[i, h] *= math.exp(-log_a)
