"""Factors of different draws brought together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sadrec.posterior import GibbsSAD
from sadrec.posterior.draws import Draws
from sadrec.posterior.mean_model import aligned, closest_to_one, mean_factors
from sadrec.ranking.alignment import contribution_products, match


def tensor(xi, eta, tau):
    half = np.einsum("uk,ik,jk->uij", xi, eta, tau)
    return half - half.transpose(0, 2, 1)


def factors(rng, users=5, items=8, k=3):
    return rng.normal(size=(users, k)), rng.normal(size=(items, k)), rng.uniform(0.2, 2, (items, k))


def scrambled(rng, xi, eta, tau):
    """The same X from other factors: another order, other signs, other forms."""
    order = rng.permutation(xi.shape[1])
    sign = rng.choice([-1.0, 1.0], xi.shape[1])
    xi, eta, tau = xi[:, order] * sign, eta[:, order] * sign, tau[:, order]
    a, c, scale = (rng.uniform(0.5, 2, xi.shape[1]) for _ in range(3))
    eta = eta + c * tau
    return xi * scale, eta * a / scale, tau / a


@given(seed=st.integers(0, 2**32 - 1))
def test_the_inner_product_of_two_tensors_comes_from_their_factors(seed):
    rng = np.random.default_rng(seed)
    one, other = factors(rng), factors(rng, k=2)
    product = contribution_products(one, other).sum()
    assert product == pytest.approx((tensor(*one) * tensor(*other)).sum(), rel=1e-9, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_form_closest_to_one_has_the_same_wedge_product(seed):
    xi, eta, tau = factors(np.random.default_rng(seed))
    new_eta, new_tau = closest_to_one(eta, tau)
    np.testing.assert_allclose(tensor(xi, new_eta, new_tau), tensor(xi, eta, tau), atol=1e-8)


def test_a_sparse_tau_is_recovered_from_any_of_its_forms():
    rng = np.random.default_rng(0)
    xi, eta, _ = factors(rng, items=40)
    tau = np.ones((40, 3))
    tau[[3, 9, 20], [0, 1, 1]] = 5.0, 0.01, 3.0
    other_xi, other_eta, other_tau = scrambled(rng, xi, eta, tau)
    other_tau = other_tau + 0.3 * other_eta  # a shear the sampler's prior would not forbid either
    order, _ = match((xi, eta, tau), (other_xi, other_eta, other_tau))
    _, result = closest_to_one(other_eta[:, order], other_tau[:, order])
    np.testing.assert_allclose(result, tau, atol=0.02)


def test_alignment_keeps_every_preference_and_brings_equal_draws_together():
    rng = np.random.default_rng(1)
    base = factors(rng, items=30)
    parts = [scrambled(rng, *base) for _ in range(6)]
    drawn = Draws(
        *(np.stack([part[which] for part in parts])[None].astype(np.float32) for which in range(3)),
        np.ones((1, 6, 3), np.float32),
    )
    xi, eta, tau = aligned(drawn)
    for d in range(6):
        np.testing.assert_allclose(tensor(xi[d], eta[d], tau[d]), tensor(*base), atol=1e-4)
        np.testing.assert_allclose(tau[d], tau[0], atol=5e-3)
        np.testing.assert_allclose(xi[d], xi[0], atol=5e-2)


def test_the_mean_model_of_equal_draws_is_that_draw():
    rng = np.random.default_rng(2)
    base = factors(rng, items=30)
    parts = [scrambled(rng, *base) for _ in range(4)]
    drawn = Draws(
        *(np.stack([part[which] for part in parts])[None].astype(np.float32) for which in range(3)),
        np.ones((1, 4, 3), np.float32),
    )
    result, missed = mean_factors(drawn)
    assert missed < 1e-5
    np.testing.assert_allclose(tensor(*result), tensor(*base), atol=0.02)


def apart(rng, draws=12, tau=None):
    """Draws that have little in common: their mean is near none of them."""
    parts = [factors(rng, k=2) for _ in range(draws)]
    arrays = [np.stack([part[which] for part in parts])[None].astype(np.float32) for which in range(3)]
    return Draws(*arrays[:2], arrays[2] if tau is None else np.full_like(arrays[2], tau), np.ones((1, draws, 3), "f"))


def test_no_small_step_from_the_mean_model_comes_nearer_to_the_mean(monkeypatch):
    monkeypatch.setattr("sadrec.posterior.mean_model.ENOUGH", 0.0)
    monkeypatch.setattr("sadrec.posterior.mean_model.ROUNDS", 400)
    drawn = apart(np.random.default_rng(3))
    target = np.mean([tensor(*(array[d].astype(float) for array in drawn.flat())) for d in range(12)], axis=0)
    result, missed = mean_factors(drawn)
    assert missed == pytest.approx(((tensor(*result) - target) ** 2).sum() / (target**2).sum())
    assert result[2].min() >= 0
    rng = np.random.default_rng(4)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(100):
            other = [part + size * rng.normal(size=part.shape) for part in result]
            other[2] = other[2].clip(0)
            assert ((tensor(*other) - target) ** 2).sum() / (target**2).sum() > missed - 1e-6


def test_the_mean_model_is_nearer_to_the_mean_than_any_draw():
    drawn = apart(np.random.default_rng(5))
    parts = [tensor(*(array[d].astype(float) for array in drawn.flat())) for d in range(12)]
    target = np.mean(parts, axis=0)
    result, _ = mean_factors(drawn)
    nearest = min(((part - target) ** 2).sum() for part in parts)
    assert ((tensor(*result) - target) ** 2).sum() < 0.5 * nearest


def test_the_mean_model_of_bpr_is_bpr():
    result, _ = mean_factors(apart(np.random.default_rng(6), tau=1.0))
    np.testing.assert_allclose(result[2], 1.0, atol=1e-6)


def test_rival_factors_that_differ_from_one_are_recognised():
    from sadrec.data import simulate

    simulation = simulate(n=15, m=20, k=2, seed=5)
    result = GibbsSAD(factors=2, draws=150, warmup=300, chains=2).fit(simulation.comparisons, show_progress=False)
    truth = simulation.rival_factors
    differs = (np.abs(truth - 1) > 0.05).any(axis=1)
    p = result.rival_differs(np.arange(20), by=0.5)
    assert p[differs].mean() > 0.9
    assert p[~differs].mean() < 0.3
    one = result.rival_differs(int(np.flatnonzero(differs)[0]))
    assert one == p[differs][0]
    per_factor = np.stack([result.rival_differs(np.arange(20), factor=h) for h in range(2)], axis=1)
    assert (per_factor.max(axis=1) <= p + 1e-12).all()
    low, high = np.quantile(result.state.belief.aligned[2][:, [0, 1]], (0.05, 0.95), axis=0)
    assert (low < high).all()
    with pytest.raises(ValueError, match="factor must"):
        result.rival_differs(0, factor=2)
