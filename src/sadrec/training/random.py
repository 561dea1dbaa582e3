"""Random numbers inside kernels: a counter-based generator keyed by what is drawn, never by when.

A stream is a 64-bit state that starts at :func:`stream_key` of (seed, epoch, cell, ...) and advances by a
constant; each number is a hash of the state (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
"""

from typing import Any

import numpy as np

from sadrec._kernel import kernel

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


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
