"""Orders for a user."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters, rank_tournament
from sadrec.ranking import rank as rank_module
from sadrec.ranking.belief import Gaussian, Point
from sadrec.ranking.rank import METHODS, maximal_lottery, rank_centrality, rank_margins
from sadrec.ranking.tournament import tournament

ROCK, PAPER, SCISSORS, AIR = range(4)


def rank(model, *rest, **named):
    return rank_module.rank(Point(model) if isinstance(model, Parameters) else model, *rest, **named)


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


@pytest.fixture(scope="module")
def fitted():
    """Six items whose margins have parts for single pairs, which change every order."""
    rng = np.random.default_rng(1)
    eta, tau = rng.standard_normal((6, 2)), rng.random((6, 2)) + 0.5
    p = Parameters(rng.standard_normal((2, 2)), eta, tau, rng.standard_normal(6))
    keys, none = np.ravel_multi_index(np.triu_indices(6, 1), (6, 6)), np.zeros((2, 3, 3), np.float32)
    parts = 3 * rng.standard_normal((2, keys.size)).astype(np.float32)
    return Gaussian(p, none, np.zeros((6, 6, 6), np.float32), np.ones((4, 2)), keys, parts[0], parts[1] ** 2, 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_margins_are_ordered_as_what_they_are_of(method, fitted):
    p, items, others = fitted.parameters, [4, 2, 0, 5], {"margin": [1, 3], "liked": [1, 3]}.get(method)
    x = Point(p).margins(1, items, others or items)
    result = rank_margins(x, method, list("abcd"))
    expected = rank(p, 1, items, method, liked=others, reference=others, labels=list("abcd"))
    assert result.items.tolist() == expected.items.tolist() and result.method == method
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


def test_a_method_for_margins_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"one of 'margin'.*'nash', not 'elo'"):
        rank_margins(np.zeros((2, 2)), "elo", [0, 1])


@pytest.mark.parametrize("method", ["margin", "wins", "markov", "nash"])
@pytest.mark.parametrize("items", [None, [4, 2, 0, 5]])
def test_parts_for_single_pairs_count_in_every_order(method, items, fitted):
    result = rank(fitted, 1, items, method)
    x = fitted.margins(1, items, None if method == "margin" else items)
    expected = rank_margins(x, method, np.arange(6) if items is None else items)
    assert result.items.tolist() == expected.items.tolist()
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)
    assert result.items.tolist() != rank(fitted.parameters, 1, items, method).items.tolist()


def test_parts_for_single_pairs_count_against_a_reference_too(fitted):
    result = rank(fitted, 1, [4, 2, 0], reference=[1, 3], labels=list("abc"))
    expected = rank_margins(fitted.margins(1, [4, 2, 0], [1, 3]), "margin", list("abc"))
    assert result.items.tolist() == expected.items.tolist()
    np.testing.assert_array_equal(result.scores, expected.scores)
