"""The number of factors of the sampler, chosen by what it predicts of held-out comparisons."""

import numpy as np

from sadrec import Comparisons
from sadrec.evaluation import tune
from sadrec.posterior import GibbsSAD


def test_the_number_of_factors_is_chosen_by_predictive_density():
    rng = np.random.default_rng(0)
    winner = rng.integers(6, size=300)
    loser = (winner + rng.integers(1, 6, size=300)) % 6
    swapped = (winner > loser) & (rng.random(300) < 0.9)  # items of lower position mostly win
    sides = np.where(swapped, loser, winner), np.where(swapped, winner, loser)
    comparisons = Comparisons.from_indices(rng.integers(2, size=300), *sides, users=range(2), items=range(6))
    result = tune(GibbsSAD(draws=20, warmup=20, chains=1), comparisons, sampler="grid", seed=0, show_progress=False)
    assert result.settings["factors"] in (2, 4, 8, 16)
    assert {trial.settings["factors"] for trial in result.trials} == {2, 4, 8, 16}
