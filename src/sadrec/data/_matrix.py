"""Sparse matrices in the one form the package keeps: CSR, float32, sorted, no repeated entries."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec.data._assemble import check_ratings

_INT32_MAX = np.iinfo(np.int32).max


def make(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> Any:
    """Join arrays that are canonical already."""
    matrix = sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def canonical(matrix: Any, *, allow_negative: bool = False) -> Any:
    """Copy a matrix of any kind into our form; stored zeros stay, repeated entries are summed."""
    if not sp.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        raise ValueError(f"a users x items matrix is needed, not an array of shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"the matrix must hold numbers, not {matrix.dtype}")
    if not sp.issparse(matrix):
        matrix = sp.coo_matrix(matrix)
    result = sp.csr_matrix(matrix, dtype=np.float32, copy=True)
    result.sum_duplicates()
    if result.nnz == 0:
        raise ValueError(f"the matrix of shape {result.shape} has no entries")
    _check(result, allow_negative=allow_negative)
    # scipy keeps 64-bit indices that came in, even where 32 bits do.
    narrow = np.int32 if max(result.nnz, *result.shape) <= _INT32_MAX else np.int64
    return make(result.data, result.indices.astype(narrow), result.indptr.astype(narrow), result.shape)


def _check(matrix: Any, *, allow_negative: bool) -> None:
    try:
        check_ratings(matrix.data, allow_negative=allow_negative)
    except ValueError:
        wrong = ~np.isfinite(matrix.data)
        if not wrong.any():
            wrong = matrix.data < 0
        entry = int(wrong.argmax())
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        value, column = matrix.data[entry], int(matrix.indices[entry])
        remedy = (
            "every stored entry counts as something the user chose, so leave out what was disliked or "
            "rescale; allow_negative=True keeps negative values as they are"
        )
        if not np.isfinite(value):
            remedy = "entries must be finite; leave out what is unknown"
        raise ValueError(f"the matrix holds {value:g} at row {row}, column {column}: {remedy}") from None


def masked(matrix: Any, mask: NDArray[np.bool_]) -> Any:
    """Keep the stored entries of a mask; the shape stays."""
    before = np.zeros(len(mask) + 1, dtype=matrix.indptr.dtype)
    np.cumsum(mask, out=before[1:])
    return make(matrix.data[mask], matrix.indices[mask], before[matrix.indptr], matrix.shape)


def compressed(matrix: Any, rows: NDArray[Any], columns: NDArray[Any]) -> Any:
    """Keep rows and columns (ascending) of a matrix whose other rows and columns are empty."""
    place = np.zeros(matrix.shape[1], dtype=matrix.indices.dtype)
    place[columns] = np.arange(len(columns))
    indptr = np.concatenate([matrix.indptr[rows], matrix.indptr[-1:]])
    return make(matrix.data.copy(), place[matrix.indices], indptr, (len(rows), len(columns)))
