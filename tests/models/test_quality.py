"""Floors on real data: a silent loss of accuracy fails here."""

import numpy as np
import pytest

from sadrec import BPR, SAD, Interactions
from sadrec.evaluation import evaluate

pytestmark = pytest.mark.data


def measured(model, folder, name):
    train, held_out = Interactions.read(folder / name / "ratings.parquet").leave_one_out(seed=0)
    return evaluate(model.fit(train, show_progress=False), train, held_out, seed=0)


@pytest.mark.parametrize("model", [SAD, BPR])
def test_movielens_100k(data_folder, model):
    figures = measured(
        model(factors=32, iterations=30, learning_rate=0.1, regularization=0.01), data_folder, "movielens-100k"
    )
    assert figures["sampled_auc"] > 0.92
    assert figures["m1"] > 0.85


def test_movielens_1m(data_folder):
    figures = measured(
        SAD(factors=32, iterations=15, learning_rate=0.1, regularization=0.005), data_folder, "movielens-1m"
    )
    assert figures["sampled_auc"] > 0.93
    assert figures["m1"] > 0.895
    assert figures["m2"] > 0.885
    assert figures["match"] > 0.40
    assert figures["mean_margin"] > 0.2


def test_the_order_inside_ratings_is_learnt(data_folder):
    settings = {"factors": 32, "iterations": 15, "learning_rate": 0.1, "regularization": 0.005}
    plain = measured(SAD(**settings), data_folder, "movielens-100k")
    ordered = measured(SAD(order_share=0.3, **settings), data_folder, "movielens-100k")
    assert ordered["unequal_accuracy"] > plain["unequal_accuracy"] + 0.05
    assert ordered["unequal_accuracy"] > 0.66


def test_a_user_s_preferences_are_antisymmetric_on_a_fitted_model(data_folder):
    train, _ = Interactions.read(data_folder / "movielens-100k" / "ratings.parquet").leave_one_out(seed=0)
    model = SAD(factors=16, iterations=3).fit(train, show_progress=False)
    items = model.items[:40]
    x = model.preference(model.users[3], items[:, None], items[None, :])
    np.testing.assert_array_equal(x, -x.T)
