"""Intervals that hold what they promise, and chains that agree, on data whose truth is known."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from sadrec.data import Comparisons, simulate
from sadrec.posterior import GibbsSAD

PRIOR = {"user_scale": 1.0, "item_scale": 1.0, "rival_scale": 1.0, "user_mean": 0.0}


def one_data_set(number, bias):
    rng = np.random.default_rng([7, number])
    xi, eta = rng.normal(size=(4, 2)), rng.normal(size=(6, 2))
    tau = norm.ppf(norm.cdf(-1) + (1 - norm.cdf(-1)) * rng.random((6, 2))) + 1
    triples = np.array([(i, j) for i in range(6) for j in range(i + 1, 6) if i + j not in (4, 5)])
    one, other = np.tile(triples, (4, 1)).T
    user = np.repeat(np.arange(4), len(triples))
    x = ((eta[one] * tau[other] - eta[other] * tau[one]) * xi[user]).sum(1)
    if bias:
        meetings = np.log1p(np.bincount(triples.ravel()))
        scores = rng.normal(rng.normal(0, 0.25) * (meetings - meetings.mean()), abs(rng.normal()))
        x += scores[one] - scores[other]
    won = rng.random(len(x)) < ndtr(x)
    columns = user, np.where(won, one, other), np.where(won, other, one)
    return Comparisons.from_indices(*columns, users=np.arange(4), items=np.arange(6)), (user, one, other), x


@pytest.mark.parametrize("bias", [False, True])
def test_intervals_cover_the_truth_as_often_as_they_say(bias):
    inside = []
    for number in range(60):
        comparisons, triples, x = one_data_set(number, bias)
        result = GibbsSAD(factors=2, draws=500, warmup=200, chains=1, random_state=number, bias=bias, **PRIOR)
        result.fit(comparisons, show_progress=False)
        low, high = result.interval(*triples, 0.9)
        inside.append(((low <= 1.702 * x) & (1.702 * x <= high)).mean())
    assert 0.87 <= np.mean(inside) <= 0.93


def test_chains_agree_with_each_other_and_with_the_truth_on_a_small_second_simulation():
    truth = simulate("sim2", n=10, m=20, k=3, seed=3)
    comparisons = truth.comparisons
    result = GibbsSAD(factors=3, draws=600, warmup=400, chains=4).fit(comparisons, show_progress=False)
    assert result.diagnose(400).share_good > 0.8
    user, one = comparisons.user_index, np.minimum(comparisons.winner_index, comparisons.loser_index)
    other = np.maximum(comparisons.winner_index, comparisons.loser_index)
    x = result.preference(user, one, other)
    assert np.corrcoef(x, truth.X[user, one, other])[0, 1] > 0.93
    assert np.corrcoef(x, result.mean_model().preference(user, one, other))[0, 1] > 0.999
