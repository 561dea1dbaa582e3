"""Training data: its matrices, with rows and columns of given ids, and how much each entry counts."""

import numpy as np
import scipy.sparse as sp

from sadrec import SAD
from sadrec.data import Ids, Interactions
from sadrec.training.dataset import TrainingData, align_ids, kernel_rows, merged, training_data

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


def test_the_order_of_what_does_not_count_is_not_learnt():
    stars = np.zeros((3, 6))
    stars[:, :3] = [5, 1, 3]
    weights = np.tile(np.array([1, 0, 1], np.float32), 3)
    weighted = training_data(Interactions.from_csr(stars), weights=weights)
    assert weighted.ordered()[:3].tolist() == [True, False, True]
    disliked = training_data(Interactions.from_csr(stars), dislikes=2)
    assert disliked.ordered() is None
    both = training_data(Interactions.from_csr(stars), weights=weights, dislikes=4)
    assert both.ordered() is None  # what was disliked counts, whatever its weight


def test_dislikes_of_their_own_are_known_and_below_0():
    rng = np.random.default_rng(0)
    liked, disliked = rng.random((2, 40, 30)) < 0.3
    likes, dislikes = (Interactions.from_csr(part.astype(np.float32)) for part in (liked, disliked))
    data = training_data(likes, dislikes=dislikes)
    assert data.triples == (liked | disliked).sum() and data.weights.dtype == np.int8
    np.testing.assert_array_equal(data.weights, np.where(disliked, -1, 1)[liked | disliked])
    np.testing.assert_array_equal(data.seen().toarray(), np.where(disliked, -1.0, liked))
    weights = rng.integers(0, 3, len(likes)).astype(np.float32)
    data = training_data(likes, dislikes=dislikes, weights=weights)
    expected = np.zeros(liked.shape)
    expected[liked] = weights
    np.testing.assert_array_equal(data.weights, np.where(disliked, -1, expected)[liked | disliked])


def test_ratings_below_a_number_are_below_0():
    stars = np.zeros((3, 6))
    stars[:, :3] = [5, 1, 3]
    data = training_data(Interactions.from_csr(stars), dislikes=2)
    assert data.weights.dtype == np.int8 and data.weights.tolist() == [1, -1, 1] * 3 and data.has_dislikes
    assert np.shares_memory(data.seen().indices, data.matrix.indices)


def test_one_matrix_of_likes_and_dislikes_is_made_once(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    data = Interactions.from_csr(rng.random((60, 40)) < 0.3)
    train, dislikes = data.split(test=0.2, seed=0)
    train, held_out = train.split(test=0.2, seed=1)
    made, join = [], TrainingData._merged

    def merged(self, ignored):
        made.append(self)
        return join(self, ignored)

    monkeypatch.setattr(TrainingData, "_merged", merged)
    model = SAD(factors=2, iterations=2)
    model.fit(train, dislikes=dislikes, validation=held_out, checkpoint=tmp_path, show_progress=False)
    assert len(made) == 1
