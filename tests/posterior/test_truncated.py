"""The normal distribution and its positive part, against scipy."""

import numpy as np
import pytest
from scipy import special, stats

from sadrec._core.kernel import kernel
from sadrec._core.random import uniform
from sadrec.posterior.truncated import log_normal_cdf, normal_quantile_lower, positive_normal


@kernel
def positive_normals(mean, count, key):
    draws = np.empty(count)
    for i in range(count):
        draws[i] = positive_normal(mean, uniform(key, i))
    return draws


def test_the_quantile_is_exact_down_to_1e_minus_300():
    p = np.logspace(-300, np.log10(0.5), 3000)
    result = np.array([normal_quantile_lower(value) for value in p])
    np.testing.assert_allclose(result, special.ndtri(p), rtol=1e-14, atol=1e-15)


def test_the_logarithm_of_the_distribution_function_is_exact_from_minus_200_to_30():
    x = np.linspace(-200, 30, 2301)
    result = np.array([log_normal_cdf(value) for value in x])
    np.testing.assert_allclose(result, special.log_ndtr(x), rtol=1e-12)


@pytest.mark.parametrize("mean", [-1e4, -300.0, -40.0, -30.0, -6.001, -5.999, -1.0, 0.0, 0.5, 8.0, 30.0])
def test_a_draw_inverts_the_upper_tail(mean):
    u = np.concatenate((np.logspace(-12, -1, 200), np.linspace(0.1, 0.99, 200)))
    z = np.array([positive_normal(mean, value) for value in u])
    assert (z > 0).all()
    result = special.log_ndtr(mean - z) - special.log_ndtr(mean)
    # The check itself loses digits of log_ndtr far in the tail: its values there are of the size mean^2 / 2.
    np.testing.assert_allclose(result, np.log(u), rtol=1e-9, atol=1e-14 * max(1, mean * mean))


@pytest.mark.parametrize("mean", np.arange(-30.0, 31.0, 5.0))
def test_draws_have_the_moments_of_the_truncated_normal(mean):
    draws = positive_normals(mean, 200_000, np.uint64(17))
    law = stats.truncnorm(-mean, np.inf, loc=mean)
    error = law.std() / np.sqrt(len(draws))
    assert abs(draws.mean() - law.mean()) < 4.5 * error
    assert draws.var() == pytest.approx(law.var(), rel=0.03)


def test_the_largest_and_smallest_uniform_give_finite_positive_draws():
    for mean in (-1e8, -50.0, -6.0, 0.0, 6.0, 50.0):
        for u in (2.0**-53, 1 - 2.0**-53):
            assert 0 < positive_normal(mean, u) < np.inf
