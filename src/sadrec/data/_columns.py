"""Finding the columns of a table, and taking them out of any kind of frame."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

AUTO = "auto"
"""Value of a column argument that means: look for the usual names."""

ALIASES: dict[str, tuple[str, ...]] = {
    "user": ("user", "userid", "uid", "customer", "customerid", "reviewerid", "member", "memberid",
             "visitorid"),
    "item": ("item", "itemid", "iid", "movie", "movieid", "product", "productid", "recipe", "recipeid",
             "asin", "book", "bookid", "isbn", "song", "songid", "track", "trackid", "article", "articleid"),
    "rating": ("rating", "ratings", "stars", "score", "value", "overall"),
    "timestamp": ("timestamp", "time", "date", "datetime", "unixtime", "unixreviewtime"),
    "judge": ("user", "userid", "judge", "judgeid", "worker", "workerid", "annotator", "annotatorid", "rater",
              "raterid", "assessor", "performer"),
    "winner": ("winner", "winnerid", "label", "preferred", "chosen"),
    "loser": ("loser", "loserid", "rejected"),
    "left": ("left", "leftid", "itema", "modela", "first", "a"),
    "right": ("right", "rightid", "itemb", "modelb", "second", "b"),
    "weight": ("weight", "weights"),
}  # fmt: skip


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


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
    found = ", ".join(map(repr, columns)) or "none"
    if wanted != AUTO:
        raise ValueError(f"there is no column {wanted!r} for the {role}; the columns found are {found}")
    by_plain_name: dict[str, str] = {}
    for name in columns:
        by_plain_name.setdefault(_plain(name), name)
    for alias in ALIASES[role]:
        if alias in by_plain_name:
            return by_plain_name[alias]
    if not required:
        return None
    remedy = "user=..., or user=None where one judge said it all" if role == "judge" else f"{role}=..."
    raise ValueError(
        f"no column looks like the {role}; the columns found are {found}; name the right one, {remedy}, or rename it"
    )


def is_frame(value: Any) -> bool:
    """Whether ``value`` is a data frame of a kind that can be read."""
    if isinstance(value, (pl.DataFrame, pl.LazyFrame)):
        return True
    import narwhals.stable.v1 as nw

    try:
        nw.from_native(value)
    except TypeError:
        return False
    return True


def open_frame(frame: Any) -> Any:
    """Wrap a frame of pandas, polars, Arrow and others; collect a lazy one."""
    import narwhals.stable.v1 as nw  # here and below, not above: it takes a tenth of a second

    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise TypeError(
            f"a data frame (pandas, polars, Arrow) is needed, not {type(frame).__name__}; "
            "for a matrix use from_csr, for a file read"
        ) from None
    return wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped


def take_column(frame: Any, name: str) -> pl.Series:
    """Take one column out of an opened frame as a polars series."""
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
            return pl.Series(name, [None if _is_missing(value) else value for value in values.tolist()])
        except TypeError:
            kinds = ", ".join(sorted({type(value).__name__ for value in values.tolist()}))
            raise TypeError(f"the column {name!r} mixes {kinds}: convert it to one type, e.g. text") from None
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]")
    return pl.Series(name, np.ascontiguousarray(values))


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
