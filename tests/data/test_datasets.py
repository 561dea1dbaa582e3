"""Named data sets in the formats of their makers, in small."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from sadrec.data import load

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
    assert data.item_titles.titles(data.items).tolist() == ["James and the Giant Peach (1996)", "Café: 1975"]


@pytest.mark.parametrize("pack", PACKS)
def test_movielens_100k_is_read_with_latin_titles(tmp_path: Path, pack: Pack) -> None:
    files = {"u.data": U_DATA.encode(), "u.item": U_ITEM.encode("latin-1"), "u1.base": b"1\t1\t1\t1\n"}
    data = load("movielens-100k", pack(tmp_path, files))
    assert data.to_frame().rows() == [(186, 302, 3, 891717742), (196, 242, 3, 881250949), (196, 302, 1, 878887116)]
    assert data.item_titles is not None
    assert data.item_titles.titles(data.items).tolist() == ["Kolya (1996)", "Señor (1997)"]


def test_the_file_itself_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text(RATINGS_DAT)
    data = load("movielens-1m", tmp_path / "ratings.dat")
    assert len(data) == 3
    assert data.item_titles is None


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("movielens-1m", "ratings.dat"),
        ("movielens-100k", "u.data"),
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


def test_titles_of_another_format_are_refused(tmp_path: Path) -> None:
    folder_of(tmp_path, {"ratings.dat": RATINGS_DAT.encode(), "movies.dat": b"661::A::B\nhello\n"})
    with pytest.raises(ValueError, match=r"movies\.dat: line 2 is not"):
        load("movielens-1m", tmp_path)


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
    assert data.item_titles.titles(data.items).tolist() == ["five", "seven"]


def test_an_archive_with_a_password_or_odd_packing_is_refused_in_one_line(tmp_path: Path) -> None:
    whole = zip_of(tmp_path, {"ratings.dat": RATINGS_DAT.encode()}).read_bytes()
    start, listing = whole.index(b"PK\x03\x04"), whole.index(b"PK\x01\x02")
    for place, value, message in ((6, 1, "password"), (8, 99, "compression")):
        content = bytearray(whole)
        content[start + place] = content[listing + place + 2] = value
        (tmp_path / "odd.zip").write_bytes(content)
        with pytest.raises(ValueError, match=rf"odd\.zip cannot be unpacked here \(.*{message}"):
            load("movielens-1m", tmp_path / "odd.zip")
