"""Epochs on workers, called one after another in this process: the bits of one machine, and the bytes that move."""

from dataclasses import replace

import numpy as np
import pytest

from sadrec.cluster.scheduler import Scheduler
from sadrec.training.engine import Pairs
from sadrec.training.loop import lasting
from sadrec.training.sgd.factors import initial_factors
from sadrec.training.sgd.trainer import Trainer
from tests.cluster.test_shuffle import shared, table, weighed, written
from tests.training import small

SETTINGS = {"iterations": 3, "bias": True, "negative_candidates": 2}

VARIANTS = {
    "pairwise": {},
    "BPR with balance": {"learn_rivals": False, "bias": False, "negative_candidates": 1, "user_balance": 0.4},
    "softmax": {"loss": "softmax", "length": 2.0, "negatives": 4, "user_balance": 0.5},
    "adaptive": {"adaptive": True, "iterations": 6, "blocks": 7},
    "weights": {"user_balance": 0.4},
    "softmax with weights": {"loss": "softmax", "length": 2.0, "negatives": 4},
    "comparisons": {},
    "adaptive, with weights and comparisons": {"adaptive": True, "iterations": 6, "blocks": 7},
    "softmax with comparisons": {"loss": "softmax", "length": 2.0, "negatives": 4},
}


def first(shape, settings):
    return initial_factors(*shape, settings.factors, 0.1, settings.learn_rivals, settings.bias, settings.seed)


def stated(shape, count=400):
    rng = np.random.default_rng(0)
    user, winner = (rng.integers(size, size=count).astype(np.int32) for size in shape)
    loser = ((winner + rng.integers(1, shape[1], count)) % shape[1]).astype(np.int32)
    return Pairs(user, winner, loser, rng.random(count).astype(np.float32))


def on_workers(folder, count, settings, weight=None, comparisons=None, threads=1, epochs=None):
    workers, parts, layout = shared(folder, count, threads, weight=weight)
    scale = parts[0].balance_scale(settings.user_balance, *(part.chosen() for part in parts))
    for worker in workers.workers:
        worker.begin(settings, layout.longest, scale, comparisons)
        worker.training.draw_first()
    scheduler = Scheduler(workers, settings, len(comparisons or ()))
    epochs = settings.iterations if epochs is None else epochs
    figures = [scheduler.train_epoch(epoch) for epoch in range(epochs)]
    dealt = scheduler.moved - sum(part.moved for part in scheduler.times)
    scheduler.rest()
    columns = zip(*(worker.training.held() for worker in workers.workers), strict=True)
    joined = [None if column[0] is None else np.concatenate(column) for column in columns]
    return joined, figures, scheduler, dealt


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_bits_are_those_of_one_machine(tmp_path, name, count):
    folder = written(tmp_path, table("text"))
    settings = small.settings(**{**SETTINGS, **VARIANTS[name]})
    weight = "trust" if "weights" in name else None
    data = weighed(folder, weight)
    comparisons = stated(data.shape) if "comparisons" in name else None
    data = replace(data, comparisons=comparisons)
    trainer = Trainer(first(data.shape, settings), settings, data.positives(settings), data.pair_sources(settings), 1)
    expected = [trainer.train_epoch() for _ in range(trainer.total)]
    (users, items, bias, _), figures, _, dealt = on_workers(
        folder, count, settings, weight, comparisons, epochs=trainer.total
    )
    assert np.array_equal(users, trainer.factors.users)
    assert np.array_equal(items, trainer.factors.items)
    assert (bias is None and trainer.factors.bias is None) or np.array_equal(bias, trainer.factors.bias)
    for ours, theirs in zip(figures, expected, strict=True):
        assert ours["log_likelihood"] == theirs["log_likelihood"]
        assert lasting(ours) == pytest.approx(lasting(theirs), rel=1e-12)
    if comparisons is None:
        item = (2 if settings.learn_rivals else 1) * settings.factors + settings.bias
        numbers = data.shape[0] * (settings.factors + 1) + data.shape[1] * item
        numbers += data.shape[1] * settings.factors * settings.adaptive + data.matrix.nnz * (1 if weight is None else 2)
        assert dealt == pytest.approx(4 * numbers * (count - 1) / count, rel=0.15)


def test_threads_inside_workers_change_no_bit(tmp_path):
    folder, settings = written(tmp_path, table("text")), small.settings(**SETTINGS)
    one, two = (on_workers(folder, 2, settings, threads=threads)[0] for threads in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))


def test_an_epoch_passes_every_block_to_every_worker(tmp_path):
    settings = small.settings(**{**SETTINGS, "blocks": 6})
    _, _, scheduler, _ = on_workers(written(tmp_path, table("text")), 3, settings, epochs=2)
    blocks = sum(part.moved for part in scheduler.times)
    item, items = 4 * (2 * settings.factors + 1), len(set(table()["item"]))
    assert blocks == pytest.approx(item * items * 3 * 5 / 6, rel=0.1)  # the last sub-epoch passes nothing on
