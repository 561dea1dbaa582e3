"""Numbering the ids of a column that comes in batches."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data.ids import IdArray, text_ids


class Vocabulary:
    """Ids met so far, numbered as they come and sorted at the end; no Python object per row."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._ids: list[pl.Series] = []
        self._known = pl.DataFrame()

    def encode(self, column: pl.Series, first_row: int) -> NDArray[np.int32]:
        """Number the ids of a batch whose first row is row ``first_row`` of the table."""
        ids = plain_ids(column, self.what, first_row).alias("id")
        if self._known.width == 0:
            self._known = pl.DataFrame({"id": ids.clear(), "code": pl.Series([], dtype=pl.Int32)})
        before = self._known["id"].dtype
        if ids.dtype != before:
            raise TypeError(
                f"the {self.what} ids change from {before} to {ids.dtype} at row {first_row}: "
                "convert the column to one type first, e.g. to text"
            )
        codes = self._look_up(ids)
        missing = codes.is_null()
        if missing.any():
            self._learn(ids.filter(missing).unique())
            codes = self._look_up(ids)
        return codes.to_numpy()

    def _look_up(self, ids: pl.Series) -> pl.Series:
        return ids.to_frame().join(self._known, on="id", how="left", maintain_order="left")["code"]

    def _learn(self, ids: pl.Series) -> None:
        first = len(self._known)
        codes = pl.Series("code", np.arange(first, first + len(ids), dtype=np.int32))
        self._known = pl.concat([self._known, pl.DataFrame({"id": ids, "code": codes})])

    def finish(self) -> tuple[IdArray, NDArray[np.int32]]:
        """Return the ids, sorted, and the place of each number in that order."""
        if self._known.width == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        order = self._known["id"].arg_sort().to_numpy()
        places = np.empty(len(order), dtype=np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        ids = self._known["id"].gather(order)
        array = text_ids(ids.to_list()) if ids.dtype == pl.String else ids.to_numpy()
        return np.array(array), places


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
