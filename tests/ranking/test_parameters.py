"""Parameters are checked for shape, and say what they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters

XI, ETA = np.zeros((2, 3), np.float32), np.zeros((5, 3), np.float32)


def test_sizes():
    parameters = Parameters(XI, ETA)
    assert (parameters.n_users, parameters.n_items, parameters.n_factors) == (2, 5, 3)


def test_precision_is_that_of_the_factors():
    assert Parameters(XI, ETA).dtype == np.float32
    assert Parameters(XI.astype(np.float64), ETA).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((XI, ETA[0]), "item_factors"),
        ((XI[:, :2], ETA), "user_factors"),
        ((XI, ETA, ETA[:4]), "rival_factors"),
        ((XI, ETA, None, np.zeros(4)), "item_bias"),
    ],
)
def test_a_wrong_shape_is_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        Parameters(*arguments)


def test_repr_says_what_there_is():
    assert repr(Parameters(XI, ETA, np.ones_like(ETA))) == (
        "Parameters(users=2, items=5, factors=3, rival_factors=yes, item_bias=no)"
    )


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_extended_parameters_have_the_same_preferences(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    wide = p.extended()
    assert wide.item_bias is None and wide.rival_factors is not None
    assert np.allclose(brute_force(wide, 0), brute_force(p, 0))
    assert np.allclose(p.mean_items()[0], wide.item_factors.mean(0))
    assert np.allclose(p.mean_items()[1], wide.rival_factors.mean(0))


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_wedge_times_a_user_is_a_preference(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    i, j = (x.ravel() for x in np.indices((p.n_items, p.n_items)))
    wedge = p.wedge(i, j)
    assert np.array_equal(wedge, -p.wedge(j, i))
    x = wedge @ p.extended().user_factors[0]
    assert np.allclose(x.reshape(p.n_items, -1), brute_force(p, 0))
