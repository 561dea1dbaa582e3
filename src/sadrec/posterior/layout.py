"""The arrays that kernels work on, in named groups, and the keys of their random numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._random import _GAMMA, _MIX1, _MIX2, hashed
from sadrec._types import Doubles


class Clock(NamedTuple):
    """When random numbers are drawn: with the stage and the row, this is all they depend on."""

    seed: int
    chain: int
    sweep: int


@kernel
def stream(clock: Clock, stage: int) -> np.uint64:
    """Return the key of the random numbers of one stage of one sweep of one chain."""
    key = hashed(np.uint64(clock.seed) + _GAMMA)
    key = hashed(key ^ (np.uint64(clock.chain) * _MIX1 + _GAMMA))
    key = hashed(key ^ (np.uint64(clock.sweep) * _MIX2 + _GAMMA))
    return hashed(key ^ (np.uint64(stage) * _GAMMA + _MIX1))


_NO_ITEMS: Doubles = np.empty(0)


class State(NamedTuple):
    """Where a chain stands.

    An item bias is a factor whose xi and tau are 1: it is the last column of eta, and the number of columns of tau is
    that of the factors. Its mean is ``bias_centre`` (see bias.py).
    """

    learn: NDArray[np.bool_]  # whether the precisions of xi, eta and tau, and the means of xi, are learnt
    # Precisions of xi and eta, mean and precision of tau (an infinite one holds tau where it is), precision of the bias
    # and slope of its mean.
    prior: Doubles
    mean: Doubles  # of xi, one per factor
    xi: Doubles
    eta: Doubles
    tau: Doubles
    meetings: Doubles = _NO_ITEMS  # what the mean of the bias rises with
    bias_centre: Doubles = _NO_ITEMS


class ByUser(NamedTuple):
    """Comparisons in the order of their users."""

    start: NDArray[np.int64]  # (users + 1): where those of each user begin
    user: NDArray[np.int32]
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    root: NDArray[np.float32]  # the square root of the precision of a comparison: 1 for a whole one


class ByItem(NamedTuple):
    """The same comparisons item by item, two entries for each."""

    start: NDArray[np.int64]  # (items + 1): where the entries of each item begin
    row: NDArray[np.int32]  # of an entry: its comparison,
    user: NDArray[np.int32]  # its user,
    other: NDArray[np.int32]  # the other item,
    sign: NDArray[np.float32]  # and the root of the comparison, with a minus where the item lost
