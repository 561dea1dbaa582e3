"""MovieLens, read from the files its makers publish."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sadrec.data.datasets.archive import one_of_a_name, read_titles, unpacked
from sadrec.data.datasets.download import DownloadError, cache_folder, fetch
from sadrec.data.interactions import Interactions
from sadrec.data.items import Items

__all__ = ["DownloadError", "cache_folder", "load"]


class _Dataset(NamedTuple):
    """The files of a data set, and where they come from."""

    ratings: str
    titles: str
    separator: str
    url: str
    md5: str


_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
DATASETS = {
    "movielens-1m": _Dataset(
        "ratings.dat", "movies.dat", "::", f"{_GROUPLENS}/ml-1m.zip", "c4d9eecfca2ab87c1945afe126590906"
    ),
    "movielens-100k": _Dataset(
        "u.data", "u.item", "|", f"{_GROUPLENS}/ml-100k.zip", "0e33842e24a9c977be4e0107933c0723"
    ),
}


def load(name: str, path: str | Path | None = None) -> Interactions:
    """Load a named data set, with item titles where they are published.

    Parameters
    ----------
    name
        "movielens-1m" or "movielens-100k".
    path
        The original file, archive or folder, or a folder with ``ratings.parquet``. Without it the cache folder
        (``SADREC_CACHE``, or the user's cache) is used, and the data set fetched into it.

    Examples
    --------
    >>> load("movielens-2m")
    Traceback (most recent call last):
        ...
    ValueError: unknown data set 'movielens-2m': choose 'movielens-1m' or 'movielens-100k'
    """
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}: choose {' or '.join(map(repr, DATASETS))}")
    dataset = DATASETS[name]
    place = fetch(dataset.url, dataset.md5) if path is None else Path(path).expanduser()
    if is_parquet_folder(place):
        return parquet_folder(place)
    with unpacked(place, (dataset.ratings,), (dataset.titles,)) as (ratings, titles):
        data = Interactions.read(one_of_a_name(ratings), header=False)
        return replace(data, item_titles=read_titles(titles[0], dataset.separator, 1) if titles else None)


def is_parquet_folder(path: Path) -> bool:
    """Whether a path is a folder with ``ratings.parquet`` (user, item, rating[, timestamp][, split])."""
    return (path / "ratings.parquet").is_file()


def parquet_folder(path: Path) -> Interactions:
    """Read all ratings, whatever split they belong to, and the titles in ``items.parquet`` if it exists."""
    data = Interactions.read(path / "ratings.parquet")
    titles = path / "items.parquet"
    return replace(data, item_titles=Items.read(titles) if titles.is_file() else None)
