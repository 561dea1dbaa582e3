"""Tables as a hostile week brings them: ids that look like numbers, packed files that never end, odd bytes."""

import csv
import gzip
import io
import mmap
import random
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sadrec.data import Comparisons, Ids, Interactions, _text, load

# -- ids are told apart as Python's csv tells them ---------------------------------------------------------------------

ODD = "7 007 07 +7 -7 7.0 7e0 0 -0 00 0.0 1e3 1000 1_0 0x7 a A nan null inf 12345678901234567890 true - + . \uff17"


@pytest.mark.parametrize("seed", range(40))
def test_ids_of_random_tables_are_those_that_pythons_csv_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    ids = rng.sample([*ODD.split(), "7 ", "x\ny", 'a "b"'], rng.randint(3, 6))
    rows = [(rng.choice(ids), *rng.sample(ids, 2)) for _ in range(30)]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("user", "winner", "loser"), *rows])
    monkeypatch.setattr(_text, "BLOCK", rng.choice([16, 64, 2**20]))
    assert [tuple(map(str, row)) for row in Comparisons.read(tmp_path / "a.csv").to_frame().rows()] == rows


@pytest.mark.parametrize("text", ["+7", "-0", " 007", "\t07", "7 "])
def test_ids_written_unlike_numbers_are_kept_apart_late_in_the_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(_text, "BLOCK", 16)
    (tmp_path / "a.csv").write_text("user,item\n" + "7,5\n" * 8 + f"0,5\n{text},5\n")
    data = Interactions.read(tmp_path / "a.csv", duplicates="last")
    assert data.users.tolist() == sorted(["0", "7", text])


def test_blanks_around_numbers_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user, item, rating, time\n1, 2, 3 ,5 \n2, 3,4, 6\n")
    data = Interactions.read(tmp_path / "a.csv", user="user", item="item", rating="rating", timestamp="time")
    assert data.to_frame().rows() == [(1, 2, 3.0, 5), (2, 3, 4.0, 6)]


def test_ids_that_end_with_a_nul_are_refused_wherever_they_come_from() -> None:
    for make in (
        lambda: Ids(["a\0", "a"]),
        lambda: Ids(np.array(["a\0", "b"], dtype=object)),
        lambda: Ids(np.array(["a\0", "b"], dtype=np.dtypes.StringDType())),
        lambda: Interactions.from_csr(np.eye(2), users=["a", "a\0"]),
        lambda: Interactions.from_frame(pl.DataFrame({"user": ["a", "a\0"], "item": [1, 2]})),
        lambda: Comparisons.from_frame(pl.DataFrame({"user": [1], "winner": ["a"], "loser": ["a\0"]})),
    ):
        with pytest.raises(ValueError, match="ends with a NUL character"):
            make()


# -- packed files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_text, "FREE", 2**16)
    monkeypatch.setattr(_text, "BLOCK", 2**14)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("pack", [gzip.compress, _text.zstd.compress])
@pytest.mark.parametrize("kind", [Interactions, Comparisons])
def test_a_small_file_that_unpacks_to_much_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type, pack: object
) -> None:
    columns = "user,item,note" if kind is Interactions else "user,winner,loser"
    (tmp_path / "a.csv").write_bytes(pack(f"{columns}\n".encode() + b"1,2,3\n" * 100_000))  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"a\.csv: it has \d.* set the variable SADREC_MAX_EXPANSION"):
        kind.read(tmp_path / "a.csv")
    monkeypatch.setenv("SADREC_MAX_EXPANSION", "100000")
    with pytest.warns() if kind is Interactions else nullcontext():
        assert len(kind.read(tmp_path / "a.csv")) == (1 if kind is Interactions else 100_000)


def test_a_bad_limit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"user,item\n1,2\n"))
    monkeypatch.setenv("SADREC_MAX_EXPANSION", "lots")
    with pytest.raises(ValueError, match="SADREC_MAX_EXPANSION must be a whole number, at least 1, not 'lots'"):
        Interactions.read(tmp_path / "a.csv")


@pytest.mark.usefixtures("small")
def test_parquet_that_says_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"user": np.ones(10**6, int), "item": np.ones(10**6, int)}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="unpacks to more than"):
        Interactions.read(tmp_path / "a.parquet")


@pytest.mark.usefixtures("small")
def test_an_archive_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ml-100k.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml-100k/u.data", b"1\t2\t3\t4\n" * 500_000)
    with pytest.raises(ValueError, match=r"ml-100k\.zip: it has .* SADREC_MAX_EXPANSION"):
        load("movielens-100k", tmp_path / "ml-100k.zip")


def test_a_zip_with_a_password_or_of_an_unknown_kind_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "ml-100k.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("u.data", "1\t2\t3\t4\n")
    whole = bytearray(path.read_bytes())
    start = whole.index(b"PK\x01\x02")
    for places, value in (((6, start + 8), 1), ((8, start + 10), 99)):  # the flag of a password, the way of packing
        damaged = bytearray(whole)
        for place in places:
            damaged[place] |= value
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"ml-100k\.zip cannot be unpacked here .*: unpack it and name the folder"):
            load("movielens-100k", path)
        with pytest.raises(ValueError, match=r"ml-100k\.zip: it is a zip archive: unpack it first"):
            Interactions.read(path)


