"""Files of rows, read a batch at a time: csv, tsv, ``::``-separated, JSON lines, parquet; text also compressed.

Interactions and comparisons are read here, by the same rules. What is kept of the rows decides how much memory is
needed, not the size of the file.
"""

import os
import re
import stat
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Protocol, Self, TypeVar

import polars as pl

from sadrec._core import check
from sadrec._core.files import kind_in_words, kind_of_sadrec_file
from sadrec._core.words import one_line
from sadrec.data import DataWarning, _text
from sadrec.data._columns import WHOLE_NUMBER, Where, after, row_of_frame

Columns = dict[str, pl.Series]
Progress = Callable[[int], object]

PARQUET = (".parquet", ".pq")
"""Endings of the names of Parquet files."""

_KINDS = {"user": "user", **dict.fromkeys(("item", "winner", "loser", "left", "right"), "item"), "outcome": "outcome"}
"""The ids of one kind are of one type: where one column of items is text, all are."""
_NUMBERS = ("rating", "weight", "left_score", "right_score")
_SLICE = 2**19
"""Rows of a parquet file read at once: a group of rows is read again for each slice of it."""


class Consumer(Protocol):
    """A receiver of the rows of a table."""

    rows: int

    def add(self, columns: Columns, where: Where) -> None:
        """Take the next rows; ``where`` names a row of them in an error."""


C = TypeVar("C", bound=Consumer)


