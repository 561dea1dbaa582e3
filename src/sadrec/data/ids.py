"""Ids of users and items: one array of one kind, and the way from an id to its row."""

import datetime
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from reprlib import repr as shortened
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

IdArray = NDArray[Any]

MAX_ID_LENGTH = 256
"""Longest text id, in characters: numpy keeps text ids at one fixed width, four bytes a character."""
MAX_ID_BYTES = 8 * 2**30
"""Largest array of text ids, in bytes."""

_COMPARED = 1_000
"""The largest number of ids that an unknown one is compared with: the search for a similar id must stay fast."""

_KINDS = "whole numbers, numbers, text or dates"
_PLAIN = {"i": int, "U": str}
_NAMES = {"i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "text", "M": "dates"}


class UnknownIdError(ValueError):
    """An id that is not in the data or the model."""


def as_id_array(values: Any) -> IdArray:
    """Convert a sequence of ids into a one-dimensional array of whole numbers, numbers, dates or text.

    Whole numbers become int64 (uint64 when they do not fit), other numbers float64, text fixed-width unicode,
    dates datetime64. Ids of mixed kinds, missing ids and text longer than :data:`MAX_ID_LENGTH` are refused.

    Examples
    --------
    >>> as_id_array([3, 1])
    array([3, 1])
    >>> as_id_array(["ann", "bob"]).dtype.kind
    'U'
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"ids must be a sequence, not {values!r}: put a single id into a list")
    array = _to_numpy(values)
    if array.ndim != 1:
        raise TypeError(f"ids must be one-dimensional, not of shape {array.shape}")
    kind = array.dtype.kind
    if kind in "OT":
        return _from_objects(array)
    if kind == "i":
        return array.astype(np.int64, copy=False)
    if kind == "u":
        fits = array.dtype.itemsize < 8 or array.size == 0 or int(array.max()) <= np.iinfo(np.int64).max
        return array.astype(np.int64 if fits else np.uint64, copy=False)
    if kind == "f":
        return _refuse_missing(array.astype(np.float64, copy=False), np.isnan(array))
    if kind == "M":
        return _refuse_missing(array, np.isnat(array))
    if kind == "U":
        _refuse_wide(array.dtype.itemsize // 4, len(array))
        return array
    raise TypeError(f"ids cannot be {array.dtype}: they must be {_KINDS}; convert them first, e.g. to text")


def _to_numpy(values: Any) -> IdArray:
    if isinstance(values, np.ndarray):
        return values
    to_numpy = getattr(values, "to_numpy", None)
    if to_numpy is None:
        # Left to itself, numpy turns a mixture of text and numbers into text, and large whole numbers into floats.
        items = list(values)
        array = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            array[place] = item
        return array
    if type(values).__module__.split(".")[0] == "pyarrow":
        return np.asarray(to_numpy(zero_copy_only=False))
    return np.asarray(to_numpy())


def _from_objects(array: IdArray) -> IdArray:
    items = array.tolist()
    if not items:
        return np.empty(0, dtype=np.int64)
    for row, item in enumerate(items):
        if item is None or type(item).__name__ == "NAType" or item != item:
            raise ValueError(f"the id at position {row} is missing ({item!r}): drop such rows first")
    kinds = {type(item) for item in items}
    if all(issubclass(kind, str) for kind in kinds):
        return text_ids(items)
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        return _whole_numbers(items)
    if all(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds):
        return np.array(items, dtype=np.float64)
    if all(issubclass(kind, (datetime.date, np.datetime64)) for kind in kinds):
        return np.asarray(items, dtype="datetime64")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(f"ids must all be of one kind ({_KINDS}), not {names}: convert them first, e.g. to text")


def _whole_numbers(items: list[Any]) -> IdArray:
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= min(items) and max(items) <= np.iinfo(kind).max:
            return np.array(items, dtype=kind)
    raise TypeError(f"ids from {min(items)} to {max(items)} do not fit 64 bits: convert them to text")


def text_ids(items: list[str]) -> IdArray:
    """Convert text ids into a fixed-width array, or raise on a text that such an array cannot hold."""
    longest = max(items, key=len, default="")
    _refuse_wide(len(longest), len(items), longest)
    array = np.array(items, dtype=np.str_)
    lengths = np.char.str_len(array)
    if int(lengths.sum()) != sum(map(len, items)):
        bad = next(item for item in items if item.endswith("\0"))
        raise ValueError(f"the id {bad!r} ends with a NUL character, which would be lost: strip it first")
    return array


def _refuse_wide(width: int, count: int, example: str = "") -> None:
    if width > MAX_ID_LENGTH:
        shown = f" ({example[:40]!r}...)" if example else ""
        raise ValueError(
            f"an id has {width} characters{shown}, more than {MAX_ID_LENGTH}: is this the right column? "
            "If so, number the ids or use a hash of them"
        )
    if width * count * 4 > MAX_ID_BYTES:
        size = width * count * 4 / 2**30
        raise ValueError(f"{count} text ids of up to {width} characters take {size:.0f} GiB: number them first")


def _refuse_missing(array: IdArray, missing: NDArray[np.bool_]) -> IdArray:
    if missing.any():
        raise ValueError(f"the id at position {int(missing.argmax())} is missing: drop such rows first")
    return array


def is_scalar_id(value: Any) -> bool:
    """Whether ``value`` is one id rather than a sequence of them."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, (str, bytes, np.generic)) or not isinstance(value, Iterable)


class Ids:
    """The ids of users or of items, in row order, and the way from an id to its row.

    Parameters
    ----------
    values
        Distinct ids, sorted or not, of any kind that :func:`as_id_array` takes.
    what
        What the ids name, for error messages.

    Examples
    --------
    >>> ids = Ids(["cod", "ale", "bun"], what="item")
    >>> ids.positions("ale")
    1
    >>> ids.positions(["bun", "cod"])
    array([2, 0])
    >>> ids.positions("gin")
    Traceback (most recent call last):
        ...
    sadrec.data.ids.UnknownIdError: unknown item 'gin': the 3 known ones are 'cod', 'ale', 'bun'
    """

    __slots__ = ("_array", "_order", "_sorted", "what")

    def __init__(self, values: Any, what: str = "id") -> None:
        array = as_id_array(values)
        self._array = array.view()
        self._array.flags.writeable = False
        self.what = what
        self._order: NDArray[np.intp] | None = None
        self._sorted = self._array
        if len(array) > 1 and not bool((array[1:] > array[:-1]).all()):
            self._order = np.argsort(array, kind="stable")
            self._sorted = array[self._order]
            same = self._sorted[1:] == self._sorted[:-1]
            if same.any():
                twice = self._sorted[int(same.argmax())]
                raise ValueError(f"the {what} {twice.item()!r} is given twice: ids must be distinct")

    @property
    def array(self) -> IdArray:
        """The ids, in row order."""
        return self._array

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (np.asarray(self._array), self.what))

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"Ids({len(self)} of {self.what}: {self._examples()})"

    def __contains__(self, value: Any) -> bool:
        return is_scalar_id(value) and bool(self._find(self._query([value]))[1][0])

    @overload
    def positions(self, ids: str | int | float | np.generic) -> int: ...
    @overload
    def positions(self, ids: Any) -> Any: ...
    def positions(self, ids: Any) -> Any:
        """Return the row of an id, or an int64 array of rows for ids of any shape.

        Raises
        ------
        UnknownIdError
            When an id is not among these.
        """
        if is_scalar_id(ids):
            if type(ids) is _PLAIN.get(self._array.dtype.kind):
                row = self.row_of(ids)  # the way of most questions
                if row is not None:
                    return row
            value = ids.item() if isinstance(ids, np.ndarray) and ids.dtype.kind != "M" else ids
            return int(self._locate([value])[0])
        shape = np.shape(ids) if isinstance(ids, np.ndarray | list | tuple) else ()
        return self._locate(np.ravel(ids)).reshape(shape) if len(shape) > 1 else self._locate(ids)

    def one(self, value: Any) -> int:
        """Return the row of one id."""
        if not is_scalar_id(value):
            raise TypeError(f"{self.what} must be one id, not {shortened(value)}: ask about one at a time")
        return int(self.positions(value))

    def several(self, values: Any, name: str = "items") -> NDArray[np.int64]:
        """Return the rows of a sequence of ids, which was given as the argument ``name``."""
        if is_scalar_id(values):
            raise TypeError(f"{name} must be a sequence of ids, not {values!r}: put a single id into a list")
        return np.asarray(self.positions(values))

    def distinct(self, values: Any, name: str = "items") -> NDArray[np.int64]:
        """Return the rows of a sequence of ids, at least one and each once."""
        rows = self.several(values, name)
        if not rows.size or len(np.unique(rows)) < len(rows):
            raise ValueError(f"{name} is empty or names an item twice: give distinct items")
        return rows

    def named(self, rows: NDArray[np.int64]) -> IdArray:
        """Return the ids of some rows; for -1 an id that means nothing: -1 (0 if unsigned), NaN, NaT or ""."""
        ids = self._array[rows]
        ids[rows < 0] = {"i": -1, "u": 0, "f": np.nan, "U": "", "M": np.datetime64("NaT", "D")}[ids.dtype.kind]
        return ids

    def row_of(self, value: Any) -> int | None:
        """Return the row of one id of the very kind kept here (text, or a whole number), None if it is unknown."""
        ours = self._sorted
        place = int(ours.searchsorted(value))
        if place == len(ours) or ours[place] != value:
            return None
        return place if self._order is None else int(self._order[place])

    def known(self, ids: Any) -> NDArray[np.bool_]:
        """Return for each id whether it is among these."""
        return self._find(self._query(ids))[1]

    def rows(self, ids: Any) -> NDArray[np.int64]:
        """Return the row of each of a sequence of ids, -1 where it is not among these, of whatever type it is."""
        try:
            rows, present = self._find(self._query(ids))
        except UnknownIdError:  # numbers here and text there
            return np.full(len(ids), -1, np.int64)
        return np.where(present, rows, -1)

    def _locate(self, ids: Any) -> NDArray[np.int64]:
        query = self._query(ids)
        rows, present = self._find(query)
        if not present.all():
            self._refuse(query[int((~present).argmax())])
        return rows

    def _query(self, ids: Any) -> IdArray:
        """Convert ids to look up into an array of the type of these."""
        try:
            query = as_id_array(ids)
        except (TypeError, ValueError) as error:
            raise UnknownIdError(f"cannot look up the {self.what} {_short(ids)}: {error}") from None
        kinds = {"number" if array.dtype.kind in "iuf" else array.dtype.kind for array in (query, self._array)}
        if len(query) and len(self) and len(kinds) > 1:
            self._refuse(query[0])
        return query

    def _find(self, query: IdArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if not len(self) or not len(query):
            return np.zeros(len(query), dtype=np.int64), np.zeros(len(query), dtype=np.bool_)
        ours = self._sorted
        possible = np.ones(len(query), dtype=np.bool_)
        if query.dtype.kind != ours.dtype.kind and ours.dtype.kind in "iu":
            # Numbers of another type meet ours in our type: int64 and uint64 would otherwise meet as floats.
            with np.errstate(invalid="ignore"):
                converted = query.astype(ours.dtype)
            possible = (converted == query) & ((converted < 0) == (query < 0))
            query = converted
        places = np.minimum(np.searchsorted(ours, query), len(self) - 1)
        present = possible & (ours[places] == query)
        rows = places if self._order is None else self._order[places]
        return rows.astype(np.int64, copy=False), present

    def _refuse(self, value: Any) -> None:
        hint = ""
        ours = _NAMES[self._array.dtype.kind]
        given = _NAMES.get(np.asarray(value).dtype.kind, type(value).__name__)
        if ours != given and {ours, given} != {"numbers", "whole numbers"}:
            hint = f" (ids here are {ours}, this is {given})"
        listing = f"the {len(self):,} known ones are {self._examples()}" if len(self) else "none is known"
        raise UnknownIdError(f"unknown {self.what} {_shown(value)}{hint}: {self._meant(value)}{listing}")

    def _meant(self, value: Any) -> str:
        """Return "did you mean ...? " with the most similar known text, or ""."""
        if (
            not isinstance(value, str)
            or self._array.dtype.kind != "U"
            or max(len(self) / _COMPARED, len(value) / 64) > 1
        ):
            return ""
        folded = {str(one).casefold(): one for one in self._array.tolist()}
        close = get_close_matches(value.casefold(), folded, n=1, cutoff=0.8)
        return f"did you mean {_shown(folded[close[0]])}? " if close else ""

    def _examples(self) -> str:
        return ", ".join(map(_shown, self._array[:3])) + (", ..." if len(self) > 3 else "")


def join_ids(first: IdArray | None, *others: IdArray) -> IdArray:
    """Return the first ids followed by the new ones among the others, in order of appearance."""
    result = first
    for ids in others:
        if result is None:
            result = ids
        elif not np.array_equal(result, ids):
            if result.dtype.kind != ids.dtype.kind and len(result) and len(ids):
                raise TypeError(
                    f"ids of two kinds meet, {result[0].item()!r} and {ids[0].item()!r}: convert one side first"
                )
            new = ids[~np.isin(ids, result)]
            result = np.concatenate((result, new)) if len(new) else result
    if result is None:
        raise ValueError("there is no data to learn from")
    return result


class OfUsersAndItems:
    """Base of the frozen dataclasses of what users did with items."""

    user_ids: Ids
    item_ids: Ids
    _third_maker: ClassVar[str]

    def __post_init__(self) -> None:
        if not all(isinstance(ids, Ids) for ids in (self.user_ids, self.item_ids)):
            name = type(self).__name__
            raise TypeError(f"make {name.lower()} with {name}.read, .from_frame or .{self._third_maker}")
        self._check_arrays()
        for array in self._arrays():
            if array is not None:
                array.flags.writeable = False

    def _check_arrays(self) -> None:
        """Refuse arrays that compiled code cannot follow."""
        raise NotImplementedError

    def _arrays(self) -> tuple[NDArray[Any] | None, ...]:
        """Return the arrays that must not be written to."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    @property
    def users(self) -> IdArray:
        """User ids, in row order."""
        return self.user_ids.array

    @property
    def items(self) -> IdArray:
        """Item ids, in row or column order."""
        return self.item_ids.array


def _shown(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return f"'{value}'"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
