"""Items a user has not met, drawn by (seed, user) and by nothing else.

Every model is asked about the same items, whichever users are evaluated beside it, in whatever blocks and by however
many threads: the numbers behind a draw are hashes of (seed, user, draw) (SplitMix64: Steele, Lea and Flood, OOPSLA
2014), and a subset is drawn from them by Floyd's algorithm (Bentley and Floyd, CACM 30(9), 1987), which needs exactly
as many numbers as there are items to draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def _hashed(state: Bits) -> Bits:
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(seed: int, keys: NDArray[Any], draws: int) -> NDArray[np.float64]:
    """Return numbers in [0, 1), one row per key and one column per draw, each a hash of (seed, key, draw).

    Examples
    --------
    >>> import numpy as np
    >>> many = uniforms(0, np.array([3, 5, 9]), 4)
    >>> bool((many[1] == uniforms(0, np.array([5]), 4)[0]).all())
    True
    """
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    with np.errstate(over="ignore"):
        start = _hashed(np.array([seed % (1 << 64)], dtype=np.uint64) + _GAMMA)
        stream = _hashed((np.asarray(keys).astype(np.uint64) ^ start) + _GAMMA)
        steps = np.arange(1, draws + 1, dtype=np.uint64) * _GAMMA
        bits = _hashed(stream[:, None] + steps[None, :])
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def subset(total: int, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return ``len(numbers)`` distinct integers of ``range(total)``, sorted; every subset is equally likely."""
    size = len(numbers)
    chosen: set[int] = set()
    for last, number in zip(range(total - size, total), numbers.tolist(), strict=True):
        drawn = int(number * (last + 1))
        chosen.add(last if drawn in chosen else drawn)
    return np.array(sorted(chosen), dtype=np.int64)


def skip(met: NDArray[Any], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the items that have ``ranks`` in the list of items not in ``met`` (sorted, distinct).

    Examples
    --------
    >>> import numpy as np
    >>> skip(np.array([0, 3]), np.array([0, 1, 2]))
    array([1, 2, 4])
    """
    before = np.asarray(met, dtype=np.int64) - np.arange(len(met))
    return ranks + np.searchsorted(before, ranks, side="right")


def unmet_items(
    seed: int, row: int, met: NDArray[Any], n_items: int, size: int, numbers: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Draw ``size`` of the items that are not in ``met``, or take all there are when they are fewer.

    Parameters
    ----------
    seed, row
        What the draw is keyed by: the seed and the user's row.
    met
        Sorted columns of the items the user has met (training and held out).
    n_items
        Size of the catalogue.
    size
        How many to draw.
    numbers
        The user's row of :func:`uniforms`, when the caller has it already.

    Returns
    -------
    array
        Sorted columns, ``min(size, n_items - len(met))`` of them.

    Examples
    --------
    >>> import numpy as np
    >>> unmet_items(seed=0, row=4, met=np.array([1, 2]), n_items=5, size=10)
    array([0, 3, 4])
    """
    free = n_items - len(met)
    if free <= size:
        return skip(met, np.arange(max(free, 0)))
    if numbers is None:
        numbers = uniforms(seed, np.array([row]), size)[0]
    return skip(met, subset(free, numbers))
