"""Named data sets, read from the files their makers publish."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sadrec.data.datasets.download import DownloadError, cache_folder, fetch
from sadrec.data.datasets.food_com import food_com
from sadrec.data.datasets.movielens import URLS, movielens_1m, movielens_100k
from sadrec.data.datasets.netflix import netflix
from sadrec.data.datasets.parquet_folder import is_parquet_folder, load_split, parquet_folder
from sadrec.data.datasets.source import Source
from sadrec.data.describe import Description
from sadrec.data.interactions import Interactions

__all__ = ["PUBLISHED", "DownloadError", "cache_folder", "load", "load_split"]

log = logging.getLogger(__name__)

PUBLISHED = {
    "movielens-1m": Description(6_040, 3_706, 1_000_209, 0.9553, (20, 23, 96, 556, 2_314)),
    "movielens-100k": Description(943, 1_682, 100_000, 1 - 100_000 / (943 * 1_682)),
    "netflix": Description(10_000, 8_693, 1_044_318, 0.9880, (1, 6, 46, 400, 8_237)),
    "food-com": Description(17_482, 1_358, 145_431, 0.9939, (1, 1, 4, 30, 878)),
}
"""The paper's table of properties; for MovieLens 100K the figures of its makers."""

_READERS: dict[str, Callable[..., Interactions]] = {
    "movielens-1m": movielens_1m,
    "movielens-100k": movielens_100k,
    "netflix": netflix,
    "food-com": food_com,
}
_SELECTIONS = {"netflix": ("n_users", "max_movie_id", "seed"), "food-com": ("top_users", "min_per_item")}
_BY_HAND = {
    "netflix": (
        "the Netflix Prize data (nf_prize_dataset.tar.gz at the Internet Archive, or netflix-inc/netflix-prize-data at "
        "Kaggle), as it is or unpacked: mv_*.txt, or combined_data_*.txt"
    ),
    "food-com": "RAW_interactions.csv (shuyangli94/food-com-recipes-and-user-interactions at Kaggle)",
}


def load(name: str, path: str | Path | None = None, **selection: Any) -> Interactions:
    """Load a named data set with the selection the paper made from it.

    Parameters
    ----------
    name
        "movielens-1m", "movielens-100k", "netflix" or "food-com".
    path
        The original file, archive or folder, or a folder with ``ratings.parquet``. Without it the cache folder
        (``SADREC_CACHE``, or the user's cache) is used, and MovieLens fetched into it; the other two cannot be fetched
        without an account.
    **selection
        "netflix": ``n_users=10_000`` drawn at random with ``seed=0``, ``max_movie_id=8_921``. "food-com":
        ``top_users=20_000``, then recipes with ``min_per_item=50``. ``None`` for a limit takes all.

    Returns
    -------
    Interactions
        With item titles where they are published. ``describe(sadrec.data.datasets.PUBLISHED[name])`` shows the
        published figures beside its own; counts that differ are logged.

    Examples
    --------
    >>> load("movielens-2m")
    Traceback (most recent call last):
        ...
    ValueError: unknown data set 'movielens-2m': choose 'movielens-1m', 'movielens-100k', 'netflix' or 'food-com'
    """
    if name not in _READERS:
        *most, last = map(repr, _READERS)
        raise ValueError(f"unknown data set {name!r}: choose {', '.join(most)} or {last}")
    place = _find(name) if path is None else Path(path).expanduser()
    known = _SELECTIONS.get(name, ())
    if odd := sorted(set(selection) - set(known)):
        raise TypeError(
            f"{name} is not selected by {odd[0]!r}: {' or '.join(map(repr, known)) or 'nothing'} can be given"
        )
    if place.is_dir() and is_parquet_folder(place):
        if selection and name == "netflix":
            raise ValueError(
                f"{place} holds a sample already ({', '.join(selection)} cannot be chosen): name the original"
            )
        data = parquet_folder(place)
        if name == "food-com":
            data = data.filter(**{"top_users": 20_000, "min_per_item": 50, **selection})
    else:
        data = _READERS[name](Source(place), **selection)
    if not selection:
        _report(name, data.describe(), sampled=name == "netflix")
    return data


def _find(name: str) -> Path:
    if name in URLS:
        return fetch(*URLS[name])
    place = cache_folder() / name
    if not place.exists():
        raise FileNotFoundError(
            f"{name} cannot be fetched without an account: get {_BY_HAND[name]}, and put it into {place}, "
            "or pass its path"
        )
    return place


def _report(name: str, here: Description, *, sampled: bool = False) -> None:
    """Log the counts beside the published ones; a difference is a warning unless the data are a random sample."""
    published = PUBLISHED[name]
    counts = [
        f"{getattr(here, what):,} {what} (published {getattr(published, what):,})"
        for what in ("users", "items", "ratings")
    ]
    same = all(getattr(here, what) == getattr(published, what) for what in ("users", "items", "ratings"))
    log.log(logging.INFO if same or sampled else logging.WARNING, "%s: %s", name, ", ".join(counts))
