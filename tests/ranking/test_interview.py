"""Between which places the items of a visitor's list are."""

from dataclasses import replace

import numpy as np
import pytest

from sadrec import SAD, Comparisons
from sadrec.data import simulate
from sadrec.ranking import places


@pytest.fixture(scope="module")
def visitor():
    people = simulate("sim2", n=300, m=60, k=4, comparisons_per_user=2, seed=3)
    model = SAD.from_factors(people.user_factors, people.item_factors, people.rival_factors)
    answers = Comparisons.from_indices([0, 0, 0], [1, 2, 3], [4, 5, 6], users=["ann"], items=model.items)
    return model.visitor(comparisons=answers)


def test_places_are_those_of_drawn_vectors(visitor):
    items, _ = visitor.recommend("visitor", N=10)
    intervals = places(visitor.state.belief, items, np.arange(60))
    assert (intervals.lower >= 1).all() and (intervals.lower <= intervals.upper).all() and (intervals.upper <= 60).all()
    covariance = visitor.state.belief.user_covariance_of(0)
    drawn = np.random.default_rng(5).multivariate_normal(visitor.user_factors[0], covariance, 4000)
    first = (drawn @ visitor.item_vectors().T).argmax(axis=1)
    assert intervals.first == pytest.approx([(first == item).mean() for item in items], abs=0.05)


def test_the_other_items_are_counted_once(visitor):
    belief, items = visitor.state.belief, np.arange(5)
    alone, again = places(belief, items, np.empty(0, int)), places(belief, items, items[::-1])
    assert alone.first.sum() == pytest.approx(1) and (alone.upper <= 5).all()
    np.testing.assert_array_equal(alone.first, again.first)


def test_own_scores_move_places():
    """They were left out, so that the list and its places disagreed."""
    games = Comparisons.from_pairs([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")] * 3)
    belief = SAD(random_state=0).fit(games).visitor().state.belief
    own = {"own": np.arange(3), "own_mean": np.float32([0, 0, 9]), "own_variance": np.float32([0.1, 0.1, 0.1])}
    moved = places(replace(belief, **own), np.arange(3), np.empty(0, int))
    assert moved.first[2] > 0.99 and moved.upper[2] == 1


def test_items_that_played_little_have_no_certain_place():
    """Only the visitor was uncertain: in a model of one judge each item had one place, whatever it had played."""
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.choice(12, 2, replace=False)) for _ in range(60)]
    model = SAD(random_state=0).fit(Comparisons.from_pairs([(int(i), int(j)) for i, j in pairs]), show_progress=False)
    board = model.leaderboard()
    items = model.state.items.positions(board["item"].to_list())
    intervals = places(model.visitor().state.belief, items, np.empty(0, int))
    assert (
        intervals.upper - intervals.lower >= 0.8 * (board["rank_upper"] - board["rank_lower"]).to_numpy()
    ).mean() > 0.8
    assert intervals.first[0] < 0.9


def test_a_belief_without_the_uncertainty_of_a_vector_is_refused(visitor):
    model = SAD.from_factors([[1.0]], [[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"give the belief of a model.visitor"):
        places(model.state.belief, np.arange(2), np.empty(0, int))
