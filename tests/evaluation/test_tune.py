"""Tuning: finds what is better, goes on after a kill, and sees training data only."""

import builtins
import itertools
import time

import numpy as np
import pytest

from sadrec.data import Comparisons
from sadrec.evaluation import Span, evaluate, evaluate_top_n, tune
from sadrec.evaluation import tune as tune_function
from sadrec.evaluation.proposals import default_space
from sadrec.evaluation.tune import Scorer
from sadrec.models import settings_for
from sadrec.ranking import Parameters, sigmoid


class Learner:
    """Popularity, blurred by how far ``rate`` is from 0.1."""

    fits = 0
    seen = ()

    def __init__(self, rate=0.1, iterations=10, num_threads=0):
        self.rate, self.iterations, self.num_threads = rate, iterations, num_threads

    def get_params(self):
        return {"rate": self.rate, "iterations": self.iterations, "num_threads": self.num_threads}

    def fit(self, train, show_progress=True):
        Learner.fits += 1
        Learner.seen = (*Learner.seen, train.matrix.nnz)
        if self.rate == 0.5:
            raise RuntimeError("diverged")
        self.users, self.items = train.users, train.items
        counts = np.log1p(np.bincount(train.matrix.indices, minlength=len(train.items)))
        noise = np.random.default_rng(0).normal(size=len(train.items))
        self._table = counts + 3 * abs(np.log(self.rate / 0.1)) * noise
        return self

    def scores(self, users):
        return np.tile(self._table, (len(users), 1))


@pytest.fixture
def data(make_ratings):
    Learner.fits = 0
    Learner.seen = ()
    return make_ratings(users=60, items=120, share=0.2, popular=True)


SPACE = {"rate": Span(0.01, 1.0, log=True), "iterations": (10, 20)}


def test_the_best_of_the_trials_is_returned_with_its_validation_score(data):
    result = tune(Learner(), data, trials=12, metric="ndcg@5", space=SPACE, show_progress=False)
    assert len(result.trials) == 12
    assert result.score == result.frame["score"].max()
    train, held_out = data.split(test=0.1, seed=0)
    model = Learner(**result.settings).fit(train)
    assert evaluate_top_n(model, train, held_out, 5)["ndcg"] == pytest.approx(result.score)


def test_only_training_data_is_seen_and_a_part_is_kept_for_validation(data):
    tune(Learner(), data, trials=3, metric="ndcg@5", space=SPACE, test=0.25, show_progress=False)
    assert max(Learner.seen) == pytest.approx(0.75 * data.matrix.nnz, abs=1)


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_what_is_finished_is_not_computed_again_and_other_data_starts_anew(data, make_ratings, tmp_path, sampler):
    options = {"metric": "ndcg@5", "space": SPACE, "path": tmp_path / "new", "sampler": sampler, "show_progress": False}
    whole = tune(Learner(), data, trials=14, **{**options, "path": None})
    Learner.fits = 0
    tune(Learner(), data, trials=12, **options)
    assert Learner.fits == 12
    result = tune(Learner(), data, trials=14, **options)
    assert Learner.fits == 14
    assert result.frame.drop("seconds").equals(whole.frame.drop("seconds"))
    tune(Learner(), data, trials=14, **options)
    assert Learner.fits == 14
    tune(Learner(), make_ratings(users=50), trials=2, **options)
    assert Learner.fits == 16


def test_an_interrupted_trial_is_not_counted_and_the_others_are_kept(data, tmp_path, monkeypatch):
    learn = Learner.fit

    def dies(self, train, show_progress=True):
        if Learner.fits == 2:
            raise KeyboardInterrupt
        return learn(self, train, show_progress)

    options = {"trials": 4, "metric": "ndcg@5", "space": SPACE, "path": tmp_path, "show_progress": False}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Learner, "fit", dies)
        tune(Learner(), data, **options)
    result = tune(Learner(), data, **options)
    assert result.frame["status"].to_list() == ["done"] * 4
    assert Learner.fits == 4


