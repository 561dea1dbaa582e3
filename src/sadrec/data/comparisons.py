"""What people said when asked: which of two items they prefer."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data._columns import AUTO, is_frame, open_frame, take_column
from sadrec.data._pairs import check_weight, choose_columns, from_sides, without_self
from sadrec.data._vocabulary import Vocabulary
from sadrec.data.ids import IdArray, Ids
from sadrec.data.splits import hold_out_share

if TYPE_CHECKING:
    from sadrec.data.describe import PairsDescription

log = logging.getLogger(__name__)

Ties = Literal["drop", "split"]


class Comparisons:
    """Users, items, and who preferred what to what; immutable.

    Make one with :meth:`read` (a file), :meth:`from_frame` (a data frame) or :meth:`from_indices` (arrays).

    Attributes
    ----------
    users, items
        Ids, in row order.
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

    __slots__ = ("_items", "_loser", "_user", "_users", "_weight", "_winner")

    _users: Ids
    _items: Ids
    _user: NDArray[np.int32]
    _winner: NDArray[np.int32]
    _loser: NDArray[np.int32]
    _weight: NDArray[np.float32] | None

    def __init__(self) -> None:
        raise TypeError("make comparisons with Comparisons.read, .from_frame or .from_indices")

    @classmethod
    def _new(
        cls,
        users: Ids,
        items: Ids,
        columns: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]],
        weight: NDArray[np.float32] | None,
    ) -> "Comparisons":
        self = object.__new__(cls)
        for array in (*columns, weight):
            if array is not None:
                array.flags.writeable = False
        names = ("_users", "_items", "_user", "_winner", "_loser", "_weight")
        for name, value in zip(names, (users, items, *columns, weight), strict=True):
            object.__setattr__(self, name, value)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"comparisons are immutable: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self._user, self._winner, self._loser)
        return (type(self)._new, (self._users, self._items, columns, self._weight))

    # -- constructors --------------------------------------------------------------------------------------

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
        ties: Ties = "drop",
    ) -> "Comparisons":
        """Take a data frame of pandas, polars, Arrow or any kind narwhals knows.

        Either it has columns of winners and losers, or columns left, right and winner, where the winner is
        the id of one of the two, or null for a tie.

        Parameters
        ----------
        frame
            The data frame.
        user, winner, loser, left, right, weight
            Names of the columns; "auto" looks for the usual names. ``user=None`` means that one judge said it
            all, whose id is then 0.
        ties
            "drop" leaves ties out; "split" makes each two comparisons of half the weight, one each way.
        """
        if ties not in ("drop", "split"):
            raise ValueError(f'ties must be "drop" or "split", not {ties!r}')
        opened = open_frame(frame)
        columns = list(opened.columns)
        if len(opened) == 0:
            raise ValueError(f"there are no comparisons: the table has no rows (columns {columns})")
        names = choose_columns(columns, user, winner, loser, left, right, weight)
        taken = {role: take_column(opened, name) for role, name in names.items() if name is not None}
        return cls._assemble(taken, ties)

    @classmethod
    def read(cls, path: str | Path, *, header: bool | None = None, **arguments: Any) -> "Comparisons":
        """Read a file of any kind ``Interactions.read`` takes; further arguments as in :meth:`from_frame`.

        A text file without a header has the columns user, winner, loser or user, left, right, winner.
        """
        from sadrec.data.readers import naming, read_table

        with naming(path):
            return cls.from_frame(read_table(path, header=header), **arguments)

    @classmethod
    def from_indices(
        cls,
        user_index: Any,
        winner_index: Any,
        loser_index: Any,
        *,
        users: Any,
        items: Any,
        weight: Any = None,
    ) -> "Comparisons":
        """Take arrays of rows into the ids ``users`` and ``items``."""
        known = Ids(users, "user"), Ids(items, "item")
        arrays = []
        for name, values, ids in (
            ("user_index", user_index, known[0]),
            ("winner_index", winner_index, known[1]),
            ("loser_index", loser_index, known[1]),
        ):
            array = np.array(values)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise TypeError(f"{name} must be a one-dimensional array of whole numbers, not {array.dtype}")
            if len(array) and (array.min() < 0 or array.max() >= len(ids)):
                raise ValueError(f"{name} must lie in 0..{len(ids) - 1}, not {array.min()}..{array.max()}")
            arrays.append(array.astype(np.int32))
        if len({len(array) for array in arrays}) > 1:
            raise ValueError(f"the indices differ in length: {', '.join(str(len(array)) for array in arrays)}")
        same = arrays[1] == arrays[2]
        if same.any():
            raise ValueError(f"comparison {int(same.argmax())} compares an item with itself: leave such pairs out")
        return cls._new(*known, (arrays[0], arrays[1], arrays[2]), check_weight(weight, len(arrays[0])))

    @classmethod
    def _assemble(cls, taken: dict[str, pl.Series], ties: Ties) -> "Comparisons":
        weight = check_weight(taken["weight"].to_numpy() if "weight" in taken else None, len(taken["winner"]))
        rows = len(taken["winner"])
        user_words, item_words = Vocabulary("user"), Vocabulary("item")
        judge = taken.get("user", pl.Series("user", np.zeros(rows, dtype=np.int64)))
        user = user_words.encode(judge, 0)
        tied = np.zeros(rows, dtype=np.bool_)
        if "loser" in taken:
            winner, loser = item_words.encode(taken["winner"], 0), item_words.encode(taken["loser"], 0)
        else:
            winner, loser, tied = from_sides(taken, item_words)
        users, user_place = user_words.finish()
        items, item_place = item_words.finish()
        user, winner, loser = user_place[user], item_place[winner], item_place[loser]
        keep = without_self(winner, loser)
        if tied.any():
            log.info(
                "%d of %d comparisons are ties: %s",
                tied.sum(),
                rows,
                "dropped" if ties == "drop" else "split",
            )
            if ties == "drop":
                keep &= ~tied
            else:
                again = np.flatnonzero(tied & keep)
                weight = np.ones(rows, dtype=np.float32) if weight is None else weight.copy()
                weight[tied] /= 2
                user, weight = np.append(user, user[again]), np.append(weight, weight[again])
                winner, loser = np.append(winner, loser[again]), np.append(loser, winner[again])
                keep = np.append(keep, np.ones(len(again), dtype=np.bool_))
        if not keep.any():
            raise ValueError(f"no comparison is left of {rows}: {int(tied.sum())} are ties (ties={ties!r})")
        if not keep.all():
            user, winner, loser = user[keep], winner[keep], loser[keep]
            weight = None if weight is None else weight[keep]
        return cls._new(Ids(users, "user"), Ids(items, "item"), (user, winner, loser), weight)

    # -- what it holds ---------------------------------------------------------------------------------------

    @property
    def users(self) -> IdArray:
        """User ids, in row order."""
        return self._users.array

    @property
    def items(self) -> IdArray:
        """Item ids, in row order."""
        return self._items.array

    @property
    def user_ids(self) -> Ids:
        """The users as an index from id to row."""
        return self._users

    @property
    def item_ids(self) -> Ids:
        """The items as an index from id to row."""
        return self._items

    @property
    def user_index(self) -> NDArray[np.int32]:
        """Row of the user of each comparison."""
        return self._user

    @property
    def winner_index(self) -> NDArray[np.int32]:
        """Row of the preferred item of each comparison."""
        return self._winner

    @property
    def loser_index(self) -> NDArray[np.int32]:
        """Row of the other item of each comparison."""
        return self._loser

    @property
    def weight(self) -> NDArray[np.float32] | None:
        """Weight of each comparison; ``None`` means that all weigh 1."""
        return self._weight

    def __len__(self) -> int:
        return len(self._user)

    def __repr__(self) -> str:
        return f"Comparisons({len(self):,} of {len(self._users):,} users over {len(self._items):,} items)"

    def to_frame(self) -> pl.DataFrame:
        """Return a polars frame of user, winner, loser and, where there are any, weights."""
        columns = {
            "user": self.users[self._user],
            "winner": self.items[self._winner],
            "loser": self.items[self._loser],
        }
        if self._weight is not None:
            columns["weight"] = self._weight
        return pl.DataFrame(columns)

    # -- parts -----------------------------------------------------------------------------------------------

    def describe(self) -> "PairsDescription":
        """Return counts and quantiles per user and item."""
        from sadrec.data.describe import describe_pairs

        return describe_pairs(len(self._users), len(self._items), self._user, self._winner, self._loser)

    def split(self, test: float = 0.2, seed: int = 0) -> tuple["Comparisons", "Comparisons"]:
        """Hold out a share of the comparisons, at random; both parts keep the whole's users and items."""
        mask = hold_out_share(len(self), test, seed)
        return self._part(~mask), self._part(mask)

    def filter(self, min_per_user: int = 0, min_per_item: int = 0) -> "Comparisons":
        """Keep items with enough comparisons, then users with enough of what is left.

        Users and items left without comparisons are removed.
        """
        both = np.concatenate([self._winner, self._loser])
        often = np.bincount(both, minlength=len(self._items)) >= min_per_item
        mask = often[self._winner] & often[self._loser]
        mask &= (np.bincount(self._user[mask], minlength=len(self._users)) >= min_per_user)[self._user]
        if not mask.any():
            raise ValueError(f"nothing is left with min_per_user={min_per_user}, min_per_item={min_per_item}")
        part = self._part(mask)
        users, user = np.unique(part.user_index, return_inverse=True)
        items, item = np.unique(np.concatenate([part.winner_index, part.loser_index]), return_inverse=True)
        winner, loser = np.split(item.astype(np.int32), 2)
        columns = (user.astype(np.int32), winner, loser)
        return self._new(Ids(self.users[users], "user"), Ids(self.items[items], "item"), columns, part.weight)

    def _part(self, mask: NDArray[np.bool_]) -> "Comparisons":
        weight = None if self._weight is None else self._weight[mask]
        columns = (self._user[mask], self._winner[mask], self._loser[mask])
        return self._new(self._users, self._items, columns, weight)


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
