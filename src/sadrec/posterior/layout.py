"""The arrays that kernels work on, in named groups."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Clock(NamedTuple):
    """When random numbers are drawn: with the stage and the row, this is all they depend on."""

    seed: int
    chain: int
    sweep: int


class State(NamedTuple):
    """Where a chain stands.

    ``prior`` holds the precision of xi, the precision of eta, the mean and the precision of tau; an infinite precision
    of tau holds tau where it is. ``mean`` holds the means of xi, one per factor. ``learn`` says what of it is learnt:
    the precisions of xi, eta and tau, and the means.
    """

    learn: NDArray[np.bool_]
    prior: Floats
    mean: Floats
    xi: Floats
    eta: Floats
    tau: Floats


class ByUser(NamedTuple):
    """Comparisons in the order of their users.

    ``start`` says where those of each user begin, (users + 1). ``root`` is the square root of the precision of a
    comparison: 1 for a whole one.
    """

    start: NDArray[np.int64]
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    root: NDArray[np.float32]


class ByItem(NamedTuple):
    """The same comparisons item by item, two entries for each.

    ``start`` says where the entries of each item begin, (items + 1); an entry names the comparison, its user and the
    other item; ``sign`` is the root of the comparison, with a minus where the item lost.
    """

    start: NDArray[np.int64]
    row: NDArray[np.int32]
    user: NDArray[np.int32]
    other: NDArray[np.int32]
    sign: NDArray[np.float32]
