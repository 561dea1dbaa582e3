"""Intervals that hold what they promise, and chains that agree, on data whose truth is known."""

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm

from sadrec.data import Comparisons, simulate
from sadrec.posterior import GibbsSAD

PRIOR = {"user_scale": 1.0, "item_scale": 1.0, "rival_scale": 1.0, "user_mean": 0.0}


def one_data_set(number):
    rng = np.random.default_rng([7, number])
    xi, eta = rng.normal(size=(4, 2)), rng.normal(size=(6, 2))
    tau = norm.ppf(norm.cdf(-1) + (1 - norm.cdf(-1)) * rng.random((6, 2))) + 1
    one, other = (np.tile(side, 4) for side in np.triu_indices(6, 1))
    user = np.repeat(np.arange(4), 15)
    x = ((eta[one] * tau[other] - eta[other] * tau[one]) * xi[user]).sum(1)
    won = rng.random(60) < ndtr(x)
    columns = user, np.where(won, one, other), np.where(won, other, one)
    return Comparisons.from_indices(*columns, users=np.arange(4), items=np.arange(6)), (user, one, other), x


def test_intervals_cover_the_truth_as_often_as_they_say():
    inside = []
    for number in range(60):
        said, asked, x = one_data_set(number)
        result = GibbsSAD(factors=2, draws=500, warmup=200, chains=1, random_state=number, **PRIOR)
        result.fit(said, show_progress=False)
        low, high = result.interval(*asked, 0.9)
        inside.append(((low <= x) & (x <= high)).mean())
    assert 0.87 <= np.mean(inside) <= 0.93


def test_chains_agree_with_each_other_and_with_the_truth_on_a_small_second_simulation():
    truth = simulate("sim2", n=10, m=20, k=3, seed=3)
    said = truth.comparisons
    result = GibbsSAD(factors=3, draws=600, warmup=400, chains=4).fit(said, show_progress=False)
    assert result.diagnose(400).share_good > 0.8
    user, one = said.user_index, np.minimum(said.winner_index, said.loser_index)
    other = np.maximum(said.winner_index, said.loser_index)
    x = result.mean(user, one, other)
    assert np.corrcoef(x, truth.X[user, one, other])[0, 1] > 0.93
    assert np.corrcoef(x, result.mean_model().preference(user, one, other))[0, 1] > 0.999
