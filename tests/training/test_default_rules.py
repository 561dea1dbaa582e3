"""Default settings for interactions: one learner, whose factors and length come from the data."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec._core.settings import checked
from sadrec.models import settings_for
from sadrec.training.defaults import SOFTMAX, defaults
from sadrec.training.resolve import as_before


def groups(inside, outside=0.0, users=600, items=300, seed=0):
    rng = np.random.default_rng(seed)
    own = (np.arange(users) % 6)[:, None] == np.arange(items) % 6
    chosen = sp.csr_matrix((rng.random((users, items)) < np.where(own, inside, outside)).astype(np.float32))
    return Interactions.from_csr(chosen)


@pytest.fixture(scope="module")
def personal():
    return groups(0.25)


@pytest.fixture(scope="module")
def shared():
    return groups(0.1, 0.1)


@pytest.mark.parametrize("model", [SAD, BPR])
def test_all_interactions_are_learnt_against_many_negatives(model, personal, shared):
    for data in (personal, shared):
        settings = settings_for(model(), data)
        assert settings.loss == "softmax" and 64 <= settings.factors <= 384 and 1 < settings.length < 5
        assert settings.origins["factors"] == settings.origins["length"] == "data"
        for name in ("loss", "iterations", "learning_rate", "user_balance", "negatives", "bias"):
            assert settings.origins[name] == "default" and (name == "loss" or getattr(settings, name) == SOFTMAX[name])


def test_what_is_given_is_not_looked_for(personal, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("this was given")

    short = {"length": 1.7}
    with monkeypatch.context() as patch:
        patch.setattr("sadrec.training.sgd.survey.factors_above_chance", refuse)
        assert settings_for(SAD(factors=8), personal).origins["length"] == "data"
    with monkeypatch.context() as patch:
        patch.setattr("sadrec.training.sgd.survey._best_length", refuse)
        settings = settings_for(SAD(advanced=short), personal)
        assert (settings.origins["factors"], settings.length) == ("data", 1.7)
    monkeypatch.setattr("sadrec.training.dataset.survey", refuse)
    settings = settings_for(SAD(factors=8, advanced=short), personal)
    assert settings.origins["factors"] == settings.origins["length"] == "given"
    assert settings_for(SAD(loss="pairwise"), personal).factors == 64


@pytest.mark.parametrize(
    "given",
    [
        {"learning_rate": 0.05},
        {"regularization": 0.01},
        {"rival_regularization": 0.001},
        {"advanced": {"adaptive": True}},
    ],
)
def test_no_other_setting_chooses_the_loss(personal, given):
    assert settings_for(SAD(**given), personal).loss == "softmax"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "interactions like these are learnt by loss='softmax' unless you set loss='pairwise'"),
        ({"loss": "softmax"}, "leave it out with loss='softmax'"),
    ],
)
def test_a_setting_of_the_other_loss_is_refused_with_the_remedy(personal, given, message):
    with pytest.raises(ValueError, match=f"negative_candidates=4 is for loss='pairwise': {message}"):
        settings_for(SAD(negative_candidates=4, **given), personal)


@pytest.mark.parametrize("given", [{"negative_candidates": 4}, {"advanced": {"user_balance": 0.5}}])
def test_a_setting_of_negatives_is_refused_where_there_are_none(personal, given):
    with pytest.raises(ValueError, match="is for sampled negatives: leave it out with order_share=1"):
        settings_for(SAD(order_share=1.0, **given), personal)


def test_a_loss_is_taken_as_given(personal, shared):
    assert settings_for(SAD(loss="pairwise"), personal).length == 0
    assert settings_for(SAD(loss="softmax"), shared).length > 0.5


def test_comparisons_beside_interactions_are_learnt_with_them(personal):
    comparisons = Comparisons.from_indices([0, 1], [0, 1], [1, 2], users=personal.users[:2], items=personal.items[:3])
    model = SAD(4, iterations=1).fit(personal, show_progress=False, comparisons=comparisons)
    assert model.settings.loss == "softmax" and model.state.history[0]["updates"] > personal.matrix.nnz


def test_a_fit_that_is_continued_keeps_loss_length_and_balance(personal):
    model = SAD(8, iterations=2).fit(personal, show_progress=False)
    before = model.settings
    model.partial_fit(personal, show_progress=False)
    after = model.settings
    assert before.loss == "softmax"
    for name in ("loss", "length", "user_balance", "negatives", "learning_rate"):
        assert getattr(after, name) == getattr(before, name)


def test_a_warm_start_from_given_factors_is_pairwise(personal):
    start = SAD.from_factors(
        np.ones((600, 2), np.float32), np.ones((300, 2), np.float32), users=personal.users, items=personal.items
    )
    assert SAD(iterations=1).fit(personal, show_progress=False, warm_start=start).settings.loss == "pairwise"


def test_a_warm_start_keeps_the_loss_of_the_model_unless_another_is_asked_for(personal):
    start = SAD(8, iterations=2, loss="softmax", advanced={"length": 1.7}).fit(personal, show_progress=False)

    def after(**settings):
        return SAD(8, iterations=1, **settings).fit(personal, show_progress=False, warm_start=start).settings

    assert (after().loss, after().length) == ("softmax", 1.7)
    assert after(loss="softmax").length == 1.7
    free = after(advanced={"length": 0})
    assert (free.loss, free.length) == ("softmax", 0)
    assert after(advanced={"length": 2.5}).length == 2.5
    assert after(loss="pairwise").loss == "pairwise"


def test_pairwise_the_more_is_known_of_each_user_and_item_the_harder_negatives_and_the_weaker_l2():
    def rule(pairs):
        values = defaults("interactions", 1_000, 500, pairs, "pairwise")
        return values["negative_candidates"], round(values["regularization"], 4)

    assert [rule(pairs) for pairs in (9_000, 40_000, 80_000)] == [(1, 0.02), (3, 0.02), (6, 0.0164)]


@pytest.mark.parametrize("users", [1, 2, 3, 9])
def test_tiny_data_has_settings(users):
    chosen = np.random.default_rng(0).random((users, 5)) < 0.5
    chosen[0, 0] = True
    data = Interactions.from_csr(sp.csr_matrix(chosen.astype(np.float32)))
    model = SAD().fit(data, show_progress=False)
    assert model.settings.factors == 64 and np.isfinite(model.user_factors).all()


def test_where_nothing_meets_negatives_neither_loss_nor_length_is_used():
    ones = np.ones(6, np.float32)
    rated = Interactions.from_csr(sp.csr_matrix((np.arange(1, 7) * ones, ([0, 0, 0, 1, 1, 1], [0, 1, 2, 1, 2, 3]))))
    stated = Comparisons.from_frame(pl.DataFrame({"u": [0], "w": ["a"], "l": ["b"]}), user="u", winner="w", loser="l")
    for data, given in ((rated, {"order_share": 1.0}), (stated, {"solver": "sgd"}), (stated, {})):
        settings = settings_for(SAD(**given), data)
        assert (settings.loss, settings.length) == ("pairwise", 0)
        assert settings.origins["loss"] == settings.origins["length"] == "not used"


def test_continued_with_another_loss_a_fit_does_not_keep_what_suited_the_one_before(personal):
    before = settings_for(SAD(), personal)
    given = checked(SAD(loss="pairwise"))
    assert as_before(given, before, 128, True, False)["negatives"] is None
    assert as_before(checked(SAD()), before, 128, True, False)["learning_rate"] == before.learning_rate


def test_vectors_of_free_length_get_a_rate_that_a_softmax_bears():
    dense = sp.csr_matrix(np.random.default_rng(0).random((100, 50)) < 0.2, dtype=np.float32)
    data = Interactions.from_csr(dense)
    model = SAD(loss="softmax", factors=8, iterations=5, advanced={"length": 0}).fit(data, show_progress=False)
    assert model.settings.learning_rate == 0.05
    assert settings_for(SAD(loss="softmax"), data).learning_rate == SOFTMAX["learning_rate"]
