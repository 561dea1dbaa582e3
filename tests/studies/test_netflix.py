"""The Netflix Prize in the formats of its makers, in small, and the paper's sample of it."""

from pathlib import Path

import polars as pl
import pytest

from sadrec.data import Interactions, _text
from studies.table.netflix import load_netflix
from tests.data.test_datasets import PACKS, Pack, folder_of, tar_of

MOVIES = {
    1: "1488844,3,2005-09-06\n822109,5,2005-05-13\n",
    2: "822109,1,2004-05-13\n30878,4,2005-12-26",
    9: "30878,2,2005-01-01\n1488844,4,2005-01-02\n7,4,2005-01-03\n",
}
NETFLIX = [
    (7, 9, 4.0, "2005-01-03"),
    (30878, 2, 4.0, "2005-12-26"),
    (30878, 9, 2.0, "2005-01-01"),
    (822109, 1, 5.0, "2005-05-13"),
    (822109, 2, 1.0, "2004-05-13"),
    (1488844, 1, 3.0, "2005-09-06"),
    (1488844, 9, 4.0, "2005-01-02"),
]
SEPARATE = {f"training_set/mv_{movie:07d}.txt": f"{movie}:\n{rows}".encode() for movie, rows in MOVIES.items()}
COMBINED = {
    "combined_data_1.txt": f"1:\n{MOVIES[1]}2:\n{MOVIES[2]}\n".encode(),
    "combined_data_2.txt": f"9:\n{MOVIES[9]}".encode(),
}
TITLES = {"movie_titles.txt": "1,2003,Dinosaur Planet\n2,2004,Isle of Man, TT\n9,NULL,Pokémon\n".encode("latin-1")}


def as_rows(data: Interactions) -> list[tuple[object, ...]]:
    frame = data.to_frame().with_columns(pl.col("timestamp").dt.strftime("%Y-%m-%d"))
    return frame.rows()


@pytest.mark.parametrize("block", [5, 23, 2**20])
@pytest.mark.parametrize("files", [SEPARATE, COMBINED])
@pytest.mark.parametrize("pack", PACKS)
def test_netflix_is_read_in_both_formats_and_any_block_size(
    tmp_path: Path, pack: Pack, files: dict[str, bytes], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_text, "BLOCK", block)
    data = load_netflix(pack(tmp_path, {**files, **TITLES}), n_users=None, max_movie_id=None)
    assert as_rows(data) == NETFLIX
    assert data.item_titles is not None
    assert data.item_titles.titles(data.items).tolist() == ["Dinosaur Planet", "Isle of Man, TT", "Pokémon"]


@pytest.mark.parametrize("pack", PACKS)
def test_netflix_is_read_from_the_archive_in_the_archive(tmp_path: Path, pack: Pack) -> None:
    (tmp_path / "inner").mkdir()
    inner = tar_of(tmp_path / "inner", SEPARATE).read_bytes()
    (tmp_path / "outer").mkdir()
    outer = pack(tmp_path / "outer", {"download/training_set.tar": inner, **TITLES})
    data = load_netflix(outer, n_users=None, max_movie_id=None)
    assert as_rows(data) == NETFLIX
    assert data.item_titles is not None


def test_damage_inside_the_inner_archive_names_the_file_the_user_has(tmp_path: Path) -> None:
    outer = tar_of(tmp_path, {"download/training_set.tar": b"no archive at all"})
    with pytest.raises(ValueError, match=r"all\.tar\.gz.top.download.training_set\.tar is damaged"):
        load_netflix(outer)


def test_netflix_files_may_end_with_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "combined_data_1.txt").write_bytes(b"1:\r\n7,4,2005-01-03\r\n\r\n2:\r\n7,5,2005-01-03\r\n\r\n\r\n")
    assert len(load_netflix(tmp_path)) == 2


def test_netflix_takes_random_users_and_movies_up_to_a_limit(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SEPARATE)
    few = [load_netflix(folder, n_users=2, seed=seed).users.tolist() for seed in range(30)]
    assert {len(users) for users in few} == {2}
    assert {user for users in few for user in users} == {7, 30878, 822109, 1488844}
    assert few[3] == load_netflix(folder, n_users=2, seed=3).users.tolist()
    limited = load_netflix(folder, max_movie_id=2)
    assert as_rows(limited) == [row for row in NETFLIX if row[1] <= 2]


def test_a_sampled_user_has_all_their_ratings(tmp_path: Path) -> None:
    data = load_netflix(folder_of(tmp_path, COMBINED), n_users=2, seed=1)
    assert as_rows(data) == [row for row in NETFLIX if row[0] in data.users.tolist()]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1:\n5,3,2005-01-01\n5,three,2005-01-01\n", "not in the format of the Netflix Prize"),
        ("5,3,2005-01-01\n", "not in the format"),
        ("1:\n5\n", "not in the format"),
        ("1:\nx,3,2005-01-01\n", "not in the format"),
        ("1:\n", "holds no ratings"),
    ],
)
def test_bad_netflix_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mv_0000001.txt").write_text(content)
    with pytest.raises(ValueError, match=message):
        load_netflix(tmp_path, n_users=None)


def test_a_folder_without_the_files_and_titles_of_another_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / "something.txt").write_text("x")
    with pytest.raises(FileNotFoundError, match="mv_"):
        load_netflix(tmp_path)
    folder_of(tmp_path, {"mv_1.txt": b"1:\n7,4,2005-01-03\n", "movie_titles.txt": b"1,2003\n"})
    with pytest.raises(ValueError, match=r"movie_titles.txt: line 1 is not"):
        load_netflix(tmp_path)


def test_without_a_path_it_says_where_to_get_the_files() -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot be fetched without an account: get .*Kaggle"):
        load_netflix(None)


@pytest.mark.parametrize("wrong", [{"n_users": 0}, {"n_users": "many"}, {"max_movie_id": 1.5}])
def test_limits_that_are_no_numbers_are_refused_before_anything_is_read(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"None for all\) must be a whole number, at least 1"):
        load_netflix(folder_of(tmp_path, SEPARATE), **wrong)
