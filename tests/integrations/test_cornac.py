"""In Cornac: its evaluation gives sadrec's own measures, by mean margin and by wins."""

import numpy as np
import pytest

pytest.importorskip("cornac")

from cornac.data import Dataset
from cornac.eval_methods import BaseMethod
from cornac.exception import ScoreException
from cornac.hyperopt import Discrete, GridSearch
from cornac.metrics import AUC, NDCG, Precision, Recall
from cornac.models import Recommender

from sadrec import BPR, SAD
from sadrec.evaluation import evaluate_top_n
from sadrec.integrations.cornac import SADRecommender
from sadrec.posterior import GibbsSAD

from .conftest import CANDIDATES, SETTINGS, Lists, N, rows

MEASURES = {f"NDCG@{N}": "ndcg", f"Recall@{N}": "recall", f"Precision@{N}": "precision"}


@pytest.fixture(scope="module")
def method(split):
    parts = ([(user, item, 1.0) for user, item in rows(part)] for part in split)
    return BaseMethod.from_splits(*parts, fmt="UIR", exclude_unknowns=True, rating_threshold=0.5, seed=1)


def measured(method, model):
    result, _ = method.evaluate(model, [NDCG(k=N), Recall(k=N), Precision(k=N)], user_based=True)
    return {native: result.metric_avg_results[name] for name, native in MEASURES.items()}


@pytest.mark.parametrize("model", [SAD(**SETTINGS), BPR(**SETTINGS)])
def test_a_trained_model_has_the_scores_and_measures_of_sadrec(method, split, model):
    wrapped = SADRecommender(model)
    figures = measured(method, wrapped)
    assert not model.is_fitted and wrapped.name == type(model).__name__
    native = evaluate_top_n(wrapped.fitted, *split, N=N)
    assert figures == pytest.approx({name: native[name] for name in figures}, abs=1e-6)
    for user, index in list(wrapped.uid_map.items())[:5]:
        items = list(wrapped.iid_map)[: wrapped.num_items]
        expected = wrapped.fitted.scores([user])[0][wrapped.fitted.state.items.positions(items)]
        np.testing.assert_allclose(wrapped.score(index), expected, atol=1e-6)
        assert wrapped.score(index, 3) == pytest.approx(expected[3], abs=1e-6)


@pytest.mark.parametrize("by", ["wins", "markov", "nash"])
def test_lists_of_a_fitted_model_are_those_of_its_method(method, split, cyclic, by):
    wrapped = SADRecommender(cyclic, method=by, candidates=CANDIDATES)
    figures = measured(method, wrapped)
    assert wrapped.fitted is cyclic
    native = evaluate_top_n(Lists(cyclic, by), *split, N=N)
    assert figures == pytest.approx({name: native[name] for name in figures}, abs=1e-6)
    assert figures != measured(method, SADRecommender(cyclic))
    user = cyclic.users[4]
    seen = {item for who, item in rows(split[0]) if who == user}
    unseen = [index for item, index in wrapped.iid_map.items() if item not in seen]
    ranked, scores = wrapped.rank(wrapped.uid_map[user], np.array(unseen), k=N)
    listed = [wrapped.item_ids[index] for index in ranked[:N]]
    assert listed == cyclic.recommend(user, N=N, method=by, candidates=CANDIDATES)[0].tolist()
    assert sorted(ranked) == unseen
    assert [unseen[place] for place in np.argsort(-scores, kind="stable")] == ranked.tolist()  # scores say the same
    assert wrapped.recommend(user, k=N, remove_seen=True, train_set=method.train_set) == listed


def test_a_posterior_is_trained_and_ranked(split):
    train, _ = split
    data = Dataset.from_uir([(user, item, 1.0) for user, item in rows(train)], seed=1)
    wrapped = SADRecommender(GibbsSAD(factors=2, draws=8, warmup=8, chains=1, num_threads=1), method="wins").fit(data)
    user = train.users[0]
    expected = wrapped.fitted.rank(user, method="wins").items.tolist()
    assert wrapped.recommend(user) == expected


def test_users_and_items_that_were_not_trained_on_are_answered_as_cornac_does(method, split):
    ids = {"new": method.train_set.uid_map}
    wrapped = SADRecommender(SAD(**SETTINGS)).fit(method.train_set)
    wrapped.uid_map = {**ids["new"], "stranger": wrapped.num_users}
    wrapped.iid_map = {**wrapped.iid_map, "novelty": wrapped.num_items}
    stranger, novelty = wrapped.num_users, wrapped.num_items
    for pair in ((stranger,), (stranger, 0), (0, novelty)):
        with pytest.raises(ScoreException, match="not trained on"):
            wrapped.score(*pair)
    assert wrapped.rate(stranger, 0) == wrapped.default_score() == wrapped.global_mean
    for by in ("margin", "wins"):
        wrapped.method = by
        ranked, scores = wrapped.rank(0, np.arange(novelty + 1))
        assert len(ranked) == novelty + 1 and novelty in ranked
        assert scores[novelty] == scores.min()
        _, level = wrapped.rank(stranger, np.arange(novelty + 1))
        assert (level == wrapped.default_score()).all()


def test_a_fitted_model_with_other_ids_is_refused(method):
    model = SAD.from_factors(np.ones((3, 2)), np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"knows no user or no item of the training set: its ids are such as \[0\]"):
        SADRecommender(model).fit(method.train_set)


def test_settings_of_the_model_can_be_searched(method, split):
    train = method.train_set
    wrapped = SADRecommender(SAD(**SETTINGS))
    copy = wrapped.clone({"factors": 3, "method": "wins"})
    assert (copy.model.factors, copy.method, wrapped.model.factors) == (3, "wins", 6)
    method.val_set = method.test_set
    search = GridSearch(
        model=wrapped, space=[Discrete(name="factors", values=[2, 4])], metric=AUC(), eval_method=method
    ).fit(train, method.test_set)
    method.val_set = None
    assert search.best_params["factors"] in (2, 4)
    with pytest.raises(ValueError, match=r"unknown setting 'factor'"):
        wrapped.clone({"factor": 3})


def test_it_is_saved_and_loaded(method, tmp_path):
    wrapped = SADRecommender(SAD(**SETTINGS), method="nash").fit(method.train_set)
    loaded = Recommender.load(wrapped.save(str(tmp_path)))
    np.testing.assert_array_equal(loaded.score(2), wrapped.score(2))
    assert loaded.rank(2)[0].tolist() == wrapped.rank(2)[0].tolist()


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match="method must be 'margin', 'wins', 'markov' or 'nash', not 'win'"):
        SADRecommender(method="win")
    with pytest.raises(ValueError, match="candidates must be a whole number, at least 1, not 0"):
        SADRecommender(candidates=0)
