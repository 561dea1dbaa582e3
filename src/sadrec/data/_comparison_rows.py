"""Assemble batches of rows into the arrays of comparisons, whichever way a table names the winner."""

import logging
import warnings
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec._core import check
from sadrec._core.types import Floats
from sadrec.data import DataWarning
from sadrec.data._assemble import check_weight
from sadrec.data._columns import Where, plain_name, row_of_frame
from sadrec.data._vocabulary import Vocabulary
from sadrec.data.ids import Ids

log = logging.getLogger(__name__)

TieRule = Literal["keep", "drop", "split"]
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_LEFT = {"a", "left", "modela", "player1", "playera", "team1", "teama", "first", "home", "win"}
_RIGHT = {"b", "right", "modelb", "player2", "playerb", "team2", "teamb", "second", "away", "loss"}
_TIED = {"", "tie", "tied", "draw", "equal", "same", "both", "neither", "none", "bothbad", "tiebothbad", "bothgood"}
_SCORES = {"1": 1, "1.0": 1, "0.5": 0, "0": -1, "0.0": -1, "1-0": 1, "0-1": -1, "1/2-1/2": 0, "½-½": 0}
"""Of the left side."""


class ComparisonRows:
    """Collects rows in batches and builds the arrays of the comparisons at the end."""

    def __init__(self, ties: TieRule = "keep") -> None:
        self._ties = check.one_of(ties, "ties", get_args(TieRule))
        self._users, self._items = Vocabulary("user"), Vocabulary("item")
        self._chunks: list[dict[str, Any]] = []
        self._with_itself, self._first_with_itself = 0, ""
        self.rows = 0

    def add(self, columns: dict[str, pl.Series], where: Where = row_of_frame) -> None:
        """Take the next rows."""
        if "ranking" in columns:
            columns, where = _pairs_of_rankings(columns, where)
        count = len(next(iter(columns.values())))
        judge = columns.get("user", pl.Series("user", np.zeros(count, dtype=np.int64)))
        chunk: dict[str, Any] = {"user": self._users.encode(judge, where)}
        sides = ("winner", "loser") if "loser" in columns else ("left", "right")
        first, second = (self._items.encode(columns[role], where) for role in sides)
        result = np.ones(count, np.int8) if "loser" in columns else _results(columns, where)
        chunk |= {"winner": np.where(result < 0, second, first), "loser": np.where(result < 0, first, second)}
        chunk["tied"] = result == 0
        if "weight" in columns:
            chunk["weight"] = check_weight(columns["weight"].to_numpy(), count, where)
        names = [role for role in columns if role.startswith("feature ")]
        if names:
            values = [_as_numbers(columns[role], role, where) for role in names]
            chunk["features"] = np.stack(values, axis=1) * np.where(result < 0, np.float32(-1), np.float32(1))[:, None]
        same = first == second
        if same.any():
            self._first_with_itself = self._first_with_itself or where(int(same.argmax()))
            self._with_itself += int(same.sum())
        self._chunks.append(chunk)
        self.rows += count

    def finish(self) -> dict[str, Any]:
        """Return the fields of the comparisons: ids, rows of users, winners and losers, ties, weights, features."""
        if self._with_itself:
            warnings.warn(
                f"{self._with_itself:,} rows compare an item with itself (the first is {self._first_with_itself}): "
                "left out",
                DataWarning,
                stacklevel=4,
            )
        rows = {name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in self._chunks[0]}
        users, user_place = self._users.finish()
        items, item_place = self._items.finish()
        tied = rows.pop("tied")
        rows["user"] = user_place[rows["user"]]
        rows |= {side: item_place[rows[side]] for side in ("winner", "loser")}
        keep = rows["winner"] != rows["loser"]
        if self._ties == "drop":
            keep &= ~tied
        elif self._ties == "split" and tied.any():
            again = np.flatnonzero(tied & keep)
            rows.setdefault("weight", np.ones(self.rows, np.float32))[tied] /= 2
            turned = {name: array[again] for name, array in rows.items()}
            turned |= {"winner": turned["loser"], "loser": turned["winner"]}
            if "features" in turned:
                turned["features"] = -turned["features"]
            rows = {name: np.concatenate((array, turned[name])) for name, array in rows.items()}
            keep = np.append(keep, np.ones(len(again), dtype=np.bool_))
        if self._ties != "keep" and tied.any():
            log.info("%d of %d comparisons are ties: ties=%r", tied.sum(), self.rows, self._ties)
        if not keep.any():
            raise ValueError(
                f"no comparison is left: of {self.rows} rows {int(tied.sum())} are ties (ties={self._ties!r}), and "
                f"{self._with_itself} compare an item with itself"
            )
        if not keep.all():
            rows = {name: array[keep] for name, array in rows.items()}
        left = tied[keep] if self._ties == "keep" else tied[:0]
        return {
            "user_ids": Ids(users, "user"),
            "item_ids": Ids(items, "item"),
            **{f"{side}_index": rows[side] for side in ("user", "winner", "loser")},
            "weight": rows.get("weight"),
            "tied": left if left.any() else None,
            "features": rows.get("features"),
        }


