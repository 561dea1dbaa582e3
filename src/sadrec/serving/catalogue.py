"""What people call the items: titles and pictures from a table."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sadrec._types import Positions
from sadrec.data.ids import Ids


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

    def joined(self, more: "Catalogue") -> "Catalogue":
        """Return these items followed by others."""
        both = [[*getattr(self, part), *getattr(more, part)] for part in self.__dataclass_fields__]
        return Catalogue(*both)

    def search(self, query: str, order: Positions, N: int) -> tuple[int, list[int]]:
        """Return how many items have a text in their title or id, and the first N in an order; beginnings first."""
        wanted = folded(query.strip())
        if not wanted:
            return len(self.ids), order[:N].tolist()
        found = [place for place in order.tolist() if wanted in self.folded[place]]
        found.sort(key=lambda place: not self.folded[place].startswith(wanted))
        return len(found), found[:N]


def catalogue(item_ids: Ids, path: str | Path | None = None) -> Catalogue:
    """Name the items by a table (csv, tsv or parquet) with a column of ids and columns of titles or pictures."""
    from sadrec._files import plain
    from sadrec.data.items import Items

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
    """Return a text as it is searched: without case and without accents."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter)).casefold()
