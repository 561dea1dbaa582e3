"""Comparisons: which of two items a judge prefers, or that neither won."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core import check
from sadrec._core.types import Floats
from sadrec.data._assemble import check_weight
from sadrec.data._columns import AUTO, find_comparisons, holds_comparisons, is_frame, open_frame, take_columns
from sadrec.data._comparison_rows import ComparisonRows, TieRule
from sadrec.data.describe import PairsDescription, quantiles
from sadrec.data.ids import Ids, OfUsersAndItems, as_id_array
from sadrec.data.interactions import Interactions, as_interactions
from sadrec.data.parquet import is_several
from sadrec.data.splits import deal, generator, hold_out_share
from sadrec.data.tables import Table, naming, opened


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(OfUsersAndItems):
    """Users, items, and who preferred what to what; immutable.

    Make one with :meth:`read` (a file), :meth:`from_frame` (a data frame), :meth:`from_pairs` (a list), or
    :meth:`from_indices` (arrays).

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
    tied
        Whether each comparison is a tie, or ``None``: none is. Of a tie, "winner" and "loser" are the two items.
    features, feature_names
        Numbers in favour of the winner that should not count, (comparisons, names): the margin is that of the items
        plus a coefficient times each. Or ``None``.

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
    tied: NDArray[np.bool_] | None = None
    features: Floats | None = None
    feature_names: tuple[str, ...] = ()

    _third_maker = "from_indices"

    def _check_arrays(self) -> None:
        indices = "user_index", "winner_index", "loser_index"
        for name in indices:
            array, ids = getattr(self, name), self.user_ids if name == "user_index" else self.item_ids
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise TypeError(f"{name} must be a one-dimensional array of whole numbers, not {array.dtype}")
            checked = check.positions(array, len(ids), name).astype(np.int32, copy=False)
            object.__setattr__(self, name, checked)
        lengths = [len(getattr(self, name)) for name in indices]
        if len(set(lengths)) > 1:
            raise ValueError(f"the indices differ in length: {', '.join(map(str, lengths))}")
        same = self.winner_index == self.loser_index
        if same.any():
            raise ValueError(f"comparison {int(same.argmax())} compares an item with itself: leave such pairs out")
        object.__setattr__(self, "weight", check_weight(self.weight, len(self)))
        if self.tied is not None:
            if self.tied.shape != (len(self),) or self.tied.dtype != np.bool_:
                raise ValueError(f"tied must be one True or False for each of the {len(self)} comparisons")
            if not self.tied.any():
                object.__setattr__(self, "tied", None)
        names = self.feature_names
        if self.features is not None:
            if self.features.shape != (len(self), len(names)) or len(set(names)) < len(names):
                raise ValueError(f"features must be {len(self)} rows of one number for each name, {list(names)}")
            object.__setattr__(self, "features", check.numbers(self.features, "features", -np.inf))

    def _arrays(self) -> tuple[NDArray[Any] | None, ...]:
        return self.user_index, self.winner_index, self.loser_index, self.weight, self.tied, self.features

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
        left_score: str | None = AUTO,
        right_score: str | None = AUTO,
        features: Sequence[str] = (),
        ties: TieRule = "keep",
        header: bool | None = None,
        text_ids: bool = False,
        show_progress: bool = True,
    ) -> "Comparisons":
        """Read a file: csv, tsv, ``::``-separated .dat, parquet; text files also compressed (.gz, .zst).

        Either it has columns of winners and losers, or columns left, right and winner, where the winner is the id of
        one of the two, the name of a side (``model_a``, ``left``), a score of the left side (1, 0.5, 0; where ids are
        text), or empty, ``tie``, ``tie (bothbad)``, ``draw`` for a tie; or columns left, right and the scores of both;
        or a column ranking of text such as ``tea > ale > gin``, where every item beats every later one.
        A text file without a header has the columns user, winner, loser or user, left, right, winner, in that order.

        Parameters
        ----------
        path
            The file.
        user, winner, loser, left, right, weight, left_score, right_score
            Names of the columns; "auto" looks for the usual names. ``user=None`` means that one judge said it
            all, whose id is then 0.
        features
            Names of columns of numbers in favour of the left side, or of the winner, that should not count: who went
            first, a difference in length (docs/feedback.md).
        ties
            "keep" takes a tie as a result like any other; "drop" leaves ties out; "split" makes each two comparisons
            of half the weight, one each way.
        header, text_ids, show_progress
            As in :meth:`Interactions.read`.
        """
        wanted = {"user": user, "winner": winner, "loser": loser, "left": left, "right": right, "weight": weight}
        wanted |= {"left_score": left_score, "right_score": right_score}
        with opened(path, header, text_ids, show_progress) as table:
            choose = partial(find_comparisons, wanted=wanted, features=features)
            names = ("user", "winner", "loser") if table.width == 3 else ("user", "left", "right", "winner")
            rows = table.read(choose, names, partial(ComparisonRows, ties))
            with naming(table.path):
                return cls(**rows.finish(), feature_names=tuple(features))

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
        left_score: str | None = AUTO,
        right_score: str | None = AUTO,
        features: Sequence[str] = (),
        ties: TieRule = "keep",
    ) -> "Comparisons":
        """Take a data frame of pandas, polars, Arrow or any kind narwhals knows; arguments as in :meth:`read`."""
        wanted = {"user": user, "winner": winner, "loser": loser, "left": left, "right": right, "weight": weight}
        wanted |= {"left_score": left_score, "right_score": right_score}
        rows = ComparisonRows(ties)
        table = open_frame(frame)
        columns = list(table.columns)
        if len(table) == 0:
            raise ValueError(f"there are no comparisons: the table has no rows (columns {columns})")
        rows.add(take_columns(table, find_comparisons(columns, wanted, features)))
        return cls(**rows.finish(), feature_names=tuple(features))

    @classmethod
    def from_pairs(cls, pairs: Iterable[Sequence[Any]], users: Sequence[Any] | None = None) -> "Comparisons":
        """Take a list of (winner, loser), or of rankings (best, second, ..., last): every item before every later one.

        ``users`` holds the judge of each; None: one judge said it all.

        Examples
        --------
        >>> Comparisons.from_pairs([("tea", "ale"), ("tea", "gin", "ale")]).to_frame().drop("user").rows()
        [('tea', 'ale'), ('tea', 'gin'), ('tea', 'ale'), ('gin', 'ale')]
        """
        rankings = [tuple(ranking) for ranking in pairs]
        if short := [ranking for ranking in rankings if len(ranking) < 2]:
            raise ValueError(f"a pair is (winner, loser), and a ranking has two items or more, not {short[0]!r}")
        if users is not None and len(users) != len(rankings):
            raise ValueError(f"there are {len(rankings)} pairs, and {len(users)} users: give one for each")
        every = [
            (row, winner, loser) for row, ranking in enumerate(rankings) for winner, loser in combinations(ranking, 2)
        ]
        if not every:
            raise ValueError("there are no comparisons: the list has no pairs")
        rows, winners, losers = zip(*every, strict=True)
        if len({isinstance(item, str) for item in (*winners, *losers)}) > 1:
            raise TypeError(
                f"a list of pairs holds (winner, loser), items of one type, not {rankings[0]!r}; give users with their "
                "items as a data frame: polars.DataFrame(pairs, schema=['user', 'item'], orient='row')"
            )
        judges = None if users is None else [users[row] for row in rows]
        columns = {"winner": winners, "loser": losers} | ({} if judges is None else {"user": judges})
        frame = pl.DataFrame({name: pl.Series(name, as_id_array(list(ids))) for name, ids in columns.items()})
        return cls.from_frame(frame, user=None if users is None else "user")

    @classmethod
    def from_wins(cls, wins: Any, items: Sequence[Any] | None = None) -> "Comparisons":
        """Take a square matrix, sparse or dense, of how often each item (row) won against each other (column).

        A data frame names its items: its columns are those of the index of pandas, or of the first column. NaN is 0.

        Examples
        --------
        >>> Comparisons.from_wins([[0, 3], [1, 0]], items=["tea", "ale"]).weight
        array([3., 1.], dtype=float32)
        """
        if is_frame(wins):
            named = _named_matrix(wins)
            if named is None:
                raise ValueError(
                    "the items of a frame of wins name its columns and, in the same order, its index or the rows of "
                    "its first column: Comparisons.from_wins(frame.to_numpy(), items=[...]) takes any other"
                )
            wins, items = named[0], named[1] if items is None else items
        matrix = _matrix_of_wins(wins)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a matrix of wins is square, with a row and a column for each item, not {matrix.shape}")
        if matrix.diagonal().any():
            row = int(matrix.diagonal().nonzero()[0][0])
            raise ValueError(f"row {row} says how often an item won against itself: put 0 on the diagonal")
        names = np.arange(matrix.shape[0]) if items is None else items
        if len(names) != matrix.shape[0]:
            raise ValueError(
                f"{len(names)} items name the {matrix.shape[0]} rows of a matrix of wins: give one for each"
            )
        winner, loser = matrix.tocoo().coords
        return cls.from_indices(np.zeros(matrix.nnz, int), winner, loser, users=[0], items=names, weight=matrix.data)

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
        tied: Any = None,
    ) -> "Comparisons":
        """Take arrays of rows into the ids ``users`` and ``items``."""
        user_ids, item_ids = Ids(users, "user"), Ids(items, "item")
        user, winner, loser = (np.array(index) for index in (user_index, winner_index, loser_index))
        weight, tied = (None if values is None else np.array(values) for values in (weight, tied))
        return cls(user_ids, item_ids, user, winner, loser, weight, tied)

    # -- what it holds ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.user_index)

    def __repr__(self) -> str:
        return f"Comparisons({len(self):,} of {len(self.user_ids):,} users over {len(self.item_ids):,} items)"

    @cached_property
    def decided(self) -> "Comparisons":
        """The comparisons that are no ties."""
        return self if self.tied is None else self._part(~self.tied)

    @cached_property
    def ties(self) -> "Comparisons | None":
        """The comparisons that are ties; None where there are none."""
        return None if self.tied is None else self._part(self.tied)

    def to_frame(self) -> pl.DataFrame:
        """Return a polars frame of user, winner, loser and, where there are any, weights and features.

        Where there are ties it has user, left, right and winner (null for a tie) in place of user, winner and loser.
        """
        winner, loser = self.items[self.winner_index], self.items[self.loser_index]
        columns: dict[str, Any] = {"user": self.users[self.user_index]}
        if self.tied is None:
            columns |= {"winner": winner, "loser": loser}
        else:
            columns |= {"left": winner, "right": loser, "winner": pl.Series(winner).set(pl.Series(self.tied), None)}
        if self.weight is not None:
            columns["weight"] = self.weight
        if self.features is not None:
            columns |= dict(zip(self.feature_names, self.features.T, strict=True))
        return pl.DataFrame(columns)

    def describe(self) -> PairsDescription:
        """Return counts and quantiles per user and item."""
        users, items, pairs = len(self.user_ids), len(self.item_ids), len(np.unique(self.pairings()))
        ties = 0 if self.tied is None else int(self.tied.sum())
        per_user = np.bincount(self.user_index, minlength=users)
        per_item = np.bincount(np.concatenate([self.winner_index, self.loser_index]), minlength=items)
        return PairsDescription(users, items, len(self), ties, pairs, quantiles(per_user), quantiles(per_item))

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
        if check.one_of(by, "by", ("row", "pairing")) == "pairing":
            pairings, group = np.unique(self.pairings(), return_inverse=True)
            mask = hold_out_share(len(pairings), test, seed)[group]
        elif self.weight is None:
            mask = hold_out_share(len(self), test, seed)
        else:
            share = check.share(test, "test", inside=True)
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
        return replace(
            part,
            user_ids=Ids(self.users[users], "user"),
            item_ids=Ids(self.items[items], "item"),
            user_index=user.astype(np.int32),
            winner_index=winner,
            loser_index=loser,
        )

    def _weighted(self, weight: Floats) -> "Comparisons":
        """Return the comparisons with other weights, without those of weight 0."""
        return replace(self, weight=weight)._part(weight > 0)

    def _part(self, mask: NDArray[np.bool_]) -> "Comparisons":
        """Return some of the comparisons, with all users and items."""
        names = "user_index", "winner_index", "loser_index", "weight", "tied", "features"
        arrays = {name: getattr(self, name) for name in names}
        return replace(self, **{name: array[mask] for name, array in arrays.items() if array is not None})