def test_a_damaged_record_is_computed_again(data, tmp_path):
    options = {"trials": 2, "metric": "ndcg@5", "space": SPACE, "path": tmp_path, "show_progress": False}
    first = tune(Learner(), data, **options)
    torn = sorted(tmp_path.iterdir())[0]
    torn.write_bytes(torn.read_bytes()[:-3])
    assert tune(Learner(), data, **options).frame.drop("seconds").equals(first.frame.drop("seconds"))
    assert Learner.fits == 3


def test_another_model_or_another_fixed_setting_starts_anew_in_the_same_folder(data, tmp_path):
    class Other(Learner):
        pass

    space = {"rate": [0.1, 0.2]}
    options = {"trials": 2, "metric": "ndcg@5", "space": space, "sampler": "grid", "show_progress": False}
    models = [Learner(), Other(), Learner(iterations=3), Learner(iterations=4), Learner(iterations=4, num_threads=2)]
    fits = []
    for model in models:
        Learner.fits = 0
        tune(model, data, path=tmp_path, **options)
        fits.append(Learner.fits)
    assert fits == [2, 2, 2, 2, 0]


def test_trials_that_failed_by_themselves_are_not_repeated(data, tmp_path):
    options = {"metric": "ndcg@5", "space": {"rate": [0.5, 0.1]}, "sampler": "grid", "show_progress": False}
    first = tune(Learner(), data, path=tmp_path, **options)
    assert first.frame["status"].to_list() == ["failed", "done"]
    fits = Learner.fits
    again = tune(Learner(), data, path=tmp_path, **options)
    assert (Learner.fits, len(again.trials)) == (fits, 2)


def test_a_failed_trial_is_one_line_in_the_log(data, caplog, capfd):
    tune(Learner(), data, metric="ndcg@5", space=[{"rate": 0.5}, {"rate": 0.1}], show_progress=False)
    assert [record.getMessage() for record in caplog.records] == [
        "trial with {'rate': 0.5}: failed (RuntimeError: diverged)"
    ]
    assert "Traceback" not in capfd.readouterr().err


def test_when_nothing_could_be_scored_the_reason_is_said(data):
    result = tune(Learner(), data, trials=2, space={"rate": (0.5,)}, show_progress=False)
    with pytest.raises(ValueError, match="none of 2 trials could be scored by ndcg@10: RuntimeError: diverged"):
        _ = result.settings


