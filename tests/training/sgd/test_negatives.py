"""Drawn negatives: the deal, the visits, the negatives."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from sadrec._core.random import nth_absent, stream_key
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.negatives import deal, draw, hardest, place_dtype, room_for_triples
from sadrec.training.sgd.trainer import Trainer
from tests.training import small


def make_settings(**changed):
    values = {"factors": 2, "iterations": 1, "learning_rate": 1e-6, "regularization": 0.0, "rival_regularization": 0.0}
    values |= {"blocks": 1, "seed": 0, "schedule": "constant", "learn_rivals": False, "bias": True}
    return small.settings(**{**values, **changed})


def counting_trainer(matrix, weights=None, **changed):
    """A trainer whose bias counts visits: with zero vectors and a tiny rate, each visit moves it by rate / 2."""
    matrix = sp.csr_matrix(matrix)
    n, m = matrix.shape
    factors = Factors(np.zeros((n, 2), np.float32), np.zeros((m, 2), np.float32), np.zeros(m, np.float32))
    positives = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), weights)
    return Trainer(factors, make_settings(**changed), positives, num_threads=1)


def visits(trainer):
    return trainer.factors.bias / (0.5 * trainer.settings.learning_rate)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 30), m=st.integers(1, 60), blocks=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_the_deal_holds_every_positive_once_sorted_inside_its_block(n, m, blocks, seed):
    rng = np.random.default_rng(seed)
    matrix = sp.csr_matrix(rng.random((n, m)) < 0.3)
    weights = rng.random(matrix.nnz).astype(np.float32)
    dealt = deal((matrix.indptr.astype(np.int64), matrix.indices, weights), m, blocks, 1, seed, 0)
    assert sorted(dealt.shard_users) == list(range(n)) and sorted(dealt.block_items) == list(range(m))
    assert np.diff(dealt.block_start).max() - np.diff(dealt.block_start).min() <= 1
    for u in range(n):
        entries = []
        lo = matrix.indptr[u]
        for b in range(blocks):
            run = dealt.place[lo + dealt.run_start[u, b] : lo + dealt.run_start[u, b + 1]].astype(int)
            assert (np.diff(run) > 0).all() and len(run) <= dealt.longest
            entries += zip(
                dealt.block_items[dealt.block_start[b] + run].tolist(),
                dealt.weight[lo + dealt.run_start[u, b] : lo + dealt.run_start[u, b + 1]].tolist(),
                strict=True,
            )
        row = slice(matrix.indptr[u], matrix.indptr[u + 1])
        assert sorted(entries) == sorted(zip(matrix.indices[row].tolist(), weights[row].tolist(), strict=True))


@given(st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_nth_absent_counts_what_is_not_there(present, r):
    run = np.array(sorted(present), np.int32)
    absent = [number for number in range(200) if number not in present]
    assert nth_absent(run, r) == absent[r]


def test_places_are_small_numbers_unless_a_block_is_huge():
    assert place_dtype(60_000, 1) is place_dtype(2**16, 1) is np.uint16
    assert place_dtype(2**16 + 1, 1) is np.int32
    assert place_dtype(100_000, 1) is np.int32
    assert place_dtype(100_000, 2) is np.uint16


def test_every_positive_is_visited_exactly_once_an_epoch():
    matrix = np.zeros((40, 100), bool)
    matrix[:, :30] = True  # everybody liked the first 30, nobody the rest
    for blocks in (1, 2, 5):
        trainer = counting_trainer(matrix, blocks=blocks, seed=blocks)
        figures = trainer.train_epoch()
        counted = visits(trainer)
        skipped = figures["skipped"]
        assert figures["updates"] + skipped == matrix.sum()
        if not skipped:
            np.testing.assert_allclose(counted[:30], 40, rtol=1e-3)  # each positive of each user, once
        assert counted[30:].max() <= 0  # only items that were not liked lose
        np.testing.assert_allclose(counted[30:].sum(), -figures["updates"], rtol=1e-3)


@pytest.mark.parametrize("touched", [[0, 3, 4, 9], [0, 1, 2, 3, 5, 6, 8, 9, 11]], ids=["few", "most"])
def test_negatives_are_uniform_over_what_was_not_touched(touched):
    # One draw per deal: draws of one epoch are clustered in blocks and not independent.
    starts, counts = np.array([0, len(touched)]), np.zeros(12)
    for seed in range(3000):
        blocks, weights = 1 + seed % 3, np.zeros(len(touched), np.float32)
        weights[seed % len(touched)] = 1
        dealt = deal((starts, np.array(touched, np.int32), weights), 12, blocks, 1, seed, 0)
        triples = room_for_triples(dealt)
        for block in range(blocks):
            _, drawn, _, _ = draw(0, 1, block, dealt, np.uint64(stream_key(np.uint64(seed), 0, block, 0)), triples)
            counts[triples.negatives[:drawn, 0]] += 1
    assert (counts[touched] == 0).all()
    assert chisquare(np.delete(counts, touched)).pvalue > 1e-3


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("candidates", [1, 4])
def test_every_positive_counts_with_its_own_weight(blocks, candidates):
    rng = np.random.default_rng(blocks)
    matrix = np.zeros((3, 2000), bool)
    matrix[0, rng.permutation(2000)[:900]] = True  # far more triples than are drawn at once
    matrix[1, rng.permutation(2000)[:1500]] = True  # most of every block
    matrix[2, 7] = True
    weights = rng.choice([0, 0.5, 1, 3], matrix.sum()).astype(np.float32)
    trainer = counting_trainer(matrix, weights, blocks=blocks, negative_candidates=candidates)
    figures = trainer.train_epoch()
    assert figures["updates"] == np.count_nonzero(weights)
    by_item = np.zeros(matrix.shape)
    by_item[matrix] = weights
    gained = visits(trainer) - by_item.sum(axis=0)  # what is left is what the items lost as negatives
    assert gained.max() < 1e-2
    np.testing.assert_allclose(gained.sum(), -weights.sum(), rtol=1e-3)
    both = matrix[0] & matrix[1]  # negatives in the one triple of user 2 alone
    assert np.count_nonzero(np.abs(gained[both]) > 1e-2) <= 1


def test_the_positives_of_a_user_come_in_any_order_as_often():
    matrix = sp.csr_matrix(np.array([[1, 0, 1, 1, 0, 1, 0, 0]], bool))
    dealt = deal((matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), None), 8, 1, 1, 0, 0)
    triples, orders = room_for_triples(dealt), Counter()
    for number in range(2400):
        _, drawn, _, _ = draw(0, 1, 0, dealt, np.uint64(stream_key(np.uint64(0), 0, number, 0)), triples)
        orders[tuple(triples.item[:drawn].tolist())] += 1
    assert len(orders) == 24 and chisquare(list(orders.values())).pvalue > 1e-3


def test_users_without_items_or_with_all_of_them_are_skipped():
    matrix = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]], bool)
    trainer = counting_trainer(matrix)
    figures = trainer.train_epoch()
    assert figures["updates"] == 1 and figures["skipped"] == 4
    assert (trainer.factors.users[:2] == 0).all()


def test_entries_of_weight_zero_are_neither_trained_on_nor_drawn():
    matrix = np.array([[1, 1, 1, 0]], bool)
    for seed in range(20):
        trainer = counting_trainer(matrix, np.array([1, 0, 0], np.float32), seed=seed)
        figures = trainer.train_epoch()
        np.testing.assert_allclose(visits(trainer), [1, 0, 0, -1], rtol=1e-3)
        assert figures["updates"] == 1


def test_the_hardest_candidate_is_the_one_the_user_likes_best():
    matrix = np.zeros((1, 40), bool)
    matrix[0, 0] = True
    trainer = counting_trainer(matrix, negative_candidates=400)
    trainer.factors.bias[17] = 3.0
    before = trainer.factors.bias.copy()
    trainer.train_epoch()
    assert set(np.flatnonzero(trainer.factors.bias != before)) == {0, 17}


@pytest.mark.parametrize("biased", [False, True])
def test_the_hardest_negative_has_the_least_margin_wherever_it_stands(biased):
    rng = np.random.default_rng(0)
    xi, items = rng.normal(size=3).astype(np.float32), rng.normal(size=(9, 3)).astype(np.float32)
    bias = 3 * rng.normal(size=9).astype(np.float32) if biased else None
    appeal = items @ xi + (bias if biased else 0)
    for _ in range(30):
        negatives = rng.permutation(np.arange(1, 9)).astype(np.int32)[: rng.integers(1, 9)]
        assert hardest(xi, items, bias, 0, negatives, None) == negatives[appeal[negatives].argmax()]
