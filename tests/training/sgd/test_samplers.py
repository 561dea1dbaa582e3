"""Pairs from the order inside ratings."""

from itertools import chain

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

from sadrec.training.sgd.given import Pairs
from sadrec.training.sgd.samplers import Disliked, Ordered, Stated

RATINGS = np.array(
    [
        [5, 3, 3, 1, 0, 0],
        [4, 4, 4, 0, 0, 0],  # all equal: states no order
        [0, 0, 0, 0, 2, 1],
        [0, 0, 0, 0, 0, 5],
    ],
    np.float32,
)


def ordered(per_item):
    matrix = sp.csr_matrix(RATINGS)
    return Ordered((matrix.indptr.astype(np.int64), matrix.indices), matrix.data, per_item)


def test_the_better_rated_item_wins():
    for epoch in range(20):
        pairs = ordered(2.5).pairs(0, epoch)
        assert (RATINGS[pairs.user, pairs.winner] > RATINGS[pairs.user, pairs.loser]).all()


def test_everybody_with_unequal_ratings_gets_the_same_share_and_nobody_else():
    counts = np.zeros(4)
    for epoch in range(200):
        counts += np.bincount(ordered(0.5).pairs(3, epoch).user, minlength=4)
    assert counts[1] == counts[3] == 0
    assert abs(counts[0] / 200 - 0.5 * 4) < 0.25 and abs(counts[2] / 200 - 0.5 * 2) < 0.2


def test_partners_are_uniform_over_the_differently_rated():
    # from item 1 (rated 3), partners are items 0 and 3; from item 0 (rated 5), items 1, 2 and 3
    counts = np.zeros((6, 6))
    for seed in range(4000):
        pairs = ordered(1.0).pairs(seed, 0)
        mine = pairs.user == 0
        np.add.at(counts, (pairs.winner[mine], pairs.loser[mine]), 1)
    # (0, 1): a third of the draws that start at 0 and half of those that start at 1
    expected = {
        (0, 1): 1 / 3 + 1 / 2,
        (0, 2): 1 / 3 + 1 / 2,
        (0, 3): 1 / 3 + 1 / 3,
        (1, 3): 1 / 2 + 1 / 3,
        (2, 3): 1 / 2 + 1 / 3,
    }
    seen = np.array([counts[pair] for pair in expected])
    assert counts.sum() == seen.sum()
    share = np.array(list(expected.values()))
    assert chisquare(seen, share / share.sum() * seen.sum()).pvalue > 1e-3


def test_the_same_seed_and_epoch_give_the_same_pairs():
    one, two, other = (ordered(1.5).pairs(1, epoch) for epoch in (4, 4, 5))
    assert (one.winner == two.winner).all() and (one.loser == two.loser).all()
    assert len(one) != len(other) or (one.winner != other.winner).any()


def rows(matrix):
    matrix = sp.csr_matrix(matrix)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)


def test_what_is_disliked_loses_to_what_is_liked_and_to_what_is_unknown():
    liked = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]], bool)
    disliked = np.array([[0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]], bool)
    known = rows(liked | disliked)
    source = Disliked(known, np.where(disliked, -1, 1)[liked | disliked].astype(np.int8), 6)
    met = {0: set(), 1: set(), 2: set()}
    for epoch in range(200):
        pairs = source.pairs(0, epoch)
        assert disliked[pairs.user, pairs.loser].all()
        for user, winner in zip(pairs.user.tolist(), pairs.winner.tolist(), strict=True):
            met[user].add(winner)
    # user 0 likes 0 and 1 and does not know 3, 4, 5; user 1 likes nothing; user 2 knows everything
    assert met == {0: {0, 1, 3, 4, 5}, 1: {0, 2, 3, 4, 5}, 2: {0, 1, 2, 3, 4}}


def test_the_winners_over_dislikes_are_drawn_one_by_one():
    weights = np.repeat(np.array([1, -1], np.int8), 10)  # 10 liked, 10 disliked, and 10 that the user does not know
    source = Disliked((np.array([0, 20]), np.arange(20, dtype=np.int32)), weights, 30)
    winners = np.concatenate([source.pairs(0, epoch).winner for epoch in range(100)]) % 10
    assert abs(np.corrcoef(winners[:-1], winners[1:])[0, 1]) < 0.1


