"""The Netflix Prize: ``mv_*.txt`` (in their tar or out of it) or ``combined_data_*.txt``; the paper's sample of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import polars as pl

from sadrec import _check
from sadrec.data import _text
from sadrec.data._assemble import Assembler
from sadrec.data.datasets.source import Source
from sadrec.data.interactions import Interactions
from sadrec.data.splits import generator

USERS = 10_000
MAX_MOVIE_ID = 8_921
"""The paper speaks of 8,921 movies, about half of all: the ids are 1, 2, ... without gaps."""

_RATINGS, _INNER = ("mv_*.txt", "combined_data_*.txt"), "training_set.tar"
_LAYOUT = _text.Layout(",", None, 3)
_TYPES: dict[int, pl.DataType] = {0: pl.Int64(), 1: pl.Float32(), 2: pl.Date()}


def netflix(
    source: Source, *, n_users: int | None = USERS, max_movie_id: int | None = MAX_MOVIE_ID, seed: int = 0
) -> Interactions:
    """Read the original files; take ``n_users`` users at random and movies up to an id (None: all of them).

    Titles come from ``movie_titles.txt`` (or ``.csv``) where it is among the files.
    """
    for name, value in (("n_users", n_users), ("max_movie_id", max_movie_id)):
        if value is not None:
            _check.whole(value, f"{name} (None for all)", 1)
    assembler = Assembler()
    with _with_ratings(source) as ratings:
        chosen = None if n_users is None else _draw_users(ratings, n_users, max_movie_id, seed)
        for rows in _rows(ratings, max_movie_id):
            if chosen is not None:
                rows = rows.filter(pl.col("user").is_in(chosen.implode()))
            names = {"user": "user", "item": "movie", "rating": "rating", "timestamp": "day"}
            assembler.add({role: rows[name] for role, name in names.items()})
    if assembler.rows == 0:
        raise ValueError(f"{source.path} holds no ratings of movies up to {max_movie_id}")
    data = Interactions._assembled(assembler)
    titles = source.find("movie_titles.txt", "movie_titles.csv")
    return data.with_titles(source.titles(titles[0], ",", 2)) if titles else data


@contextmanager
def _with_ratings(source: Source) -> Iterator[Source]:
    """Give the files of ratings, which lie in a tar of their own in what Netflix published."""
    inner = source.find(_INNER)
    if not inner or source.find(*_RATINGS):
        yield source
        return
    with source.as_file(inner[0]) as path:
        yield Source(path)


def _draw_users(source: Source, n_users: int, max_movie_id: int | None, seed: int) -> pl.Series:
    seen = pl.Series("user", [], dtype=pl.Int64)
    for rows in _rows(source, max_movie_id):
        seen = pl.concat([seen, rows["user"].unique()]).unique()
    users = np.sort(seen.to_numpy())
    order = np.argsort(generator(seed).random(len(users)), kind="stable")
    return pl.Series("user", users[order[:n_users]])


def _rows(source: Source, max_movie_id: int | None) -> Iterator[pl.DataFrame]:
    """Yield frames of user, movie, rating and day, block by block."""
    movie = -1
    for block in map(_text.without_empty_lines, _blocks(source)):
        try:
            user, rating, day = _text.parse(block, _LAYOUT, _TYPES, wrong_is_null=True)
        except pl.exceptions.PolarsError:
            raise _not_netflix(source, movie) from None
        # The line of a movie, "12:", is no number; its rows follow.
        movies = [movie, *_movies(block)]
        starts = user.is_null() & rating.is_null() & day.is_null()
        begins = starts.arg_true().to_numpy().astype(np.int64)
        if len(begins) != len(movies) - 1:
            raise _not_netflix(source, movie)
        lengths = np.diff(begins, prepend=0, append=len(user))
        frame = pl.DataFrame({"user": user, "rating": rating, "day": day, "movie": np.repeat(movies, lengths)})
        frame = frame.filter(~starts)
        if sum(frame.null_count().row(0)) or (len(frame) and frame["movie"].min() == -1):
            raise _not_netflix(source, movie)
        movie = movies[-1]
        yield frame if max_movie_id is None else frame.filter(pl.col("movie") <= max_movie_id)


def _movies(block: bytes) -> Iterator[int]:
    """Yield the number before each colon: a few thousand in all, so a loop will do."""
    colon = block.find(b":")
    while colon >= 0:
        digits = block[block.rfind(b"\n", 0, colon) + 1 : colon]
        if digits.isdigit():
            yield int(digits)
        colon = block.find(b":", colon + 1)


def _not_netflix(source: Source, movie: int) -> ValueError:
    where = "at its start" if movie < 0 else f"after the line of movie {movie}"
    return ValueError(
        f"{source.path} is not in the format of the Netflix Prize {where}, in this file or a later one: "
        'lines "movie:" and, below, "user,rating,date" are expected'
    )


def _blocks(source: Source) -> Iterator[bytes]:
    """Yield blocks of whole lines, joining small files: each starts with the line of its movie."""
    names = source.find(_RATINGS[0]) or source.find(_RATINGS[1])
    if not names:
        raise FileNotFoundError(f"{source.path} holds no {', '.join((*_RATINGS, _INNER))}")
    held: list[bytes] = []
    size = 0
    for stream in source.streams(names):
        rest = b""
        while chunk := stream.read(_text.BLOCK):
            lines, line_break, rest = (rest + chunk).rpartition(b"\n")
            held.append(lines + line_break)
            size += len(lines) + len(line_break)
            if size >= _text.BLOCK:
                yield b"".join(held)
                held, size = [], 0
        if rest:
            held.append(rest + b"\n")
            size += len(rest) + 1
    if size:
        yield b"".join(held)
