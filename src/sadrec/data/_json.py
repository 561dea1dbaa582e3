"""Files of JSON lines: one object per line, such as the answers that ``sadrec serve --log`` keeps."""

import json
import os
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import polars as pl

from sadrec.data import _text

SUFFIXES = (".jsonl", ".ndjson")


class Rows(NamedTuple):
    """Some objects, and the number of the line of each."""

    objects: list[dict[str, Any]]
    lines: list[int]
    damaged: list[int]  # numbers of lines that are no object


def is_json_lines(name: str) -> bool:
    """Tell by its name whether a file holds JSON lines, packed or not."""
    return name.removesuffix(".gz").removesuffix(".zst").endswith(SUFFIXES)


def json_blocks(file: IO[bytes], progress: Callable[[int], object] | None = None) -> Iterator[Rows]:
    """Yield an opened file, from its start, in blocks of objects; what is appended meanwhile is left for next time."""
    held, line = b"", 0
    for chunk in _chunks(file, progress):
        *lines, held = (held + chunk).split(b"\n")
        yield _parsed(lines, line)
        line += len(lines)
    if held.strip():
        yield _parsed([held], line)


def _chunks(file: IO[bytes], progress: Callable[[int], object] | None) -> Iterator[bytes]:
    file.seek(0)
    start = file.read(4)
    if start[:2] == b"\x1f\x8b" or start == b"\x28\xb5\x2f\xfd":
        yield from _text.chunks(file, progress)
        return
    file.seek(0)
    left = os.fstat(file.fileno()).st_size
    while left and (chunk := file.read(min(left, _text.BLOCK))):
        left -= len(chunk)
        if progress is not None:
            progress(len(chunk))
        yield chunk


def _parsed(lines: list[bytes], before: int) -> Rows:
    rows = Rows([], [], [])
    for number, text in enumerate(lines, before + 1):
        if not text.strip():
            continue
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            rows.objects.append(found)
            rows.lines.append(number)
        else:
            rows.damaged.append(number)
    return rows


def column(values: list[Any], number: bool) -> pl.Series | None:
    """Return values of one key as a column: whole numbers, numbers or text; None where they are of several kinds.

    With ``number`` the values must be numbers. A missing one is null.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int}:
        try:
            return pl.Series(values, dtype=pl.Int64)
        except (OverflowError, pl.exceptions.PolarsError):
            return None
    if kinds <= {int, float}:
        return pl.Series(values, dtype=pl.Float64, strict=False)
    return pl.Series(values, dtype=pl.String) if kinds == {str} and not number else None


def as_text(values: list[Any]) -> pl.Series:
    """Return values as text; a missing one is null."""
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
