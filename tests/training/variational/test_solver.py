"""The variational solver: moments, one update at a time, what it does to known truths, threads and checkpoints."""

import signal
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sadrec._core.moments import Beliefs, margin_distribution
from sadrec.models import CheckpointError, checkpoints_in
from sadrec.training.checkpoint import LocalCheckpoints
from sadrec.training.loop import run as run_step
from sadrec.training.sgd.given import Pairs
from sadrec.training.variational import beyond_factors
from sadrec.training.variational.bound import parabola
from sadrec.training.variational.counts import Counts, count
from sadrec.training.variational.learners import Sweeps
from sadrec.training.variational.priors import factor_variance, learnt_variance, variance_of
from sadrec.training.variational.solver import OWN, SWEEPS, Variational
from sadrec.training.variational.updates import update_items, update_users


def solver(pairs, users, items, *rest, **options):
    return Variational(count(pairs, items), users, items, *rest, **options)


def random_beliefs(rng, users, items, k):
    def normal(rows, size):
        mean = rng.normal(size=(rows, size))
        root = 0.3 * rng.normal(size=(rows, size, size))
        covariance = root @ root.transpose(0, 2, 1)
        return mean, covariance, covariance + mean[:, :, None] * mean[:, None, :]

    user, user_covariance, user_moment = normal(users, k)
    item, item_covariance, item_moment = normal(items, 2 * k)
    return Beliefs(user, user_moment, item, item_moment), user_covariance, item_covariance


def test_mean_and_variance_of_a_margin_are_those_of_many_draws():
    rng = np.random.default_rng(0)
    k = 3
    beliefs, user_covariance, item_covariance = random_beliefs(rng, 1, 2, k)
    xi = rng.multivariate_normal(beliefs.user[0], user_covariance[0], 400_000)
    first, second = (rng.multivariate_normal(beliefs.item[i], item_covariance[i], 400_000) for i in (0, 1))
    x = (xi * (first[:, :k] * second[:, k:] - second[:, :k] * first[:, k:])).sum(axis=1)
    mean, variance = np.empty(1), np.empty(1)
    margin_distribution(0, 1, np.array([0]), np.array([0]), np.array([1]), beliefs, mean, variance)
    assert mean[0] == pytest.approx(x.mean(), abs=4 * x.std() / np.sqrt(len(x)))
    assert variance[0] == pytest.approx(x.var(), rel=0.02)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 0.1), (1.5, 1.0), (-2.0, 0.5), (4.0, 3.0)])
def test_a_parabola_has_the_expected_slope_and_curvature(mean, variance):
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    x = mean + np.sqrt(variance) * points
    p = 1 / (1 + np.exp(-x))
    slope, bend = ((weights * values).sum() / weights.sum() for values in (1 - p, p * (1 - p)))
    curvature, linear = parabola(mean, variance, False, 1e-5)
    assert linear - curvature * mean == pytest.approx(slope, abs=0.02)
    assert curvature == pytest.approx(bend, abs=0.02)


def test_a_bound_lies_below_the_curve_and_touches_it():
    x = np.linspace(-8, 8, 401)
    curvature, linear = parabola(1.5, 0.7, True, 1e-5)
    c = np.sqrt(1.5**2 + 0.7)
    constant = -np.logaddexp(0, -c) - linear * c + curvature * c**2 / 2
    gap = -np.logaddexp(0, -x) - (constant + linear * x - curvature * x**2 / 2)
    assert gap.min() > -1e-9
    assert parabola(c, 0.0, True, 1e-5)[0] == pytest.approx(curvature)


def ring(length, times):
    winner = np.repeat(np.arange(length), times).astype(np.int32)
    return Pairs(np.zeros(len(winner), np.int32), winner, ((winner + 1) % length).astype(np.int32))


@pytest.mark.parametrize("length", [3, 5, 9])
@pytest.mark.parametrize("times", [20, 600])
def test_a_ring_stated_often_is_learnt_whatever_the_seed(length, times):
    for seed in range(5):
        learner = fitted(ring(length, times), 1, length + 2, factors=8, seed=seed)
        item = np.arange(length + 1)
        rival = np.append((item[:-1] + 1) % length, length + 1)
        mean, variance = np.empty(length + 1), np.empty(length + 1)
        margin_distribution(0, length + 1, np.zeros_like(item), item, rival, learner.beliefs, mean, variance)
        keys = learner.pairing_keys
        low, high = np.minimum(item, rival)[:-1], np.maximum(item, rival)[:-1]
        own = learner.pairings.mean[np.searchsorted(keys, low * (length + 2) + high)] * np.sign(rival - item)[:-1]
        assert (mean[:-1] + own > 2).all(), f"seed {seed}"
        assert mean[-1] == 0  # two items that were never mentioned


