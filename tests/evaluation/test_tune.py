"""Tuning: finds what is better, prunes by epoch, goes on after a kill, and sees training data only."""

import builtins

import numpy as np
import pytest

from sadrec.evaluation import tune as tune_function
from sadrec.evaluation.top_n import evaluate_top_n
from sadrec.evaluation.tune import DEFAULT_SPACE, Range, tune


class Learner:
    """Popularity, blurred by how far ``rate`` is from 0.1; takes callbacks as SAD does."""

    fits = 0
    epochs = 0
    seen = ()

    def __init__(self, rate=0.1, iterations=10, num_threads=0):
        self.rate, self.iterations, self.num_threads = rate, iterations, num_threads

    def get_params(self):
        return {"rate": self.rate, "iterations": self.iterations, "num_threads": self.num_threads}

    def fit(self, train, show_progress=True, callbacks=()):
        Learner.fits += 1
        Learner.seen = (*Learner.seen, train.matrix.nnz)
        if self.rate == 0.5:
            raise RuntimeError("diverged")
        self.users, self.items = train.users, train.items
        counts = np.log1p(np.bincount(train.matrix.indices, minlength=len(train.items)))
        noise = np.random.default_rng(0).normal(size=len(train.items))
        self._table = counts + 3 * abs(np.log(self.rate / 0.1)) * noise
        for epoch in range(self.iterations):
            Learner.epochs += 1
            if any(callback(epoch, {}, self) for callback in callbacks):
                break
        return self

    def scores(self, users):
        return np.tile(self._table, (len(users), 1))


@pytest.fixture
def data(make_ratings):
    Learner.fits = Learner.epochs = 0
    Learner.seen = ()
    return make_ratings(users=60, items=120, share=0.2, popular=True)


SPACE = {"rate": Range(0.01, 1.0, log=True), "iterations": (10, 20)}


def test_the_best_of_the_trials_is_returned_with_its_validation_score(data):
    result = tune(Learner, data, trials=12, metric="ndcg@5", space=SPACE, prune=False, progress=False)
    assert len(result.trials) == 12
    assert result.best_score == result.trials["score"].max()
    train, held_out = data.split(test=0.1, seed=0)
    model = Learner(**result.best).fit(train)
    assert evaluate_top_n(model, train, held_out, 5)["ndcg"] == pytest.approx(result.best_score)


def test_less_is_better_for_a_loss_and_start_settings_come_first(data):
    result = tune(
        Learner, data, trials=4, metric="m1", space=SPACE, start=[{"rate": 0.1, "iterations": 10}], progress=False
    )
    assert result.trials.row(0, named=True)["rate"] == 0.1


def test_only_training_data_is_seen_and_a_part_is_kept_for_validation(data):
    tune(Learner, data, trials=3, metric="ndcg@5", space=SPACE, test=0.25, progress=False)
    assert max(Learner.seen) == pytest.approx(0.75 * data.matrix.nnz, abs=1)


def test_hopeless_trials_are_stopped_by_epoch(data):
    start = [{"rate": 0.1, "iterations": 20}] * 1 + [{"rate": 0.1 + 0.001 * i, "iterations": 20} for i in range(1, 6)]
    start += [{"rate": 0.99, "iterations": 20}]
    result = tune(Learner, data, trials=7, metric="ndcg@10", space=SPACE, start=start, progress=False)
    last = result.trials.filter(number=6).row(0, named=True)
    assert last["state"] == "pruned"
    assert last["score"] is None
    assert Learner.epochs < 7 * 20
    assert len(result.trials) == 7


def test_without_pruning_every_epoch_is_run(data):
    tune(Learner, data, trials=4, space={"rate": Range(0.01, 1.0)}, prune=False, progress=False)
    assert Learner.epochs == 40


def test_a_killed_study_goes_on_and_other_data_starts_anew(data, make_ratings, tmp_path):
    path = tmp_path / "studies" / "journal.log"
    tune(Learner, data, trials=3, metric="ndcg@5", space=SPACE, path=path, progress=False)
    assert Learner.fits == 3
    result = tune(Learner, data, trials=5, metric="ndcg@5", space=SPACE, path=path, progress=False)
    assert Learner.fits == 5
    assert len(result.trials) == 5
    tune(Learner, data, trials=5, metric="ndcg@5", space=SPACE, path=path, progress=False)
    assert Learner.fits == 5
    tune(Learner, make_ratings(users=50), trials=2, metric="ndcg@5", space=SPACE, path=path, progress=False)
    assert Learner.fits == 7


def test_a_trial_left_open_by_a_kill_is_closed_and_not_counted(data, tmp_path, monkeypatch):
    path = tmp_path / "journal.log"

    class Killed(BaseException):
        pass

    learn = Learner.fit

    def dies(self, train, show_progress=True, callbacks=()):
        if Learner.fits == 2:
            raise Killed
        return learn(self, train, show_progress, callbacks)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Learner, "fit", dies)
        tune(Learner, data, trials=4, metric="ndcg@5", space=SPACE, path=path, progress=False)
    result = tune(Learner, data, trials=4, metric="ndcg@5", space=SPACE, path=path, progress=False)
    assert (result.trials["state"] != "failed").sum() == 4
    assert Learner.fits == 4


