"""Mean margins are inner products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking.parameters import item_vectors, mean_margins, user_vectors


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_inner_products_are_mean_margins_over_the_catalogue(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    scores = user_vectors(p) @ item_vectors(p).T
    for user in range(p.n_users):
        np.testing.assert_allclose(scores[user], brute_force(p, user).mean(axis=1), atol=2e-5)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_inner_products_are_mean_margins_over_a_set(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    rivals = data.draw(st.lists(st.integers(0, p.n_items - 1), min_size=1, unique=True))
    expected = brute_force(p, 0)[:, rivals].mean(axis=1)
    np.testing.assert_allclose(user_vectors(p, [0])[0] @ item_vectors(p, rivals).T, expected, atol=2e-5)
    np.testing.assert_allclose(mean_margins(p, 0, None, rivals), expected, atol=1e-6)


def test_vectors_have_a_column_for_the_bias_only_if_there_is_one():
    eta = np.ones((4, 3))
    assert item_vectors(Parameters(np.ones((2, 3)), eta)).shape == (4, 3)
    biased = Parameters(np.ones((2, 3)), eta, None, np.arange(4.0))
    assert item_vectors(biased).shape == (4, 4)
    assert np.array_equal(user_vectors(biased)[:, -1], [1.0, 1.0])


def test_vectors_of_others_take_the_place_of_users():
    p = Parameters(np.ones((2, 3)), np.ones((4, 3)), None, np.arange(4.0))
    assert np.array_equal(user_vectors(p, np.full((5, 3), 0.5)), np.full((5, 4), [0.5, 0.5, 0.5, 1.0]))
    with pytest.raises(ValueError, match=r"users, 3"):
        user_vectors(p, np.ones((5, 2)))


def test_a_mean_needs_a_rival():
    with pytest.raises(ValueError, match="at least one rival"):
        item_vectors(Parameters(np.ones((1, 2)), np.ones((3, 2))), [])


def test_an_empty_catalogue_has_no_vectors():
    assert item_vectors(Parameters(np.ones((1, 2)), np.ones((0, 2)))).shape == (0, 2)
