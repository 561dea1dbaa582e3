"""Text files in blocks of whole rows: plain, gzip or zstd; comma, tab, semicolon or ``::`` between fields."""

import csv
import gzip
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCK = 2**23
"""Bytes of text handled at once."""
_SEPARATORS = ("::", "\t", ",", ";", "|")
_MAX_ROW = 2**27
_OTHERS = {
    b"\xff\xfe": "UTF-16 text, not UTF-8: convert it first, e.g. with iconv",
    b"\xfe\xff": "UTF-16 text, not UTF-8: convert it first, e.g. with iconv",
    b"PK\x03\x04": "a zip archive: unpack it first, or use sadrec.data.load for a known data set",
}
"""What cannot be read, by its first bytes."""


@dataclass(frozen=True)
class Layout:
    """How the rows of a text file are written."""

    separator: str
    columns: list[str] | None
    """Names in the header, or ``None`` where there is no header."""
    width: int
    """Number of fields."""


def text_blocks(path: Path) -> Iterator[bytes]:
    """Yield the file in blocks that end where a row ends, the last one possibly without a line break.

    Empty lines are left out.
    """
    rest = b""
    for chunk in _chunks(path):
        block = rest + chunk
        cut = _end_of_last_row(block)
        if rows := without_empty_lines(block[:cut]):
            yield rows
        rest = block[cut:]
        if len(rest) > _MAX_ROW:
            raise ValueError(f"{path} has a row of more than {_MAX_ROW} bytes: is a quotation mark left open?")
    if rest.strip():
        yield rest


def without_empty_lines(block: bytes) -> bytes:
    """Leave out the empty lines of a block of whole rows; between quotation marks they may belong to a text."""
    if b"\n\n" not in block and b"\n\r\n" not in block and not block.startswith((b"\n", b"\r\n")):
        return block
    if b'"' in block:
        rows = block.strip(b"\r\n")
        return rows + b"\n" if rows else b""
    return re.sub(rb"(?m)^\r?\n", b"", block)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        start = file.read(4)
    for mark, what in _OTHERS.items():
        if start.startswith(mark):
            raise ValueError(f"{path} is {what}")
    if start[:2] == b"\x1f\x8b":
        yield from _unpacked(path, gzip.open)
    elif start == b"\x28\xb5\x2f\xfd":
        yield from _unpacked(path, zstd.open)
    else:
        with path.open("rb") as file:
            yield from _without_mark(file)


def _without_mark(file: IO[bytes]) -> Iterator[bytes]:
    first = True
    while chunk := file.read(BLOCK):
        yield chunk.removeprefix(b"\xef\xbb\xbf") if first else chunk
        first = False


def _unpacked(path: Path, opened: Callable[[Path], Any]) -> Iterator[bytes]:
    try:
        with opened(path) as file:
            yield from _without_mark(file)
    except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        raise ValueError(f"{path} is damaged or incomplete ({error}): fetch it again") from None


def _end_of_last_row(block: bytes) -> int:
    """Return where the last complete row ends: a line break outside quotation marks."""
    end = block.rfind(b"\n") + 1
    quotes = block.count(b'"', 0, end)
    while end and quotes % 2:
        before = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', before, end)
        end = before
    return end


def look(path: Path, block: bytes, header: bool | None) -> Layout:
    """Tell how a file is written from its first block."""
    line = block.split(b"\n", 1)[0].decode("utf-8", errors="replace").strip("\r\n")
    separator = next((mark for mark in _SEPARATORS if mark in line), ",")
    raw = line.split(separator) if len(separator) > 1 else next(csv.reader([line], delimiter=separator), [""])
    fields = [field.strip().strip('"') for field in raw]
    if header is None:
        header = not any(_is_number(field) for field in fields)
    if header and len(set(fields)) < len(fields):
        raise ValueError(f"{path} has two columns of the same name in its header: {fields}")
    return Layout(separator, fields if header else None, len(fields))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().split("\n", 1)[0]


def parse(
    block: bytes, layout: Layout, types: dict[int, pl.DataType], *, wrong_is_null: bool = False
) -> list[pl.Series]:
    """Read the fields numbered in ``types`` of a block of rows, in the order of ``types``.

    A field of another type is an error, or null with ``wrong_is_null``.
    """
    separator = layout.separator
    if separator == "::":
        # MovieLens separates by two characters, polars by one; this one occurs in no such file.
        block, separator = block.replace(b"::", b"\x1f"), "\x1f"
    schema = {f"field_{number}": types.get(number, pl.String()) for number in range(layout.width)}
    wanted = sorted(types)
    # polars expects as many fields as the first line has, so that line is ours.
    block = separator.encode() * (layout.width - 1) + b"\n" + block
    frame = pl.read_csv(
        block,
        has_header=False,
        separator=separator,
        columns=wanted,
        schema=schema,
        ignore_errors=wrong_is_null,
    )
    return [frame.to_series(wanted.index(number)).slice(1) for number in types]
