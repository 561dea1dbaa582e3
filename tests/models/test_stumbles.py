"""What a new user stumbles on: names of settings, the kind of a table, two numbers for one probability."""

import numpy as np
import polars as pl
import pytest

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec.data import as_feedback
from sadrec.evaluation import EASE, Popularity
from sadrec.posterior import GibbsSAD
from sadrec.ranking import cyclic_triads, recommend_groups

GAMES = pl.DataFrame({"judge": [1, 1, 2, 2], "winner": list("abca"), "loser": list("bcab")})


@pytest.mark.parametrize("model", [SAD, BPR, GibbsSAD, EASE, Popularity])
def test_an_unknown_setting_is_named_with_the_model_and_what_it_has(model):
    with pytest.raises(TypeError, match=rf"^unknown setting 'colour': {model.__name__} has ") as raised:
        model(colour=3)
    assert "__init__" not in str(raised.value)
    with pytest.raises(ValueError, match=rf"^unknown setting 'colour': {model.__name__} has "):
        model().set_params(colour=3)


def test_a_misspelt_setting_is_guessed():
    with pytest.raises(TypeError, match="unknown setting 'factor': did you mean 'factors'"):
        SAD(factor=3)
    with pytest.raises(TypeError, match="SAD takes factors without a name, and 2 values are given"):
        SAD(3, 10)


def test_a_model_with_a_constructor_of_its_own_takes_what_that_takes():
    class Small(SAD):
        def __init__(self, size):
            super().__init__(factors=size)

    assert Small(size=3).factors == 3


@pytest.mark.parametrize("form", ["polars", "pandas", "csv", "parquet"])
def test_a_table_with_winners_and_losers_is_fitted_as_comparisons(tmp_path, form):
    data = GAMES
    if form == "pandas":
        data = GAMES.to_pandas()
    elif form != "polars":
        data = tmp_path / f"games.{form}"
        GAMES.write_csv(data) if form == "csv" else GAMES.write_parquet(data)
    model = SAD(factors=2).fit(data, show_progress=False)
    same = SAD(factors=2).fit(Comparisons.from_frame(GAMES), show_progress=False)
    assert model.items.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.user_factors, same.user_factors)


def test_other_tables_are_interactions():
    assert isinstance(as_feedback(pl.DataFrame({"user": [1], "item": [2], "label": [1]})), Interactions)
    assert isinstance(as_feedback(np.eye(3)), Interactions)


def test_one_column_has_one_role():
    with pytest.raises(ValueError, match="the column 'winner' is given for the user and for the winner"):
        Comparisons.from_frame(GAMES, user="winner")
    with pytest.raises(ValueError, match="the column 'item' is given for the user and for the item"):
        Interactions.from_frame(pl.DataFrame({"user": [1], "item": [2]}), user="item")


def test_cycles_and_explanations_show_the_probability_that_the_model_gives():
    rng = np.random.default_rng(0)
    winner = rng.integers(0, 5, 300)
    games = pl.DataFrame({"user": rng.integers(0, 4, 300), "winner": winner, "loser": (winner + 1 + (winner > 2)) % 5})
    sure = SAD(factors=3).fit(games, show_progress=False)
    assert sure.settings.solver == "variational"
    plain = SAD.from_factors([[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    for model in (sure, plain):
        user = model.users[0]
        cycles = model.cycles(user)
        assert cycles
        for cycle in cycles:
            after = np.roll(cycle.path, -1)
            np.testing.assert_array_equal(cycle.probabilities, model.probability(user, cycle.path, after))
            np.testing.assert_allclose(cycle.margins, model.preference(user, cycle.path, after), rtol=1e-5)
        first, second = model.items[:2]
        reason = model.explain(user, first, second)
        assert reason.probability == model.probability(user, first, second)
        assert f"({100 * reason.probability:.0f} %)" in str(reason)


def test_ids_that_would_move_the_cursor_are_spelled_out():
    names = ["tea\n", "ale\x1b[31m", "gin\r"]
    model = SAD.from_factors(
        [[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], users=["a\nb"], items=names
    )
    table = model.tournament("a\nb")
    shown = [*model.cycles("a\nb"), model.explain("a\nb", *names[:2]), *recommend_groups(table)]
    shown += [cyclic_triads(table), model.rank("a\nb")]
    for text in map(str, shown):
        assert all(line.isprintable() for line in text.split("\n"))
        assert r"tea\n" in text or "tea" not in text
