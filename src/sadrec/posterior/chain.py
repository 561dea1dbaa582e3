"""What the kernels of a chain work on: its state, the comparisons, and the keys of its random numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.random import _GAMMA, _MIX1, _MIX2, hashed
from sadrec._core.types import Doubles, Integers


class Clock(NamedTuple):
    """One sweep of one chain. A random number depends on it, its stage and its position in the stream of the stage."""

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
USER_PRECISION, ITEM_PRECISION, RIVAL_MEAN, RIVAL_PRECISION, BIAS_PRECISION, BIAS_SLOPE = range(6)
"""Places in ``ChainState.prior``. An infinite RIVAL_PRECISION holds tau where it is."""


class ChainState(NamedTuple):
    """The state of a chain for kernels.

    An item bias is a factor whose xi and tau are 1: it is the last column of eta, and the number of columns of tau is
    that of the factors. Its mean is ``bias_centre`` (see prior.py).
    """

    learn: NDArray[np.bool_]  # whether the precisions of xi, eta and tau, and the means of xi, are learnt
    prior: Doubles  # by USER_PRECISION, ...
    mean: Doubles  # of xi, one per factor
    xi: Doubles
    eta: Doubles
    tau: Doubles
    meetings: Doubles = _NO_ITEMS  # per item, see log_meetings: the slope times this is the mean of the bias
    bias_centre: Doubles = _NO_ITEMS


class ByUser(NamedTuple):
    """Comparisons in the order of their users."""

    start: NDArray[np.int64]  # (users + 1): where those of each user begin
    user: Integers
    winner: Integers
    loser: Integers
    root: NDArray[np.float32]  # the square root of the precision of a comparison: 1 for a whole one


class ByItem(NamedTuple):
    """The same comparisons item by item, two entries for each."""

    start: NDArray[np.int64]  # (items + 1): where the entries of each item begin
    row: Integers  # of an entry: its comparison,
    user: Integers  # its user,
    other: Integers  # the other item,
    sign: NDArray[np.float32]  # and the root of the comparison, with a minus where the item lost
