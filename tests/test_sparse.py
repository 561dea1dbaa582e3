"""Sparse matrices of callers are checked before compiled code follows them; campaigns/array.py tries many more."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD, Interactions
from sadrec._core.sparse import as_csr, canonical, checked_seen, compressed, drop_disliked, enlarged, masked


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
    message = rf"row 7 of {{}} names column {column}, and the columns are 0 to 39: ids that start at 1"
    model = SAD.from_factors(np.ones((60, 2)), np.ones((40, 2)))
    for name, take in {
        "the matrix": lambda: SAD(2, iterations=1).fit(matrix),
        "seen": lambda: SAD.from_factors(np.ones((60, 2)), np.ones((40, 2)), seen=matrix),
        "user_items": lambda: model.recommend(model.users, matrix),
        "weights": lambda: SAD(2, iterations=1).fit(a_matrix(), weights=matrix),
        "user_features": lambda: SAD(2, iterations=1).fit(a_matrix(), user_features=matrix),
    }.items():
        with pytest.raises(ValueError, match=message.format(name)):
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


# -- the canonical form ----------------------------------------------------------------------------------------------
DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4], [5, 6, 0, 0]], np.float32)


def dense(matrix):
    """The entries of a matrix, whose form is checked on the way."""
    assert matrix.has_canonical_format and matrix.has_sorted_indices and matrix.indices.dtype == matrix.indptr.dtype
    assert sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape).has_canonical_format
    return matrix.toarray()


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_matrix, sp.csc_array])
def test_a_matrix_of_any_kind_is_copied_with_narrow_indices(kind):
    given = kind(DENSE.astype(np.float64))
    result = canonical(given)
    np.testing.assert_array_equal(dense(result), DENSE)
    assert result.dtype == np.float32 and result.indices.dtype == np.int32
    given.data[:] = 9
    np.testing.assert_array_equal(dense(result), DENSE)


def test_indices_of_64_bits_are_narrowed_where_32_do():
    given = sp.csr_matrix(DENSE)
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    result = canonical(given)
    assert result.indices.dtype == result.indptr.dtype == np.int32
    np.testing.assert_array_equal(result.toarray(), DENSE)


def test_repeated_entries_are_summed_and_stored_zeros_stay():
    given = sp.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    result = canonical(given)
    assert dense(result).tolist() == [[0, 3], [0, 0]] and result.nnz == 2


def test_a_negative_entry_is_named_by_its_row_and_column():
    given = DENSE.copy()
    given[2, 3] = -4
    with pytest.raises(ValueError, match="holds -4 at row 2, column 3: every stored entry"):
        canonical(sp.csr_matrix(given))
    np.testing.assert_array_equal(dense(canonical(sp.csr_matrix(given), allow_negative=True)), given)
    first = sp.csr_matrix(-DENSE)
    with pytest.raises(ValueError, match="holds -1 at row 0, column 1"):
        canonical(first)


def test_a_matrix_without_entries_is_refused():
    with pytest.raises(ValueError, match=r"the matrix of shape \(2, 3\) has no entries"):
        canonical(sp.csr_matrix((2, 3)))


def test_masked_entries_go_and_the_shape_stays():
    matrix = canonical(sp.csr_matrix(DENSE))
    kept = masked(matrix, matrix.data % 2 == 0)
    np.testing.assert_array_equal(dense(kept), np.where(DENSE % 2 == 0, DENSE, 0))
    assert kept.indptr.dtype == matrix.indptr.dtype


def test_empty_rows_and_columns_are_left_out():
    matrix = canonical(sp.csr_matrix(DENSE))
    rows, columns = np.array([0, 2, 3]), np.array([0, 1, 3])
    small = compressed(matrix, rows, columns)
    np.testing.assert_array_equal(dense(small), DENSE[np.ix_(rows, columns)])
    small.data[:] = 9
    np.testing.assert_array_equal(dense(matrix), DENSE)


def test_users_and_items_that_came_later_have_nothing():
    matrix = canonical(sp.csr_matrix(DENSE))
    large = enlarged(matrix, 6, 5)
    np.testing.assert_array_equal(large.toarray(), np.pad(DENSE, ((0, 2), (0, 1))))
    assert large.indptr.dtype == matrix.indptr.dtype


def test_what_was_disliked_is_left_out_of_what_was_seen():
    seen = canonical(sp.csr_matrix(DENSE))
    seen.data[:] = [0, 2, -3, 4, 5, -6]
    left = drop_disliked(seen)
    assert left.data.tolist() == [0, 2, 4, 5] and left.indices.tolist() == [1, 3, 3, 0]  # a stored 0 is no dislike
    liked = canonical(sp.csr_matrix(DENSE))
    assert drop_disliked(liked) is liked and drop_disliked(None) is None


def test_what_was_seen_has_the_shape_of_the_model_and_is_copied_where_it_may_change():
    given = sp.csr_matrix(DENSE)
    with pytest.raises(ValueError, match=r"shape \(users, items\), \(4, 5\), not \(4, 4\)"):
        checked_seen(given, (4, 5))
    kept = checked_seen(given, (4, 4))
    given.indices[:] = 0
    np.testing.assert_array_equal(kept.toarray(), DENSE)
    assert checked_seen(None, (4, 4)) is None
    frozen = sp.csr_matrix(DENSE)
    for part in ("indices", "indptr"):
        assert not np.shares_memory(checked_seen(frozen, (4, 4)).indices, frozen.indices)
        getattr(frozen, part).flags.writeable = False
    assert np.shares_memory(checked_seen(frozen, (4, 4)).indices, frozen.indices)
