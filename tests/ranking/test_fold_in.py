"""A vector for a new user."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters, preference, sigmoid
from sadrec.ranking.fold_in import (
    average_user,
    draw,
    fold_in,
    fold_in_comparisons,
    liked_pairs,
    pair_design,
)
from sadrec.ranking.logistic import maximise
from sadrec.ranking.pairs import margins
from sadrec.ranking.parameters import mean_margins


def _objective(p, xi, liked, regularization):
    """What training maximises for one user, from the definition: every liked item against every other item."""
    others = [j for j in range(p.n_items) if j not in liked]
    x = margins(p, xi, liked, others).astype(np.float64)
    return np.log(sigmoid(x)).mean(axis=1).sum() - regularization * len(liked) * (xi**2).sum()


def _doubles(p):
    parts = (p.user_factors, p.item_factors, p.rival_factors, p.item_bias)
    return Parameters(*(None if part is None else part.astype(np.float64) for part in parts))


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_no_other_vector_explains_the_liked_items_better(data, some_parameters):
    p = _doubles(data.draw(some_parameters))
    liked = data.draw(st.lists(st.integers(0, p.n_items - 1), min_size=1, max_size=p.n_items - 1, unique=True))
    result = fold_in(p, liked, regularization=0.05).vector
    best = _objective(p, result, liked, 0.05)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(5):
            assert _objective(p, result + size * rng.standard_normal(p.n_factors), liked, 0.05) <= best + 1e-9


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_comparisons_are_explained_as_well_as_can_be(data, some_parameters):
    p = _doubles(data.draw(some_parameters))
    pair = st.lists(st.integers(0, p.n_items - 1), min_size=2, max_size=2, unique=True)
    i, j = np.array(data.draw(st.lists(pair, min_size=1, max_size=6))).T
    weight = np.arange(1.0, i.size + 1)

    def likelihood(xi):
        return (weight * np.log(sigmoid(preference(p, xi, i, j)))).sum() - 0.1 * i.size * (xi**2).sum()

    result = fold_in_comparisons(p, i, j, weight=weight, regularization=0.1).vector
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        assert likelihood(result + size * rng.standard_normal(p.n_factors)) <= likelihood(result) + 1e-9


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    eta = rng.standard_normal((600, 8)).astype(np.float32)
    tau = np.maximum(1 + 0.3 * rng.standard_normal((600, 8)), 0).astype(np.float32)
    return Parameters(rng.standard_normal((50, 8)).astype(np.float32), eta, tau, 0.3 * rng.standard_normal(600))


def _liked_by(p, user, count=25):
    return np.argsort(-mean_margins(p, user, None))[:count]


def test_few_negatives_find_nearly_what_all_find(catalogue):
    liked = _liked_by(catalogue, 0)
    everything = fold_in(catalogue, liked, negatives=600)
    some = fold_in(catalogue, liked, negatives=100)
    cosine = some.vector @ everything.vector / np.linalg.norm(some.vector) / np.linalg.norm(everything.vector)
    assert cosine > 0.999


def test_left_alone_it_uses_about_four_thousand_pairs(catalogue):
    assert 4096 <= len(liked_pairs(catalogue, _liked_by(catalogue, 0))[0]) < 4200
    assert len(liked_pairs(catalogue, np.array([0]))[0]) == 599


def test_the_vector_points_where_the_taste_lies(catalogue):
    for user in range(5):
        result = fold_in(catalogue, _liked_by(catalogue, user)).vector
        truth = catalogue.user_factors[user]
        assert result @ truth / np.linalg.norm(result) / np.linalg.norm(truth) > 0.8


def test_it_is_always_the_same(catalogue):
    liked = _liked_by(catalogue, 1)
    assert np.array_equal(fold_in(catalogue, liked).vector, fold_in(catalogue, liked[::-1]).vector)


def test_repetitions_do_not_count(catalogue):
    assert np.array_equal(fold_in(catalogue, [3, 5]).vector, fold_in(catalogue, [3, 5, 5, 3]).vector)


def test_more_regularization_shortens_the_vector(catalogue):
    liked = _liked_by(catalogue, 2)
    lengths = [np.linalg.norm(fold_in(catalogue, liked, regularization=w).vector) for w in (1e-3, 1e-2, 1e-1, 1.0)]
    assert lengths == sorted(lengths, reverse=True)


def test_uncertainty_falls_with_what_is_known(catalogue):
    little, much = (fold_in(catalogue, _liked_by(catalogue, 3, count), regularization=0.01) for count in (3, 100))
    assert np.trace(much.covariance) < np.trace(little.covariance)


def test_the_average_user_has_the_average_margins(catalogue):
    mean = np.mean([mean_margins(catalogue, user, None) for user in range(50)], axis=0)
    np.testing.assert_allclose(mean_margins(catalogue, average_user(catalogue), None), mean, atol=1e-5)


def test_draws_are_spread_evenly():
    counts = np.bincount(draw(1000, 10), minlength=10)
    assert counts.min() >= 98


def test_what_is_wrong_is_named(catalogue):
    with pytest.raises(ValueError, match="liked is empty"):
        fold_in(catalogue, [])
    with pytest.raises(ValueError, match="no other item"):
        fold_in(catalogue, np.arange(600))
    with pytest.raises(ValueError, match="liked holds 600"):
        fold_in(catalogue, [600])
    with pytest.raises(ValueError, match="regularization must be a number above 0, not 0"):
        fold_in(catalogue, [1], regularization=0)
    with pytest.raises(ValueError, match="2 winners and 1 losers"):
        fold_in_comparisons(catalogue, [0, 1], [2])
    with pytest.raises(ValueError, match="item 4 is compared with itself"):
        fold_in_comparisons(catalogue, [0, 4], [1, 4])
    with pytest.raises(ValueError, match="no comparisons"):
        fold_in_comparisons(catalogue, [], [])
    with pytest.raises(ValueError, match="weight"):
        fold_in_comparisons(catalogue, [0], [1], weight=[-1.0])


def test_a_search_that_starts_with_some_pairs_ends_where_all_pairs_lead(catalogue):
    liked = _liked_by(catalogue, 2, 40)
    winners, losers, each = liked_pairs(catalogue, np.sort(liked))
    assert winners.size >= 4096
    weight, penalty = np.full(winners.size, 1 / each), np.full(8, 0.01 * liked.size)
    whole = maximise(*pair_design(catalogue, winners, losers), weight, penalty)
    staged = fold_in(catalogue, liked)
    np.testing.assert_allclose(staged.vector, whole.vector, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(staged.covariance, whole.covariance, rtol=1e-3, atol=1e-9)


def test_factors_too_large_to_compute_with_are_refused():
    rng = np.random.default_rng(0)
    eta, tau = (1e25 * rng.random((5000, 2)).astype(np.float32) for _ in range(2))
    with pytest.raises(ValueError, match="too large"):
        fold_in(Parameters(np.zeros((0, 2), np.float32), eta, tau), [1, 5])


def test_there_are_4096_pairs_in_all_and_eight_for_each_liked_item():
    p = Parameters(np.zeros((0, 1)), np.zeros((10_000, 1)))
    counts = [liked_pairs(p, np.arange(liked))[2] for liked in (1, 511, 512, 513, 5000)]
    assert counts == [4096, 9, 8, 8, 8]


def test_negatives_are_spread_over_all_other_items():
    p = Parameters(np.zeros((0, 1)), np.zeros((10, 1)))
    winners, losers, each = liked_pairs(p, np.array([2, 5]), 4)
    assert each == 4 and winners.tolist() == [2] * 4 + [5] * 4 and not set(losers.tolist()) & {2, 5}
    assert sorted(liked_pairs(p, np.array([2, 5]), 8)[1].tolist()) == sorted([0, 1, 3, 4, 6, 7, 8, 9] * 2)
    assert liked_pairs(p, np.array([2, 5]), 100)[2] == 8


def test_comparisons_count_as_often_as_their_weight(catalogue):
    once = fold_in_comparisons(catalogue, [0, 1, 1, 1], [2, 3, 3, 3], regularization=0.01)
    weighed = fold_in_comparisons(catalogue, [0, 1], [2, 3], weight=[1, 3], regularization=0.02)
    np.testing.assert_allclose(weighed.vector, once.vector, rtol=1e-6)


@pytest.mark.parametrize(("precision", "error"), [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_many_pairs_are_as_exact_as_the_factors(precision, error):
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((count, 5)).astype(precision) for count in (1, 400, 400)]
    p, liked = Parameters(*factors), np.arange(8)
    winners, losers, each = liked_pairs(p, liked)
    assert winners.size > 3000
    exact = fold_in_comparisons(
        p, winners, losers, weight=np.full(winners.size, 1 / each), regularization=0.08 / winners.size
    )
    assert abs(fold_in(p, liked, regularization=0.01).vector - exact.vector).max() < error


@pytest.mark.parametrize("regularization", [0, -1.0, np.inf, np.nan])
def test_without_a_penalty_there_is_no_vector(regularization):
    p = Parameters(np.ones((1, 1)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="regularization must be a number above 0"):
        fold_in(p, [0], regularization=regularization)
    with pytest.raises(ValueError, match="regularization must be a number above 0"):
        fold_in_comparisons(p, [0], [1], regularization=regularization)
