"""Sparse matrices of callers are checked before compiled code follows them; campaigns/array.py tries many more."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD, Interactions
from sadrec._core.sparse import as_csr


def a_matrix(kind="csr"):
    matrix = sp.random_array((60, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    matrix.data[:] = 1
    return matrix.asformat(kind).copy()


def entry(matrix, row):
    return int(matrix.indptr[row])


@pytest.mark.parametrize("column", [40, 45, -1, 2**31 - 1])
def test_a_column_that_does_not_exist_is_named_with_its_row(column):
    matrix = a_matrix()
    matrix.indices[entry(matrix, 7)] = column
    said = rf"row 7 of {{}} names column {column}, and the columns are 0 to 39: ids that start at 1"
    model = SAD.from_factors(np.ones((60, 2)), np.ones((40, 2)))
    for name, take in {
        "the matrix": lambda: SAD(2, iterations=1).fit(matrix),
        "seen": lambda: SAD.from_factors(np.ones((60, 2)), np.ones((40, 2)), seen=matrix),
        "user_items": lambda: model.recommend(model.users, matrix),
        "weights": lambda: SAD(2, iterations=1).fit(a_matrix(), weights=matrix),
        "user_features": lambda: SAD(2, iterations=1).fit(a_matrix(), user_features=matrix),
    }.items():
        with pytest.raises(ValueError, match=said.format(name)):
            take()


def test_columns_and_blocks_of_other_formats_are_named():
    by_column = a_matrix("csc")
    by_column.indices[entry(by_column, 3)] = 60
    with pytest.raises(ValueError, match="column 3 of the matrix names row 60, and the rows are 0 to 59"):
        as_csr(by_column)
    listed = a_matrix("coo")
    listed.row[5] = -2
    with pytest.raises(ValueError, match="entry 5 of the matrix names row -2"):
        as_csr(listed)
    blocks = a_matrix().tobsr((2, 2))
    blocks.indices[0] = 20
    with pytest.raises(ValueError, match="block row 0 of the matrix names block column 20"):
        as_csr(blocks)
    rows = a_matrix("lil")
    rows.rows[2] = rows.rows[2][1:]
    with pytest.raises(ValueError, match="rows of the matrix do not have as many columns as values"):
        as_csr(rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda starts: starts[:-1], "indptr of the matrix is cut short"),
        (lambda starts: starts + 1, "indptr of the matrix is cut short, or not a 0"),
        (lambda starts: np.append(starts[:-1], 10**6), r"row 59 of the matrix goes from entry \d+ to 1000000 of 480"),
        (lambda starts: np.where(np.arange(61) == 9, 0, starts), "row 8 of the matrix goes from entry .* to 0 of 480"),
    ],
)
def test_row_starts_that_fall_or_do_not_fit_are_refused(change, message):
    matrix = a_matrix()
    matrix.indptr = change(matrix.indptr)
    with pytest.raises(ValueError, match=message):
        Interactions.from_csr(matrix)


def test_the_matrix_of_the_caller_stays_as_it_is():
    matrix = a_matrix()
    start, end = matrix.indptr[4:6]
    matrix.indices[start:end] = matrix.indices[start:end][::-1]  # a matrix that is not sorted is a good one
    before = matrix.indices.copy()
    assert as_csr(matrix).has_canonical_format and np.array_equal(matrix.indices, before)


def test_what_the_caller_changes_later_does_not_reach_the_model():
    matrix = a_matrix()
    model = SAD.from_factors(np.ones((60, 2)), np.ones((40, 2)), seen=matrix)
    before = model.recommend(model.users, N=40)[0].copy()
    matrix.indptr[5] = 10**6
    assert np.array_equal(model.recommend(model.users, N=40)[0], before)
