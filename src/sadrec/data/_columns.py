"""Find the columns of a table, and take them out of any kind of frame."""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl

Where = Callable[[int], str]
"""Names a row of a batch in an error: "row 3" of a frame (from 0), "line 5" of a text file (from 1, as editors do)."""

MOST_COLUMNS = 10
"""Columns that an error names."""

PIVOT = (
    "a pivot table, with a column for each item, is read as a matrix: Interactions.from_csr(matrix, users, items), "
    "with 0 where there is no rating"
)

AUTO = "auto"
"""Value of a column argument that means: look for the usual names."""

WHOLE_NUMBER = r"^[ \t]*(0|-?[1-9][0-9]*)$"
"""The form of ids that are read as numbers: 007 and 7 may be two ids, and stay text."""

ALIASES: dict[str, tuple[str, ...]] = {
    "user": ("user", "userid", "uid", "customer", "customerid", "reviewerid", "member", "memberid",
             "visitorid"),
    "item": ("item", "itemid", "iid", "movie", "movieid", "product", "productid", "recipe", "recipeid",
             "asin", "book", "bookid", "isbn", "song", "songid", "track", "trackid", "article", "articleid"),
    "rating": ("rating", "ratings", "stars", "score", "value", "overall"),
    "timestamp": ("timestamp", "time", "date", "datetime", "unixtime", "unixreviewtime"),
    "judge": ("user", "userid", "judge", "judgeid", "judgehash", "worker", "workerid", "annotator", "annotatorid",
              "rater", "raterid", "assessor", "performer"),
    "winner": ("winner", "winnerid", "label", "preferred", "chosen", "better", "outcome", "result"),
    "loser": ("loser", "loserid", "rejected", "worse"),
    "left": ("left", "leftid", "itema", "modela", "first", "a", "playera", "player1", "teama", "team1", "hometeam",
             "home", "white"),
    "right": ("right", "rightid", "itemb", "modelb", "second", "b", "playerb", "player2", "teamb", "team2",
              "awayteam", "away", "black"),
    "left_score": ("leftscore", "scorea", "score1", "homescore", "homegoals", "fthg", "team1score", "player1score",
                   "winnermodela"),
    "right_score": ("rightscore", "scoreb", "score2", "awayscore", "awaygoals", "ftag", "team2score", "player2score",
                    "winnermodelb"),
    "ranking": ("ranking", "ranked"),
    "weight": ("weight", "weights", "count", "counts"),
}  # fmt: skip

_OF_SCORES = ("winnertie", "ftr")
"""Columns that say the same as both scores."""


