"""Is T worth it: the verdict, and what it rests on."""

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from sadrec import BPR, SAD
from sadrec.data import Comparisons, Interactions, folds
from sadrec.evaluation import CompareResult, compare_with_bpr, evaluate
from sadrec.evaluation.compare import sparsity_of
from sadrec.evaluation.compare_result import SplitRun
from sadrec.evaluation.compare_with_bpr import _decided, _is_clear, _of_some_users


class Known:
    """Scores that know the data to a degree; margins as differences."""

    def __init__(self, truth, skill=1.0, noise_seed=0, tau=1.0):
        self.truth, self.skill, self.noise_seed, self.tau = truth, skill, noise_seed, tau

    def get_params(self):
        return {"truth": self.truth, "skill": self.skill, "noise_seed": self.noise_seed, "tau": self.tau}

    def fit(self, train, show_progress=True):
        self.users, self.items = train.users, train.items
        noise = np.random.default_rng(self.noise_seed).normal(size=self.truth.shape)
        self.table = self.skill * self.truth + noise
        return self

    def scores(self, users):
        return self.table[np.searchsorted(self.users, users)]


@pytest.fixture
def truth():
    return (np.random.default_rng(0).random((80, 150)) < 0.2).astype(float)


@pytest.fixture
def data(truth):
    rng = np.random.default_rng(1)
    return Interactions.from_csr(csr_matrix(truth * rng.integers(1, 6, truth.shape)))


def test_a_better_model_is_recommended(data, truth):
    result = compare_with_bpr(data, splits=4, models=(Known(truth, 3.0), Known(truth, 0.5)), show_progress=False)
    assert result.advice == "learn"
    assert str(result).startswith("Learn T (use SAD): over 4 splits it is better than T = 1 on")
    assert "m1 (+" in str(result)
    assert "\n" not in str(result)


def test_a_worse_model_is_not(data, truth):
    result = compare_with_bpr(data, splits=4, models=(Known(truth, 0.5), Known(truth, 3.0)), show_progress=False)
    assert result.advice == "keep at 1"
    assert "learning T is worse on" in str(result)


def test_no_difference_means_the_simpler_model(data, truth):
    result = compare_with_bpr(data, splits=4, models=(Known(truth, 1.0), Known(truth, 1.0)), show_progress=False)
    assert result.advice == "keep at 1"
    assert "no measure differs beyond chance" in str(result)


def test_better_on_one_and_worse_on_another_is_said(data, truth):
    """One knows what people meet, the other how they rate it."""
    ratings = data.matrix.toarray()
    ordered = np.where(truth > 0, -100.0, 0.0) + 10 * ratings
    result = compare_with_bpr(data, splits=4, models=(Known(truth, 8.0), Known(ordered, 1.0)), show_progress=False)
    assert result.advice == "keep at 1"
    assert "but worse on" in str(result)


def test_tests_have_both_means_and_the_table_shows_them(data, truth):
    result = compare_with_bpr(data, splits=3, models=(Known(truth, 2.0), Known(truth, 1.0)), show_progress=False)
    row = result.tests.filter(measure="m1").row(0, named=True)
    assert row["difference"] == pytest.approx(row["sad"] - row["bpr"])
    assert row["low"] <= row["difference"] <= row["high"]
    assert "| m1 (%) |" in result.table()
    assert set(result.comparison.models) == {"SAD", "T = 1"}


def test_a_model_that_never_works_is_an_error_with_its_reason(data, truth):
    class Broken(Known):
        def fit(self, train, show_progress=True):
            raise RuntimeError("out of luck")

    with pytest.raises(ValueError, match="out of luck"):
        compare_with_bpr(data, splits=2, models=(Known(truth), Broken(truth)), show_progress=False)


def test_it_shows_as_its_sentence(data, truth):
    result = compare_with_bpr(data, splits=2, models=(Known(truth), Known(truth)), show_progress=False)
    assert repr(result) == str(result) and str(result).startswith("Keep T at 1")


