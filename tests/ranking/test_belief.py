"""The distribution of margins, against draws of all that is not known."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest

from sadrec.ranking import Parameters, preference
from sadrec.ranking.belief import Gaussian, Point, Visitor
from sadrec.ranking.pairs import probability

USERS, ITEMS, K = 3, 5, 2
LEFT, RIGHT = np.triu_indices(ITEMS, 1)


def covariances(rng, count, size, first):
    roots = 0.3 * rng.standard_normal((count, size, size))
    roots[:, first] = 0.0  # an entry that is always 1
    return (roots @ roots.transpose(0, 2, 1)).astype(np.float32)


@pytest.fixture
def parameters():
    rng = np.random.default_rng(1)
    users, items, tau = (rng.standard_normal((n, K)).astype(np.float32) for n in (USERS, ITEMS, ITEMS))
    return Parameters(users, items, np.abs(tau), rng.standard_normal(ITEMS).astype(np.float32))


@pytest.fixture
def belief(parameters):
    rng = np.random.default_rng(2)
    return Gaussian(
        parameters,
        covariances(rng, USERS, 1 + K, 0),
        covariances(rng, ITEMS, 2 + 2 * K, 1 + K),
        rng.uniform(0.5, 2, (4, K)),
        pairings=np.array([1, 8]),  # of items 0 and 1, and of items 1 and 3
        pairing_mean=np.array([3, -4], np.float32),
        pairing_variance=np.array([0.25, 0.5], np.float32),
        pairing_scale=0.75,
        own=np.array([5 + 1, 10 + 4]),  # of user 1 and item 1, and of user 2 and item 4
        own_mean=np.array([10, 20], np.float32),
        own_variance=np.array([0.1, 0.2], np.float32),
        own_scale=0.3,
    )


def test_a_point_has_the_margins_of_its_parameters_and_no_part_of_single_pairs(parameters):
    point = Point(parameters)
    assert point.pair_part(0, LEFT, RIGHT) == point.own_scores(0, LEFT) == (0, 0)
    np.testing.assert_array_equal(point.mean(0, LEFT, RIGHT), preference(parameters, 0, LEFT, RIGHT))


def test_own_scores_of_a_group_are_those_of_the_mean_of_its_users(belief):
    group = belief.of_group(np.array([1, 2]))
    np.testing.assert_allclose(group.own_mean, [0, 10 / 2, 0, 0, 20 / 2])
    unknown = 0.3  # of a user who has no score of the item
    one_known = (0.1 + unknown) / 4, (0.2 + unknown) / 4
    np.testing.assert_allclose(group.own_variance, [0.15, one_known[0], 0.15, 0.15, one_known[1]], rtol=1e-6)


@pytest.mark.parametrize("user", range(USERS))
def test_mean_and_variance_are_those_of_draws(belief, user):
    mean, variance = belief.distribution(user, LEFT, RIGHT)
    drawn = belief.draws(user, LEFT, RIGHT)
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(drawn))).all()
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.25)


def test_draws_of_margins_that_share_an_item_go_together(parameters, belief):
    alone = replace(belief, pairing_scale=0.0, pairing_variance=np.zeros(2, np.float32), own_scale=0.0)
    drawn = alone.draws(0, np.array([2, 4, 2]), np.array([4, 2, 2]))
    np.testing.assert_allclose(drawn[:, 0], -drawn[:, 1])
    np.testing.assert_allclose(drawn[:, 2], 0.0, atol=1e-12)


def test_what_pairs_and_users_have_beside_the_factors(parameters, belief):
    mean, variance = belief.pair_part([0, 0, 1, 1, 2, 0], [0, 3, 1, 1, 4, 2], [1, 1, 0, 2, 0, 0])
    np.testing.assert_allclose(mean, [3, 4, -3 + 10, 10, 20, 0])
    np.testing.assert_allclose(variance, [0.25 + 0.6, 0.5 + 0.6, 0.25 + 0.4, 0.75 + 0.4, 0.75 + 0.5, 0.75 + 0.6])


def test_an_item_is_certainly_not_preferred_to_itself(parameters, belief):
    mean, variance = belief.distribution(1, [1, 2], [1, 2])
    assert not mean.any() and not variance.any()
    assert belief.probability(1, 1, 1) == 0.5


def test_exchanging_the_items_changes_the_sign_alone(parameters, belief):
    (mean, variance), (back, same) = (belief.distribution([[0], [1]], *p) for p in ((LEFT, RIGHT), (RIGHT, LEFT)))
    np.testing.assert_array_equal(mean, -back)
    np.testing.assert_allclose(variance, same)


def test_without_rival_factors_they_are_one(parameters, belief):
    one, none = (replace(parameters, rival_factors=tau) for tau in (np.ones((ITEMS, K), np.float32), None))
    for first, second in zip(
        *(replace(belief, parameters=p).distribution(0, LEFT, RIGHT) for p in (one, none)), strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_what_is_kept_of_the_items_is_neither_taken_for_others_nor_pickled(parameters, belief):
    doubled = replace(parameters, item_factors=2 * parameters.item_factors)
    for one in (belief, pickle.loads(pickle.dumps(belief))):
        means = [replace(one, parameters=p).distribution(0, 2, 3)[0] for p in (parameters, doubled, parameters)]
        np.testing.assert_allclose(
            means, [preference(p, 0, 2, 3) for p in (parameters, doubled, parameters)], rtol=1e-5
        )
        assert one.distribution(0, 2, 3)[0] == means[0] and one.average is not None and len(one.item_vectors)
        assert set(one.__getstate__()) == {field.name for field in fields(one)}


@pytest.mark.parametrize(("place", "what", "size"), [(0, "user", USERS), (1, "item", ITEMS), (2, "rival", ITEMS)])
def test_positions_that_do_not_exist_are_refused(belief, place, what, size):
    for wrong in (-1, size):
        triple = [[0], [1], [2]]
        triple[place] = [wrong]
        with pytest.raises(IndexError, match=f"positions of a {what} must be from 0 to {size - 1}"):
            belief.distribution(*triple)
        triple[place] = [size - 1]
        assert np.isfinite(belief.distribution(*triple)).all()


def test_parameters_without_a_bias_are_refused(parameters, belief):
    with pytest.raises(ValueError, match="item bias"):
        replace(belief, parameters=replace(parameters, item_bias=None)).distribution(0, 1, 2)


def test_new_users_vary_as_all_users_do(parameters, belief):
    wider = np.vstack([parameters.user_factors, np.zeros((2, K), np.float32)])
    enlarged = belief.with_users(replace(parameters, user_factors=wider))
    assert len(enlarged.user_covariance) == USERS + 2
    np.testing.assert_allclose(
        enlarged.user_covariance[USERS:], 2 * [np.diag([0, *belief.population[1] ** 2])], rtol=1e-6
    )
    np.testing.assert_array_equal(enlarged.user_covariance[:USERS], belief.user_covariance)


def test_new_items_vary_as_all_items_do_and_known_pairs_stay_known(parameters, belief):
    wider = replace(
        parameters,
        item_factors=np.vstack([parameters.item_factors, np.ones((2, K), np.float32)]),
        rival_factors=np.vstack([parameters.rival_factors, np.ones((2, K), np.float32)]),
        item_bias=np.append(parameters.item_bias, np.zeros(2, np.float32)),
    )
    enlarged = belief.with_items(wider, 0.7)
    spread = [0.7, *belief.population[2] ** 2, 0, *belief.population[3] ** 2]
    np.testing.assert_allclose(enlarged.item_covariance[ITEMS:], 2 * [np.diag(spread)], rtol=1e-6)
    before, after = (one.distribution([[1], [2]], LEFT, RIGHT) for one in (belief, enlarged))
    np.testing.assert_allclose(after, before)


def test_a_visitor_has_a_covariance_and_no_scores_of_their_own(parameters, belief):
    covariance = np.diag([0.5, 0.25])
    visitor = belief.of_user(parameters.user_factors[0], covariance)
    np.testing.assert_array_equal(visitor.user_covariance, [np.diag([0, 0.5, 0.25])])
    assert not visitor.own.size and not visitor.own_mean.size and not visitor.own_variance.size
    assert visitor._item_side is belief._item_side


def test_the_uncertainty_of_a_visitor_alone_is_that_of_its_draws(parameters):
    visitor = Visitor(parameters, np.array([[0.5, 0.2], [0.2, 0.4]]))
    mean, variance = visitor.distribution(2, LEFT, RIGHT)
    np.testing.assert_array_equal(mean, preference(parameters, 2, LEFT, RIGHT))
    drawn = visitor.draws(2, LEFT, RIGHT)
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(drawn))).all()
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.2)
    assert not np.any(visitor.pair_part(2, LEFT, RIGHT))


def test_probabilities_average_over_what_is_not_known(parameters, belief):
    drawn = belief.draws(0, LEFT, RIGHT)
    np.testing.assert_allclose(belief.probability(0, LEFT, RIGHT), (1 / (1 + np.exp(-drawn))).mean(axis=0), atol=0.05)


def test_preferences_hold_together_in_a_share_of_the_draws(parameters):
    visitor = Visitor(parameters, np.eye(K))
    there, back, both = (visitor.together(0, *map(np.array, p)) for p in (([0], [1]), ([1], [0]), ([0, 1], [1, 0])))
    assert 0 < there < 1 and there + back == 1 and both == 0


def test_margins_tournaments_and_scores_are_means(belief):
    every = np.arange(ITEMS)
    for user in range(USERS):
        x = belief.mean(user, every[:, None], every)
        np.testing.assert_allclose(belief.margins(user, None, None), x, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(belief.margins(user, [3, 0], [1, 4, 2]), x[np.ix_([3, 0], [1, 4, 2])], rtol=1e-5)
        game = belief.tournament(user, np.array([3, 1, 4]), ["c", "a", "b"])
        np.testing.assert_allclose(game.margins, x[np.ix_([3, 1, 4], [3, 1, 4])], rtol=1e-5)
        assert list(game.items) == ["c", "a", "b"]
        np.testing.assert_allclose(belief.scores(user), [x.mean(axis=1)], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(belief.scores([2, 0])[0], belief.scores(2)[0], rtol=1e-6)
    alone = replace(belief, own=belief.own[:0])
    assert alone.by_product and not belief.by_product
    means = alone.mean(1, every[:, None], every).mean(axis=1)
    np.testing.assert_allclose(alone.scores([1]), [means], rtol=1e-4, atol=1e-5)


def test_the_average_user_of_a_belief_has_no_covariance_and_stays_the_average(belief, parameters):
    average = belief.average
    mean = parameters.user_factors.mean(axis=0)
    np.testing.assert_allclose(average.parameters.user_factors, [mean], rtol=1e-6)
    np.testing.assert_allclose(average.parameters.user_mean, mean, rtol=1e-6)
    assert not average.user_covariance.any() and not average.user_covariance_of(0).any()
    visitor = belief.of_user(mean, np.eye(K))
    np.testing.assert_array_equal(visitor.user_covariance_of(0), np.eye(K))


def test_a_point_answers_with_its_means(parameters):
    point = Point(parameters)
    np.testing.assert_array_equal(point.log_odds(1, LEFT, RIGHT), preference(parameters, 1, LEFT, RIGHT))
    np.testing.assert_array_equal(point.probability(1, LEFT, RIGHT), probability(parameters, 1, LEFT, RIGHT))
    assert not point.has_variance and point.user_covariance_of(0) is None
    with pytest.raises(ValueError, match="this fit has no uncertainty"):
        point.distribution(0, 1, 2)
    visitor = point.of_user(parameters.user_factors[2], np.eye(K))
    assert isinstance(point.of_user(parameters.user_factors[2]), Point) and isinstance(visitor, Visitor)
    np.testing.assert_array_equal(visitor.user_covariance_of(0), np.eye(K))
    np.testing.assert_allclose(visitor.mean(0, LEFT, RIGHT), point.mean(2, LEFT, RIGHT))
