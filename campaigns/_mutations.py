"""Damage to files: bytes that flip, vanish or come twice, headers that lie, and well-formed files with wild content."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from campaigns._trials import Random
from sadrec._core.files import read_arrays, write_arrays

Bytes = Callable[[bytearray, Random], bytearray]


def _flip_bits(raw: bytearray, rng: Random) -> bytearray:
    for _ in range(int(rng.integers(1, 4))):
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    return raw


def _set_bytes(raw: bytearray, rng: Random) -> bytearray:
    for _ in range(int(rng.integers(1, 9))):
        raw[int(rng.integers(len(raw)))] = int(rng.integers(256))
    return raw


def _cut(raw: bytearray, rng: Random) -> bytearray:
    return raw[: int(rng.integers(len(raw)))]


def _cut_a_little(raw: bytearray, rng: Random) -> bytearray:
    return raw[: max(0, len(raw) - int(rng.integers(1, 9)))]


def _extend(raw: bytearray, rng: Random) -> bytearray:
    return raw + rng.bytes(int(rng.integers(1, 64)))


def _blank(raw: bytearray, rng: Random) -> bytearray:
    start = int(rng.integers(len(raw)))
    stop = min(len(raw), start + int(rng.integers(1, 513)))
    raw[start:stop] = bytes(stop - start)
    return raw


def _move(raw: bytearray, rng: Random) -> bytearray:
    size = int(rng.integers(1, max(2, len(raw) // 8)))
    start, goal = (int(rng.integers(len(raw) - size + 1)) for _ in range(2))
    raw[goal : goal + size] = raw[start : start + size]
    return raw


def _delete(raw: bytearray, rng: Random) -> bytearray:
    start = int(rng.integers(len(raw)))
    del raw[start : start + int(rng.integers(1, 65))]
    return raw


def _repeat(raw: bytearray, rng: Random) -> bytearray:
    start = int(rng.integers(len(raw)))
    part = raw[start : start + int(rng.integers(1, 65))]
    return raw[:start] + part + raw[start:]


DAMAGE: tuple[Bytes, ...] = (
    _flip_bits,
    _flip_bits,
    _set_bytes,
    _cut,
    _cut_a_little,
    _extend,
    _blank,
    _move,
    _delete,
    _repeat,
)
"""Damage by accident, single flipped bits twice as often as the rest."""


def damaged(raw: bytes, rng: Random) -> bytes:
    """Return the content of a file after an accident."""
    change = DAMAGE[int(rng.integers(len(DAMAGE)))]
    return bytes(change(bytearray(raw), rng)) if raw else rng.bytes(8)


WILD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**40, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "x", "text", "O", "<f8", "1e400", "\x00", "../../etc/passwd", "é" * 300, [], {}, [0], [[]], [-1],
    {"a": 1}, [-1, 2**62],
)  # fmt: skip
"""Values that nobody expects in a header."""


def wild(rng: Random) -> Any:
    """Return one of them."""
    return WILD[int(rng.integers(len(WILD)))]


def changed_value(value: Any, rng: Random) -> Any:
    """Return plain values with one place changed: another value, one less, one more."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        copy = dict(value)
        name = list(copy)[int(rng.integers(len(copy)))]
        kind = rng.random()
        if kind < 0.15:
            del copy[name]
        elif kind < 0.25:
            copy[f"{name} "] = wild(rng)
        else:
            copy[name] = changed_value(copy[name], rng)
        return copy
    if isinstance(value, list) and value and rng.random() < 0.8:
        listed = list(value)
        place = int(rng.integers(len(listed)))
        listed[place] = changed_value(listed[place], rng)
        return listed
    return wild(rng)


def lying(raw: bytes, rng: Random) -> bytes:
    """Return a file of arrays whose header says something else; its checksum stays what it was."""
    length = int.from_bytes(raw[:8], "little")
    layout = json.loads(raw[8 : 8 + length])
    if rng.random() < 0.5:
        text = layout["__metadata__"]["sadrec"]
        layout["__metadata__"]["sadrec"] = json.dumps(changed_value(json.loads(text), rng))
    else:
        layout = changed_value(layout, rng)
    beginning = json.dumps(layout).encode()
    beginning += b" " * (-len(beginning) % 8)
    stated = len(beginning) if rng.random() < 0.9 else int(rng.integers(2**62))
    return stated.to_bytes(8, "little") + beginning + raw[8 + length :]


def _other_shape(array: Any, rng: Random) -> Any:
    kind = int(rng.integers(7))
    if kind == 0:
        return array[:1]
    if kind == 1:
        return array[:0]
    if kind == 2:
        return np.concatenate([array, array[:1]]) if len(array) else array.reshape(-1)
    if kind == 3:
        return array.reshape(-1)
    if kind == 4:
        return array[None]
    if kind == 5:
        return array[..., :-1]
    return array.T


def _other_type(array: Any, rng: Random) -> Any:
    types = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.uint64, np.int8]
    return array.astype(types[int(rng.integers(len(types)))])


def _not_finite(array: Any, rng: Random) -> Any:
    if array.size and array.dtype.kind == "f":
        array.reshape(-1)[int(rng.integers(array.size))] = [np.nan, np.inf, -np.inf][int(rng.integers(3))]
        return array
    return _other_shape(array, rng)


def _other_numbers(array: Any, rng: Random) -> Any:
    flat = array.reshape(-1)
    for _ in range(int(rng.integers(1, 4)) if array.size else 0):
        place = int(rng.integers(array.size))
        if array.dtype.kind == "f":
            flat[place] = [0, -1, 1e30, -1e30, 3e38, 1e-45][int(rng.integers(6))]
        else:
            limits = np.iinfo(array.dtype)
            flat[place] = [limits.min, limits.max, limits.max // 2, 0, 1, limits.max - 1][int(rng.integers(6))]
    return array


def forged(path: Path, rng: Random, content: str = "anything") -> None:
    """Write a file of arrays again, well-formed and with the right checksum, but with hostile content.

    "anything" changes numbers and header too, which nobody can tell from good ones; "numbers" makes arrays of other
    shapes and types and with numbers that are not finite; "shapes" leaves those out.
    """
    anything = content == "anything"
    arrays, header = read_arrays(path, "a file to forge")
    copies = {name: np.array(array) for name, array in arrays.items()}
    left = list(copies)
    for _ in range(int(rng.integers(1, 3))):
        kind = rng.random()
        if anything and kind < 0.3:
            header = changed_value(header, rng)
            if not isinstance(header, dict):
                header = {"kind": header}
        elif left:  # each once: a type that is changed and changed back leaves other numbers
            name = left.pop(int(rng.integers(len(left))))
            kinds = [_other_shape, _other_type]
            kinds += [] if content == "shapes" else [_not_finite]
            kinds += [_other_numbers, _other_numbers] if anything else []
            with np.errstate(all="ignore"):
                copies[name] = np.ascontiguousarray(kinds[int(rng.integers(len(kinds)))](copies[name], rng))
            if kind > 0.95 and content != "shapes":
                del copies[name]
    write_arrays(path, copies, header)
