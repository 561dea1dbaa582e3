"""Data the draws predict beside data there is."""

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from sadrec.data import Comparisons
from sadrec.posterior import GibbsSAD


def truth(seed, users=8, items=8):
    rng = np.random.default_rng(seed)
    one, other = np.triu_indices(items, 1)
    user = np.repeat(np.arange(users), len(one))
    one, other = np.tile(one, users), np.tile(other, users)
    score = rng.normal(size=items)
    won = rng.random(len(user)) < ndtr(score[one] - score[other])
    return user, np.where(won, one, other), np.where(won, other, one)


def fit(columns, **changes):
    comparisons = Comparisons.from_indices(*columns, users=np.arange(8), items=np.arange(8))
    settings = {"factors": 2, "draws": 150, "warmup": 150, "chains": 2, **changes}
    return GibbsSAD(**settings).fit(comparisons, show_progress=False)


def test_data_the_model_could_have_made_is_not_conspicuous():
    table = fit(truth(0)).predictive_check()
    assert table["statistic"].to_list() == [
        "log_likelihood", "upsets", "user_upsets", "item_spread", "crowd_cycles", "user_cycles",
    ]  # fmt: skip
    assert table["p_value"].is_between(0.01, 0.99).all()


def test_answers_without_noise_fail_the_check_of_a_model_that_expects_noise():
    user, winner, loser = truth(0)
    low, high = np.minimum(winner, loser), np.maximum(winner, loser)
    # Everybody says the same, always; a prior that allows only weak preferences cannot produce that.
    table = fit((user, low, high), user_scale=0.2, item_scale=0.2, user_mean=0.0, bias=False).predictive_check()
    row = table.row(by_predicate=pl.col("statistic") == "item_spread", named=True)
    assert row["observed"] > row["upper"]
    assert row["p_value"] < 0.01


def test_own_statistics_are_used():
    result = fit(truth(1))
    table = result.predictive_check({"first": lambda user, winner, loser: float((winner < loser).mean())}, number=40)
    observed = result.state.belief.observed
    winner, loser = observed.winner, observed.loser
    assert table["observed"].to_list() == pytest.approx([(winner < loser).mean()])
    assert 0 < table["p_value"][0] < 1


def test_fractions_of_comparisons_are_left_out():
    user, winner, loser = truth(2)
    comparisons = Comparisons.from_indices(
        user, winner, loser, users=np.arange(8), items=np.arange(8), weight=np.full(len(user), 0.5)
    )
    result = GibbsSAD(factors=1, draws=10, warmup=0, chains=1).fit(comparisons, show_progress=False)
    with pytest.raises(ValueError, match="fractional"):
        result.predictive_check()
