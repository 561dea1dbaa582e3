"""What people said when asked: which of two items they prefer."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec import _check
from sadrec._types import Floats
from sadrec.data._assemble import ComparisonRows, Ties, check_weight
from sadrec.data._columns import AUTO, find_comparisons, holds_comparisons, is_frame, open_frame, take_columns
from sadrec.data.describe import PairsDescription, quantiles
from sadrec.data.ids import Ids, OfUsersAndItems
from sadrec.data.interactions import Interactions, as_interactions
from sadrec.data.parquet import is_several
from sadrec.data.splits import deal, generator, hold_out_share
from sadrec.data.tables import Table, opened


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(OfUsersAndItems):
    """Users, items, and who preferred what to what; immutable.

    Make one with :meth:`read` (a file), :meth:`from_frame` (a data frame) or :meth:`from_indices` (arrays).

    Attributes
    ----------
    users, items
        Ids, in row order.
    user_ids, item_ids
        The same as indices from id to row.
    user_index, winner_index, loser_index
        One int32 per comparison: rows of ``users`` and ``items``.
    weight
        One float32 per comparison, or ``None``: all ones.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"judge": ["ann", "ann", "bob"], "winner": [3, 1, 2], "loser": [1, 2, 3]})
    >>> pairs = Comparisons.from_frame(frame, user="judge", winner="winner", loser="loser")
    >>> pairs
    Comparisons(3 of 2 users over 3 items)
    >>> pairs.items[pairs.winner_index]
    array([3, 1, 2])
    """

    user_ids: Ids
    item_ids: Ids
    user_index: NDArray[np.int32]
    winner_index: NDArray[np.int32]
    loser_index: NDArray[np.int32]
    weight: Floats | None = None

    _third_maker = "from_indices"

    def _check_arrays(self) -> None:
        indices = "user_index", "winner_index", "loser_index"
        for name in indices:
            array, ids = getattr(self, name), self.user_ids if name == "user_index" else self.item_ids
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise TypeError(f"{name} must be a one-dimensional array of whole numbers, not {array.dtype}")
            checked = _check.positions(array, len(ids), name).astype(np.int32, copy=False)
            object.__setattr__(self, name, checked)
        lengths = [len(getattr(self, name)) for name in indices]
        if len(set(lengths)) > 1:
            raise ValueError(f"the indices differ in length: {', '.join(map(str, lengths))}")
        same = self.winner_index == self.loser_index
        if same.any():
            raise ValueError(f"comparison {int(same.argmax())} compares an item with itself: leave such pairs out")
        object.__setattr__(self, "weight", check_weight(self.weight, len(self)))

    def _arrays(self) -> tuple[NDArray[Any] | None, ...]:
        return self.user_index, self.winner_index, self.loser_index, self.weight

    # -- constructors --------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        path: str | Path | Table,
        *,
        user: str | None = AUTO,
        winner: str = AUTO,
        loser: str | None = AUTO,
        left: str | None = AUTO,
        right: str | None = AUTO,
        weight: str | None = AUTO,
        ties: Ties | None = None,
        header: bool | None = None,
        text_ids: bool = False,
        show_progress: bool = True,
    ) -> "Comparisons":
        """Read a file: csv, tsv, ``::``-separated .dat, parquet; text files also compressed (.gz, .zst).

        Either it has columns of winners and losers, or columns left, right and winner, where the winner is the id of
        one of the two, or empty (null) for a tie. A text file without a header has the columns user, winner, loser or
        user, left, right, winner, in that order.

        Parameters
        ----------
        path
            The file.
        user, winner, loser, left, right, weight
            Names of the columns; "auto" looks for the usual names. ``user=None`` means that one judge said it
            all, whose id is then 0.
        ties
            "drop" leaves ties out, and so does None, with a warning; "split" makes each two comparisons of half the
            weight, one each way.
        header, text_ids, show_progress
            As in :meth:`Interactions.read`.
        """
        wanted = {"user": user, "winner": winner, "loser": loser, "left": left, "right": right, "weight": weight}
        with opened(path, header, text_ids, show_progress) as table:
            choose = partial(find_comparisons, wanted=wanted)
            names = ("user", "winner", "loser") if table.width == 3 else ("user", "left", "right", "winner")
            rows = table.read(choose, names, partial(ComparisonRows, ties))
            with table.naming():
                return cls(*rows.finish())

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        user: str | None = AUTO,
        winner: str = AUTO,
        loser: str | None = AUTO,
        *,
        left: str | None = AUTO,
        right: str | None = AUTO,
        weight: str | None = AUTO,
        ties: Ties | None = None,
    ) -> "Comparisons":
        """Take a data frame of pandas, polars, Arrow or any kind narwhals knows; arguments as in :meth:`read`."""
        wanted = {"user": user, "winner": winner, "loser": loser, "left": left, "right": right, "weight": weight}
        rows = ComparisonRows(ties)
        table = open_frame(frame)
        columns = list(table.columns)
        if len(table) == 0:
            raise ValueError(f"there are no comparisons: the table has no rows (columns {columns})")
        rows.add(take_columns(table, find_comparisons(columns, wanted)))
        return cls(*rows.finish())

    @classmethod
    def from_indices(
        cls, user_index: Any, winner_index: Any, loser_index: Any, *, users: Any, items: Any, weight: Any = None
    ) -> "Comparisons":
        """Take arrays of rows into the ids ``users`` and ``items``."""
        user_ids, item_ids = Ids(users, "user"), Ids(items, "item")
        user, winner, loser = (np.array(index) for index in (user_index, winner_index, loser_index))
        return cls(user_ids, item_ids, user, winner, loser, None if weight is None else np.array(weight))

    # -- what it holds ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.user_index)

    def __repr__(self) -> str:
        return f"Comparisons({len(self):,} of {len(self.user_ids):,} users over {len(self.item_ids):,} items)"

    def to_frame(self) -> pl.DataFrame:
        """Return a polars frame of user, winner, loser and, where there are any, weights."""
        columns = {
            "user": self.users[self.user_index],
            "winner": self.items[self.winner_index],
            "loser": self.items[self.loser_index],
        }
        if self.weight is not None:
            columns["weight"] = self.weight
        return pl.DataFrame(columns)

    def describe(self) -> PairsDescription:
        """Return counts and quantiles per user and item."""
        users, items, pairs = len(self.user_ids), len(self.item_ids), len(np.unique(self.pairings()))
        per_user = np.bincount(self.user_index, minlength=users)
        per_item = np.bincount(np.concatenate([self.winner_index, self.loser_index]), minlength=items)
        return PairsDescription(users, items, len(self), pairs, quantiles(per_user), quantiles(per_item))

    # -- parts -----------------------------------------------------------------------------------------------

    def pairings(self) -> NDArray[np.int64]:
        """Return for each comparison a number of the two items compared, the same whichever of them won."""
        low, high = np.minimum(self.winner_index, self.loser_index), np.maximum(self.winner_index, self.loser_index)
        return low.astype(np.int64) * len(self.item_ids) + high

    def split(
        self, test: float = 0.2, seed: int = 0, by: Literal["row", "pairing"] = "row"
    ) -> tuple["Comparisons", "Comparisons"]:
        """Hold out a share of the comparisons, at random; both parts keep the whole's users and items.

        Parameters
        ----------
        test
            The share: of the comparisons, or of the pairings.
        seed
            Seed of the choice.
        by
            "row": each comparison for itself; one of weight k is k comparisons, which are dealt one by one.
            "pairing": all comparisons of two items, whoever made them, are in the same part, so that the test asks
            about pairs of items that nobody compared in train.

        Examples
        --------
        >>> import polars as pl
        >>> games = pl.DataFrame({"user": 4 * [1], "winner": ["a", "b", "a", "c"], "loser": ["b", "a", "c", "b"]})
        >>> train, test = Comparisons.from_frame(games).split(test=0.34, by="pairing")
        >>> len(train), len(test)
        (3, 1)
        """
        if _check.one_of(by, "by", ("row", "pairing")) == "pairing":
            known, group = np.unique(self.pairings(), return_inverse=True)
            mask = hold_out_share(len(known), test, seed)[group]
        elif self.weight is None:
            mask = hold_out_share(len(self), test, seed)
        else:
            share = _check.share(test, "test", inside=True)
            train, held_out = deal(self.weight, (1 - share, share), seed)
            return self._weighted(train), self._weighted(held_out)
        return self._part(~mask), self._part(mask)

    def filter(self, min_per_user: int = 0, min_per_item: int = 0) -> "Comparisons":
        """Keep items with enough comparisons, then users with enough of what is left.

        Users and items left without comparisons are removed.
        """
        both = np.concatenate([self.winner_index, self.loser_index])
        often = np.bincount(both, minlength=len(self.item_ids)) >= min_per_item
        mask = often[self.winner_index] & often[self.loser_index]
        mask &= (np.bincount(self.user_index[mask], minlength=len(self.user_ids)) >= min_per_user)[self.user_index]
        if not mask.any():
            raise ValueError(f"nothing is left with min_per_user={min_per_user}, min_per_item={min_per_item}")
        part = self._part(mask)
        users, user = np.unique(part.user_index, return_inverse=True)
        items, item = np.unique(np.concatenate([part.winner_index, part.loser_index]), return_inverse=True)
        winner, loser = np.split(item.astype(np.int32), 2)
        user_ids, item_ids = Ids(self.users[users], "user"), Ids(self.items[items], "item")
        return Comparisons(user_ids, item_ids, user.astype(np.int32), winner, loser, part.weight)

    def _weighted(self, weight: Floats) -> "Comparisons":
        """Return the same with other weights, less those of weight 0."""
        counted = weight > 0
        columns = (self.user_index[counted], self.winner_index[counted], self.loser_index[counted])
        return Comparisons(self.user_ids, self.item_ids, *columns, weight[counted])

    def _part(self, mask: NDArray[np.bool_]) -> "Comparisons":
        """Return some of the comparisons, with all users and items."""
        weight = None if self.weight is None else self.weight[mask]
        columns = (self.user_index[mask], self.winner_index[mask], self.loser_index[mask])
        return Comparisons(self.user_ids, self.item_ids, *columns, weight)


def folds(data: Comparisons, k: int, seed: int) -> list[tuple[Comparisons, Comparisons]]:
    """Hold out every comparison once, in one of ``k`` folds, at random."""
    if data.weight is None:
        fold = generator(seed).permutation(len(data)) % k
        return [(data._part(fold != number), data._part(fold == number)) for number in range(k)]
    held_out = deal(data.weight, np.full(k, 1 / k), seed)
    return [(data._weighted(data.weight - weight), data._weighted(weight)) for weight in held_out]


def as_comparisons(data: Any) -> Comparisons:
    """Take comparisons in any form: themselves, a data frame or a path."""
    if isinstance(data, Comparisons):
        return data
    if isinstance(data, (str, Path)):
        return Comparisons.read(data)
    if is_frame(data):
        return Comparisons.from_frame(data)
    raise TypeError(
        f"cannot take comparisons from {type(data).__name__}: pass Comparisons, a data frame with the "
        "columns user, winner and loser (or left, right and winner), or the path of a file"
    )


def as_feedback(data: Any) -> Interactions | Comparisons:
    """Take what :func:`as_comparisons` or :func:`as_interactions` takes; a table with winners and losers: comparisons.

    Examples
    --------
    >>> import polars as pl
    >>> as_feedback(pl.DataFrame({"user": ["ann"], "winner": ["tea"], "loser": ["ale"]}))
    Comparisons(1 of 1 users over 2 items)
    """
    if isinstance(data, Comparisons):
        return data
    if isinstance(data, (str, Path)):
        if is_several(data):  # Parquet with interactions
            return Interactions.read(data)
        with Table(data) as table:
            return (Comparisons if holds_comparisons(table.columns or ()) else Interactions).read(table)
    if is_frame(data) and holds_comparisons(list(open_frame(data).columns)):
        return Comparisons.from_frame(data)
    return as_interactions(data)
