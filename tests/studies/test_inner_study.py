"""The study that looks at training rows alone, and its simulated worlds."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import Comparisons
from studies.comparisons.inner import ALONE, MODELS, WORDS, cuts_of, inner_command, training_rows, worlds
from studies.comparisons.models import PENALTIES, Parts
from studies.comparisons.study import parts_of


@pytest.fixture
def games():
    rng = np.random.default_rng(0)
    first = rng.integers(12, size=1500)
    second = (first + rng.integers(1, 12, size=1500)) % 12
    low = rng.random(1500) < 0.7
    winner, loser = (
        np.where(low == won, np.minimum(first, second), np.maximum(first, second)) for won in (True, False)
    )
    return Comparisons.from_indices(
        rng.integers(20, size=1500), winner, loser, users=range(20), items=range(12), weight=np.arange(1, 1501)
    )


def test_no_row_that_the_first_split_tests_is_seen(games):
    seen = set(training_rows(games).weight.tolist())
    assert 0.4 * len(games) < len(seen) < 0.6 * len(games)
    for by in ("row", "pairing"):
        assert not seen & set(parts_of(games, 0, by).test.weight.tolist())


def test_cuts_are_made_of_training_rows_and_ask_about_others(games):
    seen = set(training_rows(games).weight.tolist())
    cuts = {cut.name: cut for cut in cuts_of("games", games) if cut.seed == 0}
    assert {"games/1", "games/16", "games, few judges", "games, many judges", "games/4, pairings"} < cuts.keys()
    for cut in cuts.values():
        train, asked = (set(part.weight.tolist()) for part in (cut.train, cut.asked))
        assert train | asked <= seen and not train & asked
    assert len(cuts["games/1"].train) // 4 == len(cuts["games/4"].train)
    apart = cuts["games/1, pairings"]
    assert not set(apart.train.pairings().tolist()) & set(apart.asked.pairings().tolist())
    assert len(np.unique(cuts["games, few judges"].train.user_index)) == 2
    many = cuts["games, many judges"]
    users = np.concatenate((many.train.user_index, many.asked.user_index))
    assert np.bincount(users).max() == WORDS


def test_every_world_says_something():
    for cut in worlds():
        assert len(cut.train) >= 100 and len(cut.asked) > 3000


def test_the_command_tells_where_a_model_is_behind(games, tmp_path):
    (tmp_path / "games").mkdir()
    games.to_frame().drop("weight").write_parquet(tmp_path / "games" / "comparisons.parquet")
    arguments = ["--data", str(tmp_path), "--sets", "games", "--only", "/2", "--models", "frequencies", "--quiet"]
    result = CliRunner().invoke(inner_command, [*arguments, "-o", str(tmp_path / "out")], catch_exceptions=False)
    assert "| games/2 |" in result.output and "games/4" not in result.output
    assert "| BT | BT alone | frequencies | behind BT or a coin | behind BT alone or a coin |" in result.output
    assert (tmp_path / "out" / "inner.md").read_text() in result.output
    assert pl.read_parquet(tmp_path / "games" / "comparisons.parquet").height == 1500


def test_bt_alone_does_not_see_what_is_asked_about(games):
    train, asked = games.split(test=0.5, seed=0)
    predict, chosen = MODELS[ALONE].fit(Parts(train, asked, asked), 0)
    assert chosen["penalty"] in PENALTIES
    again, _ = MODELS[ALONE].fit(Parts(train, train, train), 0)
    np.testing.assert_array_equal(predict(asked), again(asked))
    assert np.log(predict(asked)).mean() > np.log(0.5) + 0.05
