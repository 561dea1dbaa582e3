"""Aligned factors: the truth is recovered from anything that leaves the preferences alone, and they stay the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec import BPR, SAD
from sadrec.data import simulate
from sadrec.ranking import Parameters
from studies.simulation.alignment import align
from studies.simulation.fits import preferences

SEEDS = st.integers(0, 2**32 - 1)


def truth_of(seed, n=9, m=12, k=4):
    rng = np.random.default_rng(seed)
    return Parameters(rng.normal(size=(n, k)), rng.normal(size=(m, k)), rng.exponential(size=(m, k)) + 0.01)


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, sheared=st.booleans())
def test_a_permuted_flipped_scaled_and_sheared_truth_is_recovered(seed, sheared):
    truth = truth_of(seed)
    rng = np.random.default_rng((seed, 1))
    k = truth.n_factors
    order = rng.permutation(k)
    sign = rng.choice([-1.0, 1.0], k)
    a, c = np.exp(rng.normal(size=(2, k)))
    shear = rng.normal(size=k) if sheared else 0.0
    tau = truth.rival_factors[:, order] * c
    other = Parameters(
        truth.user_factors[:, order] * sign * a,
        truth.item_factors[:, order] * sign / (a * c) + tau * shear,
        tau,
    )
    aligned = align(other, truth)
    assert (order[aligned.order] == np.arange(k)).all()
    np.testing.assert_allclose(aligned.similarity, 1, atol=1e-9)
    for name in ("user_factors", "item_factors", "rival_factors"):
        np.testing.assert_allclose(getattr(aligned.parameters, name), getattr(truth, name), atol=1e-8)
    np.testing.assert_allclose([aligned.user_correlation, aligned.item_correlation, aligned.rival_correlation], 1)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS)
def test_alignment_never_changes_the_preferences(seed):
    estimate, truth = truth_of(seed), truth_of(seed + 1)
    estimate = replace(estimate, item_bias=np.random.default_rng(seed).normal(size=estimate.n_items))
    aligned = align(estimate, truth).parameters
    np.testing.assert_allclose(preferences(aligned), preferences(estimate), atol=1e-9)
    assert aligned.rival_factors.min() >= 0


def test_two_factors_are_paired_by_their_contributions_even_where_their_t_is_the_same():
    rng = np.random.default_rng(0)
    xi, eta, tau = rng.normal(size=(6, 2)), rng.normal(size=(8, 2)), rng.exponential(size=(8, 1)).repeat(2, axis=1)
    aligned = align(Parameters(xi[:, ::-1], eta[:, ::-1], tau), Parameters(xi, eta, tau))
    assert aligned.order.tolist() == [1, 0]


def test_a_factor_that_learnt_nothing_is_left_alone():
    truth = truth_of(3)
    xi, eta, tau = (np.array(array) for array in (truth.user_factors, truth.item_factors, truth.rival_factors))
    xi[:, 2] = eta[:, 2] = 0
    aligned = align(Parameters(xi, eta, tau), truth)
    assert aligned.order.tolist() == [0, 1, 2, 3]
    assert aligned.similarity[2] == 0
    assert np.isfinite(aligned.parameters.item_factors).all()


def test_bpr_is_aligned_as_rivals_of_one_and_their_correlation_does_not_exist():
    simulation = simulate("sim1", n=6, m=8, k=2)
    model = BPR.from_factors(simulation.user_factors[:, ::-1], simulation.item_factors[:, ::-1])
    aligned = align(model, simulation)
    assert aligned.order.tolist() == [1, 0]
    np.testing.assert_allclose(aligned.parameters.item_factors, simulation.item_factors, atol=1e-5)
    assert np.isnan(aligned.rival_correlation)


def test_noise_lowers_the_correlations_and_leaves_the_order():
    simulation = simulate("sim2", seed=2)
    rng = np.random.default_rng(0)
    model = SAD.from_factors(
        simulation.user_factors + rng.normal(0, 0.2, simulation.user_factors.shape),
        simulation.item_factors + rng.normal(0, 0.2, simulation.item_factors.shape),
        np.maximum(simulation.rival_factors + rng.normal(0, 0.2, simulation.rival_factors.shape), 0),
    )
    aligned = align(model, simulation)
    assert aligned.order.tolist() == [0, 1, 2, 3, 4]
    for correlation in (aligned.user_correlation, aligned.item_correlation, aligned.rival_correlation):
        assert 0.9 < correlation < 0.999


def test_other_shapes_are_refused_with_both_named():
    with pytest.raises(ValueError, match=r"\(9, 3\).*\(9, 4\).*same users"):
        align(truth_of(0, k=3), truth_of(0, k=4))
