"""Random numbers as functions of their place."""

import numpy as np
from scipy import stats

from sadrec._core.kernel import kernel
from sadrec._core.random import normal, uniform
from sadrec.posterior.chain import Clock, stream


@kernel
def fill(key, count, gaussian):
    numbers = np.empty(count)
    for i in range(count):
        numbers[i] = normal(key, i) if gaussian else uniform(key, i)
    return numbers


def test_uniforms_are_uniform_and_uncorrelated():
    u = fill(np.uint64(stream(Clock(3, 1, 7), 2)), 200_000, False)
    assert u.min() > 0
    assert u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    for lag in (1, 2, 5, 64):
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 0.01


def test_normals_are_normal():
    assert stats.kstest(fill(np.uint64(stream(Clock(3, 1, 7), 2)), 200_000, True), "norm").pvalue > 1e-3


def test_streams_of_neighbouring_keys_have_nothing_in_common():
    clocks = [Clock(s, c, w) for s in range(3) for c in range(3) for w in range(3)]
    table = np.array([fill(np.uint64(stream(clock, stage)), 4000, False) for clock in clocks for stage in range(3)])
    correlations = np.corrcoef(table) - np.eye(len(table))
    assert np.abs(correlations).max() < 5.2 / np.sqrt(4000)
    assert len(np.unique(table)) == table.size
