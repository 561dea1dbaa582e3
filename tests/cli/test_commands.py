"""The command line as a person uses it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec.cli import main


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"u{u}", f"i{i}", int(rng.integers(1, 6))) for u in range(20) for i in range(15) if rng.random() < 0.4]
    path = tmp_path / "ratings.csv"
    pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row").write_csv(path)
    return path


@pytest.fixture
def model(ratings, tmp_path):
    path = tmp_path / "m.sad"
    ask("fit", ratings, "-o", path, "--factors", 4, "--iterations", 3)
    return path


def ask(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def refused(*arguments, code=1):
    output = ask(*arguments, code=code)
    assert "Traceback" not in output
    return output


def test_help_names_every_command():
    output = ask("--help")
    for command in ("demo", "describe", "fit", "recommend", "prefer", "cycles", "explain", "similar", "study"):
        assert command in output


def test_describe_shows_the_counts(ratings):
    assert "users     19" in ask("describe", ratings)
    assert json.loads(ask("describe", ratings, "--json"))["users"] == 19


def test_fit_writes_a_model_and_cleans_up(ratings, tmp_path):
    output = ask("fit", ratings, "-o", tmp_path / "out.sad", "--factors", 4, "--iterations", 3, "--adaptive")
    assert "SAD with 4 factors" in output
    assert SAD.load(tmp_path / "out.sad").settings.adaptive
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.sad", "ratings.csv"]


def test_fit_as_json_and_bpr(ratings, tmp_path):
    answer = json.loads(ask("fit", ratings, "-o", tmp_path / "b.sad", "--model", "bpr", "--iterations", 2, "--json"))
    assert answer["figures"]["updates"] > 0
    assert type(SAD.load(tmp_path / "b.sad")).__name__ == "BPR"


def test_fit_with_a_validation_share(ratings, tmp_path):
    output = ask("fit", ratings, "-o", tmp_path / "v.sad", "--iterations", 5, "--validation", 0.2, "--patience", 2)
    assert "validation_accuracy" in output


def test_fit_takes_comparisons(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("user,winner,loser\nann,tea,ale\nbob,ale,gin\nann,gin,tea\n")
    ask("fit", path, "-o", tmp_path / "c.sad", "--factors", 2)
    assert set(SAD.load(tmp_path / "c.sad").items) == {"tea", "ale", "gin"}


def test_recommend_leaves_out_what_was_seen(model):
    answer = json.loads(ask("recommend", model, "--user", "u3", "-n", 4, "--json"))
    fitted = SAD.load(model)
    seen = set(fitted.items[fitted.seen[fitted.user_ids.positions("u3")].indices])
    assert len(answer["items"]) == 4 and not set(answer["items"]) & seen
    assert "mean margin" in ask("recommend", model, "--user", "u3")


def test_prefer_agrees_with_the_model(model):
    answer = json.loads(ask("prefer", model, "--user", "u1", "i2", "i3", "--json"))
    assert answer["preference"] == SAD.load(model).preference("u1", "i2", "i3")
    text = ask("prefer", model, "--user", "u1", "i2", "i3")
    assert ("prefers i2 to i3" in text) == (answer["preference"] > 0)


def test_recommendations_for_all_users_go_to_a_file(model, tmp_path):
    ask("recommend", model, "--all", "-o", tmp_path / "all.parquet", "-n", 4)
    frame = pl.read_parquet(tmp_path / "all.parquet")
    fitted = SAD.load(model)
    assert frame.columns == ["user", "rank", "item", "score"] and frame["user"].n_unique() == len(fitted.users)
    mine = frame.filter(pl.col("user") == "u3").sort("rank")
    assert mine["item"].to_list() == fitted.recommend("u3", N=4)[0].tolist()
    assert "give --user ID, or --all" in refused("recommend", model, code=2)


def test_circles_reasons_and_neighbours_agree_with_the_model(model, tmp_path):
    fitted = SAD.load(model)
    answer = json.loads(ask("cycles", model, "--user", "u1", "-n", 10, "--json"))
    assert len(answer["cycles"]) == len(fitted.cycles("u1", N=10))
    assert answer["intransitivity"] == pytest.approx(fitted.intransitivity("u1"))
    assert "favourites of u1" in ask("cycles", model, "--user", "u1", "--plot", tmp_path / "ring.png")
    assert (tmp_path / "ring.png").read_bytes()[:4] == b"\x89PNG"
    reason = json.loads(ask("explain", model, "--user", "u1", "i2", "i3", "--json"))
    assert sum(reason["contributions"]) == pytest.approx(fitted.preference("u1", "i2", "i3"))
    assert "i2 over i3" in ask("explain", model, "--user", "u1", "i2", "i3")
    near = json.loads(ask("similar", model, "--item", "i2", "-n", 3, "--json"))
    assert near["ids"] == fitted.similar_items("i2", 3)[0].tolist()
    assert "u2" in ask("similar", model, "--user", "u2")
    assert "give --item ID or --user ID" in refused("similar", model, code=2)
    for method in ("wins", "liked", "markov", "nash"):
        assert method in ask("recommend", model, "--user", "u1", "--method", method)
    assert "wins" in ask("recommend", model, "--user", "u1", "--groups")


def test_user_errors_are_one_line(model, ratings, tmp_path):
    assert "unknown user 'nobody'" in refused("recommend", model, "--user", "nobody")
    assert "unknown item 'x'" in refused("prefer", model, "--user", "u1", "x", "i2")
    assert "factors must be" in refused("fit", ratings, "-o", tmp_path / "x.sad", "--factors", 0)
    assert "BPR has no rival factors" in refused("fit", ratings, "-o", "x", "--model", "bpr", "--adaptive", code=2)
    assert "cannot be read" in refused("recommend", ratings, "--user", "u1")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert "Error" in refused("fit", empty, "-o", tmp_path / "x.sad")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    assert "Error" in refused("fit", wrong, "-o", tmp_path / "x.sad", "--user", "person")
    assert not (tmp_path / "x.sad").exists()
    refused("recommend", tmp_path / "none.sad", "--user", "u1", code=2)


def test_ctrl_c_keeps_what_was_computed_and_the_same_command_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((400, 500)) < 0.1)
    pl.DataFrame({"user": user, "item": item}).write_csv(tmp_path / "d.csv")
    start = [sys.executable, "-m", "sadrec", "fit", "d.csv", "--iterations", "600", "--factors", "32", "-o"]
    subprocess.run([*start, "w.sad"], cwd=tmp_path, env=os.environ, check=True)
    command = [*start, "m.sad"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=os.environ)
    folder = tmp_path / "m.sad.checkpoint"
    while not folder.exists():
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Run the same command again" in errors
    assert not (tmp_path / "m.sad").exists() and any(folder.iterdir())
    subprocess.run(command, cwd=tmp_path, env=os.environ, check=True)
    assert not folder.exists()
    one, two = SAD.load(tmp_path / "w.sad"), SAD.load(tmp_path / "m.sad")
    np.testing.assert_array_equal(one.user_factors, two.user_factors)
