"""Sparse matrices: their canonical form, and the one check before compiled code, scipy's or ours, follows them.

Canonical is CSR with sorted rows and no repeated entries.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.check import FROM_ONE, outside

_INT32_MAX = np.iinfo(np.int32).max
_REMEDY = "make it again, as in scipy.sparse.coo_array((values, (rows, columns)), shape).tocsr()"


def as_csr(matrix: Any, name: str = "the matrix", dtype: Any = None) -> Any:
    """Return a matrix of any kind as CSR: checked, rows sorted, repeated entries summed; the caller's stays as it is.

    >>> as_csr(np.eye(2)).indices
    array([0, 1], dtype=int32)
    >>> wrong = sp.csr_array([[0, 1], [1, 0]])
    >>> wrong.indices[0] = 2
    >>> as_csr(wrong)
    Traceback (most recent call last):
        ...
    ValueError: row 0 of the matrix names column 2, and the columns are 0 to 1: ids that start at 1 need 1 subtracted
    """
    if not sp.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix with two axes, not an array of shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, not {matrix.dtype}")
    if sp.issparse(matrix):
        check(matrix, name)
    else:
        matrix = sp.coo_matrix(matrix)
    with np.errstate(over="ignore"):  # what is not finite is refused below
        result = sp.csr_matrix(matrix, dtype=dtype)
    if not result.has_canonical_format:
        result = result.copy()
        result.sum_duplicates()
    check_values(result, name)
    return result


def check(matrix: Any, name: str = "the matrix") -> None:
    """Refuse a sparse matrix whose arrays lead out of them or out of its shape."""
    rows, columns = matrix.shape
    if matrix.format == "coo":
        sides = (matrix.row, rows, "row"), (matrix.col, columns, "column")
        if any(_not_positions(side) or side.shape != matrix.data.shape for side, _, _ in sides):
            raise ValueError(f"the rows and columns of {name} are not one whole number for each value: {_REMEDY}")
        for side, size, what in sides:
            if (at := outside(side, size)) is not None:
                raise ValueError(f"entry {at} of {name} names {what} {side[at]}, {_allowed(size, what)}")
    elif matrix.format == "csc":
        check_rows(matrix.indptr, matrix.indices, matrix.data, (columns, rows), name, axes=("column", "row"))
    elif matrix.format == "bsr":
        arrays, blocks = (matrix.indptr, matrix.indices, matrix.data), np.floor_divide(matrix.shape, matrix.blocksize)
        check_rows(*arrays, tuple(blocks), name, axes=("block row", "block column"), dimensions=3)
    else:
        if matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
            raise ValueError(f"the rows of {name} do not have as many columns as values: {_REMEDY}")
        matrix = matrix.tocsr()
        check_rows(matrix.indptr, matrix.indices, matrix.data, matrix.shape, name)


def checked_csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int], name: str
) -> Any:
    """Return the arrays of a file as a CSR matrix, without copying them."""
    check_rows(indptr, indices, data, shape, name)
    if data.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, not {data.dtype}")
    matrix = sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    check_values(matrix, name)
    return matrix


def check_rows(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    shape: tuple[int, int],
    name: str,
    *,
    axes: tuple[str, str] = ("row", "column"),
    dimensions: int = 1,
) -> None:
    """Refuse row starts that fall or do not fit, and columns that do not exist."""
    row, column = axes
    if _not_positions(indices) or data.ndim != dimensions or len(data) != len(indices):
        raise ValueError(f"indices of {name} are not one whole number for each value: {_REMEDY}")
    check_starts(indptr, shape[0], len(indices), name, row)
    end = indices[: int(indptr[-1])]
    if (at := outside(end, shape[1])) is not None:
        where = int(np.searchsorted(indptr, at, side="right")) - 1
        raise ValueError(f"{row} {where} of {name} names {column} {end[at]}, {_allowed(shape[1], column)}")


def check_starts(starts: NDArray[Any], count: int, end: int, name: str, what: str = "row") -> None:
    """Refuse starts of ``count`` rows that do not rise from 0 to ``end`` at most."""
    if _not_positions(starts) or len(starts) != count + 1 or starts[0] != 0:
        raise ValueError(f"indptr of {name} is cut short, or not a 0 and {count:,} whole numbers more: {_REMEDY}")
    falls = starts[1:] < starts[:-1]  # a difference could overflow
    if falls.any() or starts[-1] > end:
        at = int(falls.argmax()) if falls.any() else count - 1
        raise ValueError(
            f"{what} {at} of {name} goes from entry {starts[at]} to {starts[at + 1]} of {end:,}, so that indptr is "
            f"out of order: {_REMEDY}"
        )


def check_values(matrix: Any, name: str = "the matrix") -> None:
    """Refuse a CSR matrix with a value that is not finite."""
    with np.errstate(invalid="ignore"):
        ends = matrix.data.min(initial=0), matrix.data.max(initial=0)  # either is NaN where there is one
    if not np.isfinite(ends).all():
        at = int((~np.isfinite(matrix.data)).argmax())
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise ValueError(
            f"{name} holds {matrix.data[at]:g} at row {row}, column {matrix.indices[at]}: entries must be finite; "
            "leave out what is unknown"
        )


def _not_positions(positions: Any) -> bool:
    """Whether an array is not a list of whole numbers."""
    return not isinstance(positions, np.ndarray) or positions.ndim != 1 or positions.dtype.kind not in "iu"


def _allowed(size: int, what: str) -> str:
    return f"and the {what}s are 0 to {size - 1}: {FROM_ONE}" if size else f"and there are no {what}s"


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
