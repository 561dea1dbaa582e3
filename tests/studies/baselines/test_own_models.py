"""Popularity and EASE, which need no library of others."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sadrec.data import Interactions, UnknownIdError
from sadrec.models.errors import NotFittedError
from studies.baselines import EASE, Popularity, make


@pytest.fixture
def data():
    rng = np.random.default_rng(2)
    return Interactions.from_csr(csr_matrix((rng.random((40, 12)) < 0.3) * rng.integers(1, 6, (40, 12))))


def test_popularity_orders_by_count_and_not_by_rating(data):
    counts = np.diff(data.matrix.tocsc().indptr)
    scores = Popularity().fit(data).scores(data.users)
    np.testing.assert_allclose(np.exp(scores) - 1, np.tile(counts, (40, 1)), rtol=1e-5)


def test_an_explicit_zero_is_an_interaction():
    matrix = csr_matrix((np.array([0.0, 5.0]), (np.array([0, 1]), np.array([0, 0]))), shape=(2, 2))
    model = Popularity().fit(Interactions.from_csr(matrix))
    np.testing.assert_allclose(model.scores([0])[0], [np.log(3), 0], rtol=1e-6)


def test_ease_is_the_best_matrix_with_a_zero_diagonal(data):
    """At the optimum the gradient of the penalised error is 0 everywhere but on the diagonal."""
    penalty = 3.0
    model = EASE(regularization=penalty).fit(data)
    ones = (data.matrix != 0).toarray().astype(float)
    weights = np.linalg.lstsq(ones, model.scores(data.users), rcond=None)[0]
    gradient = ones.T @ (ones @ weights - ones) + penalty * weights
    np.testing.assert_allclose(np.diag(weights), 0, atol=1e-5)
    np.testing.assert_allclose(gradient - np.diag(np.diag(gradient)), 0, atol=1e-4)


@pytest.mark.parametrize("name", ["popularity", "ease"])
def test_margins_are_differences_of_scores(name, data):
    model = make(name).fit(data)
    user, items, rivals = data.users[3], data.items[[1, 5]], data.items[[0, 2, 5]]
    row = model.scores([user])[0]
    np.testing.assert_array_equal(model.margins(user, items, rivals), row[[1, 5]][:, None] - row[[0, 2, 5]][None, :])


def test_a_model_that_is_not_fitted_says_so():
    model = Popularity()
    with pytest.raises(NotFittedError, match="call fit first"):
        model.scores([1])
    assert not hasattr(model, "users")


def test_unknown_users_are_named(data):
    with pytest.raises(UnknownIdError, match="unknown user 99"):
        Popularity().fit(data).scores([99])


def test_ids_of_any_kind_go_in_and_come_out():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"user": ["ann", "ann", "bob"], "item": ["cod", "ale", "cod"]})
    model = Popularity().fit(frame)
    assert model.margins("bob", ["cod"], ["ale"])[0, 0] == pytest.approx(np.log(3 / 2))


@pytest.mark.parametrize(("name", "floor"), [("popularity", 0.80), ("ease", 0.90)])
def test_quality_on_movielens_100k(name, floor, data_folder):
    from sadrec.evaluation import evaluate

    data = Interactions.read(data_folder / "movielens-100k" / "ratings.parquet")
    train, held_out = data.leave_one_out(seed=0)
    assert evaluate(make(name).fit(train), train, held_out)["sampled_auc"] > floor
