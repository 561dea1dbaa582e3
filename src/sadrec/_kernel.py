"""How every compiled kernel of the package is compiled."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Products may be fused with sums and the sign of zero does not matter; the rules for NaN and infinity stay.
_FUSED = {"contract", "nsz", "arcp"}
# Sums may also be added up in any order, which they must be to vectorise.
_RELAXED = _FUSED | {"reassoc"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` for one thread, without the GIL, with its machine code cached on disk."""
    return _compiled(function, fastmath=_RELAXED, cache=True)


def ordered(function: Callable[P, R]) -> Callable[P, R]:
    """Like :func:`kernel`, but sums are added up as written: for results that must be exact, such as exactly 1."""
    return _compiled(function, fastmath=_FUSED, cache=True)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like :func:`kernel`, for a small function that its callers absorb."""
    return _compiled(function, fastmath=_RELAXED, inline="always")


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    return cast(Callable[P, R], numba.njit(nogil=True, error_model="numpy", **options)(function))
