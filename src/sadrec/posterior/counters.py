"""Random numbers that are functions of where they are used, not of when.

A *stream* is a 64-bit key made of (seed, chain, sweep, stage); the number at position ``i`` of a stream is the
``i``-th output of SplitMix64 started at the key, computed directly. Nothing is carried from one number to the next, so
the order in which threads ask for them cannot matter.
"""

import math

import numpy as np

from sadrec._kernel import kernel
from sadrec.posterior.layout import Clock

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53
_TWO_PI = 2.0 * math.pi


@kernel
def mixed(bits: np.uint64) -> np.uint64:
    """Scramble 64 bits (the output function of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


@kernel
def stream(clock: Clock, stage: int) -> np.uint64:
    """Key of the stream for one stage of one sweep of one chain."""
    key = mixed(np.uint64(clock.seed) + _GOLDEN)
    key = mixed(key ^ (np.uint64(clock.chain) * _FIRST + _GOLDEN))
    key = mixed(key ^ (np.uint64(clock.sweep) * _SECOND + _GOLDEN))
    return mixed(key ^ (np.uint64(stage) * _GOLDEN + _FIRST))


@kernel
def uniform(key: np.uint64, position: int) -> float:
    """Number at ``position`` of the stream ``key``: uniform on (0, 1), never 0 and never 1."""
    bits = mixed(key + (np.uint64(position) + np.uint64(1)) * _GOLDEN)
    return (np.float64(bits >> np.uint64(12)) + 0.5) * (2.0 * _TO_UNIT)


@kernel
def normal(key: np.uint64, position: int) -> float:
    """Standard normal number made of positions ``2 * position`` and ``2 * position + 1`` of the stream."""
    radius = math.sqrt(-2.0 * math.log(uniform(key, 2 * position)))
    return radius * math.cos(_TWO_PI * uniform(key, 2 * position + 1))
