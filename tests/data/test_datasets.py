"""Named data sets in the formats of their makers, in small, and the paper's selections."""

import io
import logging
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sadrec.data import Interactions, _text, load, load_split
from sadrec.data.datasets import PUBLISHED

RATINGS_DAT = "1::1193::5::978300760\n1::661::3::978302109\n2::1193::4::978298413\n"
MOVIES_DAT = "661::James and the Giant Peach (1996)::Animation\n1193::Café: 1975::Drama\n9::Other (1999)::Drama\n"
U_DATA = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t878887116\n"
U_ITEM = "242|Kolya (1996)|24-Jan-1997||http://x|0\n302|Señor (1997)|01-Jan-1997||http://x|0\n"


def folder_of(tmp_path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def zip_of(tmp_path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(f"top/{name}", content)
    return tmp_path / "all.zip"


def tar_of(tmp_path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"top/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return tmp_path / "all.tar.gz"


Pack = Callable[[Path, dict[str, bytes]], Path]
PACKS = [folder_of, zip_of, tar_of]


@pytest.mark.parametrize("pack", PACKS)
def test_movielens_1m_is_read_with_latin_titles(tmp_path: Path, pack: Pack) -> None:
    files = {"ratings.dat": RATINGS_DAT.encode(), "movies.dat": MOVIES_DAT.encode("latin-1"), "README": b"..."}
    data = load("movielens-1m", pack(tmp_path, files))
    assert data.to_frame().rows() == [(1, 661, 3, 978302109), (1, 1193, 5, 978300760), (2, 1193, 4, 978298413)]
    assert data.item_titles is not None
    assert data.item_titles.tolist() == ["James and the Giant Peach (1996)", "Café: 1975"]


@pytest.mark.parametrize("pack", PACKS)
def test_movielens_100k_is_read_with_latin_titles(tmp_path: Path, pack: Pack) -> None:
    files = {"u.data": U_DATA.encode(), "u.item": U_ITEM.encode("latin-1"), "u1.base": b"1\t1\t1\t1\n"}
    data = load("movielens-100k", pack(tmp_path, files))
    assert data.to_frame().rows() == [(186, 302, 3, 891717742), (196, 242, 3, 881250949), (196, 302, 1, 878887116)]
    assert data.item_titles is not None
    assert data.item_titles.tolist() == ["Kolya (1996)", "Señor (1997)"]


def test_the_file_itself_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text(RATINGS_DAT)
    data = load("movielens-1m", tmp_path / "ratings.dat")
    assert len(data) == 3
    assert data.item_titles is None


# -- Netflix ---------------------------------------------------------------------------------------------------

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
    data = load("netflix", pack(tmp_path, {**files, **TITLES}), n_users=None, max_movie_id=None)
    assert as_rows(data) == NETFLIX
    assert data.item_titles is not None
    assert data.item_titles.tolist() == ["Dinosaur Planet", "Isle of Man, TT", "Pokémon"]


@pytest.mark.parametrize("pack", PACKS)
def test_netflix_is_read_from_the_archive_in_the_archive(tmp_path: Path, pack: Pack) -> None:
    (tmp_path / "inner").mkdir()
    inner = tar_of(tmp_path / "inner", SEPARATE).read_bytes()
    (tmp_path / "outer").mkdir()
    outer = pack(tmp_path / "outer", {"download/training_set.tar": inner, **TITLES})
    data = load("netflix", outer, n_users=None, max_movie_id=None)
    assert as_rows(data) == NETFLIX
    assert data.item_titles is not None


def test_damage_inside_the_inner_archive_names_the_file_the_user_has(tmp_path: Path) -> None:
    outer = tar_of(tmp_path, {"download/training_set.tar": b"no archive at all"})
    with pytest.raises(ValueError, match=r"all\.tar\.gz.top.download.training_set\.tar is damaged"):
        load("netflix", outer)


def test_netflix_files_may_end_with_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "combined_data_1.txt").write_bytes(b"1:\r\n7,4,2005-01-03\r\n\r\n2:\r\n7,5,2005-01-03\r\n\r\n\r\n")
    assert len(load("netflix", tmp_path)) == 2


def test_netflix_takes_random_users_and_movies_up_to_a_limit(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SEPARATE)
    few = [load("netflix", folder, n_users=2, seed=seed).users.tolist() for seed in range(30)]
    assert {len(users) for users in few} == {2}
    assert {user for users in few for user in users} == {7, 30878, 822109, 1488844}
    assert few[3] == load("netflix", folder, n_users=2, seed=3).users.tolist()
    limited = load("netflix", folder, max_movie_id=2)
    assert as_rows(limited) == [row for row in NETFLIX if row[1] <= 2]


def test_a_sampled_user_has_all_their_ratings(tmp_path: Path) -> None:
    data = load("netflix", folder_of(tmp_path, COMBINED), n_users=2, seed=1)
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
        load("netflix", tmp_path, n_users=None)


# -- Food.com --------------------------------------------------------------------------------------------------


def food_com_files() -> dict[str, bytes]:
    rows = [
        (1, 10, "2003-02-17", 4, 'Great,\nsimple "dish"'),
        (1, 20, "2011-12-21", 5, "x"),
        (1, 30, "2011-12-21", 0, ""),
        (2, 10, "2002-12-01", 0, "no stars"),
        (2, 20, "2002-12-01", 3, "y"),
        (3, 10, "2002-12-02", 1, "z"),
        (4, 20, "2002-12-02", 1, "\n"),
    ]
    columns = ["user_id", "recipe_id", "date", "rating", "review"]
    reviews = pl.DataFrame(rows, schema=columns, orient="row").write_csv().encode()
    recipes = (
        pl.DataFrame({"name": ["soup", "cake, plain"], "id": [10, 20], "steps": ["a\nb", "c"]}).write_csv().encode()
    )
    return {"RAW_interactions.csv": reviews, "RAW_recipes.csv": recipes, "other.csv": b""}


@pytest.mark.parametrize("pack", PACKS)
def test_food_com_keeps_top_users_then_frequent_recipes(tmp_path: Path, pack: Pack) -> None:
    data = load("food-com", pack(tmp_path, food_com_files()), top_users=3, min_per_item=2)
    # Users 1, 2 and 3 (before 4, at one review each); recipe 30 has one review.
    assert data.to_frame().drop("timestamp").rows() == [(1, 10, 4), (1, 20, 5), (2, 10, 0), (2, 20, 3), (3, 10, 1)]
    assert data.item_titles is not None
    assert data.item_titles.tolist() == ["soup", "cake, plain"]


def test_food_com_keeps_reviews_without_stars(tmp_path: Path) -> None:
    data = load("food-com", folder_of(tmp_path, food_com_files()), top_users=None, min_per_item=1)
    assert (len(data), len(data.drop_zeros())) == (7, 5)


# -- what is reported, what is refused -------------------------------------------------------------------------


def test_counts_are_reported_beside_the_published_ones(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "ratings.dat").write_text(RATINGS_DAT)
    with caplog.at_level(logging.INFO):
        data = load("movielens-1m", tmp_path)
    assert "2 users (published 6,040), 2 items (published 3,706), 3 ratings (published 1,000,209)" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING
    assert "(published: 1,000,209)" in str(data.describe(PUBLISHED["movielens-1m"]))
    assert data.describe().published is None


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("movielens-1m", "ratings.dat"),
        ("movielens-100k", "u.data"),
        ("netflix", "mv_"),
        ("food-com", "RAW_interactions"),
    ],
)
def test_a_folder_without_the_files_is_refused_by_the_file_wanted(tmp_path: Path, name: str, wanted: str) -> None:
    (tmp_path / "something.txt").write_text("x")
    with pytest.raises(FileNotFoundError, match=wanted):
        load(name, tmp_path)


