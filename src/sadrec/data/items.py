"""Titles of items, and addresses of pictures, by the items' ids."""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sadrec.data._columns import AUTO, find_column, first_true, open_frame, take_columns
from sadrec.data.ids import MAX_ID_LENGTH
from sadrec.data.tables import whole_table

_USUAL = {
    "title": ("title", "name", "label"),
    "picture": ("picture", "image", "poster", "picture_url", "image_url"),
}


class Items(Mapping[Any, str]):
    """The titles of items, by id: a mapping that takes ids of any kind as a model returns them.

    Make one with :meth:`read` (a file), :meth:`from_frame` (a data frame), or of a mapping from ids to titles. An id
    and its text are the same here, 7 and "7"; "007" is another.

    Examples
    --------
    >>> items = Items({1193: "One Flew Over the Cuckoo's Nest", 661: "James and the Giant Peach"})
    >>> items[661], items.get("661"), 7 in items
    ('James and the Giant Peach', 'James and the Giant Peach', False)
    >>> items.titles([661, 7])
    array(['James and the Giant Peach', '7'], dtype='<U25')
    """

    def __init__(self, titles: Mapping[Any, str] | None = None, pictures: Mapping[Any, str] | None = None) -> None:
        for given in (titles, pictures):
            if not isinstance(given, Mapping | None):
                raise TypeError(
                    f"a mapping from ids to texts is needed, not {type(given).__name__}: for a data frame use "
                    "Items.from_frame, for a file Items.read"
                )
        self._titles, self._pictures = (
            {_key(item): str(text) for item, text in (given or {}).items()} for given in (titles, pictures)
        )

    @classmethod
    def read(cls, path: str | Path, item: str = AUTO, title: str | None = AUTO, picture: str | None = AUTO) -> "Items":
        """Read a table (csv, tsv or parquet; text may be packed) with a column of ids and one of titles or of pictures.

        Columns are found by their names: item (or id, movieId, ...), title (or name, label), picture (or image, ...);
        or named. Ids are also in the one column that is left when those of titles and pictures are taken.
        """
        with whole_table(path, "items") as (_, written):
            return cls.from_frame(written, item, title, picture)

    @classmethod
    def from_frame(cls, frame: Any, item: str = AUTO, title: str | None = AUTO, picture: str | None = AUTO) -> "Items":
        """Take titles and pictures from a data frame, by the names of its columns or by those given."""
        opened = open_frame(frame)
        names = list(opened.columns)
        column = find_column(names, item, "item", required=False)
        column = column or next((name for name in names if name.strip().lower() == "id"), None)
        chosen = {"title": _column(names, title, "title"), "picture": _column(names, picture, "picture")}
        roles = {role: name for role, name in chosen.items() if name is not None}
        left = [name for name in names if name not in roles.values()]
        if column is None and len(left) == 1:
            column = left[0]
        if column is None or not roles:
            raise ValueError(
                "a table of items needs a column of ids (item) and one of titles (title) or pictures (picture); "
                f"it has {', '.join(names)}"
            )
        columns = take_columns(opened, {"item": column, **roles})
        given = columns.pop("item")
        if given.null_count():
            raise ValueError(f"the column {column!r} has no id in row {first_true(given.is_null())}")
        ids = [_key(value) for value in given.to_list()]
        if long := next((one for one in ids if len(one) > MAX_ID_LENGTH), None):
            raise ValueError(f"the id {long[:20]}... has {len(long)} characters, more than {MAX_ID_LENGTH}")
        twice = pl.DataFrame({"item": ids, **columns}).unique().get_column("item")
        if not twice.is_unique().all():
            raise ValueError(f"the id {twice.filter(twice.is_duplicated())[0]!r} has two different rows: keep one")
        fields = {
            f"{role}s": {one: text for one, text in zip(ids, texts.cast(pl.String).to_list(), strict=True) if text}
            for role, texts in columns.items()
        }
        return cls(**fields)

    def __getitem__(self, item: Any) -> str:
        return self._titles[_key(item)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._titles)

    def __len__(self) -> int:
        return len(self._titles)

    def __repr__(self) -> str:
        pictures = f", {len(self._pictures):,} pictures" if self._pictures else ""
        return f"Items({len(self):,} titles{pictures})"

    def titles(self, ids: Iterable[Any]) -> Any:
        """Return the titles of some items, an array of text; an item without one is called by its id."""
        return np.array([self._titles.get(key, key) for key in map(_key, ids)], dtype=np.str_)

    def picture(self, item: Any) -> str | None:
        """Return the address of an item's picture; None where there is none."""
        return self._pictures.get(_key(item))


def _column(names: list[str], wanted: str | None, role: str) -> str | None:
    if wanted != AUTO:
        return find_column(names, wanted, role)
    return next((name for name in names if name.strip().lower() in _USUAL[role]), None)


def _key(item: Any) -> str:
    """Return the text of an id: the same for 7, 7.0 and "7", and for a day however it is written."""
    if isinstance(item, datetime.date):
        item = np.datetime64(item)
    if isinstance(item, np.datetime64):
        day, _, time = str(item).partition("T")
        return day if not time.strip("0:.") else f"{day}T{time}"
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, float) and item.is_integer():
        item = int(item)
    return str(item).strip()
