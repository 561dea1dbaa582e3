"""Parameters for a new item."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sadrec.ranking import Parameters
from sadrec.ranking.new_items import fold_in_item
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.vectors import item_vectors, mean_margins, user_vectors


def _world(rivals, bias, users=400, items=80, factors=4):
    """A model and who liked what under it; the last item is kept back."""
    rng = np.random.default_rng(0)
    eta = rng.standard_normal((items, factors))
    tau = np.maximum(1 + 0.4 * rng.standard_normal((items, factors)) * (rng.random((items, factors)) < 0.3), 0)
    whole = Parameters(
        rng.standard_normal((users, factors)),
        eta,
        tau if rivals else None,
        rng.standard_normal(items) if bias else None,
    )
    scores = user_vectors(whole) @ item_vectors(whole).T
    liked = csr_matrix(rng.random((users, items)) < sigmoid(scores - 1.5))
    known = Parameters(
        whole.user_factors,
        eta[:-1],
        tau[:-1] if rivals else None,
        whole.item_bias[:-1] if bias else None,
    )
    return whole, known, liked


@pytest.mark.parametrize("rivals", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_liked_by_those_who_would_have_liked_it(rivals, bias):
    whole, known, liked = _world(rivals, bias)
    fans = liked[:, -1].nonzero()[0]
    new = fold_in_item(known, fans, liked[:, :-1], regularization=0.001)
    result = new.added_to(known)
    users = range(whole.n_users)
    truth = [mean_margins(whole, u, [79])[0] for u in users]
    ours = [mean_margins(result, u, [79])[0] for u in users]
    assert np.corrcoef(truth, ours)[0, 1] > 0.9


def test_what_is_added_has_the_shape_of_the_model():
    _, known, liked = _world(True, True)
    new = fold_in_item(known, [0, 1, 2], liked[:, :-1])
    mean = np.arange(4.0)
    result = new.added_to(replace(known, user_mean=mean))
    assert result.n_items == 80 and result.user_mean is mean
    assert np.array_equal(result.item_factors[:-1], known.item_factors)
    assert result.item_bias[-1] == pytest.approx(new.item_bias)
    assert new.covariance.shape == (5, 5)
    assert new.users == 3
    assert repr(new).startswith("NewItem(vector of 4 factors and length ")


def test_tau_is_one_where_the_data_ask_for_nothing_else_and_never_negative():
    _, known, liked = _world(True, False)
    fans = liked[:, -1].nonzero()[0]
    strict = fold_in_item(known, fans, liked[:, :-1], rival_regularization=10.0)
    assert (strict.rival_factors == 1).all()
    free = fold_in_item(known, fans, liked[:, :-1], rival_regularization=0.0)
    assert (free.rival_factors >= 0).all()
    assert (free.rival_factors != 1).all()


def test_few_fans_make_an_unpopular_item():
    _, known, liked = _world(False, False)
    few, many = (fold_in_item(known, np.arange(count), liked[:, :-1]).added_to(known) for count in (2, 200))
    average = known.user_factors.mean(0)
    assert mean_margins(few, average, [79])[0] < mean_margins(many, average, [79])[0]


def test_nobody_else_liked_anything():
    _, known, liked = _world(False, False)
    nothing = csr_matrix(liked[:, :-1].shape)
    assert np.isfinite(fold_in_item(known, [0], nothing).item_factors).all()


def test_what_is_wrong_is_named():
    _, known, liked = _world(False, False)
    with pytest.raises(ValueError, match="at least one user"):
        fold_in_item(known, [], liked[:, :-1])
    with pytest.raises(ValueError, match="liked must have a row per user"):
        fold_in_item(known, [0], liked)
    with pytest.raises(ValueError, match="rival_regularization"):
        fold_in_item(known, [0], liked[:, :-1], rival_regularization=-1)
    with pytest.raises(ValueError, match="users holds 400"):
        fold_in_item(known, [400], liked[:, :-1])


def test_no_other_item_explains_better_who_liked_it():
    _, known, liked = _world(False, True, users=120, items=30)
    fans, others = np.flatnonzero(liked[:, [-1]].toarray()[:, 0]), liked[:, :-1].toarray()
    sizes = others.sum(axis=1)
    met = np.where(others, 1 / (30 - sizes)[:, None], 0.0)  # how often the new item is the negative of a liked one
    met[fans] = 0.0

    def objective(item):
        x = known.user_factors @ (item[:4] - known.item_factors).T + item[4] - known.item_bias
        wins = np.log(sigmoid(x)) * ~others
        likelihood = (wins.sum(axis=1) / (~others).sum(axis=1))[fans].sum() + (met * np.log(sigmoid(-x))).sum()
        return likelihood - 0.01 * (fans.size + met.sum()) * (item**2).sum()

    new = fold_in_item(known, fans, liked[:, :-1], regularization=0.01, pairs=100_000)
    item = np.append(new.item_factors, new.item_bias)
    for step in np.vstack([np.eye(5), -np.eye(5)]):
        assert objective(item) > objective(item + 0.1 * step)


@pytest.mark.parametrize("rivals", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_penalties_hold_an_item_to_what_its_features_predict(rivals, bias):
    _, known, liked = _world(rivals, bias, users=60, items=30)
    eta, tau, level = np.array([0.3, -0.2, 0.1, 0.4]), np.array([1.2, 0.5, 0.9, 0.0]), 0.7
    strict = {"regularization": 1e6, "rival_regularization": 1e6}
    new = fold_in_item(known, [0, 3, 5], liked[:, :-1], **strict, centre=(eta, tau, level))
    np.testing.assert_allclose(new.item_factors, eta, atol=1e-4)
    np.testing.assert_allclose(new.rival_factors, tau if rivals else np.ones(4), atol=1e-4)
    assert new.item_bias == pytest.approx(level if bias else 0.0, abs=1e-4)


def test_a_centre_moves_the_penalties_and_nothing_else():
    _, known, liked = _world(True, True, users=60, items=30)
    fans = liked[:, -1].nonzero()[0]
    weak = {"regularization": 1e-7, "rival_regularization": 0.0}
    plain = fold_in_item(known, fans, liked[:, :-1], **weak)
    moved = fold_in_item(known, fans, liked[:, :-1], **weak, centre=(np.full(4, 0.3), np.full(4, 1.4), 0.7))
    for name in ("item_factors", "rival_factors", "item_bias"):
        np.testing.assert_allclose(getattr(moved, name), getattr(plain, name), rtol=1e-2, atol=1e-2)
    assert (moved.rival_factors >= 0).all()