def test_data_of_any_form_is_taken(data, truth):
    models = (Known(truth, 2.0), Known(truth, 1.0))
    ours, matrix = (
        compare_with_bpr(form, splits=2, models=models, show_progress=False) for form in (data, data.matrix)
    )
    assert ours.tests.equals(matrix.tests)


def test_of_much_data_some_users_are_looked_at(data, truth):
    models = (Known(truth, skill=2.0), Known(truth, skill=0.2))
    few = _of_some_users(data, data.matrix.nnz // 3, seed=1)
    assert data.matrix.nnz / 6 < few.matrix.nnz < data.matrix.nnz / 2
    at = [list(data.users).index(user) for user in few.users]
    assert np.array_equal(np.diff(few.matrix.indptr), np.diff(data.matrix.indptr)[at])  # all that they did
    assert _of_some_users(data, data.matrix.nnz, seed=1) is data
    assert _of_some_users(_of_some_users(data, 1, seed=1), 1, seed=1).shape[0] == 1
    result = compare_with_bpr(data, 2, models=models, show_progress=False)
    assert len(result.comparison.per_user("SAD", "sampled_auc")) == data.shape[0]
    with pytest.raises(ValueError, match="most"):
        compare_with_bpr(data, 2, models=models, most=0, show_progress=False)


def test_what_is_wrong_is_named_before_anything_is_fitted(data):
    with pytest.raises(ValueError, match="unknown setting 'factor': the models have advanced, bias"):
        compare_with_bpr(data, factor=8)
    for splits in (0, 1, 2.5, True):
        with pytest.raises(ValueError, match=f"splits must be a whole number, at least 2, not {splits}"):
            compare_with_bpr(data, splits)
    with pytest.raises(ValueError, match=r"models must be two, .*, not 1"):
        compare_with_bpr(data, models=(SAD(),))
    with pytest.raises(TypeError, match="cannot take interactions from list"):
        compare_with_bpr([1, 2])


def test_sparsity_is_the_share_of_rivals_near_one():
    model = SAD.from_factors(np.ones((1, 2)), np.ones((2, 2)), np.array([[1.0, 1.049], [0.9, 1.2]]))
    assert sparsity_of(model) == 0.5
    assert sparsity_of(object()) == 1.0


def test_the_real_models_with_settings_for_both(make_ratings):
    data = make_ratings(users=60, items=80)
    result = compare_with_bpr(data, splits=2, factors=4, iterations=5, rival_regularization=0.001, show_progress=False)
    about = {run.model: run.about for run in result.comparison.runs}
    assert about["SAD"]["settings"]["rival_regularization"] == 0.001
    assert "rival_regularization" not in about["T = 1"]["settings"]
    assert about["SAD"]["settings"]["factors"] == about["T = 1"]["settings"]["factors"] == 4
    assert 0 <= result.sparsity <= 1
    assert "of T stayed within 0.05 of 1" in str(result)


def rock_paper_scissors(judges=30, times=20):
    """Everybody prefers rock to scissors, scissors to paper and paper to rock, most of the time."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(judges), 3 * times)
    winner = np.tile([0, 1, 2], judges * times)
    loser = (winner + 1) % 3
    upset = rng.random(len(user)) < 0.1
    winner, loser = np.where(upset, loser, winner), np.where(upset, winner, loser)
    return Comparisons.from_indices(user, winner, loser, users=np.arange(judges), items=["rock", "scissors", "paper"])


def test_cycles_in_comparisons_are_worth_learning_t():
    games = rock_paper_scissors()
    settings = {"solver": "sgd", "factors": 3, "iterations": 60, "learning_rate": 0.1, "regularization": 0.02}
    result = compare_with_bpr(games, splits=3, rival_regularization=0.0, show_progress=False, **settings)
    assert result.advice == "learn"
    assert "log_loss (-" in str(result)
    row = result.tests.filter(measure="log_loss").row(0, named=True)
    losses = {"sad": [], "bpr": []}
    held_out = 0
    for train, test in folds(games, 3, 0):
        held_out += len(test)
        assert len(train) + len(test) == len(games)
        for name, model in (("sad", SAD(rival_regularization=0.0, **settings)), ("bpr", BPR(**settings))):
            losses[name].append(evaluate(model.fit(train, show_progress=False), train, test).per_row["log_loss"])
    assert held_out == len(games)
    assert row["sad"] == pytest.approx(np.mean([part.mean() for part in losses["sad"]]))
    difference = np.concatenate(losses["sad"]) - np.concatenate(losses["bpr"])
    assert row["difference"] == pytest.approx(difference.mean(), rel=1e-4)
    assert row["error"] == pytest.approx(difference.std(ddof=1) / np.sqrt(len(difference)), rel=1e-4)
    assert row["p"] < 1e-6


def test_a_straight_line_in_comparisons_needs_no_t():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 5, 800), rng.integers(0, 5, 800)
    keep = first != second
    games = Comparisons.from_indices(
        rng.integers(0, 10, 800)[keep], np.minimum(first, second)[keep], np.maximum(first, second)[keep],
        users=np.arange(10), items=list("abcde"),
    )  # fmt: skip
    result = compare_with_bpr(games, splits=2, factors=2, iterations=20, show_progress=False)
    assert result.advice == "keep at 1"
    assert str(result).startswith("Keep T at 1 (use BPR")


def test_a_ring_of_nine_with_noise_is_worth_learning_t():
    rng = np.random.default_rng(0)
    place = np.linspace(0, 2 * np.pi, 9, endpoint=False)
    first, second = rng.integers(0, 9, 6000), rng.integers(1, 9, 6000)
    second = (first + second) % 9
    wins = rng.random(6000) < 1 / (1 + np.exp(-2 * np.sin(place[first] - place[second])))
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    games = Comparisons.from_indices(np.zeros(6000, int), winner, loser, users=[0], items=range(9))
    result = compare_with_bpr(games, splits=2, show_progress=False)
    assert result.advice == "learn"
    row = result.tests.filter(measure="log_loss").row(0, named=True)
    assert row["difference"] < -0.1


def test_a_sure_difference_that_is_too_small_to_matter_decides_nothing():
    tests = pl.DataFrame(
        {"measure": ["log_loss"], "difference": [-0.004], "error": [0.0001], "p_holm": [1e-9]},
    )
    assert [len(part) for part in _decided(tests)] == [0, 0]
    assert [len(part) for part in _decided(tests.with_columns(difference=-0.006))] == [1, 0]


def test_what_is_clear_on_one_split_needs_no_other():
    rng = np.random.default_rng(0)
    winner = rng.integers(0, 4, 25_000)
    columns = np.zeros(25_000, int), winner, (winner + rng.integers(1, 4, 25_000)) % 4
    games = Comparisons.from_indices(*columns, users=[0], items=range(4))
    result = compare_with_bpr(games, iterations=2, factors=1, show_progress=False)
    assert {run.split for run in result.comparison.runs} == {0}
    assert "over 1 split no measure" in str(result)
    of_games = compare_with_bpr(games, splits=2, iterations=2, factors=1, show_progress=False)
    assert {run.split for run in of_games.comparison.runs} == {0, 1}


@pytest.mark.parametrize(
    ("gain", "spread", "sizes", "enough"),
    [
        (0.02, 0.1, [5000], True),  # 0.015 above what matters, and its error is 0.0014
        (0.0, 0.05, [5000], True),
        (-0.02, 0.1, [5000], True),
        (0.006, 0.1, [5000], False),
        (0.02, 0.1, [1000], False),  # too few to be believed
        (0.006, 0.1, [11_000], False),
        (0.006, 0.1, [11_000, 11_000], True),  # the most that is held out
        (0.006, 0.1, [30_000], False),
    ],
)
def test_splits_are_made_until_the_answer_is_clear(gain, spread, sizes, enough):
    rng = np.random.default_rng(1)
    runs, kept = [], {}
    for split, size in enumerate(sizes):
        noise = rng.normal(size=size)
        for name, loss in (("SAD", np.full(size, 0.5)), ("T = 1", 0.5 + gain + spread * (noise - noise.mean()))):
            runs.append(SplitRun(name, split, figures={"log_loss": float(loss.mean())}))
            kept[name, split] = {"row log_loss": loss}
    assert _is_clear(CompareResult(runs, kept)) == enough
