"""Floors on real data: a silent loss of accuracy fails here."""

import numpy as np
import polars as pl
import pytest

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec.evaluation import evaluate, evaluate_comparisons

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


GAINS = {
    "pokemon": 0.11, "corewar": 0.025, "gambles-2012": 0.27, "llmfao": 0.07, "nfl-season": 0.015, "bc-tennis": -0.003
}  # fmt: skip


@pytest.mark.parametrize("name", GAINS)
def test_default_settings_gain_on_bradley_terry_on_real_comparisons(data_folder, name):
    folder = data_folder / "matchups" / name
    frame = pl.read_parquet((folder if folder.is_dir() else data_folder / name) / "comparisons.parquet")
    if "left" in frame.columns:
        frame = frame.drop_nulls("winner").with_columns(
            loser=pl.when(pl.col("left") == pl.col("winner")).then("right").otherwise("left")
        )
    frame = frame.select("user", "winner", "loser")
    losses = {}
    for who in ("everybody is asked alike", "each judge"):
        table = frame.with_columns(user=pl.lit(0)) if who != "each judge" else frame
        data = Comparisons.from_frame(table, user="user", winner="winner", loser="loser")
        train, rest = data.split(test=0.5, seed=0)
        _, test = rest.split(test=0.6, seed=0)
        model = SAD() if who == "each judge" else BPR()
        losses[who] = evaluate_comparisons(model.fit(train, show_progress=False), test)["log_loss"]
    assert losses["everybody is asked alike"] - losses["each judge"] >= GAINS[name]
