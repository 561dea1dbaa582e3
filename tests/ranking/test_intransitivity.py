"""The share of preferences that no scores explain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking.cycles import cycles
from sadrec.ranking.intransitivity import (
    intransitivity,
    item_counter_effects,
)
from sadrec.ranking.tournament import tournament


def _share(x):
    """From the definition: least squares of the margins on differences of scores."""
    m = len(x)
    if not m:
        return 0.0
    design = np.zeros((m * m, m))
    pairs = np.indices((m, m)).reshape(2, -1).T
    design[np.arange(m * m), pairs[:, 0]] += 1
    design[np.arange(m * m), pairs[:, 1]] -= 1
    flow = x.ravel()
    rest = flow - design @ np.linalg.lstsq(design, flow, rcond=None)[0]
    whole = float(flow @ flow)
    return float(rest @ rest) / whole if whole > 1e-12 else 0.0


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_it_is_what_least_squares_leaves(data, parameters, brute_force):
    p = data.draw(parameters)
    shares = intransitivity(p)
    assert shares.shape == (p.n_users,)
    for user in range(p.n_users):
        np.testing.assert_allclose(shares[user], _share(brute_force(p, user)), atol=1e-6)
        np.testing.assert_allclose(intransitivity(p, user), shares[user], atol=1e-12)
        np.testing.assert_allclose(intransitivity(p, p.user_factors[user]), shares[user], atol=1e-12)
    assert ((shares >= 0) & (shares <= 1)).all()


def test_margins_that_cancel_are_no_preferences():
    # Every margin of this user is 0, as a sum of terms that are not: what is left of the squares is rounding.
    eta, tau = np.array([[-2.0, -2.0], [-1.0, -2.0], [2.0, 2.0]]), np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    p = Parameters(np.array([[2.0, -1.0]]), eta, tau, np.array([2.0, 0.0, -2.0]))
    assert intransitivity(p, 0) == 0


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_it_is_the_formula_of_row_means(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    x = brute_force(p, 0)
    size = (x**2).sum()
    if size > 1e-9:
        expected = 1 - 2 * len(x) * (x.mean(1) ** 2).sum() / size
        np.testing.assert_allclose(intransitivity(p, 0), expected, atol=1e-6)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_size_of_preferences_is_a_quadratic_form(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    eta = p.item_factors.astype(np.float64)
    tau = np.ones_like(eta) if p.rival_factors is None else p.rival_factors.astype(np.float64)
    without_bias = Parameters(p.user_factors, p.item_factors, p.rival_factors)
    form = (eta.T @ eta) * (tau.T @ tau) - (eta.T @ tau) * (tau.T @ eta)
    xi = p.user_factors[0].astype(np.float64)
    np.testing.assert_allclose(2 * xi @ form @ xi, (brute_force(without_bias, 0) ** 2).sum(), rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_items_share_the_rest_out(data, some_parameters, brute_force):
    p = data.draw(some_parameters)
    squares = np.zeros(p.n_items)
    for user in range(p.n_users):
        x = brute_force(p, user)
        rest = x - x.mean(1)[:, None] + x.mean(1)[None, :]
        squares += (rest**2).mean(1) / p.n_users
    result = item_counter_effects(p)
    np.testing.assert_allclose(result.size, np.sqrt(squares), atol=1e-5)
    if squares.sum() > 1e-9:
        np.testing.assert_allclose(result.share, squares / squares.sum(), atol=1e-6)
        np.testing.assert_allclose(result.share.sum(), 1.0)
    one = item_counter_effects(p, 0)
    x = brute_force(p, 0)
    rest = x - x.mean(1)[:, None] + x.mean(1)[None, :]
    np.testing.assert_allclose(one.size, np.sqrt((rest**2).mean(1)), atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), ones=st.booleans())
def test_bpr_has_exactly_none(seed, ones):
    rng = np.random.default_rng(seed)
    eta = rng.standard_normal((20, 4)).astype(np.float32)
    p = Parameters(rng.standard_normal((5, 4)), eta, np.ones_like(eta) if ones else None, rng.standard_normal(20))
    assert not intransitivity(p).any()
    assert not item_counter_effects(p).size.any()


def test_rock_paper_scissors_is_nothing_but_a_cycle(rock_paper_scissors):
    p = Parameters(np.ones((1, 3)), np.eye(3), np.roll(np.eye(3), -1, axis=0))
    np.testing.assert_allclose(intransitivity(p, 0), 1.0)
    assert 0 < intransitivity(rock_paper_scissors, 0) < 1


def test_it_can_be_positive_without_a_cycle():
    p = Parameters(np.ones((1, 1)), np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [1.5], [1.0]]))
    assert intransitivity(p, 0) > 0.01
    assert cycles(tournament(p, 0, None)) == []


def test_a_user_without_preferences_has_no_intransitivity():
    p = Parameters(np.zeros((1, 2)), np.ones((3, 2)), np.arange(6.0).reshape(3, 2))
    assert intransitivity(p, 0) == 0.0


def test_the_strongest_items_come_first(rock_paper_scissors):
    effects = item_counter_effects(rock_paper_scissors)
    assert list(effects.strongest(4)) == list(np.argsort(-effects.size, kind="stable"))
    assert effects.strongest(1)[0] != 3
    assert repr(effects).startswith("ItemCounterEffects of 4 items: largest")
    assert repr(item_counter_effects(Parameters(np.ones((1, 1)), np.ones((0, 1))))).endswith("of 0 items")


def test_several_users_or_vectors(rock_paper_scissors):
    assert intransitivity(rock_paper_scissors, [0, 0]).shape == (2,)
    assert intransitivity(rock_paper_scissors, np.ones((3, 4))).shape == (3,)
    assert intransitivity(rock_paper_scissors, []).shape == (0,)
    with pytest.raises(ValueError, match="user"):
        intransitivity(rock_paper_scissors, 5)
