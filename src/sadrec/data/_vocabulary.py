"""Numbering the ids of a column that comes in batches."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data.ids import IdArray, text_ids


class Vocabulary:
    """Ids met so far, numbered as they come and sorted at the end; no Python object per row."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._dtype: pl.DataType | None = None
        self._numbers: _Integers | _Others = _Integers()

    def encode(self, column: pl.Series, first_row: int) -> NDArray[np.int32]:
        """Number the ids of a batch whose first row is row ``first_row`` of the table."""
        ids = plain_ids(column, self.what, first_row)
        if self._dtype is None:
            self._dtype = ids.dtype
            self._numbers = _Integers() if ids.dtype.is_integer() else _Others(ids)
        if ids.dtype != self._dtype:
            raise TypeError(
                f"the {self.what} ids change from {self._dtype} to {ids.dtype} at row {first_row}: "
                "convert the column to one type first, e.g. to text"
            )
        return self._numbers.encode(ids)

    def finish(self) -> tuple[IdArray, NDArray[np.int32]]:
        """Return the ids, sorted, and the place of each number in that order."""
        ids = self._numbers.ids()
        if self._dtype == pl.UInt64:
            ids = ids.view(np.uint64)
        order = np.argsort(ids, kind="stable")
        places = np.empty(len(order), dtype=np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        return ids[order], places


class _Integers:
    """Numbers whole numbers of 64 bits with a hash table."""

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.int64)
        self._count = 0
        self._grow(2**12)

    def _grow(self, slots: int) -> None:
        ids = self._known[: self._count]
        self._slots = np.empty(slots, dtype=np.int64)
        self._taken = np.full(slots, -1, dtype=np.int32)
        self._known = np.empty(slots // 2, dtype=np.int64)
        self._count = 0
        if len(ids):
            self._add(ids, np.empty(len(ids), dtype=np.int32), 0)

    def _add(self, values: NDArray[np.int64], out: NDArray[np.int32], start: int) -> int:
        from sadrec.data._kernels import number_ids

        values = values.view()
        values.flags.writeable = False  # always, or the kernel is compiled for both cases
        self._count, stop = number_ids(self._slots, self._taken, self._known, self._count, values, out, start)
        return stop

    def encode(self, ids: pl.Series) -> NDArray[np.int32]:
        values = ids.to_numpy().view(np.int64)
        out = np.empty(len(values), dtype=np.int32)
        stop = self._add(values, out, 0)
        while stop < len(values):
            self._grow(4 * len(self._slots))
            stop = self._add(values, out, stop)
        return out

    def ids(self) -> IdArray:
        return self._known[: self._count].copy()


class _Others:
    """Numbers text, numbers and dates through joins with the ids known so far."""

    def __init__(self, example: pl.Series) -> None:
        self._known = pl.DataFrame({"id": example.clear(), "number": pl.Series([], dtype=pl.Int32)})

    def encode(self, ids: pl.Series) -> NDArray[np.int32]:
        rows = ids.alias("id").to_frame()
        numbers = self._look_up(rows)
        missing = numbers.is_null()
        if missing.any():
            new = rows.filter(missing).unique()
            first = len(self._known)
            column = pl.Series("number", np.arange(first, first + len(new), dtype=np.int32))
            self._known = pl.concat([self._known, new.with_columns(column)])
            numbers = self._look_up(rows)
        # A copy, so that no buffer of polars outlives its batch.
        return np.array(numbers.to_numpy())

    def _look_up(self, rows: pl.DataFrame) -> pl.Series:
        return rows.join(self._known, on="id", how="left", maintain_order="left")["number"]

    def ids(self) -> IdArray:
        ids = self._known["id"]
        return text_ids(ids.to_list()) if ids.dtype == pl.String else np.array(ids.to_numpy())


def plain_ids(column: pl.Series, what: str, first_row: int) -> pl.Series:
    """Bring a column of ids to the type in which ids of its kind are compared."""
    dtype = column.dtype
    if dtype == pl.Null and len(column) == 0:
        return column.cast(pl.Int64)
    if column.null_count():
        row = first_row + int(column.is_null().arg_true()[0])
        raise ValueError(f"row {row} has no {what}: drop such rows first")
    if dtype.is_integer():
        if dtype.is_unsigned_integer() and dtype == pl.UInt64:
            return column
        return column.cast(pl.Int64)
    if dtype.is_float():
        if column.is_nan().any():
            row = first_row + int(column.is_nan().arg_true()[0])
            raise ValueError(f"row {row} has NaN for its {what}: drop such rows first")
        return column.cast(pl.Float64)
    if dtype in (pl.Categorical, pl.Enum, pl.String):
        return column.cast(pl.String)
    if dtype == pl.Date or isinstance(dtype, pl.Datetime):
        return column
    raise TypeError(
        f"the column of {what} ids is of type {dtype}: ids must be whole numbers, numbers, text or dates; "
        "convert it first, e.g. to text"
    )
