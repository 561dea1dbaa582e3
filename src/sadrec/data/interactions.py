"""Interactions: which user interacted with which item, and how they rated it."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core import check
from sadrec._core.sparse import canonical, check_values, compressed, masked
from sadrec._core.sparse import check as check_sparse
from sadrec.data import DataWarning, splits
from sadrec.data._assemble import Assembler, Duplicates
from sadrec.data._columns import AUTO, find_interactions, is_frame, open_frame, take_columns
from sadrec.data.describe import Description, quantiles
from sadrec.data.ids import Ids, OfUsersAndItems, as_id_array
from sadrec.data.items import Items
from sadrec.data.parquet import ParquetFiles, is_several
from sadrec.data.tables import Table, naming, opened


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(OfUsersAndItems):
    """Interactions of users with items, as a sparse matrix; immutable.

    Make one with :meth:`read` (a file), :meth:`from_frame` (a data frame) or :meth:`from_csr` (a matrix).

    Attributes
    ----------
    matrix
        scipy CSR matrix (users x items, float32) of ratings, or of ones where there are none. Sorted, without
        repeated entries; a rating of 0 is a stored entry like any other.
    users, items
        Ids in row and column order.
    user_ids, item_ids
        The same as indices from id to row or column.
    timestamps
        One per stored entry, in the order of ``matrix.data``; ``None`` where there are none.
    has_ratings
        Whether the values mean something.
    item_titles
        The titles of items by id (:class:`Items`); ``None`` where the data brings none.

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

    matrix: Any
    user_ids: Ids
    item_ids: Ids
    timestamps: NDArray[Any] | None = None
    has_ratings: bool = False
    item_titles: Items | None = None

    _third_maker = "from_csr"

    def _check_arrays(self) -> None:
        if self.matrix.shape != self.shape or self.matrix.format != "csr":
            raise ValueError(f"the matrix must be CSR of shape {self.shape}: make interactions with from_csr")
        check_sparse(self.matrix)
        check_values(self.matrix)
        if not isinstance(self.item_titles, Items | None):
            raise TypeError(f"item_titles must be sadrec.Items or None, not {type(self.item_titles).__name__}")

    def _arrays(self) -> tuple[NDArray[Any] | None, ...]:
        return self.matrix.data, self.matrix.indices, self.matrix.indptr, self.timestamps

    # -- constructors ----------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        path: str | Path | Table,
        *,
        user: str = AUTO,
        item: str = AUTO,
        rating: str | None = AUTO,
        timestamp: str | None = AUTO,
        duplicates: Duplicates | None = None,
        allow_negative: bool = False,
        header: bool | None = None,
        text_ids: bool = False,
        show_progress: bool = True,
    ) -> "Interactions":
        """Read a file (csv, tsv, ``::``-separated .dat, parquet; text files also .gz, .zst), or a folder of parquet.

        A text file without a header has the columns user, item, rating, timestamp in that order. Empty lines are left
        out.

        Parameters
        ----------
        path
            The file; or a folder of parquet files, or a pattern of their names (``part-*.parquet``), whose rows are
            taken in the order of the names.
        user, item, rating, timestamp
            Names of the columns; "auto" looks for the usual names, and takes the only other column of ids
            (``anime_id``) for the items. ``rating=None`` takes every row as an interaction, ``timestamp=None``
            leaves times out.
        duplicates
            What becomes of a (user, item) pair that occurs more than once: "last" (the latest by timestamp,
            or else the last row; the default), "sum", "count" or "max".
        allow_negative
            Take negative ratings instead of refusing them.
        header
            Whether a text file starts with a line of column names; by default one without any number is.
        text_ids
            Read ids as text even when they look like numbers. Ids are text in any case where one is not a whole number,
            or not written as one: 007, +7.
        show_progress
            Whether to show, on a terminal, how far a file is read that takes long.
        """
        columns = {"user": user, "item": item, "rating": rating, "timestamp": timestamp}
        return _read(path, columns, duplicates, allow_negative, header, text_ids, show_progress)[0]

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
        columns = {"user": user, "item": item, "rating": rating, "timestamp": timestamp}
        return _read(open_frame(frame), columns, duplicates, allow_negative)[0]

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
        own = canonical(matrix, allow_negative=allow_negative)
        ids = []
        for what, given, count in (("user", users, own.shape[0]), ("item", items, own.shape[1])):
            checked = Ids(np.arange(count) if given is None else np.array(as_id_array(given)), what)
            if len(checked) != count:
                raise ValueError(f"{len(checked)} {what} ids are given for {count} {what}s of the matrix")
            ids.append(checked)
        has_ratings = bool((own.data != 1).any())
        return cls(own, ids[0], ids[1], None, has_ratings)

    # -- what it holds ---------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return (len(self.user_ids), len(self.item_ids))

    def __len__(self) -> int:
        return int(self.matrix.nnz)

    def __repr__(self) -> str:
        what = "ratings" if self.has_ratings else "interactions"
        return f"Interactions({self.shape[0]:,} users x {self.shape[1]:,} items, {len(self):,} {what})"

    def to_frame(self) -> pl.DataFrame:
        """Return a polars frame of user, item and, where there are any, rating and timestamp."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.matrix.indptr))
        columns = {"user": self.users[rows], "item": self.items[self.matrix.indices]}
        if self.has_ratings:
            columns["rating"] = self.matrix.data
        if self.timestamps is not None:
            columns["timestamp"] = self.timestamps
        return pl.DataFrame(columns)

    def describe(self) -> Description:
        """Return counts, sparsity and quantiles per user and item: the paper's table of properties."""
        users, items = self.shape
        share = len(self) / (users * items) if users * items else 1.0
        per_user, per_item = np.diff(self.matrix.indptr), np.bincount(self.matrix.indices, minlength=items)
        spread = quantiles(per_user), quantiles(per_item)
        return Description(users, items, len(self), 1 - share, *spread)

    # -- splits ----------------------------------------------------------------------------------------------

    def leave_one_out(self, seed: int = 0) -> tuple["Interactions", "Interactions"]:
        """Hold out one interaction of every user, at random; users with a single one stay in train only.

        Returns
        -------
        train, held_out
            Both with the users, items and shape of the whole.
        """
        return self._divide(splits.hold_out_one(self.matrix.indptr, seed))

    def split(self, test: float = 0.2, seed: int = 0) -> tuple["Interactions", "Interactions"]:
        """Hold out a share of all interactions, at random; train and test both have the whole's shape."""
        return self._divide(splits.hold_out_share(len(self), test, seed))

    def split_by_time(self, at: Any = None, test: float = 0.2) -> tuple["Interactions", "Interactions"]:
        """Hold out everything from the time ``at`` on, or, without it, the latest share ``test``.

        Interactions at the very moment of the cut are held out, so that equal times never straddle it. A cut that
        leaves one part empty is refused.
        """
        return self._divide(splits.hold_out_from(self._times(), at, test))

    def user_folds(self, k: int = 5, seed: int = 0) -> Iterator[tuple["Interactions", "Interactions"]]:
        """Split the users into ``k`` folds; yields, for each, (the other users' interactions, the fold's)."""
        for mask in splits.fold_masks(self.matrix.indptr, k, seed):
            yield self._divide(mask)

    def _times(self) -> NDArray[Any]:
        if self.timestamps is None:
            raise ValueError(
                "these interactions have no timestamps: use split or leave_one_out, or read a column of times"
            )
        return self.timestamps

    def _divide(self, held_out: NDArray[np.bool_]) -> tuple["Interactions", "Interactions"]:
        return self._part(~held_out), self._part(held_out)

    def _part(self, mask: NDArray[np.bool_]) -> "Interactions":
        times = None if self.timestamps is None else self.timestamps[mask]
        return replace(self, matrix=masked(self.matrix, mask), timestamps=times)

    # -- selections ------------------------------------------------------------------------------------------

    def filter(
        self, min_per_user: int = 0, min_per_item: int = 0, top_users: int | None = None, *, until_stable: bool = False
    ) -> "Interactions":
        """Keep active users and popular items; users and items left without interactions are removed.

        In this order, as in the paper: the ``top_users`` users with most interactions (equals in row order),
        then items with at least ``min_per_item`` of what is left, then users with at least ``min_per_user``.
        Removing users can push an item below its minimum again; ``until_stable=True`` repeats the last two
        steps until both minima hold.
        """
        mask = _selected(self.matrix, min_per_user, min_per_item, top_users, until_stable=until_stable)
        part = self._part(mask)
        rows = np.flatnonzero(np.diff(part.matrix.indptr))
        used = np.zeros(self.shape[1], dtype=np.bool_)
        used[part.matrix.indices] = True
        columns = np.flatnonzero(used)
        return replace(
            part,
            matrix=compressed(part.matrix, rows, columns),
            user_ids=Ids(self.users[rows], "user"),
            item_ids=Ids(self.items[columns], "item"),
        )