def simulated(seed=0, users=8, items=40, count=4000, factors=2):
    rng = np.random.default_rng(seed)
    xi, eta = 1 + 0.5 * rng.normal(size=(users, factors)), rng.normal(size=(items, factors))
    tau = np.abs(1 + rng.normal(size=(items, factors)))
    u, i, j = rng.integers(0, users, count), rng.integers(0, items, count), rng.integers(0, items, count)
    u, i, j = u[i != j], i[i != j], j[i != j]
    x = (xi[u] * (eta[i] * tau[j] - eta[j] * tau[i])).sum(axis=1)
    won = rng.random(len(x)) < 1 / (1 + np.exp(-x))
    return Pairs(*(side.astype(np.int32) for side in (u, np.where(won, i, j), np.where(won, j, i))))


def test_the_same_bits_on_any_number_of_threads():
    pairs = simulated(items=200)
    results = []
    for threads in (1, 2, 3):
        with ThreadPoolExecutor(threads) as executor:
            learner = solver(pairs, 8, 200, 4, 0, threads=threads, executor=executor if threads > 1 else None)
            for _ in range(35):
                learner.make_sweep()
        results.append(learner.state()[1])
    for other in results[1:]:
        assert all(np.array_equal(results[0][name], other[name]) for name in other)


def test_factors_that_carry_nothing_are_dropped():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=30)
    i, j = rng.integers(0, 30, 5000), rng.integers(0, 30, 5000)
    i, j = i[i != j], j[i != j]
    won = rng.random(len(i)) < 1 / (1 + np.exp(scores[j] - scores[i]))
    pairs = Pairs(
        np.zeros(len(i), np.int32), np.where(won, i, j).astype(np.int32), np.where(won, j, i).astype(np.int32)
    )
    learner = solver(pairs, 1, 30, 8, 0)
    for _ in range(SWEEPS):
        learner.make_sweep()
    assert learner.beliefs.user.shape[1] == 1  # the bias alone: Bradley-Terry
    assert np.corrcoef(learner.beliefs.item[:, 0], scores)[0, 1] > 0.98


def test_one_user_without_rivals_has_a_bias_alone():
    pairs = simulated(users=1)
    learner = solver(pairs, 1, 40, 8, 0, rivals=False)
    assert learner.beliefs.user.shape[1] == 1


def told(moments, directions, sites, own, prior, mutual):
    """Return mean and covariance of a normal distribution, its share, by sums over comparisons."""
    curvature, slope, variance = sites.T
    of_data = np.einsum("t,tpq->pq", curvature, moments)
    linear = np.einsum("t,tp->p", slope, directions) + prior[0] * prior[1]
    explained = np.maximum(np.einsum("tp,pq,tq->t", directions, own, directions), 0)
    share = (curvature / (1 + mutual * curvature * np.maximum(variance - explained, 0))).sum() / curvature.sum()
    return (
        np.linalg.solve(of_data + np.diag(prior[1]), linear),
        np.linalg.inv(share * of_data + np.diag(prior[1])),
        share,
    )


