"""Tables of features in whatever form they come: frames, mappings, matrices, files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp

from sadrec._core.check import whole
from sadrec._core.sparse import as_csr
from sadrec._core.types import Doubles
from sadrec.data._columns import AUTO, WHOLE_NUMBER, find_column, is_frame, open_frame, take_columns
from sadrec.data.ids import Ids, as_id_array
from sadrec.data.tables import whole_table


class Numbers(NamedTuple):
    """Columns of numbers; NaN where one is missing."""

    names: list[str]
    values: Doubles  # (rows, columns)
    bent: bool = True  # whether their effect need not be a straight line


class Words(NamedTuple):
    """A column of categories, or of lists of tags: which words each row has."""

    name: str
    levels: list[str]
    rows: Any  # CSR (rows, levels) of ones


class Unnamed(NamedTuple):
    """A sparse matrix, whose columns have no names."""

    rows: Any  # CSR


TablePart = Numbers | Words | Unnamed


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features by id, in parts; nothing is scaled yet."""

    ids: Ids
    parts: list[TablePart]
    column: str | None = None  # of a frame, that the ids are of

    @property
    def source(self) -> str:
        """The source of the ids, for errors."""
        if self.column is None:
            return ""
        return f" (the ids are taken from the column {self.column!r}: Features(table, id=...) names another)"


