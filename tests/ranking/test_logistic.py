"""The concave problem behind fold-in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import log_expit
from sklearn.linear_model import LogisticRegression

from sadrec.ranking import logistic
from sadrec.ranking.logistic import curvature, gradient, maximise, objective


def _problem(seed, pairs=12, size=3):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((pairs, size)),
        rng.standard_normal(pairs),
        rng.random(pairs) + 0.1,
        rng.random(size) + 0.05,
    )


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_gradient_and_curvature_are_those_of_finite_differences(seed):
    problem = _problem(seed)
    v = np.random.default_rng(seed + 1).standard_normal(3)
    np.testing.assert_allclose(gradient(v, *problem), approx_fprime(v, objective, 1e-7, *problem), atol=1e-5)
    rows = [approx_fprime(v, lambda w, h=h: gradient(w, *problem)[h], 1e-7) for h in range(3)]
    np.testing.assert_allclose(curvature(v, *problem), -np.array(rows), atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-3, 1.0, 100.0]))
def test_the_optimum_is_where_the_gradient_vanishes(seed, scale):
    design, offset, weight, penalty = _problem(seed)
    problem = (scale * design, offset, weight, penalty)
    result = maximise(*problem)
    assert np.abs(gradient(result.vector, *problem)).max() < 1e-5 * (1 + scale)
    np.testing.assert_allclose(result.covariance @ curvature(result.vector, *problem), np.eye(3), atol=1e-3)


def test_it_agrees_with_another_library():
    design, _, _, _ = _problem(3, pairs=60, size=4)
    mirrored = np.vstack([design, -design])
    answers = np.repeat([1, 0], len(design))
    # 1/2 |v|^2 + C sum of losses over both mirror images is twice ours for C = 1 / (4 penalty).
    other = LogisticRegression(C=1 / (4 * 0.3), fit_intercept=False, tol=1e-12).fit(mirrored, answers)
    ours = maximise(design, np.zeros(60), np.ones(60), np.full(4, 0.3))
    np.testing.assert_allclose(ours.vector, other.coef_[0], atol=1e-5)


def test_separable_data_have_an_answer_too():
    result = maximise(np.full((5, 1), 50.0), np.zeros(5), np.ones(5), np.array([1e-4]))
    assert 0 < result.vector[0] < 10
    assert result.steps < 60


def test_no_pairs_leave_the_prior():
    result = maximise(np.zeros((0, 2)), np.zeros(0), np.zeros(0), np.array([0.5, 2.0]))
    assert not result.vector.any()
    np.testing.assert_allclose(result.covariance, np.diag([1.0, 0.25]))


@pytest.mark.parametrize("x", [-800.0, 800.0])
def test_the_objective_never_overflows(x):
    value = objective(np.ones(1), np.array([[x]]), np.zeros(1), np.ones(1), np.zeros(1))
    assert value == pytest.approx(min(x, 0.0))


@pytest.mark.parametrize("factors", [3, 64, 300])
def test_a_design_in_single_precision_gives_nearly_the_same(factors):
    rng = np.random.default_rng(0)
    design, vector = rng.standard_normal((1000, factors)).astype(np.float32), rng.standard_normal(factors) / 8
    sample = rng.standard_normal(1000), rng.random(1000), np.ones(factors)
    for function in (objective, gradient, curvature):
        single, double = (function(vector, one, *sample) for one in (design, design.astype(np.float64)))
        np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-3)


def test_the_objective_is_the_sum_of_logarithms():
    x = np.concatenate([np.linspace(-800, 800, 1601), np.linspace(-3, 3, 1001)])
    for margin in x:
        expected = log_expit(margin)
        assert objective(np.ones(1), np.full((1, 1), margin), np.zeros(1), np.ones(1), np.zeros(1)) == pytest.approx(
            expected, rel=1e-13, abs=1e-17
        )


@pytest.mark.parametrize("pairs", [1, 5, 95, 96, 97, 300])
@pytest.mark.parametrize("factors", [1, 2, 5, 8])
def test_the_curvature_counts_every_pair(pairs, factors):
    rng = np.random.default_rng(0)
    design, weight = rng.standard_normal((pairs, factors)), rng.random(pairs)
    zeros = np.zeros(pairs), np.zeros(factors)
    expected = (design * weight[:, None] / 4).T @ design
    np.testing.assert_allclose(curvature(zeros[1], design, zeros[0], weight, zeros[1]), expected, atol=1e-12)


def test_a_rough_answer_is_polished_without_another_search(monkeypatch):
    rng = np.random.default_rng(0)
    problem = rng.standard_normal((400, 6)), rng.standard_normal(400), rng.random(400), np.ones(6)
    rough = logistic.maximise(*problem, near=1e-2)
    assert np.abs(gradient(rough.vector, *problem)).max() > 1e-4
    monkeypatch.setattr(logistic, "maximise", None)
    assert np.abs(gradient(logistic.polish(rough, *problem).vector, *problem)).max() < 1e-6


def test_newton_needs_few_steps():
    for seed in range(5):
        assert maximise(*_problem(seed)).steps <= 6