def test_a_full_temporary_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "ml-100k.zip", "w") as archive:
        archive.writestr("u.data", "1\t2\t3\t4\n")
    usual = Path.open

    def full(self: Path, mode: str = "r", *rest: object, **options: object) -> object:
        return usual(Path("/dev/full"), "wb", 0) if mode == "wb" else usual(self, mode, *rest, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match=r"cannot be unpacked to the temporary folder .*No space left.* TMPDIR"):
        load("movielens-100k", tmp_path / "ml-100k.zip")


# -- rows without an end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filling", [b"\n", b"\r", b'""\n', b"x"])
def test_an_open_quotation_mark_before_megabytes_is_refused_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filling: bytes
) -> None:
    monkeypatch.setattr(_text, "_MAX_ROW", 2**23)
    monkeypatch.setattr(_text, "BLOCK", 2**16)
    (tmp_path / "a.csv").write_bytes(b'user,item\n1,"2\n' + filling * (2**24 // len(filling)))
    with pytest.raises(ValueError, match=r"a\.csv: .*quotation mark"):
        Interactions.read(tmp_path / "a.csv")


def test_megabytes_of_empty_lines_and_of_quoted_returns_are_read_in_one_pass(tmp_path: Path) -> None:
    empty = b"\r\n" * 2**20
    (tmp_path / "a.csv").write_bytes(
        empty + b"user,item,note\n" + empty + b'1,2,"' + b"\r" * 2**20 + b'"\n' + empty + b"2,3,x\n" + empty
    )
    assert Interactions.read(tmp_path / "a.csv").to_frame().rows() == [(1, 2), (2, 3)]


@pytest.mark.parametrize("seed", range(30))
def test_blocks_end_where_rows_end(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice('ab",\n\r') for _ in range(rng.randint(0, 80))).encode()
    for inside in (False, True):
        parity, ends = inside, [0]
        for place, letter in enumerate(text):
            parity ^= letter == ord('"')
            if letter == ord("\n") and not parity:
                ends.append(place + 1)
        assert _text.end_of_last_row(text, inside) == (ends[-1], parity)
    text = text.replace(b'"', b"")
    kept = [line for line in io.StringIO(text.decode(), newline="\n") if line not in ("\n", "\r\n")]
    assert _text.without_empty_lines(text).decode() == "".join(kept)


# -- odd bytes and values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user,item\n1,2\n".encode("utf-16-le"), "its first line has NUL bytes: it is UTF-16 text"),
        (bytes(range(128, 256)) * 9, "its first line is not UTF-8 text"),
        (b"\x7fELF" + bytes(900), "its first line has NUL bytes"),
        (b"user,item\n1,2\n\xff\xfe,3\n", "it is not UTF-8 text"),
    ],
)
def test_what_is_no_text_is_called_so(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Interactions.read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("times", "line", "bad"),
    [
        (["5", "6", "noon", "7"], 4, "noon"),
        (["noon", "6", "5.5"], 2, "noon"),
        (["2001-01-01", "5", "2001-01-03"], 3, "5"),
        (["5", "2001-01-01", "2001-01-03"], 2, "5"),
    ],
)
def test_a_bad_timestamp_is_the_one_unlike_the_others(tmp_path: Path, times: list[str], line: int, bad: str) -> None:
    rows = [f"1,{item},{time}" for item, time in enumerate(times)]
    (tmp_path / "a.csv").write_text("\n".join(["user,item,timestamp", *rows, ""]))
    with pytest.raises(ValueError, match=f"line {line} has the timestamp '{bad}', n"):
        Interactions.read(tmp_path / "a.csv")
    frame = pl.DataFrame({"user": [1] * len(times), "item": range(len(times)), "timestamp": times})
    with pytest.raises(ValueError, match=f"row {line - 2} has the timestamp '{bad}', n"):
        Interactions.from_frame(frame)


def test_numbers_written_as_text_are_times() -> None:
    for texts, times in ((["5", "7"], [5, 7]), (["5", "7.5"], [5.0, 7.5])):
        data = Interactions.from_frame(pl.DataFrame({"user": [1, 1], "item": [1, 2], "timestamp": texts}))
        assert data.timestamps is not None and data.timestamps.tolist() == times


@pytest.mark.parametrize("value", ["1" + 400 * "0", "-1" + 400 * "0", "1e400"])
def test_numbers_beyond_measure_are_named_with_their_line(tmp_path: Path, value: str) -> None:
    (tmp_path / "a.csv").write_text(f"user,item,rating\n1,2,3\n1,3,{value}\n")
    with pytest.raises(ValueError, match=r"line 3 has the rating -?inf: ratings must be finite"):
        Interactions.read(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(f"user,item\n1,2\n1,{value}\n")
    if len(value) < 256:
        assert Interactions.read(tmp_path / "b.csv").items.tolist() == ["1e400", "2"]
    else:
        with pytest.raises(ValueError, match=r"an id has 40. characters"):
            Interactions.read(tmp_path / "b.csv")


def test_a_process_without_room_is_told_so_before_polars_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")

    def none(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", none)
    with pytest.raises(MemoryError, match=r"1,024 MiB more are needed.*\(Cannot allocate memory\): raise its limit"):
        Interactions.read(tmp_path / "a.csv")
