"""How much a user counts who did much."""

from dataclasses import replace

import numpy as np
import pytest

from sadrec import SAD
from sadrec.training.dataset import balance

LIKED = np.random.default_rng(0).random((60, 40)) < np.linspace(0.02, 0.6, 60)[:, None]


def test_at_one_every_user_counts_the_same_and_the_mean_interaction_weighs_one():
    counts = np.array([3, 12, 1])
    weights = balance(counts, 1.0)
    np.testing.assert_allclose(counts * weights, 16 / 3)
    assert np.dot(counts, weights) / counts.sum() == pytest.approx(1)


def test_balance_is_the_same_as_giving_the_weights_by_hand():
    counts = LIKED.sum(axis=1)
    by_hand = np.repeat(balance(counts, 0.5), counts).astype(np.float32)
    settings = {"factors": 4, "iterations": 3, "loss": "pairwise"}
    balanced = SAD(**settings, advanced={"user_balance": 0.5}).fit(LIKED, show_progress=False)
    weighted = SAD(**settings, advanced={"user_balance": 0.0}).fit(LIKED, weights=by_hand, show_progress=False)
    np.testing.assert_array_equal(balanced.user_factors, weighted.user_factors)
    plain = SAD(**settings, advanced={"user_balance": 0.0}).fit(LIKED, show_progress=False)
    assert not np.array_equal(plain.user_factors, balanced.user_factors)


def test_a_new_user_is_shrunk_as_much_as_a_known_one_with_as_much_data():
    settings = {"factors": 4, "iterations": 3, "regularization": 0.02, "loss": "pairwise"}
    model = SAD(**settings, advanced={"user_balance": 0.5}).fit(LIKED, show_progress=False)
    few = [0, 1]
    weight = balance(np.append(LIKED.sum(axis=1), len(few)), 0.5)[-1]
    same = SAD.from_factors(
        model.user_factors, model.item_factors, model.rival_factors, model.item_bias, seen=model.state.seen
    )
    heavier = SAD(**settings | {"regularization": 0.02 / weight}, advanced={"user_balance": 0.0}).fit(
        LIKED, show_progress=False
    )
    same.state = replace(same.state, settings=heavier.settings)
    mine, theirs = (one.visitor(few).user_factors for one in (model, same))
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("value", [-0.1, 1.5, "much", True])
def test_a_balance_out_of_range_is_refused(value):
    with pytest.raises(ValueError, match="user_balance"):
        SAD(advanced={"user_balance": value}).fit(LIKED)
