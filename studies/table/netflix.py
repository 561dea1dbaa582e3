"""The Netflix Prize: ``mv_*.txt`` (in their tar or out of it) or ``combined_data_*.txt``; the paper's sample of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from sadrec.data import Interactions, _text
from sadrec.data._assemble import Assembler
from sadrec.data.datasets import is_parquet_folder, parquet_folder
from sadrec.data.datasets.archive import read_titles, unpacked
from sadrec.data.splits import generator
from studies._tools import Bar, whole

RATINGS = ("mv_*.txt", "combined_data_*.txt")
NEEDED, TITLES = (*RATINGS, "training_set.tar"), ("movie_titles.txt", "movie_titles.csv")
WHERE = (
    "the Netflix Prize data (nf_prize_dataset.tar.gz at the Internet Archive, or netflix-inc/netflix-prize-data at "
    "Kaggle), as it is or unpacked: mv_*.txt, or combined_data_*.txt"
)
_LAYOUT = _text.TextFormat(",", None, 3)
_TYPES: dict[int, pl.DataType] = {0: pl.Int64(), 1: pl.Float32(), 2: pl.Date()}


def load_netflix(
    path: Path | None, *, n_users: int | None = 10_000, max_movie_id: int | None = 8_921, seed: int = 0
) -> Interactions:
    """Take users at random and movies up to an id (None: all of them) from the original files, in an archive or not.

    The paper speaks of 8,921 movies, about half of all: the ids are 1, 2, ... without gaps. A folder with
    ``ratings.parquet`` holds such a sample already.
    """
    for name, value in (("n_users", n_users), ("max_movie_id", max_movie_id)):
        if value is not None:
            whole(value, f"{name} (None for all)", 1)
    if path is None:
        raise FileNotFoundError(f"Netflix cannot be fetched without an account: get {WHERE}, and pass its path")
    if is_parquet_folder(path):
        return parquet_folder(path)
    with unpacked(path, NEEDED, TITLES) as (*ratings, inner, titles, other_titles):
        if any(ratings):
            data = _sample(ratings[0] or ratings[1], n_users, max_movie_id, seed)
        else:  # as Netflix published them
            with unpacked(inner[0], RATINGS) as ratings:
                data = _sample(ratings[0] or ratings[1], n_users, max_movie_id, seed)
        titles = titles or other_titles
        return replace(data, item_titles=read_titles(titles[0], ",", 2) if titles else None)


def _sample(files: list[Path], n_users: int | None, max_movie_id: int | None, seed: int) -> Interactions:
    assembler = Assembler()
    chosen = None if n_users is None else _draw_users(files, n_users, max_movie_id, seed)
    for rows in _rows(files, max_movie_id, "reading the ratings"):
        if chosen is not None:
            rows = rows.filter(pl.col("user").is_in(chosen.implode()))
        assembler.add({role: rows[role] for role in ("user", "item", "rating", "timestamp")})
    if assembler.rows == 0:
        raise ValueError(f"{files[0].parent} holds no ratings of movies up to {max_movie_id}")
    return Interactions(*assembler.finish())


def _draw_users(files: list[Path], n_users: int, max_movie_id: int | None, seed: int) -> pl.Series:
    seen = pl.Series("user", [], dtype=pl.Int64)
    for rows in _rows(files, max_movie_id, "looking for users"):
        seen = pl.concat([seen, rows["user"].unique()]).unique()
    users = np.sort(seen.to_numpy())
    order = np.argsort(generator(seed).random(len(users)), kind="stable")
    return pl.Series("user", users[order[:n_users]])


def _rows(files: list[Path], max_movie_id: int | None, title: str) -> Iterator[pl.DataFrame]:
    """Yield frames of user, item, rating and timestamp, block by block."""
    movie = -1
    for block in map(_text.without_empty_lines, _blocks(files, title)):
        try:
            user, rating, day = _text.parse(block, _LAYOUT, _TYPES, wrong_is_null=True)
        except pl.exceptions.PolarsError:
            raise _not_netflix(files, movie) from None
        # The line of a movie, "12:", is no number; its rows follow.
        numbers = (before.rpartition(b"\n")[2] for before in block.split(b":")[:-1])
        movies = [movie, *(int(number) for number in numbers if number.isdigit())]
        starts = user.is_null() & rating.is_null() & day.is_null()
        begins = starts.arg_true().to_numpy().astype(np.int64)
        if len(begins) != len(movies) - 1:
            raise _not_netflix(files, movie)
        lengths = np.diff(begins, prepend=0, append=len(user))
        frame = pl.DataFrame({"user": user, "rating": rating, "timestamp": day, "item": np.repeat(movies, lengths)})
        frame = frame.filter(~starts)
        if sum(frame.null_count().row(0)) or (len(frame) and frame["item"].min() == -1):
            raise _not_netflix(files, movie)
        movie = movies[-1]
        yield frame if max_movie_id is None else frame.filter(pl.col("item") <= max_movie_id)


def _not_netflix(files: list[Path], movie: int) -> ValueError:
    where = "at its start" if movie < 0 else f"after the line of movie {movie}"
    return ValueError(
        f"{files[0]} is not in the format of the Netflix Prize {where}, in this file or a later one: "
        'lines "movie:" and, below, "user,rating,date" are expected'
    )


def _blocks(files: list[Path], title: str) -> Iterator[bytes]:
    """Yield blocks of whole lines, joining small files: each starts with the line of its movie."""
    held: list[bytes] = []
    size = 0
    total = sum(file.stat().st_size for file in files)
    with Bar(desc=title, total=total, unit="B", unit_scale=True, delay=2, leave=False, disable=None) as bar:
        for file in files:
            with file.open("rb") as stream:
                while block := stream.read(_text.BLOCK) + stream.readline():
                    held.append(block if block.endswith(b"\n") else block + b"\n")
                    size += len(block)
                    bar.update(len(block))
                    if size >= _text.BLOCK:
                        yield b"".join(held)
                        held, size = [], 0
        if held:
            yield b"".join(held)
