"""A vector for a new user."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking import fold_in as fold_in_module
from sadrec.ranking.fold_in import (
    Negatives,
    Pool,
    average_user,
    draw,
    even_points,
    fold_in,
    fold_in_comparisons,
    liked_pairs,
    pack_small,
    pair_design,
)
from sadrec.ranking.logistic import maximise
from sadrec.ranking.pairs import margins, preference, sigmoid
from sadrec.ranking.vectors import mean_margins


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
    assert everything.pairs == 25 * 575
    some = fold_in(catalogue, liked, negatives=100)
    cosine = some.vector @ everything.vector / np.linalg.norm(some.vector) / np.linalg.norm(everything.vector)
    assert cosine > 0.999


def test_left_alone_it_uses_about_four_thousand_pairs(catalogue):
    assert 4096 <= fold_in(catalogue, _liked_by(catalogue, 0)).pairs < 4200
    assert fold_in(catalogue, [0]).pairs == 599


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
    assert much.deviation(catalogue, 10, 11) < little.deviation(catalogue, 10, 11)
    assert np.trace(much.covariance) < np.trace(little.covariance)


def test_deviation_is_that_of_draws_from_the_posterior(catalogue):
    result = fold_in(catalogue, _liked_by(catalogue, 4))
    draws = np.random.default_rng(0).multivariate_normal(result.vector, result.covariance, 4000)
    x = [preference(catalogue, xi, 10, 11) for xi in draws]
    assert result.deviation(catalogue, 10, 11) == pytest.approx(np.std(x), rel=0.05)


def test_popular_negatives_matter_more_if_drawn_more_often(catalogue):
    liked = _liked_by(catalogue, 0)
    rival = int(np.setdiff1d(np.arange(600), liked)[0])
    often = np.ones(600)
    often[rival] = 1e6
    result = fold_in(catalogue, liked, popularity=often).vector
    plain = fold_in(catalogue, liked).vector
    assert preference(catalogue, result, liked, rival).mean() > preference(catalogue, plain, liked, rival).mean()


def test_equal_popularity_is_no_popularity(catalogue):
    liked = _liked_by(catalogue, 0)
    even = fold_in(catalogue, liked, popularity=np.full(600, 7.0), negatives=50).vector
    np.testing.assert_allclose(even, fold_in(catalogue, liked, negatives=50).vector, atol=1e-6)


def test_hard_negatives_are_harder(catalogue):
    liked = _liked_by(catalogue, 0)
    hard = fold_in(catalogue, liked, candidates=8).vector
    others = np.setdiff1d(np.arange(600), liked)
    # Against the best of the rest the liked items fare relatively better.
    best = others[np.argsort(-mean_margins(catalogue, hard, others))[:20]]
    plain = fold_in(catalogue, liked).vector
    assert margins(catalogue, hard / np.linalg.norm(hard), liked, best).mean() >= (
        margins(catalogue, plain / np.linalg.norm(plain), liked, best).mean() - 0.02
    )
    assert not np.allclose(hard, plain)


def test_against_hard_negatives_no_other_vector_does_better(catalogue):
    """Tastes with noise: steps to the best vector against the hardest negatives at hand would overshoot for ever."""
    for user in range(3):
        rng = np.random.default_rng(user)
        appeal = mean_margins(catalogue, user, None) + 3 * rng.standard_normal(600)
        liked = np.sort(np.argsort(-appeal)[:60])
        winners, pool, each = liked_pairs(catalogue, liked, None, None, 8)

        def objective(xi, liked=liked, winners=winners, pool=pool, each=each):
            least = preference(catalogue, xi, winners[:, None], pool).min(axis=1)
            return np.log(sigmoid(least)).sum() / each - 0.01 * liked.size * (xi**2).sum()

        result = fold_in(catalogue, liked, candidates=8).vector
        best = objective(result)
        for size in (1e-2, 1e-1, 1.0):
            for _ in range(5):
                assert objective(result + size * rng.standard_normal(8)) <= best + 1e-3 * abs(best)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_the_hardest_of_some_negatives_is_the_one_beaten_by_least(data, some_parameters):
    p = data.draw(some_parameters)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    winners, pool = rng.integers(0, p.n_items, 7), rng.integers(0, p.n_items, (7, 3))
    x = preference(p, p.user_factors[0], winners[:, None], pool)
    rivals, design, offset = Pool(p, winners, pool).hardest(p.user_factors[0])
    np.testing.assert_allclose(preference(p, p.user_factors[0], winners, rivals), x.min(axis=1), atol=1e-5)
    for side, expected in zip((design, offset), pair_design(p, winners, rivals), strict=True):
        assert np.array_equal(side, expected)


def test_hard_negatives_of_a_large_catalogue_are_those_of_the_few_items_that_occur(catalogue):
    rng = np.random.default_rng(0)
    winners, pool = rng.integers(0, 600, 40), rng.integers(0, 600, (40, 5))
    few, many = Pool(catalogue, winners, pool), Pool(catalogue, np.tile(winners, 4), np.tile(pool, (4, 1)))
    assert len(few.items) < len(many.items) == 600
    whole = many.hardest(catalogue.user_factors[0])
    for part, expected in zip(few.hardest(catalogue.user_factors[0]), whole, strict=True):
        assert np.array_equal(part, expected[:40])
    for part, expected in zip(many.hardest(catalogue.user_factors[0], 4), whole, strict=True):
        assert np.array_equal(part, expected[::4])


def test_the_average_user_has_the_average_margins(catalogue):
    mean = np.mean([mean_margins(catalogue, user, None) for user in range(50)], axis=0)
    np.testing.assert_allclose(mean_margins(catalogue, average_user(catalogue), None), mean, atol=1e-5)


def test_draws_are_spread_evenly():
    counts = np.bincount(draw(1000, 10), minlength=10)
    assert counts.min() >= 98
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    np.testing.assert_allclose(np.bincount(draw(1000, 4, shares), minlength=4) / 1000, shares, atol=0.005)


def test_repr():
    p = Parameters(np.zeros((0, 2)), np.eye(2))
    assert repr(fold_in(p, [0])).startswith("FoldIn(vector of 2 factors and length ")


def test_what_is_wrong_is_named(catalogue):
    with pytest.raises(ValueError, match="liked is empty"):
        fold_in(catalogue, [])
    with pytest.raises(ValueError, match="no other item"):
        fold_in(catalogue, np.arange(600))
    with pytest.raises(ValueError, match="liked holds 600"):
        fold_in(catalogue, [600])
    with pytest.raises(ValueError, match="regularization must be a number above 0, not 0"):
        fold_in(catalogue, [1], regularization=0)
    with pytest.raises(ValueError, match="popularity"):
        fold_in(catalogue, [1], popularity=np.ones(5))
    with pytest.raises(ValueError, match="0 for every item"):
        fold_in(catalogue, [1], popularity=np.zeros(600))
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


@pytest.fixture(scope="module")
def large_catalogue():
    rng = np.random.default_rng(0)
    eta = rng.standard_normal((40_000, 40)).astype(np.float32) / 4
    tau = np.maximum(1 + 0.3 * rng.standard_normal((40_000, 40)), 0).astype(np.float32)
    bias = 0.3 * rng.standard_normal(40_000).astype(np.float32)
    return Parameters(rng.standard_normal((5, 40)).astype(np.float32), eta, tau, bias)


@pytest.mark.parametrize("candidates", [1, 8])
@pytest.mark.parametrize("popular", [False, True])
def test_negatives_drawn_beforehand_lead_to_the_same_vector(large_catalogue, candidates, popular):
    popularity = np.arange(40_000) if popular else None
    drawn = Negatives.drawn_from(large_catalogue, popularity, candidates)
    for count in (1, 20):
        liked = _liked_by(large_catalogue, 0, count)
        options = {"popularity": popularity, "candidates": candidates, "regularization": 0.05}
        expected = fold_in(large_catalogue, liked, **options)
        result = fold_in(large_catalogue, liked, **options, drawn=drawn)
        assert result.pairs == expected.pairs
        difference = np.linalg.norm(result.vector - expected.vector) / np.linalg.norm(expected.vector)
        assert difference < 0.1  # of other draws of the same kind


@pytest.mark.parametrize("candidates", [1, 8])
def test_rows_packed_beforehand_lead_to_the_same_vector(catalogue, candidates):
    liked = _liked_by(catalogue, 0)
    packed = pack_small(catalogue)
    result, expected = (fold_in(catalogue, liked, candidates=candidates, packed=one) for one in (packed, None))
    assert packed is not None and np.array_equal(result.vector, expected.vector)


def test_rows_of_a_large_catalogue_are_not_packed(large_catalogue):
    assert pack_small(large_catalogue) is None


def test_negatives_in_units_are_those_of_the_catalogue(large_catalogue):
    drawn = Negatives.drawn_from(large_catalogue)
    for side, whole in zip(
        np.hsplit(drawn.side[0], 2), (large_catalogue.rival_factors, large_catalogue.item_factors), strict=True
    ):
        assert side.dtype == np.int16
        np.testing.assert_allclose(side * drawn.scale, whole[drawn.items], atol=drawn.scale)
    far = large_catalogue.rival_factors.copy()
    far[drawn.items[0]] = 1e6  # one unit for this and the others would be none for them
    p = large_catalogue
    drawn = Negatives.drawn_from(Parameters(p.user_factors, p.item_factors, far, p.item_bias))
    assert drawn.scale == 1 and drawn.side[0].dtype == np.float32


def test_liked_items_are_no_negatives_of_those_drawn_beforehand(large_catalogue):
    drawn = Negatives.drawn_from(large_catalogue, None, 8)
    liked = np.unique(drawn.items[[0, 1, 5, 30_000, len(drawn.items) - 1]])
    rows = drawn.rows(liked, len(drawn.items))
    assert not np.isin(drawn.items[rows], liked).any()
    kept = ~np.isin(drawn.items, liked)
    assert np.array_equal(rows[kept], np.flatnonzero(kept))
    assert rows[0] == rows[1] == 2


def test_negatives_are_drawn_beforehand_only_from_large_catalogues(catalogue, large_catalogue):
    assert Negatives.drawn_from(catalogue) is None
    assert Negatives.drawn_from(large_catalogue, candidates=1000) is None


def test_many_liked_items_meet_negatives_of_their_own(large_catalogue):
    drawn = Negatives.drawn_from(large_catalogue)
    liked = np.arange(2000)
    assert np.array_equal(fold_in(large_catalogue, liked, drawn=drawn).vector, fold_in(large_catalogue, liked).vector)


@pytest.mark.parametrize("candidates", [1, 8])
def test_factors_too_large_to_compute_with_are_refused(candidates):
    rng = np.random.default_rng(0)
    eta, tau = (1e15 * rng.random((5000, 2)).astype(np.float32) for _ in range(2))
    with pytest.raises(ValueError, match="too large"):
        fold_in(Parameters(np.zeros((0, 2), np.float32), eta, tau), [1, 5], candidates=candidates)


def test_even_points_are_multiples_of_their_step():
    np.testing.assert_allclose(even_points(3, 2**0.5), np.array([0.5, 1.5, 2.5]) * 2**0.5 % 1)
    np.testing.assert_allclose(even_points(3), np.array([0.5, 1.5, 2.5]) * (5**0.5 - 1) / 2 % 1)


def test_there_are_4096_pairs_in_all_and_eight_for_each_liked_item():
    assert [fold_in_module._each(liked) for liked in (1, 511, 512, 513, 5000)] == [4096, 9, 8, 8, 8]


def test_negatives_are_spread_over_all_other_items_as_often_as_they_are_popular():
    p = Parameters(np.zeros((0, 1)), np.zeros((10, 1)))
    winners, losers, each = liked_pairs(p, np.array([2, 5]), 4)
    assert each == 4 and winners.tolist() == [2] * 4 + [5] * 4 and not set(losers.tolist()) & {2, 5}
    assert sorted(liked_pairs(p, np.array([2, 5]), 8)[1].tolist()) == sorted([0, 1, 3, 4, 6, 7, 8, 9] * 2)
    assert liked_pairs(p, np.array([2, 5]), 100)[2] == 8
    popularity = np.arange(10.0)
    often = np.bincount(liked_pairs(p, np.array([2, 5]), 5000, popularity)[1], minlength=10)
    expected = np.where(np.isin(np.arange(10), [2, 5]), 0, popularity) * 10_000 / 38
    np.testing.assert_allclose(often, expected, atol=10)
    assert liked_pairs(p, np.array([2, 5]), 4, None, 3)[1].shape == (8, 3)


def test_comparisons_count_as_often_as_their_weight(catalogue):
    once = fold_in_comparisons(catalogue, [0, 1, 1, 1], [2, 3, 3, 3], regularization=0.01)
    weighed = fold_in_comparisons(catalogue, [0, 1], [2, 3], weight=[1, 3], regularization=0.02)
    np.testing.assert_allclose(weighed.vector, once.vector, rtol=1e-6)
    assert (once.pairs, weighed.pairs) == (4, 2)