def warn_of_repeated(rows: int, *, timed: bool) -> None:
    """Warn that rows repeat a pair of user and item, and which row was kept."""
    kept = "the latest of each" if timed else "the last row of each"
    warnings.warn(
        f"{rows:,} rows repeat a (user, item) pair: kept {kept}; "
        'choose with duplicates="last", "sum", "count" or "max" (--duplicates)',
        DataWarning,
        stacklevel=4,
    )


def _selected(
    matrix: Any, min_per_user: int, min_per_item: int, top_users: int | None, *, until_stable: bool
) -> NDArray[np.bool_]:
    """Mask of the stored entries that remain; see ``Interactions.filter`` for the order of the steps."""
    check.whole(min_per_user, "min_per_user")
    check.whole(min_per_item, "min_per_item")
    sizes = np.diff(matrix.indptr)
    mask = np.ones(matrix.nnz, dtype=np.bool_)
    if top_users is not None and check.whole(top_users, "top_users", 1) < len(sizes):
        chosen = np.zeros(len(sizes), dtype=np.bool_)
        chosen[np.argsort(-sizes, kind="stable")[:top_users]] = True
        mask = np.repeat(chosen, sizes)
    rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    while True:
        before = int(mask.sum())
        if min_per_item:
            per_item = np.bincount(matrix.indices[mask], minlength=matrix.shape[1])
            mask &= (per_item >= min_per_item)[matrix.indices]
        if min_per_user:
            per_user = np.bincount(rows[mask], minlength=matrix.shape[0])
            mask &= (per_user >= min_per_user)[rows]
        if not until_stable or int(mask.sum()) == before:
            break
    if not mask.any():
        raise ValueError(
            f"nothing is left with min_per_user={min_per_user}, min_per_item={min_per_item}, "
            f"top_users={top_users}: the busiest user has {sizes.max()} interactions, the most popular item "
            f"{np.bincount(matrix.indices, minlength=1).max()}"
        )
    return mask


