"""Counted comparisons, and the entries of every item."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.moments import pairing_keys
from sadrec._core.types import Doubles, Positions
from sadrec.training.sgd.given import Pairs


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


@kernel
def list_by_item(first: Any, second: Any, items: int) -> tuple[Any, Any, Any, Any]:
    """Return, item by item, the comparisons in which the item comes first, and then those in which it comes second.

    Returned are where the entries of each item begin (items + 1), and of each entry the comparison, the other item, and
    whether the item comes first in it.
    """
    start, row = np.zeros(items + 1, np.int64), np.empty(2 * first.shape[0], np.int32)
    other, is_first = np.empty(2 * first.shape[0], np.int32), np.empty(2 * first.shape[0], np.bool_)
    end = start[1:]
    for side in (first, second):
        for t in range(side.shape[0]):
            if side[t] + 1 < items:
                end[side[t] + 1] += 1
    for i in range(1, items):
        end[i] += end[i - 1]
    for side, others, comes_first in ((first, second, True), (second, first, False)):
        for t in range(side.shape[0]):
            place = end[side[t]]
            row[place], other[place], is_first[place] = t, others[t], comes_first
            end[side[t]] += 1
    return start, row, other, is_first


def log_meetings(count: NDArray[Any]) -> Doubles:
    """Return log(1 + how many others it met) of every item, less the mean over items that met any.

    An item that nobody compared has the least of all.

    >>> log_meetings(np.array([1, 3, 0])).round(2)
    array([-0.35,  0.35, -0.35])
    """
    met = count > 0
    logarithm = np.log1p(np.maximum(count, count[met].min()))
    return np.asarray(logarithm - logarithm[met].mean())


def starts(rows: NDArray[Any], count: int) -> Positions:
    """Return where the entries of each of ``count`` rows begin among sorted rows, and where the last ones end."""
    return np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)
