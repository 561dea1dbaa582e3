"""Strange and damaged tables: one line that says what is wrong, or the data that Python's own csv module reads.

A table of random ids and ratings is written as csv, tsv, with ``::`` or as parquet, plain or compressed. Of ten, one
stays as it is and must be read; the others are damaged, or strange values and marks are put into them.
"""

import csv
import gzip
import io
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from campaigns._mutations import damaged
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings
from sadrec import Comparisons, Interactions
from sadrec.data._columns import AUTO, find_comparisons, find_interactions

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STRANGE = (
    "", " ", "0", "-0", "007", "7", "+7", "7.0", "1e3", "1e400", "nan", "NaN", "inf", "-1", "None", "null", "true",
    "1_000", "0x10", "\uff11\uff12", "9223372036854775808", "-9223372036854775809", str(10**60), "2020-01-01", 'a"b',
    '"', "a,b", "a\nb", "a\r\nb", "a\rb", "é", "\u00a0", "\u200b", "\x00", "a\x00", "'", "::", "\t", ";", "|",
    "x" * 300,
)  # fmt: skip
MARKS = (b'"', b"\r", b"\n", b"\r\n", b"\x00", b",", b"\t", b";", b"|", b"::", b"\xff", b"\xef\xbb\xbf", b"\n\n", b" ")
WHOLE = re.compile(r"\s*-?(0|[1-9][0-9]*)\s*", re.ASCII)


class Text(NamedTuple):
    """A table as text."""

    content: bytes
    separator: str


def _ids(kind: int, count: int, rng: Random) -> list[str]:
    """Return ids: numbers, numbers with zeros before them, words, or anything."""
    numbers = rng.integers(0, 30, count)
    if kind == 0:
        return [str(number) for number in numbers]
    if kind == 1:
        return [f"{number:03d}" if number % 3 else str(number) for number in numbers]
    if kind == 2:
        return [f"id {number} é" for number in numbers]
    if kind == 3:
        return [f"{number}.0" for number in numbers]
    return [STRANGE[int(number) % len(STRANGE)] for number in rng.integers(0, 2**31, count)]


def _table(rng: Random, comparisons: bool, plain: bool) -> Text:
    """Write a random table."""
    count = int(rng.integers(1, 40))
    kinds = 4 if plain else 5
    first, second = (int(rng.integers(kinds)) for _ in range(2))
    columns = [_ids(first, count, rng), _ids(second, count, rng)]
    if comparisons:
        names = ["user", "winner", "loser"]
        columns.append(_ids(second, count, rng))
        if plain:  # nobody prefers an item to itself
            columns[2] = [loser if loser != winner else f"{loser}0" for winner, loser in zip(*columns[1:], strict=True)]
    else:
        names = ["user", "item", "rating"]
        columns.append([str(value) for value in rng.choice(["1", "2.5", "3e0", "4", "0"], count)])
    if rng.random() < 0.3:
        names.insert(0, "note")
        columns.insert(0, _ids(2 if plain else 4, count, rng))
    separator = str(rng.choice([",", "\t", ";", "|", "::"]))
    ends = "\r\n" if rng.random() < 0.2 else "\n"
    rows = [names, *(list(row) for row in zip(*columns, strict=True))]
    if separator == "::":
        text = ends.join("::".join(row) for row in rows) + ends
    else:
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=separator, lineterminator=ends).writerows(rows)
        text = buffer.getvalue()
    return Text(text.encode("utf-8", "surrogatepass"), separator)


