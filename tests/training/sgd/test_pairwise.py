"""The SGD step against a plain NumPy reference and against finite differences."""

import numpy as np
import pytest

from sadrec.training.sgd.pairwise import Penalties, held_by, likelihood_of, margin, update

K, ITEMS = 7, 5
RATE, L2, L1 = 0.05, 0.02, 0.3


def step(xi, items, bias, i, j, weight, rate, l2, l1, l1_weights):
    likelihood, residual = likelihood_of(xi, items, bias, i, j, l1)
    update(0, xi, items, bias, i, j, weight * residual, rate, Penalties(l2, l1, l1_weights))
    return likelihood


def parameters(seed, rivals=True, bias=True):
    rng = np.random.default_rng(seed)
    xi = rng.normal(size=K).astype(np.float32)
    items = rng.normal(size=(ITEMS, 2 * K if rivals else K)).astype(np.float32)
    if rivals:
        items[:, K:] = np.abs(1 + 0.3 * items[:, K:])
    return xi, items, rng.normal(size=ITEMS).astype(np.float32) if bias else None


def log_likelihood(xi, eta, tau, b, i, j):
    x = np.sum(xi * (eta[i] * tau[j] - eta[j] * tau[i])) + b[i] - b[j]
    return -np.log1p(np.exp(-x))


def reference(xi, items, bias, i, j, weight, l1_weights):
    """The step in ten lines of NumPy, in double precision."""
    xi, eta, tau = xi.astype(float), items[:, :K].astype(float), items[:, K:].astype(float)
    b = np.zeros(ITEMS) if bias is None else bias.astype(float)
    x = np.sum(xi * (eta[i] * tau[j] - eta[j] * tau[i])) + b[i] - b[j]
    g = RATE * weight / (1 + np.exp(x))
    s = RATE * L1 * (np.ones((ITEMS, K)) if l1_weights is None else l1_weights)
    keep = 1 - 2 * RATE * L2
    new = {"xi": keep * xi + g * (eta[i] * tau[j] - eta[j] * tau[i])}
    new["eta_i"], new["eta_j"] = keep * eta[i] + g * xi * tau[j], keep * eta[j] - g * xi * tau[i]
    new["b_i"], new["b_j"] = keep * b[i] + g, keep * b[j] - g
    for name, t, w in (("tau_i", tau[i] - g * xi * eta[j], s[i]), ("tau_j", tau[j] + g * xi * eta[i], s[j])):
        new[name] = np.maximum(1 + np.sign(t - 1) * np.maximum(np.abs(t - 1) - w, 0), 0)
    return new, 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("weighted_l1", "bias"), [(False, True), (True, False)])
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_every_update_is_that_of_the_reference(weighted_l1, bias, weight):
    for seed in range(5):
        xi, items, b = parameters(seed, bias=bias)
        l1_weights = np.random.default_rng(9).uniform(0, 5, (ITEMS, K)).astype(np.float32) if weighted_l1 else None
        want, likelihood = reference(xi, items, b, 1, 3, weight, l1_weights)
        got = step(xi, items, b, 1, 3, np.float32(weight), RATE, L2, L1, l1_weights)
        assert got == pytest.approx(likelihood, rel=1e-5)
        np.testing.assert_allclose(xi, want["xi"], rtol=1e-4, atol=1e-6)
        for name, row, part in (
            ("eta_i", 1, slice(K)),
            ("eta_j", 3, slice(K)),
            ("tau_i", 1, slice(K, None)),
            ("tau_j", 3, slice(K, None)),
        ):
            np.testing.assert_allclose(items[row, part], want[name], rtol=1e-4, atol=1e-6, err_msg=name)
        if bias:
            np.testing.assert_allclose(b[[1, 3]], [want["b_i"], want["b_j"]], rtol=1e-5)


def test_rows_of_other_items_stay_untouched():
    xi, items, b = parameters(0)
    before = items.copy(), b.copy()
    step(xi, items, b, 1, 3, np.float32(1), RATE, L2, L1, None)
    others = [0, 2, 4]
    np.testing.assert_array_equal(items[others], before[0][others])
    np.testing.assert_array_equal(b[others], before[1][others])


