"""Reading tables from files: csv, tsv, ``::``-separated, parquet; text also compressed.

Files of interactions are read a batch of rows at a time, so that what is kept decides how much memory is needed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from sadrec.data import _text
from sadrec.data._assemble import Assembler
from sadrec.data._columns import find_column

ROLES = ("user", "item", "rating", "timestamp")
_WITHOUT_HEADER = {3: ["user", "winner", "loser"], 4: ["user", "left", "right", "winner"]}
_PARQUET = b"PAR1"
_SLICE = 2**19
"""Rows of a parquet file read at once: a group of rows is read again for each slice of it."""


class _NotNumbers(Exception):
    """What looked like whole numbers at first turns out to be text (ids) or to have decimals (times)."""

    def __init__(self, role: str) -> None:
        self.role = role


def read_interactions(
    path: str | Path,
    names: dict[str, str | None],
    new_assembler: Callable[[], Assembler],
    *,
    header: bool | None = None,
    text_ids: bool = False,
) -> Assembler:
    """Read a file of interactions into an assembler.

    Parameters
    ----------
    path
        The file.
    names
        Column name ("auto", or ``None`` for none) of user, item, rating and timestamp.
    new_assembler
        Makes an empty assembler.
    header
        Whether a text file has a line of column names; ``None`` looks.
    text_ids
        Read ids as text even when they look like numbers.
    """
    path = check_file(path)
    as_text = {"user", "item"} if text_ids else set()
    while True:
        batches = _parquet_batches(path, names)
        if not is_parquet(path):
            batches = _TextFile(path, names, header, as_text).batches()
        try:
            with naming(path):
                return _fill(new_assembler(), batches)
        except _NotNumbers as found:
            # Start again: what was taken for numbers must be read as it is written.
            as_text.add(found.role)


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Put the name of a file before what is wrong with its content."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if str(path) in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{path}: {error}") from None


def _fill(assembler: Assembler, batches: Iterator[dict[str, pl.Series]]) -> Assembler:
    for batch in batches:
        assembler.add(batch["user"], batch["item"], batch.get("rating"), batch.get("timestamp"))
    return assembler


def check_file(path: str | Path) -> Path:
    """Return the path of a file that exists and is not empty."""
    path = Path(path).expanduser()
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file, or use sadrec.data.load for a known data set")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    return path


def is_parquet(path: Path) -> bool:
    """Whether a file is parquet, by its first bytes or its name."""
    with path.open("rb") as file:
        return file.read(4) == _PARQUET or path.suffix in (".parquet", ".pq")


def column_names(path: str | Path, *, header: bool | None = None) -> list[str]:
    """Return the names of a file's columns; none where a text file has no header."""
    path = check_file(path)
    if is_parquet(path):
        try:
            return list(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _not_parquet(path, error) from None
    block = next(_text.text_blocks(path), b"")
    return _text.look(path, block, header).columns or []


def _not_parquet(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} cannot be read as parquet ({_text.first_line(error)}): fetch it again")


def choose(columns: list[str], names: dict[str, str | None]) -> dict[str, str]:
    """Find the column of each role."""
    chosen = {}
    for role in ROLES:
        name = find_column(columns, names[role], role, required=role in ("user", "item"))
        if name is not None:
            chosen[role] = name
    if "user" not in chosen or "item" not in chosen:
        raise ValueError("interactions need a column of users and one of items")
    return chosen


# -- parquet ---------------------------------------------------------------------------------------------------


def _parquet_batches(path: Path, names: dict[str, str | None]) -> Iterator[dict[str, pl.Series]]:
    try:
        scan = pl.scan_parquet(path)
        chosen = choose(scan.collect_schema().names(), names)
        rows = int(scan.select(pl.len()).collect().item())
        for start in range(0, rows, _SLICE):
            frame = scan.select(list(chosen.values())).slice(start, _SLICE).collect()
            yield {role: frame[name] for role, name in chosen.items()}
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _not_parquet(path, error) from None


# -- text ------------------------------------------------------------------------------------------------------


class _TextFile:
    """A text file of interactions, read block by block."""

    def __init__(self, path: Path, names: dict[str, str | None], header: bool | None, as_text: set[str]) -> None:
        self._path, self._names, self._header, self._as_text = path, names, header, as_text
        self._layout = _text.Layout(",", None, 0)
        self._fields: dict[str, int] = {}
        self._types: dict[str, pl.DataType] = {}
        self._row = 0

    def batches(self) -> Iterator[dict[str, pl.Series]]:
        for block in _text.text_blocks(self._path):
            rows = block if self._fields else self._begin(block)
            if not rows.strip():
                continue
            if not self._types:
                self._types = self._choose_types(rows)
            batch = self._parse(rows, self._types)
            yield batch
            self._row += len(batch["user"])

    def _begin(self, block: bytes) -> bytes:
        """Look at the first line; return the rows after it, or all where it is one of them."""
        self._layout = layout = _text.look(self._path, block, self._header)
        columns = layout.columns
        if columns is None:
            columns = [*ROLES, *(f"column {number}" for number in range(5, layout.width + 1))][: layout.width]
        else:
            block = block.partition(b"\n")[2]
        try:
            chosen = choose(columns, self._names)
        except ValueError as error:
            if layout.columns is None or self._header:
                raise
            raise ValueError(
                f"{error}; or, if the first line is a row like any other, pass header=False (--no-header)"
            ) from None
        self._fields = {role: columns.index(name) for role, name in chosen.items()}
        return block

    def _choose_types(self, block: bytes) -> dict[str, pl.DataType]:
        """Choose the type of each field by the rows of the first block."""
        types: dict[str, pl.DataType] = {}
        for role, field in self._parse(block, {}).items():
            types[role] = pl.String()
            if role == "rating":
                types[role] = pl.Float32()
            elif role == "timestamp" and role in self._as_text:
                types[role] = pl.Float64()
            elif role not in self._as_text:
                if _fits(field, pl.Int64()) and not (role in ("user", "item") and _has_leading_zeros(field)):
                    types[role] = pl.Int64()
                elif role == "timestamp" and _fits(field, pl.Float64()):
                    types[role] = pl.Float64()
        return types

    def _parse(self, block: bytes, types: dict[str, pl.DataType]) -> dict[str, pl.Series]:
        by_number = {number: types.get(role, pl.String()) for role, number in self._fields.items()}
        try:
            return dict(zip(self._fields, _text.parse(block, self._layout, by_number), strict=True))
        except pl.exceptions.PolarsError as error:
            message = _text.first_line(error)
        if "utf-8" in message:
            raise ValueError(f"{self._path} is not UTF-8 text: convert it first, e.g. with iconv")
        if "more fields" in message:
            raise ValueError(
                f"{self._path}: a row after row {self._row} has more fields than the {self._layout.width} of the "
                "first line"
            )
        if types:
            self._explain(block, types)
        hint = "; is a quotation mark left open, or not doubled inside a text?" if b'"' in block else ""
        raise ValueError(f"{self._path} cannot be read near row {self._row}: {message}{hint}")

    def _explain(self, block: bytes, types: dict[str, pl.DataType]) -> None:
        """Raise what is wrong with a block whose fields are not of the types they should be."""
        for role, field in self._parse(block, {}).items():
            wrong = field.is_not_null() & field.str.strip_chars().cast(types[role], strict=False).is_null()
            if not wrong.any():
                continue
            decimals = role == "timestamp" and types[role] == pl.Int64 and _fits(field.filter(wrong), pl.Float64())
            if role in ("user", "item") or decimals:
                raise _NotNumbers(role)
            first = int(wrong.arg_true()[0])
            raise ValueError(f"row {self._row + first} has the {role} {field[first]!r}, not a number")


def _fits(field: pl.Series, dtype: pl.DataType) -> bool:
    return field.str.strip_chars().cast(dtype, strict=False).null_count() == field.null_count()


def _has_leading_zeros(field: pl.Series) -> bool:
    """Whether numbers are written in a way that would be lost: 007 and 7 may be two people."""
    return bool(field.str.contains(r"^\s*[+-]?0[0-9]").any())


def read_table(path: str | Path, *, header: bool | None = None) -> pl.DataFrame:
    """Read a whole file into a frame, guessing the types."""
    path = check_file(path)
    if is_parquet(path):
        try:
            return pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _not_parquet(path, error) from None
    text = b"".join(_text.text_blocks(path))
    layout = _text.look(path, text, header)
    columns = layout.columns or _WITHOUT_HEADER.get(layout.width) or [f"column {n + 1}" for n in range(layout.width)]
    separator = layout.separator
    if separator == "::":
        text, separator = text.replace(b"::", b"\x1f"), "\x1f"
    try:
        frame = pl.read_csv(text, has_header=layout.columns is not None, separator=separator, infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read: {_text.first_line(error)}") from None
    frame.columns = columns
    return frame