def with_weights(
    data: Any, column: str, *, duplicates: Duplicates | None = None, allow_negative: bool = False, **columns: Any
) -> tuple[Interactions, Interactions]:
    """Read a table once: its interactions, and the same with a column of weights in place of the ratings.

    ``columns`` are user, item, rating and timestamp, as :meth:`Interactions.read` takes them.
    Weights of repeated rows are merged as ratings are, and summed where rows are counted.

    Examples
    --------
    >>> import polars as pl
    >>> with_weights(pl.DataFrame({"user": [1, 1], "item": [5, 7], "trust": [0.5, 2]}), "trust")[1].matrix.data
    array([0.5, 2. ], dtype=float32)
    """
    if not isinstance(data, (str, Path, Table, ParquetFiles)) and not is_frame(data):
        raise TypeError(
            f"weights={column!r} names a column, and {type(data).__name__} has none: give one weight for each "
            "interaction"
        )
    return _read(data, {**columns, "weight": column}, duplicates, allow_negative)


def _read(
    data: Any,
    columns: Mapping[str, Any],
    duplicates: Duplicates | None,
    allow_negative: bool,
    header: bool | None = None,
    text_ids: bool = False,
    show_progress: bool = True,
) -> tuple[Interactions, Any]:
    """Return the interactions in a frame, a file or several; with a column of weights also those rated by weight."""
    if isinstance(data, (str, Path)) and is_several(data):
        data = ParquetFiles([data], **columns, duplicates=duplicates, allow_negative=allow_negative, text_ids=text_ids)

    def choose(names: list[str]) -> dict[str, str]:
        return find_interactions(names, **columns)

    path = None
    start = partial(Assembler, duplicates=duplicates or "last", allow_negative=allow_negative)
    if isinstance(data, ParquetFiles):
        data = replace(data, weight=columns.get("weight"))
        rows, duplicates = data.read(show_progress=show_progress), data.duplicates
    elif isinstance(data, (str, Path, Table)):
        with opened(data, header, text_ids, show_progress) as table:
            rows, path = table.read(choose, ("user", "item", "rating", "timestamp"), start), table.path
    else:
        frame, rows = open_frame(data), start()
        chosen = choose(list(frame.columns))
        if len(frame) == 0:
            raise ValueError("the frame has no rows")
        rows.add(take_columns(frame, chosen))
    with naming(path):
        weights = Interactions(*rows.weights().finish()) if columns.get("weight") else None
        interactions = Interactions(*rows.finish())
    if (repeated := rows.rows - len(interactions)) and duplicates is None:
        warn_of_repeated(repeated, timed=interactions.timestamps is not None)
    return interactions, weights


def as_interactions(data: Any) -> Interactions:
    """Return ``Interactions`` made of interactions, a data frame, a matrix (sparse or dense) or a path.

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
    if isinstance(data, ParquetFiles):
        return _read(data, {}, None, False)[0]
    if sp.issparse(data) or isinstance(data, np.ndarray):
        return Interactions.from_csr(data)
    if is_frame(data):
        return Interactions.from_frame(data)
    raise TypeError(
        f"cannot take interactions from {type(data).__name__}: pass Interactions, a data frame, "
        "a users x items matrix (scipy sparse or numpy) or the path of a file"
    )