def test_another_model_or_another_fixed_setting_starts_anew_in_the_same_file(data, tmp_path):
    class Other(Learner):
        pass

    options = {"trials": 2, "metric": "ndcg@5", "space": {"rate": (0.1, 0.2, 0.3)}, "progress": False}
    models = [Learner, Other, Learner(iterations=3), Learner(iterations=4), Learner(iterations=4, num_threads=2)]
    fits = []
    for model in models:
        Learner.fits = 0
        tune(model, data, path=tmp_path / "journal.log", **options)
        fits.append(Learner.fits)
    assert fits == [2, 2, 2, 2, 0]


def test_trials_that_failed_by_themselves_are_not_repeated(data, tmp_path):
    options = {"trials": 3, "metric": "ndcg@5", "space": {"rate": (0.1, 0.5)}, "progress": False}
    start = [{"rate": 0.5}, {"rate": 0.1}]
    first = tune(Learner, data, path=tmp_path / "journal.log", start=start, **options)
    assert "failed" in first.trials["state"]
    fits = Learner.fits
    again = tune(Learner, data, path=tmp_path / "journal.log", start=start, **options)
    assert (Learner.fits, len(again.trials)) == (fits, 3)


def test_a_failed_trial_is_one_line_in_the_log(data, caplog, capfd):
    space = {"rate": (0.1, 0.5)}
    start = [{"rate": 0.5}, {"rate": 0.1}]
    tune(Learner, data, trials=2, metric="ndcg@5", space=space, start=start, progress=False)
    assert [record.getMessage() for record in caplog.records] == [
        "trial 0 with {'rate': 0.5} failed: RuntimeError: diverged"
    ]
    assert "Traceback" not in capfd.readouterr().err


def test_failed_trials_do_not_stop_the_study(data):
    space = {"rate": (0.1, 0.5)}
    start = [{"rate": 0.5}, {"rate": 0.1}]
    result = tune(Learner, data, trials=2, metric="ndcg@5", space=space, start=start, progress=False)
    assert set(result.trials["state"]) == {"failed", "complete"}
    assert result.best == {"rate": 0.1}
    with pytest.raises(ValueError, match="none of 2 trials could be scored by ndcg@10: RuntimeError: diverged"):
        tune(Learner, data, trials=2, space={"rate": (0.5,)}, progress=False)


def test_the_default_space_is_cut_to_what_the_model_has(data):
    result = tune(Learner, data, trials=1, metric="ndcg@5", progress=False)
    assert set(result.best) == {"iterations"} & set(DEFAULT_SPACE)


def test_the_real_model_is_tuned_with_pruning_by_its_callbacks(data):
    from sadrec import SAD

    result = tune(
        SAD(factors=4, num_threads=1),
        data,
        trials=2,
        metric="ndcg@10",
        space={"iterations": Range(4, 6)},
        progress=False,
    )
    assert 4 <= result.best["iterations"] <= 6


def test_bad_input_is_refused(data):
    with pytest.raises(ValueError, match="no setting 'rte'"):
        tune(Learner, data, space={"rte": (1,)})
    with pytest.raises(ValueError, match="space is empty"):
        tune(Learner, data, space={})
    with pytest.raises(ValueError, match="can only overfit"):
        tune(Learner, data, metric="log_likelihood")
    with pytest.raises(ValueError, match="trials"):
        tune(Learner, data, trials=0)
    with pytest.raises(ValueError, match=r"trials must be a whole number, at least 1, not 1\.5"):
        tune(Learner, data, trials=1.5)
    with pytest.raises(ValueError, match="timeout must be above 0 seconds"):
        tune(Learner, data, timeout=-1.0)
    with pytest.raises(ValueError, match="Range or a list of choices for 'rate', not 5"):
        tune(Learner, data, space={"rate": 5})
    with pytest.raises(ValueError, match="start gives 'rte', which is not tuned over"):
        tune(Learner, data, space=SPACE, start=[{"rte": 1}])
    with pytest.raises(TypeError, match="must be Interactions, not str"):
        tune(Learner, "ratings.csv")
    with pytest.raises(ValueError, match="low < high"):
        Range(2, 1)
    with pytest.raises(ValueError, match="log scale"):
        Range(0.0, 1.0, log=True)


def test_a_path_that_is_no_journal_is_refused_and_left_alone(data, tmp_path):
    other = tmp_path / "ratings.csv"
    other.write_text("user,item\n1,2\n")
    with pytest.raises(ValueError, match=r"ratings\.csv is not a journal of an earlier tuning"):
        tune(Learner, data, path=other)
    assert other.read_text() == "user,item\n1,2\n"
    with pytest.raises(ValueError, match="is a folder; path must be a file"):
        tune(Learner, data, path=tmp_path)


def test_without_optuna_the_remedy_is_named(data, monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "optuna":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install 'sadrec\[tune\]'"):
        tune(Learner, data)


def test_the_name_in_the_package_is_the_function():
    assert tune_function is tune
