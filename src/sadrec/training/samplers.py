"""Where given pairs come from: sources that draw their triples anew every epoch.

A source is anything with ``pairs(seed, epoch)``. What it returns may depend on nothing else, so that an epoch can be
repeated bit by bit. A new kind of feedback is a new source.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec.training.given import Pairs
from sadrec.training.random import advance, below, hashed, stream_key


class PairSource(Protocol):
    """Something that yields the given pairs of an epoch."""

    def pairs(self, seed: int, epoch: int) -> Pairs:
        """Return the triples of this epoch."""
        ...


class Stated:
    """Comparisons that people stated: the same triples every epoch."""

    def __init__(self, pairs: Pairs):
        self._pairs = pairs

    def pairs(self, seed: int, epoch: int) -> Pairs:
        """Return all of them."""
        return self._pairs


class Ordered:
    """Pairs from the order inside a user's own ratings (or counts, or times).

    For each of the user's items ``per_item`` partners (on average) are drawn among the items that the same user rated
    differently; the better rated one wins. Users whose ratings are all equal state no order and are left out; a
    user with two unequal ratings gets its share like everybody else.

    Parameters
    ----------
    indptr, indices, ratings
        The user's items and ratings, CSR.
    per_item
        How many pairs start from each item in one epoch, on average.
    """

    def __init__(self, indptr: NDArray[Any], indices: NDArray[Any], ratings: NDArray[np.float32], per_item: float):
        users = len(indptr) - 1
        row = np.repeat(np.arange(users, dtype=np.int32), np.diff(indptr))
        by_rating = np.lexsort((ratings, row))
        self._users = users
        self._indptr = indptr.astype(np.int64)
        self._indices = indices[by_rating].astype(np.int32)
        self._ratings = ratings[by_rating].astype(np.float32)
        self._per_item = per_item

    def pairs(self, seed: int, epoch: int) -> Pairs:
        """Draw this epoch's pairs."""
        most = int(np.ceil(self._per_item)) * len(self._indices)
        user, winner, loser = (np.empty(most, np.int32) for _ in range(3))
        count = draw_ordered(
            self._indptr,
            self._indices,
            self._ratings,
            self._per_item,
            np.uint64(seed),
            epoch,
            user,
            winner,
            loser,
        )
        return Pairs(user[:count], winner[:count], loser[:count])


@kernel
def draw_ordered(
    indptr: Any,
    indices: Any,
    ratings: Any,
    per_item: float,
    seed: Any,
    epoch: int,
    user: Any,
    winner: Any,
    loser: Any,
) -> int:
    """Write the drawn pairs and return how many there are; rows are sorted by rating."""
    count = 0
    whole = int(per_item)
    rest = per_item - whole
    for u in range(indptr.shape[0] - 1):
        lo, hi = indptr[u], indptr[u + 1]
        state = stream_key(seed, epoch, u, 3)
        first = lo
        while first < hi:
            last = first + 1
            while last < hi and ratings[last] == ratings[first]:
                last += 1
            others = (hi - lo) - (last - first)
            if others > 0:
                for t in range(first, last):
                    state = advance(state)
                    extra = 1 if (hashed(state) >> np.uint64(11)) * 2.0**-53 < rest else 0
                    for _ in range(whole + extra):
                        state = advance(state)
                        other = lo + below(hashed(state), others)
                        if other >= first:
                            other += last - first
                        user[count] = u
                        if other > t:
                            winner[count], loser[count] = indices[other], indices[t]
                        else:
                            winner[count], loser[count] = indices[t], indices[other]
                        count += 1
            first = last
    return count
