"""Sparse matrices in canonical form: CSR, float32, sorted rows, no repeated entries."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.sparse import as_csr
from sadrec.data.ids import IdArray, Ids

_INT32_MAX = np.iinfo(np.int32).max
_NO_ENTRIES: tuple[Any, ...] = tuple(np.empty(0, dtype) for dtype in (np.int32, np.float32, bool, bool))


def make(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> Any:
    """Join arrays that are canonical already."""
    matrix = sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def canonical(matrix: Any, *, allow_negative: bool = False) -> Any:
    """Copy a matrix of any kind into canonical form; stored zeros stay, repeated entries are summed."""
    result = as_csr(matrix, dtype=np.float32)
    if result.nnz == 0:
        raise ValueError(f"the matrix of shape {result.shape} has no entries")
    if not allow_negative and result.data.min() < 0:
        entry = int((result.data < 0).argmax())
        row = int(np.searchsorted(result.indptr, entry, side="right")) - 1
        raise ValueError(
            f"the matrix holds {result.data[entry]:g} at row {row}, column {result.indices[entry]}: every stored entry "
            "counts as something the user chose, so leave out what was disliked or rescale; allow_negative=True keeps "
            "negative values as they are"
        )
    # scipy keeps 64-bit indices that came in, even where 32 bits do.
    narrow = np.int32 if max(result.nnz, *result.shape) <= _INT32_MAX else np.int64
    copies = result.data.copy(), result.indices.astype(narrow), result.indptr.astype(narrow)
    return make(*copies, result.shape)


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


def join_ids(first: IdArray | None, *others: IdArray) -> IdArray:
    """Return the first ids followed by the new ones among the others, in order of appearance."""
    result = first
    for ids in others:
        if result is None:
            result = ids
        elif not np.array_equal(result, ids):
            if result.dtype.kind != ids.dtype.kind and len(result) and len(ids):
                raise TypeError(
                    f"ids of two kinds meet, {result[0].item()!r} and {ids[0].item()!r}: convert one side first"
                )
            new = ids[~np.isin(ids, result)]
            result = np.concatenate((result, new)) if len(new) else result
    if result is None:
        raise ValueError("there is no data to learn from")
    return result


def align_ids(data: Any, users: Ids, items: Ids, values: NDArray[Any] | None = None) -> Any:
    """Return the matrix of interactions with the rows and columns that these ids give it, perhaps with other values."""
    matrix = data.matrix
    if np.array_equal(data.users, users.array) and np.array_equal(data.items, items.array):
        return matrix if values is None else make(values, matrix.indices, matrix.indptr, matrix.shape)
    entries = matrix.tocoo()
    row, column = users.positions(data.users)[entries.row], items.positions(data.items)[entries.col]
    values = entries.data if values is None else values
    return sp.csr_matrix((values, (row, column)), shape=(len(users), len(items)))


def merged(first: Any, second: Any) -> tuple[Any, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the entries of two matrices of one shape, the first's where both have one, and which are of each."""
    from sadrec.data._kernels import merge_rows

    given = *kernel_rows(first), first.data, *kernel_rows(second), second.data
    indptr = np.zeros(first.shape[0] + 1, np.int64)
    merge_rows(*given, indptr, *_NO_ENTRIES)
    size = int(indptr[-1])
    columns, values = np.empty(size, np.int32), np.empty(size, np.float32)
    of_first, of_second = np.zeros(size, bool), np.zeros(size, bool)
    merge_rows(*given, indptr, columns, values, of_first, of_second)
    narrow = indptr.astype(np.int32) if size <= _INT32_MAX else indptr
    return make(values, columns, narrow, first.shape), of_first, of_second


def enlarged(matrix: Any, users: int, items: int) -> Any:
    """Return a matrix with empty rows and columns for users and items that came later."""
    rows = np.full(users - matrix.shape[0], matrix.indptr[-1], matrix.indptr.dtype)
    return sp.csr_matrix((matrix.data, matrix.indices, np.append(matrix.indptr, rows)), shape=(users, items))


def drop_disliked(seen: Any) -> Any:
    """Return the seen items without the disliked ones."""
    return seen if seen is None or not (seen.data < 0).any() else masked(seen, seen.data >= 0)


def checked_seen(seen: Any, shape: tuple[int, int]) -> Any:
    """Return the seen items as a CSR matrix of the right shape, or None."""
    if seen is None:
        return None
    matrix = as_csr(seen, "seen", np.float32)
    if matrix.shape != shape:
        raise ValueError(f"seen must have the shape (users, items), {shape}, not {matrix.shape}")
    kept = not (matrix.indptr.flags.writeable or matrix.indices.flags.writeable)
    return matrix if kept else matrix.copy()  # what the caller changes later would be followed unchecked


def kernel_rows(matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return ``(indptr, indices)`` of a CSR matrix in the types that kernels are compiled for."""
    indices = matrix.indices.astype(np.int32, copy=False).view()
    indices.flags.writeable = False
    return matrix.indptr.astype(np.int64), indices
