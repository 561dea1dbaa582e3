"""Sparse matrices in the one form the package keeps, against dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec.data import Ids, Interactions, _matrix

DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4], [5, 6, 0, 0]], np.float32)


def dense(matrix):
    """The entries of a matrix, whose form is checked on the way."""
    assert matrix.has_canonical_format and matrix.has_sorted_indices and matrix.indices.dtype == matrix.indptr.dtype
    assert sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape).has_canonical_format
    return matrix.toarray()


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_matrix, sp.csc_array])
def test_a_matrix_of_any_kind_is_copied_with_narrow_indices(kind):
    given = kind(DENSE.astype(np.float64))
    result = _matrix.canonical(given)
    np.testing.assert_array_equal(dense(result), DENSE)
    assert result.dtype == np.float32 and result.indices.dtype == np.int32
    given.data[:] = 9
    np.testing.assert_array_equal(dense(result), DENSE)


def test_indices_of_64_bits_are_narrowed_where_32_do():
    given = sp.csr_matrix(DENSE)
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    result = _matrix.canonical(given)
    assert result.indices.dtype == result.indptr.dtype == np.int32
    np.testing.assert_array_equal(result.toarray(), DENSE)


def test_repeated_entries_are_summed_and_stored_zeros_stay():
    given = sp.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    result = _matrix.canonical(given)
    assert dense(result).tolist() == [[0, 3], [0, 0]] and result.nnz == 2


def test_a_negative_entry_is_named_by_its_row_and_column():
    given = DENSE.copy()
    given[2, 3] = -4
    with pytest.raises(ValueError, match="holds -4 at row 2, column 3: every stored entry"):
        _matrix.canonical(sp.csr_matrix(given))
    np.testing.assert_array_equal(dense(_matrix.canonical(sp.csr_matrix(given), allow_negative=True)), given)
    first = sp.csr_matrix(-DENSE)
    with pytest.raises(ValueError, match="holds -1 at row 0, column 1"):
        _matrix.canonical(first)


def test_a_matrix_without_entries_is_refused():
    with pytest.raises(ValueError, match=r"the matrix of shape \(2, 3\) has no entries"):
        _matrix.canonical(sp.csr_matrix((2, 3)))


def test_masked_entries_go_and_the_shape_stays():
    matrix = _matrix.canonical(sp.csr_matrix(DENSE))
    kept = _matrix.masked(matrix, matrix.data % 2 == 0)
    np.testing.assert_array_equal(dense(kept), np.where(DENSE % 2 == 0, DENSE, 0))
    assert kept.indptr.dtype == matrix.indptr.dtype


def test_empty_rows_and_columns_are_left_out():
    matrix = _matrix.canonical(sp.csr_matrix(DENSE))
    rows, columns = np.array([0, 2, 3]), np.array([0, 1, 3])
    small = _matrix.compressed(matrix, rows, columns)
    np.testing.assert_array_equal(dense(small), DENSE[np.ix_(rows, columns)])
    small.data[:] = 9
    np.testing.assert_array_equal(dense(matrix), DENSE)


def test_new_ids_follow_the_known_ones_in_their_order():
    join = _matrix.join_ids
    assert join(np.array([5, 3]), np.array([3, 9, 1]), np.array([1, 4])).tolist() == [5, 3, 9, 1, 4]
    assert join(None, np.array(["b", "a"]), np.array(["a", "long"])).tolist() == ["b", "a", "long"]
    known = np.array([5, 3])
    assert join(known, np.array([5, 3]), np.array([3])) is known
    assert join(np.array([5, 3]), np.array([], "<U1")).tolist() == [5, 3]
    assert join(np.array([], np.int64), np.array(["a"])).tolist() == ["a"]


def test_ids_of_two_kinds_do_not_join():
    with pytest.raises(TypeError, match="ids of two kinds meet, 5 and 'a': convert one side first"):
        _matrix.join_ids(np.array([5, 3]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="no data to learn from"):
        _matrix.join_ids(None)


def test_rows_and_columns_are_those_of_the_ids():
    data = Interactions.from_csr(sp.csr_matrix(DENSE), users=list("abcd"), items=[10, 20, 30, 40])
    same = _matrix.align_ids(data, Ids(list("abcd")), Ids([10, 20, 30, 40]))
    assert same is data.matrix
    values = np.arange(6.0, dtype=np.float32) + 1
    again = _matrix.align_ids(data, Ids(list("abcd")), Ids([10, 20, 30, 40]), values)
    np.testing.assert_array_equal(again.data, values)
    users, items = Ids(list("dxcba")), Ids([40, 30, 20, 10, 50])
    expected = np.zeros((5, 5))
    expected[:, :4] = np.vstack([DENSE[3], np.zeros(4), DENSE[2], DENSE[1], DENSE[0]])[:, ::-1]
    np.testing.assert_array_equal(_matrix.align_ids(data, users, items).toarray(), expected)
    doubled = _matrix.align_ids(data, users, items, 2 * data.matrix.data)
    np.testing.assert_array_equal(doubled.toarray(), 2 * expected)
    for others in ((Ids(list("abcd")), Ids([40, 30, 20, 10])), (Ids(list("dcba")), Ids([10, 20, 30, 40]))):
        assert _matrix.align_ids(data, *others).toarray().tolist() != DENSE.tolist()


def test_of_two_matrices_the_first_has_its_way():
    first, second = (_matrix.canonical(sp.csr_matrix(one)) for one in (DENSE, 10 * DENSE[:, ::-1]))
    both, of_first, of_second = _matrix.merged(first, second)
    np.testing.assert_array_equal(dense(both), np.where(DENSE, DENSE, 10 * DENSE[:, ::-1]))
    rows = np.repeat(np.arange(4), np.diff(both.indptr))
    np.testing.assert_array_equal(of_first, DENSE[rows, both.indices] != 0)
    np.testing.assert_array_equal(of_second, DENSE[:, ::-1][rows, both.indices] != 0)
    assert both.indptr.dtype == np.int32


def test_users_and_items_that_came_later_have_nothing():
    matrix = _matrix.canonical(sp.csr_matrix(DENSE))
    large = _matrix.enlarged(matrix, 6, 5)
    np.testing.assert_array_equal(large.toarray(), np.pad(DENSE, ((0, 2), (0, 1))))
    assert large.indptr.dtype == matrix.indptr.dtype


def test_what_was_disliked_is_left_out_of_what_was_seen():
    seen = _matrix.canonical(sp.csr_matrix(DENSE))
    seen.data[:] = [0, 2, -3, 4, 5, -6]
    left = _matrix.drop_disliked(seen)
    assert left.data.tolist() == [0, 2, 4, 5] and left.indices.tolist() == [1, 3, 3, 0]  # a stored 0 is no dislike
    liked = _matrix.canonical(sp.csr_matrix(DENSE))
    assert _matrix.drop_disliked(liked) is liked and _matrix.drop_disliked(None) is None


def test_what_was_seen_has_the_shape_of_the_model_and_is_copied_where_it_may_change():
    given = sp.csr_matrix(DENSE)
    with pytest.raises(ValueError, match=r"shape \(users, items\), \(4, 5\), not \(4, 4\)"):
        _matrix.checked_seen(given, (4, 5))
    kept = _matrix.checked_seen(given, (4, 4))
    given.indices[:] = 0
    np.testing.assert_array_equal(kept.toarray(), DENSE)
    assert _matrix.checked_seen(None, (4, 4)) is None
    frozen = sp.csr_matrix(DENSE)
    for part in ("indices", "indptr"):
        assert not np.shares_memory(_matrix.checked_seen(frozen, (4, 4)).indices, frozen.indices)
        getattr(frozen, part).flags.writeable = False
    assert np.shares_memory(_matrix.checked_seen(frozen, (4, 4)).indices, frozen.indices)


def test_kernels_get_rows_of_the_types_they_are_compiled_for():
    for index in (np.int32, np.int64):
        matrix = sp.csr_matrix(DENSE)
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
        start, items = _matrix.kernel_rows(matrix)
        assert (start.dtype, items.dtype) == (np.int64, np.int32) and not items.flags.writeable
        assert start.tolist() == [0, 2, 2, 4, 6] and items.tolist() == [1, 3, 0, 3, 0, 1]
        assert matrix.indices.flags.writeable
