"""Files that travel between sadrec and a program, and the cells a program learns from."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.baselines.programs import exchange
from studies.baselines.programs.cells import choose_cells, empty_cells
from studies.baselines.programs.exchange import Fitted, Training
from studies.baselines.programs.ncf import Examples


def training(touched):
    touched = np.asarray(touched, dtype=bool)
    indptr = np.concatenate([[0], np.cumsum(touched.sum(axis=1))]).astype(np.int64)
    indices = np.nonzero(touched)[1].astype(np.int32)
    return Training(indptr, indices, np.ones(len(indices), np.float32), touched.shape)


@st.composite
def matrices(draw):
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    cells = draw(st.lists(st.booleans(), min_size=n * m, max_size=n * m))
    return np.array(cells).reshape(n, m)


@given(matrices(), st.integers(0, 99))
def test_all_cells_are_every_cell_once(touched, seed):
    cells = choose_cells(training(touched), {"cells": "all", "random_state": seed})
    seen = np.full(touched.shape, -1.0)
    seen[cells.users, cells.items] = cells.values
    assert len(cells.values) == touched.size
    np.testing.assert_array_equal(seen, touched)


@given(matrices(), st.integers(1, 3), st.integers(0, 99))
def test_sampled_cells_are_all_interactions_and_only_empty_cells(touched, zeros, seed):
    cells = choose_cells(training(touched), {"cells": "sampled", "zeros": zeros, "random_state": seed})
    ones = cells.values == 1
    assert sorted(zip(cells.users[ones], cells.items[ones], strict=True)) == sorted(
        zip(*touched.nonzero(), strict=True)
    )
    assert not touched[cells.users[~ones], cells.items[~ones]].any()
    # a user who has touched everything has no empty cell to draw
    expected = zeros * touched.sum(axis=1) * ~touched.all(axis=1)
    np.testing.assert_array_equal(np.bincount(cells.users[~ones], minlength=len(touched)), expected)


def test_empty_cells_are_drawn_uniformly():
    touched = np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0]])
    _, items = empty_cells(training(touched), np.zeros(30_000, dtype=int), np.random.default_rng(0))
    counts = np.bincount(items, minlength=5)
    assert counts[0] == counts[3] == 0
    assert np.abs(counts[[1, 2, 4]] - 10_000).max() < 400  # five standard deviations


@given(matrices())
def test_dense_rows_are_the_matrix(touched):
    rows = training(touched)
    half = len(touched) // 2
    parts = np.concatenate([rows.dense(0, half), rows.dense(half, len(touched))])
    np.testing.assert_array_equal(parts, touched)


def test_training_data_travels_unchanged(tmp_path):
    sent = training([[1, 0, 1], [0, 0, 0], [0, 1, 1]])
    exchange.write_training(tmp_path, sent)
    got = exchange.read_training(tmp_path)
    assert got.shape == sent.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(got, name), getattr(sent, name))


def test_a_program_writes_scores_and_facts(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "_BLOCK", 6)  # two users at a time
    exchange.write_training(tmp_path, training(np.eye(5, 3)))
    (tmp_path / exchange.SETTINGS).write_text(json.dumps({"shift": 10}))

    def fit(data, settings):
        return Fitted(lambda start, stop: data.dense(start, stop) + settings["shift"], "what", ("scipy",))

    exchange.carry_out(fit, tmp_path)
    scores = np.load(tmp_path / exchange.SCORES, mmap_mode="r", allow_pickle=False)
    np.testing.assert_array_equal(scores, np.eye(5, 3, dtype=np.float32) + 10)
    facts = json.loads((tmp_path / exchange.FACTS).read_text())
    assert facts["trained_on"] == "what"
    assert set(facts["versions"]) == {"numpy", "scipy"}


def test_scores_that_are_not_finite_are_refused(tmp_path):
    fitted = Fitted(lambda start, stop: np.full((stop - start, 2), np.nan), "", ())
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        exchange.write_scores(tmp_path, fitted, (3, 2))
    assert not (tmp_path / exchange.SCORES).exists()


def test_ncf_sees_every_interaction_and_fresh_empty_cells_every_epoch():
    touched = np.random.default_rng(0).random((10, 30)) < 0.2
    examples = Examples(training(touched), zeros=3, seed=0)
    epochs = []
    for _ in range(2):
        users, items, labels = (np.concatenate(part) for part in zip(*examples.train_loader(1), strict=True))
        assert len(labels) == len(examples) == 4 * touched.sum()
        np.testing.assert_array_equal(touched[users, items], labels == 1)
        epochs.append(sorted(zip(users[labels == 0], items[labels == 0], strict=True)))
    assert epochs[0] != epochs[1]


def test_a_batch_that_is_not_full_is_left_out():
    examples = Examples(training(np.eye(5)), zeros=1, seed=0)
    assert [len(labels) for _, _, labels in examples.train_loader(4)] == [4, 4]
