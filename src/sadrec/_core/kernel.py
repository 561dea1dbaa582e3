"""Compilation of the kernels of the package, and the cache of their machine code.

Numba keeps the machine code of a function next to its file, until that file changes. A kernel also depends on the
functions and constants it takes from other files, so here its code is kept under a digest of all of them, in the user's
cache folder: a second clone of the same sources compiles nothing.
"""

import hashlib
import logging
import os
import pickle
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import llvmlite
import numba
import numpy as np
import xxhash
from llvmlite import binding, ir
from numba.core import cgutils, config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator, UserWideCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.serialize import dumps
from numba.extending import intrinsic

from sadrec._core.folders import user_cache

logger = logging.getLogger("sadrec")

P = ParamSpec("P")
R = TypeVar("R")

# Sums may be added up in any order, which they must be to vectorise, and fused with products; the rules for NaN and
# infinity stay, so that a kernel may test for them.
_RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` for one thread, without the GIL, with its machine code cached on disk."""
    dispatcher = _compiled(function, fastmath=_RELAXED)
    try:
        cast(Any, dispatcher)._cache = _Cache(function)
    except RuntimeError:  # neither the user's cache nor the package's folder can be written to
        _say_once("no folder for compiled kernels is writable: they are compiled again at every start")
    return dispatcher


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like :func:`kernel`, for a small function that its callers absorb; a test for None is gone by then."""
    return _compiled(function, fastmath=_RELAXED, forceinline=True)


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    options |= {"nogil": True, "error_model": "numpy", "pipeline_class": _Compiler}
    return cast(Callable[P, R], numba.njit(**options)(function))


class _Code(JITCodeLibrary):
    """Machine code that calls its own copies of the kernels it uses, whatever else is loaded.

    Each kernel is optimised together with copies of those it calls, and the copies come out differently. Numba lets
    the first copy in the process serve all: what was called before would decide, in the last digit, on the result.
    """

    def _finalize_final_module(self) -> None:
        # What other kernels link is what they would read from the disk, where the order of uses is not kept.
        shared = binding.parse_bitcode(self._final_module.as_bitcode())
        for function in shared.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = binding.Linkage.linkonce_odr
        self._shared_module = shared
        for function in self._final_module.functions:
            if function.linkage == binding.Linkage.linkonce_odr and function.name.startswith("_ZN"):
                function.linkage = binding.Linkage.internal
        cast(Any, super())._finalize_final_module()


class _Compiler(Compiler):
    """Numba's compiler, which puts the machine code into :class:`_Code`."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a function."""
        self.state.library = cast(Any, _Code)(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        return cast(Any, super()).compile_extra(function)


_DIGEST = 16
_UNUSED_SECONDS = 30 * 24 * 3600


class CheckedFiles:
    """A file for every compiled variant of a kernel, with a digest before it: a flipped bit in it would be executed.

    Names hold the digests of the sources and of the variant: clones of different sources share the folder, and
    processes that write at the same time do not mix up their files.
    """

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = Path(folder), name

    def load(self, key: Any) -> Any:
        """Return what was saved, or None; raise a ValueError where the file is damaged."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if xxhash.xxh3_128_digest(content[_DIGEST:]) != content[:_DIGEST]:
            raise ValueError(f"{path} is damaged")
        stored_key, data = pickle.loads(content[_DIGEST:])
        with suppress(OSError):
            os.utime(path)  # the clean-up keeps what is used
        return data if stored_key == key else None

    def save(self, key: Any, data: Any) -> None:
        """Write a file for a variant, and remove files of the folder that were not used for thirty days."""
        stored = cast(Any, dumps)((key, data))
        path = self._path(key)
        part = path.with_suffix(f".{secrets.token_hex(8)}.nbc")
        try:
            part.write_bytes(xxhash.xxh3_128_digest(stored) + stored)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        _remove_unused(self.folder)

    def _path(self, key: Any) -> Path:
        return self.folder / f"{self.name}-{xxhash.xxh3_128_hexdigest(repr(key).encode())}.nbc"


@cache
def _remove_unused(folder: Path) -> None:
    oldest = time.time() - _UNUSED_SECONDS
    for path in folder.glob("*.nbc"):
        with suppress(OSError):  # another process removes it, too
            if path.stat().st_mtime < oldest:
                path.unlink()


class _Folder(UserWideCacheLocator):
    """The folder for compiled kernels: the one of NUMBA_CACHE_DIR, or the user's cache, which all clones share."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        cast(Any, super()).__init__(function, file)
        chosen = cast(Any, config).CACHE_DIR
        parent = Path(chosen) if chosen else user_cache()
        self._cache_path = str(parent / "kernels")


class _FolderOfSources(InTreeCacheLocator):
    """The folder of the sources, where the user's cache cannot be written to."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        cast(Any, super()).__init__(function, file)
        self._cache_path = str(Path(file).parent / "__pycache__" / "kernels")


class _Stored(CompileResultCacheImpl):
    """Numba's files of a compiled function, in one of these folders."""

    _locator_classes = [_Folder, _FolderOfSources]  # noqa: RUF012


class _Cache(FunctionCache):
    """Numba's cache of a function, keyed by all sources that the function depends on."""

    _impl_class = _Stored

    def __init__(self, function: Callable[..., Any]) -> None:
        cast(Any, super()).__init__(function)
        made: Any = self
        digest = sources_digest(Path(function.__code__.co_filename))
        made._cache_file = CheckedFiles(made._cache_path, f"{made._impl.filename_base}-{digest}")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled function, or None when there is none; a damaged file counts as none."""
        try:
            return cast(Any, super()).load_overload(signature, target_context)
        except Exception as error:
            logger.warning("a compiled kernel on disk cannot be used and is compiled again: %s", error)
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep the compiled function; where that fails, say so and continue."""
        try:
            cast(Any, super()).save_overload(signature, data)
        except Exception as error:
            _say_once(f"compiled kernels cannot be kept on disk: {error}")


_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^\s*(?:from|import) (sadrec[\w.]*)(?: import (\([^)]*\)|[^\n]*))?", re.MULTILINE)


@cache
def sources_digest(path: Path) -> str:
    """Return a digest of a source file, of all files of the package that it imports, and of the compiler's version."""
    versions = numba.__version__, llvmlite.__version__, np.__version__
    digest = hashlib.blake2b(" ".join(versions).encode(), digest_size=16)
    todo, done = [path.resolve()], set()
    while todo:
        source = todo.pop()
        if source in done:
            continue
        done.add(source)
        for module, names in _IMPORT.findall(source.read_text(encoding="utf-8")):
            places = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
            for place in places:
                folder = _PACKAGE.joinpath(*place.split(".")[1:])
                todo += [file for file in (folder.with_suffix(".py"), folder / "__init__.py") if file.is_file()]
    for source in sorted(done):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


@cache
def _say_once(message: str) -> None:
    logger.warning(message)


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask the processor to fetch ``array[index]``, to read it or write to it soon, without waiting."""

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


def _power_of_two(typing_context: Any, exponent: Any) -> Any:
    """Return 2 to a whole ``exponent`` (int32) from -126 to 127, in single precision: many at a time in a loop."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        biased = builder.add(arguments[0], ir.Constant(ir.IntType(32), 127))
        return builder.bitcast(builder.shl(biased, ir.Constant(ir.IntType(32), 23)), ir.FloatType())

    return types.float32(types.int32), generate


power_of_two = cast(Callable[[Any], Any], intrinsic(_power_of_two))


TILE_ROWS, TILE_COLUMNS = 8, 16
_LANES = 8  # numbers that are added at a time; twice this number stays in registers for each row of a tile


def _product_tile(typing_context: Any, left: Any, right: Any, product: Any, row: Any, column: Any, inner: Any) -> Any:
    """Write 8 x 16 numbers of a product of matrices, from ``product[row, column]`` on, summed over ``inner``.

    Every number is a sum from the first to the last, whatever the processor.
    """
    kinds = left, right, product

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tools, lanes, number = cast(Any, cgutils), ir.VectorType(ir.FloatType(), _LANES), arguments[5].type
        views = [context.make_array(kinds[which])(context, builder, arguments[which]) for which in range(3)]
        zero = ir.Constant(lanes, [0.0] * _LANES)
        first = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
        rows = [builder.add(arguments[3], ir.Constant(number, step)) for step in range(TILE_ROWS)]
        columns = [builder.add(arguments[4], ir.Constant(number, step)) for step in range(0, TILE_COLUMNS, _LANES)]

        def pointer(which: int, *at: Any) -> Any:
            return tools.get_item_pointer(context, builder, kinds[which], views[which], at, wraparound=False)

        def vector(which: int, *at: Any) -> Any:
            return builder.bitcast(pointer(which, *at), lanes.as_pointer())

        sums = {(a, h): tools.alloca_once(builder, lanes) for a in rows for h in columns}
        for total in sums.values():
            builder.store(zero, total)
        with tools.for_range(builder, arguments[5]) as loop:
            factors = {h: builder.load(vector(1, loop.index, h), align=4) for h in columns}
            for a in rows:
                alone = builder.insert_element(zero, builder.load(pointer(0, a, loop.index)), ir.Constant(number, 0))
                spread = builder.shuffle_vector(alone, zero, first)
                for h in columns:
                    added = builder.fmul(spread, factors[h], flags=["contract"])
                    total = builder.fadd(builder.load(sums[a, h]), added, flags=["contract"])
                    builder.store(total, sums[a, h])
        for (a, h), total in sums.items():
            builder.store(builder.load(total), vector(2, a, h), align=4)
        return context.get_dummy_value()

    return types.void(left, right, product, row, column, inner), generate


product_tile = cast(Callable[[Any, Any, Any, int, int, int], None], intrinsic(_product_tile))


def _transpose_tile(typing_context: Any, matrix: Any, written: Any, row: Any, column: Any) -> Any:
    """Write the 8 x 8 numbers of ``matrix`` from ``[row, column]`` on to ``written``, from ``[column, row]`` on."""
    kinds = matrix, written

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tools, lanes, number = cast(Any, cgutils), ir.VectorType(ir.FloatType(), _LANES), arguments[2].type
        views = [context.make_array(kinds[which])(context, builder, arguments[which]) for which in range(2)]

        def pointer(which: int, first: Any, second: Any, step: int) -> Any:
            at = [builder.add(first, ir.Constant(number, step)), second]
            where = tools.get_item_pointer(context, builder, kinds[which], views[which], at, wraparound=False)
            return builder.bitcast(where, lanes.as_pointer())

        rows = [builder.load(pointer(0, arguments[2], arguments[3], step), align=4) for step in range(_LANES)]
        half = _LANES // 2
        orders = [[first + step + side for step in range(half) for side in (0, _LANES)] for first in (0, half)]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), _LANES), order) for order in orders]
        for _ in range(3):  # rows a and b become a0 b0 a1 b1 ...: after three times columns are rows
            pairs = list(zip(rows[:half], rows[half:], strict=True))
            rows = [builder.shuffle_vector(*pair, mask) for pair in pairs for mask in masks]
        for step, made in enumerate(rows):
            builder.store(made, pointer(1, arguments[3], arguments[2], step), align=4)
        return context.get_dummy_value()

    return types.void(matrix, written, row, column), generate


transpose_tile = cast(Callable[[Any, Any, int, int], None], intrinsic(_transpose_tile))
