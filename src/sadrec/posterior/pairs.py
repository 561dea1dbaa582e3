"""From interactions to comparisons: each interacted item won over a few that the user never touched."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._random import nth_absent, uniform
from sadrec.data import Comparisons, Interactions
from sadrec.posterior.layout import Clock, stream

logger = logging.getLogger("sadrec")

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
