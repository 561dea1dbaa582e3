"""In RecTools: its metrics give sadrec's own measures, by mean margin and by wins; any candidates can be reranked."""

import numpy as np
import pytest

pytest.importorskip("rectools")

import pandas as pd
from rectools import Columns
from rectools.dataset import Dataset
from rectools.metrics import NDCG, HitRate, Precision, Recall, calc_metrics
from rectools.model_selection import LastNSplitter, cross_validate
from rectools.models import PopularModel, load_model
from rectools.models.ranking import CandidateGenerator, CandidateRankingModel

from sadrec import BPR, SAD
from sadrec.data import UnknownIdError
from sadrec.evaluation import evaluate_top_n
from sadrec.integrations.rectools import SADModel, SADReranker
from sadrec.posterior import GibbsSAD

from .conftest import CANDIDATES, SETTINGS, Lists, N, rows

METRICS = {
    "ndcg": NDCG(k=N, divide_by_achievable=True),
    "recall": Recall(k=N),
    "precision": Precision(k=N),
    "hit_rate": HitRate(k=N),
}


def frame(data):
    table = pd.DataFrame(rows(data), columns=Columns.UserItem)
    days = np.random.default_rng(5).integers(0, 50, len(table))
    return table.assign(weight=1.0, datetime=pd.Timestamp("2026-01-01") + pd.to_timedelta(days, "D"))


@pytest.fixture(scope="module")
def dataset(split):
    return Dataset.construct(frame(split[0]))


def recommended(model, dataset, **options):
    users = np.sort(dataset.user_id_map.external_ids)
    return model.recommend(users, dataset, **{"k": N, "filter_viewed": True, **options})


def measured(model, dataset, test):
    return calc_metrics(METRICS, recommended(model, dataset), frame(test))


def native(figures, model, split):
    evaluated = evaluate_top_n(model, *split, N=N)
    return pytest.approx({name: evaluated[name] for name in figures}, abs=1e-6)


@pytest.mark.parametrize("model", [SAD(**SETTINGS), BPR(**SETTINGS)])
def test_a_trained_model_has_the_scores_and_measures_of_sadrec(dataset, split, model):
    wrapped = SADModel(model).fit(dataset)
    figures = measured(wrapped, dataset, split[1])
    assert not model.is_fitted
    assert figures == native(figures, wrapped.fitted, split)
    for user, table in recommended(wrapped, dataset).groupby(Columns.User):
        ids, scores = wrapped.fitted.recommend(user, N=N)
        assert table[Columns.Item].tolist() == ids.tolist()
        assert table[Columns.Rank].tolist() == list(range(1, len(ids) + 1))
        np.testing.assert_allclose(table[Columns.Score], scores, atol=1e-6)


@pytest.mark.parametrize("method", ["wins", "markov", "nash"])
def test_lists_of_a_fitted_model_are_those_of_its_method(dataset, split, cyclic, method):
    wrapped = SADModel(cyclic, method=method, candidates=CANDIDATES)
    figures = measured(wrapped, dataset, split[1])
    assert figures == native(figures, Lists(cyclic, method), split)
    assert figures != measured(SADModel(cyclic), dataset, split[1])
    for user, table in recommended(wrapped, dataset).groupby(Columns.User):
        ids, scores = cyclic.recommend(user, N=N, method=method, candidates=CANDIDATES)
        assert table[Columns.Item].tolist() == ids.tolist()
        np.testing.assert_allclose(table[Columns.Score], scores, atol=1e-6)


def test_a_posterior_is_trained_and_ranked(dataset):
    wrapped = SADModel(GibbsSAD(factors=2, draws=8, warmup=8, chains=1, num_threads=1), method="wins").fit(dataset)
    table = recommended(wrapped, dataset, k=40, filter_viewed=False)
    for user, part in list(table.groupby(Columns.User))[:5]:
        assert part[Columns.Item].tolist() == wrapped.fitted.rank(user, method="wins").items.tolist()
    assert len(wrapped.recommend_to_items(["i00"], dataset, k=3)) == 3


def test_items_can_be_chosen_and_what_was_viewed_can_stay(dataset, cyclic):
    wrapped = SADModel(cyclic)
    some = ["i03", "i10", "i11"]
    table = recommended(wrapped, dataset, items_to_recommend=[*some, "never seen"], filter_viewed=False)
    for user, part in table.groupby(Columns.User):
        assert part[Columns.Item].tolist() == cyclic.rank(user, some).items.tolist()
    everything = recommended(wrapped, dataset, filter_viewed=False, k=100)
    assert everything.groupby(Columns.User).size().unique().tolist() == [40]