def _pairs_of_rankings(columns: dict[str, pl.Series], where: Where) -> tuple[dict[str, pl.Series], Where]:
    """Return columns of winner and loser in place of rankings "a > b > c": every item beats every later one."""
    rankings = columns["ranking"].to_list()
    rows: list[int] = []
    pairs: list[tuple[str, str]] = []
    for row, ranking in enumerate(rankings):
        items = [item.strip() for item in str(ranking or "").split(">")]
        if len(items) < 2 or not all(items):
            raise ValueError(f"{where(row)}: a ranking is written 'best > second > last', not {ranking!r}")
        pairs += combinations(items, 2)
        rows += [row] * (len(pairs) - len(rows))
    sides = dict(zip(("winner", "loser"), zip(*pairs, strict=True), strict=True))
    others = {role: column[rows] for role, column in columns.items() if role != "ranking"}
    return others | {side: pl.Series(side, items) for side, items in sides.items()}, lambda row: where(rows[row])


def _results(columns: dict[str, pl.Series], where: Where) -> NDArray[np.int8]:
    """Return 1 where the left side won, -1 where the right side did, 0 for a tie."""
    if "left_score" in columns:
        scores = [_as_numbers(columns[role], role, where) for role in ("left_score", "right_score")]
        return np.asarray(np.sign(scores[0] - scores[1]), np.int8)
    stated, sides = columns["outcome"], (columns["left"], columns["right"])
    if stated.dtype.is_float():
        stated = stated.fill_nan(None)
    text, (left, right) = _as_text(stated), map(_as_text, sides)
    by_word = {
        **dict.fromkeys(_TIED, 0), **dict.fromkeys(_LEFT, 1), **dict.fromkeys(_RIGHT, -1),
        plain_name(sides[0].name): 1, plain_name(sides[1].name): -1,
    }  # fmt: skip
    if plain_name(sides[0].name).startswith("home"):
        by_word |= {"h": 1, "d": 0, "a": -1}  # home, draw, away
    values = text.unique().drop_nulls().to_list()
    of_left = _SCORES if sides[0].dtype in _TEXT else {}  # else a number is an item
    meanings = {value: of_left.get(value, by_word.get(plain_name(value))) for value in values}
    meaning = text.replace_strict(list(meanings), list(meanings.values()), default=None, return_dtype=pl.Float64)
    won_left, won_right = ((text == side).fill_null(False).to_numpy() for side in (left, right))
    named = np.where(won_left, 1.0, -1.0)
    result = np.where(won_left | won_right, named, meaning.set(stated.is_null(), 0.0).to_numpy())
    wrong = np.isnan(result)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{where(row)}: the winner {stated[row]!r} is neither left ({sides[0][row]!r}) nor right "
            f"({sides[1][row]!r}); it must be the id of one of the two, the name of a side ('model_a', 'left'), a "
            "score of the left side (1, 0.5, 0; where ids are text), 'tie', or null for a tie"
        )
    return np.asarray(result, np.int8)


def _as_text(column: pl.Series) -> pl.Series:
    """Return ids, or outcomes, as text: whole numbers without a point."""
    if column.dtype.is_float() and (column.drop_nulls() % 1 == 0).all():
        column = column.cast(pl.Int64)
    return column.cast(pl.String).str.strip_chars()


def _as_numbers(column: pl.Series, role: str, where: Where) -> Floats:
    """Convert a column of scores or features to float32, or raise on a value that is not a number."""
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise TypeError(f"the {role} is of type {column.dtype}, not numbers: give a number for each value")
    values = np.array(column.cast(pl.Float32).fill_null(np.nan).to_numpy())
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).argmax())
        raise ValueError(f"{where(row)} has the {role} {column[row]!r}: drop such rows, or fill in a number")
    return values