def folds(data: Comparisons, k: int, seed: int) -> list[tuple[Comparisons, Comparisons]]:
    """Hold out every comparison once, in one of ``k`` folds, at random."""
    if data.weight is None:
        fold = generator(seed).permutation(len(data)) % k
        return [(data._part(fold != number), data._part(fold == number)) for number in range(k)]
    held_out = deal(data.weight, np.full(k, 1 / k), seed)
    return [(data._weighted(data.weight - weight), data._weighted(weight)) for weight in held_out]


def as_comparisons(data: Any) -> Comparisons:
    """Return ``Comparisons`` made of comparisons, a list of pairs, a data frame or a path."""
    if isinstance(data, Comparisons):
        return data
    if isinstance(data, (str, Path)):
        return Comparisons.read(data)
    if is_frame(data):
        return Comparisons.from_frame(data)
    if _is_list_of_pairs(data):
        return Comparisons.from_pairs(data)
    raise TypeError(
        f"cannot take comparisons from {type(data).__name__}: pass Comparisons, a data frame with the "
        "columns user, winner and loser (or left, right and winner), a list of (winner, loser), or the path of a file"
    )


def as_feedback(data: Any) -> Interactions | Comparisons:
    """Return comparisons if the data has winners and losers, else interactions.

    A list of tuples, or lists or an array of text, holds (winner, loser) or rankings. A matrix of wins is refused, and
    an array of pairs of numbers: as interactions they would be misread.

    Examples
    --------
    >>> import polars as pl
    >>> as_feedback(pl.DataFrame({"user": ["ann"], "winner": ["tea"], "loser": ["ale"]}))
    Comparisons(1 of 1 users over 2 items)
    """
    if isinstance(data, Comparisons | Interactions):
        return data
    if isinstance(data, (str, Path)):
        if is_several(data):  # Parquet with interactions
            return Interactions.read(data)
        with Table(data) as table:
            return (Comparisons if holds_comparisons(table.columns or ()) else Interactions).read(table)
    if is_frame(data):
        data = open_frame(data).to_native() if hasattr(data, "collect") else data  # a lazy one is collected once
        if holds_comparisons(list(open_frame(data).columns)):
            return Comparisons.from_frame(data)
        if (named := _named_matrix(data)) is not None:
            _refuse_wins(named[0])
    elif _is_list_of_pairs(data):
        return Comparisons.from_pairs(data)
    elif sp.issparse(data) or isinstance(data, np.ndarray):
        _refuse_wins(data)
        _refuse_pairs(data)
    elif isinstance(data, list) and all(isinstance(row, list) and len(row) == len(data) for row in data):
        _refuse_wins(np.array(data))
    return as_interactions(data)


