"""Whose presence changes who wins, and what beats an item for whom."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sadrec.ranking import Parameters, nemeses, preference, rank_tournament, spoilers
from sadrec.ranking.tournament import Tournament

METHODS = ["margin", "wins", "markov", "nash"]


def random_game(seed, size=6):
    x = np.random.default_rng(seed).normal(size=(size, size))
    return Tournament(np.array([f"item {n}" for n in range(size)]), x - x.T)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_spoiler_changes_the_winner_and_does_not_outrank_whom_it_dethrones(method, seed):
    game = random_game(seed)
    for spoiler in spoilers(game, 4, method):
        place = game.items.tolist().index(spoiler.item)
        without = [n for n in range(4) if n != place]
        orders = [
            rank_tournament(Tournament(game.items[part], game.margins[np.ix_(part, part)]), method).items.tolist()
            for part in (without, [*without, place])
        ]
        assert orders[0][0] == spoiler.winner_without != spoiler.winner_with == orders[1][0] != spoiler.item
        assert orders[1].index(spoiler.item) > orders[1].index(spoiler.winner_without)


@pytest.mark.parametrize("method", METHODS)
def test_there_are_some_in_cyclic_games_and_none_where_scores_rule(method):
    assert sum(len(spoilers(random_game(seed), 4, method)) for seed in range(40)) > 0
    scores = np.random.default_rng(0).normal(size=6)
    assert spoilers(Tournament(np.arange(6), scores[:, None] - scores[None, :]), 4, method) == []


def test_nemeses_are_those_that_most_users_prefer():
    rng = np.random.default_rng(0)
    p = Parameters(rng.normal(size=(50, 4)), rng.normal(size=(30, 4)), rng.random((30, 4)), rng.normal(size=30))
    report = nemeses(p, 7, 5)
    x = preference(p, np.arange(50)[:, None], np.arange(30)[None, :], 7)
    shares = (x > 0).mean(axis=0)
    shares[7] = -1
    assert report.users == 50 and 7 not in report.items
    np.testing.assert_allclose(report.shares, np.sort(shares)[::-1][:5])
    np.testing.assert_allclose(report.shares, shares[report.items])
    np.testing.assert_allclose(report.margins, x.mean(axis=0)[report.items], atol=1e-5)
    few = nemeses(p, 7, 5, items=[1, 2, 7], users=[3, 4])
    assert set(few.items) == {1, 2} and few.users == 2


def test_equals_count_half_and_come_by_margin_and_then_by_position():
    p = Parameters(np.array([[1.0], [-1.0], [0.0], [0.0]]), np.array([[2.0], [0.0], [1.0], [2.0], [0.0]]))
    report = nemeses(p, 1)
    assert report.items.tolist() == [0, 2, 3, 4] and report.shares.tolist() == [0.5] * 4
    raised = Parameters(p.user_factors + 0.5, p.item_factors)
    assert nemeses(raised, 1).items.tolist() == [0, 3, 2, 4] and nemeses(raised, 1, 2).items.tolist() == [0, 3]


def test_ten_nemeses_are_listed_unless_another_number_is_given():
    assert len(nemeses(Parameters(np.ones((1, 1)), np.arange(15.0)[:, None]), 0)) == 10


def test_users_are_counted_in_several_runs(monkeypatch):
    rng = np.random.default_rng(0)
    p = Parameters(rng.normal(size=(50, 4)), rng.normal(size=(30, 4)), rng.random((30, 4)))
    whole = nemeses(p, 7, 30)
    monkeypatch.setattr("sadrec.ranking.slates._NUMBERS", 29 * 7)
    for one, other in zip(
        (whole.shares, whole.margins), (nemeses(p, 7, 30).shares, nemeses(p, 7, 30).margins), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_without_others_or_users_there_is_nothing_to_count():
    p = Parameters(np.ones((1, 1)), np.arange(3.0)[:, None])
    assert len(nemeses(p, 1, items=[1])) == 0
    none = nemeses(p, 1, users=[])
    assert none.users == 0 and none.shares.tolist() == [0.5, 0.5] and not none.margins.any()


def test_a_slate_has_one_item_at_least_and_no_more_than_play():
    game = random_game(0)
    assert spoilers(game, 6) == spoilers(game, 6, "wins")
    for slate in (0, 7):
        with pytest.raises(ValueError, match=f"slate must be a whole number, from 1 to 6, not {slate}"):
            spoilers(game, slate)
    assert spoilers(game, 1) == []  # a third item cannot win between two