class _NotNumbers(Exception):
    """A column read as whole numbers holds text (ids) or decimals (times)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Table:
    """A file of rows, opened once.

    ``header`` says whether a text file starts with column names; None: it does if no field of the first line is a
    number. ``text_ids`` reads ids as text even when they look like numbers. ``show_progress`` shows a bar on a terminal
    while a long file is read. ``columns`` are the names of the columns, ``None`` where a text file has no
    header, ``width`` is their number, and ``is_parquet`` tells parquet from text.
    """

    def __init__(
        self, path: str | Path, header: bool | None = None, text_ids: bool = False, show_progress: bool = True
    ) -> None:
        self.path = Path(path).expanduser()
        if self.path.is_dir():
            raise IsADirectoryError(
                f"{self.path} is a folder: name a file, or use sadrec.data.load for a known data set"
            )
        self._file = self.path.open("rb")
        self._header, self._text_ids, self._show_progress = header, text_ids, show_progress
        self.chosen: dict[str, str] = {}  # once it is read: the column for each role
        try:
            with naming(self.path):
                check.room(check.START)
                self._find_format()
        except BaseException:
            self._file.close()
            raise

    def _find_format(self) -> None:
        """Find out whether the file is Parquet, JSON lines or text, and the names of its columns."""
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a file on a disk: save its content to a file first")
        self._size = status.st_size
        if self._size == 0:
            raise ValueError("it is empty")
        if kind := kind_of_sadrec_file(self._file):
            raise ValueError(
                f"it is not a table but {kind_in_words(kind)}: name the file of interactions or comparisons"
            )
        self.is_parquet = holds_parquet(self.path, self._file)
        self._is_json = not self.is_parquet and _text.is_json_lines(self.path.name)
        self._layout = _text.TextFormat(",", None, 0)
        self._skip = 0
        if self._is_json:
            first = next((rows for rows in _text.json_blocks(self._file) if rows.objects or rows.damaged), None)
            if first is None:
                raise ValueError("it has no rows")
            if not first.objects:
                raise ValueError(
                    f"line {first.damaged[0]} is not an object in JSON, and the file should have one per line"
                )
            # one line may lack a key, as a damaged one does
            self.columns: list[str] | None = list(dict.fromkeys(name for one in first.objects for name in one))
            self.width = len(self.columns)
            return
        if self.is_parquet:
            self._check_parquet(self._size)
            with parquet_errors():
                self.columns = list(pl.read_parquet_schema(self.path))
            self.width = len(self.columns)
            return
        before = 0
        for _, block in _text.text_blocks(self._file):
            if rows := block.lstrip(b"\r\n"):
                _, _, end = next(_text.rows_of(rows))
                self._layout = _text.look(rows[:end], self._header)
                self._skip = before + len(block) - len(rows) + end if self._layout.columns is not None else 0
                break
            before += len(block)
        self.columns, self.width = self._layout.columns, self._layout.width

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(
        self, choose: Callable[[list[str]], dict[str, str]], without_header: Sequence[str], start: Callable[[], C]
    ) -> C:
        """Pass all rows to a consumer, in batches, and return the consumer.

        ``choose`` takes the names of the columns, which are ``without_header`` where the file has none, and returns the
        name for each role. ``start`` makes a consumer: what was taken for numbers may turn out to be text late in the
        file, and then the file is read again, into a new consumer.
        """
        from sadrec._core.progress import Bar

        with naming(self.path):
            fields = self._choose(choose, without_header)
            as_text = {"user", "item"} if self._text_ids else set()
            batches = self._json_batches if self._is_json else self._text_batches
            batches = self._parquet_batches if self.is_parquet else batches
            shown = partial(Bar, desc=f"reading {self.path.name}", delay=2, leave=False, unit="B", unit_scale=True)
            while True:
                consumer = start()
                try:
                    with shown(total=self._size, disable=None if self._show_progress else True) as bar:
                        for columns, where in batches(fields, as_text, bar.update):
                            consumer.add(columns, where)
                    break
                except _NotNumbers as signal:
                    as_text.add(signal.kind)
            if consumer.rows == 0:
                raise ValueError("it has no rows")
            return consumer

    def _choose(self, choose: Callable[[list[str]], dict[str, str]], without_header: Sequence[str]) -> dict[str, int]:
        if self.width == 0:
            raise ValueError("it has no rows")
        names = self.columns
        if names is None:
            unnamed = (f"column {number}" for number in range(len(without_header) + 1, self.width + 1))
            names = [*without_header, *unnamed][: self.width]
        try:
            chosen = choose(names)
        except ValueError as error:
            if self.is_parquet or self._is_json or self.columns is None or self._header:
                raise
            raise ValueError(f"{error}; if the file has no line of names, pass header=False (--no-header)") from None
        self.chosen = chosen
        return {role: names.index(name) for role, name in chosen.items()}

    # -- parquet --------------------------------------------------------------------------------------------------

    def _check_parquet(self, size: int) -> None:
        self._file.seek(max(size - 8, 0))
        tail = self._file.read(8)
        if tail[4:] != b"PAR1" or int.from_bytes(tail[:4], "little") > size - 12:
            raise ValueError("it cannot be read as parquet (it is cut short, or something else): fetch it again")

    def _parquet_batches(
        self, fields: dict[str, int], as_text: set[str], progress: Progress
    ) -> Iterator[tuple[Columns, Where]]:
        names = {role: (self.columns or [])[number] for role, number in fields.items()}
        rows = parquet_length(self.path)
        if 8 * rows * len(names) > (most := _text.expansion_limit(self._size)):
            raise ValueError(_text.too_large(self._size, most))
        roles = {role for role, kind in _KINDS.items() if kind in as_text}
        for columns, where in parquet_batches(self.path, names, 0, rows, roles):
            progress(self._size * len(next(iter(columns.values()))) // rows)
            yield columns, where

    # -- JSON lines ---------------------------------------------------------------------------------------------------

    def _json_batches(
        self, fields: dict[str, int], as_text: set[str], progress: Progress
    ) -> Iterator[tuple[Columns, Where]]:
        names = {role: (self.columns or [])[number] for role, number in fields.items()}
        damaged: list[int] = []
        for rows in _text.json_blocks(self._file, progress):
            damaged += rows.damaged
            if not rows.objects:
                continue
            columns: Columns = {}
            where = partial(_line_in, rows.lines)
            for role, name in names.items():
                values = [one.get(name) for one in rows.objects]
                kind = _KINDS.get(role)
                if kind in as_text:
                    columns[role] = _text.json_text(values)
                    continue
                column = _text.json_column(values, number=kind is None)
                if column is None or (kind is not None and column.dtype == pl.String):
                    if kind is None:
                        raise ValueError(f"near {where(0)}, {name!r} is not a number")
                    raise _NotNumbers(kind)
                columns[role] = column
            yield columns, where
        if damaged:
            warnings.warn(
                f"{self.path}: {len(damaged)} lines are no objects in JSON and are left out, the first is line "
                f"{damaged[0]}",
                DataWarning,
                stacklevel=2,
            )

    # -- text -----------------------------------------------------------------------------------------------------

    def _text_batches(
        self, fields: dict[str, int], as_text: set[str], progress: Progress
    ) -> Iterator[tuple[Columns, Where]]:
        types: dict[str, pl.DataType] = {}
        skip = self._skip
        for line, block in _text.text_blocks(self._file, progress):
            if skip:
                line += block.count(b"\n", 0, skip)
                block, skip = block[skip:], max(skip - len(block), 0)
            where = partial(_line_of, block, line)
            rows = _text.without_empty_lines(block)
            if not rows or rows.isspace():
                continue
            check.room(16 * len(rows))
            reader = _Block(rows, self._layout, fields, where)
            if not types:
                types = _choose_types(reader.parse({}), as_text)
            elif _text.may_lose_by_number(rows, self._layout.separator):
                reader.refuse_lost_writing(types)
            yield reader.parse(types), where
            if not block.endswith(b"\n"):
                self._warn_if_cut(rows, where)

    def _warn_if_cut(self, rows: bytes, where: Where) -> None:
        """Warn if the last row, which has no line end, has fewer fields than the others."""
        last, _ = _text.end_of_last_row(rows)
        count = rows[last:].count(self._layout.separator.encode()) + 1
        if count < self._layout.width:
            row = sum(1 for _ in _text.rows_of(rows[:last]))
            warnings.warn(
                f"{self.path}: {where(row)}, the last, has {count} of {self._layout.width} fields and no line end: is "
                "the file cut short?",
                DataWarning,
                stacklevel=2,
            )


@contextmanager
def opened(
    path: str | Path | Table, header: bool | None = None, text_ids: bool = False, show_progress: bool = True
) -> Iterator[Table]:
    """Open a file for the duration of the context; leave an open one open."""
    if isinstance(path, Table):
        yield path
    else:
        with Table(path, header, text_ids, show_progress) as table:
            yield table


def holds_parquet(path: Path, file: IO[bytes]) -> bool:
    """Whether a file is Parquet, by its first bytes or else by its name."""
    file.seek(0)
    return file.read(4) == b"PAR1" or path.suffix in PARQUET


@contextmanager
def whole_table(path: str | Path, what: str) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Read a table of items or of features at once: csv, tsv (packed or not), or parquet.

    Yields it with types, and as it is written: of a text file all columns are text. Errors inside the block are raised
    as one that names the file.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no table of {what} {str(path)!r}")
    try:
        with path.open("rb") as file:
            content = None if holds_parquet(path, file) else b"".join(_text.chunks(file, None))  # unpacked, to a limit
        if content is None:
            frame = written = pl.read_parquet(path)
        else:
            separator = "\t" if ".tsv" in path.suffixes else ","
            frame = pl.read_csv(content, separator=separator, infer_schema_length=None)
            written = pl.read_csv(content, separator=separator, infer_schema=False)
        yield frame, written
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        why = one_line(" ".join(str(error).split()))
        raise ValueError(f"{path}: the table of {what} cannot be read ({why[:300]})") from None


@contextmanager
def parquet_errors() -> Iterator[None]:
    """Raise one error for every way in which a parquet file can be damaged."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ValueError(f"it cannot be read as parquet ({_text.first_line(error)}): fetch it again") from None