class Features:
    """A table of features of items, or of users, for ``fit(item_features=..., user_features=...)``.

    ``fit`` takes whatever is taken here; make a ``Features`` of it to say more about the columns. Numbers and truth
    values are standardised, and what a column of many different numbers does may bend at its deciles; text is a
    category, a list of texts are tags. Missing values are allowed, and so are ids that the table lacks: what is missing
    counts as the mean. Numbers that are codes (a genre's number) are no quantities: turn them into text first.

    Parameters
    ----------
    values
        A data frame (polars, pandas, Arrow) with a column of ids; a mapping from ids to a list of tags, a row of
        numbers, or a mapping from names to values; a matrix (NumPy, SciPy) with a row for each id of the data, in their
        order, or a pair (ids, matrix); or the path of a csv or parquet file.
    id
        The column of ids; None: the column with a usual name (item, movie_id, ...; user, ...), else the first.
    tags
        Names of text columns that hold several tags each, separated by ``separator``.
    minimum
        Categories and tags that fewer rows of the training data have are left out.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"item": ["tea", "ale", "gin"], "price": [1.0, 3.0, 5.0], "kind": ["hot", "cold", "cold"]})
    >>> Features(frame, minimum=1).table(["ale", "gin"], "item").ids
    Ids(3 of item: 'tea', 'ale', 'gin')
    """

    def __init__(
        self,
        values: Any,
        *,
        id: str | None = None,
        tags: str | Sequence[str] = (),
        separator: str = "|",
        minimum: int = 2,
    ) -> None:
        self._values, self._id = values, id
        self._tags = (tags,) if isinstance(tags, str) else tuple(tags)
        if not isinstance(separator, str) or not separator:
            raise ValueError(f"separator must be a text such as '|', not {separator!r}")
        self._separator = separator
        self.minimum = whole(minimum, "minimum", least=1)

    def __repr__(self) -> str:
        return f"Features({type(self._values).__name__})"

    def table(self, ids: Any, what: str) -> FeatureTable:
        """Return the table; ``ids`` are those of the data, ``what`` ("item" or "user") they name."""
        values = self._values
        name = f"{what}_features"
        if isinstance(values, str | Path):
            values = read_table(values, what, self._id)
        if isinstance(values, Mapping):
            table = self._of_mapping(values, what)
        elif isinstance(values, tuple):
            if len(values) != 2:
                raise TypeError(f"{name} as a tuple must be (ids, matrix), not {len(values)} values")
            table = FeatureTable(Ids(as_id_array(values[0]), what), [_matrix(values[1], len(values[0]), name, "ids")])
        elif sp.issparse(values) or isinstance(values, np.ndarray):
            data_ids = as_id_array(ids)
            table = FeatureTable(Ids(data_ids, what), [_matrix(values, len(data_ids), name, f"{what}s of the data")])
        elif is_frame(values):
            table = self._of_frame(values, what)
        else:
            raise TypeError(
                f"{name} must be a data frame, a mapping from ids, a matrix, (ids, matrix) or a path, not "
                f"{type(values).__name__}"
            )
        if not len(table.ids):
            raise ValueError(f"{name} has no rows: leave it out, or give a row for each {what} that is known")
        return table

    def _of_frame(self, frame: Any, what: str) -> FeatureTable:
        if getattr(getattr(frame, "index", None), "name", None) is not None:  # pandas: ids that were made the index
            frame = frame.reset_index()
        opened = open_frame(frame)
        names = list(opened.columns)
        column = id_column(names, what, self._id)
        columns = take_columns(opened, {name: name for name in names})
        given = columns.pop(column)
        if not columns:
            raise ValueError(f"{what}_features has the column of ids {column!r} and no other: give some features")
        try:
            ids = Ids(as_id_array(given), what)
        except ValueError as error:
            raise ValueError(f"{what}_features, column {column!r}: {error}") from None
        return FeatureTable(ids, self._parts(columns, what), column)

    def _of_mapping(self, values: Mapping[Any, Any], what: str) -> FeatureTable:
        ids, rows = list(values), list(values.values())
        if not ids:
            return FeatureTable(Ids(np.empty(0, np.int64), what), [])
        if all(isinstance(row, Mapping) for row in rows):
            names = list(dict.fromkeys(name for row in rows for name in row))
            columns = {str(name): _series(str(name), [row.get(name) for row in rows]) for name in names}
        elif all(isinstance(row, list | tuple | set | frozenset | np.ndarray) for row in rows):
            flat = [value for row in rows for value in row]
            if not all(isinstance(value, str) for value in flat):
                try:
                    matrix = np.array([list(row) for row in rows])
                    if matrix.dtype.kind not in "biufO":
                        raise TypeError("no numbers")
                    matrix = matrix.astype(np.float64)  # NaN where it was None
                except (TypeError, ValueError):
                    raise ValueError(
                        f"{what}_features: the mapping must give each id a list of tags (text), or numbers, the same "
                        "count for each; for several columns give a data frame"
                    ) from None
                return FeatureTable(Ids(as_id_array(ids), what), [_matrix(matrix, len(ids), f"{what}_features", "ids")])
            return FeatureTable(Ids(as_id_array(ids), what), [_tags("tags", [list(row) for row in rows])])
        else:
            columns = {"value": _series("value", rows)}
        return FeatureTable(Ids(as_id_array(ids), what), self._parts(columns, what))

    def _parts(self, columns: dict[str, pl.Series], what: str) -> list[TablePart]:
        if missing := [name for name in self._tags if name not in columns]:
            raise ValueError(f"tags names {missing[0]!r}, no column of {what}_features: it has {', '.join(columns)}")
        parts: list[TablePart] = []
        names, numbers = [], []
        for name, series in columns.items():
            kind = series.dtype
            if name in self._tags and (kind.is_numeric() or kind == pl.Boolean):
                raise TypeError(
                    f"tags names {name!r}, a column of {what}_features that holds {kind}: turn it into text"
                )
            if kind.is_numeric() or kind == pl.Boolean:
                names.append(name)
                numbers.append(_numbers(name, series, what))
            elif kind in (pl.String, pl.Categorical, pl.Enum):
                text = series.cast(pl.String)
                if name in self._tags:
                    split = [_split(value, self._separator) for value in text.to_list()]
                    parts.append(_tags(name, split))
                else:
                    parts.append(_tags(name, [[] if value is None else [value] for value in text.to_list()]))
            elif isinstance(kind, pl.List | pl.Array):
                parts.append(_lists(name, series, what))
            elif kind == pl.Null:
                names.append(name)
                numbers.append(np.full(len(series), np.nan))
            else:
                raise TypeError(
                    f"{what}_features: the column {name!r} holds {kind}, which is neither numbers, text nor lists: "
                    "convert it, or leave it out"
                )
        if names:
            parts.insert(0, Numbers(names, np.column_stack(numbers)))
        return parts


def read_table(path: str | Path, what: str = "item", id: str | None = None) -> pl.DataFrame:
    """Read a table of features: csv, tsv (packed or not) or parquet.

    Ids of text files are as in files of data: numbers where all are written as whole numbers are, else text (007).
    """
    with whole_table(path, "features") as (frame, written):
        column = id_column(frame.columns, what, id)
        if frame[column].dtype == pl.Int64 and written[column].cast(pl.String).str.contains(WHOLE_NUMBER).all():
            return frame
        return frame.with_columns(written[column])


