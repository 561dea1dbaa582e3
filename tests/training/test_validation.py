"""Held-out interactions as triples."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD, Interactions
from sadrec.training import validation
from sadrec.training.sgd.factors import initial_factors
from sadrec.training.validation import NEGATIVES, HeldOut, validation_figures


def rows(matrix):
    matrix = sp.csr_matrix(matrix)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)


@pytest.fixture
def touched():
    rng = np.random.default_rng(0)
    return rng.random((40, 25)) < 0.3, rng.random((40, 25)) < 0.1  # some of what is held out was in training, too


def test_losers_were_neither_trained_on_nor_held_out(touched):
    touched_rows, held = touched
    held[3] = True  # nothing is left for this user
    pairs = HeldOut(rows(touched_rows), rows(held), 25, seed=1).all()
    assert held[pairs.user, pairs.winner].all()
    assert not (touched_rows | held)[pairs.user, pairs.loser].any()
    counts = np.where(np.arange(40) == 3, 0, NEGATIVES * held.sum(axis=1))
    assert np.bincount(pairs.user, minlength=40).tolist() == counts.tolist()


def test_the_figures_do_not_depend_on_how_much_is_drawn_at_once(touched, monkeypatch):
    touched_rows, held = touched
    factors = initial_factors(40, 25, 3, 1.0, True, True, 0)
    whole = HeldOut(rows(touched_rows), rows(held), 25, seed=1)
    figures, together = validation_figures(factors, whole), whole.all()
    assert validation_figures(factors, together) == figures
    monkeypatch.setattr(validation, "_AT_ONCE", 7)
    parts = list(whole)
    assert len(parts) > 5 and validation_figures(factors, whole) == figures
    assert np.concatenate([part.loser for part in parts]).tolist() == together.loser.tolist()


def test_validation_needs_little_memory_beside_the_data():
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(4000 * 500, size=400_000))
    data = Interactions.from_csr(sp.csr_matrix((np.ones(len(keys), np.float32), (keys // 500, keys % 500))))
    train, held = data.split(test=0.5, seed=0)
    model = SAD(factors=2, iterations=1, num_threads=1, advanced={"length": 1.0})  # no survey of the data
    model.fit(train, show_progress=False, validation=held)  # compiles
    tracemalloc.start()
    model.fit(train, show_progress=False, validation=held)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6  # the triples of all of it would take 9 MB, and putting both parts into one matrix 20 MB
