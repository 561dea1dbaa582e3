"""Epochs: same bits for any number of threads, figures, adaptive weights."""

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec._core.settings import opened
from sadrec.models import TrainingSettings
from sadrec.training.defaults import default_blocks
from sadrec.training.settings import Settings
from sadrec.training.sgd import given
from sadrec.training.sgd.factors import initial_factors
from sadrec.training.sgd.given import Pairs
from sadrec.training.sgd.samplers import Ordered, Stated
from sadrec.training.sgd.trainer import Trainer, adaptive_weights
from tests.training.small import settings

USERS, ITEMS = 90, 130


def trainer(threads=1, stated=True, ordered=True, **changed):
    rng = np.random.default_rng(0)
    matrix = sp.csr_matrix(
        np.where(rng.random((USERS, ITEMS)) < 0.15, rng.integers(1, 6, (USERS, ITEMS)), 0), dtype=np.float32
    )
    user, winner = rng.integers(USERS, size=800).astype(np.int32), rng.integers(ITEMS, size=800).astype(np.int32)
    loser = ((winner + rng.integers(1, ITEMS, 800)) % ITEMS).astype(np.int32)
    sources = [Stated(Pairs(user, winner, loser, rng.random(800).astype(np.float32)))] if stated else []
    if ordered:
        sources.append(Ordered((matrix.indptr.astype(np.int64), matrix.indices), matrix.data, 0.7))
    chosen = settings(**changed)
    factors = initial_factors(USERS, ITEMS, chosen.factors, 0.1, chosen.learn_rivals, chosen.bias, chosen.seed)
    positives = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), None)
    return Trainer(factors, chosen, positives, sources, threads)


def test_resolved_settings_are_those_that_are_declared():
    resolved = {entry.name for entry in fields(Settings)} - {"seed", "learn_rivals", "origins"}
    assert resolved == {*opened(TrainingSettings)} - {"num_threads", "random_state"}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"learn_rivals": False, "stated": False, "ordered": False},
        {"bias": True, "negative_candidates": 3, "adaptive": True, "iterations": 4},
        {"blocks": 1},
        {"blocks": 16, "stated": False},
        {"loss": "softmax", "negatives": 9, "length": 2.0, "bias": True},
    ],
)
def test_the_same_bits_for_1_2_3_and_7_threads(changed):
    results = []
    for threads in (1, 2, 3, 7):
        work = trainer(threads, **changed)
        likelihood = [work.train_epoch()["log_likelihood"] for _ in range(work.total)]
        results.append(([array.tobytes() for array in work.factors.arrays], likelihood))
    assert all(result == results[0] for result in results)


