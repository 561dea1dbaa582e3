"""What people call the items: titles and pictures from a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sadrec._types import Positions
from sadrec._words import one_line
from sadrec.data.ids import Ids

_TITLES = ("title", "name", "label")
_PICTURES = ("picture", "image", "poster", "picture_url", "image_url")


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The items with their titles and pictures, in the order of the model; None where there is none."""

    ids: list[Any]
    titles: Sequence[str | None]
    pictures: Sequence[str | None]
    entries: list[dict[str, Any]] = field(repr=False)  # as answers hold them
    folded: list[str] = field(repr=False)  # what is searched

    @property
    def has_titles(self) -> bool:
        """Whether any item has a title."""
        return any(self.titles)

    @property
    def has_pictures(self) -> bool:
        """Whether any item has a picture."""
        return any(self.pictures)

    def search(self, query: str, order: Positions, N: int) -> tuple[int, list[int]]:
        """Return how many items have a text in their title or id, and the first N in an order; beginnings first."""
        wanted = query.strip().casefold()
        if not wanted:
            return len(self.ids), order[:N].tolist()
        found = [place for place in order.tolist() if wanted in self.folded[place]]
        found.sort(key=lambda place: not self.folded[place].startswith(wanted))
        return len(found), found[:N]


def catalogue(item_ids: Ids, path: str | Path | None = None) -> Catalogue:
    """Name the items by a table (csv, tsv or parquet) with a column of ids and columns of titles or pictures."""
    from sadrec._files import plain

    ids = plain(item_ids.array)
    titles: list[str | None] = [None] * len(ids)
    pictures: list[str | None] = [None] * len(ids)
    if path is not None:
        _read(Path(path), item_ids, titles, pictures)
    entries = [
        {"item": item, "title": title, "picture": picture}
        for item, title, picture in zip(ids, titles, pictures, strict=True)
    ]
    folded = [
        f"{title} {item}".casefold() if title else str(item).casefold() for item, title in zip(ids, titles, strict=True)
    ]
    return Catalogue(ids, titles, pictures, entries, folded)


def _read(path: Path, item_ids: Ids, titles: list[str | None], pictures: list[str | None]) -> None:
    import polars as pl

    if not path.is_file():
        raise FileNotFoundError(f"there is no table of items {str(path)!r}")
    try:
        _fill(_table(path), item_ids, titles, pictures)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        why = one_line(" ".join(str(error).split()))
        raise ValueError(f"{path}: the table of items cannot be read ({why[:300]})") from None


def _table(path: Path) -> Any:
    import polars as pl

    from sadrec.data._text import chunks

    if path.suffix in (".parquet", ".pq"):
        return pl.read_parquet(path)
    with path.open("rb") as file:
        content = b"".join(chunks(file, None))  # unpacked, within limits
    return pl.read_csv(content, separator="\t" if ".tsv" in path.suffixes else ",", infer_schema=False)


def _fill(table: Any, item_ids: Ids, titles: list[str | None], pictures: list[str | None]) -> None:
    """Put the titles and pictures of a table where they belong."""
    import polars as pl

    from sadrec.data._columns import AUTO, find_column

    names = table.columns
    column = find_column(names, AUTO, "item", required=False) or next((name for name in names if name == "id"), None)
    chosen = {
        role: next((name for name in names if name.strip().lower() in usual), None)
        for role, usual in (("title", _TITLES), ("picture", _PICTURES))
    }
    if column is None or not any(chosen.values()):
        raise ValueError(
            "a table of items needs a column of ids (item) and one of titles (title) or pictures (picture); "
            f"it has {', '.join(names)}"
        )
    keys = _as_ids(table[column], item_ids)
    known = item_ids.known(keys) if len(keys) else np.zeros(0, np.bool_)
    places = item_ids.positions(keys[known]).tolist()
    for role, target in (("title", titles), ("picture", pictures)):
        name = chosen[role]
        if name is None:
            continue
        texts = table[name].cast(pl.String).to_list()
        for row, place in zip(np.flatnonzero(known).tolist(), places, strict=True):
            target[place] = texts[row]


def _as_ids(column: Any, item_ids: Ids) -> Any:
    """Return a column as ids of the kind that the model has; what cannot be one is no item of it."""
    import polars as pl

    kind = item_ids.array.dtype.kind
    if kind in "iuf":
        number = {"i": pl.Int64, "u": pl.UInt64, "f": pl.Float64}[kind]
        cast = column.cast(pl.String).str.strip_chars().cast(number, strict=False)
        values = cast.to_numpy() if cast.null_count() == 0 else None
        if values is None:
            raise ValueError(f"the column {column.name!r} of the table of items is not made of numbers, as the ids are")
        return values
    if kind == "M":
        return np.array(column.cast(pl.String).to_list(), dtype="datetime64")
    return np.array(column.cast(pl.String).fill_null("").to_list(), dtype=np.str_)
