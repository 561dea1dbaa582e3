r"""The spectrum of interactions: where a fit starts, and how many factors the data supports.

With X the matrix of interactions, n the interactions of each user and c those of each item, the singular value
decomposition :math:`D_n^{-1/2} X D_c^{-1/2} \approx U S V^T` shows who likes things alike before anything is trained.
A fit starts from :math:`\xi = U S^{1/2}`, :math:`\eta = V S^{1/2}`, put to the length, and half the logarithm of
popularity as the bias. Since :math:`U S^{1/2} = D_n^{-1/2} X D_c^{-1/2} V S^{-1/2}`, the row of a user follows from
the items and what this user chose: workers of a cluster make the same rows as one machine.

Singular values are computed by randomised power iteration (Halko, Martinsson & Tropp, 2011). The number of factors is
that of parallel analysis (Horn, 1965): the singular values above those of a matrix in which chance decides who chose
what.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.linear import blas_threads
from sadrec._core.types import Doubles, Floats
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.samplers import marked

MOST_ENTRIES = 2_000_000
"""The largest number of interactions in the sample, those of random users."""
FEWEST_FACTORS, MOST_FACTORS = 64, 384
_STEP = 16  # the number of factors is a multiple: vectors fill whole lines of the cache
_ROUNDS, _SPARE = 2, 10  # power iterations, and columns beyond those that are wanted
_LEAST = 1e-3  # of the largest singular value: what is smaller is rounding
_OF_CHANCE, _WIDTH = 17, 64  # which value of a shuffled matrix counts, and how many are computed to know it well
_ROWS = 1 << 14  # users whose vectors are made at a time


class Spectrum(NamedTuple):
    """Right singular vectors and singular values, and how many users chose each item."""

    vectors: Floats  # (items, k)
    values: Doubles  # (k,), the largest first
    counts: NDArray[np.int64]


def sample_users(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return the users in the sample, by their numbers of items: all users if these are few enough."""
    if lengths.sum() <= MOST_ENTRIES:
        return np.flatnonzero(lengths)
    order = np.random.default_rng(0).permutation(len(lengths))
    kept = order[: np.searchsorted(np.cumsum(lengths[order]), MOST_ENTRIES)]
    return np.sort(kept[lengths[kept] > 0])


def choices(indptr: Any, indices: Any, weights: Any, items: int) -> Any:
    """Return a matrix with 1 for every item that a user chose: one of a weight above 0."""
    if weights is not None:
        indptr, indices = np.concatenate([[0], np.cumsum(marked(indptr, weights))]), indices[weights > 0]
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(indptr) - 1, items))


def decompose(chosen: Any, count: int) -> Spectrum:
    """Return the largest singular values of the degree-normalised matrix and their vectors.

    >>> groups = sp.csr_matrix(np.kron(np.eye(3), np.ones((4, 5))))
    >>> decompose(groups, 5).values.round(3)
    array([1., 1., 1.])
    """
    counts = np.bincount(chosen.indices, minlength=chosen.shape[1])
    lengths = np.diff(chosen.indptr)
    values = np.repeat(np.maximum(lengths, 1) ** -0.5, lengths) * np.maximum(counts, 1)[chosen.indices] ** -0.5
    normal = sp.csr_matrix((values.astype(np.float32), chosen.indices, chosen.indptr), chosen.shape)
    transposed = normal.T.tocsr()
    width = min(count + _SPARE, *chosen.shape)
    basis = np.random.default_rng(0).standard_normal((chosen.shape[1], width), np.float32)
    with blas_threads(1):
        for _ in range(_ROUNDS):
            basis = _orthonormal(transposed @ (normal @ basis))
        squares, turned = _eigen(normal @ basis)
        keep = squares > _LEAST**2 * max(squares.max(initial=0), 1e-300)
        keep[count:] = False
        vectors = basis @ turned[:, keep].astype(np.float32)
    return Spectrum(vectors, np.sqrt(squares[keep]), counts)


def _eigen(block: Floats) -> tuple[Doubles, Doubles]:
    """Return the squares of the singular values of a block of columns, the largest first, and how to turn it."""
    squares, turned = np.linalg.eigh((block.T @ block).astype(np.float64))
    return np.maximum(squares[::-1], 0), turned[:, ::-1]


def _orthonormal(block: Floats) -> Floats:
    """Return orthonormal columns that span what the block spans."""
    squares, turned = _eigen(block)
    keep = squares > 1e-7 * max(squares.max(initial=0), 1e-300)
    return np.asarray(block @ (turned[:, keep] / np.sqrt(squares[keep])).astype(np.float32))


def factors_above_chance(chosen: Any) -> int:
    """Return the number of factors: singular values above those of shuffled data.

    Chance: every user chooses as many items, every item is chosen by as many users, nothing else is fixed. The
    17th value is taken, as the first few belong to users and items with next to nothing.
    """
    counts = np.bincount(chosen.indices, minlength=chosen.shape[1])
    users = np.repeat(np.arange(chosen.shape[0]), np.diff(chosen.indptr))
    users = np.random.default_rng(1).permutation(users)
    entries = np.ones(chosen.nnz, np.float32), (users, np.repeat(np.arange(chosen.shape[1]), counts))
    shuffled = sp.csr_matrix(entries, chosen.shape)  # what is drawn twice counts once
    of_chance = decompose(shuffled, _WIDTH).values
    if not len(of_chance):
        return FEWEST_FACTORS
    above = decompose(chosen, MOST_FACTORS).values > of_chance[min(_OF_CHANCE, len(of_chance)) - 1]
    wanted = -(-int(np.count_nonzero(above)) // _STEP) * _STEP
    return min(max(wanted, FEWEST_FACTORS), MOST_FACTORS)


def start_items(factors: Factors, spectrum: Spectrum, items: slice, length: float) -> None:
    """Write the first factors of some items: T is 1, and items that nobody chose are 0."""
    vectors, counts = spectrum.vectors[items] * np.sqrt(spectrum.values).astype(np.float32), spectrum.counts
    k = min(factors.k, vectors.shape[1])
    factors.eta[:, :k] = _of_length(vectors[:, :k], length)
    if factors.bias is not None:
        factors.bias[:] = 0.5 * np.log(np.maximum(counts[items], 0.5) / max(counts.mean(), 0.5))


def start_users(users: Floats, spectrum: Spectrum, rows: tuple[Any, Any, Any], length: float) -> None:
    """Write the first vectors of users from the CSR of their choices, with weights; users without choices are 0."""
    indptr, indices, weights = rows
    scale = np.maximum(spectrum.counts, 1)[:, None] ** -0.5 / np.sqrt(spectrum.values)
    k = min(users.shape[1], len(spectrum.values))
    towards = (spectrum.vectors * scale.astype(np.float32))[:, :k]
    for first in range(0, len(users), _ROWS):
        starts = indptr[first : first + _ROWS + 1]
        part = slice(starts[0], starts[-1])
        chosen = choices(starts - starts[0], indices[part], None if weights is None else weights[part], len(towards))
        users[first : first + _ROWS, :k] = _of_length(chosen @ towards, length)


def _of_length(rows: Floats, length: float) -> Floats:
    """Return rows scaled to a length (1 if the length is free); rows of zeros stay."""
    sizes = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(rows * (np.float32(length or 1.0) / np.where(sizes > 0, sizes, 1)))
