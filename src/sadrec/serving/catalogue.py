"""Titles and pictures of the items, from a table."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sadrec._core.types import Positions
from sadrec.data import Ids


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

    def joined(self, others: "Catalogue") -> "Catalogue":
        """Return these items followed by others."""
        both = [[*getattr(self, part), *getattr(others, part)] for part in self.__dataclass_fields__]
        return Catalogue(*both)

    def search(self, query: str, order: Positions, N: int) -> tuple[int, list[int]]:
        """Return the number of items with a text in title or id, and the first N; matches at the start come first."""
        wanted = folded(query.strip())
        if not wanted:
            return len(self.ids), order[:N].tolist()
        hits = [place for place in order.tolist() if wanted in self.folded[place]]
        hits.sort(key=lambda place: not self.folded[place].startswith(wanted))
        return len(hits), hits[:N]


def catalogue(item_ids: Ids, path: str | Path | None = None) -> Catalogue:
    """Read titles and pictures from a table (csv, tsv or parquet) with a column of ids."""
    from sadrec._core.files import plain
    from sadrec.data import Items

    ids = plain(item_ids.array)
    named = Items() if path is None else Items.read(path)
    titles = [named.get(item) for item in item_ids.array]
    pictures = [named.picture(item) for item in item_ids.array]
    entries = [
        {"item": item, "title": title, "picture": picture}
        for item, title, picture in zip(ids, titles, pictures, strict=True)
    ]
    texts = [folded(f"{title} {item}" if title else str(item)) for item, title in zip(ids, titles, strict=True)]
    return Catalogue(ids, titles, pictures, entries, texts)


def folded(text: str) -> str:
    """Return a text normalised for search: without case and accents."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter)).casefold()
