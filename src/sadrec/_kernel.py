"""How every compiled kernel of the package is compiled."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

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


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask the processor to fetch ``array[index]``, to read it or write to it soon, while it goes on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(array)(context, builder, arguments[0])
        pointer = cast(Any, cgutils).get_item_pointer(context, builder, array, view, [arguments[1]], wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        write, keep, data = (ir.Constant(number, value) for value in (1, 3, 1))
        builder.call(fetch, [builder.bitcast(pointer, byte), write, keep, data])
        return context.get_dummy_value()

    return types.void(array, index), generate


prefetch = cast(Callable[[Any, int], None], intrinsic(_prefetch))


def _claim(typing_context: Any, counter: Any) -> Any:
    """Add 1 to the number ``counter[0]`` that threads share, and return what it was: each thread gets another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(counter)(context, builder, arguments[0])
        return builder.atomic_rmw("add", view.data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), generate


claim = cast(Callable[[Any], int], intrinsic(_claim))
