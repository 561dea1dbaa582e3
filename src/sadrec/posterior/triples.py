"""From data to what the sampler works on: comparisons sorted by user, with a list of those of every item.

Every interaction becomes comparisons with a few items that the user never touched.
"""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._random import nth_absent, uniform
from sadrec.data import Comparisons, Interactions
from sadrec.posterior.layout import ByItem, ByUser, Clock, stream

logger = logging.getLogger("sadrec")

MOST_ROWS = 2**31 - 1
"""Most comparisons, copies included, that the sampler takes."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Comparisons (user, winner, loser) in the order of the user, and the same by item.

    Attributes
    ----------
    users, items
        How many there are.
    by_user
        Sorted by user, winner, loser and precision.
    by_item
        The same, item by item.
    """

    users: int
    items: int
    by_user: ByUser
    by_item: ByItem

    def __len__(self) -> int:
        return len(self.by_user.user)


def as_triples(
    user: NDArray[Any], winner: NDArray[Any], loser: NDArray[Any], users: int, items: int, weight: Any = None
) -> Triples:
    """Lay out comparisons for the sampler.

    A weight of 3 is three copies of a comparison. A fraction f of a comparison is one whose noise has the variance
    1 / f: preferred with probability ``Phi(sqrt(f) x)``, which at x = 0 carries the f-th part of the information of a
    whole one. 2.5 is both: two copies and a half. Weight 0 is no comparison.

    Parameters
    ----------
    user, winner, loser
        Rows, one per comparison.
    users, items
        How many there are.
    weight
        One number per comparison, finite and not negative, or None: all ones.

    Examples
    --------
    >>> triples = as_triples(np.array([1, 0]), np.array([0, 2]), np.array([1, 0]), 2, 3, np.array([1.0, 2.5]))
    >>> triples.by_user.user, triples.by_user.root.round(3)
    (array([0, 0, 0, 1], dtype=int32), array([0.707, 1.   , 1.   , 1.   ], dtype=float32))
    """
    rows = np.arange(len(user))
    root = np.ones(len(user), np.float32)
    if weight is not None:
        weights = np.asarray(weight, np.float64)
        if weights.shape != (len(user),) or not np.isfinite(weights).all() or weights.min(initial=0) < 0:
            raise ValueError("weights must be one finite number, 0 or more, per comparison")
        copies = np.floor(weights)
        part = weights - copies
        if copies.sum() + len(user) > MOST_ROWS:
            raise ValueError(
                f"the weights add up to {weights.sum():,.0f} comparisons, more than {MOST_ROWS:,}: a weight counts "
                "copies of a comparison, so divide all weights by a common number"
            )
        partial = np.flatnonzero(part)
        rows = np.concatenate((np.repeat(rows, copies.astype(np.int64)), partial))
        root = np.ones(len(rows), np.float32)
        root[len(rows) - len(partial) :] = np.sqrt(part[partial])
    if len(rows) > MOST_ROWS:
        raise ValueError(f"there are {len(rows):,} comparisons, more than {MOST_ROWS:,}: take a sample of them")
    columns = [np.asarray(column)[rows] for column in (user, winner, loser)]
    order = np.lexsort((root, columns[2], columns[1], columns[0]))
    sorted_user, sorted_winner, sorted_loser = (column[order].astype(np.int32) for column in columns)
    root = root[order]
    both = np.concatenate((sorted_winner, sorted_loser))
    by_item = np.argsort(both, kind="stable")
    row = (by_item % len(order)).astype(np.int32) if len(order) else np.empty(0, np.int32)
    won = by_item < len(order)
    by_user = ByUser(starts(sorted_user, users), sorted_user, sorted_winner, sorted_loser, root)
    other = np.where(won, sorted_loser[row], sorted_winner[row]).astype(np.int32)
    by_entry = ByItem(
        starts(both[by_item], items),
        row,
        sorted_user[row],
        other,
        np.where(won, root[row], -root[row]).astype(np.float32),
    )
    return Triples(users, items, by_user, by_entry)


def starts(rows: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return where the entries of each of ``count`` rows begin among sorted rows, and where the last ones end."""
    return np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)


NEGATIVE = 100
"""The stage of these draws, for the key of their stream."""

Integers = NDArray[np.int32]


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


def as_pairs(data: Comparisons | Interactions, negatives: int, seed: int) -> tuple[Integers, Integers, Integers, Any]:
    """Return user, winner, loser and weight (or None) of what is to be learnt from.

    Parameters
    ----------
    data
        Comparisons are taken as they are; every interaction becomes comparisons with ``negatives`` items that the user
        never touched, drawn uniformly, once for all sweeps.
    negatives, seed
        How many, and the seed of the draw.
    """
    if isinstance(data, Comparisons):
        if not len(data):
            raise ValueError("there are no comparisons to learn from")
        return data.user_index, data.winner_index, data.loser_index, data.weight
    matrix = data.matrix
    if matrix.nnz * negatives > np.iinfo(np.int32).max:
        raise ValueError(
            f"{matrix.nnz:,} interactions with {negatives} untouched items each are more comparisons than the sampler "
            f"takes, {np.iinfo(np.int32).max:,}: lower negatives or take a part of the users"
        )
    columns = [np.empty(matrix.nnz * negatives, np.int32) for _ in range(3)]
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    count = draw_untouched(Clock(seed, 0, 0), indptr, indices, matrix.shape[1], negatives, *columns)
    if count == 0:
        raise ValueError("every user has interacted with every item: nothing is preferred to anything")
    if count < matrix.nnz * negatives:
        logger.info("some users have interacted with every item and say nothing about what they prefer")
    user, winner, loser = (column[:count] for column in columns)
    return user, winner, loser, None
