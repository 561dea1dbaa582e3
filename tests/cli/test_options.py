"""The options that every command shares: columns, settings, weights and dislikes."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import BPR, SAD, Interactions
from sadrec._core.settings import declared
from sadrec.cli import COMMANDS, main
from sadrec.cli.options import spelled
from sadrec.posterior import GibbsSAD

READS = ("describe", "fit", "tune", "posterior", "evaluate", "compare")
ODD = {"user": "cust", "item": "thing", "rating": "points"}


def ask(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def unusual(tmp_path):
    """Training and test files whose columns have names that nobody knows."""
    rng = np.random.default_rng(0)
    rows = [(f"u{u}", f"i{i}", int(rng.integers(1, 6))) for u in range(20) for i in range(15) if rng.random() < 0.4]
    train, test = Interactions.from_frame(pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")).split()
    for name, part in (("train", train), ("test", test)):
        part.to_frame().rename(ODD).write_csv(tmp_path / f"{name}.csv")
    return tmp_path


COLUMNS = ("--user", "cust", "--item", "thing", "--rating", "points")


@pytest.mark.parametrize("command", READS)
def test_every_command_that_reads_a_file_has_the_same_options(command):
    text = ask(command, "--help").output
    names = "user item rating timestamp weight winner loser left right kind no-header text-ids duplicates ties"
    for option in (f"--{name}" for name in names.split()):
        assert f"{option} " in text or f"/ {option}" in text or f"{option}\n" in text, option


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_has_another_spelling(command):
    text = ask(command, "--help").output
    for option in ("--num-threads", "--random-state", "--n-items", "--progress", "--dataset"):
        assert option not in text


@pytest.mark.parametrize(("command", "model"), [("fit", SAD), ("tune", SAD), ("posterior", GibbsSAD)])
def test_every_setting_is_an_option(command, model):
    text = ask(command, "--help").output
    assert [name for name in declared(model) if f"{spelled(name)} " not in text] == []


def test_a_model_is_evaluated_on_files_with_the_columns_it_was_fitted_with(unusual):
    ask("fit", unusual / "train.csv", "-o", unusual / "m.sad", "--factors", 4, "--iterations", 3, *COLUMNS)
    files = ("--train", unusual / "train.csv", "--test", unusual / "test.csv")
    answer = json.loads(ask("evaluate", unusual / "m.sad", *files, *COLUMNS, "--json").stdout)
    assert answer["left_out"] == {"train": 0, "test": 0} and "m1" in answer["measures"]
    assert "give --train FILE" in ask("evaluate", unusual / "m.sad", *files[2:], *COLUMNS, code=2).output


def test_models_are_compared_on_a_file_with_named_columns(unusual):
    output = ask(
        "compare", unusual / "train.csv", *COLUMNS, "--models", "popularity,ease", "--splits", 1, "--quiet"
    ).output
    assert "Popularity" in output and "EASE" in output
    refusal = ask("compare", unusual / "train.csv", *COLUMNS, "--models", "magic", code=1).output
    assert "there is no model 'magic': there are sad, bpr, " in refusal


def test_a_model_of_comparisons_is_evaluated_on_comparisons(tmp_path):
    (tmp_path / "a.csv").write_text("who,good,bad\nann,tea,ale\nann,ale,gin\nbob,gin,tea\n" * 5)
    (tmp_path / "b.csv").write_text("who,good,bad\nann,tea,gin\nbob,tea,ale\nbob,rum,ale\n")
    columns = ("--user", "who", "--winner", "good", "--loser", "bad")
    ask("fit", tmp_path / "a.csv", "-o", tmp_path / "m.sad", "--factors", 2, *columns)
    answer = json.loads(ask("evaluate", tmp_path / "m.sad", "--test", tmp_path / "b.csv", *columns, "--json").stdout)
    assert answer["left_out"] == {"test": 1} and 0 <= answer["measures"]["accuracy"]["value"] <= 1


def test_text_ids_and_zeros_of_judges_hold_for_comparisons_too(tmp_path):
    (tmp_path / "a.csv").write_text("user,winner,loser\n007,1,2\n7,2,1\n")
    assert json.loads(ask("describe", tmp_path / "a.csv", "--json").stdout)["users"] == 2
    (tmp_path / "b.csv").write_text("user,winner,loser\n5,1,2\n7,2,1\n")
    ask("fit", tmp_path / "b.csv", "-o", tmp_path / "m.sad", "--text-ids", "--factors", 2)
    assert SAD.load(tmp_path / "m.sad").items.tolist() == ["1", "2"]


def fitted(path, *arguments):
    ask("fit", path, "-o", path.with_suffix(".sad"), "--factors", 4, "--iterations", 3, *arguments)
    return SAD.load(path.with_suffix(".sad"))


def test_weights_on_the_command_line_are_those_of_fit(unusual):
    frame = pl.read_csv(unusual / "train.csv").with_columns(w=pl.int_range(pl.len()) % 3)
    frame.write_csv(unusual / "w.csv")
    data = Interactions.from_frame(frame, user="cust", item="thing", rating="points")
    weights = Interactions.from_frame(frame, user="cust", item="thing", rating="w").matrix.data
    expected = SAD(factors=4, iterations=3).fit(data, weights=weights, show_progress=False)
    model = fitted(unusual / "w.csv", *COLUMNS, "--weight", "w")
    np.testing.assert_array_equal(model.user_factors, expected.user_factors)
    plain = fitted(unusual / "w.csv", *COLUMNS)
    assert (plain.user_factors != model.user_factors).any()
    fitted(unusual / "w.csv", *COLUMNS, "--weight", "w", "--validation", 0.2)
    frame.with_columns(w=-pl.col("w")).write_csv(unusual / "w.csv")
    refusal = ask("fit", unusual / "w.csv", "-o", unusual / "x.sad", *COLUMNS, "--weight", "w", code=1).output
    assert "w.csv: line 3 has the weight -1" in refusal and "weights must be finite and not negative" in refusal


def test_dislikes_on_the_command_line_are_those_of_fit(unusual):
    data = Interactions.read(unusual / "train.csv", user="cust", item="thing", rating="points")
    disliked = Interactions.read(unusual / "test.csv", user="cust", item="thing", rating="points")
    for given, value in ((2.5, 2.5), (unusual / "test.csv", disliked)):
        expected = SAD(factors=4, iterations=3).fit(data, dislikes=value, show_progress=False)
        model = fitted(unusual / "train.csv", *COLUMNS, "--dislikes", given)
        np.testing.assert_array_equal(model.user_factors, expected.user_factors)
    fit = ("fit", unusual / "train.csv", "-o", unusual / "x.sad", *COLUMNS)
    assert "neither a number nor a file" in ask(*fit, "--dislikes", "gin", code=2).output


def test_settings_come_from_a_file_and_options_take_their_place(unusual):
    best = unusual / "best.json"
    best.write_text(json.dumps({"model": "bpr", "settings": {"factors": 3, "iterations": 2, "bias": False}}))
    ask("fit", unusual / "train.csv", "-o", unusual / "m.sad", *COLUMNS, "--settings", best, "--factors", 5)
    model = SAD.load(unusual / "m.sad")
    assert type(model) is BPR and (model.factors, model.settings.iterations, model.settings.bias) == (5, 2, False)
    best.write_text(json.dumps({"factors": 3, "magic": 2}))
    refusal = ask("fit", unusual / "train.csv", "-o", unusual / "m.sad", *COLUMNS, "--settings", best, code=1).output
    assert "unknown setting 'magic'" in refusal
    best.write_text("no json")
    refusal = ask("fit", unusual / "train.csv", "-o", unusual / "m.sad", *COLUMNS, "--settings", best, code=1).output
    assert "does not hold settings as JSON" in refusal


def test_bad_settings_are_refused_before_the_file_is_read(tmp_path):
    (tmp_path / "bad.csv").write_text("no,columns\na,b\n")
    refusal = ask("fit", tmp_path / "bad.csv", "-o", tmp_path / "m.sad", "--factors", 0, code=1).output
    assert "factors must be a whole number, at least 1, not 0" in refusal


SLOW = {"numba", "scipy", "polars", "matplotlib", "optuna", "narwhals"}


@pytest.mark.parametrize(
    "code",
    [
        "import sadrec, sadrec.data, sadrec.posterior",
        "from sadrec.cli import main; main(['--help'], standalone_mode=False)",
        *(f"from sadrec.cli import main; main([{name!r}, '--help'], standalone_mode=False)" for name in COMMANDS),
    ],
)
def test_nothing_slow_is_imported_before_it_is_needed(code):
    check = f"import sys; {code}; print('\\n', sorted({SLOW} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "[]"
