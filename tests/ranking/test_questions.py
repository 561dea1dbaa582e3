"""What to ask next, and what contradictory answers say."""

from dataclasses import replace

import numpy as np
import pytest

from sadrec.ranking import Parameters
from sadrec.ranking.belief import Visitor, information
from sadrec.ranking.fold_in import fold_in_comparisons
from sadrec.ranking.pairs import preference, sigmoid
from sadrec.ranking.questions import contradictions


def entropy(p):
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))


def test_information_is_what_draws_say():
    rng = np.random.default_rng(0)
    for mean, variance in ((0.0, 1.0), (1.5, 4.0), (-3.0, 0.5)):
        p = sigmoid(mean + np.sqrt(variance) * rng.standard_normal(200_000))
        bits, chance = information(mean, variance)
        assert chance == pytest.approx(p.mean(), abs=0.003)
        assert bits == pytest.approx(entropy(p.mean()) - entropy(p).mean(), abs=0.003)


def test_indifference_that_is_known_tells_nothing():
    bits, _ = information([0.0, 0.0], [0.0, 3.0])
    assert bits[0] == 0 < bits[1]


@pytest.fixture
def game():
    """Rock, paper and scissors for those whose vector is positive, and a fourth item that one factor alone ranks."""
    eta = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], float)
    tau = np.array([[0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0]], float)
    return Parameters(np.ones((1, 4)), eta, tau)


def judged(model, winners, losers):
    """What is found when the answers are all that is known of the person."""
    known = fold_in_comparisons(model, winners, losers)
    person = replace(model, user_factors=known.vector[None])
    return contradictions(Visitor(person, known.covariance), winners, losers), known


def test_a_cycle_that_was_said_often_is_believed(game):
    winners, losers = np.tile([0, 2, 1], 10), np.tile([2, 1, 0], 10)
    (found,), known = judged(game, winners, losers)
    assert found.path.tolist() == [0, 2, 1] and found.verdict == "cycle" and found.probability > 0.9
    draws = np.random.default_rng(1).multivariate_normal(known.vector, known.covariance, 4000)
    holds = [(preference(game, xi, [0, 2, 1], [2, 1, 0]) > 0).all() for xi in draws]
    assert found.probability == pytest.approx(np.mean(holds), abs=0.03)


def test_where_scores_rule_a_cycle_is_noise():
    scores = Parameters(np.ones((1, 1)), np.array([[3.0], [2.0], [1.0]]))
    winners, losers = np.array([0, 1, 0, 0, 1, 2]), np.array([1, 2, 1, 1, 2, 0])
    (found,), _ = judged(scores, winners, losers)
    assert found.verdict == "noise" and found.probability == 0 and found.ask_again == (2, 0)


def test_a_question_answered_both_ways_is_noise(game):
    winners, losers = np.array([0, 1, 0]), np.array([1, 0, 1])
    (found,), _ = judged(game, winners, losers)
    assert found.path.tolist() == [0, 1] and found.verdict == "noise"


def test_answers_that_an_order_fits_do_not_contradict_each_other(game):
    assert judged(game, [0, 1], [1, 3])[0] == []
