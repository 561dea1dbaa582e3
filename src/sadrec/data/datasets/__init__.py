"""Named data sets, read from the files their makers publish."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from sadrec.data._text import first_line
from sadrec.data.datasets.archive import one_of_a_name, read_titles, unpacked
from sadrec.data.datasets.download import DownloadError, cache_folder, fetch
from sadrec.data.describe import Description
from sadrec.data.interactions import Interactions

__all__ = ["PUBLISHED", "DownloadError", "cache_folder", "load"]

log = logging.getLogger(__name__)

PUBLISHED = {
    "movielens-1m": Description(6_040, 3_706, 1_000_209, 0.9553, (20, 23, 96, 556, 2_314)),
    "movielens-100k": Description(943, 1_682, 100_000, 1 - 100_000 / (943 * 1_682)),
    "food-com": Description(17_482, 1_358, 145_431, 0.9939, (1, 1, 4, 30, 878)),
}
"""The paper's table of properties; for MovieLens 100K the figures of its makers."""


def _movielens(files: list[list[Path]], separator: str) -> Interactions:
    """Read the ratings (user, movie, rating, timestamp) and the titles of MovieLens."""
    ratings, titles = files
    data = Interactions.read(one_of_a_name(ratings), header=False)
    return data.with_titles(read_titles(titles[0], separator, 1)) if titles else data


def _food_com(files: list[list[Path]], top_users: int | None = 20_000, min_per_item: int = 50) -> Interactions:
    """Keep the most active users of Food.com, then the recipes that enough of them reviewed.

    A rating of 0 is a review without stars; it stays (``drop_zeros`` leaves it out).
    """
    reviews, recipes = files
    data = Interactions.read(one_of_a_name(reviews), user="user_id", item="recipe_id", timestamp="date")
    data = data.filter(top_users=top_users, min_per_item=min_per_item)
    if not recipes:
        return data
    try:
        types = {"id": pl.Int64, "name": pl.String}
        frame = pl.read_csv(recipes[0], columns=["id", "name"], schema_overrides=types)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{recipes[0]} has no ids and names: {first_line(error)}") from None
    return data.with_titles(dict(frame.select("id", pl.col("name").fill_null("")).iter_rows()))


class _Dataset(NamedTuple):
    """The files of a data set, how they are read and where they come from."""

    needed: tuple[str, ...]
    titles: tuple[str, ...]
    read: Callable[..., Interactions]
    selection: tuple[str, ...] = ()
    url: str = ""
    md5: str = ""
    by_hand: str = ""


_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
DATASETS = {
    "movielens-1m": _Dataset(
        ("ratings.dat",), ("movies.dat",), partial(_movielens, separator="::"),
        url=f"{_GROUPLENS}/ml-1m.zip", md5="c4d9eecfca2ab87c1945afe126590906",
    ),
    "movielens-100k": _Dataset(
        ("u.data",), ("u.item",), partial(_movielens, separator="|"),
        url=f"{_GROUPLENS}/ml-100k.zip", md5="0e33842e24a9c977be4e0107933c0723",
    ),
    "food-com": _Dataset(
        ("RAW_interactions.csv",), ("RAW_recipes.csv",), _food_com, ("top_users", "min_per_item"),
        by_hand="RAW_interactions.csv (shuyangli94/food-com-recipes-and-user-interactions at Kaggle)",
    ),
}  # fmt: skip


def load(name: str, path: str | Path | None = None, **selection: Any) -> Interactions:
    """Load a named data set with the selection the paper made from it.

    Parameters
    ----------
    name
        "movielens-1m", "movielens-100k" or "food-com".
    path
        The original file, archive or folder, or a folder with ``ratings.parquet``. Without it the cache folder
        (``SADREC_CACHE``, or the user's cache) is used, and MovieLens fetched into it; Food.com cannot be fetched
        without an account.
    **selection
        "food-com": ``top_users=20_000``, then recipes with ``min_per_item=50``. ``None`` for a limit takes all.

    Returns
    -------
    Interactions
        With item titles where they are published. ``describe(sadrec.data.datasets.PUBLISHED[name])`` shows the
        published figures next to its own; counts that differ are logged.

    Examples
    --------
    >>> load("movielens-2m")
    Traceback (most recent call last):
        ...
    ValueError: unknown data set 'movielens-2m': choose 'movielens-1m', 'movielens-100k' or 'food-com'
    """
    if name not in DATASETS:
        *most, last = map(repr, DATASETS)
        raise ValueError(f"unknown data set {name!r}: choose {', '.join(most)} or {last}")
    dataset = DATASETS[name]
    if path is not None:
        place = Path(path).expanduser()
    elif dataset.url:
        place = fetch(dataset.url, dataset.md5)
    elif not (place := cache_folder() / name).exists():
        raise FileNotFoundError(
            f"{name} cannot be fetched without an account: get {dataset.by_hand}, and put it into {place}, "
            "or pass its path"
        )
    if foreign := sorted(set(selection) - set(dataset.selection)):
        choices = " or ".join(map(repr, dataset.selection)) or "nothing"
        raise TypeError(f"{name} is not selected by {foreign[0]!r}: {choices} can be given")
    if is_parquet_folder(place):
        data = parquet_folder(place)
        if name == "food-com":
            data = data.filter(**{"top_users": 20_000, "min_per_item": 50, **selection})
    else:
        with unpacked(place, dataset.needed, dataset.titles) as files:
            data = dataset.read(files, **selection)
    if not selection:
        here, published = data.describe(), PUBLISHED[name]
        counts = {what: (getattr(here, what), getattr(published, what)) for what in ("users", "items", "ratings")}
        shown = ", ".join(f"{ours:,} {what} (published {theirs:,})" for what, (ours, theirs) in counts.items())
        same = all(ours == theirs for ours, theirs in counts.values())
        log.log(logging.INFO if same else logging.WARNING, "%s: %s", name, shown)
    return data


def is_parquet_folder(path: Path) -> bool:
    """Whether a path is a folder with ``ratings.parquet`` (user, item, rating[, timestamp][, split])."""
    return (path / "ratings.parquet").is_file()


def parquet_folder(path: Path) -> Interactions:
    """Read all ratings, whatever split they belong to, and the titles in ``items.parquet`` if it exists."""
    data = Interactions.read(path / "ratings.parquet")
    if (path / "items.parquet").is_file():
        items = pl.read_parquet(path / "items.parquet", columns=["item", "title"])
        data = data.with_titles(dict(items.select("item", pl.col("title").fill_null("")).iter_rows()))
    return data
