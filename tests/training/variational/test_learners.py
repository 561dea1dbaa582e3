"""Two learners of comparisons, and which of them is taken."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sadrec.models.variational import believed
from sadrec.training.checkpoint import LocalCheckpoints
from sadrec.training.loop import run as run_step
from sadrec.training.sgd.given import Pairs
from sadrec.training.variational.counts import count
from sadrec.training.variational.learners import Learners, Sweeps, left_out_losses
from sadrec.training.variational.solver import SWEEPS, Variational


def pairs_of(user, first, second, x, rng):
    wins = rng.random(len(x)) < 1 / (1 + np.exp(-x))
    sides = user, np.where(wins, first, second), np.where(wins, second, first)
    return Pairs(*(side.astype(np.int32) for side in sides))


def games(count=600, items=30, users=1, seed=0):
    """Comparisons of a world of scores."""
    rng = np.random.default_rng(seed)
    b = rng.standard_normal(items)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    return pairs_of(rng.integers(users, size=count), first, second, b[first] - b[second], rng)


def leagues(seasons=12, teams=12, seed=0):
    """Comparisons of seasons, in each of which every team has a new score."""
    rng = np.random.default_rng(seed)
    b = 1.5 * rng.standard_normal((seasons, teams))
    size = seasons * teams * 12
    user, first = np.arange(size) % seasons, rng.integers(teams, size=size)
    second = (first + rng.integers(1, teams, size=size)) % teams
    return pairs_of(user, first, second, b[user, first] - b[user, second], rng)


def cyclic(items=40, size=4000, seed=0):
    """Comparisons of one judge that a skew factor explains."""
    rng = np.random.default_rng(seed)
    a, b = 1.5 * rng.standard_normal((2, items))
    first = rng.integers(items, size=size)
    second = (first + rng.integers(1, items, size=size)) % items
    return pairs_of(np.zeros(size), first, second, a[first] * b[second] - a[second] * b[first], rng)


def swept(learners):
    for _ in range(SWEEPS):
        learners.make_sweep()
    return learners


@pytest.mark.parametrize(
    ("pairs", "users", "items", "factors"),
    [(leagues(), 12, 12, False), (cyclic(), 1, 40, True), (games(), 1, 30, False)],
)
def test_the_learner_is_taken_that_predicts_what_is_left_out(pairs, users, items, factors):
    learners = swept(Learners(pairs, users, items, 4, seed=0))
    chosen, losses = learners.chosen()
    assert (chosen is learners.learners[0]) == factors
    assert len(losses) == 2


@pytest.mark.parametrize(("make", "users", "items"), [(games, 1, 30), (leagues, 12, 12), (cyclic, 1, 40)])
def test_what_is_predicted_without_a_comparison_is_what_a_fit_without_it_predicts(make, users, items):
    """The closed form against folds: each of ten parts predicted by a fit to the others."""
    pairs = make()
    learner = Variational(count(pairs, items), users, items, 0, 0)
    for _ in range(SWEEPS):
        learner.make_sweep()
    rng, losses = np.random.default_rng(0), []
    part = rng.permutation(len(pairs)) % 10
    for fold in range(10):
        sides = [side[part != fold] for side in pairs.arrays[:3]]
        other = Variational(count(Pairs(*sides), items), users, items, 0, 0)
        for _ in range(SWEEPS):
            other.make_sweep()
        belief = believed(other)
        held_out = [side[part == fold] for side in pairs.arrays[:3]]
        losses.append(np.logaddexp(0, -belief.log_odds(*held_out)))
    # A fit to nine tenths of the data is a little worse than one to all but one comparison.
    assert left_out_losses(learner).sum() / learner.total == pytest.approx(np.concatenate(losses).mean(), abs=0.015)


def test_bpr_of_one_judge_has_one_learner():
    assert len(Learners(games(), 1, 30, 4, seed=0, rivals=False).learners) == 1


def test_resumed_they_end_with_the_same_bits(tmp_path):
    pairs = games(500, users=6)

    def run(sweeps, folder):
        learners, history = Learners(pairs, 6, 30, 2, 0), []
        checkpoints = None if folder is None else LocalCheckpoints(folder, {})
        run_step(Sweeps(learners, sweeps), history=history, checkpoints=checkpoints)
        return learners.state()[1]

    whole = run(SWEEPS, None)
    run(35, tmp_path)
    resumed = run(SWEEPS, tmp_path)
    assert whole.keys() == resumed.keys() and any(name.startswith("1_") for name in whole)
    for name, array in whole.items():
        assert np.array_equal(array, resumed[name]), name


def test_the_same_bits_on_any_number_of_threads():
    pairs, results = games(500, users=6), []
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as executor:
            pool = executor if threads > 1 else None
            learners = Learners(pairs, 6, 30, 2, 0, threads=threads, executor=pool, sweeps=20)
            for _ in range(20):
                learners.make_sweep()
        results.append(learners.state()[1])
    assert all(np.array_equal(array, results[1][name]) for name, array in results[0].items())


def test_a_checkpoint_of_other_learners_is_not_used():
    learners = Learners(games(500), 1, 30, 2, 0)
    values, arrays = learners.state()
    first, second = values["learners"]
    with pytest.raises(ValueError, match="it has 1 learners, and this fit has 2"):
        learners.restore({**values, "learners": [first]}, arrays)
    with pytest.raises(ValueError, match="learner 1 is at sweep 7"):
        learners.restore({**values, "learners": [first, {**second, "sweep": 7}]}, arrays)


@pytest.mark.parametrize("damaged", ["1_slope", "0_item"])
def test_a_refused_checkpoint_has_changed_nothing(damaged):
    pairs = games(500, users=6)
    ahead, learners = (Learners(pairs, 6, 30, 2, 0, sweeps=4) for _ in range(2))
    for _ in range(4):
        ahead.make_sweep()
    values, arrays = ahead.state()
    before = {name: array.copy() for name, array in learners.state()[1].items()}
    with pytest.raises(ValueError, match="is not made of"):
        learners.restore(values, {**arrays, damaged: arrays[damaged].astype(np.float32)})
    after = learners.state()[1]
    assert learners.sweep == 0 and after.keys() == before.keys()
    assert all(np.array_equal(after[name], before[name]) for name in before)
