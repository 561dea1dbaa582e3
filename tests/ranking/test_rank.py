"""Orders for a user."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking.rank import METHODS, maximal_lottery, rank, rank_centrality, rank_tournament
from sadrec.ranking.tournament import tournament

ROCK, PAPER, SCISSORS, AIR = range(4)


def _clean(x):
    return np.where(np.abs(x) < 1e-9, 0.0, x)


def _scores(method, x, items, liked, reference):
    among = x[np.ix_(items, items)]
    if method == "margin":
        return x[np.ix_(items, reference)].mean(1)
    if method == "wins":
        return (among > 0).sum(1) + ((among == 0).sum(1) - 1) / 2
    if method == "liked":
        against = x[np.ix_(items, liked)]
        return ((against > 0) + 0.5 * (against == 0)).mean(1)
    return (rank_centrality if method == "markov" else maximal_lottery)(among)


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_scores_are_those_of_the_method_and_never_increase(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    item = st.integers(0, p.n_items - 1)
    method = data.draw(st.sampled_from(METHODS))
    items, liked, reference = (data.draw(st.lists(item, min_size=1, unique=True)) for _ in range(3))
    order = rank(p, 0, items, method, liked=liked, reference=reference)
    expected = dict(zip(items, _scores(method, _clean(brute_force(p, 0)), items, liked, reference), strict=True))
    assert sorted(order.items) == sorted(items)
    np.testing.assert_allclose(order.scores, [expected[i] for i in order.items], atol=1e-6)
    assert (np.diff(order.scores) <= 0).all()


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), method=st.sampled_from(METHODS), bias=st.booleans())
def test_without_rival_factors_every_method_gives_the_order_of_the_scores(seed, method, bias):
    rng = np.random.default_rng(seed)
    p = Parameters(rng.standard_normal((1, 3)), rng.standard_normal((8, 3)), None, rng.standard_normal(8) * bias)
    scores = p.item_factors @ p.user_factors[0] + p.item_bias
    assert np.array_equal(rank(p, 0, None, method, liked=[1, 4]).items, np.argsort(-scores))


def test_equals_come_in_the_order_given():
    p = Parameters(np.ones((1, 1)), np.zeros((5, 1)), np.ones((5, 1)))
    for method in METHODS:
        assert list(rank(p, 0, [3, 1, 4], method, liked=[0]).items) == [3, 1, 4]


def test_equal_wins_are_ordered_by_margin(rock_paper_scissors):
    # Two wins each: rock's margins add up to 2, scissors' to 2, paper's to -1; air has none.
    assert list(rank(rock_paper_scissors, 0, [AIR, PAPER, SCISSORS, ROCK], "wins").items) == [
        SCISSORS,
        ROCK,
        PAPER,
        AIR,
    ]


def test_equal_shares_of_liked_are_ordered_by_margin():
    p = Parameters(np.ones((1, 1)), np.array([[1.0], [3.0], [2.0], [0.0]]))
    assert list(rank(p, 0, [0, 1, 2], "liked", liked=[3]).items) == [1, 2, 0]


def test_items_without_weight_are_ordered_by_what_they_get_against_the_lottery():
    p = Parameters(np.ones((1, 1)), np.array([[1.0], [3.0], [2.0], [0.0]]))
    order = rank(p, 0, None, "nash")
    assert list(order.items) == [1, 2, 0, 3]
    assert list(order.scores) == [1, 0, 0, 0]


def test_margin_is_against_the_catalogue_by_default(rock_paper_scissors):
    against_all = rank(rock_paper_scissors, 0, [ROCK, PAPER])
    np.testing.assert_allclose(against_all.scores, [0.5, -0.25])
    against_rock = rank(rock_paper_scissors, 0, [ROCK, PAPER], reference=[ROCK])
    assert list(against_rock.items) == [PAPER, ROCK]


def test_labels_take_the_place_of_positions(rock_paper_scissors):
    order = rank(rock_paper_scissors, 0, [AIR, ROCK], "wins", labels=["air", "rock"])
    assert list(order) == ["rock", "air"]
    assert repr(order) == "Ranking of 2 items by wins\n  1.  rock  1\n  2.  air   0"


def test_a_long_ranking_prints_its_head():
    order = rank(Parameters(np.ones((1, 1)), np.ones((30, 1))), 0, None)
    assert repr(order).endswith("... and 10 more")


def test_a_vector_is_a_user():
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.standard_normal((6, 3)) for _ in range(3)))
    for method in METHODS:
        ours = rank(p, p.user_factors[2], None, method, liked=[0])
        assert np.array_equal(ours.items, rank(p, 2, None, method, liked=[0]).items)


def test_nothing_to_rank():
    p = Parameters(np.ones((1, 1)), np.ones((3, 1)), np.ones((3, 1)))
    for method in METHODS:
        assert len(rank(p, 0, [], method, liked=[0])) == 0


def test_one_item():
    p = Parameters(np.ones((1, 1)), np.ones((3, 1)), np.ones((3, 1)))
    for method in METHODS:
        assert list(rank(p, 0, [2], method, liked=[0]).items) == [2]


def test_a_whole_catalogue_is_too_long_for_a_game_but_not_for_wins():
    p = Parameters(np.ones((1, 1)), np.arange(2001.0)[:, None], np.ones((2001, 1)))
    assert len(rank(p, 0, None, "wins")) == 2001
    with pytest.raises(ValueError, match="at most 2000 items, not 2001"):
        rank(p, 0, None, "nash")


def test_what_is_wrong_is_named(rock_paper_scissors):
    with pytest.raises(ValueError, match=r"'margin'.*'nash'.*'elo'"):
        rank(rock_paper_scissors, 0, None, "elo")
    with pytest.raises(ValueError, match="liked"):
        rank(rock_paper_scissors, 0, None, "liked")
    with pytest.raises(ValueError, match="twice"):
        rank(rock_paper_scissors, 0, [1, 1])
    with pytest.raises(ValueError, match="labels"):
        rank(rock_paper_scissors, 0, [1], labels=["a", "b"])
    with pytest.raises(ValueError, match="'liked'"):
        rank_tournament(tournament(rock_paper_scissors, 0, None), "liked")


@pytest.mark.parametrize(("size", "last"), [(20, " 20."), (21, "  ... and 1 more")])
def test_twenty_items_are_shown(size, last):
    p = Parameters(np.ones((1, 1)), np.arange(float(size))[:, None], np.ones((size, 1)))
    assert repr(rank(p, 0, None)).splitlines()[-1].startswith(last)
