"""Every kind of file gives the same interactions, and damaged ones are refused."""

import gzip
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sadrec import SAD
from sadrec.data import Assembler, Comparisons, DataWarning, Interactions, ParquetFiles, Table, _text

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
    with pytest.raises(ValueError, match="line 32 has the timestamp 'noon', not a number"):
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
        ("ann,tea\nbob,ale\n", "if the file has no line of names, pass header=False"),
        ("alpha,beta\n1,2\n", "the columns are 'alpha', 'beta'"),
        ("user,item,rating\n1,2,good\n", "line 2 has the rating 'good', not a number"),
        ("user,item,rating\n1,2,3\n1,3,\n", "line 3 has no rating"),
        ("user,item,rating\n1,2,3\n1,3,nan\n", "line 3 has the rating nan"),
        ("user,item,rating\n1,2,3\n1,3,inf\n", "line 3 has the rating inf"),
        ("user,item,rating\n1,2,3\n1,3,-1\n", "line 3 has the negative rating -1"),
        ("user,item,rating\n1,2,3\n,3,1\n", "line 3 has no user"),
        ("user,item,rating\n1,2,3\n1,,1\n", "line 3 has no item"),
        ("user,item,rating\n1,2,3\n1,3,4,5\n", "line 3 has 4 fields, and the first line has 3"),
        ("user,item,rating,date\n1,2,3,2001-01-01\n1,3,4,soon\n", "line 3 has the timestamp 'soon'"),
        ("user,user\n1,2\n", "two columns of the same name"),
        ('user,item\n1,"2\n2,3\n', "after line 2: is a quotation mark left open"),
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
    with pytest.raises(ValueError, match="line 42 has the rating 'bad'"):
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


# -- one reader for interactions and comparisons ---------------------------------------------------------------------


def test_comparisons_keep_leading_zeros_of_judges_and_items_apart(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,winner,loser\n007,1,2\n7,2,03\n")
    pairs = Comparisons.read(tmp_path / "a.csv")
    assert pairs.users.tolist() == ["007", "7"]
    assert pairs.items.tolist() == ["03", "1", "2"]
    (tmp_path / "b.csv").write_text("user,winner,loser\n5,1,2\n7,2,3\n")
    assert Comparisons.read(tmp_path / "b.csv").users.tolist() == [5, 7]
    assert Comparisons.read(tmp_path / "b.csv", text_ids=True).items.tolist() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("late", "users", "items"),
    [("007,5", ["007", "1", "7"], [5]), ('"007",5', ["007", "1", "7"], [5]), ("7,005", [1, 7], ["005", "5"])],
)
def test_leading_zeros_late_in_the_file_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str, users: list[object], items: list[object]
) -> None:
    monkeypatch.setattr(_text, "BLOCK", 16)
    (tmp_path / "a.csv").write_text("user,item\n" + "1,5\n" * 5 + f"7,5\n{late}\n")
    data = Interactions.read(tmp_path / "a.csv", duplicates="last")
    assert (data.users.tolist(), data.items.tolist()) == (users, items)


def test_comparisons_of_many_blocks_and_packed_are_the_same_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(0, 9, 300)
    right = (left + rng.integers(1, 9, 300)) % 9
    winner = [None if tie else one for tie, one in zip(rng.random(300) < 0.2, left.tolist(), strict=True)]
    table = pl.DataFrame({"user": rng.integers(0, 5, 300), "left": left, "right": right, "winner": winner})
    table.write_csv(tmp_path / "a.csv")
    whole = Comparisons.from_frame(table, ties="split").to_frame()
    for name, pack in (("a.csv.gz", gzip.compress), ("a.csv.zst", _text.zstd.compress)):
        (tmp_path / name).write_bytes(pack((tmp_path / "a.csv").read_bytes()))
    table.write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(_text, "BLOCK", 97)
    for name in ("a.csv", "a.csv.gz", "a.csv.zst", "a.parquet"):
        assert Comparisons.read(tmp_path / name, ties="split").to_frame().equals(whole)


def test_ids_of_a_parquet_file_can_be_read_as_text(tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "a.parquet")
    assert Interactions.read(tmp_path / "a.parquet", text_ids=True).users.tolist() == ["3", "7", "9"]


