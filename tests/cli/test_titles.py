"""Every command that prints items shows titles, and can be asked by them."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec.cli import main
from tests.data.test_items import game


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a model of a game and the titles of its items, one of which has none."""
    monkeypatch.chdir(tmp_path)
    game().save("game.sad")
    pl.DataFrame({"item": [10, 20, 30], "title": ["rock", "paper", "scissors"]}).write_csv("items.csv")
    return tmp_path


def run(*words, fails=False):
    result = CliRunner().invoke(main, [*words])
    assert (result.exit_code != 0) == fails, result.output
    return result.output


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("recommend", "game.sad", "--user", "ann"), "scissors"),
        (("recommend", "game.sad", "--user", "ann", "--groups"), "rock | "),
        (("prefer", "game.sad", "--user", "ann", "10", "30"), "ann prefers rock to scissors"),
        (("prefer", "game.sad", "--user", "ann", "Rock", "scissors"), "ann prefers rock to scissors"),
        (("cycles", "game.sad", "--user", "ann"), "rock      beats  scissors"),
        (("explain", "game.sad", "--user", "ann", "rock", "40"), "rock over 40"),
        (("similar", "game.sad", "--item", "rock"), "rock"),
    ],
)
def test_titles_are_shown(place, words, shown):
    assert shown in run(*words, "--titles", "items.csv")
    content = json.loads(run(*words, "--titles", "items.csv", "--json"))
    assert (content[0] if isinstance(content, list) else content)["titles"]["10"] == "rock"


def test_a_table_has_both_ids_and_titles(place):
    first = run("recommend", "game.sad", "--user", "ann", "--titles", "items.csv").splitlines()
    assert first[0].split() == ["rank", "item", "title", "mean", "margin"]
    assert "title" not in run("recommend", "game.sad", "--user", "ann")


@pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
def test_lists_for_everybody_have_titles(place, name):
    run("recommend", "game.sad", "--all", "-o", name, "--titles", "items.csv")
    frame = pl.read_csv(name) if name.endswith("csv") else pl.read_parquet(name)
    assert frame.columns == ["user", "rank", "item", "title", "score"]
    assert set(frame["title"].cast(pl.String)) == {"rock", "paper", "scissors", "40"}


def test_a_table_of_other_items_is_refused(place):
    pl.DataFrame({"item": ["tt01"], "title": ["Toy Story"]}).write_csv("films.csv")
    output = run("recommend", "game.sad", "--user", "ann", "--titles", "films.csv", fails=True)
    assert "names none of the model's items, such as 10: it has ids such as tt01" in output


def test_a_title_of_two_items_is_refused(place):
    pl.DataFrame({"item": [10, 20, 30], "title": ["rock", "rock", "scissors"]}).write_csv("items.csv")
    output = run("prefer", "game.sad", "--user", "ann", "rock", "scissors", "--titles", "items.csv", fails=True)
    assert "2 items are called 'rock'" in output


def test_an_id_comes_before_a_title(place):
    SAD.from_factors([[1.0]], [[2.0], [1.0]], users=["ann"], items=["tea", "ale"]).save("drinks.sad")
    pl.DataFrame({"item": ["tea", "ale"], "title": ["ale", "beer"]}).write_csv("drinks.csv")
    content = json.loads(run("prefer", "drinks.sad", "--user", "ann", "ale", "tea", "--titles", "drinks.csv", "--json"))
    assert (content["item"], content["rival"]) == ("ale", "tea")


def test_the_posterior_shows_titles(place):
    rng = np.random.default_rng(0)
    winner = rng.choice([10, 20, 30], 60)
    loser = np.where(winner == 30, 10, winner + 10)
    pl.DataFrame({"user": "ann", "winner": winner, "loser": loser}).write_csv("said.csv")
    quick = ("--draws", "20", "--warmup", "20", "--chains", "1", "--factors", "2", "--quiet")
    assert "scissors" in run("posterior", "said.csv", *quick, "--titles", "items.csv")


def test_a_title_that_nobody_has_is_said_with_those_like_it(place):
    near = run("prefer", "game.sad", "--user", "ann", "scisors", "rock", "--titles", "items.csv", fails=True)
    assert "no item is called 'scisors': did you mean 'scissors'?" in near
    assert "give --titles TABLE" in run("prefer", "game.sad", "--user", "ann", "rock", "paper", fails=True)