def test_several_files_of_the_name_are_refused(tmp_path: Path) -> None:
    outer = zip_of(tmp_path, {f"{folder}/ratings.dat": RATINGS_DAT.encode() for folder in "ab"})
    with pytest.raises(ValueError, match=r"all\.zip.top.a.ratings\.dat, .*all\.zip.top.b.ratings\.dat; name the right"):
        load("movielens-1m", outer)


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no .*nowhere"):
        load("movielens-1m", tmp_path / "nowhere")


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path, {"ratings.dat": RATINGS_DAT.encode() * 100})
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(ValueError, match="damaged or incomplete"):
        load("movielens-1m", path)


def test_a_damaged_member_is_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path, {"ratings.dat": RATINGS_DAT.encode() * 100})
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="damaged or incomplete"):
        load("movielens-1m", path)


def test_rows_of_another_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text("a::b::c::d\n")
    with pytest.raises(ValueError, match=r"ratings\.dat: line 1 has the rating 'c', not a number"):
        load("movielens-1m", tmp_path)


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("movielens-1m", {"ratings.dat": RATINGS_DAT, "movies.dat": "661::A::B\nhello\n"}, "movies.dat: line 2 is not"),
        (
            "netflix",
            {"mv_1.txt": "1:\n7,4,2005-01-03\n", "movie_titles.txt": "1,2003\n"},
            "movie_titles.txt: line 1 is not",
        ),
        ("food-com", {"RAW_interactions.csv": "", "RAW_recipes.csv": "title\nsoup\n"}, "has no ids and names"),
    ],
)
def test_titles_of_another_format_are_refused(tmp_path: Path, name: str, files: dict[str, str], message: str) -> None:
    folder_of(tmp_path, {file: content.encode() for file, content in files.items()})
    if name == "food-com":
        (tmp_path / "RAW_interactions.csv").write_text(
            "user_id,recipe_id,date,rating,review\n" + "".join(f"{user},1,2001-01-01,5,x\n" for user in range(60))
        )
    with pytest.raises(ValueError, match=message):
        load(name, tmp_path)


