"""Weighing a fit of comparisons against plain scores and a coin."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sadrec._moments import pairing_keys
from sadrec.training.checkpoint import Checkpoints
from sadrec.training.given import Pairs
from sadrec.training.run import run_sweeps
from sadrec.training.stacking import MOST, RIDGES, Stack, Told, Weights, score_path, weights_of


def games(count=600, items=30, users=1, spread=1.0, seed=0):
    """Comparisons of a world of scores."""
    rng = np.random.default_rng(seed)
    b = spread * rng.standard_normal(items)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    wins = rng.random(count) < 1 / (1 + np.exp(b[second] - b[first]))
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    user = rng.integers(users, size=count)
    return Pairs(user.astype(np.int32), winner.astype(np.int32), loser.astype(np.int32))


def told(truth, learner, scores, games_each=1, new=False, seed=0):
    """What a learner and scores say of winners whose true margins are given; a pairing has so many games."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(len(truth)) < 1 / (1 + np.exp(-truth)), 1.0, -1.0)
    ones, pairing = np.ones(len(truth)), np.arange(len(truth)) // games_each
    by_ridge = np.tile(sign * scores, (len(RIDGES), 1))
    counts = np.where(new, 0.0, 1.0) * ones
    return Told(sign * learner, 0 * ones, by_ridge, counts, ones, np.full(len(truth), new), pairing)


def test_what_predicts_held_out_comparisons_gets_the_weight():
    rng = np.random.default_rng(1)
    truth, noise = rng.normal(size=4000), rng.normal(size=4000)
    assert weights_of(told(truth, truth, noise))[0] == pytest.approx((1, 0, 1), abs=0.1)
    assert weights_of(told(truth, noise, truth))[0] == pytest.approx((0, 1, 1), abs=0.1)
    assert weights_of(told(truth, 2 * truth, noise))[0] == pytest.approx((0.5, 0, 1), abs=0.1)
    assert weights_of(told(0 * truth, truth, noise))[0] == pytest.approx((0, 0, 1), abs=0.1)


def test_few_comparisons_leave_the_learner_as_it_is():
    rng = np.random.default_rng(1)
    truth, noise = rng.normal(size=10), rng.normal(size=10)
    weights, _ = weights_of(told(truth, noise, truth))
    assert weights.learner > 0.8


def both(known, fresh):
    """Known pairings and new ones, held out together."""
    return Told(*(np.concatenate(parts, axis=-1) for parts in zip(known, fresh, strict=True)))


def test_what_does_not_carry_over_to_new_pairings_is_left_out_there_alone():
    rng = np.random.default_rng(2)
    known, says = rng.normal(size=3000), rng.normal(size=3000)
    for truth, expected in ((says, 1.0), (0.5 * says, 0.5), (0 * says, 0.0)):
        weights, _ = weights_of(both(told(known, known, 0 * known), told(truth, says, 0 * says, new=True)))
        assert weights == pytest.approx((1, 0, expected), abs=0.12)


def test_many_games_of_one_pairing_are_little_evidence_that_margins_carry_over():
    rng = np.random.default_rng(3)
    known, says = rng.normal(size=3000), np.repeat(rng.normal(size=80), 40)
    truth = says * np.repeat(rng.normal(0.5, 1.5, size=80), 40)  # some carry over, some do not
    carried = [
        weights_of(both(told(known, known, 0 * known), told(truth, says, 0 * says, each, new=True)))[0].carry
        for each in (1, 40)
    ]
    assert carried[1] < carried[0] - 0.05


def test_few_new_pairings_do_not_tell_what_carries_over():
    rng = np.random.default_rng(2)
    known, says = rng.normal(size=3000), np.repeat(rng.normal(size=30), 10)
    weights, _ = weights_of(both(told(known, known, 0 * known), told(0 * says, says, 0 * says, 10, new=True)))
    assert weights.carry == 1


@pytest.mark.parametrize("users", [1, 40])
def test_folds_hold_out_single_comparisons_and_whole_pairings(users):
    pairs = games(2000, users=users)
    stack = Stack(pairs, users, 30, 2, seed=0)
    assert len(stack.folds) == 5
    for fold in stack.folds:
        assert len(fold.train) + len(fold.held_out) == len(pairs)
        assert 0.1 < len(fold.held_out) / len(pairs) < 0.3
        seen = np.isin(*(pairing_keys(side.winner, side.loser, 30) for side in (fold.held_out, fold.train)))
        np.testing.assert_array_equal(fold.new, ~seen)
        assert 0.2 < fold.new.mean() < 0.8


def test_a_fold_of_much_data_leaves_some_users_out():
    pairs = games(MOST + 5000, users=200)
    (fold,) = Stack(pairs, 200, 30, 2, seed=0).folds
    assert 0.9 * MOST < len(fold.train) + len(fold.held_out) <= MOST
    assert len(np.unique(fold.train.user)) == len(fold.learners[0].beliefs.user) < 200


