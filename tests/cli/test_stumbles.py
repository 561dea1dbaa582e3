"""The command line as a new user with bad input meets it: every failure is one line, and nothing is lost in silence."""

import json
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec.cli import main

RATINGS = "user,item,rating\n" + "".join(f"{u},{i},{(u * i) % 5 + 1}\n" for u in range(12) for i in range(u % 3, 13, 2))
PAIRS = "user,winner,loser\n" + "".join(
    f"{u},{a},{b}\n" for u in range(9) for a, b in ((1, 2), (2, 3), (3, 1), (4, 5), (1, 5), (6, 2), (u + 10, 4))
)


def ask(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, code=1):
    """Return the one line that says what is wrong; where an option is, the usage is shown before."""
    lines = ask(*arguments, code=code).stderr.strip("\n").split("\n")
    errors = [line for line in lines if line.startswith("Error: ")]
    rest = [line for line in lines if not re.match(r"Error: |Usage: |Try '|Warning: |$", line)]
    assert len(errors) == 1 and not rest, lines
    return errors[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.csv").write_text(RATINGS)
    (tmp_path / "pairs.csv").write_text(PAIRS)
    return tmp_path


# -- bad tables of every sort ------------------------------------------------------------------------------------------

BAD = {
    "nothing": (b"", "it is empty"),
    "a header alone": (b"user,item\n", "it has no rows"),
    "NaN": (b"user,item,rating\n1,2,nan\n", "line 2 has the rating nan"),
    "a negative rating": (b"user,item,rating\n1,2,-1\n", "--allow-negative"),
    "no rating": (b"user,item,rating\n1,2,\n", "line 2 has no rating"),
    "no user": (b"user,item\n,2\n", "line 2 has no user"),
    "other columns": (b"a,b\nx,y\n", "the columns are 'a', 'b'"),
    "one column": (b"user\n1\n", "no column looks like the item"),
    "binary": (bytes(range(256)) * 20, "it is UTF-16 text"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(range(128, 256)), "is not UTF-8 text"),
    "UTF-16": ("user,item\n1,2\n".encode("utf-16"), "it is UTF-16 text"),
    "UTF-16 without a mark": ("user,item\n1,2\n".encode("utf-16-be"), "it is UTF-16 text"),
    "Latin-1": ("user,item\nJosé,2\n".encode("latin-1"), "it is not UTF-8 text"),
    "a number beyond measure": (b"user,item,rating\n1,2,1" + b"0" * 400 + b"\n", "line 2 has the rating inf"),
    "an id beyond measure": (b"user,item\n1" + b"0" * 400 + b",2\n2,3\n", "an id has 401 characters"),
    "a long row": (b"user,item\n1,2,3\n", "line 2 has 3 fields"),
    "a header without an end": (b"user," + b"x" * 200_000 + b"\n1,2\n", "its first line cannot be read"),
    "lone returns": (b"user,item\r1,2\r", "carriage return"),
    "an open quotation mark": (b'user,item\n1,"2\n', "quotation mark left open"),
    "an endless time": (b"user,item,timestamp\n1,2,5\n1,3,1e400\n", "line 3 has the timestamp inf"),
    "a bad time": (b"user,item,timestamp\n1,2,5\n1,3,noon\n", "line 3 has the timestamp 'noon'"),
    "cut gzip": (b"\x1f\x8b\x08\x00\x00", "damaged or incomplete"),
    "cut zstd": (b"\x28\xb5\x2f\xfd\x00", "damaged or incomplete"),
    "cut parquet": (b"PAR1" + bytes(40), "cannot be read as parquet"),
    "a zip": (b"PK\x03\x04" + bytes(40), "it is a zip archive"),
    "JSON": (b'{"factors": 3}\n', "no column looks like the user"),
    "an item against itself": (b"user,winner,loser\n1,a,a\n", "1 compare an item with itself"),
    "a third winner": (b"user,left,right,winner\n1,a,b,c\n", "neither left"),
    "a negative weight": (b"user,winner,loser,weight\n1,a,b,-1\n", "line 2 has the weight -1"),
    "no loser": (b"user,winner\n1,a\n", "comparisons need columns winner and loser"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_table_is_refused_in_one_line_that_names_it(folder, what):
    content, words = BAD[what]
    (folder / "bad.csv").write_bytes(content)
    for command in (["describe", "bad.csv"], ["fit", "bad.csv", "-o", "m.sad", "--quiet"]):
        line = refused(*command)
        assert line.startswith("Error: bad.csv: ") and words in line
    assert sorted(path.name for path in folder.iterdir()) == ["bad.csv", "pairs.csv", "ratings.csv"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("user,item\n1,2\n1,3\n1,4\n", "nothing was learnt: no user has both an item"),
        ("user,item\n" + "".join(f"{u},{i}\n" for u in range(3) for i in range(3)), "nothing was learnt"),
        ("user,item\n1,2\n2,2\n3,2\n", "a preference needs two items"),
        ("user,winner,loser,weight\n1,a,b,0\n", "all comparisons have the weight 0"),
        ("user,left,right,winner\n1,a,b,\n", "all comparisons are ties"),
    ],
)
def test_data_that_teaches_nothing_gives_an_error_and_no_model(folder, content, words):
    (folder / "bad.csv").write_text(content)
    assert words in refused("fit", "bad.csv", "-o", "m.sad", "--quiet")
    assert sorted(path.name for path in folder.iterdir()) == ["bad.csv", "pairs.csv", "ratings.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["describe", "."], 2, "is a directory"),
        (["describe", "nowhere.csv"], 2, "does not exist"),
        (["describe", "/dev/null"], 1, "it is not a file on a disk"),
        (["fit", "ratings.csv", "-o", "."], 2, "is a folder"),
        (["fit", "ratings.csv", "-o", "ratings.csv/m.sad"], 1, "ratings.csv"),
        (["fit", "pairs.csv", "-o", "m.sad", "--user", "winner"], 1, "is given for the user and for the winner"),
        (["fit", "ratings.csv", "-o", "m.sad", "--user", "item"], 1, "is given for the user and for the item"),
        (["fit", "ratings.csv", "-o", "m.sad", "--user", "who"], 1, "there is no column 'who'"),
        (["fit", "ratings.csv", "-o", "m.sad", "--learning-rate", "1e400"], 1, "learning_rate must be"),
        (["fit", "ratings.csv", "-o", "m.sad", "--factors", "-1"], 1, "factors must be"),
        (["fit", "ratings.csv", "-o", "m.sad", "--seed", "1" + 30 * "0"], 1, "random_state must be"),
        (["fit", "ratings.csv", "-o", "m.sad", "--factor", "3"], 2, "--factors"),
        (["fit", "ratings.csv", "-o", "m.sad", "--dislikes", "lots"], 2, "neither a number nor a file"),
        (["recommend", "ratings.csv", "--user", "1"], 1, "cannot be read as a sadrec model"),
        (["evaluate", "ratings.csv", "--test", "pairs.csv"], 1, "cannot be read as a sadrec model"),
        (
            ["serve", "ratings.csv"],
            1,
            "is a table. Type `sadrec fit ratings.csv -o model.sad`, then `sadrec serve model",
        ),
        (["posterior", "nowhere.posterior"], 2, "does not exist"),
        (["compare", "ratings.csv", "--models", "oracle"], 1, "there is no model 'oracle'"),
    ],
)
def test_a_slip_of_the_hand_is_answered_in_one_line(folder, arguments, code, words):
    assert words in refused(*arguments, code=code)
    assert sorted(path.name for path in folder.iterdir()) == ["pairs.csv", "ratings.csv"]


def test_what_nobody_has_foreseen_is_one_line_too(folder, monkeypatch):
    for error, words in (
        (ZeroDivisionError("odd"), "ZeroDivisionError: odd (an unexpected error"),
        (zipfile.BadZipFile("odd\nand \x1b[31mred"), r"BadZipFile: odd and \x1b[31mred"),
        (MemoryError(), "there is not enough memory"),
        (pl.exceptions.PanicException("panic"), "PanicException: panic"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr("sadrec.data.Interactions.read", fail)
        assert words in refused("describe", "ratings.csv")
    monkeypatch.setenv("SADREC_DEBUG", "1")
    result = CliRunner().invoke(main, ["describe", "ratings.csv"])
    assert isinstance(result.exception, OSError)


def test_odd_ids_are_asked_about_and_shown_on_one_line(folder):
    names = ["José 🎉", "a\nb", "\x1b[31mred", 'q"uote', "-1"]
    rng = np.random.default_rng(0)
    rows = [(user, names[int(i)]) for user in names for i in rng.permutation(5)[:3]]
    pl.DataFrame(rows, schema=["user", "item"], orient="row").write_csv("odd.csv")
    ask("fit", "odd.csv", "-o", "odd.sad", "--quiet", "--factors", 2, "--iterations", 2)
    for user in names[:4]:
        for command in (
            ["recommend", "odd.sad", "--user", user],
            ["prefer", "odd.sad", "--user", user, *names[:2]],
            ["explain", "odd.sad", "--user", user, *names[:2]],
            ["cycles", "odd.sad", "--user", user],
            ["similar", "odd.sad", "--item", user],
        ):
            output = ask(*command).output
            assert all(line.isprintable() for line in output.split("\n"))
    assert "unknown user 'nobody'" in refused("recommend", "odd.sad", "--user", "nobody")


def test_a_user_who_has_seen_everything_is_told_so(folder):
    table = "user,item\n1,2\n1,3\n1,4\n2,2\n"
    (folder / "a.csv").write_text(table)
    ask("fit", "a.csv", "-o", "a.sad", "--quiet", "--factors", 2, "--iterations", 1)
    assert (
        "nothing is left to show 1: all 3 items were seen (--keep-seen)"
        in ask("recommend", "a.sad", "--user", 1).output
    )


# -- what was silent ---------------------------------------------------------------------------------------------------


def test_prefer_says_how_sure_it_is(folder):
    ask("fit", "pairs.csv", "-o", "p.sad", "--quiet")
    model = SAD.load("p.sad")
    answer = json.loads(ask("prefer", "p.sad", "--user", 1, 2, 3, "--json").stdout)
    assert answer["deviation"] == model.deviation(1, 2, 3) and answer["probability"] == model.probability(1, 2, 3)
    assert f"standard deviation {answer['deviation']:.3f})" in ask("prefer", "p.sad", "--user", 1, 2, 3).output
    reason = json.loads(ask("explain", "p.sad", "--user", 1, 2, 3, "--json").stdout)
    assert reason["probability"] == answer["probability"]
    ask("fit", "ratings.csv", "-o", "r.sad", "--quiet", "--factors", 2, "--iterations", 2)
    assert json.loads(ask("prefer", "r.sad", "--user", 1, 2, 3, "--json").stdout)["deviation"] is None
    assert "deviation" not in ask("prefer", "r.sad", "--user", 1, 2, 3).output


def test_held_out_comparisons_that_were_trained_on_are_refused(folder):
    rng = np.random.default_rng(0)
    rows = [(u, int(i), int((i + 1 + rng.integers(18)) % 20)) for u in range(20) for i in rng.permutation(20)]
    table = pl.DataFrame(rows, schema=["user", "winner", "loser"], orient="row").sample(
        fraction=1, shuffle=True, seed=0
    )
    table[:300].write_csv("train.csv")
    table[300:].write_csv("test.csv")
    table[:50].write_csv("leak.csv")
    ask("fit", "train.csv", "-o", "m.sad", "--quiet")
    evaluate = ("evaluate", "m.sad", "--test")
    assert "log_loss" in ask(*evaluate, "test.csv", "--train", "train.csv").output
    line = refused(*evaluate, "leak.csv", "--train", "train.csv")
    assert re.search(r"50 of the 50 comparisons in leak.csv are rows of train.csv, where \d+% of rows occur more", line)
    assert "it cannot be checked whether test.csv was trained on" in ask(*evaluate, "test.csv").stderr
    games = pl.concat([table.select(user=1, winner=pl.col("winner") % 3, loser=pl.col("winner") % 3 + 3)] * 2)
    games[::2].write_csv("games.csv")
    games[1::2].write_csv("more.csv")
    ask("fit", "games.csv", "-o", "g.sad", "--quiet")
    ask("evaluate", "g.sad", "--test", "more.csv", "--train", "games.csv")  # the same games are played again


def test_results_of_other_data_are_not_written_over(folder):
    (folder / "best.json").write_text("precious")
    tune = ("tune", "pairs.csv", "-o", "best.json", "--sampler", "grid", "--try", "factors=2", "--quiet")
    assert "best.json exists and holds results for other data" in refused(*tune, code=2)
    assert (folder / "best.json").read_text() == "precious"
    ask(*tune, "--overwrite")
    ask(*tune)  # of the same data
    other = (tune[0], "ratings.csv", *tune[2:], "--iterations", 1)
    assert "best.json exists and holds results for other data" in refused(*other, code=2)
    compare = ("--models", "popularity", "--splits", 1, "-o", "report", "--quiet")
    (folder / "report").mkdir()
    (folder / "report" / "table.md").write_text("precious")
    assert "table.md exists and holds results" in refused("compare", "pairs.csv", *compare, code=2)
    assert (folder / "report" / "table.md").read_text() == "precious"
    ask("compare", "pairs.csv", *compare, "--overwrite")
    ask("compare", "pairs.csv", *compare)
    assert "exists and holds results" in refused("compare", "ratings.csv", *compare, code=2)


def test_settings_tuned_on_the_other_kind_of_data_are_refused(folder):
    ask("tune", "pairs.csv", "-o", "best.json", "--sampler", "grid", "--try", "factors=2", "--quiet")
    assert json.loads((folder / "best.json").read_text())["kind"] == "comparisons"
    fit = ("-o", "m.sad", "--settings", "best.json", "--quiet")
    assert "best.json was tuned on comparisons, and ratings.csv holds interactions" in refused(
        "fit", "ratings.csv", *fit, code=2
    )
    ask("fit", "pairs.csv", *fit)
    for content, words in (
        ("[1]", "it must be a mapping"), ("{", "does not hold settings as JSON"), ('{"model": "ease"}', "'ease'"),
        ('{"settings": 3}', "does not hold the settings"), ('{"colour": 3}', "unknown setting 'colour'"),
        ('{"factors": "many"}', "factors must be"), ('{"learning_rate": 1' + 400 * "0" + "}", "learning_rate must be"),
    ):  # fmt: skip
        (folder / "bad.json").write_text(content)
        assert words in refused("fit", "pairs.csv", "-o", "x.sad", "--settings", "bad.json", "--quiet")
    assert not (folder / "x.sad").exists()


def test_a_comparison_in_which_a_model_failed_ends_with_an_error(folder):
    result = ask("compare", "pairs.csv", "--models", "ease,popularity", "--splits", 2, "--quiet", code=1)
    assert "Popularity" in result.stdout
    assert "Error: 2 of 4 fits failed (EASE: " in result.stderr
    ask("compare", "pairs.csv", "--models", "popularity", "--splits", 2, "--quiet")


PANIC = """
import os, sys
from sadrec.cli.output import without_panics
with without_panics():
    os.write(2, b"thread panicked, and a page of addresses")
    print("said", file=sys.stderr)
print("later", file=sys.stderr)
os.write(2, b"last")
"""


def test_what_compiled_code_writes_about_its_panics_is_not_shown():
    run = subprocess.run([sys.executable, "-c", PANIC], env=os.environ, stderr=subprocess.PIPE, text=True, check=True)
    assert run.stderr == "said\nlater\nlast"


# -- what is written over ----------------------------------------------------------------------------------------------


def test_a_model_takes_the_place_of_a_model_and_of_nothing_else(folder):
    small = ("--factors", 2, "--iterations", 1, "--quiet")
    ask("fit", "ratings.csv", "-o", "m.sad", *small)
    before = (folder / "m.sad").read_bytes()
    ask("fit", "ratings.csv", "-o", "m.sad", "--seed", 1, *small)
    assert (folder / "m.sad").read_bytes() != before
    for command in ("fit", "posterior"):
        (folder / "notes.posterior").write_text("what I found out")
        place, kind = ("ratings.csv", "model") if command == "fit" else ("notes.posterior", "posterior")
        assert f"exists but is not a sadrec {kind}" in refused(command, "pairs.csv", "-o", place, code=2)
    assert (folder / "ratings.csv").read_text() == RATINGS
    (folder / "empty").write_bytes(b"")
    ask("fit", "ratings.csv", "-o", "empty", *small)
    assert "An existing model is replaced after the fit succeeds." in " ".join(ask("fit", "--help").output.split())


# -- nothing of the user's is written over, and no damaged model answers -----------------------------------------------


@pytest.fixture
def model(folder):
    SAD.from_factors(np.eye(3, 2), np.arange(8.0).reshape(4, 2)).save(folder / "model.sad")
    return folder / "model.sad"


def test_lists_vectors_and_pictures_replace_their_like_alone(folder, model):
    lists, vectors, picture = folder / "lists.csv", folder / "vectors.parquet", folder / "ring.png"
    commands = {
        lists: ("recommend", model, "--all", "-o", lists),
        vectors: ("export", model, "--vectors", vectors),
        picture: ("cycles", model, "--user", 0, "--plot", picture),
    }
    for path, words in commands.items():
        ask(*words)
        first = path.read_bytes()
        ask(*words)  # its like
        assert path.read_bytes() == first
        path.write_text(RATINGS)
        assert "exists but is not a" in refused(*words, code=2)
        assert path.read_text() == RATINGS


def test_a_damaged_model_is_refused_by_every_question(folder, model):
    content = bytearray(model.read_bytes())
    content[-5] ^= 1
    model.write_bytes(content)
    for words in (("recommend", model, "--user", 0), ("export", model, "--vectors", "vectors.parquet")):
        assert "checksum" in refused(*words)


# -- how a file was understood -----------------------------------------------------------------------------------------


def test_describe_tells_which_columns_were_taken(folder):
    (folder / "films.csv").write_text(RATINGS.replace("item,rating", "film,stars"))
    assert (
        "(columns read as user: user, rating: stars, item: film)"
        in ask("describe", "films.csv", "--item", "film").stdout
    )
    assert json.loads(ask("describe", "pairs.csv", "--json").stdout)["columns"]["loser"] == "loser"


def test_ties_are_counted(folder):
    (folder / "sides.csv").write_text("user,left,right,winner\n1,a,b,a\n1,b,c,\n1,a,c,c\n")
    for way, ties in (("keep", 1), ("drop", 0), ("split", 0)):
        assert json.loads(ask("describe", "sides.csv", "--ties", way, "--json").stdout)["ties"] == ties


def test_winners_and_losers_alone_are_of_one_judge(folder):
    (folder / "games.csv").write_text("winner,loser\na,b\nb,c\nc,a\n")
    assert "users       1" in ask("describe", "games.csv").stdout
    (folder / "odd.csv").write_text("who,winner,loser\n1,a,b\n2,b,c\n")
    assert "--user none" in refused("describe", "odd.csv")


def test_the_demo_says_what_the_service_lacks_before_it_computes(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "orjson", None)  # as where it is not installed
    result = ask("demo", "--serve", code=1)
    assert "pip install 'sadrec[serve]'" in result.stderr and not result.stdout


# -- the first hour of a new user --------------------------------------------------------------------------------------


def test_a_misspelt_command_is_suggested():
    assert refused("recomend", code=2) == "Error: No such command 'recomend'. Did you mean 'recommend'?"
    assert refused("zzz", code=2) == "Error: No such command 'zzz'."


@pytest.mark.parametrize("header", ["won,lst", "player,opponent,day,points"])
def test_leaderboard_asks_for_columns_of_games_and_its_remedy_works(folder, header):
    columns = header.split(",")
    (folder / "games.csv").write_text(f"{header}\n" + f"{','.join('abcd'[: len(columns)])}\n" * 9)
    line = refused("leaderboard", "games.csv", "--quiet")
    assert line.startswith("Error: games.csv: comparisons need columns winner and loser")
    assert "--winner COLUMN --loser COLUMN" in line and "user=" not in line
    ask("leaderboard", "games.csv", "--quiet", "--winner", columns[0], "--loser", columns[1])
    assert "leave out --kind interactions" in refused("leaderboard", "games.csv", "--kind", "interactions", code=2)


def test_results_of_football_are_read(folder):
    (folder / "games.csv").write_text("home,away,home_goals,away_goals\na,b,3,1\nb,a,2,2\na,c,1,0\n")
    board = json.loads(ask("leaderboard", "games.csv", "--quiet", "--json").stdout)["leaderboard"]
    assert [(row["item"], row["wins"], row["ties"]) for row in board if row["item"] == "a"] == [("a", 2, 1)]


@pytest.mark.parametrize(
    ("header", "row", "remedy"),
    [
        ("Who,sku,when", "1,{},5", "--user Who --item sku"),
        ("home,away,gh,ga", "{},b,{},1", "--left-score gh --right-score ga"),
        ("won,lost", "{},b", "--winner won --loser lost"),
        ("rater,good,bad", "1,{},b", "--winner good --loser bad"),
    ],
)
def test_the_options_that_an_error_about_columns_names_are_those_that_help(folder, header, row, remedy):
    (folder / "odd.csv").write_text("\n".join([header, *(row.format(*([k] * 2)) for k in (3, 4, 5))]))
    command = ("describe", "odd.csv", "--kind", "interactions" if "sku" in header else "comparisons")
    words = remedy.split()
    naming = " ".join("COLUMN" if place % 2 else word for place, word in enumerate(words))
    assert f"name them: {naming};" in refused(*command)
    ask(*command, *words)


def test_compare_writes_no_progress_bar_into_a_log(folder):
    run = subprocess.run(
        [sys.executable, "-m", "sadrec", "compare", "pairs.csv", "--models", "sad", "--splits", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "log_loss" in run.stdout and run.stderr == ""


def test_the_list_of_commands_says_each_in_a_whole_sentence():
    lines = ask("--help").stdout.split("Commands:\n")[1].splitlines()
    assert len(lines) == 17 and [line for line in lines if not line.endswith(".") or "..." in line] == []