def test_no_further_trial_is_started_after_the_timeout(data, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    result = tune(Learner(), data, trials=50, space=SPACE, timeout=20.0, show_progress=False)
    assert 1 <= len(result.trials) < 20


def test_the_default_space_is_what_the_settings_declare(data):
    from sadrec import BPR, SAD
    from sadrec.evaluation import EASE

    first, space = default_space(SAD(), "interactions")
    assert not first and {"factors", "learning_rate", "rival_regularization", "user_balance"} <= set(space)
    assert "solver" not in space
    assert "rival_regularization" not in default_space(BPR(), "interactions")[1]
    assert "factors" not in default_space(SAD(factors=8), "interactions")[1]
    result = tune(EASE(), data, sampler="grid", show_progress=False)
    declared = default_space(EASE(), "interactions")[1]["regularization"]
    assert [trial.settings["regularization"] for trial in result.trials] == list(declared)
    with pytest.raises(ValueError, match="space is empty"):
        tune(Learner(), data)


def test_on_comparisons_the_variational_solver_comes_first_and_nothing_without_effect_is_tried():
    from sadrec import SAD

    first, space = default_space(SAD(), "comparisons")
    assert first == [{"solver": "variational", "factors": factors} for factors in (2, 4, 8, 16)]
    assert set(space) == {
        "solver", "factors", "iterations", "learning_rate", "regularization", "rival_regularization", "bias"
    }  # fmt: skip
    assert space.pop("solver") == ("sgd",)
    assert default_space(SAD(solver="sgd"), "comparisons") == ([], space)
    assert set(default_space(SAD(solver="variational"), "comparisons")[1]) == {"factors", "iterations"}

    rng = np.random.default_rng(0)
    winner, loser = rng.integers(0, 4, 60), rng.integers(4, 8, 60)
    games = Comparisons.from_indices(np.zeros(60, int), winner, loser, users=["all"], items=np.arange(8))
    result = tune(SAD(), games, trials=6, sampler="random", show_progress=False)
    assert [trial.settings.get("solver") for trial in result.trials] == ["variational"] * 4 + ["sgd"] * 2
    assert all(trial.status == "done" for trial in result.trials)
    assert settings_for(SAD(**result.trials[-1].settings), games).solver == "sgd"


def test_the_result_is_a_model_and_a_file_of_settings(data, tmp_path):
    import json

    from sadrec import SAD

    points = [{"iterations": 2}, {"iterations": 8}]
    result = tune(SAD(factors=4, bias=True), data, space=points, show_progress=False)
    assert not result.model.is_fitted
    assert result.model.get_params() == SAD(factors=4, bias=True, **result.settings).get_params()
    result.save(tmp_path / "best.json")
    content = json.loads((tmp_path / "best.json").read_text())
    assert content["model"] == "sad"
    assert SAD(**content["settings"]).get_params() == result.model.get_params()
    assert content["score"] == result.score


@pytest.mark.parametrize("sampler", ["grid", "random", "tpe"])
def test_comparisons_are_tuned_by_their_held_out_log_loss(sampler):
    from sadrec import SAD
    from sadrec.evaluation import evaluate_comparisons

    rng = np.random.default_rng(0)
    first = rng.integers(0, 8, 100)
    games = Comparisons.from_indices(
        rng.integers(0, 5, 100), first, (first + 1 + rng.integers(0, 3, 100)) % 8, users=range(5), items=range(8)
    )
    space = {"iterations": [2, 40]}
    result = tune(SAD(factors=2), games, trials=2, sampler=sampler, space=space, seed=3, show_progress=False)
    assert result.metric == "log_loss"
    train, test = games.split(test=0.1, seed=3)
    model = result.model.fit(train, show_progress=False)
    assert evaluate_comparisons(model, test)["log_loss"] == pytest.approx(result.score)
    assert result.score == min(trial.score for trial in result.trials)
    with pytest.raises(ValueError, match="cannot tune 'ndcg@10' on comparisons"):
        tune(SAD(), games, metric="ndcg@10")


def test_the_real_model_is_tuned(data):
    from sadrec import SAD

    space = {"iterations": Span(4, 6)}
    result = tune(SAD(factors=4, num_threads=1), data, trials=2, metric="ndcg@10", space=space, show_progress=False)
    assert 4 <= result.settings["iterations"] <= 6


def test_bad_input_is_refused(data):
    with pytest.raises(ValueError, match="no setting 'rte'"):
        tune(Learner(), data, space={"rte": (1,)})
    with pytest.raises(ValueError, match="no setting 'rte'"):
        tune(Learner(), data, space=[{"rate": 1.0}, {"rte": 1.0}])
    with pytest.raises(ValueError, match="space is empty"):
        tune(Learner(), data, space={})
    for bad in ({"trials": 0}, {"trials": 1.5}, {"folds": 0}, {"folds": 10**400}):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} must be a whole number, from 1 to 1000*, not"):
            tune(Learner(), data, space=SPACE, **bad)
    for bad in ({"timeout": -1.0}, {"budget": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} must be above 0 seconds"):
            tune(Learner(), data, space=SPACE, **bad)
    with pytest.raises(ValueError, match="rule must be 'best' or 'one_error'"):
        tune(Learner(), data, space=SPACE, rule="worst")
    with pytest.raises(ValueError, match="sampler must be 'grid', 'random' or 'tpe'"):
        tune(Learner(), data, space=SPACE, sampler="all")
    for sampler in ("grid", "random", "tpe"):
        with pytest.raises(ValueError, match="Span or a list of values for 'rate', not 5"):
            tune(Learner(), data, space={"rate": 5}, sampler=sampler)
    with pytest.raises(ValueError, match="a grid needs a list of values for 'rate'"):
        tune(Learner(), data, space=SPACE, sampler="grid")
    with pytest.raises(TypeError, match="cannot take interactions from list"):
        tune(Learner(), [1, 2])
    with pytest.raises(TypeError, match=r"give a model, Learner\(...\), not its class"):
        tune(Learner, data)
    with pytest.raises(ValueError, match="low < high"):
        Span(2, 1)
    with pytest.raises(ValueError, match="log scale"):
        Span(0.0, 1.0, log=True)


def test_a_file_in_the_place_of_the_folder_is_refused_and_left_alone(data, tmp_path):
    other = tmp_path / "ratings.csv"
    other.write_text("user,item\n1,2\n")
    with pytest.raises(ValueError, match=r"ratings\.csv' is a file, and a folder is needed"):
        tune(Learner(), data, space=SPACE, path=other)
    assert other.read_text() == "user,item\n1,2\n"


def test_without_optuna_the_remedy_is_named(data, monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "optuna":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install 'sadrec\[tune\]'"):
        tune(Learner(), data, space=SPACE)
    assert tune(Learner(), data, trials=1, space=SPACE, sampler="random", show_progress=False).score


def test_the_name_in_the_package_is_the_function():
    assert tune_function is tune


# -- grids -------------------------------------------------------------------------------------------------------------


class Power:
    """Popularity to a power; knows what it was fitted on."""

    fits = 0

    def __init__(self, power=1.0, factors=8):
        self.power, self.factors = power, factors

    def get_params(self):
        return {"power": self.power, "factors": self.factors}

    def fit(self, train, show_progress=True):
        type(self).fits += 1
        if self.power == 13:
            raise RuntimeError("bad luck")
        self.train = train
        self.users, self.items = train.users, train.items
        counts = np.bincount(train.matrix.indices, minlength=len(train.items))
        self.parameters = Parameters(
            np.ones((len(train.users), 1)), (self.power * np.log1p(counts))[:, None].astype(float)
        )
        return self

    def scores(self, users):
        return np.tile(self.parameters.item_factors[:, 0], (len(users), 1))

    def margins(self, user, items, rivals):
        row = self.parameters.item_factors[:, 0]
        at = {item: column for column, item in enumerate(self.items.tolist())}
        i, j = (row[[at[item] for item in ids.tolist()]] for ids in (items, rivals))
        return i[:, None] - j[None, :]

    def probability(self, user, item, rival):
        return sigmoid(self.margins(user, np.ravel(item), np.ravel(rival)))


@pytest.fixture
def ratings(make_ratings):
    return make_ratings(users=60, items=80, popular=True)


def test_scorers_compute_what_they_are_named_after(ratings):
    for name in ("m1", "log_loss", "ndcg@7"):
        scorer = Scorer(name, ratings, test=0.3)
        train, held_out = scorer.split(3)
        model = Power().fit(train)
        score, _ = scorer.score(model, train, held_out, 3)
        if name == "ndcg@7":
            assert train.matrix.nnz == pytest.approx(0.7 * ratings.matrix.nnz, abs=1)
            assert score == evaluate_top_n(model, train, held_out, 7, seed=3)["ndcg"]
        else:
            assert held_out.matrix.nnz <= 60
            assert score == evaluate(model, train, held_out, 3)[name]
    for bad in ("nonsense", "ndcg@0", "m1@10"):
        with pytest.raises(ValueError, match="cannot tune"):
            Scorer(bad, ratings)
    with pytest.raises(ValueError, match="neither better nor worse"):
        Scorer("popularity_bias@10", ratings)


def test_the_best_point_wins_whichever_way_is_better(ratings):
    grid = {"power": [-1.0, 0.2, 1.0]}
    up = tune(Power(), ratings, sampler="grid", space=grid, metric="m1", show_progress=False)
    scores = [trial.score for trial in up.trials]
    assert up.score == max(scores)
    assert up.settings == {"power": grid["power"][int(np.argmax(scores))]}
    down = tune(Power(), ratings, sampler="grid", space=grid, metric="log_loss", show_progress=False)
    assert down.score == min(trial.score for trial in down.trials)
    assert down.frame.columns[:2] == ["power", "score"]


def test_folds_are_different_splits_and_their_spread_is_the_error(ratings):
    result = tune(
        Power(), ratings, sampler="grid", space={"power": [1.0]}, metric="m1", folds=3, seed=5, show_progress=False
    )
    expected = []
    for fold in range(3):
        train, held_out = ratings.leave_one_out(seed=5 + fold)
        expected.append(evaluate(Power().fit(train), train, held_out, 5 + fold)["m1"])
    assert list(result.trials[0].scores) == expected
    assert result.trials[0].error == pytest.approx(np.std(expected, ddof=1) / np.sqrt(3))


def test_the_smallest_number_of_factors_within_one_error_is_chosen(ratings):
    options = {"metric": "m1", "folds": 3, "rule": "one_error", "show_progress": False}
    result = tune(Power(), ratings, sampler="grid", space={"factors": [4, 8, 16]}, **options)
    assert result.settings == {"factors": 4}  # it makes no difference here


def test_the_one_error_rule_stays_within_one_error(ratings):
    grid = {"power": [-1.0, 0.9, 1.0]}
    result = tune(
        Power(),
        ratings,
        sampler="grid",
        space=grid,
        metric="sampled_auc",
        folds=3,
        rule="one_error",
        show_progress=False,
    )
    assert result.settings == {"power": 0.9}  # orders items as 1.0 does; -1 is far off


def test_points_that_fail_or_take_too_long_are_rows(ratings):
    class Slow(Power):
        def fit(self, train, show_progress=True):
            while self.power == 2:
                time.sleep(0.01)
            return super().fit(train, show_progress)

    result = tune(
        Slow(), ratings, sampler="grid", space={"power": [1.0, 13.0, 2.0]}, metric="m1", budget=1.0, show_progress=False
    )
    assert result.frame["status"].to_list() == ["done", "failed", "out of time"]
    assert "bad luck" in result.frame["message"][1]
    assert result.settings == {"power": 1.0}
    nothing = tune(Power(), ratings, sampler="grid", space={"power": [13.0]}, metric="m1", show_progress=False)
    with pytest.raises(ValueError, match="bad luck"):
        _ = nothing.settings


def test_a_list_of_settings_is_tried_in_its_order(ratings):
    points = [{"power": 2.0}, {"power": 0.5}, {"power": 1.0}]
    result = tune(Power(), ratings, sampler="grid", space=points, metric="m1", trials=2, show_progress=False)
    assert [trial.settings for trial in result.trials] == points[:2]
    with pytest.raises(ValueError, match="no setting 'pwer'"):
        tune(Power(), ratings, sampler="grid", space=[{"power": 1.0}, {"pwer": 1.0}])


def test_a_killed_grid_continues_where_it_stopped(ratings, tmp_path):
    first = tune(
        Power(), ratings, sampler="grid", space={"power": [1.0, 0.5]}, metric="m1", path=tmp_path, show_progress=False
    )
    Power.fits = 0
    second = tune(
        Power(),
        ratings,
        sampler="grid",
        space={"power": [1.0, 0.5, 2.0]},
        metric="m1",
        path=tmp_path,
        show_progress=False,
    )
    assert Power.fits == 1
    assert second.frame.head(2).equals(first.frame)
