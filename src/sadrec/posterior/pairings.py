"""One stage of a sweep: the margins of single pairings, and their scale.

Two items that were compared have a margin of their own beside what factors and bias explain, the same for everybody and
antisymmetric: ``d_p ~ N(0, s^2)``, s half normal with scale 1. With ``c_t = +- s_t`` over the comparisons t of pairing
p (+ where the item of lower position won), ``A_p = sum c_t^2`` and ``q_p = sum c_t (z_t - x_t + c_t d_p)``:

- s comes with all d integrated out, by random steps in its logarithm, from large ones to small ones: how much the data
  knows of s differs widely;
- then ``d_p ~ N(q_p / P, 1 / P)`` with ``P = A_p + 1 / s^2``: given s, pairings do not depend on each other.

The other stages of a sweep read ``c_t d_p``, one number per comparison, in ``State.beside``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._moments import pairing_keys
from sadrec._random import normal, uniform
from sadrec._types import Doubles
from sadrec.posterior.hyper import scale_prior
from sadrec.posterior.layout import ByUser, Clock, State, stream

PAIRING, PAIRING_SCALE = 12, 13
"""Stages that draw random numbers, for the keys of their streams."""
STEPS = 6
"""How many random steps are tried for the scale in a sweep."""


class ByPairing(NamedTuple):
    """Which pairing each comparison is of."""

    keys: NDArray[np.int64]  # of the pairings, in order: see pairing_keys
    place: NDArray[np.int32]  # of a comparison: its pairing, as a place among the keys
    sign: NDArray[np.float32]  # and its root, with a minus where the item of lower position lost


def keys_of(data: ByUser, items: int) -> NDArray[np.int64]:
    """Return the keys of the pairings of some comparisons, in order."""
    return np.unique(pairing_keys(data.winner, data.loser, items))


def by_pairing(data: ByUser, items: int) -> ByPairing:
    """Find the pairing of each of some comparisons."""
    keys, place = np.unique(pairing_keys(data.winner, data.loser, items), return_inverse=True)
    sign = np.where(data.winner < data.loser, data.root, -data.root)
    return ByPairing(keys, place.astype(np.int32), sign)


@kernel
def scale_density(log_scale: float, weight: Doubles, linear: Doubles) -> float:
    """Log density of the logarithm of the scale, the margins integrated out."""
    variance = math.exp(2.0 * log_scale)
    value = scale_prior(log_scale)
    for p in range(weight.shape[0]):
        more = 1.0 + variance * weight[p]
        value += 0.5 * (variance * linear[p] * linear[p] / more - math.log(more))
    return value


@kernel
def spread_margins(state: State, data: ByPairing) -> None:
    """Write the margin of each comparison's pairing, times its root, to ``state.beside``."""
    for t in range(state.beside.shape[0]):
        state.beside[t] = np.float64(data.sign[t]) * state.margin[data.place[t]]


@kernel
def draw_pairings(clock: Clock, state: State, data: ByPairing, residual: Doubles) -> None:
    """Draw the scale of the pairings and the margin of each, keeping ``residual = z - x``; ``beside`` is used up."""
    key, scale_key = stream(clock, PAIRING), stream(clock, PAIRING_SCALE)
    margin, beside = state.margin, state.beside
    count = margin.shape[0]
    weight, linear = np.zeros(count), np.zeros(count)
    for t in range(residual.shape[0]):
        p, c = data.place[t], np.float64(data.sign[t])
        weight[p] += c * c
        linear[p] += c * (residual[t] + beside[t])
    log_scale = -0.5 * math.log(state.prior[6])
    now = scale_density(log_scale, weight, linear)
    for turn in range(STEPS):
        new = log_scale + 1.7 * float(count) ** (-0.5 * turn / (STEPS - 1)) * normal(scale_key, turn)
        then = scale_density(new, weight, linear)
        if math.log(uniform(scale_key, 64 + turn)) < then - now:
            log_scale, now = new, then
    state.prior[6] = math.exp(-2.0 * log_scale)
    for p in range(count):
        precision = weight[p] + state.prior[6]
        margin[p] = linear[p] / precision + normal(key, p) / math.sqrt(precision)
    for t in range(residual.shape[0]):
        residual[t] += beside[t] - np.float64(data.sign[t]) * margin[data.place[t]]
