"""How every compiled kernel of the package is compiled."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Reductions may be reassociated (or the loops do not vectorise), but the rules for NaN and infinity stay: a
# kernel may test for them.
_RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` for one thread, without the GIL, with its machine code cached on disk."""
    options: dict[str, Any] = {"cache": True, "nogil": True, "fastmath": _RELAXED, "error_model": "numpy"}
    return cast(Callable[P, R], numba.njit(**options)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like :func:`kernel`, for a small function that its callers absorb."""
    options: dict[str, Any] = {"nogil": True, "fastmath": _RELAXED, "error_model": "numpy", "inline": "always"}
    return cast(Callable[P, R], numba.njit(**options)(function))
