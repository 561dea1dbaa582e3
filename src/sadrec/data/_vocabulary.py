"""Numbering the ids of a column that comes in batches."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data._columns import Where, first_true
from sadrec.data.ids import IdArray, text_ids


class Vocabulary:
    """The ids so far, numbered as they come and sorted at the end; no Python object per row."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._dtype: pl.DataType | None = None
        self._numbers: _Integers | _Text = _Integers()

    def encode(self, column: pl.Series, where: Where) -> NDArray[np.int32]:
        """Number the ids of a batch; ``where`` names a row of it in an error."""
        ids = plain_ids(column, self.what, where)
        if self._dtype is None:
            self._dtype = ids.dtype
            if ids.dtype == pl.String:
                self._numbers = _Text()
        if ids.dtype != self._dtype:
            raise TypeError(
                f"the {self.what} ids change from {self._dtype} to {ids.dtype} at {where(0)}: "
                "convert the column to one type first, e.g. to text"
            )
        if isinstance(self._numbers, _Text):
            return self._numbers.encode(ids)
        # Numbers and dates are compared by their 64 bits.
        return self._numbers.encode(ids.to_physical().to_numpy().view(np.int64))

    def finish(self) -> tuple[IdArray, NDArray[np.int32]]:
        """Return the ids, sorted, and the place of each number in that order."""
        ids = self._numbers.ids()
        if self._dtype is not None and self._dtype != pl.String:
            bits = {"UInt64": "u8", "Float64": "f8"}.get(str(self._dtype), "i8")
            ids = np.array(pl.Series(ids.view(bits)).cast(self._dtype).to_numpy())
        order = np.argsort(ids, kind="stable")
        places = np.empty(len(order), dtype=np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        return ids[order], places


class _Integers:
    """Numbers whole numbers of 64 bits with a hash table."""

    def __init__(self) -> None:
        self._ids = np.empty(0, dtype=np.int64)
        self._count = 0
        self._grow(2**12)

    def __len__(self) -> int:
        return self._count

    def _grow(self, slots: int) -> None:
        ids = self._ids[: self._count]
        self._slots = np.empty(slots, dtype=np.int64)
        self._places = np.full(slots, -1, dtype=np.int32)
        self._ids = np.empty(slots // 2, dtype=np.int64)
        self._count = 0
        if len(ids):
            self._add(ids, np.empty(len(ids), dtype=np.int32), 0)

    def _add(self, values: NDArray[np.int64], out: NDArray[np.int32], start: int) -> int:
        from sadrec.data._kernels import number_ids

        values = values.view()
        values.flags.writeable = False  # always, or the kernel is compiled for both cases
        self._count, stop = number_ids(self._slots, self._places, self._ids, self._count, values, out, start)
        return stop

    def encode(self, values: NDArray[np.int64]) -> NDArray[np.int32]:
        out = np.empty(len(values), dtype=np.int32)
        stop = self._add(values, out, 0)
        while stop < len(values):
            self._grow(4 * len(self._slots))
            stop = self._add(values, out, stop)
        return out

    def ids(self) -> IdArray:
        return self._ids[: self._count].copy()


class _Text:
    """Numbers text by its hash, compares the text itself, and stops using hashes if two texts share one."""

    def __init__(self) -> None:
        self._hashes = _Integers()
        self._ids = pl.Series("id", [], dtype=pl.String)
        self._by_join = False

    def encode(self, ids: pl.Series) -> NDArray[np.int32]:
        if not self._by_join:
            before = len(self._ids)
            numbers = self._hashes.encode(hash_text(ids))
            if len(self._hashes) > before:
                new = np.flatnonzero(numbers >= before)
                # New numbers rise by one from first occurrence to first occurrence.
                first = new[np.diff(np.maximum.accumulate(numbers[new]), prepend=before - 1) > 0]
                self._learn(ids.gather(first))
            if (self._ids.gather(numbers) == ids).all():
                return numbers
            self._by_join = True
            self._ids = self._ids.head(before)
        return self._join(ids)

    def _learn(self, ids: pl.Series) -> None:
        # Through a list, which copies the text: a selection of a series keeps all the text of its batch alive.
        self._ids = pl.concat([self._ids, pl.Series("id", ids.to_list(), dtype=pl.String)], rechunk=True)

    def _join(self, ids: pl.Series) -> NDArray[np.int32]:
        rows = ids.alias("id").to_frame()
        self._learn(rows.join(self._ids.to_frame(), on="id", how="anti").unique()["id"])
        numbered = pl.DataFrame({"id": self._ids, "number": np.arange(len(self._ids), dtype=np.int32)})
        # A copy, so that no buffer of polars outlives its batch.
        return np.array(rows.join(numbered, on="id", how="left", maintain_order="left")["number"].to_numpy())

    def ids(self) -> IdArray:
        return text_ids(self._ids.to_list())


def hash_text(ids: pl.Series) -> NDArray[np.int64]:
    """Return 64 bits for each text, the same for equal texts within this process."""
    return ids.hash(0).to_numpy().view(np.int64)


def plain_ids(column: pl.Series, what: str, where: Where) -> pl.Series:
    """Convert a column of ids to the type in which ids of its kind are compared."""
    dtype = column.dtype
    if dtype == pl.Null and len(column) == 0:
        return column.cast(pl.Int64)
    if column.null_count():
        raise ValueError(f"{where(first_true(column.is_null()))} has no {what}: drop such rows first")
    if dtype.is_integer():
        if dtype == pl.UInt64:
            return column
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count():
            row = first_true(whole.is_null())
            raise TypeError(f"{where(row)}: the {what} {column[row]} does not fit 64 bits: convert ids to text")
        return whole
    if dtype.is_float():
        if column.is_nan().any():
            raise ValueError(f"{where(first_true(column.is_nan()))} has NaN for its {what}: drop such rows first")
        return column.cast(pl.Float64) + 0.0  # one zero instead of two
    if dtype in (pl.Categorical, pl.Enum, pl.String):
        return column.cast(pl.String)
    if dtype == pl.Date:
        return column.cast(pl.Datetime("us"))
    if isinstance(dtype, pl.Datetime):
        return column.dt.replace_time_zone(None)
    raise TypeError(
        f"the column of {what} ids is of type {dtype}: ids must be whole numbers, numbers, text or dates; "
        "convert it first, e.g. to text"
    )