def test_an_epoch_in_rounds_trains_on_the_same_triples_with_the_same_bits_on_any_threads(monkeypatch):
    whole = trainer().train_epoch()["updates"]
    monkeypatch.setattr(given, "ROUND", 300)
    monkeypatch.setattr(given, "_PER_CELL", 1)
    works = [trainer(threads) for threads in (1, 2, 3)]
    for work in works:
        assert given.rounds_of(sum(source.count for source in work._sources), work.settings.blocks // 2) > 5
        assert work.train_epoch()["updates"] == whole
        assert work.train_epoch()["log_likelihood"] > -0.7
    bits = [[array.tobytes() for array in work.factors.arrays] for work in works]
    assert bits[0] == bits[1] == bits[2]


def test_the_triples_of_an_epoch_are_never_held_all_at_once():
    rng = np.random.default_rng(0)
    start, size = np.arange(0, 300_001, 100), 300_000
    rated = start.astype(np.int64), (np.arange(size) % 100 * 2).astype(np.int32)
    source = Ordered(rated, rng.integers(1, 6, size).astype(np.float32), 15.0)  # 4.5 million triples of 12 bytes
    work = Trainer(initial_factors(3000, 200, 2, 0.1, True, False, 0), settings(factors=2), None, [source], 1)
    work.train_epoch()  # compiles
    tracemalloc.start()
    work.train_epoch()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 35e6


def test_another_seed_and_other_blocks_give_other_bits():
    one, two, three = trainer(), trainer(seed=4), trainer(blocks=4)
    for work in (one, two, three):
        work.train_epoch()
    assert (one.factors.users != two.factors.users).any() and (one.factors.users != three.factors.users).any()


def test_the_likelihood_rises_and_the_figures_are_there():
    work = trainer(stated=False, ordered=False, iterations=30)
    figures = [work.train_epoch() for _ in range(30)]
    assert figures[-1]["log_likelihood"] > figures[0]["log_likelihood"] + 0.02
    assert figures[0]["log_likelihood"] == pytest.approx(-np.log(2), abs=0.02)
    assert figures[0]["updates"] == work._positives[0][-1]
    assert {"sparsity", "user_norm", "item_norm", "rival_spread", "updates_per_second"} <= set(figures[0])


def test_the_likelihood_is_the_mean_over_the_triples():
    # at a rate of zero nothing moves, so the figure can be computed from the factors
    rng = np.random.default_rng(5)
    user, winner = rng.integers(9, size=500).astype(np.int32), rng.integers(20, size=500).astype(np.int32)
    loser = ((winner + rng.integers(1, 20, 500)) % 20).astype(np.int32)
    chosen = settings(learning_rate=0.0, blocks=4)
    factors = initial_factors(9, 20, 6, 2.0, True, False, 0)  # margins inside the limits of the step
    figures = Trainer(factors, chosen, None, [Stated(Pairs(user, winner, loser))], 2).train_epoch()
    xi, eta = factors.users[user].astype(float), factors.eta.astype(float)
    x = np.sum(xi * (eta[winner] - eta[loser]), axis=1)
    assert figures["log_likelihood"] == pytest.approx(-np.log1p(np.exp(-x)).mean(), rel=1e-5)


def test_the_rate_falls_to_zero_or_stays():
    linear, constant = trainer(), trainer(schedule="constant")
    rates = [[work.train_epoch()["learning_rate"] for _ in range(4)] for work in (linear, constant)]
    np.testing.assert_allclose(rates[0], [0.1, 0.075, 0.05, 0.025])
    np.testing.assert_allclose(rates[1], 0.1)


def test_adaptive_training_has_two_phases_and_holds_entries_by_how_far_they_went():
    work = trainer(adaptive=True, iterations=6)
    for _ in range(3):
        work.train_epoch()
    assert work.l1_weights is None
    tau = work.factors.tau.copy()
    work.train_epoch()
    np.testing.assert_allclose(work.l1_weights, np.minimum(np.maximum(np.abs(tau - 1), 0.02) ** -2.0, 50), rtol=1e-5)
    np.testing.assert_array_equal(work.l1_weights, adaptive_weights_of(tau))


def adaptive_weights_of(tau):
    factors = initial_factors(1, len(tau), tau.shape[1], 0.1, True, False, 0)
    factors.items[:, tau.shape[1] :] = tau
    return adaptive_weights(factors)


def test_default_blocks_grow_with_the_data():
    assert default_blocks("interactions", 20, 50, 300) == 1
    assert default_blocks("interactions", 943, 1682, 100_000) == 16
    assert default_blocks("interactions", 500, 300, 10_000) == 4
    assert default_blocks("comparisons", 4000, 9000, 48_000) == 1
    assert default_blocks("comparisons", 4000, 9000, 400_000) == 8
    assert default_blocks("comparisons", 1, 9000, 10**7) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"factors": 0}, "factors must be a whole number, at least 1, not 0"),
        ({"iterations": 2.5}, "iterations must be a whole number"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number"),
        ({"regularization": -1}, "regularization must be a finite number, 0 or more, not -1"),
        ({"schedule": "cosine"}, "schedule must be 'linear' or 'constant'"),
        ({"order_share": 1.5}, "order_share must be a share"),
        ({"learning_rate": 10.0, "regularization": 1.0}, "must stay below 0.5"),
        ({"blocks": 0}, "blocks must be a whole number, at least 1"),
        ({"negative_candidates": True}, "negative_candidates must be a whole number"),
        ({"loss": "hinge"}, "loss must be 'pairwise' or 'softmax'"),
        ({"length": 3.0}, "length=3.0 is for loss='softmax': leave it out with loss='pairwise'"),
    ],
)
def test_bad_settings_are_named_with_the_remedy(changed, message):
    with pytest.raises(ValueError, match=message):
        Settings.from_dict({**vars(settings()), **changed})
