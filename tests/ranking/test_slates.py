"""Whose presence changes who wins, and what beats an item for whom."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking.pairs import preference
from sadrec.ranking.rank import rank_tournament
from sadrec.ranking.slates import nemeses, spoilers
from sadrec.ranking.tournament import Tournament

METHODS = ["margin", "wins", "markov", "nash"]


def random_game(seed, size=6):
    x = np.random.default_rng(seed).normal(size=(size, size))
    return Tournament(np.array([f"item {n}" for n in range(size)]), x - x.T)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_spoiler_changes_the_winner_and_does_not_outrank_whom_it_dethrones(method, seed):
    game = random_game(seed)
    for found in spoilers(game, 4, method):
        place = game.items.tolist().index(found.item)
        without = [n for n in range(4) if n != place]
        orders = [
            rank_tournament(Tournament(game.items[part], game.margins[np.ix_(part, part)]), method).items.tolist()
            for part in (without, [*without, place])
        ]
        assert orders[0][0] == found.winner_without != found.winner_with == orders[1][0] != found.item
        assert orders[1].index(found.item) > orders[1].index(found.winner_without)


@pytest.mark.parametrize("method", METHODS)
def test_there_are_some_in_cyclic_games_and_none_where_scores_rule(method):
    assert sum(len(spoilers(random_game(seed), 4, method)) for seed in range(40)) > 0
    scores = np.random.default_rng(0).normal(size=6)
    assert spoilers(Tournament(np.arange(6), scores[:, None] - scores[None, :]), 4, method) == []


def test_nemeses_are_those_that_most_users_prefer():
    rng = np.random.default_rng(0)
    p = Parameters(rng.normal(size=(50, 4)), rng.normal(size=(30, 4)), rng.random((30, 4)), rng.normal(size=30))
    found = nemeses(p, 7, 5)
    x = preference(p, np.arange(50)[:, None], np.arange(30)[None, :], 7)
    shares = (x > 0).mean(axis=0)
    shares[7] = -1
    assert found.users == 50 and 7 not in found.items
    np.testing.assert_allclose(found.shares, np.sort(shares)[::-1][:5])
    np.testing.assert_allclose(found.shares, shares[found.items])
    np.testing.assert_allclose(found.margins, x.mean(axis=0)[found.items], atol=1e-5)
    few = nemeses(p, 7, 5, items=[1, 2, 7], users=[3, 4])
    assert set(few.items) == {1, 2} and few.users == 2
