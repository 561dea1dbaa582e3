"""What and who is alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking.parameters import item_vectors
from sadrec.ranking.top_n import similar_items, similar_users


def _cosines(vectors, query):
    vectors, query = vectors.astype(np.float64), query.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return np.divide(vectors @ query, lengths, out=np.zeros(len(vectors)), where=lengths > 0)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_cosines_are_those_of_item_vectors(data, some_parameters):
    p = data.draw(some_parameters)
    item, N = data.draw(st.integers(0, p.n_items - 1)), data.draw(st.integers(0, 12))
    items, cosines = similar_items(p, item, N)
    expected = _cosines(item_vectors(p), item_vectors(p)[item])
    assert len(items) == min(N, p.n_items)
    np.testing.assert_allclose(cosines, np.sort(expected)[::-1][:N], atol=1e-5)
    np.testing.assert_allclose(cosines, expected[items], atol=1e-5)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_cosines_are_those_of_user_factors(data, some_parameters):
    p = data.draw(some_parameters)
    user = data.draw(st.integers(0, p.n_users - 1))
    users, cosines = similar_users(p, user)
    np.testing.assert_allclose(cosines, _cosines(p.user_factors, p.user_factors[user])[users], atol=1e-5)
    assert (np.diff(cosines) <= 0).all()


def test_an_item_is_nearest_to_itself():
    p = Parameters(np.ones((1, 4)), np.random.default_rng(0).standard_normal((30, 4)))
    items, cosines = similar_items(p, np.arange(30), 1)
    assert np.array_equal(items[:, 0], np.arange(30))
    np.testing.assert_allclose(cosines, 1.0, atol=1e-6)


def test_several_at_once_are_as_one_by_one():
    p = Parameters(*(np.random.default_rng(0).standard_normal((20, 4)) for _ in range(3)))
    many = similar_items(p, [3, 5], 4)
    for row, item in enumerate((3, 5)):
        one = similar_items(p, item, 4)
        assert np.array_equal(one[0], many[0][row])
        assert np.array_equal(one[1], many[1][row])


def test_a_new_user_has_neighbours():
    p = Parameters(np.eye(3), np.ones((2, 3)))
    users, cosines = similar_users(p, np.array([0.0, 2.0, 0.1]), 2)
    assert users.tolist() == [1, 2]
    assert cosines[0] > 0.99


def test_what_has_no_direction_is_near_to_nothing():
    p = Parameters(np.array([[0.0], [1.0]]), np.ones((2, 1)))
    assert similar_users(p, 0)[1].tolist() == [0.0, 0.0]


def test_unknown_positions_are_named():
    with pytest.raises(ValueError, match="item holds 2"):
        similar_items(Parameters(np.ones((1, 1)), np.ones((2, 1))), 2)