@pytest.mark.parametrize("rivals", [False, True])
@pytest.mark.parametrize(("users", "factors"), [(1, 3), (8, 3), (8, 0)])
def test_an_item_gets_what_its_comparisons_tell(users, factors, rivals):
    learner = solver(simulated(users=users), users, 40, factors, 0, rivals=rivals)
    for _ in range(3):
        learner.make_sweep()
    beliefs, rows, items, k = learner.beliefs, learner.rows, np.flatnonzero(learner._met), len(learner.prior[0])
    learner._pack()
    mean, moment, share = np.empty((len(items), 2 * k)), np.empty((len(items), 2 * k, 2 * k)), np.empty(len(items))
    given = learner._entries, beliefs, learner._packed, learner._centred_prior(), 0.5, 0.0
    update_items(items, mean, moment, share, rows, *given)
    prior = np.repeat([0.0, 1.0], k), np.concatenate((learner.prior.item_precision, learner.prior.rival_precision))
    inside = 0
    for at, i in enumerate(items):
        t = np.flatnonzero((rows.item == i) | (rows.rival == i))
        sign = np.where(rows.item[t] == i, 1.0, -1.0)
        other = np.where(rows.item[t] == i, rows.rival[t], rows.item[t])
        eta, tau = beliefs.item[other, :k], beliefs.item[other, k:]
        user, square, of_other = (
            beliefs.user[rows.user[t]],
            beliefs.user_moment[rows.user[t]],
            beliefs.item_moment[other],
        )
        upper = np.concatenate((of_other[:, k:, k:], -of_other[:, k:, :k]), axis=2)
        lower = np.concatenate((-of_other[:, :k, k:], of_other[:, :k, :k]), axis=2)
        moments = np.tile(square, (1, 2, 2)) * np.concatenate((upper, lower), axis=1)
        sites = rows.sites[t] * np.stack((np.ones(len(t)), sign, np.ones(len(t))), axis=1)
        own = beliefs.item_moment[i] - np.outer(beliefs.item[i], beliefs.item[i])
        directions = np.hstack((user * tau, -user * eta))
        solution, covariance, counted = told(moments, directions, sites, own, prior, 0.5)
        assert share[at] == pytest.approx(counted, rel=1e-6)
        assert moment[at] - np.outer(mean[at], mean[at]) == pytest.approx(covariance, rel=1e-5, abs=1e-6)
        if solution[k:].min() >= 0:  # else the best place with tau >= 0
            inside += 1
            assert mean[at] == pytest.approx(solution, rel=1e-5, abs=1e-6)
    assert inside > 10


def test_a_user_gets_what_their_comparisons_tell():
    learner = solver(simulated(), 8, 40, 3, 0)
    for _ in range(3):
        learner.make_sweep()
    before, rows, prior = [array.copy() for array in learner.beliefs], learner.rows, learner.prior
    learner._pack()
    update_users(0, 8, rows, learner.beliefs, learner._packed, learner._centred_prior(), 0.5)
    for u in range(8):
        t = slice(*rows.start[[u, u + 1]])
        pair = before[2][rows.item[t]], before[2][rows.rival[t]]
        one, other = before[3][rows.item[t]], before[3][rows.rival[t]]
        directions = pair[0][:, :4] * pair[1][:, 4:] - pair[1][:, :4] * pair[0][:, 4:]
        moments = one[:, :4, :4] * other[:, 4:, 4:] + one[:, 4:, 4:] * other[:, :4, :4]
        moments -= one[:, :4, 4:] * other[:, 4:, :4] + one[:, 4:, :4] * other[:, :4, 4:]
        own = before[1][u] - np.outer(before[0][u], before[0][u])
        mean, covariance, _ = told(moments, directions, rows.sites[t], own, prior[:2], 0.5)
        assert learner.beliefs.user[u] == pytest.approx(mean, rel=1e-5, abs=1e-6)
        actual = learner.beliefs.user_moment[u] - np.outer(learner.beliefs.user[u], learner.beliefs.user[u])
        assert actual == pytest.approx(covariance, rel=1e-5, abs=1e-6)


def test_priors_are_learnt_from_the_data():
    learner = solver(simulated(count=20_000), 8, 40, 4, 0)
    for _ in range(SWEEPS):
        learner.make_sweep()
    alive = 1 / np.sqrt(learner.prior.rival_precision[1:])
    assert 0.3 < alive.max() < 2.5


def played(scores, rng, first, second, users=None, user_scores=None):
    """Comparisons of (first, second), won by the scores of the items and, beside them, of users and items."""
    x = scores[first] - scores[second]
    users = np.zeros(len(first), np.int32) if users is None else users
    if user_scores is not None:
        x = x + user_scores[users, first] - user_scores[users, second]
    won = rng.random(len(x)) < 1 / (1 + np.exp(-x))
    sides = users, np.where(won, first, second), np.where(won, second, first)
    return Pairs(*(side.astype(np.int32) for side in sides))


def fitted(pairs, users, items, factors=2, seed=0):
    learner = solver(pairs, users, items, factors, seed)
    for _ in range(SWEEPS):
        learner.make_sweep()
    return learner