def test_a_statement_is_taken_as_it_stands():
    stack = Stack(games(99), 1, 30, 2, seed=0)
    assert stack.weigh(lambda learner, pairs: None) == (stack.learner, Weights(), None)


def leagues(seasons, teams, seed=0):
    """Comparisons of seasons, in each of which every team has a new score."""
    rng = np.random.default_rng(seed)
    b = 1.5 * rng.standard_normal((seasons, teams))
    count = seasons * teams * 8
    user, first = np.arange(count) % seasons, rng.integers(teams, size=count)
    second = (first + rng.integers(1, teams, size=count)) % teams
    wins = rng.random(count) < 1 / (1 + np.exp(b[user, second] - b[user, first]))
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    return Pairs(*(side.astype(np.int32) for side in (user, winner, loser)))


def by_factors(better):
    """What a learner is asked: the truth is 1, and one that has factors, or has none, says so more surely."""

    def predict(learner, pairs):
        has_factors = len(learner.prior.user_mean) > 1
        return np.full(len(pairs), 3.0 if has_factors == better else 0.1), np.zeros(len(pairs))

    return predict


def test_the_learner_that_predicts_what_is_held_out_is_taken():
    stack = Stack(leagues(10, 12), 10, 12, 2, seed=0)
    for better in (True, False):
        learner, weights, _ = stack.weigh(by_factors(better))
        assert (len(learner.prior.user_mean) > 1) == better
        assert weights.learner == 1


def test_learners_that_are_equally_good_leave_the_one_with_factors():
    stack = Stack(leagues(10, 12), 10, 12, 2, seed=0)
    learner, _, _ = stack.weigh(lambda learner, pairs: (np.ones(len(pairs)), np.zeros(len(pairs))))
    assert learner is stack.learner


@pytest.mark.parametrize(("users", "count"), [(1, 600), (200, MOST + 5000)])
def test_one_user_and_much_data_have_no_learner_without_factors(users, count):
    assert all(len(fold.learners) == 1 for fold in Stack(games(count, users=users), users, 30, 2, seed=0).folds)


def test_scores_are_those_of_choix():
    choix = pytest.importorskip("choix")
    pairs = games()
    rows = np.column_stack((pairs.winner, pairs.loser)).tolist()
    for ridge, scores in zip(RIDGES, score_path(pairs, 30), strict=True):
        np.testing.assert_allclose(scores, choix.opt_pairwise(30, rows, alpha=ridge), atol=2e-3)


def test_resumed_with_its_folds_it_ends_with_the_same_bits(tmp_path):
    pairs = games(500, users=6)

    def run(sweeps, folder):
        stack, history = Stack(pairs, 6, 30, 2, 0), []
        checkpoints = None if folder is None else Checkpoints(folder, {})
        run_sweeps(stack, sweeps, lambda f: history.append(f) or False, history=history, checkpoints=checkpoints)
        return stack.state()

    _, whole = run(80, None)
    run(35, tmp_path)
    _, resumed = run(80, tmp_path)
    assert whole.keys() == resumed.keys() and any(name.startswith("fold4_") for name in whole)
    for name, array in whole.items():
        assert np.array_equal(array, resumed[name]), name


def test_the_same_bits_whichever_thread_a_learner_has():
    pairs, results = games(500, users=6), []
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as executor:
            stack = Stack(pairs, 6, 30, 2, 0, threads=threads, executor=executor if threads > 1 else None, sweeps=20)
            for _ in range(20):
                stack.advance()
        results.append(stack.state()[1])
    assert all(np.array_equal(array, results[1][name]) for name, array in results[0].items())


def test_a_checkpoint_with_other_folds_is_not_used():
    stack = Stack(games(500), 1, 30, 2, 0)
    values, arrays = stack.state()
    with pytest.raises(ValueError, match="4 learners in folds"):
        stack.restore({**values, "folds": values["folds"][1:]}, arrays)
    with pytest.raises(ValueError, match="sweep 7"):
        stack.restore({**values, "folds": [{**values["folds"][0], "sweep": 7}, *values["folds"][1:]]}, arrays)


@pytest.mark.parametrize("damaged", ["fold4_slope", "item"])
def test_a_refused_checkpoint_has_changed_nothing(damaged):
    pairs = games(500, users=6)
    ahead, stack = (Stack(pairs, 6, 30, 2, 0, sweeps=4) for _ in range(2))
    for _ in range(4):
        ahead.advance()
    values, arrays = ahead.state()
    before = {name: array.copy() for name, array in stack.state()[1].items()}
    with pytest.raises(ValueError, match="is not made of"):
        stack.restore(values, {**arrays, damaged: arrays[damaged].astype(np.float32)})
    assert stack.sweep == 0 and len(stack.rows.offset)  # what only the first sweeps need is there
    after = stack.state()[1]
    assert after.keys() == before.keys() and all(np.array_equal(after[name], before[name]) for name in before)