@contextmanager
def naming(path: Path | None) -> Iterator[None]:
    """Put the name of a file, if there is one, before what is wrong with its content."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if path is None or str(path) in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{path}: {error}".replace(".from_frame(frame, ", ".read(path, ")) from None


def parquet_length(path: Path) -> int:
    """Return the number of rows of a parquet file."""
    with parquet_errors():
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def parquet_batches(
    path: Path, names: Mapping[str, str], start: int, stop: int, as_text: Collection[str] = ()
) -> Iterator[tuple[Columns, Where]]:
    """Yield the columns of some rows of a parquet file, a batch at a time; those of roles in ``as_text`` as text."""
    scan = pl.scan_parquet(path).select(list(dict.fromkeys(names.values())))
    for first in range(start, stop, _SLICE):
        check.room(check.START)
        with parquet_errors():
            frame = scan.slice(first, min(_SLICE, stop - first)).collect()
        columns = {role: frame[name] for role, name in names.items()}
        yield (
            {role: field.cast(pl.String) if role in as_text else field for role, field in columns.items()},
            after(row_of_frame, first),
        )


def _line_in(lines: list[int], row: int) -> str:
    return f"line {lines[row]}"


def _line_of(block: bytes, line: int, row: int) -> str:
    return f"line {line + _text.lines_before(block, row)}"


class _Block:
    """A block of rows of a text file, without empty lines."""

    def __init__(self, rows: bytes, layout: _text.TextFormat, fields: dict[str, int], where: Where) -> None:
        self.rows, self.layout, self.fields, self.where = rows, layout, fields, where

    def parse(self, types: dict[str, pl.DataType]) -> Columns:
        """Return the column of each role, of its type; without types, as text."""
        by_number = {number: types.get(role, pl.String()) for role, number in self.fields.items()}
        try:
            columns = _text.parse(self.rows, self.layout, by_number)
            by_place = dict(zip(by_number, columns, strict=True))
            return {role: by_place[number] for role, number in self.fields.items()}
        except pl.exceptions.PolarsError as error:
            message = _text.first_line(error)
        if "utf-8" in message:
            raise ValueError("it is not UTF-8 text: convert it first, e.g. with iconv")
        if "more fields" in message:
            self._refuse_long_row()
        if types:
            return self._cast(types)
        hint = "; is a quotation mark left open, or not doubled inside a text?" if b'"' in self.rows else ""
        raise ValueError(f"it cannot be read near {self.where(0)}: {message}{hint}")

    def _refuse_long_row(self) -> None:
        separator = self.layout.separator.encode()
        for row, (_, start, end) in enumerate(_text.rows_of(self.rows)):
            count = re.sub(rb'"[^"]*"', b"", self.rows[start:end]).count(separator) + 1
            if count > self.layout.width:
                raise ValueError(f"{self.where(row)} has {count} fields, and the first line has {self.layout.width}")

    def _cast(self, types: dict[str, pl.DataType]) -> Columns:
        """Convert fields to their types, ignoring blanks around them; raise on the first that cannot be converted."""
        columns = self.parse({})
        for role, field in columns.items():
            wrong = field.is_not_null() & ~_is(field, types[role], role in _KINDS)
            if not wrong.any():
                columns[role] = field.str.strip_chars().cast(types[role])
                continue
            if role in _KINDS:
                raise _NotNumbers(_KINDS[role])
            if role == "timestamp" and types[role] == pl.Int64 and _is(field.filter(wrong), pl.Float64()).all():
                raise _NotNumbers(role)
            first = int(wrong.arg_true()[0])
            raise ValueError(f"{self.where(first)} has the {role} {field[first]!r}, not a number")
        return columns

    def refuse_lost_writing(self, types: dict[str, pl.DataType]) -> None:
        """Raise `_NotNumbers` if a column of ids that is read as numbers has an id such as 007.

        The file is then read again, with these ids as text.
        """
        for role, field in self.parse({}).items():
            if role in _KINDS and types[role] == pl.Int64 and not _fits(field, pl.Int64(), ids=True):
                raise _NotNumbers(_KINDS[role])


def _choose_types(columns: Columns, as_text: set[str]) -> dict[str, pl.DataType]:
    """Choose the type for each role by the first rows."""
    text = as_text | {
        _KINDS[role] for role, field in columns.items() if role in _KINDS and not _fits(field, pl.Int64(), ids=True)
    }
    types: dict[str, pl.DataType] = {}
    for role, field in columns.items():
        types[role] = pl.String()
        if role in _NUMBERS or role.startswith("feature "):
            types[role] = pl.Float32()
        elif role in _KINDS:
            types[role] = pl.String() if _KINDS[role] in text else pl.Int64()
        elif role == "timestamp":
            if role not in as_text and _fits(field, pl.Int64()):
                types[role] = pl.Int64()
            elif role in as_text or _fits(field, pl.Float64()):
                types[role] = pl.Float64()
    return types


def _fits(field: pl.Series, dtype: pl.DataType, ids: bool = False) -> bool:
    return bool((field.is_null() | _is(field, dtype, ids)).all())


def _is(field: pl.Series, dtype: pl.DataType, ids: bool = False) -> pl.Series:
    """Return which fields are of a type; 007 is text, since 007 and 7 may be two ids.

    Blanks before a number are lost: they separate fields.
    """
    if dtype == pl.String:
        return field.is_not_null()
    fitting = field.str.strip_chars().cast(dtype, strict=False).is_not_null()
    return fitting & field.str.contains(WHOLE_NUMBER) if ids else fitting
