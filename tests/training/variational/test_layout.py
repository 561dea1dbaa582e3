"""Comparisons sorted by user and by item."""

import numpy as np

from sadrec.training.sgd.given import Pairs
from sadrec.training.variational.layout import lay_out


def test_every_comparison_stands_once_with_its_user_and_once_with_each_item():
    rng = np.random.default_rng(0)
    winner = rng.integers(6, size=50)
    pairs = Pairs(rng.integers(4, size=50), winner, (winner + rng.integers(1, 6, size=50)) % 6)
    laid = lay_out(pairs, 5, 7)
    given = zip(pairs.user.tolist(), pairs.winner.tolist(), pairs.loser.tolist(), strict=True)
    assert list(zip(laid.user.tolist(), laid.winner.tolist(), laid.loser.tolist(), strict=True)) == sorted(given)
    np.testing.assert_array_equal(pairs.winner[laid.order], laid.winner)
    np.testing.assert_array_equal(np.repeat(np.arange(5), np.diff(laid.user_start)), laid.user)
    item = np.repeat(np.arange(7), np.diff(laid.item_start))
    assert len(item) == 100
    np.testing.assert_array_equal(np.where(laid.won, laid.winner[laid.row], laid.loser[laid.row]), item)
    np.testing.assert_array_equal(np.where(laid.won, laid.loser[laid.row], laid.winner[laid.row]), laid.other)


def test_equal_comparisons_stand_in_the_order_of_the_last_key():
    same = np.zeros(3, np.int32)
    assert lay_out(Pairs(same, same, same + 1), 1, 2, then=np.array([2.0, 0.5, 1.0])).order.tolist() == [1, 2, 0]
    assert lay_out(Pairs(same, same, same + 1), 1, 2).order.tolist() == [0, 1, 2]


def test_no_comparisons_make_empty_rows():
    none = np.empty(0, np.int32)
    laid = lay_out(Pairs(none, none, none), 2, 3)
    assert (laid.user_start.tolist(), laid.item_start.tolist(), len(laid.row)) == ([0] * 3, [0] * 4, 0)
