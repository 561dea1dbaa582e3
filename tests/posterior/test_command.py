"""``sadrec posterior`` on the command line."""

import json

import polars as pl
import pytest
from click.testing import CliRunner

from sadrec.posterior.command import posterior_command

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
    return CliRunner().invoke(posterior_command, [*arguments])


def test_a_circle_is_found_and_shown(games):
    found = run(games, *COLUMNS, *QUICK)
    assert found.exit_code == 0, found.output
    assert "rank interval" in found.output
    assert "Circles with a probability" in found.output


def test_json_holds_everything(games):
    found = run(games, *COLUMNS, *QUICK, "--json", "--for", "ann")
    report = json.loads(found.output)
    assert {row["item"] for row in report["ranking"]} == {"rock", "paper", "scissors"}
    assert report["circles"][0]["probability"] > 0.9
    assert report["draws"] == 120


def test_a_saved_posterior_can_be_asked_again(games, tmp_path):
    saved = str(tmp_path / "games.posterior")
    first = run(games, *COLUMNS, *QUICK, "--json", "-o", saved)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games.csv", "games.posterior"]
    again = run(saved, "--json")
    assert json.loads(first.output)["ranking"] == json.loads(again.output)["ranking"]


def test_interactions_are_recognised(tmp_path):
    path = tmp_path / "seen.csv"
    pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]}).write_csv(path)
    found = run(str(path), *QUICK, "--json")
    assert found.exit_code == 0, found.output
    assert len(json.loads(found.output)["ranking"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--factors", "0"], "factors must be"),
        (["--for", "bob"], "unknown user"),
        (["--item", "won"], "--item does not go with comparisons"),
        (["--user-scale", "wide"], "neither a number"),
        (["--level", "2"], "level must be"),
    ],
)
def test_errors_are_one_line(games, arguments, message):
    found = run(games, *COLUMNS, *QUICK, *arguments)
    assert found.exit_code != 0
    assert message in found.output
    assert "Traceback" not in found.output
