"""The data of the sampler: comparisons sorted by user, with a list of those of every item.

Every interaction becomes comparisons with a few items that the user never touched.
"""

import logging
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.random import nth_absent, uniform
from sadrec._core.types import Doubles, Integers, Positions
from sadrec.data import Comparisons, DataWarning, Interactions
from sadrec.posterior.chain import ByItem, ByUser, Clock, stream
from sadrec.training.sgd.given import Pairs, drawn_pairs
from sadrec.training.variational.counts import list_by_item, log_meetings, starts

logger = logging.getLogger("sadrec")

MOST_ROWS = 2**31 - 1
"""Most comparisons, copies included, that the sampler takes."""


@dataclass(frozen=True, eq=False)
class SortedComparisons:
    """Comparisons (user, winner, loser) sorted by user, winner, loser and precision, and the same item by item."""

    users: int
    items: int
    by_user: ByUser
    by_item: ByItem

    def __len__(self) -> int:
        return len(self.by_user.user)

    @cached_property
    def meetings(self) -> Doubles:
        """Of each item log(1 + how many others it met), less the mean."""
        count = np.zeros(self.items, np.int64)
        count_others(self.by_item, count)
        return log_meetings(count)


@kernel
def count_others(data: ByItem, count: Positions) -> None:
    """Count the different items that each item was compared with."""
    last = np.full(count.shape[0], -1)
    for i in range(count.shape[0]):
        for e in range(data.start[i], data.start[i + 1]):
            if last[data.other[e]] != i:
                last[data.other[e]] = i
                count[i] += 1


def as_triples(pairs: Pairs, users: int, items: int) -> SortedComparisons:
    """Lay out comparisons for the sampler.

    A weight of 3 is three copies of a comparison. A fraction f of a comparison is one whose noise has the variance
    1 / f: preferred with probability ``Phi(sqrt(f) x)``, which at x = 0 carries the f-th part of the information of a
    whole one. 2.5 is both: two copies and a half. Weight 0 is no comparison. The weights of equal comparisons are added
    up before.

    >>> triples = as_triples(Pairs(np.array([1, 0]), np.array([0, 2]), np.array([1, 0]), np.array([1.0, 2.5])), 2, 3)
    >>> triples.by_user.user, triples.by_user.root.round(3)
    (array([0, 0, 0, 1], dtype=int32), array([0.707, 1.   , 1.   , 1.   ], dtype=float32))
    """
    rows = np.arange(len(pairs))
    root = np.ones(len(pairs), np.float32)
    if pairs.weight is not None:
        weights = np.asarray(pairs.weight, np.float64)
        if weights.shape != (len(pairs),) or not np.isfinite(weights).all() or weights.min(initial=0) < 0:
            raise ValueError("weights must be one finite number, 0 or more, per comparison")
        if (weights % 1).any():
            keys = (pairs.user.astype(np.int64) * items + pairs.winner) * items + pairs.loser
            _, rows, place = np.unique(keys, return_index=True, return_inverse=True)
            weights = np.bincount(place, weights).astype(np.float64)
        copies = np.floor(weights)
        part = weights - copies
        if copies.sum() + len(pairs) > MOST_ROWS:
            raise ValueError(
                f"the weights add up to {weights.sum():,.0f} comparisons, more than {MOST_ROWS:,}: a weight counts "
                "copies of a comparison, so divide all weights by a common number"
            )
        partial = np.flatnonzero(part)
        rows = np.concatenate((np.repeat(rows, copies.astype(np.int64)), rows[partial]))
        root = np.ones(len(rows), np.float32)
        root[len(rows) - len(partial) :] = np.sqrt(part[partial])
    if len(rows) > MOST_ROWS:
        raise ValueError(f"there are {len(rows):,} comparisons, more than {MOST_ROWS:,}: take a sample of them")
    if pairs.weight is not None:
        pairs = Pairs(pairs.user[rows], pairs.winner[rows], pairs.loser[rows])
    del rows
    order = np.lexsort((root, pairs.loser, pairs.winner, pairs.user))
    user, winner, loser = (side[order].astype(np.int32) for side in (pairs.user, pairs.winner, pairs.loser))
    root = root[order]
    start, row, other, won = list_by_item(winner, loser, items)
    by_user = ByUser(starts(user, users), user, winner, loser, root)
    by_item = ByItem(start, row, user[row], other, np.where(won, root[row], -root[row]))
    return SortedComparisons(users, items, by_user, by_item)


NEGATIVE = 100
"""The stage of these draws, for the key of their stream."""


@kernel
def draw_untouched(
    clock: Clock,
    indptr: NDArray[np.int64],
    indices: Integers,
    items: int,
    negatives: int,
    user: Integers,
    winner: Integers,
    loser: Integers,
) -> int:
    """Write (user, interacted, not interacted) for every interaction, ``negatives`` times; return how many there are.

    A number r below the count of untouched items stands for the r-th of them: no draw is thrown away.
    """
    key = stream(clock, NEGATIVE)
    count = 0
    for u in range(indptr.shape[0] - 1):
        start, stop = indptr[u], indptr[u + 1]
        free = items - (stop - start)
        if free == 0:
            continue
        for e in range(start, stop):
            for turn in range(negatives):
                r = min(int(uniform(key, e * negatives + turn) * free), free - 1)
                user[count] = u
                winner[count] = indices[e]
                loser[count] = nth_absent(indices[start:stop], r)
                count += 1
    return count


def as_pairs(data: Comparisons | Interactions, negatives: int, seed: int) -> Pairs:
    """Return comparisons as they are, or interactions as comparisons.

    Each interaction is compared with ``negatives`` items that the user never touched, drawn uniformly, once for all
    sweeps.
    """
    if isinstance(data, Comparisons):
        if negatives != 1:
            raise ValueError(f"negatives={negatives} is for interactions: leave it out for comparisons")
        if not len(data):
            raise ValueError("there are no comparisons to learn from")
        if data.features is not None:
            raise ValueError("the sampler takes no features of comparisons: read them without features=")
        if data.ties is not None:
            warnings.warn(
                f"{len(data.ties):,} of {len(data):,} comparisons are ties, and left out: SAD() learns how often items "
                "tie; ties='drop' leaves them out and hides this warning",
                DataWarning,
                stacklevel=2,
            )
            data = data.decided
            if not len(data):
                raise ValueError("all comparisons are ties: nothing tells which items are better")
        return Pairs(data.user_index, data.winner_index, data.loser_index, data.weight)
    matrix = data.matrix
    if matrix.nnz * negatives > np.iinfo(np.int32).max:
        raise ValueError(
            f"{matrix.nnz:,} interactions with {negatives} untouched items each are more comparisons than the sampler "
            f"takes, {np.iinfo(np.int32).max:,}: lower negatives or take a part of the users"
        )
    clock, indptr, indices = Clock(seed, 0, 0), matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    pairs = drawn_pairs(draw_untouched, matrix.nnz * negatives, clock, indptr, indices, matrix.shape[1], negatives)
    if not len(pairs):
        raise ValueError("every user has interacted with every item: nothing is preferred to anything")
    if len(pairs) < matrix.nnz * negatives:
        logger.info("some users have interacted with every item and say nothing about what they prefer")
    return pairs
