"""Sources of given pairs, which draw new triples every epoch.

A source is anything with a ``count``, about how many triples an epoch has, and ``pairs(seed, epoch, part, parts)``.
The triples depend on these four numbers alone, so that an epoch can be repeated bit by bit. A new kind of feedback is a
new source. Sources that draw go through the rows of the interactions as they are, without copies. Of n parts, part p
has users p, p + n, p + 2 n, ... (or comparisons); what is drawn for a user does not depend on n.
"""

from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.random import advance, below, hashed, nth_absent, stream_key
from sadrec._core.types import Doubles, Floats, Mask
from sadrec.data._kernels import sort_keys
from sadrec.training.sgd.given import Buffers, Pairs, drawn_pairs
from sadrec.training.sgd.negatives import place_dtype

RowStarts = tuple[NDArray[Any], NDArray[Any]]


class PairSource(Protocol):
    """A source of the given pairs of an epoch."""

    @property
    def count(self) -> int:
        """About how many triples an epoch has."""
        ...

    def pairs(self, seed: int, epoch: int, part: int = 0, parts: int = 1) -> Pairs:
        """Return the triples of this epoch, or one part of them; the next call may overwrite them."""
        ...


MOST_VISITS = 2**33


class Stated:
    """Comparisons that people stated: the same triples every epoch.

    One of weight k comes k times an epoch, and one of weight 2.3 twice or three times, 2.3 times on average.
    """

    def __init__(self, pairs: Pairs):
        self._pairs, self._room = pairs, Buffers()
        if pairs.total > MOST_VISITS:
            raise ValueError(
                f"the weights add up to {pairs.total:.3g} comparisons, and an epoch visits {MOST_VISITS:,} at most: "
                "divide all weights by a common number"
            )
        self.count = ceil(pairs.total)

    def pairs(self, seed: int, epoch: int, part: int = 0, parts: int = 1) -> Pairs:
        """Return this epoch's triples, or one of ``parts`` equal parts of them."""
        pairs = self._pairs
        if pairs.weight is None:
            return pairs if parts == 1 else pairs.every(part, parts, self._room)
        times = np.floor(pairs.weight + np.random.default_rng((seed, epoch, 3)).random(len(pairs)))
        times = (times.astype(np.int64) + (np.arange(len(pairs)) + part) % parts) // parts
        rows = np.repeat(np.arange(len(pairs)), times)
        return Pairs(pairs.user[rows], pairs.winner[rows], pairs.loser[rows])


class Ordered:
    """Pairs from the order inside a user's own ratings (or counts, or times).

    For each of the user's items ``per_item`` partners (on average) are drawn among the items that the same user rated
    differently; the better rated one wins. Users whose ratings are all equal state no order and are left out; a
    user with two unequal ratings gets its share like everybody else. What each user rated is given as
    ``(indptr, indices)`` and the ratings; ``counts`` says which of them are learnt from, None: all.
    """

    def __init__(self, rated: RowStarts, ratings: Floats, per_item: float, counts: Mask | None = None):
        indptr, indices = rated
        longest = int(np.diff(indptr).max(initial=0))
        start = np.zeros(len(indptr), np.int64)
        size = len(indices) if counts is None else int(np.count_nonzero(counts))
        place = np.empty(size, place_dtype(longest, blocks=1))
        sort_rows(indptr, ratings.view(np.int32), counts, start, place, longest)
        self._rows = start, place, indptr, indices, ratings
        self._per_item, self._room = per_item, Buffers()
        self.count = int(per_item * size)

    def pairs(self, seed: int, epoch: int, part: int = 0, parts: int = 1) -> Pairs:
        """Draw this epoch's pairs."""
        start = self._rows[0]
        most = int(np.ceil(self._per_item)) * int(np.sum(start[1 + part :: parts] - start[:-1][part::parts]))
        given = self._rows, self._per_item, np.uint64(seed), epoch, part, parts
        return drawn_pairs(draw_ordered, most, *given, room=self._room)


@kernel
def sort_rows(indptr: Any, bits: Any, counts: Any, start: Any, place: Any, longest: int) -> None:
    """Write, row after row, the places in the row of the entries that count, by rating; and where each row starts.

    ``bits`` are the ratings' bits as whole numbers, which sort as the ratings do; below 0, the other way round.
    """
    keys, spare = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for u in range(indptr.shape[0] - 1):
        lo, size = indptr[u], 0
        for t in range(indptr[u + 1] - lo):
            if counts is None or counts[lo + t]:
                rating = np.int64(bits[lo + t])
                if rating < 0:
                    rating = -(rating & np.int64(0x7FFFFFFF))
                keys[size] = (rating << 32) + t
                size += 1
        sort_keys(keys, spare, size)
        for t in range(size):
            place[start[u] + t] = keys[t] & np.int64(0x7FFFFFFF)
        start[u + 1] = start[u] + size


