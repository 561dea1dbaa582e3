"""One stage of a sweep: the latent margins z of every comparison and the vectors xi of every user.

Given the items, users do not depend on each other. For user u with comparisons t (winner i, loser j), features
``a_t = s_t (eta_i * tau_j - eta_j * tau_i)`` and ``P = sum a_t a_t' + lambda I``:

- ``z_t ~ N(a_t . xi_u, 1)`` restricted to z > 0;
- ``z <- g z``, g drawn from its conditional distribution with xi_u integrated out (the parameter expansion of Liu and
  Wu, 1999): without it strong preferences grow and shrink by tiny steps only;
- ``xi_u ~ N(P^-1 (sum a_t z_t + lambda mu), P^-1)``.

With a bias the margin has one more part, ``o_t = s_t (b_i - b_j)``. xi_u is then drawn with ``g z_t - o_t`` in place
of ``z_t``.

``s_t`` is the square root of the precision of a comparison: 1, or less for a fraction of one (see triples.py).
"""

import math

import numpy as np

from sadrec._core.kernel import kernel
from sadrec._core.linear import factorise, solve_lower, solve_upper
from sadrec._core.random import normal, uniform
from sadrec._core.types import Doubles
from sadrec.posterior.chain import USER_PRECISION, ByUser, ChainState, Clock, stream
from sadrec.posterior.truncated import positive_normal

LATENT, USER, USER_SCALE = 0, 1, 2
"""Stages that draw random numbers, for the keys of their streams."""
BLOCK = 64
"""The number of observations gathered before their products are added up."""


@kernel
def add_products(features: Doubles, targets: Doubles, size: int, precision: Doubles, linear: Doubles) -> None:
    """Add ``F F'`` to the lower triangle of ``precision`` and ``F y`` to ``linear``.

    ``features`` holds one row of length :data:`BLOCK` per coefficient, so that every sum runs along contiguous numbers,
    in registers; places past the last observation hold zeros.
    """
    for p in range(size):
        left = features[p]
        total = 0.0
        for b in range(BLOCK):
            total += left[b] * targets[b]
        linear[p] += total
        row = precision[p]
        for q in range(p + 1):
            right = features[q]
            total = 0.0
            for b in range(BLOCK):
                total += left[b] * right[b]
            row[q] += total


@kernel
def log_scale_step(count: float, quadratic: float, linear: float, noise: float, u: float) -> float:
    """Draw the factor g with log density ``count log g - quadratic g^2 / 2 + linear g`` (per ``dg / g``).

    One Metropolis step from g = 1. The proposal for log g is normal around the mode with the curvature there; mode and
    curvature belong to the whole line of multiples of the present values, so that the step is reversible.
    """
    if not (count > 0.0 and quadratic > 0.0):
        return 1.0
    mode = (linear + math.sqrt(linear * linear + 4.0 * quadratic * count)) / (2.0 * quadratic)
    deviation = 1.0 / math.sqrt(2.0 * mode * mode * quadratic - mode * linear)
    log_mode = math.log(mode)
    log_g = log_mode + deviation * noise
    g = math.exp(log_g)
    there = -log_mode / deviation
    gain = count * log_g - 0.5 * quadratic * (g * g - 1.0) + linear * (g - 1.0)
    if math.log(u) < gain + 0.5 * (noise * noise - there * there):
        return g
    return 1.0


@kernel
def gather_user(first: int, last: int, state: ChainState, data: ByUser, features: Doubles) -> None:
    """Put the features of comparisons first, ..., last - 1 (at most a block) into columns; zeros behind them."""
    factors, size = state.tau.shape[1], state.eta.shape[1]
    for b in range(last - first):
        t = first + b
        i, j = data.winner[t], data.loser[t]
        eta_i, tau_i, eta_j, tau_j = state.eta[i], state.tau[i], state.eta[j], state.tau[j]
        s = np.float64(data.root[t])
        for h in range(factors):
            features[h, b] = s * (eta_i[h] * tau_j[h] - eta_j[h] * tau_i[h])
        if size > factors:
            features[factors, b] = s * (eta_i[factors] - eta_j[factors])
    features[:, last - first :] = 0.0


