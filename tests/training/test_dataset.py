"""The matrices of training data: rows and columns of given ids, entries of two, and rows for kernels."""

import numpy as np
import scipy.sparse as sp

from sadrec.data import Ids, Interactions
from sadrec.training.dataset import align_ids, kernel_rows, merged

DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4], [5, 6, 0, 0]], np.float32)


def test_rows_and_columns_are_those_of_the_ids():
    data = Interactions.from_csr(sp.csr_matrix(DENSE), users=list("abcd"), items=[10, 20, 30, 40])
    same = align_ids(data, Ids(list("abcd")), Ids([10, 20, 30, 40]))
    assert same is data.matrix
    values = np.arange(6.0, dtype=np.float32) + 1
    again = align_ids(data, Ids(list("abcd")), Ids([10, 20, 30, 40]), values)
    np.testing.assert_array_equal(again.data, values)
    users, items = Ids(list("dxcba")), Ids([40, 30, 20, 10, 50])
    expected = np.zeros((5, 5))
    expected[:, :4] = np.vstack([DENSE[3], np.zeros(4), DENSE[2], DENSE[1], DENSE[0]])[:, ::-1]
    np.testing.assert_array_equal(align_ids(data, users, items).toarray(), expected)
    doubled = align_ids(data, users, items, 2 * data.matrix.data)
    np.testing.assert_array_equal(doubled.toarray(), 2 * expected)
    for others in ((Ids(list("abcd")), Ids([40, 30, 20, 10])), (Ids(list("dcba")), Ids([10, 20, 30, 40]))):
        assert align_ids(data, *others).toarray().tolist() != DENSE.tolist()


def test_of_two_matrices_the_first_has_its_way():
    first, second = (sp.csr_matrix(one) for one in (DENSE, 10 * DENSE[:, ::-1]))
    both, of_first, of_second = merged(first, second)
    np.testing.assert_array_equal(both.toarray(), np.where(DENSE, DENSE, 10 * DENSE[:, ::-1]))
    rows = np.repeat(np.arange(4), np.diff(both.indptr))
    np.testing.assert_array_equal(of_first, DENSE[rows, both.indices] != 0)
    np.testing.assert_array_equal(of_second, DENSE[:, ::-1][rows, both.indices] != 0)
    assert both.indptr.dtype == np.int32


def test_kernels_get_rows_of_the_types_they_are_compiled_for():
    for index in (np.int32, np.int64):
        matrix = sp.csr_matrix(DENSE)
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
        start, items = kernel_rows(matrix)
        assert (start.dtype, items.dtype) == (np.int64, np.int32) and not items.flags.writeable
        assert start.tolist() == [0, 2, 2, 4, 6] and items.tolist() == [1, 3, 0, 3, 0, 1]
        assert matrix.indices.flags.writeable
