"""The spectrum of interactions: singular values, a number of factors, and where a fit starts."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Interactions
from sadrec.training.dataset import training_data
from sadrec.training.sgd import spectrum as module
from sadrec.training.sgd.factors import initial_factors
from sadrec.training.sgd.spectrum import (
    choices,
    decompose,
    factors_above_chance,
    sample_users,
    start_items,
    start_users,
)


def in_groups(groups, users=1200, items=240, inside=0.25, outside=0.01, seed=0):
    rng = np.random.default_rng(seed)
    own = (np.arange(users) % groups)[:, None] == np.arange(items) % groups
    return sp.csr_matrix((rng.random((users, items)) < np.where(own, inside, outside)).astype(np.float32))


def test_singular_values_and_vectors_are_those_of_the_whole_decomposition():
    chosen = in_groups(6)
    users, items = (np.asarray(chosen.sum(axis=axis)).ravel() for axis in (1, 0))
    normal = chosen.toarray() / np.sqrt(np.maximum(users, 1)[:, None] * np.maximum(items, 1))
    exact = np.linalg.svd(normal, full_matrices=False)
    found = decompose(chosen, 6)
    np.testing.assert_allclose(found.values, exact[1][:6], rtol=1e-2)
    overlap = np.linalg.svd(found.vectors.T @ exact[2][:6].T)[1]
    np.testing.assert_allclose(overlap, 1, atol=0.05)
    np.testing.assert_array_equal(found.counts, items)


@pytest.mark.parametrize("groups", [40, 80])
def test_there_are_as_many_factors_as_groups_of_people_in_steps_of_16(groups):
    factors = factors_above_chance(in_groups(groups, 4000, 480, 0.9, 0.003))
    assert groups <= factors <= groups + 32


def test_where_chance_decides_there_are_few_factors():
    assert factors_above_chance(in_groups(1, outside=0.1, inside=0.1)) == module.FEWEST_FACTORS


@pytest.mark.parametrize(
    "matrix",
    [np.zeros((5, 4)), np.ones((1, 2)), np.ones((40, 8)), np.eye(30), np.eye(2)],
    ids=["nothing", "one user", "everything", "one each", "two"],
)
def test_small_and_strange_data_has_factors_and_a_start(matrix):
    chosen = sp.csr_matrix(matrix.astype(np.float32))
    assert factors_above_chance(chosen) == module.FEWEST_FACTORS
    factors = initial_factors(*matrix.shape, 32, 0.0, True, True, 0)
    found = decompose(chosen, 32)
    start_items(factors, found, slice(None), 2.0)
    start_users(factors.users, found, (chosen.indptr, chosen.indices, None), 2.0)
    assert factors.finite() and (factors.tau == 1).all()
    for rows, counts in ((factors.users, matrix.sum(axis=1)), (factors.eta, matrix.sum(axis=0))):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.where(counts > 0, 2.0, 0.0), rtol=1e-5)


def test_people_of_a_group_start_near_its_items(monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 7)
    data = training_data(Interactions.from_csr(in_groups(4, 60, 40, 0.8)))
    factors = initial_factors(60, 40, 4, 0.0, False, True, 0)
    data.start(factors, 1.5)
    scores = factors.users @ factors.eta.T
    own = (np.arange(60) % 4)[:, None] == np.arange(40) % 4
    assert scores[own].min() > scores[~own].max()
    popular = np.argsort(data.matrix.getnnz(axis=0), kind="stable")
    assert (np.diff(factors.bias[popular]) >= 0).all() and factors.bias[popular[0]] < 0 < factors.bias[popular[-1]]


def test_what_has_no_weight_above_0_was_not_chosen():
    chosen = in_groups(4, users=60, items=40)
    more = chosen + sp.csr_matrix(np.random.default_rng(1).random((60, 40)) < 0.2)
    more.data = np.where(np.asarray(chosen[more.nonzero()]).ravel() > 0, 0.5, -1.0)
    left = choices(more.indptr, more.indices, more.data, 40)
    np.testing.assert_array_equal(left.toarray(), chosen.toarray())


def test_a_part_of_the_users_is_looked_at_where_there_are_many(monkeypatch):
    lengths = np.r_[np.zeros(50, int), np.full(100, 4)]
    np.testing.assert_array_equal(sample_users(lengths), np.arange(50, 150))
    monkeypatch.setattr(module, "MOST_ENTRIES", 200)
    some = sample_users(lengths)
    assert 45 <= len(some) <= 50 and some.min() >= 50 and (np.diff(some) > 0).all()


@pytest.mark.parametrize("model", [SAD, BPR])
def test_a_fit_of_no_epochs_is_the_start_and_ranks_what_the_group_likes(model):
    data = Interactions.from_csr(in_groups(4, 80, 40, 0.5))
    fitted = model(4, iterations=0).fit(data, show_progress=False)
    lists = fitted.recommend(fitted.users, N=3)[0]
    assert ((np.asarray(lists, np.int64) % 4) == (np.arange(80) % 4)[:, None]).mean() > 0.95
