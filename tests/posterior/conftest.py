"""Settings and small data that the tests of this folder share."""

import numpy as np
import pytest

from sadrec.data import Comparisons
from sadrec.posterior import GibbsSAD
from sadrec.posterior.settings import GibbsSettings


@pytest.fixture(scope="session")
def settings():
    """A function that makes settings from the few that matter."""

    def make(**changes):
        base = {"factors": 2, "draws": 1, "warmup": 0, "chains": 1, "thin": 1, "negatives": 1, "random_state": 0}
        prior = {"user_scale": 1.0, "item_scale": 1.0, "rival_scale": 1.0, "user_mean": 0.0, "rival_mean": 1.0}
        prior["bias"] = False
        return GibbsSettings(**{**base, **prior, **changes})

    return make


@pytest.fixture(scope="session")
def answers():
    """Two users with opposite tastes and one who answers in a cycle, over five items."""
    rng = np.random.default_rng(0)
    rows = []
    for user, name in enumerate(("up", "down", "round")):
        for _ in range(60):
            i, j = sorted(rng.choice(5, 2, replace=False))
            wins = {"up": True, "down": False, "round": (j - i) in (1, 2)}[name]
            wins ^= rng.random() < 0.05
            rows.append((user, i, j) if wins else (user, j, i))
    columns = np.array(rows).T
    return Comparisons.from_indices(*columns, users=["up", "down", "round"], items=list("abcde"))


@pytest.fixture(scope="session")
def posterior(answers):
    """A fitted posterior that tests only read."""
    return GibbsSAD(factors=3, draws=400, warmup=300, chains=2, random_state=3).fit(answers, show_progress=False)
