"""Reading comparisons off a table: which columns say what, ties, and what must be refused."""

import warnings
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data._columns import AUTO, find_column
from sadrec.data._vocabulary import Vocabulary
from sadrec.data._warning import DataWarning


def choose_columns(
    columns: list[str],
    user: str | None,
    winner: str,
    loser: str | None,
    left: str | None,
    right: str | None,
    weight: str | None,
) -> dict[str, str | None]:
    """Find the columns for each role: winner and loser, or left, right and winner."""
    names = {
        "user": find_column(columns, user, "judge"),
        "winner": find_column(columns, winner, "winner"),
        "weight": find_column(columns, weight, "weight", required=False),
    }
    stated = find_column(columns, loser, "loser", required=False)
    sides = [find_column(columns, side, role, required=False) for side, role in ((left, "left"), (right, "right"))]
    if stated is not None and (loser != AUTO or AUTO in (left, right)):
        return {**names, "loser": stated}
    if None in sides:
        raise ValueError(
            f"comparisons need a column of losers, or columns left and right; the columns found are "
            f"{columns}; name the right ones: loser=..., or left=... and right=..."
        )
    return {**names, "left": sides[0], "right": sides[1]}


def from_sides(
    taken: dict[str, pl.Series], items: Vocabulary
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Winner, loser and whether it was a tie (then left comes first), from left, right and winner."""
    left, right = items.encode(taken["left"], 0), items.encode(taken["right"], 0)
    stated = taken["winner"]
    if stated.dtype.is_float():
        stated = stated.fill_nan(None)
    tied = stated.is_null().to_numpy()
    won_left = _equal(stated, taken["left"])
    won_right = _equal(stated, taken["right"])
    odd = ~(tied | won_left | won_right)
    if odd.any():
        row = int(odd.argmax())
        values = (stated[row], taken["left"][row], taken["right"][row])
        raise ValueError(
            "row {}: the winner {!r} is neither left ({!r}) nor right ({!r}); it must be the id of one of "
            "the two, or null for a tie".format(row, *values)
        )
    winner = np.where(won_right, right, left).astype(np.int32)
    loser = np.where(won_right, left, right).astype(np.int32)
    return winner, loser, tied


def _equal(one: pl.Series, other: pl.Series) -> NDArray[np.bool_]:
    text = (pl.String, pl.Categorical, pl.Enum)
    if (one.dtype in text) != (other.dtype in text):
        if one.dtype == pl.Null:
            return np.zeros(len(one), dtype=np.bool_)
        raise TypeError(f"the winner is of type {one.dtype}, the items of type {other.dtype}: use the same ids")
    if one.dtype in text:
        one, other = one.cast(pl.String), other.cast(pl.String)
    equal: pl.Series = one == other
    return equal.fill_null(False).to_numpy()


def without_self(winner: NDArray[np.int32], loser: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which comparisons are of two different items; says how many are not."""
    keep: NDArray[np.bool_] = winner != loser
    if not keep.all():
        count, first = len(keep) - int(keep.sum()), int((~keep).argmax())
        warnings.warn(
            f"{count:,} rows compare an item with itself (the first is row {first}): left out",
            DataWarning,
            stacklevel=4,
        )
    return keep


def check_weight(weight: Any, count: int) -> NDArray[np.float32] | None:
    """Bring weights to float32, refusing what cannot be one."""
    if weight is None:
        return None
    array = np.array(weight, dtype=np.float32)
    if array.shape != (count,):
        raise ValueError(f"{count} comparisons need as many weights, not an array of shape {array.shape}")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"row {row} has the weight {array[row]}: weights must be finite and not negative")
    return array
