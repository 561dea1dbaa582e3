"""The regression of factors on features."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec.features import ridge
from sadrec.features.ridge import Ridge


def problem(rows=300, columns=6, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((rows, columns))
    truth = rng.standard_normal((columns, 2))
    return features, 3.0 + features @ truth + noise * rng.standard_normal((rows, 2)), truth


def test_it_finds_coefficients_and_intercept():
    features, targets, truth = problem()
    linear = Ridge(sp.csr_matrix(features), np.ones(300)).fit(targets, (2,))
    np.testing.assert_allclose(linear.coefficients, truth, atol=0.05)
    np.testing.assert_allclose(linear.intercept, 3.0, atol=0.05)


def test_features_that_tell_nothing_leave_the_mean():
    features, _, _ = problem()
    targets = np.random.default_rng(1).standard_normal((300, 2))
    predicted = Ridge(sp.csr_matrix(features), np.ones(300)).fit(targets, (2,)).predict(features)
    assert predicted.std() < 0.1


def test_a_group_has_a_penalty_of_its_own():
    features, targets, truth = problem()
    noise = np.random.default_rng(1).standard_normal((300, 2))
    linear = Ridge(sp.csr_matrix(features), np.ones(300)).fit(np.hstack((targets, noise)), (2, 2))
    np.testing.assert_allclose(linear.coefficients[:, :2], truth, atol=0.05)
    assert np.abs(linear.coefficients[:, 2:]).max() < 0.1


def test_rows_of_no_weight_do_not_count():
    features, targets, _ = problem()
    weight = np.ones(300)
    weight[:100] = 0
    wrong = targets.copy()
    wrong[:100] = 1e6
    one, other = (Ridge(sp.csr_matrix(features), weight).fit(each, (2,)) for each in (targets, wrong))
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    np.testing.assert_array_equal(one.intercept, other.intercept)


def test_many_columns_are_solved_by_conjugate_gradients(monkeypatch):
    features, targets, _ = problem(columns=30, noise=1.0)
    weight = np.linspace(0.1, 1, 300)
    monkeypatch.setattr(ridge, "FEW", 10)
    linear = Ridge(sp.csr_matrix(features), weight).fit(targets, (2,))
    weight = weight / weight.mean()
    mean = weight @ features / weight.sum()
    centred = features - mean
    penalty = float(weight @ (centred**2).sum(axis=1)) / weight.sum()
    gram = centred.T @ (weight[:, None] * centred) + penalty * np.eye(30)
    exact = np.linalg.solve(gram, centred.T @ (weight[:, None] * targets))
    np.testing.assert_allclose(linear.coefficients, exact, atol=1e-3)


def test_no_weight_at_all_is_refused():
    with pytest.raises(ValueError, match="no row has a weight"):
        Ridge(sp.csr_matrix(np.eye(3)), np.zeros(3))
