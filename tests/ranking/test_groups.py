"""Slates of the items of a cycle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import recommend_groups
from sadrec.ranking.cycles import cycles
from sadrec.ranking.tournament import Tournament, tournament


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_every_item_is_in_one_group_and_no_group_is_too_large(data, games):
    game = data.draw(games)
    largest = data.draw(st.integers(1, 6))
    groups = recommend_groups(game, largest=largest)
    assert sorted(np.concatenate([*(group.items for group in groups), []])) == list(game.items)
    assert all(1 <= len(group) <= largest for group in groups)
    assert [group.wins for group in groups] == sorted((group.wins for group in groups), reverse=True)


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_without_a_limit_groups_are_the_members_of_cycles(data, games):
    game = data.draw(games)
    groups = recommend_groups(game, largest=None)
    result = {frozenset(group.items): group.strength for group in groups if len(group) > 1}
    assert result == {frozenset(cycle.members): cycle.strength for cycle in cycles(game)}


@settings(deadline=None, max_examples=80)
@given(size=st.integers(0, 9), seed=st.integers(0, 2**32 - 1))
def test_without_ties_a_group_beats_all_later_ones(size, seed):
    x = np.triu(np.random.default_rng(seed).standard_normal((size, size)), 1)
    game = Tournament(np.arange(size), x - x.T)
    groups = recommend_groups(game, largest=None)
    for place, group in enumerate(groups):
        for later in groups[place + 1 :]:
            assert (game.margins[np.ix_(group.items, later.items)] > 0).all()


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_slate_ends_with_the_group_that_reaches_n(data, games):
    game = data.draw(games)
    N = data.draw(st.integers(0, 10))
    sizes = [len(group) for group in recommend_groups(game, N)]
    assert sum(sizes) >= min(N, len(game))
    assert sum(sizes[:-1]) < N or not sizes


def test_rock_paper_scissors_come_together_and_before_air(rock_paper_scissors):
    groups = recommend_groups(tournament(rock_paper_scissors, 0, None, ["rock", "paper", "scissors", "air"]))
    assert [set(group.items) for group in groups] == [{"rock", "paper", "scissors"}, {"air"}]
    assert groups[0].strength == 1
    assert groups[1].strength == 0
    assert repr(groups[1]) == "air   (0 wins)"
    assert "a cycle of strength 1; 2 wins" in repr(groups[0])


def test_a_group_that_is_too_large_keeps_its_strongest_cycle():
    x = np.array([[0.0, -1, 1, 0.1], [1, 0, -1, 0.1], [-1, 1, 0, -0.1], [-0.1, -0.1, 0.1, 0]])
    groups = recommend_groups(Tournament(np.arange(4), x), largest=3)
    assert [set(group.items) for group in groups] == [{0, 1, 2}, {3}]
    assert groups[0].strength == 1


def test_what_is_wrong_is_named(rock_paper_scissors):
    game = tournament(rock_paper_scissors, 0, None)
    with pytest.raises(ValueError, match="largest"):
        recommend_groups(game, largest=0)
    with pytest.raises(ValueError, match="minimum"):
        recommend_groups(game, minimum=float("nan"))
