"""Items a user has not met, drawn by (seed, user) and by nothing else.

Every model is asked about the same items, whichever users are evaluated with it, in whatever blocks and by however
many threads: the numbers behind a draw are hashes of (seed, user, draw), and a subset is drawn from them by Floyd's
algorithm (Bentley and Floyd, CACM 30(9), 1987), which needs exactly as many numbers as there are items to draw.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.random import advance, hashed, nth_absent
from sadrec._core.types import Doubles, Positions

# The functions behind the kernels take whole arrays.
_hashed: Any = getattr(hashed, "py_func", hashed)
_advance: Any = getattr(advance, "py_func", advance)


def uniforms(seed: int, keys: NDArray[Any], draws: int) -> Doubles:
    """Return numbers in [0, 1), one row per key and one column per draw, each a hash of (seed, key, draw).

    Examples
    --------
    >>> many = uniforms(0, np.array([3, 5, 9]), 4)
    >>> bool((many[1] == uniforms(0, np.array([5]), 4)[0]).all())
    True
    """
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    with np.errstate(over="ignore"):
        start = _hashed(_advance(np.array([seed % (1 << 64)], dtype=np.uint64)))
        stream = _hashed(_advance(np.asarray(keys).astype(np.uint64) ^ start))
        steps = np.arange(1, draws + 1, dtype=np.uint64) * _advance(np.uint64(0))
        bits = _hashed(stream[:, None] + steps[None, :])
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def subset(total: int, numbers: Doubles) -> Positions:
    """Return ``len(numbers)`` distinct integers of ``range(total)``, sorted; every subset is equally likely."""
    size = len(numbers)
    chosen: set[int] = set()
    for last, number in zip(range(total - size, total), numbers.tolist(), strict=True):
        drawn = int(number * (last + 1))
        chosen.add(last if drawn in chosen else drawn)
    return np.array(sorted(chosen), dtype=np.int64)


@kernel
def _absent(met: Any, ranks: Any) -> Any:
    """Return the items that have ``ranks`` in the list of items not in ``met``."""
    items = np.empty_like(ranks)
    for place in range(ranks.shape[0]):
        items[place] = nth_absent(met, ranks[place])
    return items


def unmet_items(met: NDArray[Any], n_items: int, numbers: Doubles) -> Positions:
    """Draw as many items as there are ``numbers`` (see :func:`uniforms`) of those not in ``met``, sorted.

    Where there are fewer, all of them are returned. ``met`` are sorted columns of a catalogue of ``n_items``.

    Examples
    --------
    >>> unmet_items(met=np.array([1, 2]), n_items=5, numbers=np.full(10, 0.5))
    array([0, 3, 4])
    """
    free = n_items - len(met)
    ranks = subset(free, numbers) if free > len(numbers) else np.arange(max(free, 0), dtype=np.int64)
    return np.asarray(_absent(np.ascontiguousarray(met, dtype=np.int64), ranks))
