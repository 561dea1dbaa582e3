"""Items a user has not met: which, how evenly, and keyed by what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sadrec.evaluation.sampling import subset, uniforms, unmet_items


@given(
    n_items=st.integers(1, 60),
    met=st.sets(st.integers(0, 59)),
    size=st.integers(1, 80),
    seed=st.integers(0, 2**63),
    row=st.integers(0, 10**6),
)
def test_drawn_items_are_distinct_and_never_met(n_items, met, size, seed, row):
    met = {item for item in met if item < n_items}
    drawn = unmet_items(np.array(sorted(met), dtype=int), n_items, uniforms(seed, np.array([row]), size)[0]).tolist()
    assert len(drawn) == len(set(drawn)) == min(size, n_items - len(met))
    assert not met & set(drawn)
    assert all(0 <= item < n_items for item in drawn)


def test_every_unmet_item_is_drawn_equally_often():
    met, n_items, size = np.array([0, 3, 4, 11]), 20, 5
    counts = np.zeros(n_items)
    for row in range(4000):
        counts[unmet_items(met, n_items, uniforms(7, np.array([row]), size)[0])] += 1
    expected = 4000 * size / 16
    assert counts[met].sum() == 0
    statistic = ((np.delete(counts, met) - expected) ** 2 / expected).sum()
    assert statistic < 40  # chi-square with 15 degrees of freedom: chance of more is 0.0005


def test_every_subset_is_equally_likely():
    counts = {}
    for row in range(6000):
        key = tuple(subset(4, uniforms(3, np.array([row]), 2)[0]).tolist())
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 6
    assert min(counts.values()) > 850
    assert max(counts.values()) < 1150


def test_numbers_depend_on_seed_and_user_and_not_on_company():
    alone = uniforms(1, np.array([42]), 10)[0]
    assert (alone == uniforms(1, np.arange(100), 10)[42]).all()
    assert (alone != uniforms(2, np.array([42]), 10)[0]).any()
    assert (alone != uniforms(1, np.array([43]), 10)[0]).any()


def test_numbers_look_uniform():
    numbers = uniforms(0, np.arange(500), 100).ravel()
    assert abs(numbers.mean() - 0.5) < 0.005
    assert np.histogram(numbers, 20, (0, 1))[0] == pytest.approx(2500, rel=0.1)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="seed"):
        uniforms(-1, np.array([0]), 3)