def _is_list_of_pairs(data: Any) -> bool:
    """Whether the value is a list of tuples, or lists or an array of text (a matrix holds none)."""
    if isinstance(data, np.ndarray):
        return data.ndim == 2 and len(data) > 0 and all(isinstance(value, str) for value in data.flat)
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(row, tuple) or (isinstance(row, list) and row and isinstance(row[0], str)) for row in data)


def _refuse_wins(matrix: Any) -> None:
    """Refuse a square matrix of whole numbers with an empty diagonal, most of whose pairs of items have met both ways.

    Or that says of every two items which won: then one of the two entries is 1. Half a win each may stand for a tie.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "iuf":
        return
    wins = _matrix_of_wins(matrix)
    if not wins.nnz or wins.diagonal().any() or (wins.data < 0).any() or (wins.data % 0.5 != 0).any():
        return
    n, met = wins.shape[0], wins != 0
    both, either = (met.multiply(met.T)).nnz, (met + met.T).nnz
    one_way = n > 2 and both == 0 and either == n * (n - 1)
    counts = 2 * both > either and wins.data.max() > 1 and (wins != wins.T).nnz > 0
    if one_way or counts:
        raise ValueError(
            f"this {n} x {n} matrix looks like wins of items (rows) over items (columns): call "
            "fit(Comparisons.from_wins(matrix)); if its rows are users, call fit(Interactions.from_csr(matrix))"
        )


def _refuse_pairs(matrix: Any) -> None:
    """Refuse an array of two columns of whole numbers that differ in every row: items, as far as anybody can see."""
    if sp.issparse(matrix) or matrix.ndim != 2 or matrix.shape[1] != 2 or matrix.dtype.kind not in "iu":
        return
    if len(matrix) and matrix.max() > 1 and (matrix[:, 0] != matrix[:, 1]).all():
        raise ValueError(
            f"this {len(matrix)} x 2 array looks like pairs (winner, loser): call "
            "fit(Comparisons.from_pairs(array.tolist())); if its rows are users, call fit(Interactions.from_csr(array))"
        )


def _matrix_of_wins(wins: Any) -> Any:
    """Return a sparse matrix of its own without zeros and NaN."""
    matrix = sp.csr_array(wins, copy=True) if sp.issparse(wins) else sp.coo_array(np.asarray(wins))
    if matrix.dtype.kind == "f":
        matrix.data[np.isnan(matrix.data)] = 0
    matrix.eliminate_zeros()
    return matrix.tocsr() if matrix.ndim == 2 else matrix


def _named_matrix(frame: Any) -> tuple[NDArray[Any], list[Any]] | None:
    """Return the numbers of a frame whose rows and columns have the same names, and these; None for another frame."""
    if hasattr(frame, "index") and len(frame) == len(frame.columns) and [*frame.index] == [*frame.columns]:
        names, values = list(frame.columns), frame.to_numpy()
    else:
        opened = open_frame(frame)
        first, *names = opened.columns or [""]
        if not names or len(opened) != len(names) or [str(name) for name in opened[first].to_list()] != names:
            return None
        values = opened[names].to_numpy()
    return (values, names) if values.dtype.kind in "iuf" else None
