"""Comparisons in the two orders that solvers go through them in: user by user, and item by item."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.moments import pairing_keys
from sadrec._core.types import Doubles, Positions
from sadrec.training.sgd.given import Pairs


class Layout(NamedTuple):
    """Comparisons sorted by user, winner and loser; and two entries for each, sorted by item."""

    order: Positions  # where each comparison was before it was sorted
    user_start: Positions  # (users + 1): where the comparisons of each user begin
    user: NDArray[np.int32]
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    item_start: Positions  # (items + 1): where the entries of each item begin
    row: NDArray[np.int32]  # of an entry: its comparison,
    other: NDArray[np.int32]  # the other item,
    won: NDArray[np.bool_]  # and whether the item won


class Counts(NamedTuple):
    """Counted comparisons: one row for each user and pair of items, sorted by user, item and rival."""

    user: NDArray[np.int32]
    item: NDArray[np.int32]  # of lower position than its rival
    rival: NDArray[np.int32]
    weight: Doubles  # how often the user compared the two
    wins: Doubles  # how often the item won
    features: Doubles | None = None  # in favour of the item, (rows, features); rows differ where these do


def count(pairs: Pairs, items: int) -> Counts:
    """Count equal comparisons: a comparison of weight k is k comparisons, and one of weight 0 is none.

    >>> pairs = Pairs(*(np.array(side, np.int32) for side in ([0, 0, 0], [1, 0, 1], [0, 1, 2])))
    >>> [side.tolist() for side in count(pairs, items=3)[:5]]
    [[0, 0], [0, 1], [1, 2], [2.0, 1.0], [1.0, 1.0]]
    """
    keys = pairs.user.astype(np.int64) * items**2 + pairing_keys(pairs.winner, pairs.loser, items)
    keys, row = np.unique(keys, return_inverse=True)
    lower, features = pairs.winner < pairs.loser, None
    if pairs.features is not None:
        values, value = np.unique(np.where(lower, 1, -1)[:, None] * pairs.features, axis=0, return_inverse=True)
        both, row = np.unique(row * len(values) + value.ravel(), return_inverse=True)
        keys, features = keys[both // len(values)], values[both % len(values)].astype(np.float64)
    weight = np.bincount(row, pairs.weight, len(keys))
    wins = np.bincount(row[lower], None if pairs.weight is None else pairs.weight[lower], len(keys))
    counted = weight > 0
    user, pairing = np.divmod(keys[counted], items**2)
    user, item, rival = (side.astype(np.int32) for side in (user, *np.divmod(pairing, items)))
    features = None if features is None else features[counted]
    return Counts(user, item, rival, weight[counted].astype(np.float64), wins[counted].astype(np.float64), features)


def lay_out(pairs: Pairs, users: int, items: int, then: Any = None) -> Layout:
    """Sort comparisons; equal ones by ``then``, or as they come."""
    order, user, winner, loser = sort_by_user(pairs, then)
    start, row = np.zeros(items + 1, np.int64), np.empty(2 * len(order), np.int32)
    other, won = np.empty(2 * len(order), np.int32), np.empty(2 * len(order), np.bool_)
    list_by_item(winner, loser, start[1:], row, other, won)
    return Layout(order, starts(user, users), user, winner, loser, start, row, other, won)


def sort_by_user(
    pairs: Pairs, then: Any = None
) -> tuple[Positions, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return where comparisons were before they are sorted by user, winner and loser, and these three, sorted."""
    keys = pairs.loser, pairs.winner, pairs.user
    order = np.lexsort(keys if then is None else (then, *keys))
    loser, winner, user = (np.ascontiguousarray(key[order], np.int32) for key in keys)
    return order, user, winner, loser


@kernel
def list_by_item(winner: Any, loser: Any, end: Any, row: Any, other: Any, won: Any) -> None:
    """Write the comparisons of each item, those that it won before those that it lost, and where each item's end.

    ``end`` holds nothing but zeros before. The other item and whether the item won are left out where there is no room.
    """
    for side in (winner, loser):
        for t in range(side.shape[0]):
            if side[t] + 1 < end.shape[0]:
                end[side[t] + 1] += 1
    for i in range(1, end.shape[0]):
        end[i] += end[i - 1]
    for side, others, wins in ((winner, loser, True), (loser, winner, False)):
        for t in range(side.shape[0]):
            place = end[side[t]]
            row[place] = t
            if other.shape[0]:
                other[place], won[place] = others[t], wins
            end[side[t]] += 1


def log_meetings(count: NDArray[Any]) -> Doubles:
    """Return of every item the logarithm of 1 + how many others it met, less the mean; unknown ones have the least.

    What nobody compared is taken for something that was hardly ever compared.

    >>> log_meetings(np.array([1, 3, 0])).round(2)
    array([-0.35,  0.35, -0.35])
    """
    met = count > 0
    logarithm = np.log1p(np.maximum(count, count[met].min()))
    return np.asarray(logarithm - logarithm[met].mean())


def starts(rows: NDArray[Any], count: int) -> Positions:
    """Return where the entries of each of ``count`` rows begin among sorted rows, and where the last ones end."""
    return np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)
