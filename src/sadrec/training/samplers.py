"""Where given pairs come from: sources that draw their triples anew every epoch.

A source is anything with ``pairs(seed, epoch)``. What it returns may depend on nothing else, so that an epoch can be
repeated bit by bit. A new kind of feedback is a new source.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._random import advance, below, hashed, nth_absent, stream_key
from sadrec.training.given import Pairs, drawn_pairs

Rows = tuple[NDArray[Any], NDArray[Any]]


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
    user with two unequal ratings gets its share like everybody else. The users' items and ratings are given as CSR.
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
        rows = self._indptr, self._indices, self._ratings
        return drawn_pairs(draw_ordered, most, rows, self._per_item, np.uint64(seed), epoch)


@kernel
def draw_ordered(rows: Any, per_item: float, seed: Any, epoch: int, user: Any, winner: Any, loser: Any) -> int:
    """Write the drawn pairs and return how many there are; rows are sorted by rating."""
    indptr, indices, ratings = rows
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


class Disliked:
    """Pairs in which what a user disliked loses: to something they like, and to something they do not know.

    Every epoch draws, for each disliked item, one item that the user likes and one that is unknown to them, and both
    win. Unknown items are never taken for disliked ones. What each user likes, knows (everything they touched) and
    dislikes is given as ``(indptr, indices)`` with sorted rows.
    """

    def __init__(self, liked: Rows, known: Rows, disliked: Rows, items: int):
        self._rows = (liked, known, disliked)
        self._items = items
        self._most = 2 * len(disliked[1])

    def pairs(self, seed: int, epoch: int) -> Pairs:
        """Draw this epoch's pairs."""
        return drawn_pairs(draw_over_disliked, self._most, *self._rows, self._items, np.uint64(seed), epoch)


@kernel
def draw_over_disliked(
    liked: Any, known: Any, disliked: Any, items: int, seed: Any, epoch: int, user: Any, winner: Any, loser: Any
) -> int:
    """Write the drawn pairs and return how many there are."""
    (liked_start, liked_items), (known_start, known_items), (start, disliked_items) = liked, known, disliked
    count = 0
    for u in range(start.shape[0] - 1):
        state = stream_key(seed, epoch, u, 5)
        likes = liked_start[u + 1] - liked_start[u]
        row = known_items[known_start[u] : known_start[u + 1]]
        unknown = items - row.shape[0]
        for t in range(start[u], start[u + 1]):
            if likes > 0:
                state = advance(state)
                user[count], loser[count] = u, disliked_items[t]
                winner[count] = liked_items[liked_start[u] + below(hashed(state), likes)]
                count += 1
            if unknown > 0:
                state = advance(state)
                user[count], loser[count] = u, disliked_items[t]
                winner[count] = nth_absent(row, below(hashed(state), unknown))
                count += 1
    return count


class PopularNegatives:
    """Interacted items against negatives sampled in proportion to their popularity.

    The negatives are sampled first, over the whole catalogue, and the pairs run as given ones: inside a block, the most
    popular items would get a fraction of their weight. What each user touched is given as ``(indptr, indices)`` with
    sorted rows; entries of weight 0 are known but not trained on.
    """

    def __init__(self, known: Rows, weights: NDArray[np.float32] | None, items: int):
        self._known, self._weights, self._items = known, weights, items

    def pairs(self, seed: int, epoch: int) -> Pairs:
        """Sample a negative for every positive."""
        most = len(self._known[1])
        user, winner, loser = (np.empty(most, np.int32) for _ in range(3))
        weight = np.empty(most if self._weights is not None else 0, np.float32)
        count = draw_popular(
            self._known, self._weights, self._items, np.uint64(seed), epoch, user, winner, loser, weight
        )
        return Pairs(user[:count], winner[:count], loser[:count], None if self._weights is None else weight[:count])


# So often a popular item that the user does not know is drawn; after that any unknown item is taken.
_TRIES = 64


@kernel
def draw_popular(
    known: Any, weights: Any, items: int, seed: Any, epoch: int, user: Any, winner: Any, loser: Any, weight: Any
) -> int:
    """Write a pair for every positive and return how many there are; a random interaction's item is a popular one."""
    start, indices = known
    count = 0
    total = indices.shape[0]
    for u in range(start.shape[0] - 1):
        row = indices[start[u] : start[u + 1]]
        unknown = items - row.shape[0]
        if unknown == 0:
            continue
        state = stream_key(seed, epoch, u, 6)
        for t in range(start[u], start[u + 1]):
            if weights is not None:
                if weights[t] == 0:
                    continue
                weight[count] = weights[t]
            negative = -1
            for _ in range(_TRIES):
                state = advance(state)
                drawn = indices[below(hashed(state), total)]
                at = np.searchsorted(row, drawn)
                if at == row.shape[0] or row[at] != drawn:
                    negative = drawn
                    break
            if negative < 0:
                state = advance(state)
                negative = nth_absent(row, below(hashed(state), unknown))
            user[count], winner[count], loser[count] = u, indices[t], negative
            count += 1
    return count
