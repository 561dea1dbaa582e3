"""The compiled parts of a search for a vector, against the same in NumPy."""

import numpy as np
import pytest

from sadrec.ranking import Parameters
from sadrec.ranking import _descent as descent
from sadrec.ranking.fold_in import pack
from sadrec.ranking.pairs import preference, sigmoid

ITEMS, K, PAIRS, CANDIDATES, WEIGHT = 40, 3, 24, 4, 0.5


class Game:
    """Pairs of winners with several negatives each, and what they mean from the definition."""

    def __init__(self, rivals, seed=0, pairs=PAIRS, noise=1.0):
        rng = np.random.default_rng(seed)
        self.xi = rng.standard_normal(K).astype(np.float32)
        eta, tau = rng.standard_normal((2, ITEMS, K)).astype(np.float32)
        bias = rng.standard_normal(ITEMS).astype(np.float32)
        self.parameters = Parameters(self.xi[None], eta, 1 + np.abs(tau) if rivals else None, noise * bias)
        self.side = pack(self.parameters)
        appeal = preference(self.parameters, self.xi, np.arange(ITEMS)[:, None], np.arange(ITEMS)).mean(axis=1)
        self.winners = np.sort(rng.choice(np.argsort(-appeal)[: ITEMS // 2], pairs))
        self.pool = rng.integers(0, ITEMS, (pairs, CANDIDATES))

    def margins(self, xi, every=1):
        return preference(self.parameters, xi, self.winners[::every, None], self.pool[::every]).astype(np.float64).T

    def at(self, xi, every=1):
        """Margins, the least of each pair, and the places of the negatives that have it, as the kernels write them."""
        x = self.margins(xi, every).astype(np.float32)
        return x, x.min(axis=0), x.argmin(axis=0)

    def given(self, every=1):
        return self.side, self.side, self.winners, self.pool, every

    def wedges(self, chosen, every=1):
        winners, pool = self.winners[::every], self.pool[::every]
        return self.parameters.wedge(winners, pool[np.arange(len(pool)), chosen])[:, :K].astype(np.float64)

    def height(self, xi, every=1):
        return WEIGHT * np.log(sigmoid(self.margins(xi, every).min(axis=0))).sum() - 0.1 * (xi**2).sum()


@pytest.fixture(params=[True, False], ids=["rivals", "scores"])
def game(request):
    return Game(request.param)


@pytest.mark.parametrize("every", [1, 3])
def test_margins_of_a_pool_are_preferences(game, every):
    x, _, _ = game.at(game.xi, every)
    found = np.full_like(x, np.nan)
    descent.pool_margins(game.xi, *game.given(every), True, np.empty((0, 0), np.bool_), found)
    np.testing.assert_allclose(found, x, rtol=1e-4, atol=1e-4)


def test_margins_that_are_not_near_are_nothing_and_bias_is_left_out_on_request(game):
    near = np.random.default_rng(0).random((CANDIDATES, PAIRS)) < 0.5
    found = np.full(near.shape, np.nan, np.float32)
    descent.pool_margins(game.xi, *game.given(), False, near, found)
    moved = game.margins(game.xi) - game.margins(np.zeros(K))
    np.testing.assert_allclose(found, np.where(near, moved, 0), rtol=1e-4, atol=1e-4)


def test_the_least_margin_is_found_and_the_first_of_equal_ones():
    x = np.array([[2, 5, 1], [1, 5, 3], [1, 4, 2]], np.float32)
    least, chosen = np.empty(3, np.float32), np.empty(3, np.int64)
    descent.find_least(x, least, chosen)
    assert least.tolist() == [1, 4, 1] and chosen.tolist() == [1, 2, 0]


def test_near_is_within_a_tenth_of_the_usual_margin():
    x = np.array([[0.0, -3.0], [0.29, 1.0], [0.33, -2.72]], np.float32)  # the mean size is 7.34 / 6
    near = np.empty(x.shape, np.bool_)
    descent.mark_near(x, x.min(axis=0), near)
    within = 0.1 + 0.1 * np.abs(x).mean()
    np.testing.assert_array_equal(near, x <= x.min(axis=0) + within)
    assert near.tolist() == [[True, True], [False, False], [False, False]]
    x[1, 0], x[2, 1] = 0.2, -2.8
    descent.mark_near(x, x.min(axis=0), near)
    assert near.tolist() == [[True, True], [True, False], [False, True]]


@pytest.mark.parametrize("every", [1, 2])
def test_slope_and_curvature_are_those_of_the_likelihood(game, every):
    _, least, chosen = game.at(game.xi, every)
    design, missing = game.wedges(chosen, every), 1 - sigmoid(least.astype(np.float64))
    slope = np.full(K, np.nan)
    descent.hardest_slope(least, *game.given(every), WEIGHT, chosen, slope)
    np.testing.assert_allclose(slope, WEIGHT * missing @ design, rtol=1e-4, atol=1e-5)
    for step in (1, 5):
        some = slice(None, None, step)
        weight = WEIGHT * len(least) / len(least[some]) * (missing * (1 - missing))[some]
        expected = design[some].T @ (weight[:, None] * design[some])
        found = descent.hardest_curvature(K, least, *game.given(every), WEIGHT, chosen, step)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_slope_along_a_direction_is_that_of_the_likelihood():
    x, along = np.random.default_rng(3).standard_normal((2, CANDIDATES, PAIRS)).astype(np.float32)
    least, rising = np.empty((2, PAIRS), np.float32)

    def height(length):
        return WEIGHT * np.log(sigmoid((x + length * along.astype(np.float64)).min(axis=0))).sum()

    for length in (0.0, 0.3, 2.0):
        found = descent.slope_along(x, along, length, WEIGHT, least, rising)
        assert found == pytest.approx((height(length + 1e-6) - height(length - 1e-6)) / 2e-6, rel=1e-3)
        np.testing.assert_allclose(least, (x + np.float32(length) * along).min(axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bending", [0.01, 0.4, 0.9, 2.0, 20.0, 500.0])
@pytest.mark.parametrize("bend", [0.0, 1.0])
def test_a_direction_is_followed_to_where_it_is_flat(bend, bending):
    x, along = np.zeros((1, 8), np.float32), np.ones((1, 8), np.float32)
    least, rising = np.empty((2, 8), np.float32)

    def slope(length):
        return 8 * (1 - sigmoid(length)) - bend - length * bending

    first = slope(0.0)
    found = descent.where_flat(x, along, 1.0, first, (bend, bending), least, rising)
    if slope(4.0) > 0.2 * first:
        assert found == 4
    else:
        assert abs(slope(found)) <= 0.2 * first and 0 < found <= 4
    if abs(slope(1.0)) <= 0.2 * first:
        assert found == 1  # a whole step is the first to be tried


def climbed(game, turns, every=2, enough=1e-9):
    """The vector after at most some steps, how many there were, and the margins as the search left them."""
    vector, count = np.zeros(K), len(game.winners[::every])
    x, least = np.empty((CANDIDATES, count), np.float32), np.empty(count, np.float32)
    chosen, limits = np.empty(count, np.int64), (turns, 2, 50, enough)
    steps = descent.climb(vector, *game.given(every), WEIGHT, np.full(K, 0.1), limits, x, least, chosen)
    return vector, steps, (x, least, chosen)


def test_a_few_steps_lead_near_the_top(game):
    game = Game(game.parameters.rival_factors is not None, 1, 400, 0.3)
    heights = np.array([game.height(climbed(game, turns)[0], 2) for turns in (0, 1, 4, 8, 40)])
    left = (heights.max() - heights) / (heights.max() - heights[0])
    assert (left <= [1, 0.2, 5e-3, 3e-4, 0]).all()
    assert climbed(game, 40, enough=0.1)[1] == 1  # relative to a height of about 60
    assert climbed(game, 40, enough=10.0)[1] == 0


def test_a_search_leaves_the_margins_of_its_vector(game):
    vector, _, found = climbed(game, 5)
    for left, expected in zip(found, game.at(vector, 2), strict=True):
        np.testing.assert_allclose(left, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize(("pairs", "factors"), [(1, 1), (96, 2), (97, 5), (300, 8), (95, 11)])
def test_sums_over_pairs_are_those_of_numpy(pairs, factors, precision):
    rng = np.random.default_rng(pairs)
    design, vector = rng.standard_normal((pairs, factors)).astype(precision), rng.standard_normal(factors)
    offset, weight = rng.standard_normal(pairs), rng.random(pairs)
    x = design.astype(np.float64) @ vector + offset
    given, close = (design, offset, weight, vector.astype(precision)), {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(descent.weighted_gram(design, weight), design.T @ (weight[:, None] * design), **close)
    slope, bends = np.full(factors, np.nan), np.full(pairs, np.nan)
    descent.logistic_slope(*given, slope)
    np.testing.assert_allclose(slope, (weight * (1 - sigmoid(x))) @ design, **close)
    descent.logistic_bends(*given, bends)
    np.testing.assert_allclose(bends, weight * sigmoid(x) * (1 - sigmoid(x)), **close)
    assert descent.logistic_height(*given) == pytest.approx(weight @ np.log(sigmoid(x)), rel=1e-4)


def test_probabilities_are_exact_as_far_as_they_matter():
    x = np.linspace(-39, 39, 157)
    bends = np.empty(x.size)
    descent.logistic_bends(x[:, None], np.zeros(x.size), np.ones(x.size), np.ones(1), bends)
    np.testing.assert_allclose(bends, 1 / (np.exp(x) + 2 + np.exp(-x)), rtol=1e-12, atol=1e-15)
