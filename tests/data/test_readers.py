"""Every kind of file gives the same interactions, and damaged ones are refused."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sadrec.data import Interactions, _text

ROWS = [(7, 30, 4.0, 100), (7, 10, 0.0, 101), (3, 20, 2.5, 102), (9, 10, 5.0, 103)]
COLUMNS = ("user", "item", "rating", "timestamp")


def frame() -> pl.DataFrame:
    return pl.DataFrame(
        ROWS, schema=dict(zip(COLUMNS, (pl.Int64, pl.Int64, pl.Float64, pl.Int64), strict=True)), orient="row"
    )


def text(separator: str, header: bool) -> str:
    lines = [COLUMNS] if header else []
    return "".join(separator.join(map(str, row)) + "\n" for row in [*lines, *ROWS])


def assert_is_rows(data: Interactions) -> None:
    assert data.to_frame().rows() == sorted(ROWS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", text(",", header=True)),
        ("a.csv", text(",", header=False)),
        ("a.csv", text(",", header=True).replace("\n", "\r\n")),
        ("a.csv", "\ufeff" + text(",", header=True)),
        ("a.csv", text(",", header=True).rstrip("\n")),
        ("a.csv", text(", ", header=True)),
        ("a.tsv", text("\t", header=True)),
        ("u.data", text("\t", header=False)),
        ("ratings.dat", text("::", header=False)),
        ("semicolons.csv", text(";", header=True)),
    ],
)
def test_text_files_of_every_kind_give_the_rows(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    assert_is_rows(Interactions.read(path))


@pytest.mark.parametrize("content", [text(",", header=True), text("::", header=False)])
def test_gzip_files_are_read_as_their_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(content.encode()))
    assert_is_rows(Interactions.read(path))


@pytest.mark.parametrize("content", [text(",", header=True), text("::", header=False)])
def test_zstd_files_are_read_as_their_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv.zst"
    path.write_bytes(_text.zstd.compress(content.encode()))
    assert_is_rows(Interactions.read(path))


@pytest.mark.parametrize("size", [1, 7, 2**18])
def test_zstd_files_come_in_order_however_many_bytes_are_taken_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(_text, "BLOCK", size)
    rows = [f'{row},{row % 3},"a\n{row}"' for row in range(50)]
    (tmp_path / "a.csv.zst").write_bytes(_text.zstd.compress("\n".join(["user,item,note", *rows]).encode()))
    data = Interactions.read(tmp_path / "a.csv.zst")
    assert data.to_frame().rows() == [(row, row % 3) for row in range(50)]


def test_parquet_gives_the_rows(tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "a.parquet")
    assert_is_rows(Interactions.read(tmp_path / "a.parquet"))


def test_a_file_of_many_blocks_gives_the_same_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"user": rng.integers(0, 50, 500), "item": rng.integers(0, 90, 500), "rating": rng.random(500)}
    )
    table.write_csv(tmp_path / "a.csv")
    whole = Interactions.read(tmp_path / "a.csv", duplicates="last")
    monkeypatch.setattr(_text, "BLOCK", 97)
    blocks = Interactions.read(tmp_path / "a.csv", duplicates="last")
    assert whole.to_frame().equals(blocks.to_frame())


def test_line_breaks_inside_quotation_marks_do_not_end_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = frame().with_columns(review=pl.lit('so "good",\nreally\n\ngood'))
    table.select("review", "user", "item", "rating", "timestamp").write_csv(tmp_path / "a.csv")
    for size in (16, 40, 64, 2**20):
        monkeypatch.setattr(_text, "BLOCK", size)
        assert_is_rows(Interactions.read(tmp_path / "a.csv"))


def test_ids_that_turn_out_to_be_text_late_in_the_file_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_text, "BLOCK", 16)
    (tmp_path / "a.csv").write_text("user,item\n1,5\n2,5\n3,5\n4,5\nx5,6\n")
    data = Interactions.read(tmp_path / "a.csv")
    assert data.users.tolist() == ["1", "2", "3", "4", "x5"]
    assert data.items.tolist() == [5, 6]


def test_a_column_named_like_the_mark_of_an_archive_is_a_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("PK,user,item\n1,2,3\n")
    assert Interactions.read(tmp_path / "a.csv").to_frame().rows() == [(2, 3)]


def test_times_that_turn_out_to_have_decimals_late_in_the_file_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_text, "BLOCK", 64)
    rows = [f"1,{item},3,5" for item in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["user,item,rating,timestamp", *rows, "1,99,3,5.5"]))
    times = Interactions.read(tmp_path / "a.csv").timestamps
    assert times is not None and times.tolist() == [5.0] * 30 + [5.5]
    (tmp_path / "b.csv").write_text("\n".join(["user,item,rating,timestamp", *rows, "1,99,3,noon"]))
    with pytest.raises(ValueError, match="row 30 has the timestamp 'noon', not a number"):
        Interactions.read(tmp_path / "b.csv")


def test_leading_zeros_of_ids_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\n007,0\n7,10\n")
    data = Interactions.read(tmp_path / "a.csv")
    assert data.users.tolist() == ["007", "7"]
    assert data.items.tolist() == [0, 10]
    assert Interactions.read(tmp_path / "a.csv", text_ids=True).items.tolist() == ["0", "10"]


def test_a_file_of_pairs_has_no_ratings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\nann,ale\nbob,bun\n")
    data = Interactions.read(tmp_path / "a.csv")
    assert not data.has_ratings
    assert data.matrix.data.tolist() == [1, 1]


def test_dates_become_times(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating,date\n1,1,3,2005-09-06\n1,2,4,2004-01-02\n")
    times = Interactions.read(tmp_path / "a.csv").timestamps
    assert times is not None
    assert times.astype("datetime64[D]").astype(str).tolist() == ["2005-09-06", "2004-01-02"]


def test_usual_column_names_are_found_whatever_their_spelling(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Movie-ID,extra,userId,Stars\n5,x,1,3\n")
    assert Interactions.read(tmp_path / "a.csv").to_frame().rows() == [(1, 5, 3.0)]


def test_named_columns_are_taken(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,who,rating\n1,2,9,3\n")
    assert Interactions.read(tmp_path / "a.csv", user="who", rating=None).to_frame().rows() == [(9, 2)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("user,item,rating\n", "has no rows"),
        ("\n\n", "has no rows"),
        ("ann,tea\nbob,ale\n", "if the first line is a row like any other, pass header=False"),
        ("alpha,beta\n1,2\n", "the columns found are 'alpha', 'beta'"),
        ("user,item,rating\n1,2,good\n", "row 0 has the rating 'good', not a number"),
        ("user,item,rating\n1,2,3\n1,3,\n", "row 1 has no rating"),
        ("user,item,rating\n1,2,3\n1,3,nan\n", "row 1 has the rating nan"),
        ("user,item,rating\n1,2,3\n1,3,inf\n", "row 1 has the rating inf"),
        ("user,item,rating\n1,2,3\n1,3,-1\n", "row 1 has the negative rating -1"),
        ("user,item,rating\n1,2,3\n,3,1\n", "row 1 has no user"),
        ("user,item,rating\n1,2,3\n1,,1\n", "row 1 has no item"),
        ("user,item,rating\n1,2,3\n1,3,4,5\n", "has more fields than the 3"),
        ("user,item,rating,date\n1,2,3,2001-01-01\n1,3,4,soon\n", "row 1 has the timestamp 'soon'"),
        ("user,user\n1,2\n", "two columns of the same name"),
        ('user,item\n1,"2\n2,3\n', "cannot be read|row"),
    ],
)
def test_a_bad_text_file_is_refused_with_its_name_and_what_is_wrong(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        Interactions.read(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_are_left_out(tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(1, 2, 3.0), (1, 3, 4.0), (2, 2, 5.0)]
    lines = ["", "user,item,rating", "", "1,2,3", "1,3,4", "", "", "2,2,5", "", ""]
    for size in (9, 2**20):
        monkeypatch.setattr(_text, "BLOCK", size)
        (tmp_path / "a.csv").write_bytes(end.join(lines).encode())
        assert Interactions.read(tmp_path / "a.csv").to_frame().rows() == rows
    (tmp_path / "b.csv").write_bytes(end.join(["user,item,note", '1,2,"a', "", 'b"', "", ""]).encode())
    assert len(Interactions.read(tmp_path / "b.csv")) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user,item\n1,2\n".encode("utf-16"), "is UTF-16 text, not UTF-8"),
        (b"PK\x03\x04" + bytes(40), "is a zip archive: unpack it first"),
        (b'user,item\na"b,5\nc,d\n', "is a quotation mark left open"),
        (b"user,item\n1,a\x00\n", "a.csv: the id 'a.x00' ends with a NUL"),
    ],
)
def test_files_of_other_kinds_are_refused_by_what_they_are(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Interactions.read(tmp_path / "a.csv")


def test_row_numbers_in_errors_count_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_text, "BLOCK", 32)
    (tmp_path / "a.csv").write_text("user,item,rating\n" + "1,2,3\n" * 40 + "1,2,bad\n")
    with pytest.raises(ValueError, match="row 40 has the rating 'bad'"):
        Interactions.read(tmp_path / "a.csv")


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(np.random.default_rng(0).bytes(0) + text(",", header=True).encode() * 50)
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) - 12])
    with pytest.raises(ValueError, match="damaged or incomplete"):
        Interactions.read(tmp_path / "a.csv.gz")


def test_a_truncated_or_damaged_zstd_file_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i * 7919 % 1000},3\n" for i in range(20_000))
    checked = {_text.zstd.CompressionParameter.checksum_flag: 1}  # as the zstd command does
    whole = _text.zstd.compress(rows.encode(), options=checked)
    path = tmp_path / "a.csv.zst"
    path.write_bytes(whole[:-2000])
    with pytest.raises(ValueError, match="damaged or incomplete"):
        Interactions.read(path)
    path.write_bytes(whole[:3000] + b"?" * 40 + whole[3040:])
    with pytest.raises(ValueError, match="damaged or incomplete"):
        Interactions.read(path)


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-40])
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        Interactions.read(tmp_path / "b.parquet")


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("user,item\nJosé,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="UTF-8"):
        Interactions.read(tmp_path / "a.csv")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        Interactions.read(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Interactions.read(tmp_path / "nowhere.csv")
