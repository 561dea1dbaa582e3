"""``sadrec split``: files that ``fit`` and ``evaluate`` take."""

import polars as pl
import pytest
from click.testing import CliRunner

from sadrec.cli import main

RATINGS = pl.DataFrame(
    {"user": [u for u in range(8) for _ in range(5)], "item": [(u + i) % 9 for u in range(8) for i in range(5)]}
).with_columns(rating=pl.col("item") % 5 + 1, timestamp=pl.int_range(pl.len()))
GAMES = pl.DataFrame({"winner": [0, 1, 2, 3] * 20, "loser": [1, 2, 3, 0] * 20})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RATINGS.write_csv("ratings.csv")
    GAMES.write_csv("games.csv")
    return tmp_path


def ask(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def parts(file, *options):
    ask("split", file, "--train", "train.csv", "--test", "test.csv", "--quiet", *options)
    return pl.read_csv("train.csv"), pl.read_csv("test.csv")


def test_every_row_is_in_one_part_and_the_seed_chooses(folder):
    train, test = parts("ratings.csv")
    assert (len(train), len(test)) == (32, 8)
    assert pl.concat([train, test]).sort("timestamp").equals(RATINGS.cast(train.schema))
    assert not parts("ratings.csv", "--seed", 1)[1].equals(test)
    assert parts("ratings.csv")[1].equals(test)


def test_one_row_of_every_user_or_the_latest_rows_are_held_out(folder):
    assert parts("ratings.csv", "--by", "user")[1]["user"].to_list() == list(range(8))
    train, test = parts("ratings.csv", "--by", "time", "--share", 0.25)
    assert len(test) == 10
    assert train["timestamp"].max() < test["timestamp"].min()


def test_a_pairing_is_in_one_part(folder):
    train, test = parts("games.csv", "--by", "pairing", "--share", 0.25)
    assert not {frozenset(row) for row in train.select("winner", "loser").rows()} & {
        frozenset(row) for row in test.select("winner", "loser").rows()
    }


@pytest.mark.parametrize("file", ["ratings.csv", "games.csv"])
def test_fit_and_evaluate_take_the_files(folder, file):
    ask("split", file, "--train", "a.parquet", "--test", "b.csv", "--quiet")
    ask("fit", "a.parquet", "-o", "m.sad", "--quiet", "--factors", 2)
    assert "value" in ask("evaluate", "m.sad", "--train", "a.parquet", "--test", "b.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--train", "a.json", "--test", "b.csv"], "a.json must end in .csv or .parquet"),
        (["--train", "ratings.csv", "--test", "b.csv"], "must be three files"),
        (["--train", "a.csv", "--test", "b.csv", "--by", "pairing"], "--by pairing is for comparisons"),
        (["--train", "games.csv", "--test", "b.csv"], "games.csv exists but is not a table of user, item"),
        (["--train", "a.csv", "--test", "b.csv", "--share", "0.001"], "b.csv would have no rows: ratings.csv has 40"),
    ],
)
def test_what_cannot_be_split_is_refused_and_nothing_is_written(folder, options, message):
    before = sorted(path.name for path in folder.iterdir())
    output = ask("split", "ratings.csv", *options, "--quiet", code=1 if "rows" in message else 2)
    assert message in output.replace("\n", " ")
    assert sorted(path.name for path in folder.iterdir()) == before
    assert pl.read_csv("games.csv").equals(GAMES)
