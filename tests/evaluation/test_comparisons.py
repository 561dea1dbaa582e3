"""Held-out comparisons, against a plain loop."""

import math

import numpy as np
import polars as pl
import pytest

from sadrec.data import Comparisons
from sadrec.evaluation import comparisons as module
from sadrec.evaluation import evaluate, evaluate_comparisons


@pytest.fixture
def comparisons():
    rng = np.random.default_rng(0)
    first, gap = rng.integers(0, 12, 400), rng.integers(1, 12, 400)
    frame = pl.DataFrame(
        {
            "user": [f"judge {i}" for i in rng.integers(0, 7, 400)],
            "winner": [f"item {i:02d}" for i in first],
            "loser": [f"item {i:02d}" for i in (first + gap) % 12],
        }
    )
    return Comparisons.from_frame(frame)


@pytest.mark.parametrize("at_once", [512, 5])
def test_every_figure_is_what_a_plain_loop_gives(comparisons, factor_model, monkeypatch, at_once):
    monkeypatch.setattr(module, "_AT_ONCE", at_once)

    class Shape:
        users, items = comparisons.users, comparisons.items
        matrix = np.empty((len(comparisons.users), len(comparisons.items)))

    model = factor_model(Shape())
    x = [
        model.tensor(user)[winner, loser]
        for user, winner, loser in zip(
            comparisons.user_index, comparisons.winner_index, comparisons.loser_index, strict=True
        )
    ]
    result = evaluate_comparisons(model, comparisons)
    assert result.to_frame().columns[-1] == "comparisons" and " comparisons\n" in repr(result)
    assert result["accuracy"] == pytest.approx(np.mean([v > 0 for v in x]))
    assert result["mean_margin"] == pytest.approx(np.mean(x), abs=1e-5)
    assert result["log_loss"] == pytest.approx(np.mean([math.log1p(math.exp(-v)) for v in x]), abs=1e-5)
    assert result["brier"] == pytest.approx(np.mean([(1 / (1 + math.exp(v))) ** 2 for v in x]), abs=1e-5)
    assert result.counts["accuracy"] == 400
    np.testing.assert_allclose(result.per_row["mean_margin"], x, atol=1e-5)
    of_judge = {user: np.mean([v for v, u in zip(x, comparisons.user_index, strict=True) if u == row])
                for row, user in enumerate(comparisons.users.tolist())}  # fmt: skip
    assert dict(zip(result.users.tolist(), result.per_user["mean_margin"], strict=True)) == pytest.approx(
        of_judge, abs=1e-5
    )
    assert dict(evaluate(model, comparisons, comparisons)) == dict(result)


def test_a_split_is_of_one_kind(comparisons, make_ratings, scores_model):
    data = make_ratings()
    with pytest.raises(TypeError, match="one part is interactions and the other comparisons"):
        evaluate(scores_model(data, np.zeros(data.matrix.shape)), data, comparisons)


def test_scores_only_models_have_an_accuracy_and_no_log_loss(comparisons, scores_model):
    silent = scores_model(comparisons, np.zeros((len(comparisons.users), len(comparisons.items))))
    result = evaluate_comparisons(silent, comparisons)
    assert result["accuracy"] == 0.5
    assert math.isnan(result["log_loss"])


def test_weights_count(scores_model):
    frame = pl.DataFrame({"user": [1, 1], "winner": ["a", "b"], "loser": ["b", "a"], "weight": [3.0, 1.0]})
    comparisons = Comparisons.from_frame(frame, weight="weight")
    model = scores_model(comparisons, np.array([[1.0, 0.0]]))
    assert evaluate_comparisons(model, comparisons)["accuracy"] == pytest.approx(0.75)