@kernel
def fitted(features: Doubles, coefficients: Doubles, out: Doubles) -> None:
    """Write ``F' c`` to ``out``, for a block of features."""
    out[:] = 0.0
    for h in range(coefficients.shape[0]):
        row, c = features[h], coefficients[h]
        for b in range(BLOCK):
            out[b] += c * row[b]


@kernel
def user_conditional(
    u: int, key: np.uint64, state: ChainState, data: ByUser, residual: Doubles, precision: Doubles, linear: Doubles
) -> float:
    """Draw z for the comparisons of a user into ``residual``; return ``sum z^2``.

    ``precision`` and ``linear`` become ``sum a a'`` (lower triangle) and ``sum a z``, without the prior; a bias comes
    last.
    """
    factors, size = state.xi.shape[1], state.eta.shape[1]
    features, x = np.zeros((size, BLOCK)), np.empty(BLOCK)
    coefficients = np.ones(size)
    coefficients[:factors] = state.xi[u]
    precision[:], linear[:] = 0.0, 0.0
    squares = 0.0
    for first in range(data.start[u], data.start[u + 1], BLOCK):
        last = min(first + BLOCK, data.start[u + 1])
        gather_user(first, last, state, data, features)
        fitted(features, coefficients, x)
        for b in range(last - first):
            z = positive_normal(x[b], uniform(key, first + b))
            residual[first + b] = z
            x[b] = z
            squares += z * z
        x[last - first :] = 0.0
        add_products(features, x, size, precision, linear)
    return squares


@kernel
def draw_users(
    first_user: int, last_user: int, clock: Clock, state: ChainState, data: ByUser, residual: Doubles
) -> None:
    """Draw z and xi for users first, ..., last - 1, no others; ``residual`` becomes ``z - x`` for their comparisons."""
    factors, size = state.xi.shape[1], state.eta.shape[1]
    prior_mean, prior_precision = state.mean, state.prior[USER_PRECISION]
    latent, scaling, noise = stream(clock, LATENT), stream(clock, USER_SCALE), stream(clock, USER)
    precision, linear, rough = np.empty((size, size)), np.empty(size), np.empty(factors)
    features, x = np.zeros((size, BLOCK)), np.empty(BLOCK)
    pull = np.empty(factors)
    for u in range(first_user, last_user):
        squares = user_conditional(u, latent, state, data, residual, precision, linear)
        for h in range(factors):
            precision[h, h] += prior_precision
            pull[h] = prior_precision * prior_mean[h] - (precision[factors, h] if size > factors else 0.0)
        factorise(precision, factors)
        rough[:] = linear[:factors]
        solve_lower(precision, rough, factors)
        explained = 0.0
        for h in range(factors):
            explained += rough[h] * rough[h]
        solve_upper(precision, rough, factors)
        given = float(linear[factors]) if size > factors else 0.0
        for h in range(factors):
            given += pull[h] * rough[h]
        count = float(data.start[u + 1] - data.start[u])
        g = log_scale_step(count, squares - explained, given, normal(scaling, 2 * u), uniform(scaling, 4 * u + 2))
        for h in range(factors):
            linear[h] = g * linear[h] + pull[h]
        solve_lower(precision, linear, factors)
        for h in range(factors):
            linear[h] += normal(noise, u * factors + h)
        solve_upper(precision, linear, factors)
        linear[factors:] = 1.0
        state.xi[u] = linear[:factors]
        for first in range(data.start[u], data.start[u + 1], BLOCK):
            last = min(first + BLOCK, data.start[u + 1])
            gather_user(first, last, state, data, features)
            fitted(features, linear, x)
            for b in range(last - first):
                residual[first + b] = g * residual[first + b] - x[b]
