"""Cycles of wins."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Cycle, Parameters, cycle_through
from sadrec.ranking.belief import Point, Visitor
from sadrec.ranking.cycles import cycles, probable_cycles
from sadrec.ranking.tournament import Tournament, tournament


def _all_cycles(x, members):
    """Every cycle among some items, each from its first item on."""
    for size in range(3, len(members) + 1):
        for path in permutations(members, size):
            if path[0] == min(path) and all(x[i, j] > 0 for i, j in zip(path, path[1:] + path[:1], strict=True)):
                yield path


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_each_cycle_is_the_best_of_its_component(data, games):
    game = data.draw(games)
    x = game.margins
    result = cycles(game)
    for cycle in result:
        members, path = list(cycle.members - 100), list(cycle.path - 100)
        steps = [x[i, j] for i, j in zip(path, path[1:] + path[:1], strict=True)]
        assert list(cycle.margins) == steps
        assert cycle.strength == min(steps) > 0
        assert len(set(path)) == len(path) >= 3
        assert set(path) <= set(members)
        examples = [
            (min(x[i, j] for i, j in zip(p, p[1:] + p[:1], strict=True)), -len(p)) for p in _all_cycles(x, members)
        ]
        assert (cycle.strength, -len(path)) == max(examples)
    assert [c.strength for c in result] == sorted((c.strength for c in result), reverse=True)


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_members_are_strongly_connected_components(data, games):
    game = data.draw(games)
    beats = {(i, j) for i in range(len(game)) for j in range(len(game)) if game.margins[i, j] > 0}
    reach = {i: {i} for i in range(len(game))}
    for _ in range(len(game)):
        for i, j in beats:
            reach[i] |= reach[j]
    expected = {frozenset(j for j in reach[i] if i in reach[j]) for i in reach}
    result = {frozenset(cycle.members - 100) for cycle in cycles(game)}
    assert result == {part for part in expected if len(part) > 1}


def test_rock_paper_scissors(rock_paper_scissors):
    (cycle,) = cycles(tournament(rock_paper_scissors, 0, None, ["rock", "paper", "scissors", "air"]))
    assert list(cycle.members) == ["rock", "paper", "scissors"]
    assert list(cycle.path) == ["rock", "scissors", "paper"]
    assert list(cycle.margins) == [2, 3, 1]
    assert cycle.strength == 1
    np.testing.assert_allclose(cycle.probabilities, 1 / (1 + np.exp([-2, -3, -1])))
    assert repr(cycle).splitlines()[-1].split() == ["paper", "beats", "rock", "by", "1", "(wins", "73", "%)"]


def test_two_games_side_by_side_strongest_first():
    weak = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    x = np.block([[weak, np.full((3, 3), 9.0)], [np.full((3, 3), -9.0), 2 * weak]])
    result = cycles(Tournament(np.array(list("abcdef")), x))
    assert ["".join(sorted(cycle.members)) for cycle in result] == ["def", "abc"]
    assert [cycle.strength for cycle in result] == [2, 1]


def test_a_long_cycle_may_be_stronger_than_a_short_one():
    # 0 > 1 > 2 > 3 > 0 by 5 each; the chords are weak.
    x = np.zeros((4, 4))
    for i in range(4):
        x[i, (i + 1) % 4] = 5
    x[0, 2] = x[1, 3] = 0.1
    (cycle,) = cycles(Tournament(np.arange(4), x - x.T))
    assert list(cycle.path) == [0, 1, 2, 3]
    assert cycle.strength == 5


def test_a_higher_minimum_for_wins_leaves_the_strongest_cycle():
    x = np.array([[0.0, -1, 1, 0.1], [1, 0, -1, 0.1], [-1, 1, 0, -0.1], [-0.1, -0.1, 0.1, 0]])
    game = Tournament(np.arange(4), x)
    assert len(cycles(game)[0].members) == 4
    assert list(cycles(game, minimum=0.5)[0].members) == [0, 1, 2]
    assert cycles(game, minimum=1.0) == []
    with pytest.raises(ValueError, match="minimum"):
        cycles(game, minimum=-1)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), ones=st.booleans())
def test_bpr_has_no_cycles(seed, ones):
    rng = np.random.default_rng(seed)
    eta = rng.standard_normal((40, 7)).astype(np.float32)
    eta[20:] = eta[:20]  # equal items too
    p = Parameters(rng.standard_normal((1, 7)).astype(np.float32), eta, np.ones_like(eta) if ones else None)
    assert cycles(tournament(p, 0, None)) == []


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_one_factor_with_positive_rival_factors_has_no_cycles(seed):
    rng = np.random.default_rng(seed)
    p = Parameters(np.ones((1, 1)), rng.standard_normal((12, 1)), rng.random((12, 1)) + 0.01)
    game = tournament(p, 0, None)
    assert cycles(game) == []
    assert np.array_equal(np.argsort(-game.wins()), np.argsort(-(p.item_factors / p.rival_factors)[:, 0]))


def test_two_factors_can_have_one():
    def result(seed):
        rng = np.random.default_rng(seed)
        p = Parameters(np.ones((1, 2)), rng.standard_normal((3, 2)), rng.random((3, 2)) + 0.01)
        return len(cycles(tournament(p, 0, None)))

    assert sum(map(result, range(200))) > 0


def test_with_one_factor_a_zero_in_tau_makes_a_tie_that_closes_no_cycle():
    p = Parameters(np.ones((1, 1)), np.array([[1.0], [0.0], [-1.0]]), np.array([[0.0], [1.0], [0.0]]))
    game = tournament(p, 0, None)
    assert game.margins[0, 1] > 0
    assert game.margins[1, 2] > 0
    assert game.margins[0, 2] == 0
    assert cycles(game) == []
    assert list(game.smith_set()) == [0, 1, 2]


def test_no_items_no_cycles():
    assert cycles(Tournament(np.empty(0), np.zeros((0, 0)))) == []


def test_a_cycle_through_an_item_is_the_strongest_of_all(games_of_five):
    for game in games_of_five:
        x = game.margins
        for item in game.items:
            paths = [
                (int(item), *rest) for n in (2, 3, 4) for rest in permutations([o for o in range(5) if o != item], n)
            ]
            weakest = [min(x[i, j] for i, j in zip(p, p[1:] + p[:1], strict=True)) for p in paths]
            best = max(weakest)
            cycle = cycle_through(game, item)
            if best <= 0:
                assert cycle is None
            else:
                assert cycle.strength == best and cycle.path[0] == item
                assert len(cycle) == min(len(p) for p, w in zip(paths, weakest, strict=True) if w == best)


@pytest.fixture(scope="module")
def games_of_five():
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (40, 5, 5)).astype(float)
    return [Tournament(np.arange(5), one - one.T) for one in x]


def test_cycle_through_names_an_item_that_does_not_take_part(games_of_five):
    with pytest.raises(ValueError, match="item 7 does not take part"):
        cycle_through(games_of_five[0], 7)


@pytest.fixture
def sure_and_unsure():
    """A cycle of strength 1 among items 0, 1 and 2, and one of strength 1.5 among the others, less certain."""
    users = np.array([[1, 1, 1, 1.5, 1.5, 1.5]])
    model = Parameters(users, np.eye(6), np.eye(6)[[2, 0, 1, 5, 3, 4]])
    return Visitor(model, np.diag([0.01] * 3 + [9.0] * 3))


def test_probable_cycles_come_by_probability_times_strength(sure_and_unsure):
    probable = probable_cycles(sure_and_unsure, 0, np.arange(6))
    assert [cycle.strength for cycle in probable] == [1, 1.5]
    for cycle in probable:
        after = np.roll(cycle.path, -1)
        np.testing.assert_array_equal(cycle.probabilities, sure_and_unsure.probability(0, cycle.path, after))
        assert cycle.probability == sure_and_unsure.together(0, cycle.path, after)


def test_cycles_of_a_point_have_no_probability_and_come_by_strength(sure_and_unsure):
    probable = probable_cycles(Point(sure_and_unsure.parameters), 0, np.arange(6))
    assert [cycle.strength for cycle in probable] == [1.5, 1] and [cycle.probability for cycle in probable] == [
        None,
        None,
    ]


def test_a_cycle_is_printed_step_by_step_with_what_is_known_of_it():
    steps = np.array([2.0, 3.0, 1.0])
    path = np.array(["rock", "scissors", "paper"])
    cycle = Cycle(np.arange(4), path, steps, np.array([0.5, 0.25, 0.75]), 0.125)
    assert len(cycle) == 3 and repr(cycle).splitlines() == [
        "Cycle of strength 1 through 3 of 4 items (12 % sure that all steps hold)",
        "  rock      beats  scissors  by 2      (wins 50 %)",
        "  scissors  beats  paper     by 3      (wins 25 %)",
        "  paper     beats  rock      by 1      (wins 75 %)",
    ]
