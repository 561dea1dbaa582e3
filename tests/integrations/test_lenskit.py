"""In LensKit: its analysis gives sadrec's own measures, by mean margin and by wins."""

import pickle

import numpy as np
import pytest

pytest.importorskip("lenskit")

import pandas as pd
from lenskit.batch import recommend
from lenskit.data import ItemList, ItemListCollection, RecQuery, from_interactions_df
from lenskit.metrics import NDCG, Hit, LogRankWeight, Precision, Recall, RunAnalysis
from lenskit.pipeline import Pipeline, topn_pipeline
from lenskit.training import TrainingOptions

from sadrec import BPR, SAD
from sadrec.evaluation import evaluate_top_n
from sadrec.integrations.lenskit import SADRanker, SADScorer, sad_pipeline
from sadrec.posterior import GibbsSAD

from .conftest import CANDIDATES, SETTINGS, Lists, N, rows

MEASURES = {f"NDCG@{N}": "ndcg", f"Recall@{N}": "recall", f"Precision@{N}": "precision", f"Hit@{N}": "hit_rate"}


def table(data):
    return pd.DataFrame(rows(data), columns=["user_id", "item_id"])


@pytest.fixture(scope="module")
def dataset(split):
    return from_interactions_df(table(split[0]))


def measured(pipeline, split):
    held_out = ItemListCollection.from_df(table(split[1]), ["user_id"])
    lists = recommend(pipeline, sorted({user for user, _ in rows(split[1])}), n=N, n_jobs=1)
    analysis = RunAnalysis()
    analysis.add_metric(
        NDCG(N, weight=LogRankWeight(offset=1))
    )  # the default gives the first two places the same weight
    for metric in (Recall, Precision, Hit):
        analysis.add_metric(metric(N))
    means = analysis.measure(lists, held_out).list_metrics().mean()
    return {native: means[name] for name, native in MEASURES.items()}


def native(figures, model, split):
    evaluated = evaluate_top_n(model, *split, N=N)
    return pytest.approx({name: evaluated[name] for name in figures}, abs=1e-6)


def listed(pipeline, user, n=N, **options):
    return pipeline.run("recommender", query=user, n=n, **options).ids().tolist()


@pytest.mark.parametrize("kind", [SAD, BPR])
def test_a_trained_model_has_the_scores_and_measures_of_sadrec(dataset, split, kind):
    scorer = SADScorer(model=kind.__name__, settings=SETTINGS)
    pipeline = topn_pipeline(scorer)
    pipeline.train(dataset)
    model = pipeline.component("scorer").fitted
    figures = measured(pipeline, split)
    assert type(model) is kind and figures == native(figures, model, split)
    alone = kind(**SETTINGS).fit(split[0])
    for user in alone.users[:5]:
        scored = pipeline.run("scorer", query=user, items=ItemList(alone.items))
        np.testing.assert_allclose(scored.scores(), alone.scores([user])[0], atol=1e-6)


@pytest.mark.parametrize("method", ["wins", "markov", "nash"])
def test_lists_of_a_fitted_model_are_those_of_its_method(dataset, split, cyclic, method):
    pipeline = sad_pipeline(cyclic, method=method, candidates=CANDIDATES)
    pipeline.train(dataset)
    assert pipeline.component("scorer").fitted is pipeline.component("ranker").fitted is cyclic
    figures = measured(pipeline, split)
    assert figures == native(figures, Lists(cyclic, method), split)
    plain = topn_pipeline(SADScorer.of(cyclic))
    plain.train(dataset)
    assert figures != measured(plain, split)
    for user in cyclic.users[:5]:
        expected = cyclic.recommend(user, N=N, method=method, candidates=CANDIDATES)[0]
        assert listed(pipeline, user) == expected.tolist()


def test_scorer_and_ranker_share_one_fit(dataset):
    pipeline = sad_pipeline("SAD", SETTINGS, method="wins")
    pipeline.train(dataset, TrainingOptions(rng=42))
    model = pipeline.component("scorer").fitted
    assert pipeline.component("ranker").fitted is model
    assert listed(pipeline, "u03") == model.recommend("u03", N=N, method="wins")[0].tolist()
    again = pipeline.clone()
    assert not again.component("scorer").is_trained()
    again.train(dataset)
    assert listed(again, "u03") == listed(pipeline, "u03")


def test_a_seed_is_taken_from_the_options_where_none_is_set(dataset):
    scorers = [SADScorer(settings={**SETTINGS, "random_state": None}) for _ in range(3)]
    for scorer, seed in zip(scorers, (1, 1, 2), strict=True):
        scorer.train(dataset, TrainingOptions(rng=seed))
    one, same, other = (scorer.fitted.item_factors for scorer in scorers)
    assert (one == same).all() and (one != other).any()