def plain_name(name: str) -> str:
    """Return letters and digits of a name, in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())


_ENDS_IN_ID = re.compile(r"([\s_.-]id|[a-z]I[dD])$")


def row_of_frame(row: int) -> str:
    """Name a row of a data frame."""
    return f"row {row}"


def after(where: Where, start: int) -> Where:
    """Name the rows of a part that starts at row ``start``."""
    return lambda row: where(start + row)


def first_true(mask: pl.Series) -> int:
    """Return the first row where a mask is true."""
    return int(mask.arg_true()[0])


def find_column(columns: Sequence[str], wanted: str | None, role: str, *, required: bool = True) -> str | None:
    """Find the column for a role: the one named, or with :data:`AUTO` the first that has a usual name.

    Returns ``None`` where the caller wants none, or looks for one that is not required and is not there.
    """
    if wanted is None:
        return None
    if not isinstance(wanted, str):
        raise TypeError(f"{role} must be the name of a column, not {wanted!r}")
    if wanted in columns:
        return wanted
    if wanted != AUTO:
        near = get_close_matches(plain_name(wanted), [plain_name(name) for name in columns], 1)
        meant = next((f"did you mean {name!r}? " for name in columns if [plain_name(name)] == near), "")
        raise ValueError(f"there is no column {wanted!r} for the {role}: {meant}{listed(columns)}")
    by_plain_name: dict[str, str] = {}
    for name in columns:
        by_plain_name.setdefault(plain_name(name), name)
    for alias in ALIASES[role]:
        if alias in by_plain_name:
            return by_plain_name[alias]
    if not required:
        return None
    raise ValueError(_not_found([role], columns))


def _not_found(roles: Sequence[str], columns: Sequence[str]) -> str:
    """Return what to do where no column has a usual name of a role."""
    names = ["user" if role == "judge" else role for role in roles]
    kind = "Interactions" if roles[0] in ("user", "item", "rating", "timestamp") else "Comparisons"
    them, given = "them" if len(names) > 1 else "it", ", ".join(f"{name}=COLUMN" for name in names)
    remedy = f"rename {them} to {' and '.join(map(repr, names))}, or name {them}: {kind}.from_frame(frame, {given})"
    if roles[0] == "judge":
        remedy += "; where one judge made all comparisons: user=None (--user none)"
    if len(columns) > MOST_COLUMNS:
        remedy += f"; {PIVOT}"
    return f"no column looks like the {' or the '.join(roles)}; {listed(columns)}; {remedy}"


def listed(columns: Sequence[str]) -> str:
    """Return a clause that names the columns of a table, the first ones of many.

    >>> listed([str(number) for number in range(1682)])
    "the columns are '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' and 1,672 others"
    """
    named = ", ".join(map(repr, columns[:MOST_COLUMNS])) or "none"
    others = len(columns) - MOST_COLUMNS
    return f"the columns are {named}" + (f" and {others:,} others" if others > 0 else "")


def find_interactions(
    columns: Sequence[str],
    user: str | None = AUTO,
    item: str | None = AUTO,
    rating: str | None = AUTO,
    timestamp: str | None = AUTO,
    weight: str | None = None,
) -> dict[str, str]:
    """Find the columns of interactions.

    Where no column has a usual name of items, the only other column of ids is theirs: ``anime_id``.
    """
    chosen = {
        "user": find_column(columns, user, "user", required=False),
        "rating": find_column(columns, rating, "rating", required=False),
        "timestamp": find_column(columns, timestamp, "timestamp", required=False),
        "weight": find_column(columns, weight, "weight"),
    }
    items = find_column(columns, item, "item", required=False)
    if items is None and item == AUTO:
        others = [name for name in columns if _ENDS_IN_ID.search(name) and name not in chosen.values()]
        items = others[0] if chosen["user"] and len(others) == 1 else None
    if missing := [role for role, name in (("user", chosen["user"]), ("item", items)) if name is None]:
        raise ValueError(_not_found(missing, columns))
    return _one_role_each({**chosen, "item": items})


def find_comparisons(columns: list[str], wanted: dict[str, str | None], features: Sequence[str] = ()) -> dict[str, str]:
    """Find the columns for each role: winner and loser, or left, right and outcome, or left, right and their scores.

    Without a column of judges, one judge made all comparisons; a single column left over is an error that says so.
    """
    chosen = {
        "user": find_column(columns, wanted["user"], "judge", required=False),
        "weight": find_column(columns, wanted["weight"], "weight", required=False),
        **{f"feature {name}": find_column(columns, name, "feature") for name in features},
    }
    roles = "winner", "loser", "left", "right", "left_score", "right_score"
    winner, loser, left, right, *scores = (find_column(columns, wanted[role], role, required=False) for role in roles)
    ranking = find_column(columns, AUTO, "ranking", required=False)
    named_loser = wanted["loser"] not in (AUTO, None)
    if winner and loser and (named_loser or AUTO in (wanted["left"], wanted["right"])):
        chosen |= {"winner": winner, "loser": loser}
    elif left and right and winner:
        chosen |= {"left": left, "right": right, "outcome": winner}
    elif left and right and None not in scores:
        chosen |= {"left": left, "right": right, "left_score": scores[0], "right_score": scores[1]}
    elif ranking:
        chosen |= {"ranking": ranking}
    else:
        given = "left_score=COLUMN, right_score=COLUMN" if left and right else "winner=COLUMN, loser=COLUMN"
        raise ValueError(
            "comparisons need columns winner and loser; or left, right and winner; or left, right, left_score and "
            f"right_score; {listed(columns)}; rename them, or name them: Comparisons.from_frame(frame, {given})"
        )
    others = set(columns) - set(chosen.values()) - {find_column(columns, AUTO, "timestamp", required=False)}
    others = {name for name in others if plain_name(name) not in _OF_SCORES}
    if chosen["user"] is None and len(others) == 1:
        find_column(columns, wanted["user"], "judge")  # which says what to do
    return _one_role_each(chosen)


def holds_comparisons(names: Sequence[str]) -> bool:
    """Whether a table holds comparisons, by the names of its columns."""
    if any(name.strip().lower() == "winner" for name in names):
        return True
    roles = ("winner", "loser", "left", "right", "left_score", "right_score")
    winner, loser, left, right, *scores = (find_column(names, AUTO, role, required=False) for role in roles)
    sides = left and right
    ranked = find_column(names, AUTO, "ranking", required=False) and not find_column(
        names, AUTO, "item", required=False
    )
    return bool((winner and (loser or sides)) or (sides and None not in scores) or ranked)  # labels alone are ratings


def _one_role_each(chosen: dict[str, str | None]) -> dict[str, str]:
    """Return the columns that were chosen, refusing one for two roles."""
    roles: dict[str, str] = {}
    for role, name in chosen.items():
        if name is not None and (other := roles.setdefault(name, role)) != role:
            raise ValueError(f"the column {name!r} is given for the {other} and for the {role}: give each its own")
    return {role: name for role, name in chosen.items() if name is not None}


def _wrapped(value: Any) -> Any:
    """Wrap a frame of pandas, polars, Arrow and others; return anything else as it is."""
    import narwhals.stable.v1 as nw  # here and below, not above: it takes a tenth of a second

    try:
        return nw.from_native(value, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = list(value.columns)
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"two columns of the data frame are named {twice!r}: rename one") from None


def is_frame(value: Any) -> bool:
    """Whether ``value`` is a data frame of a kind that can be read."""
    import narwhals.stable.v1 as nw

    return isinstance(_wrapped(value), (nw.DataFrame, nw.LazyFrame))


def open_frame(frame: Any) -> Any:
    """Wrap a frame of pandas, polars, Arrow and others; collect a lazy one."""
    import narwhals.stable.v1 as nw

    wrapped = _wrapped(frame)
    if not isinstance(wrapped, (nw.DataFrame, nw.LazyFrame)):
        raise TypeError(
            f"a data frame (pandas, polars, Arrow) is needed, not {type(frame).__name__}; "
            "for a matrix use from_csr, for a file read"
        )
    opened = wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped
    opened = _with_index(opened)
    if not_text := [name for name in opened.columns if not isinstance(name, str)]:
        raise TypeError(f"names of columns must be text, not {not_text[0]!r}: rename them; or {PIVOT}")
    return opened


def _with_index(frame: Any) -> Any:
    """Return a frame whose index, where pandas has named it as a role is usually named, is among the columns."""
    import narwhals.stable.v1 as nw

    names = list(getattr(getattr(frame.to_native(), "index", None), "names", []))
    usual = {alias for aliases in ALIASES.values() for alias in aliases}
    if not any(isinstance(name, str) and name not in frame.columns and plain_name(name) in usual for name in names):
        return frame
    return nw.from_native(frame.to_native().reset_index(), eager_only=True)


def take_columns(frame: Any, names: dict[str, str]) -> dict[str, pl.Series]:
    """Take the column for each role out of an opened frame."""
    return {role: _take_column(frame, name) for role, name in names.items()}


def _take_column(frame: Any, name: str) -> pl.Series:
    import narwhals.stable.v1 as nw

    series = frame[name]
    native = series.to_native()
    if isinstance(native, pl.Series):
        return native
    if frame.implementation.is_pyarrow():
        return pl.Series(name, native)
    if isinstance(series.dtype, (nw.Categorical, nw.Enum)):
        series = series.cast(nw.String)
    values = series.to_numpy()
    if values.dtype.kind == "O":
        try:
            return pl.Series(name, [_plain_value(value) for value in values.tolist()])
        except TypeError:
            kinds = ", ".join(sorted({type(value).__name__ for value in values.tolist()}))
            raise TypeError(f"the column {name!r} mixes {kinds}: convert it to one type, e.g. text") from None
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]")
    return pl.Series(name, np.ascontiguousarray(values))


def _plain_value(value: Any) -> Any:
    """Return a value as polars takes it: None where it is missing, a list for an array."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    missing = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
    return None if missing else value
