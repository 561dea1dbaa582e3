"""Text files in blocks of whole rows: plain, gzip or zstd; comma, tab, semicolon or ``::`` between fields."""

import csv
import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
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
_ROW_END = re.compile(rb'"[^"]*"|\n')
_EMPTY_LINE = re.compile(rb'("[^"]*")|^\r?\n', re.MULTILINE)
_LONE_RETURN = re.compile(rb"\r(?!\n)")


class Layout(NamedTuple):
    """How the rows of a text file are written; without a header, it has no names of columns."""

    separator: str
    columns: list[str] | None
    width: int


def text_blocks(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield an opened file, from its start, in blocks of whole rows, each with the number of its first line.

    The last block may end without a line break. A file of another kind, damaged, or changed meanwhile is refused.
    """
    rest = b""
    line = 1
    for chunk in _chunks(file):
        block = rest + chunk
        cut = end_of_last_row(block)
        if cut:
            rows = block[:cut]
            _refuse_lone_return(rows, line)
            yield line, rows
            # Three times as fast as bytes.count.
            line += int(np.count_nonzero(np.frombuffer(rows, dtype=np.uint8) == ord("\n")))
        rest = block[cut:]
        if len(rest) > _MAX_ROW:
            raise ValueError(f"line {line} has more than {_MAX_ROW} bytes: is a quotation mark left open?")
    if rest.strip():
        if rest.count(b'"') % 2:
            raise ValueError(f"after line {line}: is a quotation mark left open, or is the file cut short?")
        _refuse_lone_return(rest, line)
        yield line, rest


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the unpacked content, without the mark that some programs put before UTF-8."""
    file.seek(0)
    size = os.fstat(file.fileno()).st_size
    start = file.read(4)
    file.seek(0)
    for mark, what in _OTHERS.items():
        if start.startswith(mark):
            raise ValueError(f"it is {what}")
    unpacked: Any = file
    if start[:2] == b"\x1f\x8b":
        unpacked = gzip.GzipFile(fileobj=file)
    elif start == b"\x28\xb5\x2f\xfd":
        unpacked = zstd.ZstdFile(file)
    first = True
    try:
        while chunk := unpacked.read(BLOCK):
            yield chunk.removeprefix(b"\xef\xbb\xbf") if first else chunk
            first = False
    except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        raise ValueError(f"it is damaged or incomplete ({error}): fetch it again") from None
    if os.fstat(file.fileno()).st_size != size or file.tell() < size:
        raise ValueError("it was changed while it was read: wait until it is written, and read it again")


def end_of_last_row(block: bytes) -> int:
    """Return where the last complete row ends: a line break outside quotation marks."""
    end = block.rfind(b"\n") + 1
    quotes = block.count(b'"', 0, end)
    while end and quotes % 2:
        before = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', before, end)
        end = before
    return end


def without_empty_lines(block: bytes) -> bytes:
    """Leave out the empty lines of a block of whole rows; between quotation marks they belong to a text."""
    if b"\n\n" not in block and b"\n\r\n" not in block and not block.startswith((b"\n", b"\r\n")):
        return block
    return _EMPTY_LINE.sub(rb"\1", block)


def rows_of(block: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield for each row of a block how many lines come before it, where it starts and where it ends."""
    line = lines = start = 0
    for match in _ROW_END.finditer(block):
        lines += match.group().count(b"\n")
        if match.group() == b"\n":
            if block[start : match.start()].strip(b"\r"):
                yield line, start, match.end()
            line, start = lines, match.end()
    if block[start:].strip(b"\r"):
        yield line, start, len(block)


def lines_before(block: bytes, row: int) -> int:
    """Return how many lines of a block come before one of its rows."""
    return next((line for number, (line, _, _) in enumerate(rows_of(block)) if number == row), block.count(b"\n"))


def _refuse_lone_return(block: bytes, line: int) -> None:
    """Refuse a carriage return that no line feed follows, outside quotation marks."""
    if b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"):
        return
    for match in _LONE_RETURN.finditer(block.rstrip(b"\r")):
        if block.count(b'"', 0, match.start()) % 2 == 0:
            line += block.count(b"\n", 0, match.start())
            raise ValueError(
                f"line {line} has a carriage return with no line feed after it: "
                "convert the line ends first, e.g. with tr '\\r' '\\n'"
            )


def look(line: bytes, header: bool | None) -> Layout:
    """Tell how a file is written from its first row."""
    text = line.decode("utf-8", errors="replace").strip("\r\n")
    separator = next((mark for mark in _SEPARATORS if mark in text), ",")
    try:
        raw = text.split(separator) if len(separator) > 1 else next(csv.reader([text], delimiter=separator), [""])
    except csv.Error as error:
        raise ValueError(f"its first line cannot be read ({error}): is a quotation mark left open?") from None
    fields = [field.strip().strip('"') for field in raw]
    if header is None:
        header = not any(_is_number(field) for field in fields)
    if header and len(set(fields)) < len(fields):
        raise ValueError(f"it has two columns of the same name in its header: {fields}")
    return Layout(separator, fields if header else None, len(fields))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def may_have_leading_zeros(block: bytes, separator: str) -> bool:
    """Whether a field of a block may start with a zero and another digit; quick, so that it can be asked of each."""
    letters = np.frombuffer(b"\n" + block, dtype=np.uint8)
    for start in range(0, len(letters), 2**17):  # a part that fits the processor's cache
        part = letters[start : start + 2**17 + 2]
        before = part[:-2]
        mask = (before == ord(separator[-1])) | (before == ord("\n")) | (before == ord('"'))
        mask &= part[1:-1] == ord("0")
        mask &= part[2:] - np.uint8(ord("0")) < 10
        if mask.any():
            return True
    return False


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().split("\n", 1)[0]


def parse(
    block: bytes, layout: Layout, types: dict[int, pl.DataType], *, wrong_is_null: bool = False
) -> list[pl.Series]:
    """Read the fields numbered in ``types``, in that order; one of another type is an error, or null."""
    separator = layout.separator
    if separator == "::":
        # MovieLens separates by two characters, polars by one; this one occurs in no such file.
        block, separator = block.replace(b"::", b"\x1f"), "\x1f"
    schema = {f"field_{number}": types.get(number, pl.String()) for number in range(layout.width)}
    wanted = sorted(types)
    # polars expects as many fields as the first line has, so that line is ours.
    block = separator.encode() * (layout.width - 1) + b"\n" + block
    frame = pl.read_csv(
        block, has_header=False, separator=separator, columns=wanted, schema=schema, ignore_errors=wrong_is_null
    )
    return [frame.to_series(wanted.index(number)).slice(1) for number in types]
