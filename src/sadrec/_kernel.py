"""How every compiled kernel of the package is compiled."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Sums may be added up in any order, which they must be to vectorise, and fused with products; the rules for NaN and
# infinity stay, so that a kernel may test for them.
_RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` for one thread, without the GIL, with its machine code cached on disk."""
    return _compiled(function, fastmath=_RELAXED, cache=True)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like :func:`kernel`, for a small function that its callers absorb."""
    return _compiled(function, fastmath=_RELAXED, inline="always")


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    return cast(Callable[P, R], numba.njit(nogil=True, error_model="numpy", **options)(function))
