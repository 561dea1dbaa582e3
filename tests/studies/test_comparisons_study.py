"""Stated comparisons: Bradley-Terry as a limit of SAD, and the study that compares them."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import BPR, SAD, Comparisons
from sadrec._files import read_arrays
from sadrec.evaluation import evaluate_comparisons
from studies.comparisons.__main__ import comparisons_command
from studies.comparisons.study import CONTESTANTS, bradley_terry, comparisons_study


def round_robin(items=6, times=20, seed=0):
    """Every item meets every other one ``times`` times; strengths from -1 to 1."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, items)
    left, right = (np.repeat(side, times) for side in np.triu_indices(items, 1))
    wins = rng.random(len(left)) < 1 / (1 + np.exp(strength[right] - strength[left]))
    winner, loser = np.where(wins, left, right), np.where(wins, right, left)
    return Comparisons.from_indices(np.zeros(len(left), int), winner, loser, users=[0], items=np.arange(items))


def one_user(comparisons, l2, **settings):
    """BPR of one user whose vectors are 0, so that only its bias is learnt."""
    settings = {"factors": 1, "iterations": 600, "learning_rate": 0.05, "init_scale": 0.0, **settings}
    model = BPR(bias=True, regularization=l2, num_threads=1, **settings)
    return model.fit(comparisons, show_progress=False)


def centred(values):
    return np.asarray(values, np.float64) - np.mean(values)


def test_one_user_with_t_1_approaches_bradley_terry_as_l2_goes_to_0():
    comparisons = round_robin()
    limit = centred(bradley_terry(comparisons, alpha=1e-9).item_bias)
    distances = [np.abs(centred(one_user(comparisons, l2).item_bias) - limit).max() for l2 in (0.03, 0.01, 0.003, 0.0)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.01 < 0.3 < distances[0]


def test_the_bias_s_l2_is_bradley_terry_s_penalty_divided_by_the_comparisons_of_an_item():
    comparisons = round_robin()
    each = 2 * len(comparisons) / len(comparisons.items)
    theirs = bradley_terry(comparisons, alpha=2.0).item_bias
    np.testing.assert_allclose(one_user(comparisons, 2.0 / each).item_bias, theirs, atol=0.01)


def test_sad_of_one_user_held_to_t_1_is_the_same_bradley_terry():
    comparisons = round_robin()
    sad = SAD(
        factors=4, iterations=600, learning_rate=0.05, regularization=0.0, rival_regularization=1.0, bias=True,
        init_scale=0.01, num_threads=1,
    ).fit(comparisons, show_progress=False)  # fmt: skip
    theirs = bradley_terry(comparisons, alpha=1e-9)
    pairs = np.triu_indices(6, 1)
    np.testing.assert_allclose(sad.probability(0, *pairs), theirs.probability(0, *pairs), atol=0.02)


def test_scarce_comparisons_by_many_judges_are_predicted_better_than_by_a_coin():
    rng = np.random.default_rng(1)
    judge, left, right = rng.integers(0, 300, 3000), rng.integers(0, 100, 3000), rng.integers(1, 100, 3000)
    right = (left + right) % 100
    wins = rng.random(3000) < 1 / (1 + np.exp((right - left) / 25))
    winner, loser = np.where(wins, left, right), np.where(wins, right, left)
    said = Comparisons.from_indices(judge, winner, loser, users=np.arange(300), items=np.arange(100))
    train, held_out = said.split(test=0.2, seed=0)
    theirs = evaluate_comparisons(bradley_terry(train, alpha=0.1), held_out)
    for kind in (SAD, BPR):
        ours = evaluate_comparisons(kind(num_threads=1).fit(train, show_progress=False), held_out)
        assert ours["log_loss"] < np.log(2)
        assert ours["log_loss"] < theirs["log_loss"] + 0.02


@pytest.fixture
def small_data(tmp_path):
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 12, 400), rng.integers(1, 12, 400)
    right = (left + right) % 12
    winner = np.where(rng.random(400) < 0.8, np.maximum(left, right), np.minimum(left, right))
    frame = pl.DataFrame({"user": rng.integers(0, 8, 400), "left": left, "right": right, "winner": winner})
    folder = tmp_path / "data"
    (folder / "small").mkdir(parents=True)
    frame.write_parquet(folder / "small" / "comparisons.parquet")
    return folder


def test_the_study_tells_every_model_and_computes_nothing_twice(tmp_path, small_data):
    out = tmp_path / "out"
    study = comparisons_study(out, small_data, names=["small"], splits=2, show_progress=False)
    summary = study.summaries["small"]
    assert summary["model"].n_unique() == 2 * len(CONTESTANTS)
    assert summary.filter(pl.col("measure") == "accuracy")["mean"].min() > 0.7
    assert set(summary["splits"]) == {2}
    records = {path: path.stat().st_mtime_ns for path in out.glob("runs/*.result")}
    (cut, *_), before = records, study.report.read_text()
    cut.write_bytes(cut.read_bytes()[:40])
    again = comparisons_study(out, small_data, names=["small"], splits=2, show_progress=False)
    assert again.report.read_text() == before
    assert [path for path, written in records.items() if path.stat().st_mtime_ns != written] == [cut]
    assert read_arrays(cut, "a result")[1]["values"]


def test_the_command_prints_the_table(tmp_path, small_data):
    arguments = ["--data", str(small_data), "-o", str(tmp_path / "out"), "--name", "small", "--splits", "1", "--quiet"]
    result = CliRunner().invoke(comparisons_command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "| Bradley-Terry (choix), chosen |" in result.output


def test_a_missing_data_set_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="llmfao"):
        comparisons_study(tmp_path / "out", tmp_path, names=["llmfao"])
    assert not (tmp_path / "out").exists()
