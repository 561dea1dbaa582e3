"""Popularity and EASE."""

from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sadrec.data import Comparisons, Interactions, UnknownIdError
from sadrec.evaluation import EASE, Popularity
from sadrec.models import ModelFileError, NotFittedError
from tests.contract import EstimatorContract

MODELS = [Popularity(), EASE(20.0)]


@pytest.fixture
def data():
    rng = np.random.default_rng(2)
    return Interactions.from_csr(csr_matrix((rng.random((40, 12)) < 0.3) * rng.integers(1, 6, (40, 12))))


def test_popularity_orders_by_count_and_not_by_rating(data):
    counts = np.diff(data.matrix.tocsc().indptr)
    scores = Popularity().fit(data).scores(data.users)
    np.testing.assert_allclose(np.exp(scores) - 1, np.tile(counts, (40, 1)), rtol=1e-5)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_saved_model_is_the_one_that_is_loaded(model, data, tmp_path):
    fitted = model.clone().fit(data)
    fitted.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.users, data.users)
    np.testing.assert_array_equal(loaded.scores(data.users), fitted.scores(data.users))
    other = EASE if not isinstance(model, EASE) else Popularity
    with pytest.raises(ModelFileError, match=f"holds no {other.__name__}"):
        other.load(tmp_path / "model")


def test_settings_are_checked_when_fitted(data):
    with pytest.raises(ValueError, match="regularization must be a finite number"):
        EASE(regularization=-1.0).fit(data)


def test_popularity_learns_from_comparisons_too():
    games = Comparisons.from_indices([0, 0, 0], [0, 0, 1], [1, 2, 2], users=["ann"], items=["a", "b", "c"])
    scores = Popularity().fit(games).scores(["ann"])[0]
    np.testing.assert_allclose(scores, [np.log(3), 0, -np.log(3)], rtol=1e-6)


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


def test_ease_is_the_same_however_many_rows_are_worked_on_at_a_time(data, monkeypatch):
    whole = EASE(regularization=3.0).fit(data).weights
    monkeypatch.setattr("sadrec.evaluation.baselines._ROWS", 3)
    np.testing.assert_array_equal(EASE(regularization=3.0).fit(data).weights, whole)


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
    assert model.scores(["bob"]) == pytest.approx(np.log([[2, 3]]))


@pytest.mark.parametrize(("model", "floor"), [(Popularity(), 0.80), (EASE(), 0.90)], ids=["popularity", "ease"])
def test_quality_on_movielens_100k(model, floor, data_folder):
    from sadrec.evaluation import evaluate

    data = Interactions.read(data_folder / "movielens-100k" / "ratings.parquet")
    train, held_out = data.leave_one_out(seed=0)
    assert evaluate(model.clone().fit(train), train, held_out)["sampled_auc"] > floor


class TestPopularity(EstimatorContract):
    model = Popularity
    personal = False

    def learnt(self, model):
        return [model.item_scores]


class TestEASE(EstimatorContract):
    model = EASE
    settings: ClassVar = {"regularization": 1.0}
    another = ("regularization", 2.5)

    def learnt(self, model):
        return [model.weights]