def test_what_has_the_weight_0_is_known_and_neither_liked_nor_disliked():
    known, weights = rows(np.ones((3, 4))), np.array([1, 0, -1, 2, 0, 1, 1, -2, -1, 0, 0, 0], np.float32)
    source = Disliked(known, weights, 5)
    met = set()
    for epoch in range(50):
        met.update(triples(source.pairs(3, epoch)))
    assert source.count == 6
    assert met == {(0, 0, 2), (0, 3, 2), (0, 4, 2), (1, 1, 3), (1, 2, 3), (1, 4, 3), (2, 4, 0)}


def triples(pairs):
    columns = [pairs.user, pairs.winner, pairs.loser, *([] if pairs.weight is None else [pairs.weight])]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_the_parts_of_an_epoch_have_the_triples_of_the_whole():
    rng = np.random.default_rng(0)
    matrix = sp.random(30, 12, 0.4, "csr", dtype=np.float32, random_state=rng)
    matrix.data = rng.integers(1, 6, matrix.nnz).astype(np.float32)
    known, weights = rows(matrix), rng.integers(0, 3, matrix.nnz).astype(np.float32)
    stated = Pairs(*(rng.integers(12, size=50).astype(np.int32) for _ in range(3)), rng.random(50).astype(np.float32))
    sources = [
        Stated(stated),
        Ordered(known, matrix.data, 1.6),
        Ordered(known, matrix.data, 0.7, weights > 0),
        Disliked(known, weights - 1, 12),
    ]
    for source in sources:
        whole = triples(source.pairs(5, 2))
        assert abs(source.count - len(whole)) <= 0.5 * len(whole)
        for parts in (2, 7, 40):
            drawn = [triples(source.pairs(5, 2, part, parts)) for part in range(parts)]
            assert sorted(chain.from_iterable(drawn)) == whole


def test_only_ratings_that_count_are_ordered():
    counts = sp.csr_matrix(RATINGS).data != 3
    pairs = Ordered(rows(RATINGS), sp.csr_matrix(RATINGS).data, 3.0, counts).pairs(0, 0)
    assert set(triples(pairs)) == {(0, 0, 3), (2, 4, 5)}


def test_a_stated_comparison_comes_as_often_as_it_weighs():
    weight = np.array([3, 2.3, 0, 0.5], np.float32)
    source = Stated(Pairs(*(np.arange(4, dtype=np.int32) + n for n in range(3)), weight))
    times = np.array([np.bincount(source.pairs(0, epoch).user, minlength=4) for epoch in range(2000)])
    assert ((times == np.floor(weight)) | (times == np.ceil(weight))).all() and source.count == 6
    np.testing.assert_allclose(times.mean(axis=0), weight, atol=0.05)
    pairs = source.pairs(0, 0)
    assert (pairs.winner == pairs.user + 1).all() and (pairs.loser == pairs.user + 2).all() and pairs.weight is None


def test_more_comparisons_than_an_epoch_visits_are_refused():
    one = np.zeros(1, np.int32)
    Stated(Pairs(one, one, one, np.array([2.0**33], np.float32)))
    with pytest.raises(
        ValueError, match=r"add up to 8\.59e\+09 comparisons, and an epoch visits 8,589,934,592 at most"
    ):
        Stated(Pairs(one, one, one, np.array([2.0**33 + 1024], np.float32)))


def test_ratings_below_zero_are_ordered_too():
    ratings = np.array([[-2, 3, -0.5, -7, 0]], np.float32)
    full = sp.csr_matrix(np.ones_like(ratings))
    source = Ordered((full.indptr.astype(np.int64), full.indices), ratings[0], 3.0)
    for epoch in range(20):
        pairs = source.pairs(0, epoch)
        assert len(pairs) == 15 and (ratings[0, pairs.winner] > ratings[0, pairs.loser]).all()
