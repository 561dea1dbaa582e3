"""The schedule on several workers, called one after another in this process: the bits of one machine."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec.cluster.conductor import Conductor
from sadrec.cluster.layout import REST, layout
from sadrec.cluster.worker import Rows, Worker
from sadrec.training.drawn import Positives
from sadrec.training.factors import initial_factors
from sadrec.training.given import Pairs
from sadrec.training.samplers import Disliked, Ordered, Stated
from sadrec.training.settings import Settings
from sadrec.training.trainer import Trainer, lasting

USERS, ITEMS = 61, 47
SETTINGS = {
    "factors": 6,
    "iterations": 3,
    "learning_rate": 0.1,
    "regularization": 0.01,
    "rival_regularization": 0.002,
    "blocks": 5,
    "seed": 3,
    "schedule": "linear",
    "init_scale": 0.1,
    "learn_rivals": True,
    "bias": True,
    "negative_candidates": 2,
    "order_share": 0.0,
    "adaptive": False,
    "user_balance": 0.0,
    "negatives": 1,
    "length": 0.0,
    "solver": "sgd",
    "loss": "pairwise",
}


class Here:
    """Workers in this process, which do at once what they are told."""

    def __init__(self, workers):
        self.workers, self.count = workers, len(workers)

    def call(self, worker, method, *arguments, returns=1):
        return getattr(self.workers[worker], method)(*arguments)

    def get(self, references):
        return references


def matrix_of(rng):
    return sp.csr_matrix(
        np.where(rng.random((USERS, ITEMS)) < 0.2, rng.integers(1, 6, (USERS, ITEMS)), 0), dtype=np.float32
    )


def feedback(drawn=True, weights=False, balance=False, stated=0, ordered=False, disliked=False):
    rng = np.random.default_rng(0)
    matrix, sources = matrix_of(rng), []
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.copy()
    indices.flags.writeable = False
    if stated:
        user, winner = (rng.integers(count, size=stated).astype(np.int32) for count in (USERS, ITEMS))
        loser = ((winner + rng.integers(1, ITEMS, stated)) % ITEMS).astype(np.int32)
        sources.append(Stated(Pairs(user, winner, loser, rng.random(stated).astype(np.float32))))
    if ordered:
        sources.append(Ordered((indptr, indices), matrix.data, 0.7))
    if disliked:
        mask = matrix.data < 2
        sources.append(Disliked((indptr, indices), (~mask).astype(np.float32), mask, ITEMS))
    weight = rng.random(matrix.nnz).astype(np.float32) if weights else None
    user_weights = rng.random(USERS).astype(np.float32) if balance else None
    return Positives(indptr, indices, weight, user_weights) if drawn else None, sources


def first(settings):
    return initial_factors(USERS, ITEMS, settings.factors, 0.1, settings.learn_rivals, settings.bias, settings.seed)


def on_workers(count, settings, threads=1, epochs=None, **data):
    factors, rest = first(settings), layout(REST, (USERS, ITEMS), settings, count)
    workers = [Worker(w, count, (USERS, ITEMS), settings, *feedback(**data), threads) for w in range(count)]
    for worker in workers:
        users, items = rest.users_of(worker.number), rest.items_of(worker.number)
        bias = None if factors.bias is None else factors.bias[items]
        worker.hold(Rows(factors.users[users], factors.items[items], bias, None))
    drawn, pairs = data.get("drawn", True), workers[0].pair_count()
    conductor = Conductor(Here(workers), settings, drawn, pairs)
    epochs = Trainer(factors, settings).epochs if epochs is None else epochs
    figures = [conductor.train_epoch(epoch) for epoch in range(epochs)]
    conductor.rest()
    held = [worker.held() for worker in workers]
    columns = zip(*held, strict=True)
    joined = [None if column[0] is None else np.concatenate(column) for column in columns]
    return joined, figures, conductor


VARIANTS = {
    "pairwise": ({}, {}),
    "BPR without bias": ({"learn_rivals": False, "bias": False, "negative_candidates": 1}, {}),
    "weights and balance": ({}, {"weights": True, "balance": True}),
    "softmax": ({"loss": "softmax", "length": 2.0, "negatives": 4}, {}),
    "adaptive": ({"adaptive": True, "iterations": 6}, {}),
    "comparisons": ({}, {"drawn": False, "stated": 700}),
    "order pairs": ({}, {"ordered": True}),
    "dislikes": ({}, {"disliked": True}),
    "everything": ({"adaptive": True, "blocks": 7}, {"ordered": True, "stated": 300, "weights": True}),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_bits_are_those_of_one_machine(name, count):
    changed, data = VARIANTS[name]
    settings = Settings(**{**SETTINGS, **changed})
    positives, sources = feedback(**data)
    trainer = Trainer(first(settings), settings, positives, sources, 1)
    expected = [trainer.train_epoch() for _ in range(trainer.epochs)]
    (users, items, bias, _), figures, _ = on_workers(count, settings, **data)
    assert np.array_equal(users, trainer.factors.users)
    assert np.array_equal(items, trainer.factors.items)
    assert (bias is None and trainer.factors.bias is None) or np.array_equal(bias, trainer.factors.bias)
    for ours, theirs in zip(figures, expected, strict=True):
        assert ours["log_likelihood"] == theirs["log_likelihood"]
        assert lasting(ours) == pytest.approx(lasting(theirs), rel=1e-12)


def test_threads_inside_workers_change_no_bit():
    settings = Settings(**SETTINGS)
    one, two = (on_workers(2, settings, threads)[0] for threads in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))


def test_an_epoch_moves_every_block_to_every_worker_and_every_row_to_its_next_place():
    settings = Settings(**{**SETTINGS, "blocks": 6, "adaptive": False})
    _, _, conductor = on_workers(3, settings, epochs=2)
    item, user = 4 * (2 * settings.factors + 1), 4 * settings.factors
    blocks = sum(part.moved for part in conductor.times)
    assert blocks == pytest.approx(item * ITEMS * 3 * 5 / 6, rel=0.1)  # the last sub-epoch passes nothing on
    relocated = conductor.moved - blocks
    assert relocated == pytest.approx((item * ITEMS + user * USERS) * 2 / 3, rel=0.1)
