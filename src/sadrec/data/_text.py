"""Text files in blocks of whole rows, plain, gzip or zstd: fields between comma, tab, semicolon, ``::``; JSON lines."""

import codecs
import csv
import gzip
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
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
"""Unreadable kinds of files, by their first bytes."""
_ROW_END = re.compile(rb'"[^"]*"|\n')
_LONE_RETURN = re.compile(rb'"[^"]*"|(\r)(?!\n)')
_QUOTE, _FEED, _RETURN = b'"\n\r'
EXPANSION, FREE = "SADREC_MAX_EXPANSION", 2**28
"""The environment variable for the largest ratio of unpacked to packed size of a file."""


class TextFormat(NamedTuple):
    """The layout of the rows of a text file; without a header, it has no names of columns."""

    separator: str
    columns: list[str] | None
    width: int


def text_blocks(file: IO[bytes], progress: Callable[[int], object] | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield an opened file, from its start, in blocks of whole rows, each with the number of its first line.

    The last block may end without a line break. A file of another kind, damaged, or changed meanwhile is refused.
    ``progress`` is called with the bytes of the file that were read since the last call.
    """
    held: list[bytes] = []  # of a row whose end is not found yet
    line, length, inside = 1, 0, False
    for chunk in chunks(file, progress):
        cut, inside = end_of_last_row(chunk, inside)
        if cut:
            rows = b"".join((*held, chunk[:cut]))
            held, length = [], 0
            _refuse_lone_return(rows, line)
            yield line, rows
            line += _count(rows, _FEED)
        held.append(chunk[cut:])
        length += len(chunk) - cut
        if length > _MAX_ROW:
            raise ValueError(f"line {line} has more than {_MAX_ROW} bytes: is a quotation mark left open?")
    rest = b"".join(held)
    if rest.strip():
        if inside:
            raise ValueError(f"after line {line}: is a quotation mark left open, or is the file cut short?")
        _refuse_lone_return(rest, line)
        yield line, rest


def _count(block: bytes, letter: int) -> int:
    """Count a letter, three times as fast as bytes.count."""
    return int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == letter))


def chunks(file: IO[bytes], progress: Callable[[int], object] | None) -> Iterator[bytes]:
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
    most = size if unpacked is file else expansion_limit(size)
    done = read = 0
    try:
        while chunk := unpacked.read(BLOCK):
            done += len(chunk)
            if done > most and unpacked is not file:
                raise ValueError(too_large(size, most))
            if progress is not None:
                read, before = file.tell(), read
                progress(read - before)
            if done == len(chunk):
                chunk = chunk.removeprefix(b"\xef\xbb\xbf")
                _decoded(chunk[: 2**12].split(b"\n", 1)[0], cut=True)
            yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        raise ValueError(f"it is damaged or incomplete ({error}): fetch it again") from None
    if os.fstat(file.fileno()).st_size != size or file.tell() < size:
        raise ValueError("it was changed while it was read: wait until it is written, and read it again")


def expansion_limit(size: int) -> int:
    """Return the number of bytes that a packed file of this size may unpack to."""
    text = os.environ.get(EXPANSION, "100")
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{EXPANSION} must be a whole number, at least 1, not {text!r}")
    return max(int(text) * size, FREE)


def too_large(size: int, most: int) -> str:
    """Return the error for a packed file that unpacks to more than the limit."""
    return (
        f"it has {size:,} bytes and unpacks to more than {most:,}, as files do that are made to fill a memory or a "
        f"disk: if you trust it, unpack it first, or set the variable {EXPANSION} to how many times its size it may be"
    )


def end_of_last_row(block: bytes, inside: bool = False) -> tuple[int, bool]:
    """Return where the last complete row ends, and whether the end of the block is inside quotation marks.

    A row ends at a line break outside quotation marks; ``inside`` tells whether the block starts inside them.
    """
    inside ^= bool(_count(block, _QUOTE) % 2)
    for size in (2**16, len(block)):  # mostly, it is near the end
        tail = np.frombuffer(block, dtype=np.uint8)[-size:]
        breaks = np.flatnonzero(tail == _FEED)
        quotes = np.flatnonzero(tail == _QUOTE)
        behind = len(quotes) - np.searchsorted(quotes, breaks)
        outside = np.flatnonzero(behind % 2 == inside)
        if outside.size:
            return len(block) - len(tail) + int(breaks[outside[-1]]) + 1, inside
        if size >= len(block):
            break
    return 0, inside


def without_empty_lines(block: bytes) -> bytes:
    """Leave out the empty lines of a block of whole rows; between quotation marks they belong to a text."""
    if b"\n\n" not in block and b"\n\r\n" not in block and not block.startswith((b"\n", b"\r\n")):
        return block
    letters = np.frombuffer(block, dtype=np.uint8)
    feed = letters == _FEED
    starts = np.concatenate(([True], feed[:-1]))  # of lines
    empty = starts & feed
    returns = starts[:-1] & (letters[:-1] == _RETURN) & feed[1:]
    empty[:-1] |= returns
    empty[1:] |= returns
    if b'"' in block:
        empty &= ~np.logical_xor.accumulate(letters == _QUOTE)
    kept: bytes = letters[~empty].tobytes()
    return kept


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
        if match.group(1):
            line += block.count(b"\n", 0, match.start())
            raise ValueError(
                f"line {line} has a carriage return with no line feed after it: "
                "convert the line ends first, e.g. with tr '\\r' '\\n'"
            )


def look(line: bytes, header: bool | None) -> TextFormat:
    """Return the layout of a file, by its first row."""
    text = _decoded(line).strip("\r\n")
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
    return TextFormat(separator, fields if header else None, len(fields))


def _decoded(line: bytes, cut: bool = False) -> str:
    """Return the text of a line, which may be cut inside a letter; refuse what is no text."""
    if b"\0" in line:
        raise ValueError("its first line has NUL bytes: it is UTF-16 text (convert it, e.g. with iconv) or no text")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(line, final=not cut)
    except UnicodeDecodeError:
        raise ValueError(
            "its first line is not UTF-8 text: convert it, e.g. with iconv, if it is text at all"
        ) from None


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def may_lose_by_number(block: bytes, separator: str) -> bool:
    """Whether a field of a block may be a number that is not written as numbers are: 007, +7, -0; quick."""
    zero, minus, plus = b"0-+"
    letters = np.frombuffer(b"\n" + block, dtype=np.uint8)
    for start in range(0, len(letters), 2**17):  # a part that fits the processor's cache
        part = letters[start : start + 2**17 + 2]
        before, first, second = part[:-2], part[1:-1], part[2:]
        suspect = (first == zero) & (second - np.uint8(zero) < 10)
        suspect |= first == plus
        suspect |= (first == minus) & (second == zero)
        if suspect.any():
            mask = (before == ord(separator[-1])) | (before == _FEED) | (before == _QUOTE)
            mask |= (before == ord(" ")) | (before == ord("\t"))
            if (suspect & mask).any():
                return True
    return False


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().split("\n", 1)[0]


def parse(
    block: bytes, layout: TextFormat, types: dict[int, pl.DataType], *, wrong_is_null: bool = False
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


# -- JSON lines: an object per line, such as the answers that ``sadrec serve --log`` keeps -----------------------------

JSON_SUFFIXES = (".jsonl", ".ndjson")


class JsonRows(NamedTuple):
    """Some objects, and the number of the line of each."""

    objects: list[dict[str, Any]]
    lines: list[int]
    damaged: list[int]  # numbers of lines that are no object


def is_json_lines(name: str) -> bool:
    """Whether a file holds JSON lines, compressed or not, by its name."""
    return name.removesuffix(".gz").removesuffix(".zst").endswith(JSON_SUFFIXES)


def json_blocks(file: IO[bytes], progress: Callable[[int], object] | None = None) -> Iterator[JsonRows]:
    """Yield the objects of an opened file in blocks; rows that are appended meanwhile are ignored."""
    held, line = b"", 0
    for chunk in _json_chunks(file, progress):
        *lines, held = (held + chunk).split(b"\n")
        yield _json_rows(lines, line)
        line += len(lines)
    if held.strip():
        yield _json_rows([held], line)


def _json_chunks(file: IO[bytes], progress: Callable[[int], object] | None) -> Iterator[bytes]:
    file.seek(0)
    start = file.read(4)
    if start[:2] == b"\x1f\x8b" or start == b"\x28\xb5\x2f\xfd":
        yield from chunks(file, progress)
        return
    file.seek(0)
    left = os.fstat(file.fileno()).st_size
    while left and (chunk := file.read(min(left, BLOCK))):
        left -= len(chunk)
        if progress is not None:
            progress(len(chunk))
        yield chunk


def _json_rows(lines: list[bytes], before: int) -> JsonRows:
    rows = JsonRows([], [], [])
    for number, text in enumerate(lines, before + 1):
        if not text.strip():
            continue
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, dict):
            rows.objects.append(parsed)
            rows.lines.append(number)
        else:
            rows.damaged.append(number)
    return rows


def json_column(values: list[Any], number: bool) -> pl.Series | None:
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


def json_text(values: list[Any]) -> pl.Series:
    """Return values as text; a missing one is null."""
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
