"""MovieLens 1M and 100K, as GroupLens publishes them."""

from sadrec.data.datasets.source import Source
from sadrec.data.interactions import Interactions

URLS = {
    "movielens-1m": ("https://files.grouplens.org/datasets/movielens/ml-1m.zip", "c4d9eecfca2ab87c1945afe126590906"),
    "movielens-100k": (
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "0e33842e24a9c977be4e0107933c0723",
    ),
}


def movielens_1m(source: Source) -> Interactions:
    """Read ``ratings.dat`` (``user::movie::rating::timestamp``) and the titles in ``movies.dat``."""
    return _read(source, "ratings.dat", "movies.dat", "::")


def movielens_100k(source: Source) -> Interactions:
    """Read ``u.data`` (user, movie, rating, timestamp between tabs) and the titles in ``u.item``."""
    return _read(source, "u.data", "u.item", "|")


def _read(source: Source, ratings: str, titles: str, separator: str) -> Interactions:
    with source.as_file(source.one(ratings)) as file:
        data = Interactions.read(file, header=False)
    names = source.find(titles)
    return data.with_titles(source.titles(names[0], separator, 1)) if names else data
