"""Every seed that random_state allows can be trained with."""

import numpy as np
import pytest

from sadrec import SAD

LIKED = (np.random.default_rng(0).random((9, 9)) < 0.4) * 1.0


@pytest.mark.parametrize("state", [None, np.random.default_rng(1), 2**63 - 1], ids=["none", "generator", "largest"])
def test_any_seed_is_trained_with(state):
    model = SAD(factors=2, iterations=1, random_state=state).fit(LIKED, show_progress=False)
    assert 0 <= model.settings.seed < 2**63
