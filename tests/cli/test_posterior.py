"""``sadrec posterior`` on the command line."""

import json
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec.cli import main
from sadrec.posterior import GibbsSAD

QUICK = ["--draws", "60", "--warmup", "40", "--chains", "2", "--factors", "2", "--quiet"]


@pytest.fixture
def games(tmp_path):
    path = tmp_path / "games.csv"
    rounds = [("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")] * 15
    frame = {"judge": ["ann"] * 45, "won": [w for w, _ in rounds], "lost": [loser for _, loser in rounds]}
    pl.DataFrame(frame).write_csv(path)
    return str(path)


COLUMNS = ["--user", "judge", "--winner", "won", "--loser", "lost"]


def run(*arguments):
    return CliRunner().invoke(main, ["posterior", *arguments])


def test_a_cycle_is_shown(games):
    result = run(games, *COLUMNS, *QUICK)
    assert result.exit_code == 0, result.output
    assert "rank interval" in result.output
    assert "Cycles with a probability" in result.output


def test_json_holds_everything(games):
    result = run(games, *COLUMNS, *QUICK, "--json", "--judge", "ann")
    report = json.loads(result.output)
    assert {row["item"] for row in report["leaderboard"]} == {"rock", "paper", "scissors"}
    assert report["cycles"][0]["probability"] > 0.9
    assert report["draws"] == 120


def test_a_saved_posterior_can_be_asked_again(games, tmp_path):
    saved = str(tmp_path / "games.posterior")
    first = run(games, *COLUMNS, *QUICK, "--json", "-o", saved)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games.csv", "games.posterior"]
    refused = run(saved, "--factors", "9")
    assert refused.exit_code == 2 and "--factors says how to sample" in refused.output
    again = run(saved, "--json")
    assert json.loads(first.output)["leaderboard"] == json.loads(again.output)["leaderboard"]


def test_a_saved_posterior_is_known_by_its_content(games, tmp_path):
    saved, table = tmp_path / "sampled", tmp_path / "table.posterior"
    assert run(games, *COLUMNS, *QUICK, "-o", str(saved)).exit_code == 0
    again = run(str(saved), "--json")
    assert again.exit_code == 0, again.output
    result = CliRunner().invoke(main, ["evaluate", str(saved), "--test", games, *COLUMNS, "--json"])
    assert result.exit_code == 0, result.output
    table.write_bytes(Path(games).read_bytes())
    assert run(str(table), *COLUMNS, *QUICK).exit_code == 0


def test_a_posterior_and_a_model_do_not_replace_each_other(games, tmp_path):
    SAD.from_factors([[1.0]], [[2.0], [0.5]]).save(tmp_path / "model")
    GibbsSAD(factors=1, chains=1, draws=2, warmup=1).fit([("a", "b")], show_progress=False).save(tmp_path / "posterior")
    for command, file, kind in (("fit", "posterior", "model"), ("posterior", "model", "posterior")):
        before = (tmp_path / file).read_bytes()
        result = CliRunner().invoke(main, [command, games, *COLUMNS, "--quiet", "-o", str(tmp_path / file)])
        assert result.exit_code == 2 and f"exists but is not a sadrec {kind}" in result.output
        assert (tmp_path / file).read_bytes() == before


def test_interactions_are_recognised(tmp_path):
    path = tmp_path / "seen.csv"
    pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]}).write_csv(path)
    result = run(str(path), *QUICK, "--json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.output)["leaderboard"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--factors", "0"], "factors must be"),
        (["--judge", "bob"], "unknown user"),
        (["--item", "won"], "--item does not go with comparisons"),
        (["--user-scale", "wide"], "neither a number"),
        (["--level", "2"], "level must be"),
        (["--least", "7"], "least must be"),
    ],
)
def test_errors_are_one_line(games, arguments, message):
    result = run(games, *COLUMNS, *QUICK, *arguments)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("arguments", [["--judge", "bob"], ["--level", "2"], ["--least", "7"]])
def test_what_cannot_be_answered_is_refused_before_the_sampling(games, tmp_path, arguments):
    result = run(games, *COLUMNS, *QUICK, "-o", str(tmp_path / "games.posterior"), *arguments)
    assert result.exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["games.csv"]


def test_a_user_may_be_a_date(tmp_path):
    path = tmp_path / "days.parquet"
    days = [date(2024, 5, 31), date(2024, 6, 1)]
    pl.DataFrame({"user": days, "winner": ["a", "b"], "loser": ["b", "c"]}).write_parquet(path)
    result = run(str(path), *QUICK, "--judge", "2024-06-01")
    assert result.exit_code == 0, result.output
    assert "is not a date" in run(str(path), *QUICK, "--judge", "tomorrow").output


def test_ctrl_c_shows_what_the_draws_so_far_say(games, monkeypatch, interrupt_after):
    interrupt_after(monkeypatch, 50, KeyboardInterrupt())
    result = run(games, *COLUMNS, *QUICK)
    assert result.exit_code == 0, result.output
    assert "Interrupted" in result.output
    assert "20 draws." in result.output


def test_ctrl_c_leaves_a_checkpoint_that_the_same_command_continues(games, tmp_path, monkeypatch, interrupt_after):
    saved = tmp_path / "games.posterior"
    whole = run(games, *COLUMNS, *QUICK, "--json")
    with monkeypatch.context() as patch:
        interrupt_after(patch, 50, KeyboardInterrupt())
        result = run(games, *COLUMNS, *QUICK, "-o", str(saved))
    assert result.exit_code == 130
    assert not saved.exists()
    again = run(games, *COLUMNS, *QUICK, "-o", str(saved), "--json")
    assert json.loads(again.output)["leaderboard"] == json.loads(whole.output)["leaderboard"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games.csv", "games.posterior"]


def test_a_saved_posterior_is_evaluated(games, tmp_path):
    kept = str(tmp_path / "games.posterior")
    assert run(games, *COLUMNS, *QUICK, "-o", kept).exit_code == 0
    result = CliRunner().invoke(main, ["evaluate", kept, "--test", games, *COLUMNS, "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout[result.stdout.index("{") :])
    assert "log_loss" in json.dumps(report)


def test_its_settings_are_tuned_and_taken(games, tmp_path):
    best = str(tmp_path / "best.json")
    tries = ["--try", "factors=1,2", "--try", "draws=20", "--try", "warmup=20", "--try", "chains=1"]
    command = ["tune", games, "-o", best, "--model", "gibbs", "--sampler", "grid", *tries, *COLUMNS, "--quiet"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    result = run(games, *COLUMNS, "--settings", best, "--quiet", "--json", "--chains", "2")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["draws"] == 40  # 20 of each chain


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"model": "sad", "settings": {}}', "does not hold the settings of GibbsSAD, but of 'sad'"),
        ('{"learning_rate": 0.1}', "unknown setting 'learning_rate': GibbsSAD has factors"),
    ],
)
def test_settings_of_another_model_are_refused(games, tmp_path, content, message):
    other = tmp_path / "other.json"
    other.write_text(content)
    result = run(games, *COLUMNS, "--settings", str(other))
    assert result.exit_code != 0
    assert message in result.output
