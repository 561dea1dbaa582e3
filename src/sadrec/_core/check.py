"""Checks of arguments: each returns a plain Python value, or raises an error that names the allowed ones.

>>> whole(3, "factors", least=1)
3
>>> whole(0, "factors", least=1)
Traceback (most recent call last):
    ...
ValueError: factors must be a whole number, at least 1, not 0
"""

import math
import mmap
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.types import Floats, Positions

T = TypeVar("T", bound=str)
_MOST_THREADS = 4096

START = 2**30
"""Bytes of addresses that polars, its threads and Numba take when they start."""

FROM_ONE = "ids that start at 1 need 1 subtracted"
"""The usual cause of a position that is too large."""


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a value is a finite number; True and False are not."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def whole(value: Any, name: str, least: int = 0, most: int | None = None) -> int:
    """Return a whole number between two bounds."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number, {bounds}, not {value!r}")
    return int(value)


def number(value: Any, name: str, least: float = 0.0, most: float = math.inf) -> float:
    """Return a finite number between two bounds."""
    if not is_number(value) or not least <= value <= most:
        bounds = f"{least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} must be a finite number, {bounds}, not {value!r}")
    return float(value)


def share(value: Any, name: str, *, inside: bool = False) -> float:
    """Return a number between 0 and 1; with ``inside``, neither of the two."""
    if not is_number(value) or not 0 <= value <= 1 or (inside and value in (0, 1)):
        raise ValueError(f"{name} must be a share between 0 and 1{', exclusive' if inside else ''}, not {value!r}")
    return float(value)


def flag(value: Any, name: str) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def one_of(value: Any, name: str, choices: Sequence[T]) -> T:
    """Return one of a few words."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
        raise ValueError(f"{name} must be {allowed}, not {value!r}")
    return value  # type: ignore[return-value]


def seed(value: Any, name: str = "random_state") -> int:
    """Return the seed of the random numbers: a whole number, or one drawn from a generator or the system (None)."""
    if value is None:
        value = np.random.default_rng()
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**63))
    if not is_whole(value) or not 0 <= value < 2**63:
        raise ValueError(
            f"{name} must be a whole number from 0 to 2**63 - 1, a numpy.random.Generator or None, not {value!r}"
        )
    return int(value)


def threads(value: Any, name: str = "num_threads") -> int:
    """Return the number of threads to use; 0 means all cores."""
    if not is_whole(value) or not 0 <= value <= _MOST_THREADS:
        raise ValueError(f"{name} must be 0 (all cores) or a number of threads, {_MOST_THREADS} at most, not {value!r}")
    return int(value) or os.cpu_count() or 1


def outside(values: NDArray[Any], size: int) -> int | None:
    """Return the index of the first number outside 0, ..., size - 1, or None."""
    if not values.size or (int(values.min()) >= 0 and int(values.max()) < size):
        return None
    return int(((values < 0) | (values >= size)).argmax())


def positions(values: ArrayLike, size: int, name: str) -> Positions:
    """Return ``values`` as int64 positions of any shape, all in ``range(size)``."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind not in "iu":
        first = array.reshape(-1)[0]
        raise TypeError(f"{name} must be whole numbers, positions in 0..{size - 1}, not {array.dtype} ({first!r})")
    if (at := outside(array, size)) is not None:
        allowed = f"{size}: give positions from 0 to {size - 1} ({FROM_ONE})" if size else "none"
        place = f" at position {at}" if array.ndim == 1 else ""
        raise ValueError(f"{name} holds {array.flat[at]}{place}, but there are {allowed}")
    return array.astype(np.int64, copy=False)


def numbers(
    values: ArrayLike, name: str, least: float = -math.inf, place_of: Callable[[int], str] | None = None
) -> Floats:
    """Return finite numbers as float32, of any shape; ``place_of`` names in an error what holds a wrong one.

    >>> numbers([1, float("nan")], "weights", least=0)
    Traceback (most recent call last):
        ...
    ValueError: weights[1] is nan: weights must be finite and not negative
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, not {array.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        single: Floats = array.astype(np.float32, copy=False)
        ends = single.min(initial=np.inf), single.max(initial=-np.inf)  # either is NaN where there is one
    if single.size and not (ends[0] >= least and np.isfinite(ends).all()):
        at = int((~(np.isfinite(single) & (single >= least))).argmax())
        where = (
            f"{name}[{', '.join(map(str, np.unravel_index(at, array.shape)))}] is" if place_of is None else place_of(at)
        )
        bound = "" if least == -math.inf else " and not negative" if least == 0 else f" and at least {least:g}"
        raise ValueError(f"{where} {array.flat[at]}: {name} must be finite{bound}")
    return single


def room(size: int) -> None:
    """Raise a MemoryError where this process may not take this many bytes: compiled code would end it silently."""
    try:
        mmap.mmap(-1, size).close()  # takes addresses, and no memory
    except (OSError, OverflowError) as error:
        raise MemoryError(
            f"{size / 2**20:,.0f} MiB more are needed, and this process may not take them "
            f"({getattr(error, 'strerror', None) or error}): raise its limit (ulimit -v), or use a machine with more "
            "memory"
        ) from None
