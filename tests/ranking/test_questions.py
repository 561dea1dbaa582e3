"""What to ask next, and what contradictory answers say."""

from dataclasses import replace

import numpy as np
import pytest

from sadrec.ranking import Contradiction, Parameters, contradictions, preference, sigmoid
from sadrec.ranking.belief import Visitor, information
from sadrec.ranking.fold_in import fold_in_comparisons
from sadrec.ranking.questions import ask_next


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
    visitor = fold_in_comparisons(model, winners, losers)
    person = replace(model, user_factors=visitor.vector[None])
    return contradictions(Visitor(person, visitor.covariance), winners, losers), visitor


def test_a_cycle_that_was_said_often_is_believed(game):
    winners, losers = np.tile([0, 2, 1], 10), np.tile([2, 1, 0], 10)
    (contradiction,), visitor = judged(game, winners, losers)
    assert (
        contradiction.path.tolist() == [0, 2, 1]
        and contradiction.verdict == "cycle"
        and contradiction.probability > 0.9
    )
    draws = np.random.default_rng(1).multivariate_normal(visitor.vector, visitor.covariance, 4000)
    holds = [(preference(game, xi, [0, 2, 1], [2, 1, 0]) > 0).all() for xi in draws]
    assert contradiction.probability == pytest.approx(np.mean(holds), abs=0.03)


def test_where_scores_rule_a_cycle_is_noise():
    scores = Parameters(np.ones((1, 1)), np.array([[3.0], [2.0], [1.0]]))
    winners, losers = np.array([0, 1, 0, 0, 1, 2]), np.array([1, 2, 1, 1, 2, 0])
    (contradiction,), _ = judged(scores, winners, losers)
    assert contradiction.verdict == "noise" and contradiction.probability == 0 and contradiction.ask_again == (2, 0)


def test_a_question_answered_both_ways_is_noise(game):
    winners, losers = np.array([0, 1, 0]), np.array([1, 0, 1])
    (contradiction,), _ = judged(game, winners, losers)
    assert contradiction.path.tolist() == [0, 1] and contradiction.verdict == "noise"


def test_answers_that_an_order_fits_do_not_contradict_each_other(game):
    assert judged(game, [0, 1], [1, 3])[0] == []


def test_the_questions_that_tell_most_come_first():
    rng = np.random.default_rng(0)
    belief = Visitor(Parameters(np.ones((1, 3)), *rng.standard_normal((2, 7, 3)) ** 2), np.eye(3))
    among = np.array([6, 1, 4, 2])
    items, rivals, bits, chance = ask_next(belief, 0, among, 3)
    one, other = (among[side] for side in np.triu_indices(4, 1))
    every, probability = belief.information(0, one, other)
    best = np.argsort(-every)[:3]
    assert items.tolist() == one[best].tolist() and rivals.tolist() == other[best].tolist()
    np.testing.assert_array_equal(bits, every[best])
    np.testing.assert_array_equal(chance, probability[best])


@pytest.mark.parametrize("size", [0, 1, 2001])
def test_questions_are_chosen_among_two_items_at_least_and_not_too_many(size):
    belief = Visitor(Parameters(np.ones((1, 1)), np.ones((2001, 1))), np.eye(1))
    with pytest.raises(ValueError, match=f"among 2 to 2000 items, not {size}"):
        ask_next(belief, 0, np.arange(size), 1)
    assert len(ask_next(belief, 0, np.arange(2), 5)[0]) == 1


def test_from_one_half_on_a_cycle_is_no_noise_and_the_least_probable_step_is_asked_again():
    steps = np.array([0.9, 0.8, 0.7])
    half, less = (Contradiction(np.array(["a", "b", "c"]), steps, p) for p in (0.5, 0.49))
    assert (half.verdict, less.verdict) == ("cycle", "noise") and half.ask_again == ("c", "a")
    assert repr(half) == "a > b > c > a: a cycle (50 %); to be sure, ask again about c and a"
    assert repr(less).startswith("a > b > c > a: noise, probably (49 %)")


def test_contradictions_of_one_person_come_with_the_most_probable_first(game):
    winners, losers = np.array([3, 3, 0, *[0, 2, 1] * 10]), np.array([0, 0, 3, *[2, 1, 0] * 10])
    listed, _ = judged(game, winners, losers)
    assert [one.path.tolist() for one in listed] == [[0, 2, 1], [3, 0]] and listed[1].probability == 0


def test_a_question_answered_both_ways_shows_first_what_was_said_more_often(game):
    for answers, path in ((([0, 1, 1], [1, 0, 0]), [1, 0]), (([0, 1], [1, 0]), [0, 1])):
        (contradiction,), _ = judged(game, *map(np.array, answers))
        assert contradiction.path.tolist() == path