def test_similar_items_are_those_of_sadrec(dataset, cyclic):
    table = SADModel(cyclic).recommend_to_items(["i07"], dataset, k=5)
    ids, cosines = cyclic.similar_items("i07", N=6)
    assert table[Columns.Item].tolist() == ids[1:].tolist()
    np.testing.assert_allclose(table[Columns.Score], cosines[1:], atol=1e-6)


def test_strangers_are_refused_or_left_out_as_rectools_says(dataset, cyclic):
    wrapped = SADModel(cyclic)
    with pytest.raises(ValueError, match="cold users"):
        wrapped.recommend(["u00", "stranger"], dataset, k=3, filter_viewed=True)
    table = wrapped.recommend(["u00", "stranger"], dataset, k=3, filter_viewed=True, on_unsupported_targets="ignore")
    assert table[Columns.User].unique().tolist() == ["u00"]


def test_a_dataset_with_more_than_the_model_knows_still_works(split, cyclic):
    enlarged = pd.concat([frame(split[0]), frame(split[0]).head(2).assign(item_id=["novelty", "other"])])
    table = recommended(SADModel(cyclic), Dataset.construct(enlarged), k=40)
    assert not table[Columns.Item].isin(["novelty", "other"]).any()
    stranger = Dataset.construct(enlarged.replace({"user_id": {"u00": "stranger"}}))
    with pytest.raises(UnknownIdError, match="unknown user 'stranger'"):
        recommended(SADModel(cyclic), stranger)


def test_candidates_of_any_model_are_reordered(dataset, cyclic):
    candidates = recommended(PopularModel().fit(dataset), dataset, k=12)
    reranker = SADReranker(cyclic, method="nash")
    candidates[Columns.Score] = reranker.predict_scores(candidates)
    table = reranker.recommend(candidates, k=12)
    for user, part in table.groupby(Columns.User):
        listed = candidates.loc[candidates[Columns.User] == user, Columns.Item]
        assert part[Columns.Item].tolist() == cyclic.rank(user, listed.tolist(), "nash").items.tolist()


@pytest.mark.parametrize("method", ["wins", "margin"])
def test_candidates_that_the_model_does_not_know_come_last(cyclic, method):
    table = pd.DataFrame({"user_id": ["u01"] * 4 + ["stranger"] * 2, "item_id": ["new", "i00", "i01", "i02", "a", "b"]})
    scores = SADReranker(cyclic, method).predict_scores(table)
    best = table.item_id[np.argsort(-scores[:4])].tolist()
    assert best == [*cyclic.rank("u01", ["i00", "i01", "i02"], method).items.tolist(), "new"]
    assert scores[4:].tolist() == [1.0, 0.0]


def test_it_reranks_in_two_stages(dataset, split):
    first = SADModel(SAD(**SETTINGS))
    both = CandidateRankingModel(
        candidate_generators=[CandidateGenerator(first, 15, keep_ranks=True, keep_scores=True)],
        splitter=LastNSplitter(1, n_splits=1),
        reranker=SADReranker(first, "wins"),
    ).fit(dataset)
    table = recommended(both, dataset, k=5)
    for user, part in table.groupby(Columns.User):
        expected, _ = first.fitted.recommend(user, N=5, method="wins", candidates=15)
        assert part[Columns.Item].tolist() == expected.tolist()


def test_it_is_cross_validated(dataset):
    result = cross_validate(
        dataset,
        LastNSplitter(1, n_splits=2),
        {"recall": Recall(k=N)},
        {"sad": SADModel(SAD(**SETTINGS)), "wins": SADModel(SAD(**SETTINGS), method="wins")},
        k=N,
        filter_viewed=True,
    )
    assert [row["model"] for row in result["metrics"]] == ["sad", "wins"] * 2
    assert all(row["recall"] > 0 for row in result["metrics"])


def test_its_configuration_makes_the_same_model(dataset):
    wrapped = SADModel(SAD(**SETTINGS), method="wins", candidates=CANDIDATES)
    again = SADModel.from_config(wrapped.get_config(simple_types=True))
    assert again.get_config() == wrapped.get_config()
    pd.testing.assert_frame_equal(recommended(again.fit(dataset), dataset), recommended(wrapped.fit(dataset), dataset))
    assert SADModel.from_config({"model": "GibbsSAD", "settings": {"draws": 7}}).model.draws == 7


def test_it_is_saved_and_loaded(dataset, tmp_path):
    wrapped = SADModel(SAD(**SETTINGS), method="nash").fit(dataset)
    wrapped.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    pd.testing.assert_frame_equal(recommended(loaded, dataset), recommended(wrapped, dataset))
