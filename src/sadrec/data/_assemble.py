"""Assemble batches of rows into the arrays of a sparse matrix or of comparisons, with few copies."""

from collections.abc import Iterator
from copy import copy
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec._core import check
from sadrec._core.sparse import make
from sadrec._core.types import Floats, Integers
from sadrec.data._columns import Where, after, first_true, row_of_frame
from sadrec.data._vocabulary import Vocabulary
from sadrec.data.ids import IdArray, Ids

Chunk = dict[str, Any]
Duplicates = Literal["last", "sum", "count", "max"]
MODES: tuple[Duplicates, ...] = get_args(Duplicates)
BATCH = 2**18
"""Rows numbered at once."""
_INT32_MAX = np.iinfo(np.int32).max
_INT64_MAX = np.iinfo(np.int64).max
_UNITS = (86_400_000_000, 86_400, 1_000_000, 1)
"""Days and seconds in microseconds, as dates are held; days in seconds, as numbers often are."""


class Assembler:
    """Collects rows in batches and builds the matrix at the end.

    While rows arrive it holds at most 12 bytes of each (20 with timestamps): 5 to 8 where there are no more than 65,536
    items and ratings are whole numbers, 1 to 4 more for times that are days or seconds. For a moment at the end, the
    finished arrays are there too.
    """

    def __init__(self, *, duplicates: Duplicates = "last", allow_negative: bool = False) -> None:
        self._duplicates = check.one_of(duplicates, "duplicates", MODES)
        self._allow_negative = allow_negative
        self._users, self._items = Vocabulary("user"), Vocabulary("item")
        self._chunks: list[Chunk] = []
        self._stamp_type: np.dtype[Any] | None = None
        self._rated = False
        self.rows = 0

    def add(self, columns: dict[str, pl.Series], where: Where = row_of_frame) -> None:
        """Take the next rows: user, item and perhaps rating, timestamp and weight."""
        for start in range(0, len(columns["user"]), BATCH):
            here = after(where, start)
            part = {role: column.slice(start, BATCH) for role, column in columns.items()}
            chunk: Chunk = {
                "user": self._users.encode(part["user"], here),
                "item": _narrow(self._items.encode(part["item"], here)),
            }
            if "rating" in part:
                self._rated = True
                ratings = as_ratings(part["rating"], here, allow_negative=self._allow_negative)
                whole = ratings.astype(np.int8) if (np.abs(ratings) <= 100).all() else ratings
                chunk["rating"] = whole if (whole == ratings).all() else ratings
            if "weight" in part:
                chunk["weight"] = as_weights(part["weight"], here)
            if "timestamp" in part:
                stamps = as_timestamps(part["timestamp"], here)
                if self._stamp_type not in (None, stamps.dtype):
                    raise TypeError(f"the timestamps change from {self._stamp_type} to {stamps.dtype} at {here(0)}")
                self._stamp_type = stamps.dtype
                chunk |= _packed_times(_ordered(stamps + 0.0) if stamps.dtype.kind == "f" else stamps.view(np.int64))
            self._chunks.append(chunk)
        self.rows += len(columns["user"])

    def finish(self) -> tuple[Any, Ids, Ids, NDArray[Any] | None, bool]:
        """Sort the rows by user and item and merge repeated pairs; free what was held.

        Returns the matrix, users, items, timestamps where there are any, and whether the values mean something.
        """
        users, user_place = self._users.finish()
        items, item_place = self._items.finish()
        for chunk in self._chunks:
            chunk["user"] = user_place[chunk["user"]]
        indptr, columns, values, stamps = arrange(self._chunks, len(users), self._duplicates, item_place)
        if len(columns) <= _INT32_MAX:
            indptr = indptr.astype(np.int32)
        matrix = make(values, columns.astype(indptr.dtype, copy=False), indptr, (len(users), len(items)))
        times = None
        if self._stamp_type is not None and stamps is not None:
            times = (_ordered(stamps) if self._stamp_type.kind == "f" else stamps).view(self._stamp_type)
        return matrix, Ids(users, "user"), Ids(items, "item"), times, self.has_ratings

    @property
    def has_ratings(self) -> bool:
        """Whether the values mean something."""
        return self._rated or self._duplicates in ("sum", "count")

    @property
    def stamp_type(self) -> str | None:
        """The type of the timestamps, None where there are none."""
        return None if self._stamp_type is None else self._stamp_type.str

    def ids(self) -> tuple[tuple[IdArray, Integers], tuple[IdArray, Integers]]:
        """Return the ids of users and of items, sorted, and the place of each number in that order."""
        return self._users.finish(), self._items.finish()

    def counts(self, *places: Integers) -> list[NDArray[np.int64]]:
        """Return how many rows each user and each item has, in the order of their ids; see :meth:`ids`."""
        counts = [np.zeros(len(place), np.int64) for place in places]
        for chunk in self._chunks:
            for role, count, place in zip(("user", "item"), counts, places, strict=True):
                count += np.bincount(place[chunk[role]], minlength=len(place))
        return counts

    def weights(self) -> "Assembler":
        """Take the weights away, and return an assembler of the same rows that has them in place of ratings."""
        other = copy(self)
        other._chunks = [{**chunk, "rating": chunk.pop("weight")} for chunk in self._chunks]
        other._duplicates = "sum" if self._duplicates == "count" else self._duplicates
        return other

    def numbered(self, user_place: Integers, item_place: Integers) -> Iterator[Chunk]:
        """Yield and release the rows, batch by batch in order, with users and items renumbered."""
        self._chunks.reverse()
        while self._chunks:
            chunk = self._chunks.pop()
            given: Chunk = {"user": user_place[chunk["user"]], "item": item_place[chunk["item"]]}
            if "rating" in chunk:
                given["rating"] = chunk["rating"].astype(np.float32)
            if "weight" in chunk:
                given["weight"] = chunk["weight"]
            if "timestamp" in chunk:
                given["timestamp"] = _times(chunk)
            yield given