def test_the_step_is_the_gradient_of_the_log_likelihood():
    rate, eps = 1e-3, 1e-6
    xi, items, b = parameters(3)
    arrays = {
        "xi": xi.astype(float),
        "eta": items[:, :K].astype(float),
        "tau": items[:, K:].astype(float),
        "b": b.astype(float),
    }

    def value(**changed):
        now = {**arrays, **changed}
        return log_likelihood(now["xi"], now["eta"], now["tau"], now["b"], 1, 3)

    new_xi, new_items, new_b = xi.copy(), items.copy(), b.copy()
    step(new_xi, new_items, new_b, 1, 3, np.float32(1), rate, 0.0, 0.0, None)
    moved = {"xi": new_xi - xi, "eta": (new_items - items)[:, :K], "tau": (new_items - items)[:, K:], "b": new_b - b}
    for name, array in arrays.items():
        slope = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            bumped = array.copy()
            bumped[index] += eps
            slope[index] = (value(**{name: bumped}) - value()) / eps
        np.testing.assert_allclose(moved[name] / rate, slope, rtol=2e-2, atol=1e-3, err_msg=name)


def test_exchanging_the_items_changes_the_sign():
    xi, items, _ = parameters(1)
    assert margin(xi, items[0], items[1], L1) == pytest.approx(-margin(xi, items[1], items[0], L1), rel=1e-6)


def test_bpr_is_sad_with_tau_at_one_and_no_freedom():
    xi, items, b = parameters(2)
    items[:, K:] = 1
    bpr_xi, bpr_items, bpr_b = xi.copy(), items[:, :K].copy(), b.copy()
    for i, j in [(0, 1), (2, 0), (4, 3), (1, 2)]:
        # an l1 so large that tau cannot leave 1
        one = step(xi, items, b, i, j, np.float32(1), RATE, L2, 1e6, None)
        two = step(bpr_xi, bpr_items, bpr_b, i, j, np.float32(1), RATE, L2, None, None)
        assert one == pytest.approx(two, rel=1e-5)
    assert (items[:, K:] == 1).all()
    np.testing.assert_allclose(bpr_xi, xi, rtol=1e-5)
    np.testing.assert_allclose(bpr_items, items[:, :K], rtol=1e-5)
    np.testing.assert_allclose(bpr_b, b, rtol=1e-5)


def test_tau_rests_exactly_at_one_and_never_falls_below_zero():
    xi, items, b = parameters(4)
    items[:, K:] = 1
    step(xi, items, b, 0, 1, np.float32(1), 1e-3, 0.0, 50.0, None)
    assert (items[:, K:] == 1).all()
    big = np.full_like(items, 3.0)
    big[:, K:] = 0.01
    step(np.full(K, 5.0, np.float32), big, np.zeros(ITEMS, np.float32), 0, 1, np.float32(1), 1.0, 0.0, 0.0, None)
    assert big[:, K:].min() == 0


def test_extreme_margins_give_finite_steps():
    for scale in (1e3, -1e3):
        xi = np.full(K, scale, np.float32)
        items = np.ones((ITEMS, 2 * K), np.float32)
        items[0, :K] = 2
        likelihood = step(xi, items, np.zeros(ITEMS, np.float32), 0, 1, np.float32(1), 1e-6, 0.0, 0.0, None)
        assert 0 < likelihood <= 1
        assert np.isfinite(xi).all() and np.isfinite(items).all()


@pytest.mark.parametrize("rivals", [True, False])
def test_rows_with_a_centre_decay_to_it_and_rivals_to_1(rivals):
    xi, items, bias = parameters(0, rivals)
    rng = np.random.default_rng(1)
    users, centres, biases = (rng.normal(size=shape).astype(np.float32) for shape in ((2, K), (ITEMS, K), ITEMS))
    before = xi.copy(), items.copy(), bias.copy()
    held = Penalties(L2, L1 if rivals else None, None, users, centres, biases)
    update(1, xi, items, bias, 2, 3, np.float32(0), RATE, held)
    keep = 1 - 2 * RATE * L2
    np.testing.assert_allclose(xi, keep * before[0] + (1 - keep) * users[1], rtol=1e-5, atol=1e-6)
    for item in (2, 3):
        expected = keep * before[1][item, :K] + (1 - keep) * centres[item]
        np.testing.assert_allclose(items[item, :K], expected, rtol=1e-5, atol=1e-6)
        assert bias[item] == pytest.approx(keep * before[2][item] + (1 - keep) * biases[item], abs=1e-6)
        assert (np.abs(items[item, K:] - 1) <= np.abs(before[1][item, K:] - 1)).all()
    np.testing.assert_array_equal(items[[0, 1, 4]], before[1][[0, 1, 4]])


def test_an_entry_of_tau_is_held_by_its_own_weight():
    weights = np.array([[1, 4], [8, 2]], np.float32)
    assert held_by(0.5, weights, 1, 0) == 4 and held_by(0.5, None, 1, 0) == 0.5
