"""Visitors are placed under the penalties of the fit."""

from dataclasses import replace

import numpy as np
import pytest

from sadrec.ranking import Parameters
from sadrec.ranking.belief import Gaussian, Point
from sadrec.ranking.fold_in import fold_in, fold_in_comparisons, liked_pairs, pair_design
from sadrec.ranking.logistic import maximise
from sadrec.ranking.parameters import average_user
from sadrec.ranking.visitors import Visitors

LIKED, WINNERS, LOSERS = np.array([1, 4, 6]), np.array([0, 2, 2, 5]), np.array([1, 3, 7, 0])
K, ITEMS = 2, 9


@pytest.fixture(scope="module")
def point():
    rng = np.random.default_rng(0)
    eta, tau = rng.standard_normal((ITEMS, K)), rng.random((ITEMS, K)) + 0.5
    return Point(Parameters(rng.standard_normal((30, K)), eta, tau, rng.standard_normal(ITEMS)))


@pytest.fixture(scope="module")
def gaussian(point):
    none, population = np.empty(0, np.int64), np.array([[0.2, -0.3], [0.4, 0.7], [1, 1], [1, 1]])
    covariances = np.zeros((30, 1 + K, 1 + K), np.float32), np.zeros((ITEMS, 2 + 2 * K, 2 + 2 * K), np.float32)
    return Gaussian(point.parameters, *covariances, population, none, np.empty(0), np.empty(0), 0.0)


def test_likes_are_folded_in_with_the_penalty_of_the_fit(point):
    visitor = Visitors(point, 0.2).from_likes(LIKED)
    expected = fold_in(point.parameters, LIKED, regularization=0.2)
    np.testing.assert_allclose(visitor.vector, expected.vector)


def test_the_interactions_of_a_visitor_weigh_what_those_of_a_user_would(point):
    counts = np.array([1, 4, 9])  # of two users, and of the visitor
    weights = counts**-0.5
    weights *= counts.sum() / (counts * weights).sum()  # balanced: the weights of all interactions are 1 on average
    weighed = float((counts[:2] ** 0.5).sum())
    visitors = Visitors(point, 0.2, (0.5, 5, weighed))
    assert visitors._weight_of(9) == pytest.approx(weights[2])
    expected = fold_in(point.parameters, LIKED, regularization=0.2 / visitors._weight_of(3))
    np.testing.assert_allclose(visitors.from_likes(LIKED).vector, expected.vector)


def test_comparisons_hold_a_visitor_to_the_average_user_as_users_differ(point):
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    visitor = Visitors(point, 0.2).from_comparisons(WINNERS, LOSERS, weight)
    spread = point.parameters.user_factors.std(axis=0)
    expected = fold_in_comparisons(point.parameters, WINNERS, LOSERS, weight=weight, spread=spread)
    np.testing.assert_allclose(visitor.vector, expected.vector)


def test_where_the_fit_has_learnt_how_users_differ_that_counts(gaussian):
    spread, p = gaussian.population[1], gaussian.parameters
    for actual, expected in (
        (Visitors(gaussian).from_likes(LIKED), fold_in(p, LIKED, spread=spread)),
        (
            Visitors(gaussian).from_comparisons(WINNERS, LOSERS, None),
            fold_in_comparisons(p, WINNERS, LOSERS, spread=spread),
        ),
    ):
        np.testing.assert_allclose(actual.vector, expected.vector)
    np.testing.assert_array_equal(Visitors(gaussian).population, np.diag(spread**2))


def test_one_user_says_nothing_of_how_users_differ(point):
    alone = Point(replace(point.parameters, user_factors=point.parameters.user_factors[:1]))
    visitor = Visitors(alone, 0.2).from_comparisons(WINNERS, LOSERS, None)
    expected = fold_in_comparisons(alone.parameters, WINNERS, LOSERS, regularization=0.2)
    np.testing.assert_allclose(visitor.vector, expected.vector)
    np.testing.assert_allclose(Visitors(alone, 0.2).population, np.eye(K) / 0.4)
    two = Point(replace(point.parameters, user_factors=point.parameters.user_factors[:2]))
    np.testing.assert_allclose(Visitors(two).population, np.cov(two.parameters.user_factors.T))
    visitor = Visitors(two).from_comparisons(WINNERS, LOSERS, None)
    spread = two.parameters.user_factors.std(axis=0)
    np.testing.assert_allclose(
        visitor.vector, fold_in_comparisons(two.parameters, WINNERS, LOSERS, spread=spread).vector
    )


def test_likes_held_to_a_centre_lead_where_a_penalty_around_it_does(point):
    visitors, centre = Visitors(point, 0.2, (0.5, 100, 60.0)), np.array([1e-4, -2e-4])
    winners, losers, each = liked_pairs(point.parameters, LIKED)
    design, offset = pair_design(point.parameters, winners, losers)
    penalty = np.full(K, 0.2 / visitors._weight_of(3) * LIKED.size)
    best = maximise(design, offset + design @ centre, np.full(len(design), 1 / each), penalty).vector + centre
    free = visitors.from_likes(LIKED)
    held = visitors.held_to(centre, free, 3, compared=False)
    np.testing.assert_allclose(held.vector - free.vector, best - free.vector, rtol=1e-2)
    np.testing.assert_array_equal(held.covariance, free.covariance)


@pytest.mark.parametrize("kind", ["point", "gaussian"])
def test_comparisons_held_to_a_centre_lead_where_a_prior_around_it_does(kind, request):
    belief = request.getfixturevalue(kind)
    p, visitors = belief.parameters, Visitors(belief)
    spread = p.user_factors.std(axis=0) if kind == "point" else belief.population[1]
    centre = average_user(p) + np.array([1e-4, -2e-4])
    design, offset = pair_design(p, WINNERS, LOSERS)
    best = maximise(design, offset + design @ centre, np.ones(4), 0.5 / spread**2).vector + centre
    free = visitors.from_comparisons(WINNERS, LOSERS, None)
    held = visitors.held_to(centre, free, 4, compared=True)
    np.testing.assert_allclose(held.vector - free.vector, best - free.vector, rtol=1e-2)


def test_who_liked_items_is_one_of_the_population_too(point, gaussian):
    visitors = Visitors(point, 0.2)
    visitor = visitors.from_likes(LIKED)
    both = np.linalg.inv(visitor.covariance) + np.linalg.inv(visitors.population)
    np.testing.assert_allclose(visitors.covariance(visitor, compared=False), np.linalg.inv(both))
    np.testing.assert_array_equal(visitors.covariance(visitor, compared=True), visitor.covariance)
    np.testing.assert_array_equal(Visitors(gaussian).covariance(visitor, compared=False), visitor.covariance)