@kernel
def draw_ordered(
    rows: Any, per_item: float, seed: Any, epoch: int, part: int, parts: int, user: Any, winner: Any, loser: Any
) -> int:
    """Write the drawn pairs and return their number; rows are sorted by rating."""
    start, place, indptr, indices, ratings = rows
    count = 0
    whole = int(per_item)
    rest = per_item - whole
    for u in range(part, start.shape[0] - 1, parts):
        lo, hi = start[u], start[u + 1]
        own, rated = indices[indptr[u] : indptr[u + 1]], ratings[indptr[u] : indptr[u + 1]]
        state = stream_key(seed, epoch, u, 3)
        first = lo
        while first < hi:
            last = first + 1
            while last < hi and rated[place[last]] == rated[place[first]]:
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
                            winner[count], loser[count] = own[place[other]], own[place[t]]
                        else:
                            winner[count], loser[count] = own[place[t]], own[place[other]]
                        count += 1
            first = last
    return count


class Disliked:
    """Pairs in which a disliked item loses: to a liked item, and to an unknown one.

    Every epoch draws, for each disliked item, one item that the user likes and one that is unknown to them, and both
    win. Unknown items are never taken for disliked ones. What each user knows (everything they touched) is given as
    ``(indptr, indices)`` with sorted rows; they like what has a weight above 0, and dislike what has one below.
    """

    def __init__(self, rows: RowStarts, weights: NDArray[Any], items: int):
        self._rows = *rows, weights
        self._items, self._room = items, Buffers()
        self._dislikes = marked(rows[0], weights < 0)
        self.count = 2 * int(self._dislikes.sum())

    def pairs(self, seed: int, epoch: int, part: int = 0, parts: int = 1) -> Pairs:
        """Draw this epoch's pairs."""
        most = 2 * int(self._dislikes[part::parts].sum())
        longest = int(np.diff(self._rows[0]).max(initial=0))
        given = self._rows, longest, self._items, np.uint64(seed), epoch, part, parts
        return drawn_pairs(draw_over_disliked, most, *given, room=self._room)


@kernel
def marked(start: Any, weights: Any) -> Any:
    """Return the number of entries of each row with a weight above 0."""
    counts = np.zeros(start.shape[0] - 1, np.int64)
    for u in range(start.shape[0] - 1):
        for t in range(start[u], start[u + 1]):
            if weights[t] > 0:
                counts[u] += 1
    return counts


@kernel
def draw_over_disliked(
    rows: Any,
    longest: int,
    items: int,
    seed: Any,
    epoch: int,
    part: int,
    parts: int,
    user: Any,
    winner: Any,
    loser: Any,
) -> int:
    """Write the drawn pairs and return their number."""
    indptr, indices, weights = rows
    liked, count = np.empty(longest, np.int32), 0
    for u in range(part, indptr.shape[0] - 1, parts):
        state = stream_key(seed, epoch, u, 5)
        row, weight = indices[indptr[u] : indptr[u + 1]], weights[indptr[u] : indptr[u + 1]]
        unknown = items - row.shape[0]
        likes = 0
        for t in range(row.shape[0]):
            if weight[t] > 0:
                liked[likes] = row[t]
                likes += 1
        for t in range(row.shape[0]):
            if weight[t] >= 0:
                continue
            if likes > 0:
                state = advance(state)
                user[count], loser[count] = u, row[t]
                winner[count] = liked[below(hashed(state), likes)]
                count += 1
            if unknown > 0:
                state = advance(state)
                user[count], loser[count] = u, row[t]
                winner[count] = nth_absent(row, below(hashed(state), unknown))
                count += 1
    return count


def balance(counts: NDArray[Any], power: float) -> Doubles:
    """Return what an interaction of each user weighs: ``counts ** -power``, times what makes their mean 1.

    >>> balance(np.array([1, 4, 0]), 0.5)
    array([1.66666667, 0.83333333, 1.66666667])
    """
    return np.asarray(np.maximum(counts, 1.0) ** -power * balance_scale(counts, power))


def balance_scale(counts: NDArray[Any], power: float) -> float:
    """Return what makes the mean weight of an interaction 1."""
    raw = np.maximum(counts, 1.0) ** -power
    return float(counts.sum() / max(float(counts @ raw), 1e-300)) if counts.any() else 1.0
