"""What people did: who interacted with what, and how they rated it."""

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec.data import _matrix, _selection, splits
from sadrec.data._assemble import Assembled, Assembler, Duplicates
from sadrec.data._columns import AUTO, find_column, is_frame, open_frame, take_column
from sadrec.data._warning import DataWarning
from sadrec.data.ids import IdArray, Ids, as_id_array

if TYPE_CHECKING:
    from sadrec.data.describe import Description

_FIELDS = ("_matrix", "_users", "_items", "_timestamps", "_has_ratings", "_titles", "_published")


class Interactions:
    """Users, items, and a sparse matrix of what they did; immutable.

    Make one with :meth:`read` (a file), :meth:`from_frame` (a data frame) or :meth:`from_csr` (a matrix).

    Attributes
    ----------
    matrix
        scipy CSR matrix (users x items, float32) of ratings, or of ones where there are none. Sorted, without
        repeated entries; a rating of 0 is a stored entry like any other.
    users, items
        Ids in row and column order.
    timestamps
        One per stored entry, in the order of ``matrix.data``; ``None`` where there are none.
    has_ratings
        Whether the values mean something.
    item_titles
        A text per item, in the order of ``items``; ``None`` where there are none.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"user": ["b", "a", "b"], "item": [7, 7, 9], "stars": [5, 0, 3]})
    >>> data = Interactions.from_frame(frame)
    >>> data
    Interactions(2 users x 2 items, 3 ratings)
    >>> data.users
    array(['a', 'b'], dtype='<U1')
    >>> data.matrix.nnz, data.matrix.toarray().tolist()
    (3, [[0.0, 0.0], [5.0, 3.0]])
    """

    __slots__ = _FIELDS

    _matrix: Any
    _users: Ids
    _items: Ids
    _timestamps: NDArray[Any] | None
    _titles: NDArray[np.str_] | None
    _has_ratings: bool
    _published: "Description | None"

    def __init__(self) -> None:
        raise TypeError("make interactions with Interactions.read, .from_frame or .from_csr")

    @classmethod
    def _new(
        cls,
        matrix: Any,
        users: Ids,
        items: Ids,
        timestamps: NDArray[Any] | None,
        has_ratings: bool,
        titles: NDArray[np.str_] | None = None,
        published: "Description | None" = None,
    ) -> "Interactions":
        self = object.__new__(cls)
        for array in (matrix.data, matrix.indices, matrix.indptr, timestamps, titles):
            if array is not None:
                array.flags.writeable = False
        values = (matrix, users, items, timestamps, has_ratings, titles, published)
        for name, value in zip(_FIELDS, values, strict=True):
            object.__setattr__(self, name, value)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"interactions are immutable: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self)._new, self._fields())

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _FIELDS)

    # -- constructors ----------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        user: str = AUTO,
        item: str = AUTO,
        rating: str | None = AUTO,
        timestamp: str | None = AUTO,
        duplicates: Duplicates | None = None,
        allow_negative: bool = False,
        header: bool | None = None,
        text_ids: bool = False,
    ) -> "Interactions":
        """Read a file: csv, tsv, ``::``-separated .dat, parquet; text files also compressed (.gz, .zst).

        A text file without a header has the columns user, item, rating, timestamp in that order. Empty lines are left
        out.

        Parameters
        ----------
        path
            The file.
        user, item, rating, timestamp
            Names of the columns; "auto" looks for the usual names. ``rating=None`` takes every row as an
            interaction, ``timestamp=None`` leaves times out.
        duplicates
            What becomes of a (user, item) pair that occurs more than once: "last" (the latest by timestamp,
            or else the last row; the default), "sum", "count" or "max".
        allow_negative
            Take negative ratings instead of refusing them.
        header
            Whether a text file starts with a line of column names; by default one without any number is.
        text_ids
            Read ids as text even when they look like numbers. A column is text in any case where the first rows have
            ids with leading zeros.
        """
        from sadrec.data.readers import naming, read_interactions

        names = {"user": user, "item": item, "rating": rating, "timestamp": timestamp}
        start = partial(Assembler, duplicates=duplicates or "last", allow_negative=allow_negative)
        assembler = read_interactions(path, names, start, header=header, text_ids=text_ids)
        if assembler.rows == 0:
            raise ValueError(f"{path} has no rows")
        with naming(path):
            parts = assembler.finish()
        return cls._from_assembled(parts, said=duplicates is not None)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        user: str = AUTO,
        item: str = AUTO,
        rating: str | None = AUTO,
        timestamp: str | None = AUTO,
        *,
        duplicates: Duplicates | None = None,
        allow_negative: bool = False,
    ) -> "Interactions":
        """Take a data frame of pandas, polars, Arrow or another kind; arguments as in :meth:`read`."""
        opened = open_frame(frame)
        columns = list(opened.columns)
        chosen = [
            find_column(columns, user, "user"),
            find_column(columns, item, "item"),
            find_column(columns, rating, "rating", required=False),
            find_column(columns, timestamp, "timestamp", required=False),
        ]
        if chosen[0] is None or chosen[1] is None:
            raise ValueError("interactions need a column of users and one of items")
        if len(opened) == 0:
            raise ValueError("the frame has no rows")
        assembler = Assembler(duplicates=duplicates or "last", allow_negative=allow_negative)
        user_column, item_column = take_column(opened, chosen[0]), take_column(opened, chosen[1])
        rest = [None if name is None else take_column(opened, name) for name in chosen[2:]]
        assembler.add(user_column, item_column, *rest)
        return cls._from_assembled(assembler.finish(), said=duplicates is not None)

    @classmethod
    def from_csr(
        cls, matrix: Any, users: Any = None, items: Any = None, *, allow_negative: bool = False
    ) -> "Interactions":
        """Take a users x items matrix: scipy sparse of any kind (matrix or array), or dense.

        Stored entries are interactions, stored zeros too; of a dense matrix the entries other than 0 are.
        Repeated entries are summed, as everywhere in scipy. The values count as ratings unless all are 1.

        Parameters
        ----------
        matrix
            The matrix; it is copied.
        users, items
            Distinct ids in row and column order; 0, 1, ... where not given.
        allow_negative
            Take negative values instead of refusing them.
        """
        canonical = _matrix.canonical(matrix, allow_negative=allow_negative)
        ids = []
        for what, given, count in (("user", users, canonical.shape[0]), ("item", items, canonical.shape[1])):
            known = Ids(np.arange(count) if given is None else np.array(as_id_array(given)), what)
            if len(known) != count:
                raise ValueError(f"{len(known)} {what} ids are given for {count} {what}s of the matrix")
            ids.append(known)
        has_ratings = bool((canonical.data != 1).any())
        return cls._new(canonical, ids[0], ids[1], None, has_ratings)

    @classmethod
    def _from_assembled(cls, parts: Assembled, *, said: bool) -> "Interactions":
        if parts.repeated and not said:
            kept = "the latest of each" if parts.timestamps is not None else "the last row of each"
            warnings.warn(
                f"{parts.repeated:,} rows repeat a (user, item) pair: kept {kept}; "
                'choose with duplicates="last", "sum", "count" or "max"',
                DataWarning,
                stacklevel=3,
            )
        matrix = _matrix.make(parts.data, parts.indices, parts.indptr, (len(parts.users), len(parts.items)))
        users, items = Ids(parts.users, "user"), Ids(parts.items, "item")
        return cls._new(matrix, users, items, parts.timestamps, parts.has_ratings)

    # -- what it holds ---------------------------------------------------------------------------------------

    @property
    def matrix(self) -> Any:
        """Ratings (or ones) as a scipy CSR matrix; its arrays are read-only."""
        return self._matrix

    @property
    def users(self) -> IdArray:
        """User ids, in row order."""
        return self._users.array

    @property
    def items(self) -> IdArray:
        """Item ids, in column order."""
        return self._items.array

    @property
    def user_ids(self) -> Ids:
        """The users as an index from id to row."""
        return self._users

    @property
    def item_ids(self) -> Ids:
        """The items as an index from id to column."""
        return self._items

    @property
    def timestamps(self) -> NDArray[Any] | None:
        """Times of the stored entries, or ``None``."""
        return self._timestamps

    @property
    def has_ratings(self) -> bool:
        """Whether the values of the matrix mean something."""
        return self._has_ratings

    @property
    def item_titles(self) -> NDArray[np.str_] | None:
        """A title per item (empty where unknown), or ``None``."""
        return self._titles

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return (len(self._users), len(self._items))

    def __len__(self) -> int:
        return int(self._matrix.nnz)

    def __repr__(self) -> str:
        what = "ratings" if self._has_ratings else "interactions"
        return f"Interactions({self.shape[0]:,} users x {self.shape[1]:,} items, {len(self):,} {what})"

    def to_frame(self) -> pl.DataFrame:
        """Return a polars frame of user, item and, where there are any, rating and timestamp."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self._matrix.indptr))
        columns = {"user": self.users[rows], "item": self.items[self._matrix.indices]}
        if self._has_ratings:
            columns["rating"] = self._matrix.data
        if self._timestamps is not None:
            columns["timestamp"] = self._timestamps
        return pl.DataFrame(columns)

    def describe(self) -> "Description":
        """Return counts, sparsity and quantiles per user and item: the paper's table of properties."""
        from sadrec.data.describe import describe

        return describe(self._matrix, published=self._published)

    # -- splits ----------------------------------------------------------------------------------------------

    def leave_one_out(self, seed: int = 0) -> tuple["Interactions", "Interactions"]:
        """Hold out one interaction of every user, at random; users with a single one stay in train only.

        Returns
        -------
        train, held_out
            Both with the users, items and shape of the whole.
        """
        return self._divide(splits.hold_out_one(self._matrix.indptr, seed))

    def split(self, test: float = 0.2, seed: int = 0) -> tuple["Interactions", "Interactions"]:
        """Hold out a share of all interactions, at random; train and test both have the whole's shape."""
        return self._divide(splits.hold_out_share(len(self), test, seed))

    def leave_last_out(self, seed: int = 0) -> tuple["Interactions", "Interactions"]:
        """Hold out the latest interaction of every user who has at least two.

        Among equally late ones of a user, one is drawn with ``seed``.
        """
        return self._divide(splits.hold_out_last(self._matrix.indptr, self._times(), seed))

    def split_by_time(self, at: Any = None, test: float = 0.2) -> tuple["Interactions", "Interactions"]:
        """Hold out everything from the time ``at`` on, or, without it, the latest share ``test``.

        Interactions at the very moment of the cut are held out, so that equal times never straddle it.
        """
        return self._divide(splits.hold_out_from(self._times(), at, test))

    def user_folds(self, k: int = 5, seed: int = 0) -> Iterator[tuple["Interactions", "Interactions"]]:
        """Split the users into ``k`` folds; yields, for each, (the other users' interactions, the fold's)."""
        for mask in splits.fold_masks(self._matrix.indptr, k, seed):
            yield self._divide(mask)

    def _times(self) -> NDArray[Any]:
        if self._timestamps is None:
            raise ValueError(
                "these interactions have no timestamps: use split or leave_one_out, or read a column of times"
            )
        return self._timestamps

    def _divide(self, held_out: NDArray[np.bool_]) -> tuple["Interactions", "Interactions"]:
        return self._part(~held_out), self._part(held_out)

    def _part(self, mask: NDArray[np.bool_]) -> "Interactions":
        times = None if self._timestamps is None else self._timestamps[mask]
        matrix = _matrix.masked(self._matrix, mask)
        return self._new(matrix, self._users, self._items, times, self._has_ratings, self._titles)

    # -- selections ------------------------------------------------------------------------------------------

    def filter(
        self,
        min_per_user: int = 0,
        min_per_item: int = 0,
        top_users: int | None = None,
        *,
        until_stable: bool = False,
    ) -> "Interactions":
        """Keep active users and popular items; users and items left without interactions are removed.

        In this order, as in the paper: the ``top_users`` users with most interactions (equals in row order),
        then items with at least ``min_per_item`` of what is left, then users with at least ``min_per_user``.
        Removing users can push an item below its minimum again; ``until_stable=True`` repeats the last two
        steps until both minima hold.
        """
        mask = _selection.select(self._matrix, min_per_user, min_per_item, top_users, until_stable=until_stable)
        part = self._part(mask)
        rows = np.flatnonzero(np.diff(part.matrix.indptr))
        used = np.zeros(self.shape[1], dtype=np.bool_)
        used[part.matrix.indices] = True
        columns = np.flatnonzero(used)
        matrix = _matrix.compressed(part.matrix, rows, columns)
        users, items = Ids(self.users[rows], "user"), Ids(self.items[columns], "item")
        titles = None if self._titles is None else self._titles[columns]
        return self._new(matrix, users, items, part.timestamps, self._has_ratings, titles)

    def drop_zeros(self) -> "Interactions":
        """Leave out the interactions rated 0 (a review without stars, on Food.com); users and items stay."""
        return self._part(self._matrix.data != 0)

    def with_titles(self, titles: Mapping[Any, str]) -> "Interactions":
        """Attach a text to each item, from a mapping of item ids; items without one get an empty text."""
        if not isinstance(titles, Mapping):
            raise TypeError(f"titles must be a mapping from item ids to texts, not {type(titles).__name__}")
        array = np.array([titles.get(item, "") for item in self.items.tolist()], dtype=np.str_)
        return self._new(self._matrix, self._users, self._items, self._timestamps, self._has_ratings, array)

    def _with_published(self, published: "Description") -> "Interactions":
        matrix, users, items, timestamps, has_ratings, titles, _ = self._fields()
        return self._new(matrix, users, items, timestamps, has_ratings, titles, published)


def as_interactions(data: Any) -> Interactions:
    """Take interactions in any form: themselves, a data frame, a matrix (sparse or dense) or a path.

    Examples
    --------
    >>> import numpy as np
    >>> as_interactions(np.eye(3))
    Interactions(3 users x 3 items, 3 interactions)
    """
    if isinstance(data, Interactions):
        return data
    if isinstance(data, (str, Path)):
        return Interactions.read(data)
    if sp.issparse(data) or isinstance(data, np.ndarray):
        return Interactions.from_csr(data)
    if is_frame(data):
        return Interactions.from_frame(data)
    raise TypeError(
        f"cannot take interactions from {type(data).__name__}: pass Interactions, a data frame, "
        "a users x items matrix (scipy sparse or numpy) or the path of a file"
    )
