"""Sparse matrices of callers and of files: the one check before compiled code, scipy's or ours, follows them."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.check import FROM_ONE, outside

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
