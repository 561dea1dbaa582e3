"""Why this item rather than that one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters, preference
from sadrec.ranking.explain import Explanation, explain
from sadrec.ranking.fold_in import fold_in, liked_pairs, pair_design
from sadrec.ranking.logistic import maximise


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_contributions_add_up_to_the_preference_to_the_last_bit(data, some_parameters):
    p = data.draw(some_parameters)
    u, i, j = (data.draw(st.integers(0, n - 1)) for n in (p.n_users, p.n_items, p.n_items))
    why = explain(p, u, i, j)
    assert why.contributions.sum() == why.margin == preference(p, u, i, j)
    assert why.has_bias == (p.item_bias is not None)
    if why.has_bias:
        assert why.bias == float(p.item_bias[i]) - float(p.item_bias[j])
    assert sum(value for _, value in why.factors(99)) + why.bias == pytest.approx(why.margin, abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_influence_is_what_counting_an_item_more_does_to_the_margin(data, some_parameters):
    p = data.draw(some_parameters)
    liked = sorted(data.draw(st.lists(st.integers(0, p.n_items - 1), min_size=1, max_size=p.n_items - 1, unique=True)))
    p = Parameters(*(None if a is None else a.astype(np.float64) for a in _arrays(p)))
    xi = fold_in(p, liked, regularization=0.1).vector
    why = explain(p, xi, 0, 1, liked=liked, regularization=0.1)
    winners, losers, each = liked_pairs(p, np.array(liked))
    design, offset = pair_design(p, winners, losers)
    for item, influence in zip(why.liked, why.influences, strict=True):
        at = {}
        for extra in (-1e-4, 1e-4):
            weight = (1.0 + extra * (winners == item)) / each
            moved = maximise(design, offset, weight, np.full(p.n_factors, 0.1 * len(liked))).vector
            at[extra] = float(preference(p, moved, 0, 1))
        assert influence == pytest.approx((at[1e-4] - at[-1e-4]) / 2e-4, abs=1e-4, rel=1e-3)


def _arrays(p):
    return p.user_factors, p.item_factors, p.rival_factors, p.item_bias


def test_alike_items_speak_for_each_other():
    taste = np.array([[1.0, 0], [0.9, 0.1], [0, 1.0], [0.1, 0.9], [-1, -1], [-0.9, -1]])
    p = Parameters(np.array([[1.0, 1.0]]), taste)
    why = explain(p, 0, 1, 3, liked=[0, 2])
    assert [item for item, _ in why.supporters()] == [0]
    assert [item for item, _ in why.opponents()] == [2]
    assert why.supporters()[0][1] > 0 > why.opponents()[0][1]


def test_it_says_it_in_words():
    p = Parameters(np.array([[1.0, 1.0]]), np.array([[1.0, 0], [0, 0.5], [3, 3]]), None, np.array([0.0, 1.0, 0.0]))
    words = repr(explain(p, 0, 0, 1, liked=[2]))
    assert words.startswith("0 over 1: margin -0.5 (38 %)\n  factors  0: +1, 1: -0.5\n  bias -1")


def test_without_liked_items_there_are_no_influences():
    p = Parameters(np.ones((1, 1)), np.arange(3.0)[:, None])
    assert explain(p, 0, 0, 1).liked.size == 0
    assert explain(p, 0, 0, 1, liked=[]).influences.size == 0
    assert not explain(p, 0, 0, 1, liked=[0, 1, 2]).influences.any()


def test_what_is_wrong_is_named():
    p = Parameters(np.ones((1, 1)), np.arange(3.0)[:, None])
    with pytest.raises(ValueError, match="rival holds 3"):
        explain(p, 0, 0, 3)
    with pytest.raises(ValueError, match="regularization"):
        explain(p, 0, 0, 1, liked=[2], regularization=-1.0)


def test_who_likes_everything_has_no_reason_in_a_single_item():
    why = explain(Parameters(np.ones((1, 2)), np.eye(3, 2)), 0, 0, 1, liked=[2, 0, 1])
    assert why.liked.tolist() == [0, 1, 2] and not why.influences.any()


def test_three_supporters_and_three_opponents_are_shown():
    why = Explanation("tea", "ale", np.zeros(1), 0.0, liked=np.arange(10), influences=np.arange(5.0, -5.0, -1.0))
    lines = [line.split(":")[1] for line in repr(why).splitlines() if " for " in f" {line}"]
    assert [line.count(",") for line in lines] == [2, 2]


def test_five_factors_are_named_unless_another_number_is_given():
    p = Parameters(np.ones((1, 7)), np.vstack([np.arange(1.0, 8.0), np.zeros(7)]))
    assert [h for h, _ in explain(p, 0, 0, 1).factors()] == [6, 5, 4, 3, 2]


def test_an_explanation_by_features_names_the_three_columns_that_add_most():
    columns = (("new", 0.5), ("loud", 0.25), ("long", -0.125), ("red", 0.0625))
    words = repr(Explanation("tea", "ale", np.array([1.5]), 1.75, by_features=0.6875, columns=columns, pair_part=0.25))
    assert words.splitlines() == [
        "tea over ale: margin 1.75 (85 %)",
        "  factors  0: +1.5",
        "  own comparisons +0.25",
        "  features +0.688, own +1.06, new +0.5, loud +0.25, long -0.125",
    ]


def test_votes_come_strongest_first_and_an_item_without_influence_has_none():
    why = Explanation("tea", "ale", np.zeros(1), 0.0, liked=np.arange(5), influences=np.array([3.0, 1, 0, -2, -4]))
    assert why.supporters() == [(0, 3.0), (1, 1.0)] and why.opponents() == [(4, -4.0), (3, -2.0)]
    assert why.supporters(1) == [(0, 3.0)] and why.opponents(1) == [(4, -4.0)]
    many = Explanation("tea", "ale", np.zeros(1), 0.0, liked=np.arange(9), influences=np.arange(9.0, 0.0, -1.0))
    assert len(many.supporters()) == 5


def test_a_given_probability_is_kept_and_else_is_that_of_the_margin():
    assert Explanation("tea", "ale", np.zeros(1), 2.0, probability=0.6).probability == 0.6
    assert Explanation("tea", "ale", np.zeros(1), np.log(3)).probability == pytest.approx(0.75)


def test_titles_take_the_place_of_ids():
    why = Explanation(1, 2, np.zeros(1), 0.0, liked=np.array([2, 3]), influences=np.array([1.0, -1.0]))
    named = why.named({1: "tea", 2: "ale", 3: "milk"})
    assert (named.item, named.rival, named.liked.tolist()) == ("tea", "ale", ["ale", "milk"])