def arrange(
    chunks: list[Chunk], users: int, duplicates: Duplicates, item_place: Integers | None = None
) -> tuple[NDArray[np.int64], Integers, Floats, NDArray[np.int64] | None]:
    """Sort rows by user and item and merge repeated pairs; the list of rows is emptied meanwhile.

    Returns where the rows of each user start, items (by their place, where one is given for each), ratings or ones,
    and timestamps where there are any.
    """
    from sadrec.data import _kernels

    counts, rows = np.zeros(users + 1, dtype=np.int64), 0
    for chunk in chunks:
        counts[1:] += np.bincount(chunk["user"], minlength=users)
        rows += len(chunk["user"])
    indptr = np.cumsum(counts)
    rated, stamped = (bool(chunks) and role in chunks[0] for role in ("rating", "timestamp"))
    columns = np.empty(rows, dtype=np.int32)
    values = np.empty(rows, dtype=np.float32) if rated else np.ones(rows, dtype=np.float32)
    stamps = np.empty(rows if stamped else 0, dtype=np.int64)
    free = indptr[:-1].copy()
    chunks.reverse()
    while chunks:
        chunk = chunks.pop()
        place = np.empty(len(chunk["user"]), dtype=np.int64)
        _kernels.destinations(free, chunk["user"], place)
        columns[place] = chunk["item"] if item_place is None else item_place[chunk["item"]]
        if rated:
            values[place] = chunk["rating"]
        if stamped:
            stamps[place] = _times(chunk)
    kept = _kernels.tidy_rows(indptr, columns, values, stamps, MODES.index(duplicates))
    for array in (columns, values, stamps) if stamped else (columns, values):
        array.resize(kept, refcheck=False)
    return indptr, columns, values, stamps if stamped else None