def test_items_that_met_few_others_shrink_to_what_such_items_score():
    rng = np.random.default_rng(2)
    items = 400
    plays = np.exp(rng.normal(size=items))  # who plays more is better
    scores = np.log(plays) + 0.3 * rng.normal(size=items)
    first, second = (rng.choice(items, 3000, p=plays / plays.sum()) for _ in range(2))
    learner = fitted(played(scores, rng, first[first != second], second[first != second]), 1, items + 2)
    assert 0.5 < learner.trend < 1.5
    bias = learner.beliefs.item[:, 0] + learner.trend * learner.meetings
    rare = np.flatnonzero(np.bincount(np.concatenate((first, second)), minlength=items + 2) < 3)
    assert bias[rare].mean() < bias.mean() - 0.5
    assert bias[-1] == bias[-2]  # nobody met these two


def test_where_all_items_meet_alike_there_is_no_trend():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 20, 4000), rng.integers(0, 20, 4000)
    learner = fitted(played(rng.normal(size=20), rng, first[first != second], second[first != second]), 1, 20)
    assert np.ptp(learner.trend * learner.meetings) < 0.1


def test_what_users_think_of_items_beside_the_factors_is_learnt():
    rng = np.random.default_rng(4)
    users, items, count = 20, 15, 12_000
    own = rng.normal(size=(users, items))  # as many factors as items
    user, first, second = rng.integers(0, users, count), rng.integers(0, items, count), rng.integers(0, items, count)
    apart = first != second
    pairs = played(np.zeros(items), rng, first[apart], second[apart], user[apart], own)
    learner = fitted(pairs, users, items)
    assert learner.own.scale > 0.1
    learnt = np.zeros(users * items)
    learnt[learner.own_keys] = learner.own.mean
    by_factors = learner.beliefs.user @ (learner.beliefs.item[:, : learner.beliefs.user.shape[1]]).T
    left = own - own.mean(axis=1, keepdims=True) - (by_factors - by_factors.mean(axis=1, keepdims=True))
    assert np.corrcoef(learnt, left.ravel())[0, 1] > 0.7


def test_a_comparison_of_two_unknown_items_says_less_than_one_with_a_known_item():
    triples = [np.zeros(400, np.int32), np.zeros(400, np.int32), np.repeat([1, 2], 200).astype(np.int32)]
    winner, loser = np.append(triples[1], [3, 5]), np.append(triples[2], [0, 4])  # 3 beats 0, whom all know; 5 beats 4
    pairs = Pairs(np.zeros(402, np.int32), winner.astype(np.int32), loser.astype(np.int32))
    learner = solver(pairs, 1, 6, 1, 0)
    for _ in range(20):
        learner.make_sweep()
    share, size = np.empty(6), learner.beliefs.item.shape[1]
    learner._pack()
    given = learner.rows, learner._entries, learner.beliefs, learner._packed, learner._centred_prior(), 1.0, 0.0
    update_items(np.arange(6), np.empty((6, size)), np.empty((6, size, size)), share, *given)
    assert share[5] < share[3] < 1


def test_one_strong_factor_is_found_in_little_data():
    # All factors at once share it out until none is worth keeping.
    rng = np.random.default_rng(5)
    items, count = 150, 3000
    eta, tau = 1.5 * rng.normal(size=items), np.abs(1 + 1.5 * rng.normal(size=items))
    i, j = rng.integers(0, items, count), rng.integers(0, items, count)
    i, j = i[i != j], j[i != j]
    won = rng.random(len(i)) < 1 / (1 + np.exp(-(eta[i] * tau[j] - eta[j] * tau[i])))
    sides = np.zeros(len(i)), np.where(won, i, j), np.where(won, j, i)
    learner = fitted(Pairs(*(side.astype(np.int32) for side in sides)), 1, items, factors=8)
    assert 1 / np.sqrt(learner.prior.rival_precision[1:].min(initial=np.inf)) > 0.3


def test_one_comparison_counts_with_its_weight():
    one = np.zeros(1, np.int32)
    learners = [solver(Pairs(one, one, one + 1, np.full(1, weight, np.float32)), 1, 2, 1, 0) for weight in (1, 50)]
    assert [learner.rows.curvature.tolist() for learner in learners] == [[0.25], [12.5]]
    assert [learner.rows.slope.tolist() for learner in learners] == [[0.5], [25.0]]
    likelihoods = [[learner.make_sweep() for _ in range(5)][-1] for learner in learners]
    assert likelihoods[0] < likelihoods[1] < 0