@pytest.mark.parametrize("header", ["user_id,anime_id,rating", "userId,animeId,stars", "user,game id,score"])
def test_the_only_other_column_of_ids_is_the_item(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n1,20,3\n")
    assert Interactions.read(tmp_path / "a.csv").to_frame().rows() == [(1, 20, 3.0)]


@pytest.mark.parametrize("header", ["user_id,anime_id,studio_id", "user_id,paid,rating", "user,id,rating"])
def test_where_several_columns_or_none_could_be_the_item_it_must_be_named(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n1,20,3\n")
    with pytest.raises(ValueError, match="no column looks like the item"):
        Interactions.read(tmp_path / "a.csv")


def test_lines_in_errors_are_those_of_an_editor(tmp_path: Path) -> None:
    lines = ["", "user,item,note,rating", "1,2,a,3", "", '1,3,"two', "", 'lines",4', "", "1,4,b,bad"]
    for end in ("\n", "\r\n"):
        (tmp_path / "a.csv").write_bytes(end.join(lines).encode())
        with pytest.raises(ValueError, match="line 9 has the rating 'bad', not a number"):
            Interactions.read(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("user,left,right,winner\n1,a,b,a\n\n1,a,b,c\n")
    with pytest.raises(ValueError, match=r"b\.csv: line 4: the winner 'c' is neither left .'a'. nor right"):
        Comparisons.read(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text("user,winner,loser,weight\n1,a,b,1\n1,a,b,\n")
    with pytest.raises(ValueError, match="line 3 has the weight nan"):
        Comparisons.read(tmp_path / "c.csv")
    (tmp_path / "d.csv").write_text("user,winner,loser\n1,a,b\n1,c,c\n")
    with pytest.warns(DataWarning, match="the first is line 3"):
        Comparisons.read(tmp_path / "d.csv")


@pytest.mark.parametrize("content", [b"user,item\r1,2\r3,4\r", b"user,item\n1,2\r3,4\n", b"user,item\n1,2\n5,6\r3,4"])
def test_lone_carriage_returns_are_refused_with_their_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    line = 1 + content.split(b"\r")[0].count(b"\n")
    with pytest.raises(ValueError, match=f"line {line} has a carriage return with no line feed"):
        Interactions.read(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_bytes(b'user,item,note\n1,2,"a\rb"\n')
    assert len(Interactions.read(tmp_path / "b.csv")) == 1


def test_a_header_that_never_ends_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user," + "x" * 200_000 + "\n1,2\n")
    with pytest.raises(ValueError, match=r"its first line cannot be read \(field larger than field limit"):
        Interactions.read(tmp_path / "a.csv")


@pytest.mark.parametrize("reader", [Interactions, Comparisons])
@pytest.mark.parametrize("keep", [3, 7, 20, 100, -40, -8, -3, -1])
def test_parquet_cut_anywhere_is_refused_in_one_line(tmp_path: Path, reader: type, keep: int) -> None:
    frame().write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:keep])
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        reader.read(tmp_path / "b.parquet")


def test_parquet_damaged_inside_is_refused_in_one_line_if_it_is_noticed(tmp_path: Path) -> None:
    pl.DataFrame({"user": np.arange(1000), "item": np.arange(1000) * 7919 % 1000}).write_parquet(tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    for start in (4, 50, 400, len(content) - 120, len(content) - 60):
        (tmp_path / "b.parquet").write_bytes(content[:start] + b"\xff" * 30 + content[start + 30 :])
        try:  # damage to plain numbers cannot be noticed
            Interactions.read(tmp_path / "b.parquet", duplicates="last")
        except ValueError as error:
            assert str(error).startswith(f"{tmp_path / 'b.parquet'}: ") and "\n" not in str(error)


@pytest.mark.parametrize("change", ["shorter", "longer"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating\n" + "".join(f"{u},2,3\n" for u in range(100, 300)))
    monkeypatch.setattr(_text, "BLOCK", 64)
    usual = Assembler.add

    def add_and_change(self: Assembler, *rest: object) -> None:
        if self.rows > 50:
            os.truncate(path, 500 if change == "shorter" else 5000)
        usual(self, *rest)

    monkeypatch.setattr(Assembler, "add", add_and_change)
    with pytest.raises(ValueError, match=r"a\.csv: .*"):
        Interactions.read(path)
    if change == "shorter":
        path.write_text("user,item,rating\n" + "".join(f"{u},2,3\n" for u in range(100, 300)))
        with pytest.raises(ValueError, match=r"a\.csv: it was changed while it was read"):
            Interactions.read(path)


@pytest.mark.parametrize("kind", [Interactions, Comparisons])
def test_a_last_line_that_is_cut_is_noticed(tmp_path: Path, kind: type) -> None:
    columns = "user,item,split,note" if kind is Interactions else "user,winner,loser,note"
    (tmp_path / "a.csv").write_text(f"{columns}\n1,2,3,x\n1,3,4,x\n1,4,5")
    with pytest.warns(DataWarning, match=r"a\.csv: line 4, the last, has 3 of 4 fields .* cut short"):
        kind.read(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(f'{columns}\n1,2,3,x\n1,3,4,"x')
    with pytest.raises(ValueError, match=r"b\.csv: after line 3: is a quotation mark left open, or is the file cut"):
        kind.read(tmp_path / "b.csv")


def test_what_is_no_file_on_a_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is not a file on a disk"):
        Interactions.read("/dev/null")


def test_a_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,5\nx,5\n")
    names: list[str] = []
    usual = Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, *rest, **options: names.append(self.name) or usual(self, *rest, **options)
    )
    Interactions.read(tmp_path / "a.csv")
    assert names == ["a.csv"]


@pytest.mark.parametrize("time", ["2001-13-45", "soon", "99999999999999999999", "1 Jan"])
def test_a_bad_time_is_named_with_its_line(tmp_path: Path, time: str) -> None:
    (tmp_path / "a.csv").write_text(f"user,item,rating,timestamp\n1,2,3,2001-01-01\n1,3,4,{time}\n")
    with pytest.raises(ValueError, match=f"line 3 has the timestamp '{time}', neither a number"):
        Interactions.read(tmp_path / "a.csv")


def test_a_time_that_is_no_number_among_numbers_is_named_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating,timestamp\n1,2,3,100\n1,3,4,101\n1,4,4,soon\n")
    with pytest.raises(ValueError, match="line 4 has the timestamp 'soon', not a number, as others are"):
        Interactions.read(tmp_path / "a.csv")


# -- a folder of parquet ----------------------------------------------------------------------------------------------


def test_a_folder_and_a_pattern_of_parquet_are_read_as_one_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {"user": rng.integers(30, size=500), "item": rng.integers(20, size=500), "rating": rng.random(500)}
    frame = pl.DataFrame({**columns, "timestamp": rng.integers(9, size=500)})
    frame.write_parquet(tmp_path / "whole.parquet")
    (tmp_path / "parts").mkdir()
    for number, (low, high) in enumerate([(0, 0), (0, 190), (190, 191), (191, 500)]):
        frame[low:high].write_parquet(tmp_path / "parts" / f"part-{number}.parquet")
    (tmp_path / "parts" / "_SUCCESS").touch()
    for mode in ("last", "sum", "count", "max"):
        whole = Interactions.read(tmp_path / "whole.parquet", duplicates=mode)
        for path in (tmp_path / "parts", f"{tmp_path}/parts/part-*.parquet"):
            data = Interactions.read(path, duplicates=mode)
            assert (data.matrix != whole.matrix).nnz == 0 and data.matrix.nnz == whole.matrix.nnz
            assert np.array_equal(data.users, whole.users) and np.array_equal(data.timestamps, whole.timestamps)


def test_files_of_a_folder_that_are_not_alike_are_refused_by_name(tmp_path: Path) -> None:
    pl.DataFrame({"user": [1], "item": [2]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"user": ["x"], "item": [2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(TypeError, match=r"b\.parquet: the user ids change from Int64 to String at row 0"):
        Interactions.read(tmp_path)
    pl.DataFrame({"who": [1], "item": [2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet: it has no column 'user', as .*a\.parquet has"):
        Interactions.read(tmp_path)


def test_rows_of_files_are_divided_into_neighbours(tmp_path: Path) -> None:
    for name, rows in (("a", 5), ("b", 0), ("c", 4)):
        pl.DataFrame({"user": range(rows), "item": range(rows)}).write_parquet(tmp_path / f"{name}.parquet")
    files = ParquetFiles([tmp_path])
    parts = files.divided(3)
    assert [[(run.file.stem, run.start, run.stop) for run in part] for part in parts] == [
        [("a", 0, 3)],
        [("a", 3, 5), ("c", 0, 1)],
        [("c", 1, 4)],
    ]
    with pytest.raises(ValueError, match="9 rows cannot be shared by 10 workers: lower workers"):
        files.divided(10)


def test_weights_are_read_with_the_rest_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = tmp_path / "a.csv", []
    path.write_text("user,item,trust\n1,5,0.5\n1,7,2\n2,5,1\n")
    monkeypatch.setattr(Table, "__enter__", lambda table: opened.append(table.path) or table)
    SAD(factors=1, iterations=1).fit(path, weights="trust", show_progress=False)
    assert opened == [path]
