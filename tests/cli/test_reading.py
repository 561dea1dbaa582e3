"""How the command line reads files: what they hold, where, and what is said when something is wrong."""

import json

import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec.cli import main
from sadrec.cli.fit import kept_epoch


def ask(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def described(*arguments):
    return json.loads(ask("describe", *arguments, "--json").stdout)


@pytest.fixture
def write(tmp_path):
    def content(text, name="data.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return content


@pytest.mark.parametrize(
    "text",
    [
        "judge,chosen,rejected\na,x,y\nb,y,z\na,z,x\n",
        "judge;left;right;winner\na;x;y;x\nb;y;z;z\na;z;x;x\n",
        "worker\tmodel_a\tmodel_b\twinner\na\tx\ty\tx\nb\ty\tz\tz\na\tz\tx\tx\n",
    ],
)
def test_comparisons_are_known_by_the_usual_names_of_their_columns(write, tmp_path, text):
    ask("fit", write(text), "-o", tmp_path / "m.sad", "--factors", 2)
    assert SAD.load(tmp_path / "m.sad").items.tolist() == ["x", "y", "z"]
    assert "comparisons" in ask("describe", write(text)).output


def test_comparisons_in_parquet_and_with_named_columns(tmp_path):
    frame = pl.DataFrame({"who": [1, 1, 2], "good": [5, 6, 7], "bad": [6, 7, None], "other": [0, 0, 5]})
    frame[:2].write_parquet(tmp_path / "a.parquet")
    columns = ("--user", "who", "--winner", "good", "--loser", "bad")
    ask("fit", tmp_path / "a.parquet", "-o", tmp_path / "m.sad", "--factors", 2, *columns)
    assert SAD.load(tmp_path / "m.sad").items.tolist() == [5, 6, 7]


def test_a_column_of_labels_does_not_make_comparisons(write):
    assert described(write("user,item,label\n1,2,1\n1,3,0\n"))["ratings"] == 2


def test_what_error_messages_advise_can_be_done(write):
    assert "--allow-negative" in ask("describe", "--help").output
    negative = write("user,item,rating\n1,2,-1\n1,3,2\n")
    assert "negative rating" in ask("describe", negative, code=1).output
    assert described(negative, "--allow-negative")["ratings"] == 2
    assert described(negative, "--rating", "none")["ratings"] == 2
    names = write("ann,tea\nbob,ale\n")
    assert "header=False" in ask("describe", names, code=1).output
    assert described(names, "--no-header")["users"] == 2


def test_repeated_pairs_are_said_in_one_line_beside_the_answer(write):
    twice = write("user,item,rating\n1,2,3\n1,2,4\n1,3,4\n")
    result = ask("describe", twice, "--json")
    assert json.loads(result.stdout)["ratings"] == 2
    assert result.stderr.startswith("Warning: 1 rows repeat a (user, item) pair") and result.stderr.count("\n") == 1
    assert ask("describe", twice, "--duplicates", "sum").stderr == ""


def test_options_of_the_other_kind_are_refused(write):
    pairs = write("user,winner,loser\na,x,y\nb,y,z\n")
    assert "--duplicates does not go with comparisons" in ask("describe", pairs, "--duplicates", "sum", code=2).output
    data = write("user,item\n1,2\n", "other.csv")
    assert (
        "--ties does not go with interactions"
        in ask("describe", data, "--kind", "interactions", "--ties", "drop", code=2).output
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_fit_that_fails_leaves_nothing_in_the_way_of_the_next(write, tmp_path):
    data = write("user,item\n" + "".join(f"{u},{i}\n" for u in range(20) for i in range(u % 5, 20, 3)))
    fit = ("fit", data, "-o", tmp_path / "m.sad", "--factors", 2)
    assert "lower learning_rate" in ask(*fit, "--learning-rate", 1e30, "--regularization", 0, code=1).output
    assert "needs a validation set" in ask(*fit, "--patience", 2, code=1).output
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]
    ask(*fit, "--iterations", 2)


def test_fit_tells_the_settings_it_used_and_the_epoch_it_kept(write, tmp_path):
    data = write("user,item\n" + "".join(f"{u},{i}\n" for u in range(30) for i in range(u % 5, 20, 3)))
    fit = ("fit", data, "-o", tmp_path / "m.sad", "--factors", 2, "--iterations", 6)
    answer = json.loads(ask(*fit, "--json").stdout)
    assert answer["settings"]["learning_rate"] == 0.15 and answer["epoch"] == 6
    answer = json.loads(ask(*fit, "--validation", 0.3, "--json").stdout)
    history = SAD.load(tmp_path / "m.sad").state.history
    best = max(range(len(history)), key=lambda epoch: history[epoch]["validation_log_likelihood"])
    assert answer["epoch"] == best + 1
    assert answer["figures"]["validation_log_likelihood"] == history[best]["validation_log_likelihood"]
    assert f"epoch {best + 1} of {len(history)}" in ask(*fit, "--validation", 0.3).output


def test_the_kept_epoch_is_the_best_or_the_last():
    assert kept_epoch([]) == (0, {})
    assert kept_epoch([{"a": 1.0}, {"a": 2.0}]) == (2, {"a": 2.0})
    scored = [{"validation_log_likelihood": score} for score in (-2.0, -1.0, -3.0, -1.0)]
    assert kept_epoch(scored)[0] == 2
    assert kept_epoch(scored, "variational")[0] == len(scored)