def test_an_option_of_another_data_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text(RATINGS_DAT)
    with pytest.raises(TypeError, match="movielens-1m is not selected by 'n_users': nothing can be given"):
        load("movielens-1m", tmp_path, n_users=3)
    parquet_folder(tmp_path)
    with pytest.raises(TypeError, match="food-com is not selected by 'n_users': 'top_users' or 'min_per_item'"):
        load("food-com", tmp_path, n_users=3)
    with pytest.raises(ValueError, match="holds a sample already"):
        load("netflix", tmp_path, n_users=3)


@pytest.mark.parametrize("wrong", [{"n_users": 0}, {"n_users": "many"}, {"max_movie_id": 1.5}])
def test_limits_that_are_no_numbers_are_refused_before_anything_is_read(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"None for all\) must be a whole number, at least 1"):
        load("netflix", folder_of(tmp_path, SEPARATE), **wrong)


# -- folders of parquet ----------------------------------------------------------------------------------------


def parquet_folder(tmp_path: Path) -> Path:
    frame = pl.DataFrame(
        {
            "user": [2, 1, 1, 2],
            "item": [5, 5, 7, 7],
            "rating": [0, 3, 4, 5],
            "split": ["test", "train", "test", "train"],
        }
    )
    frame.write_parquet(tmp_path / "ratings.parquet")
    pl.DataFrame({"item": [7, 5, 9], "title": ["seven", "five", "nine"]}).write_parquet(tmp_path / "items.parquet")
    return tmp_path


def test_a_folder_of_parquet_is_a_data_set(tmp_path: Path) -> None:
    data = load("movielens-1m", parquet_folder(tmp_path))
    assert data.to_frame().rows() == [(1, 5, 3), (1, 7, 4), (2, 5, 0), (2, 7, 5)]
    assert data.item_titles is not None
    assert data.item_titles.tolist() == ["five", "seven"]


def test_a_published_split_is_given_as_published(tmp_path: Path) -> None:
    train, held_out = load_split(parquet_folder(tmp_path))
    assert train.to_frame().rows() == [(1, 5, 3), (2, 7, 5)]
    assert held_out.to_frame().rows() == [(1, 7, 4), (2, 5, 0)]
    assert train.shape == held_out.shape == (2, 2)


def test_a_split_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no column 'fold'"):
        load_split(parquet_folder(tmp_path), column="fold")
    with pytest.raises(ValueError, match=r"no row of .* has split = 'learn'"):
        load_split(parquet_folder(tmp_path), train="learn")


def test_splits_of_files_with_ids_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,split\nann,x,train\nbob,y,test\n")
    train, held_out = load_split(tmp_path / "a.csv")
    assert (train.to_frame().rows(), held_out.to_frame().rows()) == ([("ann", "x")], [("bob", "y")])
    assert np.array_equal(train.users, held_out.users)


def test_an_archive_with_a_password_or_odd_packing_is_refused_in_one_line(tmp_path: Path) -> None:
    whole = zip_of(tmp_path, {"ratings.dat": RATINGS_DAT.encode()}).read_bytes()
    start, listing = whole.index(b"PK\x03\x04"), whole.index(b"PK\x01\x02")
    for place, value, message in ((6, 1, "password"), (8, 99, "compression")):
        content = bytearray(whole)
        content[start + place] = content[listing + place + 2] = value
        (tmp_path / "odd.zip").write_bytes(content)
        with pytest.raises(ValueError, match=rf"odd\.zip cannot be unpacked here \(.*{message}"):
            load("movielens-1m", tmp_path / "odd.zip")
