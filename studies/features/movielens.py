"""What is known of the items and users of MovieLens beside their ratings: genres and years; age, sex and occupation."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from sadrec.data.datasets import DATASETS
from sadrec.data.datasets.archive import one_of_a_name, unpacked
from sadrec.data.datasets.download import fetch

# The order of the columns of u.item; the last fields of a line are 0 or 1, one for each.
GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
# Of users.dat, by number, in the words of its makers.
OCCUPATIONS = (
    "other", "academic/educator", "artist", "clerical/admin", "college/grad student", "customer service",
    "doctor/health care", "executive/managerial", "farmer", "homemaker", "K-12 student", "lawyer", "programmer",
    "retired", "sales/marketing", "scientist", "self-employed", "technician/engineer", "tradesman/craftsman",
    "unemployed", "writer",
)  # fmt: skip
_USER = {"user": pl.Int64, "age": pl.Int64, "sex": pl.String, "occupation": pl.String}


class FeatureTables(NamedTuple):
    """Features by id: frames of ``item, genres, year`` and ``user, age, sex, occupation``.

    ``users`` is None where the files have nothing about users. Genres are lists; a year or a value that is not known
    is null.
    """

    items: pl.DataFrame
    users: pl.DataFrame | None


class _Files(NamedTuple):
    items: str
    users: str
    separator: str


_FILES = {
    "movielens-1m": _Files("movies.dat", "users.dat", "::"),
    "movielens-100k": _Files("u.item", "u.user", "|"),
}


def load_features(name: str, path: str | Path | None = None) -> FeatureTables:
    """Load what is known of the items and users of a named data set, as ``fit(item_features=...)`` takes it.

    Parameters
    ----------
    name
        "movielens-1m" or "movielens-100k".
    path
        The original archive or folder, or a folder with ``items.parquet`` (item, title, genres with "|" between them)
        and perhaps ``users.parquet`` (user, age, sex, occupation). Without it MovieLens is fetched.

    Examples
    --------
    >>> load_features("netflix")
    Traceback (most recent call last):
        ...
    ValueError: there are no features of 'netflix': there are some of 'movielens-1m' and 'movielens-100k'
    """
    if name not in _FILES:
        raise ValueError(f"there are no features of {name!r}: there are some of {' and '.join(map(repr, _FILES))}")
    place = fetch(DATASETS[name].url, DATASETS[name].md5) if path is None else Path(path).expanduser()
    if (place / "items.parquet").is_file():
        items = pl.read_parquet(place / "items.parquet", columns=["item", "title", "genres"])
        users = place / "users.parquet"
        return FeatureTables(
            _items(items.with_columns(pl.col("genres").str.split("|"))),
            pl.read_parquet(users, columns=list(_USER)) if users.is_file() else None,
        )
    published = _FILES[name]
    with unpacked(place, (published.items,), (published.users,)) as (movies, people):
        rows = _lines(one_of_a_name(movies), published.separator, 3)
        items = pl.DataFrame(
            [(int(row[0]), row[1], _genres(row)) for row in rows],
            schema={"item": pl.Int64, "title": pl.String, "genres": pl.List(pl.String)},
            orient="row",
        )
        users_found = _users(one_of_a_name(people), published.separator) if people else None
    return FeatureTables(_items(items), users_found)


def _items(frame: pl.DataFrame) -> pl.DataFrame:
    """Take the year out of titles like "Heat (1995)", and "unknown" out of the genres."""
    return frame.select(
        "item",
        genres=pl.col("genres").list.set_difference(["unknown"]).list.sort(),
        year=pl.col("title").str.extract(r"\((\d{4})[^()]*\)\s*$").cast(pl.Int64),
    )


def _genres(row: Sequence[str]) -> list[str]:
    if len(row) == 3:
        return row[2].split("|")
    flags = row[-len(GENRES) :]
    return [genre for genre, flag in zip(GENRES, flags, strict=False) if flag == "1"]


def _users(file: Path, separator: str) -> pl.DataFrame:
    rows = []
    for row in _lines(file, separator, 5):
        age, sex = (row[1], row[2]) if separator == "|" else (row[2], row[1])
        work = row[3] if not row[3].isdecimal() else OCCUPATIONS[int(row[3])]
        rows.append((int(row[0]), int(age), sex, work))
    return pl.DataFrame(rows, schema=_USER, orient="row")


def _lines(file: Path, separator: str, fields: int) -> list[list[str]]:
    """Return the fields of lines in Latin-1 that begin with an id; of u.item all, of movies.dat three."""
    rows = []
    for number, line in enumerate(file.read_text(encoding="latin-1").splitlines(), 1):
        row = line.split(separator)
        if line and (len(row) < fields or not row[0].isdecimal()):
            raise ValueError(f"{file}: line {number} is not an id and {fields - 1} fields: {line[:60]!r}")
        if line:
            rows.append(row)
    return rows
