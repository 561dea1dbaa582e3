"""Paired tests against scipy's, and against simulation."""

import numpy as np
import pytest
from scipy import stats

from sadrec.evaluation import paired_test
from sadrec.evaluation.significance import holm


def test_independent_pairs_give_scipys_paired_t_and_wilcoxon():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 30), rng.normal(0, 1, 30)
    result = paired_test(a, b)
    expected = stats.ttest_rel(a, b)
    assert result.p_t == pytest.approx(expected.pvalue)
    assert (result.low, result.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert result.p_wilcoxon == pytest.approx(stats.wilcoxon(a, b).pvalue)


def test_overlapping_training_parts_widen_the_error():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 10), rng.normal(0, 1, 10)
    plain, corrected = paired_test(a, b), paired_test(a, b, test_to_train=0.25)
    assert corrected.error == pytest.approx(plain.error * np.sqrt((0.1 + 0.25) / 0.1))
    assert corrected.p_t > plain.p_t


def test_pairs_with_a_missing_value_are_left_out():
    result = paired_test(np.array([1.0, np.nan, 3.0]), np.array([0.5, 1.0, 2.0]))
    assert result.n == 2
    assert result.difference == 0.75


def test_no_pairs_one_pair_equal_pairs():
    assert paired_test(np.empty(0), np.empty(0)).n == 0
    assert np.isnan(paired_test(np.array([2.0]), np.array([1.0])).p_t)
    assert paired_test(np.ones(3), np.ones(3)).p_t == 1.0
    with pytest.raises(ValueError, match="one length"):
        paired_test(np.ones(3), np.ones(4))


def test_holm_keeps_order_and_never_passes_one():
    p = np.array([0.2, 0.001, np.nan, 0.8])
    adjusted = holm(p)
    assert adjusted[[1, 0, 3]] == pytest.approx([0.003, 0.4, 0.8])
    assert np.isnan(adjusted[2])
    assert holm(np.array([0.9, 0.95])).max() <= 1
