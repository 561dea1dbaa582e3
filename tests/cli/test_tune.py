"""``sadrec tune``: settings for ``sadrec fit``, and how an interrupted search goes on."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import BPR, SAD
from sadrec.cli import main


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"u{u}", f"i{i}") for u in range(30) for i in range(20) if rng.random() < 0.4]
    pl.DataFrame(rows, schema=["cust", "thing"], orient="row").write_csv(tmp_path / "d.csv")
    return tmp_path / "d.csv"


COLUMNS = ("--user", "cust", "--item", "thing")


def ask(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize("sampler", ["grid", "random", "tpe"])
def test_what_tune_writes_is_what_fit_takes(ratings, sampler):
    if sampler == "tpe":
        pytest.importorskip("optuna")
    best, model = ratings.with_name("best.json"), ratings.with_name("m.sad")
    what = ("--try", "factors=2,3", "--try", "regularization=0.01,0.1", "--iterations", 2, "--trials", 4)
    answer = ask("tune", ratings, "-o", best, *COLUMNS, "--sampler", sampler, *what, "--quiet", "--json")
    report = json.loads(answer.stdout)
    assert set(report["settings"]) == {"factors", "regularization"} and report["metric"] == "ndcg@10"
    ask("fit", ratings, "-o", model, *COLUMNS, "--settings", best, "--quiet")
    fitted = SAD.load(model)
    assert fitted.factors == report["settings"]["factors"]
    assert fitted.settings.regularization == report["settings"]["regularization"]
    assert fitted.settings.iterations == 2


def test_tuning_of_bpr_and_of_comparisons(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("user,winner,loser\n" + "ann,tea,ale\nbob,ale,gin\nann,gin,tea\nbob,tea,gin\n" * 10)
    what = ("--try", "factors=2,3", "--sampler", "grid", "--model", "bpr", "--iterations", 2, "--quiet")
    output = ask("tune", path, "-o", tmp_path / "best.json", *what).output
    assert "log_loss" in output and "after 2 trials" in output
    ask("fit", path, "-o", tmp_path / "m.sad", "--settings", tmp_path / "best.json", "--quiet")
    assert type(SAD.load(tmp_path / "m.sad")) is BPR


def test_finished_trials_are_kept_and_a_larger_number_adds_to_them(ratings):
    best = ratings.with_name("best.json")
    tune = ("tune", ratings, "-o", best, *COLUMNS, "--sampler", "random", "--try", "factors=2,3,4,5,6", "--iterations",
            1, "--quiet", "--json", "--trials")  # fmt: skip
    first = json.loads(ask(*tune, 2).stdout)["trials"]
    trials = json.loads(ask(*tune, 4).stdout)["trials"]
    assert [trial["seconds"] for trial in trials[:2]] == [trial["seconds"] for trial in first]
    assert len(trials) == 4 and ratings.with_name("best.json.trials").is_dir()


def test_ctrl_c_says_how_to_go_on(ratings, monkeypatch):
    def interrupted(self, *arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(SAD, "fit", interrupted)
    tune = ("tune", ratings, "-o", ratings.with_name("best.json"), *COLUMNS, "--sampler", "random", "--quiet")
    assert "Run the same command again" in ask(*tune, "--trials", 2, code=130).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sampler", "grid"], "--sampler grid needs what to try"),
        (["--try", "magic=1"], "it must be NAME=VALUES, with one of factors"),
        (["--try", "factors"], "it must be NAME=VALUES"),
        (["--try", "factors=a"], "'a' does not fit: whole number, at least 1"),
        (["--try", "bias=perhaps"], "'perhaps' does not fit"),
        (["--try", "schedule=linear,odd"], "'odd' does not fit"),
    ],
)
def test_what_cannot_be_tried_is_refused(ratings, arguments, message):
    refusal = ask("tune", ratings, "-o", "best.json", *COLUMNS, *arguments, code=2)
    assert message in " ".join(refusal.output.split())