def test_held_parameters_stay_whatever_the_weights():
    pairs = simulated()
    heavy = Pairs(pairs.user, pairs.winner, pairs.loser, np.full(len(pairs), 1e9, np.float32))
    learner = solver(heavy, 8, 40, 2, 0)
    for _ in range(20):
        learner.make_sweep()
    assert np.abs(learner.beliefs.user[:, 0] - 1).max() < 1e-3  # of the bias


def test_resuming_gives_the_same_bits(tmp_path):
    pairs, identity = simulated(), {"data": 1}

    def run(sweeps, folder):
        learner = solver(pairs, 8, 40, 4, 0)
        history = []
        checkpoints = None if folder is None else LocalCheckpoints(folder, identity)
        run_step(Sweeps(learner, sweeps), history=history, checkpoints=checkpoints)
        return learner, history

    whole, _ = run(SWEEPS, None)
    run(33, tmp_path)
    assert checkpoints_in(tmp_path)[0].name == "epoch-000033.checkpoint"  # where the command line looks for it
    run(OWN + 2, tmp_path)
    resumed, history = run(SWEEPS, tmp_path)
    assert len(history) == SWEEPS
    assert whole.trend == resumed.trend != 0
    assert whole.own.scale == resumed.own.scale > 0
    for name, array in whole.state()[1].items():
        assert np.array_equal(array, resumed.state()[1][name]), name
    with pytest.raises(CheckpointError, match="data was 1 and is 2"):
        other = LocalCheckpoints(tmp_path, {"data": 2})
        run_step(Sweeps(solver(pairs, 8, 40, 4, 0), SWEEPS), checkpoints=other)


def test_ctrl_c_leaves_a_checkpoint_of_the_sweep_it_came_in(tmp_path):
    learner = solver(simulated(), 8, 40, 4, 0)

    def interrupt(sweep, figures):
        if sweep == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_step(Sweeps(learner, 50), after_epoch=interrupt, checkpoints=LocalCheckpoints(tmp_path, {}, seconds=1000))
    assert [path.name for path in checkpoints_in(tmp_path)] == ["epoch-000003.checkpoint"]


def test_a_checkpoint_of_other_shapes_is_not_used():
    learner = solver(simulated(), 8, 40, 4, 0)
    values, arrays = learner.state()
    with pytest.raises(ValueError, match="item is not made of"):
        learner.restore(values, {**arrays, "item": arrays["item"][:1]})
    with pytest.raises(ValueError, match="slope"):
        learner.restore(values, {**arrays, "slope": np.full_like(arrays["slope"], np.nan)})


@pytest.mark.parametrize("name", ["curvature", "variance", "pairing_variance"])
def test_a_checkpoint_with_negative_variances_is_not_used(name):
    learner = solver(simulated(), 8, 40, 4, 0)
    learner.make_sweep()
    values, arrays = learner.state()
    with pytest.raises(ValueError, match=f"{name} is below 0"):
        learner.restore(values, {**arrays, name: arrays[name] - 100.0})


@pytest.mark.parametrize("precision", [0.0, -1.0, float("inf"), float("nan")])
def test_a_checkpoint_with_own_scores_of_no_precision_is_not_used(precision):
    learner = solver(simulated(), 8, 40, 4, 0, sweeps=4)
    for _ in range(4):
        learner.make_sweep()
    values, arrays = learner.state()
    assert np.isfinite(values["own_precision"])
    with pytest.raises(ValueError, match="own_precision is"):
        learner.restore({**values, "own_precision": precision}, arrays)


def test_comparisons_in_parts_say_the_same(monkeypatch):
    # Sums over parts differ in the last digit from sums over all.
    for users in (1, 8):
        pairs = simulated(users=users)
        weighted = Pairs(*pairs.arrays[:3], np.linspace(0.5, 2, len(pairs)).astype(np.float32))
        states = []
        for size in (10**6, 700):
            monkeypatch.setattr(beyond_factors, "_PART", size)
            learner = solver(weighted, users, 40, 3, 0, sweeps=12)
            likelihood = [learner.make_sweep() for _ in range(12)]
            states.append({**learner.state()[1], "likelihood": np.array(likelihood), "own": learner.own_variance})
            assert len(learner.parts) == 1 or size == 700
        for name, array in states[0].items():
            assert states[1][name] == pytest.approx(array, rel=1e-9, abs=1e-9), name


