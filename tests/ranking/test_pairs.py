"""One item against another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters, contributions, preference, sigmoid
from sadrec.ranking.pairs import margins, probability


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_preference_is_its_definition(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    items = np.arange(p.n_items)
    for user in range(p.n_users):
        x = preference(p, user, items[:, None], items[None, :])
        np.testing.assert_allclose(x, brute_force(p, user), rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_exchanging_item_and_rival_changes_the_sign_and_nothing_else(data, some_parameters):
    p = data.draw(some_parameters)
    items = np.arange(p.n_items)
    x = preference(p, 0, items[:, None], items[None, :])
    assert np.array_equal(x, -x.T)


def test_anti_symmetry_is_exact_for_many_factors():
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.standard_normal((30, 301)) for _ in range(3)))
    u, i, j = rng.integers(0, 30, (3, 5000))
    assert np.array_equal(preference(p, u, i, j), -preference(p, u, j, i))


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_contributions_add_up_to_the_preference_to_the_last_bit(data, some_parameters):
    p = data.draw(some_parameters)
    u, i, j = (data.draw(st.integers(0, n - 1)) for n in (p.n_users, p.n_items, p.n_items))
    parts = contributions(p, u, i, j)
    assert parts.shape == (p.n_factors + (p.item_bias is not None),)
    assert parts.sum() == preference(p, u, i, j)


def test_one_preference_has_the_same_bits_among_many():
    rng = np.random.default_rng(1)
    p = Parameters(*(rng.standard_normal((40, 500)).astype(np.float32) for _ in range(3)))
    u, i, j = rng.integers(0, 40, (3, 9000))  # more than are held at a time
    together = preference(p, u, i, j)
    assert all(together[n] == preference(p, u[n], i[n], j[n]) for n in range(0, 9000, 500))


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_margins_are_preferences(data, parameters, brute_force):
    p = data.draw(parameters)
    np.testing.assert_allclose(margins(p, 0, None, None), brute_force(p, 0), atol=2e-5)


def test_positions_broadcast():
    p = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0], [5.0, 5.0]]))
    x = preference(p, [[0], [1]], [0, 1, 2], 1)
    assert x.shape == (2, 3)
    assert x[1, 2] == preference(p, 1, 2, 1)


def test_a_vector_is_a_user():
    rng = np.random.default_rng(2)
    p = Parameters(*(rng.standard_normal((5, 3)) for _ in range(3)))
    somebody = p.user_factors[3]
    assert preference(p, somebody, 0, 1) == preference(p, 3, 0, 1)
    assert np.array_equal(margins(p, somebody, [0, 2], [1]), margins(p, 3, [0, 2], [1]))


def test_probability_is_the_sigmoid_and_never_overflows():
    p = Parameters(np.array([[1.0]]), np.array([[0.0], [np.log(3)], [1e6]]))
    np.testing.assert_allclose(probability(p, 0, [1, 0, 2, 0], [0, 1, 0, 2]), [0.75, 0.25, 1.0, 0.0])
    assert sigmoid(-1e308) == 0.0


def test_no_items_give_an_empty_matrix():
    p = Parameters(np.ones((1, 2)), np.ones((3, 2)), np.ones((3, 2)))
    assert margins(p, 0, [], [0, 1]).shape == (0, 2)


@pytest.mark.parametrize("wrong", [3, -1])
def test_an_item_out_of_range_is_named(wrong):
    with pytest.raises(ValueError, match=rf"item.*{wrong}.*0 to 2"):
        preference(Parameters(np.ones((1, 2)), np.ones((3, 2))), 0, wrong, 0)


def test_what_is_no_position_is_refused():
    p = Parameters(np.ones((1, 2)), np.ones((3, 2)))
    with pytest.raises(TypeError, match="item"):
        preference(p, 0, "tea", 0)
    with pytest.raises(ValueError, match="per factor"):
        margins(p, np.ones(3), [0], [1])
    with pytest.raises(ValueError, match="finite"):
        margins(p, np.array([np.nan, 1.0]), [0], [1])
    with pytest.raises(ValueError, match="one position"):
        margins(p, [0, 0], [0], [1])
