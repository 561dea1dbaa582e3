"""MovieLens 1M and 100K, as GroupLens publishes them."""

import polars as pl

from sadrec.data import _text
from sadrec.data.datasets.source import Source
from sadrec.data.interactions import Interactions

URLS = {
    "movielens-1m": (
        "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        "c4d9eecfca2ab87c1945afe126590906",
    ),
    "movielens-100k": (
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "0e33842e24a9c977be4e0107933c0723",
    ),
}


def movielens_1m(source: Source) -> Interactions:
    """Read ``ratings.dat`` (``user::movie::rating::timestamp``) and the titles in ``movies.dat``."""
    titles = source.find("movies.dat")
    return _read(source, "ratings.dat", "::", titles, "::")


def movielens_100k(source: Source) -> Interactions:
    """Read ``u.data`` (user, movie, rating, timestamp between tabs) and the titles in ``u.item``."""
    titles = source.find("u.item")
    return _read(source, "u.data", "\t", titles, "|")


def _read(source: Source, ratings: str, separator: str, titles: list[str], title_separator: str) -> Interactions:
    name = source.one(ratings)
    layout = _text.Layout(separator, None, 4)
    types: dict[int, pl.DataType] = {0: pl.Int64(), 1: pl.Int64(), 2: pl.Float32(), 3: pl.Int64()}
    try:
        columns = _text.parse(source.read(name), layout, types)
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"{name} in {source.path} is not rows of user, movie, rating and timestamp: {_text.first_line(error)}"
        ) from None
    frame = pl.DataFrame(dict(zip(("user", "item", "rating", "timestamp"), columns, strict=True)))
    data = Interactions.from_frame(frame)
    return data.with_titles(source.titles(titles[0], title_separator, 1)) if titles else data
