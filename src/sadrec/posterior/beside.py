"""What the margins of single pairings add to the preferences of draws (see pairings.py). Items are rows.

Of two items that nobody compared, a draw knows only the scale: their margin is a draw of ``N(0, scale^2)``, the same
whenever it is asked for, or averaged over where a mean is wanted.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sadrec._kernel import kernel
from sadrec._moments import pairing_keys
from sadrec._random import normal
from sadrec._types import Doubles, Floats, Positions
from sadrec.posterior.layout import Clock, stream

NEVER, NOTHING = -1, -2
"""Places of pairings that nobody compared, and of pairs that have no margin: an item and itself."""
UNSEEN = 14
"""The stage that draws the margins of items that nobody compared, for the key of its stream."""


class Beside(NamedTuple):
    """Where the pairings of some pairs of items stand, and which way round."""

    place: Positions
    sign: NDArray[np.int64]
    key: NDArray[np.int64]  # of the pairing


def beside(keys: NDArray[np.int64] | None, item: Positions, rival: Positions, items: int, known: bool) -> Beside:
    """Look pairs of items up among the keys of the pairings; without ``known``, as if nobody had compared the two."""
    sign = np.sign(rival - item)
    if keys is None:
        return Beside(np.full(item.shape, NOTHING), sign, sign)
    asked = pairing_keys(item, rival, items)
    place = np.searchsorted(keys, asked)
    found = (keys[np.minimum(place, len(keys) - 1)] == asked) & known
    return Beside(np.where(sign == 0, NOTHING, np.where(found, place, NEVER)), sign, asked)


def mean_over(keys: NDArray[np.int64], items: Positions, count: int) -> tuple[Positions, csr_array]:
    """Return which pairings are of two of some items, and the matrix that turns their margins into mean margins.

    It has a row per item; items that nobody compared have the margin 0, and so has an item and itself.
    """
    where = np.full(count, -1)
    where[items] = np.arange(len(items))
    one, other = where[keys // count], where[keys % count]
    among = np.flatnonzero((one >= 0) & (other >= 0))
    share = np.repeat([1.0, -1.0], len(among)) / max(1, len(items))
    rows, columns = np.concatenate((one[among], other[among])), np.tile(np.arange(len(among)), 2)
    return among, csr_array((share, (rows, columns)), shape=(len(items), len(among)))


@kernel
def add_margins(x: Doubles, pairs: Beside, margin: Floats, scale: Floats, first: int) -> None:
    """Add the margins of pairings to preferences, (draws, pairs); ``first`` is the number of the first draw."""
    for d in range(x.shape[0]):
        key = stream(Clock(0, 0, first + d), UNSEEN)
        for p in range(x.shape[1]):
            place = pairs.place[p]
            if place >= 0:
                x[d, p] += pairs.sign[p] * np.float64(margin[d, place])
            elif place == NEVER:
                x[d, p] += pairs.sign[p] * np.float64(scale[d]) * normal(key, pairs.key[p])