def _disturbed(raw: bytes, rng: Random) -> bytes:
    """Put a mark, a strange value or damage into a text."""
    kind = int(rng.integers(5))
    if kind == 0:
        return damaged(raw, rng)
    place = int(rng.integers(len(raw) + 1))
    if kind == 1:
        return raw[:place] + MARKS[int(rng.integers(len(MARKS)))] + raw[place:]
    if kind == 2:
        lines = raw.split(b"\n")
        lines.insert(int(rng.integers(len(lines))), lines[int(rng.integers(len(lines)))])
        return b"\n".join(lines)
    fields = re.split(rb"([,\t;|\n])", raw)
    strange = STRANGE[int(rng.integers(len(STRANGE)))].encode()
    fields[2 * int(rng.integers((len(fields) + 1) // 2))] = b'"' + strange + b'"' if kind == 3 else strange
    return b"".join(fields)


def _expected(table: Text, comparisons: bool) -> list[tuple[str, ...]] | None:
    """Return the fields that Python's csv module finds in the columns that are read, row by row; None: it cannot."""
    text = table.content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    try:
        separator = table.separator
        if separator == "::":  # which csv does not know
            text, separator = text.replace("::", "\x1f"), "\x1f"
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if "".join(row).strip()]
        header = [name.strip() for name in rows[0]]
        if comparisons:
            roles = ("user", "winner", "loser", "left", "right", "left_score", "right_score", "weight")
            chosen = find_comparisons(header, dict.fromkeys(roles, AUTO))
        else:
            chosen = find_interactions(header, AUTO, AUTO, AUTO, None)
        wanted = ["user", "winner", "loser"] if comparisons else ["user", "item", "rating"]
        places = [header.index(chosen[role]) for role in wanted if role in chosen]
        judge = ("0",) if comparisons and "user" not in chosen else ()  # the only one
        return [(*judge, *(row[place] for place in places)) for row in rows[1:]]
    except (csv.Error, ValueError, IndexError):
        return None


def _spelled(value: Any, texts: set[str]) -> str:
    """Return the text that an id was read from: itself, or of a number the text that is written as it is."""
    if isinstance(value, str) or str(value) in texts:
        return str(value)
    return next((text for text in texts if WHOLE.fullmatch(text) and int(text) == value), str(value))


def _difference(data: Any, rows: list[tuple[str, ...]] | None) -> str:
    """Return in what data differs from the rows that it should have; empty where it does not."""
    if rows is None:
        return "csv cannot read it"
    users, items = (
        {row[0] for row in rows},
        {text for row in rows for text in row[1 : 2 + isinstance(data, Comparisons)]},
    )
    if isinstance(data, Comparisons):
        wanted = Counter(row for row in rows if row[1] != row[2])  # an item is not compared with itself
        sides = data.users[data.user_index], data.items[data.winner_index], data.items[data.loser_index]
        counted: Counter[tuple[str, ...]] = Counter(
            (_spelled(user.item(), users), _spelled(winner.item(), items), _spelled(loser.item(), items))
            for user, winner, loser in zip(*sides, strict=True)
        )
    else:
        last = {row[:2]: row[2:] for row in rows}
        wanted = Counter((*pair, *map(_single, rating)) for pair, rating in last.items())
        counted = Counter(
            (_spelled(user, users), _spelled(item, items), *map(_single, rating))
            for user, item, *rating in data.to_frame().iter_rows()
        )
    return "" if counted == wanted else f"more: {[*(counted - wanted)][:3]}, less: {[*(wanted - counted)][:3]}"


def _single(rating: Any) -> str:
    """Return a rating as the library keeps it."""
    try:
        return str(np.float32(rating))
    except ValueError:
        return f"not a number: {rating}"


def trial(subject: None, rng: Random, folder: Path) -> Outcome:
    """Read one table."""
    comparisons, plain = bool(rng.random() < 0.4), bool(rng.random() < 0.1)
    table = _table(rng, comparisons, plain)
    if not plain:
        for _ in range(int(rng.integers(0, 3))):
            table = table._replace(content=_disturbed(table.content, rng))
    kind = ("text", "gz", "zst", "zip", "parquet")[int(rng.choice(5, p=[0.55, 0.12, 0.12, 0.06, 0.15]))]
    path = (
        folder / {"text": "a.csv", "gz": "a.csv.gz", "zst": "a.csv.zst", "zip": "a.zip", "parquet": "a.parquet"}[kind]
    )
    content, vouched = table.content, True
    if kind == "gz":
        content = gzip.compress(content, mtime=0)
    elif kind == "zst":
        content = zstd.compress(content)
    elif kind == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a.csv", content)
        content = buffer.getvalue()
    elif kind == "parquet":
        wanted = ["user", "winner", "loser"] if comparisons else ["user", "item", "rating"]
        rows = _expected(table, comparisons) or [("1", "2", "3")]
        rows = [(*row, "3")[:3] for row in rows]
        texts = [[field.encode("utf-8", "replace").decode() for field in column] for column in zip(*rows, strict=True)]
        buffer, frame = io.BytesIO(), pl.DataFrame(dict(zip(wanted, texts, strict=True)))
        if not comparisons:
            frame = frame.with_columns(pl.col("rating").cast(pl.Float32, strict=False))
        frame.write_parquet(buffer)
        content, vouched = buffer.getvalue(), False  # it has no checksum
    if not plain and kind != "text" and rng.random() < 0.6:
        content = damaged(content, rng)
        vouched = vouched and kind in ("gz", "zip")  # these have one of their own
    path.write_bytes(content)
    where = f"{kind}, {table.separator!r}, {table.content[:1500]!r}"
    try:
        with quiet_warnings():
            if comparisons:
                data: Any = Comparisons.read(path, header=None if kind == "parquet" else True, ties="drop")
            else:
                data = Interactions.read(path, header=None if kind == "parquet" else True, timestamp=None)
    except (ValueError, TypeError, OSError) as error:
        if "\n" in str(error) or not str(error):
            return Outcome("other errors", f"{where}: {type(error).__name__} of several lines: {error}")
        if plain and kind != "zip":
            return Outcome("good tables refused", f"{where}: {error}")
        return Outcome("said in one line")
    except Exception as error:
        return Outcome("other errors", f"{where}: {type(error).__name__}: {error}")
    if not vouched:
        return Outcome("read, content not vouched for")
    difference = _difference(data, _expected(table, comparisons))
    return Outcome("silent differences", f"{difference}; {where}") if difference else Outcome("same data")


CAMPAIGN = Campaign(
    unit="tables",
    kept=("same data", "said in one line", "read, content not vouched for"),
    broken=("silent differences", "good tables refused", "other errors"),
    prepare=lambda folder: None,
    trial=trial,
    seconds=60,
    memory=3.0,  # a reader that finds less than a GiB of room says so at once
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=1600)
