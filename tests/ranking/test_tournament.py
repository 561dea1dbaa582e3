"""Every item against every other."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking.pairs import margins
from sadrec.ranking.tournament import Tournament, count_wins, share_beaten, tournament


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_margins_are_the_definition_and_exactly_anti_symmetric(data, parameters, brute_force):
    p = data.draw(parameters)
    x = tournament(p, 0, None).margins
    assert np.array_equal(x, -x.T)
    np.testing.assert_allclose(x, brute_force(p, 0), atol=1e-12)


def test_a_product_in_single_precision_would_not_be_anti_symmetric():
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.standard_normal((50, 64)).astype(np.float32) for _ in range(3)))
    x = margins(p, 0, None, None)
    assert np.diagonal(x).any() or not np.array_equal(x, -x.T)


def test_equal_items_tie_whatever_the_rounding():
    rng = np.random.default_rng(0)
    xi, eta, tau = (rng.standard_normal((6, 100)).astype(np.float32) for _ in range(3))
    eta[:] = eta[0]
    tau[:] = tau[0]
    assert not tournament(Parameters(xi, eta, tau), 0, None).margins.any()


def test_items_that_differ_in_size_alone_tie_whatever_the_rounding():
    rng = np.random.default_rng(0)
    xi, eta, tau = rng.standard_normal((3, 1, 100))
    size = rng.uniform(0.5, 2, (6, 1))
    assert not tournament(Parameters(xi, size * eta, size * tau), 0, None).margins.any()


def test_rival_factors_of_one_are_bpr():
    rng = np.random.default_rng(0)
    xi, eta = rng.standard_normal((1, 40)), rng.standard_normal((30, 40))
    with_ones = tournament(Parameters(xi, eta, np.ones_like(eta)), 0, None)
    without = tournament(Parameters(xi, eta), 0, None)
    np.testing.assert_allclose(with_ones.margins, without.margins, atol=1e-12)
    assert np.array_equal(with_ones.wins(), without.wins())


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_wins_count_who_is_beaten_and_half_of_the_ties(data, parameters, brute_force):
    p = data.draw(parameters)
    x = brute_force(p, 0)
    x[np.abs(x) < 1e-9] = 0
    expected = (x > 0).sum(1) + ((x == 0).sum(1) - 1) / 2
    assert np.array_equal(tournament(p, 0, None).wins(), expected)
    assert np.array_equal(count_wins(p, 0, None), expected)


def test_wins_are_the_same_block_by_block(monkeypatch):
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.standard_normal((50, 4)).astype(np.float32) for _ in range(3)))
    expected = tournament(p, 0, None).wins()
    monkeypatch.setattr("sadrec.ranking.tournament._BLOCK", 7)
    assert np.array_equal(count_wins(p, 0, None), expected)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_share_beaten_is_its_definition(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    rivals = data.draw(st.lists(st.integers(0, p.n_items - 1), min_size=1, unique=True))
    x = brute_force(p, 0)[:, rivals]
    x[np.abs(x) < 1e-9] = 0
    np.testing.assert_allclose(share_beaten(p, 0, None, rivals), ((x > 0) + 0.5 * (x == 0)).mean(1))


def test_share_beaten_needs_somebody_to_beat():
    with pytest.raises(ValueError, match="at least one"):
        share_beaten(Parameters(np.ones((1, 1)), np.ones((2, 1))), 0, None, [])


def _dominating_sets(x):
    everybody = range(len(x))
    subsets = chain.from_iterable(combinations(everybody, size) for size in range(1, len(x) + 1))
    return [set(s) for s in subsets if all(x[i, j] > 0 for i in s for j in everybody if j not in s)]


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_smith_set_is_the_smallest_that_beats_everybody_else(data, games):
    game = data.draw(games)
    expected = min(_dominating_sets(game.margins), key=len, default=set())
    assert set(game.smith_set() - 100) == expected


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_components_are_cut_wherever_a_set_beats_the_rest(data, games):
    game = data.draw(games)
    sizes = np.cumsum([len(part) for part in game.components()])
    assert set(sizes) == {len(s) for s in _dominating_sets(game.margins)}
    assert sorted(np.concatenate([*game.components(), []])) == list(game.items)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_condorcet_winner_beats_all_others(data, games):
    game = data.draw(games)
    expected = [i for i in range(len(game)) if all(game.margins[i, j] > 0 for j in range(len(game)) if j != i)]
    assert game.condorcet_winner() == (game.items[expected[0]] if expected else None)


def test_rock_paper_scissors(rock_paper_scissors):
    game = tournament(rock_paper_scissors, 0, None, ["rock", "paper", "scissors", "air"])
    assert np.array_equal(game.margins, [[0, -1, 2, 1], [1, 0, -3, 1], [-2, 3, 0, 1], [-1, -1, -1, 0]])
    assert game.condorcet_winner() is None
    assert list(game.smith_set()) == ["rock", "paper", "scissors"]
    assert [list(part) for part in game.components()] == [["rock", "paper", "scissors"], ["air"]]
    assert repr(game) == "Tournament of 4 items: no winner over all, 3 in the Smith set"


def test_one_item_wins_over_nobody():
    game = tournament(Parameters(np.ones((1, 1)), np.ones((3, 1))), 0, [2])
    assert game.condorcet_winner() == 2
    assert np.array_equal(game.wins(), [0.0])


def test_no_items_no_winner():
    game = tournament(Parameters(np.ones((1, 1)), np.ones((3, 1))), 0, [])
    assert game.condorcet_winner() is None
    assert len(game.smith_set()) == 0
    assert game.components() == []


def test_an_item_cannot_play_itself():
    with pytest.raises(ValueError, match="twice"):
        tournament(Parameters(np.ones((1, 1)), np.ones((3, 1))), 0, [0, 1, 0])


def test_margins_must_be_anti_symmetric():
    with pytest.raises(ValueError, match="anti-symmetric"):
        Tournament(np.arange(2), np.ones((2, 2)))
    with pytest.raises(ValueError, match="one row per item"):
        Tournament(np.arange(3), np.zeros((2, 2)))


def test_what_is_only_rounding_is_a_tie():
    rng = np.random.default_rng(0)
    eta, tau, scale = rng.standard_normal((1, 5)), rng.random((1, 5)), rng.random((30, 1))
    p = Parameters(rng.standard_normal((1, 5)), scale * eta, scale * tau)  # each item is a multiple of the others
    assert not tournament(p, 0, None).margins.any()
