"""In scikit-learn: score is sadrec's own measure, searches work, and every user is trained on."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

import polars as pl
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline

from sadrec import BPR, SAD, Comparisons
from sadrec.evaluation import evaluate_top_n
from sadrec.integrations.sklearn import SADEstimator, WithinUserKFold
from sadrec.models import NotFittedError
from sadrec.posterior import GibbsSAD

from .conftest import CANDIDATES, SETTINGS, Lists, N, rows


@pytest.fixture(scope="module")
def both(split):
    return [np.array(rows(part)) for part in split]


@pytest.mark.parametrize("measure", ["ndcg", "recall", "precision", "hit_rate", "mrr", "map"])
def test_score_is_the_measure_of_sadrec(split, both, measure):
    estimator = SADEstimator(SAD(**SETTINGS), measure=measure, N=N).fit(both[0])
    native = evaluate_top_n(estimator.model_, *split, N=N)
    assert estimator.score(both[1]) == pytest.approx(native[measure], abs=1e-6)


@pytest.mark.parametrize("method", ["wins", "markov", "nash"])
def test_score_and_lists_are_those_of_the_method(split, both, cyclic, method):
    estimator = SADEstimator.of(cyclic, method=method, candidates=CANDIDATES, N=N)
    native = evaluate_top_n(Lists(cyclic, method), *split, N=N)
    assert estimator.score(both[1]) == pytest.approx(native["ndcg"], abs=1e-6)
    assert estimator.score(both[1]) != SADEstimator.of(cyclic, N=N).score(both[1])
    user = cyclic.users[3]
    expected = cyclic.recommend(user, N=N, method=method, candidates=CANDIDATES)[0]
    assert estimator.recommend(user).tolist() == expected.tolist()


def test_predict_gives_the_scores_of_sadrec_and_nan_for_strangers(both):
    estimator = SADEstimator(BPR(**SETTINGS)).fit(both[0])
    pairs = [*both[1][:20].tolist(), ["stranger", "i00"], ["u00", "novelty"]]
    given = estimator.predict(pairs)
    model = estimator.model_
    expected = [model.scores([user])[0][model.state.items.positions(item)] for user, item in pairs[:20]]
    np.testing.assert_allclose(given[:20], expected, atol=1e-6)
    assert np.isnan(given[20:]).all()


def test_rows_that_were_not_trained_on_do_not_count(both):
    estimator = SADEstimator(SAD(**SETTINGS)).fit(both[0])
    enlarged = np.concatenate([both[1], [["stranger", "i00"], ["u00", "novelty"]], both[0][:5]])
    assert estimator.score(enlarged) == estimator.score(both[1])
    with pytest.raises(ValueError, match="split with WithinUserKFold"):
        estimator.score([("stranger", "i00")])


@pytest.mark.parametrize("model", [SAD(**SETTINGS), GibbsSAD(factors=2, draws=8, warmup=8, chains=1, num_threads=1)])
def test_a_search_over_settings_works(both, model):
    grid = {"model__factors": [2, 3], "method": ["margin", "wins"]}
    search = GridSearchCV(SADEstimator(model), grid, cv=WithinUserKFold(2), error_score="raise").fit(both[0])
    assert search.best_params_["model__factors"] in (2, 3)
    assert search.best_estimator_.model_.factors == search.best_params_["model__factors"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert not model.is_fitted and model.factors != 3


def test_it_can_be_copied_and_be_the_end_of_a_pipeline(both):
    estimator = SADEstimator(BPR(**SETTINGS), measure="recall")
    copy = clone(estimator)
    assert copy.model is not estimator.model and copy.get_params()["model__factors"] == 6
    assert copy.set_params(model__factors=2).model.factors == 2 and estimator.model.factors == 6
    scores = cross_val_score(Pipeline([("sad", copy)]), both[0], cv=WithinUserKFold(3))
    assert scores.shape == (3,) and (scores > 0).all()


@pytest.mark.parametrize("kind", ["array", "list", "polars", "pandas"])
def test_frames_and_rows_are_the_same(both, kind):
    frame = pl.DataFrame({"who": both[0][:, 0], "what": both[0][:, 1]})
    if kind == "pandas":
        pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
    given = {"array": both[0], "list": both[0].tolist(), "polars": frame}
    data = frame.to_pandas() if kind == "pandas" else given[kind]
    expected = SADEstimator(SAD(**SETTINGS)).fit(both[0]).score(both[1])
    assert SADEstimator(SAD(**SETTINGS)).fit(data).score(both[1]) == expected
    assert len(list(WithinUserKFold(2).split(data))) == 2


def test_ratings_come_in_a_column_or_as_y():
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((20, 15)) < 0.4)
    stars = rng.integers(1, 6, len(pairs))
    settings = {**SETTINGS, "order_share": 0.5}
    column = SADEstimator(SAD(**settings)).fit(np.column_stack([pairs, stars])).model_
    given = SADEstimator(SAD(**settings)).fit(pairs, stars).model_
    np.testing.assert_array_equal(column.item_factors, given.item_factors)
    assert (column.item_factors != SADEstimator(SAD(**SETTINGS)).fit(pairs).model_.item_factors).any()


def test_every_user_is_trained_on_and_every_row_is_held_out_once():
    rng = np.random.default_rng(0)
    users = np.concatenate([np.repeat(np.arange(20), rng.integers(2, 9, 20)), [99]])
    X = np.column_stack([users, rng.permutation(len(users))])
    held_out = []
    for train, test in WithinUserKFold(4, random_state=7).split(X):
        assert not set(train) & set(test) and len(train) + len(test) == len(X)
        assert set(users[test]) <= set(users[train])
        held_out += test.tolist()
    assert sorted(held_out) == list(range(len(X) - 1))  # the only row of user 99 never
    again = [test.tolist() for _, test in WithinUserKFold(4, random_state=7).split(X)]
    assert np.concatenate(again).tolist() == held_out
    assert WithinUserKFold(4).get_n_splits(X) == 4


def test_wrong_use_is_named(both, cyclic):
    with pytest.raises(NotFittedError, match="call fit first"):
        SADEstimator().predict(both[0])
    with pytest.raises(ValueError, match=r"measure must be 'ndcg', .* not 'auc'"):
        SADEstimator.of(cyclic, measure="auc").score(both[1])
    with pytest.raises(ValueError, match=r"method must be .* not 'best'"):
        SADEstimator.of(cyclic, method="best").score(both[1])
    with pytest.raises(ValueError, match="user, item and perhaps rating, not 4 columns"):
        SADEstimator().fit(np.ones((3, 4)))
    with pytest.raises(ValueError, match="user, item and perhaps rating"):
        SADEstimator().fit(np.ones(3))
    with pytest.raises(ValueError, match="n_splits must be a whole number, at least 2"):
        WithinUserKFold(1)
    comparisons = Comparisons.from_frame(pl.DataFrame({"user": [1, 1], "winner": [1, 2], "loser": [2, 3]}), user="user")
    with pytest.raises(ValueError, match="fitted on comparisons"):
        SADEstimator.of(SAD(factors=2).fit(comparisons, show_progress=False)).score([(1, 1)])


def test_any_splitter_of_scikit_learn_may_be_used(both):
    assert np.isfinite(cross_val_score(SADEstimator(SAD(**SETTINGS)), both[0], cv=KFold(3, shuffle=True))).all()
