"""Likelihood, scorers and grids: chosen on training data only, resumable, budgeted."""

import time

import numpy as np
import pytest

from sadrec.evaluation.leave_one_out import evaluate
from sadrec.evaluation.likelihood import log_likelihood
from sadrec.evaluation.scoring import Scorer
from sadrec.evaluation.search import PAPER_GRID, choose_factors, grid_points, search
from sadrec.evaluation.top_n import evaluate_top_n
from sadrec.ranking import Parameters
from sadrec.ranking.pairs import sigmoid


class Power:
    """Popularity to a power; knows what it was fitted on."""

    fits = 0

    def __init__(self, power=1.0, factors=8):
        self.power, self.factors = power, factors

    def get_params(self):
        return {"power": self.power, "factors": self.factors}

    def fit(self, train):
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
def data(make_ratings):
    return make_ratings(users=60, items=80, popular=True)


def test_the_log_likelihood_is_the_mean_over_all_pairs_when_nothing_is_left_undrawn(data, factor_model):
    model = factor_model(data)
    total = weight = 0.0
    for row in range(60):
        met = data.matrix[row].indices
        rest = np.setdiff1d(np.arange(80), met)
        total += np.log(np.maximum(sigmoid(model.tensor(row)[np.ix_(met, rest)]), 1e-15)).mean() * len(met)
        weight += len(met)
    assert log_likelihood(model, data, items=80, rivals=80) == pytest.approx(total / weight, abs=1e-5)


def test_the_drawn_log_likelihood_is_close_and_the_same_for_any_threads(make_ratings, factor_model):
    data = make_ratings(users=400, items=80)
    model = factor_model(data, factors=2, scale=0.5)
    whole = log_likelihood(model, data, items=80, rivals=80)
    assert log_likelihood(model, data) == pytest.approx(whole, abs=0.06)
    assert log_likelihood(model, data, num_threads=1) == log_likelihood(model, data, num_threads=3)


def test_held_out_likelihood_never_takes_a_training_item_for_never_met(data):
    """Scores put training items far above all others: as rivals they would cost dearly."""
    train, test = data.split(test=0.2, seed=0)

    place = {user: row for row, user in enumerate(data.users.tolist())}

    class Memory:
        users, items = data.users, data.items

        def scores(self, users):
            rows = [place[user] for user in np.asarray(users).tolist()]
            return 30.0 * (train.matrix[rows].toarray() > 0)

        def probability(self, user, item, rival):
            at = {name: column for column, name in enumerate(data.items.tolist())}
            row = self.scores([user])[0]
            i = row[[at[name] for name in np.ravel(item).tolist()]]
            j = row[[at[name] for name in np.ravel(rival).tolist()]]
            return sigmoid(i[:, None] - j[None, :])

    assert log_likelihood(Memory(), test, train=train, items=80, rivals=80) == pytest.approx(np.log(0.5))
    assert log_likelihood(Memory(), test, items=80, rivals=80) < -1


def test_a_model_without_probability_has_no_likelihood(data, scores_model):
    with pytest.raises(ValueError, match="no likelihood"):
        log_likelihood(scores_model(data, np.zeros(data.matrix.shape)), data)


def test_scorers_compute_what_they_are_named_after(data):
    for name in ("m1", "log_loss", "ndcg@7", "validation_log_likelihood", "log_likelihood"):
        scorer = Scorer(name, test=0.3)
        train, held_out = scorer.split(data, 3)
        model = Power().fit(train)
        score, _ = scorer.score(model, train, held_out, 3)
        if name == "ndcg@7":
            assert train.matrix.nnz == pytest.approx(0.7 * data.matrix.nnz, abs=1)
            assert score == evaluate_top_n(model, train, held_out, 7, seed=3)["ndcg"]
        elif name == "log_likelihood":
            assert train is data
            assert score == log_likelihood(model, data, seed=3)
        elif name == "validation_log_likelihood":
            assert score == log_likelihood(model, held_out, train=train, seed=3)
        else:
            assert held_out.matrix.nnz <= 60
            assert score == evaluate(model, train, held_out, 3)[name]
    for bad in ("nonsense", "ndcg@0", "m1@10"):
        with pytest.raises(ValueError, match="cannot select by"):
            Scorer(bad)
    with pytest.raises(ValueError, match="neither better nor worse"):
        Scorer("novelty@10")


def test_the_best_point_wins_whichever_way_is_better(data):
    grid = {"power": [-1.0, 0.2, 1.0]}
    up = search(Power, grid, data, by="m1", progress=False)
    scores = [trial.score for trial in up.trials]
    assert up.best_score == max(scores)
    assert up.best == {"power": grid["power"][int(np.argmax(scores))]}
    down = search(Power, grid, data, by="log_loss", progress=False)
    assert down.best_score == min(trial.score for trial in down.trials)
    assert down.frame.columns[:2] == ["power", "score"]