def test_the_last_result_is_that_of_the_sweeps():
    learner = fitted(simulated(count=1000), 8, 40)
    keys = learner.pairing_keys, learner.own_keys
    mean, variance = learner.own.mean.copy(), learner.own_variance
    learner.finish()
    for before, after in zip(keys, (learner.pairing_keys, learner.own_keys), strict=True):
        assert np.array_equal(before, after) and (np.diff(after) > 0).all()
    assert np.array_equal(learner.own.mean, mean.astype(np.float32))
    assert np.array_equal(learner.own_variance, variance)


def test_memory_for_each_different_comparison_is_bounded(monkeypatch):
    monkeypatch.setattr(beyond_factors, "_PART", 2048)
    rng = np.random.default_rng(0)
    count, users, items = 60_000, 600, 2000
    sides = rng.integers(users, size=count), rng.integers(items, size=count), rng.integers(1, items, size=count)
    pairs = Pairs(*(side.astype(np.int32) for side in (sides[0], sides[1], (sides[1] + sides[2]) % items)))
    solver(pairs, users, items, 1, 0, sweeps=3).make_sweep()  # compiles
    tracemalloc.start()
    try:
        learner = solver(pairs, users, items, 1, 0, sweeps=3)
        for _ in range(3):
            learner.make_sweep()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    of_vectors = sum(array.nbytes for array in learner.beliefs)
    assert learner.own is not None
    assert held - of_vectors < 112 * count
    assert peak - of_vectors < 150 * count


def test_the_variance_of_pairings_is_that_of_what_is_known_of_them():
    rng = np.random.default_rng(0)
    information = rng.uniform(0.5, 20, size=4000)
    truth = np.sqrt(0.3) * rng.standard_normal(4000)
    linear = information * (truth + rng.standard_normal(4000) / np.sqrt(information))
    assert variance_of(information, linear) == pytest.approx(0.3, rel=0.1)


def test_a_variance_neither_vanishes_nor_grows_for_ever():
    assert learnt_variance(0.0, 0.0) == pytest.approx(1.0, rel=0.01)  # nothing is known: the mode of the prior
    assert learnt_variance(30.0, 100.0) == pytest.approx(0.3, rel=0.02)  # much is
    assert learnt_variance(1e6, 2.0) < 1100  # two numbers, however large
    assert factor_variance(0.0, 60.0) < 1e-4  # what the data does not support


def test_counts_are_the_same_whatever_the_order_and_however_they_are_given():
    rng = np.random.default_rng(0)
    user, winner, step = (rng.integers(low, high, 500) for low, high in ((0, 3), (0, 5), (1, 5)))
    loser = (winner + step) % 5
    rows = Pairs(*(side.astype(np.int32) for side in (user, winner, loser)))
    triples, times = np.unique(np.stack([user, winner, loser]), axis=1, return_counts=True)
    mixed = rng.permutation(triples.shape[1])
    weighted = Pairs(*triples[:, mixed].astype(np.int32), times[mixed].astype(np.float32))
    for one, other in zip(count(rows, 5), count(weighted, 5), strict=True):
        np.testing.assert_array_equal(one, other)


def test_where_scores_explain_everything_single_pairs_hardly_deviate():
    scores, (first, second) = np.linspace(-1, 1, 10), np.triu_indices(10, 1)
    for games in (100, 200, 300, 1000, 5000):
        sides = (side.astype(np.int32) for side in (0 * first, first, second))
        wins = games / (1 + np.exp(scores[second] - scores[first]))
        learner = Variational(Counts(*sides, np.full(45, float(games)), wins), 1, 10, 0, 0)
        for _ in range(SWEEPS):
            learner.make_sweep()
        assert learner.pairings.scale < 0.02


def test_more_wins_never_make_a_margin_smaller():
    one, margins = np.zeros(1, np.int32), []
    for wins in (10.0, 1e3, 1e6, 1e9):
        learner = Variational(Counts(one, one, one + 1, np.array([wins]), np.array([wins])), 1, 2, 0, 0)
        for _ in range(SWEEPS):
            learner.make_sweep()
        margins.append(float(learner.rows.mean[0] + learner.pairings.mean[0]))
    assert np.all(np.diff(margins) > -0.5)
