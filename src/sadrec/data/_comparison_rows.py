"""From batches of rows to the arrays of comparisons: which columns say what, ties, and what must be refused."""

import logging
import warnings
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec import _check
from sadrec._types import Floats
from sadrec.data import DataWarning
from sadrec.data._columns import AUTO, Where, find_column, row_of_frame
from sadrec.data._vocabulary import Vocabulary
from sadrec.data.ids import Ids

log = logging.getLogger(__name__)

Ties = Literal["drop", "split"]
Rows = NDArray[np.int32]
_TEXT = (pl.String, pl.Categorical, pl.Enum)


def find_comparisons(columns: list[str], wanted: dict[str, str | None]) -> dict[str, str]:
    """Find the columns for each role: winner and loser, or left, right and winner."""
    chosen = {
        "user": find_column(columns, wanted["user"], "judge"),
        "winner": find_column(columns, wanted["winner"], "winner"),
        "weight": find_column(columns, wanted["weight"], "weight", required=False),
    }
    loser, *sides = (find_column(columns, wanted[role], role, required=False) for role in ("loser", "left", "right"))
    if loser is not None and (wanted["loser"] != AUTO or AUTO in (wanted["left"], wanted["right"])):
        chosen["loser"] = loser
    elif None in sides:
        raise ValueError(
            f"comparisons need a column of losers, or columns left and right; the columns are "
            f"{columns}; name the right ones: loser=..., or left=... and right=..."
        )
    else:
        chosen["left"], chosen["right"] = sides
    return {role: name for role, name in chosen.items() if name is not None}


class ComparisonRows:
    """Takes rows in batches, gives the arrays of the comparisons at the end."""

    def __init__(self, ties: Ties = "drop") -> None:
        self._ties = _check.one_of(ties, "ties", ("drop", "split"))
        self._users, self._items = Vocabulary("user"), Vocabulary("item")
        self._chunks: list[tuple[Rows, Rows, Rows, NDArray[np.bool_], Floats | None]] = []
        self._with_itself, self._first_with_itself = 0, ""
        self.rows = 0

    def add(self, columns: dict[str, pl.Series], where: Where = row_of_frame) -> None:
        """Take the next rows."""
        count = len(columns["winner"])
        judge = columns.get("user", pl.Series("user", np.zeros(count, dtype=np.int64)))
        user = self._users.encode(judge, where)
        if "loser" in columns:
            winner, loser = (self._items.encode(columns[role], where) for role in ("winner", "loser"))
            tied = np.zeros(count, dtype=np.bool_)
        else:
            winner, loser, tied = self._from_sides(columns, where)
        weight = check_weight(columns["weight"].to_numpy(), count, where) if "weight" in columns else None
        same = winner == loser
        if same.any():
            self._first_with_itself = self._first_with_itself or where(int(same.argmax()))
            self._with_itself += int(same.sum())
        self._chunks.append((user, winner, loser, tied, weight))
        self.rows += count

    def _from_sides(self, columns: dict[str, pl.Series], where: Where) -> tuple[Rows, Rows, NDArray[np.bool_]]:
        """Return winner, loser and whether it was a tie (then left comes first), from left, right and winner."""
        left, right = (self._items.encode(columns[role], where) for role in ("left", "right"))
        stated = columns["winner"]
        if stated.dtype.is_float():
            stated = stated.fill_nan(None)
        tied = stated.is_null().to_numpy()
        won_left, won_right = _equal(stated, columns["left"]), _equal(stated, columns["right"])
        odd = ~(tied | won_left | won_right)
        if odd.any():
            row = int(odd.argmax())
            raise ValueError(
                f"{where(row)}: the winner {stated[row]!r} is neither left ({columns['left'][row]!r}) nor right "
                f"({columns['right'][row]!r}); it must be the id of one of the two, or null for a tie"
            )
        return np.where(won_right, right, left), np.where(won_right, left, right), tied

    def finish(self) -> tuple[Ids, Ids, Rows, Rows, Rows, Floats | None]:
        """Return users, items, and for each comparison the rows of user, winner and loser, and perhaps the weight."""
        if self._with_itself:
            warnings.warn(
                f"{self._with_itself:,} rows compare an item with itself (the first is {self._first_with_itself}): "
                "left out",
                DataWarning,
                stacklevel=4,
            )
        user, winner, loser, tied = (np.concatenate([chunk[at] for chunk in self._chunks]) for at in range(4))
        weights = [chunk[4] for chunk in self._chunks if chunk[4] is not None]
        weight = np.concatenate(weights) if weights else None
        users, user_place = self._users.finish()
        items, item_place = self._items.finish()
        user, winner, loser = user_place[user], item_place[winner], item_place[loser]
        keep = winner != loser
        if tied.any():
            done = "dropped" if self._ties == "drop" else "split"
            log.info("%d of %d comparisons are ties: %s", tied.sum(), self.rows, done)
            if self._ties == "drop":
                keep &= ~tied
            else:
                again = np.flatnonzero(tied & keep)
                weight = np.ones(self.rows, dtype=np.float32) if weight is None else weight
                weight[tied] /= 2
                user, weight = np.append(user, user[again]), np.append(weight, weight[again])
                winner, loser = np.append(winner, loser[again]), np.append(loser, winner[again])
                keep = np.append(keep, np.ones(len(again), dtype=np.bool_))
        if not keep.any():
            raise ValueError(f"no comparison is left of {self.rows}: {int(tied.sum())} are ties (ties={self._ties!r})")
        if not keep.all():
            user, winner, loser = user[keep], winner[keep], loser[keep]
            weight = None if weight is None else weight[keep]
        return Ids(users, "user"), Ids(items, "item"), user, winner, loser, weight


def _equal(one: pl.Series, other: pl.Series) -> NDArray[np.bool_]:
    if one.dtype == pl.Null:
        return np.zeros(len(one), dtype=np.bool_)
    if (one.dtype in _TEXT) != (other.dtype in _TEXT):
        raise TypeError(f"the winner is of type {one.dtype}, the items of type {other.dtype}: use the same ids")
    if one.dtype in _TEXT:
        one, other = one.cast(pl.String), other.cast(pl.String)
    equal: pl.Series = one == other
    return equal.fill_null(False).to_numpy()


def check_weight(weight: Any, count: int, where: Where = row_of_frame) -> Floats | None:
    """Bring weights to float32, refusing what cannot be one."""
    if weight is None:
        return None
    array = np.array(weight, dtype=np.float32)
    if array.shape != (count,):
        raise ValueError(f"{count} comparisons need as many weights, not an array of shape {array.shape}")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{where(row)} has the weight {array[row]}: weights must be finite and not negative")
    return array
