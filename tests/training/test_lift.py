"""How personal taste is: neighbours against popularity."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD, Interactions
from sadrec._settings import checked
from sadrec.training import lift as module
from sadrec.training.dataset import training_data
from sadrec.training.defaults import resolve
from sadrec.training.lift import lift


def in_groups(users=600, items=300, groups=6, inside=0.25, outside=0.0, seed=0):
    rng = np.random.default_rng(seed)
    own = (np.arange(users) % groups)[:, None] == np.arange(items) % groups
    return sp.csr_matrix((rng.random((users, items)) < np.where(own, inside, outside)).astype(np.float32))


def by_popularity(users=600, items=300, seed=0):
    """Everybody chooses by the same odds."""
    rng = np.random.default_rng(seed)
    odds = 0.5 * (1 + np.arange(items)) ** -0.7
    return sp.csr_matrix((rng.random((users, items)) < odds).astype(np.float32))


def test_it_grows_with_how_much_tastes_differ():
    personal, mixed, alike = in_groups(), in_groups(inside=0.2, outside=0.06), by_popularity()
    assert lift(personal) > 1.2 > lift(mixed) > 0.1 > lift(alike)


def test_the_same_data_gives_the_same_number_whatever_the_ratings_are():
    data = in_groups()
    rated = data.copy()
    rated.data[:] = np.random.default_rng(1).integers(0, 6, data.nnz)  # stored zeros are interactions too
    assert lift(data) == lift(data) == lift(rated)


@pytest.mark.parametrize(
    "matrix",
    [sp.csr_matrix((5, 4), dtype=np.float32), sp.csr_matrix(np.eye(50)), sp.csr_matrix(np.ones((3, 2)))],
    ids=["no interactions", "one each", "three users"],
)
def test_where_nothing_can_be_told_it_is_zero(matrix):
    assert lift(matrix) == 0


def test_everybody_knowing_everything_is_no_lift():
    assert lift(sp.csr_matrix(np.ones((40, 8)))) == 0


@pytest.mark.parametrize("users", [8, 12, 20])
def test_few_users_give_a_number(users):
    assert np.isfinite(lift(in_groups(users=users, groups=2)))


def test_a_part_of_much_data_is_enough_to_tell(monkeypatch):
    personal, alike = in_groups(users=2000), by_popularity(users=2000)
    monkeypatch.setattr(module, "MOST_ENTRIES", 8_000)
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1e5)
    assert lift(personal) > 1 > 0.1 > lift(alike)


def test_scores_held_at_a_time_do_not_matter(monkeypatch):
    data = in_groups()
    whole = lift(data)
    monkeypatch.setattr(module, "_BLOCK", 1000)
    assert lift(data) == pytest.approx(whole, rel=1e-6)


def test_what_was_disliked_or_has_no_weight_was_not_chosen():
    data = in_groups()
    rng = np.random.default_rng(2)
    more = sp.csr_matrix((rng.random(data.shape) < 0.2).astype(np.float32))
    both = data + more
    both.data[:] = 1
    chosen = np.asarray(data[both.nonzero()]).ravel()
    assert lift(both, chosen) == lift(both, 0.5 * chosen) == lift(both, chosen != 0) == lift(data) > lift(both)
    assert lift(data, np.ones(data.nnz, np.float32)) == lift(data)


def test_what_does_not_count_does_not_make_taste_look_personal():
    likes, more = by_popularity(), in_groups(inside=0.9)
    both = (likes + more).tocsr()
    data, weights = Interactions.from_csr(both), np.asarray(likes[both.nonzero()], np.float32).ravel()
    beside = training_data(Interactions.from_csr(likes), dislikes=Interactions.from_csr(more))
    assert lift(beside.matrix) > 1.2 > 0.1 > lift(beside.matrix, beside.weights)
    given = checked(SAD())
    assert resolve(given, training_data(data), True, 0).loss == "softmax"
    assert resolve(given, training_data(data, weights=weights), True, 0).loss == "pairwise"


def test_it_takes_little_more_than_who_chose_each_item(monkeypatch):
    data = in_groups(users=4000, items=500, groups=2, inside=0.5)
    monkeypatch.setattr(module, "_BLOCK", 2**14)
    lift(data)
    tracemalloc.start()
    try:
        lift(data)
        assert tracemalloc.get_traced_memory()[1] < 7 * data.nnz
    finally:
        tracemalloc.stop()