def test_training_again_can_be_left_out(dataset):
    scorer = SADScorer(settings=SETTINGS)
    assert not scorer.is_trained()
    scorer.train(dataset)
    model = scorer.fitted
    scorer.train(from_interactions_df(pd.DataFrame({"user_id": [1], "item_id": [2]})), TrainingOptions(retrain=False))
    assert scorer.is_trained() and scorer.fitted is model


def test_a_posterior_is_trained_and_ranked(dataset):
    settings = {"factors": 2, "draws": 8, "warmup": 8, "chains": 1, "num_threads": 1}
    pipeline = sad_pipeline("GibbsSAD", settings, method="wins")
    pipeline.train(dataset)
    model = pipeline.component("scorer").fitted
    assert isinstance(model, GibbsSAD)
    items = ItemList(model.items)
    assert listed(pipeline, "u01", n=40, items=items) == model.rank("u01", method="wins").items.tolist()
    history = RecQuery(user_id="stranger", history_items=ItemList(["i01", "i03"]))
    assert np.isfinite(pipeline.run("scorer", query=history, items=items).scores()).all()


def test_strangers_get_nan_or_are_folded_in(dataset, cyclic):
    scorer, ranker = SADScorer.of(cyclic), SADRanker.of(cyclic, method="wins", candidates=CANDIDATES)
    some = ItemList(["i00", "novelty", "i02"])
    assert np.isnan(scorer(RecQuery(user_id="stranger"), some).scores()).all()
    assert np.isnan(scorer(RecQuery(user_id="stranger", history_items=ItemList(["novelty"])), some).scores()).all()
    assert np.isnan(scorer(RecQuery(user_id="u00"), some).scores()).tolist() == [False, True, False]
    query = RecQuery(user_id="stranger", history_items=ItemList(["i05", "i06", "i07", "novelty"]))
    visitor = cyclic.visitor(["i05", "i06", "i07"])
    everything = scorer(query, ItemList(cyclic.items))
    np.testing.assert_allclose(everything.scores(), visitor.scores(["visitor"])[0], atol=1e-6)
    best = visitor.rank("visitor").items[:CANDIDATES]
    expected = visitor.rank("visitor", best, "wins").items.tolist()
    assert ranker(items=everything, query=query, n=CANDIDATES).ids().tolist() == expected


def test_the_ranker_orders_what_another_scorer_scored(cyclic):
    ranker = SADRanker.of(cyclic, method="nash", candidates=4)
    items = ItemList(
        ["i00", "i01", "novelty", "i02", "i03", "i04"], scores=np.array([1.0, 5, 4, 3, np.nan, 2]), price=np.arange(6)
    )
    ranked = ranker(items=items, query=RecQuery(user_id="u02"))
    first = cyclic.rank("u02", ["i01", "i02", "i04"], "nash").items.tolist()
    assert ranked.ordered and ranked.ranks().tolist() == [1, 2, 3, 4, 5]
    # what the model does not know keeps its place, what is behind the candidates too, and no score is no place
    assert ranked.ids().tolist() == [first[0], "novelty", first[1], first[2], "i00"]
    price = dict(zip(items.ids().tolist(), range(6), strict=True))
    assert ranked.field("price").tolist() == [price[item] for item in ranked.ids()]
    unknown = ranker(items=items, query=RecQuery(user_id="stranger"), n=2)
    assert unknown.ids().tolist() == ["i01", "novelty"] and unknown.ordered
    assert len(ranker(items=ItemList([], scores=[]), query=RecQuery(user_id="u02"))) == 0


def test_ratings_are_taken_along(split):
    rated = table(split[0]).assign(rating=np.random.default_rng(0).integers(1, 6, len(rows(split[0]))).astype(float))
    scorer = SADScorer(settings={**SETTINGS, "order_share": 0.5})
    scorer.train(from_interactions_df(rated))
    assert scorer.fitted.seen.data.max() == 5


def test_it_is_saved_and_loaded(dataset):
    pipeline = sad_pipeline("SAD", SETTINGS, method="nash", n=7)
    pipeline.train(dataset)
    loaded = pickle.loads(pickle.dumps(pipeline))
    assert listed(loaded, "u09", n=None) == listed(pipeline, "u09", n=None)
    assert len(listed(loaded, "u09", n=None)) == 7
    made = Pipeline.from_config(pipeline.config)
    assert made.component("ranker").config == pipeline.component("ranker").config


def test_wrong_settings_are_named(cyclic):
    with pytest.raises(ValueError, match="method must be 'margin', 'wins', 'markov' or 'nash', not 'win'"):
        SADRanker(method="win")
    with pytest.raises(ValueError, match="settings are for a model that is to be trained"):
        sad_pipeline(cyclic, {"factors": 3})
