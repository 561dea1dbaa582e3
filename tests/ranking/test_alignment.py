"""Which factor of one model is which of another, against the margins that each factor contributes."""

import numpy as np
import pytest

from sadrec.ranking import Parameters
from sadrec.ranking.alignment import contribution_products, cosines, factors_of, match, wedge_products

USERS, ITEMS = 4, 5


def model(seed, factors=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((USERS, factors)), *rng.standard_normal((2, ITEMS, factors))


def contributions(xi, eta, tau):
    """What each factor adds to every margin: (factors, users * items * items)."""
    wedges = np.einsum("ih,jh->hij", eta, tau) - np.einsum("ih,jh->hij", tau, eta)
    return np.einsum("uh,hij->huij", xi, wedges).reshape(xi.shape[1], -1)


def test_products_and_cosines_are_those_of_what_factors_contribute():
    one, other = model(0), model(1, 2)
    x, y = contributions(*one), contributions(*other)
    np.testing.assert_allclose(contribution_products(one, other), x @ y.T)
    ones = np.ones((1, 3)), np.ones((1, 2))
    wedges = contributions(ones[0], *one[1:]) @ contributions(ones[1], *other[1:]).T
    np.testing.assert_allclose(wedge_products(*one[1:], *other[1:]), wedges)
    lengths = np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1))
    np.testing.assert_allclose(cosines(one, other), x @ y.T / lengths)


def test_a_factor_that_contributes_nothing_is_like_no_other():
    one = model(0)
    one[0][:, 1] = 0
    table = cosines(one, one)
    assert not table[1].any() and not table[:, 1].any()
    np.testing.assert_allclose(np.diag(table), [1, 0, 1])


def test_factors_in_another_order_and_basis_are_found_again():
    xi, eta, tau = model(2)
    order = [2, 0, 1]
    other = -2 * xi[:, order], (eta + 3 * tau)[:, order], -tau[:, order]  # (eta + 3 tau) ^ -tau is -(eta ^ tau)
    places, alike = match((xi, eta, tau), other)
    assert places.tolist() == [1, 2, 0]
    np.testing.assert_allclose(alike, 1)


@pytest.mark.parametrize("rivals", [False, True])
def test_factors_are_in_double_precision_and_tau_in_full(rivals):
    xi, eta, tau = (part.astype(np.float32) for part in model(3))
    parts = factors_of(Parameters(xi, eta, tau if rivals else None, np.zeros(ITEMS)))
    assert [part.dtype for part in parts] == [np.float64] * 3
    for part, expected in zip(parts, (xi, eta, tau if rivals else np.ones_like(eta)), strict=True):
        np.testing.assert_array_equal(part, expected)
