"""Comparisons sorted by user and by item."""

import numpy as np

from sadrec.posterior.triples import as_triples
from sadrec.training.engine import Pairs


def test_every_comparison_stands_once_with_its_user_and_once_with_each_item():
    rng = np.random.default_rng(0)
    winner = rng.integers(6, size=50)
    pairs = Pairs(rng.integers(4, size=50), winner, (winner + rng.integers(1, 6, size=50)) % 6)
    triples = as_triples(pairs, 5, 7)
    by_user, by_item = triples.by_user, triples.by_item
    given = zip(pairs.user.tolist(), pairs.winner.tolist(), pairs.loser.tolist(), strict=True)
    assert list(zip(by_user.user.tolist(), by_user.winner.tolist(), by_user.loser.tolist(), strict=True)) == sorted(
        given
    )
    np.testing.assert_array_equal(np.repeat(np.arange(5), np.diff(by_user.start)), by_user.user)
    item = np.repeat(np.arange(7), np.diff(by_item.start))
    assert len(item) == 100
    won, winner, loser = by_item.sign > 0, by_user.winner[by_item.row], by_user.loser[by_item.row]
    np.testing.assert_array_equal(np.where(won, winner, loser), item)
    np.testing.assert_array_equal(np.where(won, loser, winner), by_item.other)
    np.testing.assert_array_equal(by_user.user[by_item.row], by_item.user)


def test_equal_comparisons_stand_in_the_order_of_their_precision_however_they_come():
    same = np.zeros(3, np.int32)
    for weight in ([2.0, 0.25, 1.0], [1.0, 1.0, 1.25], [0.25, 3.0, 0.0]):
        triples = as_triples(Pairs(same, same, same + 1, np.array(weight, np.float32)), 1, 2)
        assert triples.by_user.root.tolist() == [0.5, 1, 1, 1]
        assert triples.by_item.sign.tolist() == [0.5, 1, 1, 1, -0.5, -1, -1, -1]


def test_no_comparisons_make_empty_rows():
    none = np.empty(0, np.int32)
    triples = as_triples(Pairs(none, none, none), 2, 3)
    assert triples.by_user.start.tolist() == [0] * 3
    assert (triples.by_item.start.tolist(), len(triples.by_item.row)) == ([0] * 4, 0)