def test_the_papers_way_fits_all_the_data_and_scores_the_same(data):
    result = search(Power(factors=3), {"power": [0.5]}, data, progress=False)
    model = Power(0.5).fit(data)
    assert result.by == "log_likelihood"
    assert result.best_score == log_likelihood(model, data)


def test_folds_are_different_splits_and_their_spread_is_the_error(data):
    result = search(Power, {"power": [1.0]}, data, by="m1", folds=3, seed=5, progress=False)
    expected = []
    for fold in range(3):
        train, held_out = data.leave_one_out(seed=5 + fold)
        expected.append(evaluate(Power().fit(train), train, held_out, 5 + fold)["m1"])
    assert list(result.trials[0].scores) == expected
    assert result.trials[0].error == pytest.approx(np.std(expected, ddof=1) / np.sqrt(3))


def test_the_smallest_number_of_factors_within_one_error_is_chosen(data):
    result = choose_factors(Power, data, [16, 4, 8], folds=3, progress=False)
    assert [trial.settings["factors"] for trial in result.trials] == [4, 8, 16]
    assert result.best == {"factors": 4}  # it makes no difference here


def test_the_one_error_rule_stays_within_one_error(data):
    grid = {"power": [-1.0, 0.9, 1.0]}
    result = search(Power, grid, data, by="sampled_auc", folds=3, rule="one_error", progress=False)
    assert result.best == {"power": 0.9}  # orders items as 1.0 does; -1 is far off


def test_a_part_of_the_grid_is_drawn_by_seed():
    points = grid_points(dict, PAPER_GRID, None, 0)
    assert len(points) == 7 * 5 * 4
    part = grid_points(dict, PAPER_GRID, 10, 1)
    assert len(part) == 10
    assert all(point in points for point in part)
    assert part == grid_points(dict, PAPER_GRID, 10, 1) != grid_points(dict, PAPER_GRID, 10, 2)


def test_points_that_fail_or_take_too_long_are_rows(data):
    class Slow(Power):
        def fit(self, train):
            if self.power == 2:
                time.sleep(3)
            return super().fit(train)

    result = search(Slow, {"power": [1.0, 13.0, 2.0]}, data, by="m1", budget=1.0, progress=False)
    assert result.frame["status"].to_list() == ["done", "failed", "out of time"]
    assert "bad luck" in result.frame["message"][1]
    assert result.best == {"power": 1.0}
    nothing = search(Power, {"power": [13.0]}, data, by="m1", progress=False)
    with pytest.raises(ValueError, match="bad luck"):
        _ = nothing.best


def test_a_list_of_settings_is_tried_in_its_order(data):
    points = [{"power": 2.0}, {"power": 0.5}, {"power": 1.0}]
    result = search(Power, points, data, by="m1", trials=2, progress=False)
    assert [trial.settings for trial in result.trials] == points[:2]
    with pytest.raises(ValueError, match="no setting 'pwer'"):
        search(Power, [{"power": 1.0}, {"pwer": 1.0}], data)


def test_a_search_goes_on_where_it_was(data, tmp_path):
    first = search(Power, {"power": [1.0, 0.5]}, data, by="m1", path=tmp_path, progress=False)
    Power.fits = 0
    second = search(Power, {"power": [1.0, 0.5, 2.0]}, data, by="m1", path=tmp_path, progress=False)
    assert Power.fits == 1
    assert second.frame.head(2).equals(first.frame)


def test_bad_input_is_refused(data):
    with pytest.raises(ValueError, match="no setting 'pwer'"):
        search(Power, {"pwer": [1]}, data)
    with pytest.raises(ValueError, match="grid is empty"):
        search(Power, {}, data)
    with pytest.raises(ValueError, match="list of values"):
        search(Power, {"power": 1.0}, data)
    with pytest.raises(ValueError, match="folds"):
        search(Power, {"power": [1.0]}, data, folds=0)
    with pytest.raises(ValueError, match="rule"):
        search(Power, {"power": [1.0]}, data, rule="worst")


def test_the_papers_grid_fits_the_real_models(data):
    from sadrec import BPR, SAD

    small = {name: values[-1:] for name, values in PAPER_GRID.items()} | {"iterations": [2]}
    assert search(SAD(factors=4), small, data, progress=False).best_score < 0
    of_bpr = {name: values for name, values in small.items() if name != "rival_regularization"}
    assert search(BPR, of_bpr, data, by="validation_log_likelihood", progress=False).best_score < 0
