"""Predicted against observed shares."""

import numpy as np
import pytest

from sadrec.data import Comparisons
from sadrec.evaluation.sampling import uniforms, unmet_items
from studies.table.calibration import calibration, plot_calibration
from tests.evaluation import conftest as shared

make_ratings, factor_model, scores_model = shared.make_ratings, shared.factor_model, shared.scores_model


def by_hand(model, train, held_out, bins):
    """Weight, predicted and observed per bin for rated pairs, one pair at a time."""
    sums = np.zeros((3, bins))
    for row in range(train.matrix.shape[0]):
        held, liked = held_out.matrix[row], train.matrix[row]
        if not len(held.indices):
            continue
        (o,), (rating,) = held.indices, held.data
        pairs = [(j, r) for j, r in zip(liked.indices, liked.data, strict=True) if r != rating]
        for j, r in pairs:
            p = 1 / (1 + np.exp(-model.tensor(row)[o, j]))
            won = rating > r
            sure, right = (p, won) if p > 0.5 else (1 - p, not won)
            place = min(int((sure - 0.5) * 2 * bins), bins - 1)
            sums[:, place] += np.array([1, sure, right]) / len(pairs)
    return sums[0] / sums[0].sum(), sums[1] / sums[0], sums[2] / sums[0]


def test_the_curve_is_what_a_plain_loop_gives(make_ratings, factor_model):
    data = make_ratings(users=80, items=60)
    train, held_out = data.leave_one_out(seed=0)
    model = factor_model(data, factors=2, scale=0.5)
    result = calibration(model, train, held_out, bins=5)
    weight, predicted, observed = by_hand(model, train, held_out, 5)
    np.testing.assert_allclose(result.frame["weight"], weight, atol=1e-6)
    np.testing.assert_allclose(result.frame["predicted"], predicted, atol=1e-6)
    np.testing.assert_allclose(result.frame["observed"], observed, atol=1e-6)
    assert result.error == pytest.approx((weight * np.abs(predicted - observed)).sum(), abs=1e-6)


def test_against_sampled_items_the_held_out_one_is_taken_to_win(make_ratings, factor_model):
    data = make_ratings(users=40, items=150)
    train, held_out = data.leave_one_out(seed=0)
    model = factor_model(data)
    right = []
    for row in range(40):
        met = np.union1d(train.matrix[row].indices, held_out.matrix[row].indices)
        for o in held_out.matrix[row].indices:
            x = model.tensor(row)[o, unmet_items(met, 150, uniforms(0, np.array([row]), 100)[0])]
            right.append((x > 0).mean())
    frame = calibration(model, train, held_out, pairs="sampled").frame
    assert (frame["observed"] * frame["weight"]).sum() == pytest.approx(np.mean(right), abs=1e-6)


def test_probabilities_that_are_right_are_calibrated(make_ratings):
    """Ratings drawn from the model's own probabilities: the curve is the diagonal up to its errors."""
    data = make_ratings(users=800, items=40, share=0.3)
    train, held_out = data.leave_one_out(seed=0)
    rng = np.random.default_rng(0)
    p_of = {}
    for row in range(800):
        for o, rating in zip(held_out.matrix[row].indices, held_out.matrix[row].data, strict=True):
            liked = train.matrix[row]
            for j, r in zip(liked.indices, liked.data, strict=True):
                p = rng.random()
                won = rng.random() < p  # what p says happens; if the ratings say otherwise, say 1 - p
                p_of[row, o, j] = p if (rating > r) == won else 1 - p

    row_of = {user: row for row, user in enumerate(data.users.tolist())}
    column_of = {item: column for column, item in enumerate(data.items.tolist())}

    class Oracle:
        users, items = data.users, data.items

        def margins(self, user, items, rivals):
            return np.zeros((len(items), len(rivals)))

        def probability(self, user, item, rival):
            item, rival = np.broadcast_arrays(item, rival)
            keys = zip(item.ravel().tolist(), rival.ravel().tolist(), strict=True)
            row = row_of[int(user)]
            given = [p_of.get((row, column_of[i], column_of[j]), 0.5) for i, j in keys]
            return np.array(given).reshape(item.shape)

    frame = calibration(Oracle(), train, held_out, bins=5).frame
    gaps = (frame["observed"] - frame["predicted"]) / frame["error"]
    assert gaps.abs().max() < 4
    assert frame["error"].max() < 0.05


def test_pictures_and_refusals(make_ratings, factor_model, scores_model):
    data = make_ratings()
    train, held_out = data.leave_one_out(seed=0)
    result = calibration(factor_model(data), train, held_out)
    assert len(plot_calibration({"a": result, "b": result}).axes) == 1
    assert result.plot().axes
    silent = scores_model(data, np.zeros(data.matrix.shape))
    with pytest.raises(ValueError, match="offers no probability"):
        calibration(silent, train, held_out)
    with pytest.raises(ValueError, match="bins"):
        calibration(factor_model(data), train, held_out, bins=0)
    with pytest.raises(ValueError, match="pairs"):
        calibration(factor_model(data), train, held_out, pairs="all")
    alike = make_ratings(ratings=False)
    with pytest.raises(ValueError, match="no held-out pair"):
        calibration(factor_model(alike), *alike.leave_one_out(seed=0))


def test_comparisons_are_calibrated_by_their_winners(factor_model):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 12, 500)
    games = Comparisons.from_indices(
        rng.integers(0, 9, 500), first, (first + rng.integers(1, 12, 500)) % 12, users=range(9), items=range(12)
    )

    class Shape:
        users, items = games.users, games.items
        matrix = np.empty((9, 12))

    model = factor_model(Shape(), scale=0.3)
    train, test = games.split(seed=0)
    result = calibration(model, train, test, bins=5)
    weight, predicted, right = np.zeros(5), np.zeros(5), np.zeros(5)
    each = np.bincount(test.user_index, minlength=9)
    for user, winner, loser in zip(test.user_index, test.winner_index, test.loser_index, strict=True):
        p = 1 / (1 + np.exp(-model.tensor(user)[winner, loser]))
        bin_, share = min(int((max(p, 1 - p) - 0.5) * 10), 4), 1 / each[user]
        weight[bin_] += share
        predicted[bin_] += share * max(p, 1 - p)
        right[bin_] += share * (p > 0.5)
    filled = weight > 0
    np.testing.assert_allclose(result.frame["predicted"], (predicted / np.where(filled, weight, 1))[filled], atol=1e-6)
    np.testing.assert_allclose(result.frame["observed"], (right / np.where(filled, weight, 1))[filled], atol=1e-6)
    assert result.frame["pairs"].sum() == len(test)
    with pytest.raises(TypeError, match="one part is interactions"):
        calibration(model, games, train.users)
