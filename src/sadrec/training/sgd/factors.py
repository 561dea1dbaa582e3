"""The parameters in the layout of training: an item's eta and tau adjacent in memory."""

from typing import NamedTuple

import numpy as np

from sadrec._core.types import Floats

CACHE_LINE = 64
_CHUNK = 1 << 14  # rows that are drawn at a time and not kept


class Factors(NamedTuple):
    """Parameters in the layout of the kernels; training changes the arrays in place."""

    users: Floats  # xi, (n, k)
    items: Floats  # eta | tau, (m, 2k); without learnt rivals (BPR) eta alone, (m, k)
    bias: Floats | None  # (m,)

    @property
    def k(self) -> int:
        """The number of factors."""
        return int(self.users.shape[1])

    @property
    def eta(self) -> Floats:
        """A view of the items' factors, (m, k)."""
        return self.items[:, : self.k]

    @property
    def tau(self) -> Floats | None:
        """A view of the rivals' factors, (m, k); None for BPR."""
        return self.items[:, self.k :] if self.items.shape[1] > self.k else None

    @property
    def arrays(self) -> list[Floats]:
        """The arrays, without a bias that is None."""
        return [self.users, self.items] + ([] if self.bias is None else [self.bias])

    def copy(self) -> "Factors":
        """Return a copy that training will not change."""
        return Factors(self.users.copy(), self.items.copy(), None if self.bias is None else self.bias.copy())

    def assign(self, other: "Factors") -> None:
        """Copy the values of ``other``, in place."""
        self.users[:] = other.users
        self.items[:] = other.items
        if self.bias is not None and other.bias is not None:
            self.bias[:] = other.bias

    def finite(self) -> bool:
        """Whether every parameter is a finite number."""
        # A sum is finite unless a term is not (or it overflows, which is divergence too), and needs no array of flags.
        with np.errstate(all="ignore"):
            return all(bool(np.isfinite(np.add.reduce(array, axis=None, dtype=np.float64))) for array in self.arrays)


def aligned(rows: int, columns: int) -> Floats:
    """Return an empty array that starts where a line of the cache does: a vector across two lines takes longer."""
    size = rows * columns * 4
    memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size].view(np.float32).reshape(rows, columns)


def initial_factors(users: int, items: int, k: int, scale: float, learn_rivals: bool, bias: bool, seed: int) -> Factors:
    """Draw small factors from N(0, scale), put T at exactly 1 and the bias at 0."""
    everybody, everything = slice(0, users), slice(0, items)
    return initial_rows((users, items), k, scale, learn_rivals, bias, seed, everybody, everything)


def initial_rows(
    shape: tuple[int, int],
    k: int,
    scale: float,
    learn_rivals: bool,
    bias: bool,
    seed: int,
    users: slice,
    items: slice,
) -> Factors:
    """Return some rows of :func:`initial_factors`, without keeping the others.

    >>> whole, part = initial_factors(9, 4, 2, 0.1, True, False, 7), slice(3, 5)
    >>> np.array_equal(initial_rows((9, 4), 2, 0.1, True, False, 7, part, part).users, whole.users[part])
    True
    """
    rng = np.random.default_rng((seed, 0xFAC))
    xi = _drawn_rows(rng, shape[0], aligned(users.stop - users.start, k), users)
    xi *= np.float32(scale)
    rows = aligned(items.stop - items.start, 2 * k if learn_rivals else k)
    eta = _drawn_rows(rng, shape[1], np.empty((len(rows), k), np.float32), items)
    eta *= np.float32(scale)
    rows[:, :k] = eta
    rows[:, k:] = 1
    return Factors(xi, rows, np.zeros(len(rows), np.float32) if bias else None)


def _drawn_rows(rng: np.random.Generator, count: int, kept: Floats, wanted: slice) -> Floats:
    """Draw this number of rows, and keep those that are wanted."""
    columns = kept.shape[1]
    for first in range(0, wanted.start, _CHUNK):
        rng.standard_normal((min(_CHUNK, wanted.start - first), columns), np.float32)
    rng.standard_normal(dtype=np.float32, out=kept)
    for first in range(wanted.stop, count, _CHUNK):
        rng.standard_normal((min(_CHUNK, count - first), columns), np.float32)
    return kept