def _times(chunk: Chunk) -> NDArray[np.int64]:
    """Return the times of rows, which may be packed."""
    stamps: NDArray[np.int64] = chunk["timestamp"].astype(np.int64)
    return chunk["first"] + chunk["unit"] * stamps if "unit" in chunk else stamps


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of 0 and more in the smallest type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _packed_times(stamps: NDArray[np.int64]) -> dict[str, Any]:
    """Return times as small numbers of a unit since the first."""
    first = stamps.min(initial=_INT64_MAX)
    if int(stamps.max(initial=first)) - int(first) > _INT64_MAX:
        return {"timestamp": stamps, "first": np.int64(0), "unit": np.int64(1)}
    since = stamps - first
    unit = next(unit for unit in _UNITS if not (since % unit).any())
    return {"timestamp": _narrow(since // unit), "first": first, "unit": np.int64(unit)}


def as_ratings(column: pl.Series, where: Where, *, allow_negative: bool = False) -> NDArray[np.float32]:
    """Convert a column of ratings to float32, or raise on a value that is not a rating."""
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise TypeError(f"the ratings are of type {column.dtype}, not numbers: is this the right column?")
    if column.null_count():
        raise ValueError(
            f"{where(first_true(column.is_null()))} has no rating: drop such rows, or pass rating=None (--rating none) "
            "to take each row as an interaction"
        )
    values = np.array(column.cast(pl.Float32).to_numpy())
    finite = np.isfinite(values)
    if not finite.all():
        row = int((~finite).argmax())
        raise ValueError(
            f"{where(row)} has the rating {values[row]}: ratings must be finite; drop such rows, or "
            "pass rating=None (--rating none) to take each row as an interaction"
        )
    if not allow_negative and len(values) and values.min() < 0:
        row = int((values < 0).argmax())
        raise ValueError(
            f"{where(row)} has the negative rating {values[row]:g}: every row counts as something "
            "the user chose, so drop what was disliked or rescale the ratings; allow_negative=True (--allow-negative) "
            "keeps them as they are (then they only order a user's items, or are dislikes: fit(dislikes=0), "
            "--dislikes 0)"
        )
    return values


def as_weights(column: pl.Series, where: Where) -> Floats | None:
    """Convert a column of weights to float32, or raise on a value that is not a weight."""
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise TypeError(f"the weights are of type {column.dtype}, not numbers: is this the right column?")
    return check_weight(column.cast(pl.Float32).to_numpy(), len(column), where)


def as_timestamps(column: pl.Series, where: Where) -> NDArray[Any]:
    """Convert a column of times to int64, float64 or datetime64."""
    if column.dtype == pl.String:
        parsed = _parse_times(column)
    elif column.dtype.is_integer():
        parsed = column.cast(pl.Int64, strict=False)
    elif column.dtype.is_float():
        parsed = _finite(column.cast(pl.Float64))
    elif column.dtype == pl.Date:
        parsed = column.cast(pl.Datetime("us"))
    elif isinstance(column.dtype, pl.Datetime):
        parsed = column.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    elif column.dtype == pl.Null:
        parsed = column
    else:
        raise TypeError(f"the timestamps are of type {column.dtype}: they must be numbers, dates or times")
    if parsed.null_count():
        if column.null_count():
            row = first_true(column.is_null())
            raise ValueError(f"{where(row)} has no timestamp: drop such rows, or pass timestamp=None to do without")
        row = first_true(parsed.is_null())
        text = column.dtype == pl.String and parsed.dtype.is_numeric()
        wrong = "not a number, as others are" if text else "neither a number of 64 bits nor a date"
        raise ValueError(
            f"{where(row)} has the timestamp {column[row]!r}, {wrong}: correct it, or pass timestamp=None "
            "(--timestamp none) to do without"
        )
    return np.array(parsed.to_numpy())


def _parse_times(column: pl.Series) -> pl.Series:
    """Read dates, or numbers where more of them are; what is not of that kind becomes null."""
    plain = column.str.strip_chars()
    try:
        dates = plain.str.to_datetime(strict=False, time_unit="us")
    except pl.exceptions.PolarsError:  # not one looks like a date
        dates = pl.Series([None] * len(column), dtype=pl.Datetime("us"))
    if dates.null_count() <= len(column) // 2:
        return dates
    numbers = _finite(plain.cast(pl.Float64, strict=False))
    if numbers.null_count() >= dates.null_count():
        return dates
    whole = plain.cast(pl.Int64, strict=False)
    return whole if whole.null_count() == numbers.null_count() else numbers


def _finite(numbers: pl.Series) -> pl.Series:
    """Replace numbers that are not finite by null."""
    return numbers.set(~numbers.is_finite(), None)


def _ordered(values: NDArray[Any]) -> NDArray[np.int64]:
    """Map the bits of floats to integers of the same order, and such integers back to the bits."""
    bits = values.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def check_weight(weight: Any, count: int, where: Where = row_of_frame) -> Floats | None:
    """Convert weights to float32, or raise on a value that is not a weight."""
    if weight is None:
        return None
    array = np.array(weight)
    if array.shape != (count,):
        raise ValueError(f"{count} comparisons need as many weights, not an array of shape {array.shape}")
    return check.numbers(array, "weights", 0.0, lambda row: f"{where(row)} has the weight")
