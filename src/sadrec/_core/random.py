"""Random numbers keyed by what is drawn, never by when: the one generator of the package.

A stream is a 64-bit state that starts at :func:`stream_key` of (seed, epoch, cell, ...) and advances by a
constant; each number is a hash of the state (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
"""

from math import cos, log, pi, sqrt
from typing import Any

import numpy as np

from sadrec._core.kernel import kernel

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S12, _S27, _S30, _S31, _S32 = (np.uint64(shift) for shift in (12, 27, 30, 31, 32))


@kernel
def advance(state: np.uint64) -> np.uint64:
    """Return the next state of the stream."""
    return state + _GAMMA


@kernel
def hashed(state: np.uint64) -> np.uint64:
    """Return 64 random bits for a state."""
    z = (state ^ (state >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@kernel
def stream_key(seed: np.uint64, a: int, b: int, c: int) -> np.uint64:
    """Return the first state of the stream that belongs to (seed, a, b, c)."""
    key = hashed(advance(np.uint64(seed)))
    key = hashed(advance(key ^ np.uint64(a)))
    key = hashed(advance(key ^ np.uint64(b)))
    return hashed(advance(key ^ np.uint64(c)))


@kernel
def below(bits: np.uint64, n: int) -> Any:
    """Turn 64 random bits into an integer in ``0 .. n-1`` (n < 2**32)."""
    return np.int64(((bits >> _S32) * np.uint64(n)) >> _S32)


@kernel
def uniform(key: np.uint64, position: int) -> float:
    """Return the number at ``position`` of the stream ``key``: uniform on (0, 1), never 0 and never 1."""
    bits = hashed(key + (np.uint64(position) + np.uint64(1)) * _GAMMA)
    return (np.float64(bits >> _S12) + 0.5) * 2.0**-52


@kernel
def normal(key: np.uint64, position: int) -> float:
    """Return the standard normal number made of positions ``2 * position`` and ``2 * position + 1`` of a stream."""
    radius = sqrt(-2.0 * log(uniform(key, 2 * position)))
    return radius * cos(2.0 * pi * uniform(key, 2 * position + 1))


@kernel
def nth_absent(run: Any, r: int) -> int:
    """Return the r-th (from 0) whole number that is not in the sorted run."""
    lo, hi = 0, run.shape[0]
    while lo < hi:
        mid = (lo + hi) >> 1
        if np.int64(run[mid]) - mid <= r:
            lo = mid + 1
        else:
            hi = mid
    return r + lo
