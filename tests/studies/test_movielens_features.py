"""Genres, years and users of MovieLens in the formats of its makers, in small."""

from pathlib import Path

import polars as pl
import pytest

from studies.features.movielens import load_features
from tests.data.test_datasets import MOVIES_DAT, PACKS, Pack, folder_of

USERS_DAT = "1::F::1::10::48067\n2::M::56::16::70072\n"
U_USER = "186|39|F|executive|00000\n196|49|M|writer|55105\n"


@pytest.mark.parametrize("pack", PACKS)
def test_genres_years_and_users_of_movielens_1m(tmp_path: Path, pack: Pack) -> None:
    movies = MOVIES_DAT.replace("::Animation", "::Animation|Children's")
    items, users = load_features(
        "movielens-1m", pack(tmp_path, {"movies.dat": movies.encode("latin-1"), "users.dat": USERS_DAT.encode()})
    )
    assert items.columns == ["item", "genres", "year"]
    assert [(item, sorted(genres), year) for item, genres, year in items.rows()] == [
        (661, ["Animation", "Children's"], 1996), (1193, ["Drama"], None), (9, ["Drama"], 1999),
    ]  # fmt: skip
    assert users is not None
    assert users.rows() == [(1, 1, "F", "K-12 student"), (2, 56, "M", "self-employed")]


def test_genres_years_and_users_of_movielens_100k(tmp_path: Path) -> None:
    unknown = "|".join(["1", *["0"] * 18])
    drama = "|".join("1" if place in (8, 14) else "0" for place in range(19))
    lines = f"1|unknown||||{unknown}\n302|Se\xf1or (1997)|01-Jan-1997||http://x|{drama}\n"
    folder = folder_of(tmp_path, {"u.item": lines.encode("latin-1"), "u.user": U_USER.encode()})
    items, users = load_features("movielens-100k", folder)
    assert [(item, sorted(genres), year) for item, genres, year in items.rows()] == [
        (1, [], None), (302, ["Drama", "Romance"], 1997),
    ]  # fmt: skip
    assert users is not None
    assert users.rows() == [(186, 39, "F", "executive"), (196, 49, "M", "writer")]


def test_features_in_a_parquet_folder_may_lack_those_of_users(tmp_path: Path) -> None:
    frame = pl.DataFrame({"item": [7, 8], "title": ["A (1950)", "B"], "genres": ["War|Drama", "unknown"]})
    frame.write_parquet(tmp_path / "items.parquet")
    items, users = load_features("movielens-1m", tmp_path)
    assert users is None
    assert [(item, sorted(genres), year) for item, genres, year in items.rows()] == [
        (7, ["Drama", "War"], 1950), (8, [], None),
    ]  # fmt: skip
    pl.DataFrame({"user": [1], "age": [30], "sex": ["F"], "occupation": ["lawyer"]}).write_parquet(
        tmp_path / "users.parquet"
    )
    assert load_features("movielens-1m", tmp_path).users is not None


def test_a_damaged_table_of_features_is_refused_by_line(tmp_path: Path) -> None:
    folder_of(tmp_path, {"movies.dat": b"1::A (1950)::War\nhello\n"})
    with pytest.raises(ValueError, match=r"movies.dat: line 2 is not an id and 2 fields: 'hello'"):
        load_features("movielens-1m", tmp_path)