def id_column(names: list[str], what: str, id: str | None = None) -> str:
    """Return the column of ids: the one that is named, or that has a usual name, or the first."""
    if not names:
        raise ValueError(f"{what}_features has no columns: give one of ids and some of features")
    column = find_column(names, AUTO if id is None else id, what, required=False)
    other = "user" if what == "item" else "item"
    if column is None and find_column(names[:1], AUTO, other, required=False):
        raise ValueError(
            f"{what}_features has no column that looks like the {what}, and its first, {names[0]!r}, looks like the "
            f"{other}: give a table of {what}s, or name their column, Features(table, id=...)"
        )
    return column or names[0]


def _series(name: str, values: list[Any]) -> pl.Series:
    plain = [sorted(value) if isinstance(value, set | frozenset) else value for value in values]
    try:
        return pl.Series(name, plain)
    except OverflowError:
        raise ValueError(f"the feature {name!r} holds a number of more than 64 bits: give finite numbers") from None
    except (TypeError, pl.exceptions.PolarsError):
        raise TypeError(f"the feature {name!r} mixes types: give numbers, text or lists of text") from None


def _numbers(name: str, series: pl.Series, what: str) -> Doubles:
    values = np.array(series.cast(pl.Float64).to_numpy(), np.float64)
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise ValueError(
            f"{what}_features: the column {name!r} holds {values[row]} in row {row}: give a finite number, or leave it "
            "empty where it is not known"
        )
    return values


def _split(text: str | None, separator: str) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(separator) if part.strip()]


def _lists(name: str, series: pl.Series, what: str) -> TablePart:
    values = series.to_list()
    flat = [entry for row in values if row is not None for entry in row]
    if all(isinstance(entry, str) or entry is None for entry in flat):
        return _tags(name, [[entry for entry in row or () if entry is not None] for row in values])
    lengths = {len(row) for row in values if row is not None}
    if len(lengths) != 1 or not all(isinstance(entry, int | float | None) for entry in flat):
        raise TypeError(
            f"{what}_features: the lists in the column {name!r} must hold text, or numbers, the same count in each: "
            "turn codes into text"
        )
    width = lengths.pop()
    matrix = np.array([[np.nan] * width if row is None else row for row in values], np.float64)
    if np.isinf(matrix).any():
        row = int(np.isinf(matrix).any(axis=1).argmax())
        raise ValueError(f"{what}_features: the column {name!r} holds an infinite number in row {row}")
    return Numbers([f"{name}[{place}]" for place in range(width)], matrix, False)


def _tags(name: str, rows: Sequence[Sequence[str]]) -> Words:
    """Return which words each row has; twice is once."""
    words = sorted({word for row in rows for word in row})
    place = {word: number for number, word in enumerate(words)}
    columns = [sorted({place[word] for word in row}) for row in rows]
    start = np.cumsum([0, *map(len, columns)])
    indices = np.fromiter((column for row in columns for column in row), np.int64, int(start[-1]))
    return Words(name, words, sp.csr_matrix((np.ones(len(indices)), indices, start), shape=(len(rows), len(words))))


def _matrix(matrix: Any, rows: int, name: str, whose: str) -> TablePart:
    if sp.issparse(matrix):
        result = as_csr(matrix, name, np.float64)
    else:
        result = np.asarray(matrix)
        if result.dtype.kind not in "biuf":
            raise TypeError(f"{name} as a matrix must hold numbers, not {result.dtype}")
        result = result.astype(np.float64)
    if result.ndim != 2 or not result.shape[1]:
        raise ValueError(f"{name} as a matrix must have the shape (rows, columns), not {result.shape}")
    if result.shape[0] != rows:
        raise ValueError(
            f"{name} has {result.shape[0]:,} rows, and there are {rows:,} {whose}: give a row for each, in their "
            "order, or a pair (ids, matrix)"
        )
    if sp.issparse(result):
        return Unnamed(result)
    if np.isinf(result).any():
        raise ValueError(f"{name} holds numbers that are not finite: leave out what is not known, or give a mean")
    return Numbers([str(column) for column in range(result.shape[1])], result, False)
