"""The softmax over negatives: its gradient, what is shared and held back, lengths, and the settings."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Interactions
from sadrec.models import settings_for
from sadrec.ranking.fold_in import fold_in
from sadrec.training.dataset import bytes_needed, training_data
from sadrec.training.sgd.factors import initial_factors
from sadrec.training.sgd.softmax import (
    multiply,
    put_to_length,
    rounded,
    scale_of_shares,
    transpose,
    write_odds,
)
from sadrec.training.sgd.trainer import Trainer
from tests.training.small import settings

USERS, ITEMS, K = 4, 9, 5
RATE = 1e-4


def interactions(seed=0, users=USERS, items=ITEMS, share=0.3):
    matrix = np.random.default_rng(seed).random((users, items)) < share
    matrix[:, 0], matrix[:, -1] = True, False
    return matrix


def softmax_trainer(matrix, weights=None, threads=1, seed=0, **changed):
    """All items of the only block are negatives unless ``negatives`` says otherwise."""
    values = {"loss": "softmax", "negatives": 10_000, "blocks": 1, "schedule": "constant", "seed": seed}
    chosen = settings(**{**values, "regularization": 0.0, "rival_regularization": 0.0, "factors": K, **changed})
    factors = initial_factors(*matrix.shape, K, 0.7, chosen.learn_rivals, chosen.bias, seed)
    rng = np.random.default_rng(seed)
    if factors.tau is not None:
        factors.tau[:] = rng.uniform(0.5, 1.5, factors.tau.shape)
    if factors.bias is not None:
        factors.bias[:] = rng.normal(size=len(factors.bias))
    csr = sp.csr_matrix(matrix)
    return Trainer(factors, chosen, (csr.indptr.astype(np.int64), csr.indices.astype(np.int32), weights), [], threads)


def objective(arrays, matrix, weights, learn_rivals):
    """The sum of log p over the positives, in plain NumPy."""
    xi, items = arrays[:2]
    b = arrays[2] if len(arrays) > 2 else np.zeros(len(items))
    eta, tau = items[:, :K], items[:, K:] if learn_rivals else np.ones((len(items), K))
    total = 0.0
    for (u, i), weight in zip(np.argwhere(matrix), weights, strict=True):
        j = np.flatnonzero(~matrix[u])
        x = (eta[i] * tau[j] - eta[j] * tau[i]) @ xi[u] + b[i] - b[j]
        total -= weight * np.log1p(np.exp(-x).sum())
    return total


@pytest.mark.parametrize(
    ("bias", "learn_rivals", "weighted"), [(True, True, False), (True, False, False), (False, True, True)]
)
def test_the_step_is_the_gradient_of_the_log_likelihood(bias, learn_rivals, weighted):
    matrix = interactions()
    weights = np.random.default_rng(1).uniform(0.5, 2, matrix.sum()) if weighted else np.ones(matrix.sum())
    given = weights.astype(np.float32) if weighted else None
    work = softmax_trainer(matrix, given, learn_rivals=learn_rivals, bias=bias, learning_rate=RATE)
    before = [array.astype(float) for array in work.factors.arrays]
    figures = work.train_epoch()
    if not weighted:
        expected = objective(before, matrix, weights, learn_rivals) / matrix.sum()
        assert figures["log_likelihood"] == pytest.approx(expected, rel=1e-3)
    eps = 1e-6
    for array, start in zip(work.factors.arrays, before, strict=True):
        step = (array.astype(float) - start) / RATE
        for index in np.ndindex(start.shape):
            kept = start[index]
            sides = []
            for sign in (1, -1):
                start[index] = kept + sign * eps
                sides.append(objective(before, matrix, weights, learn_rivals))
            start[index] = kept
            assert step[index] == pytest.approx((sides[0] - sides[1]) / (2 * eps), rel=0.02, abs=0.02)


@pytest.mark.parametrize("learn_rivals", [False, True])
def test_with_one_negative_it_is_the_pairwise_step(learn_rivals):
    matrix = np.array([[True, False]])
    results = []
    for loss in ("softmax", "pairwise"):
        work = softmax_trainer(
            matrix,
            learn_rivals=learn_rivals,
            bias=True,
            loss=loss,
            negatives=1,
            negative_candidates=1,
            learning_rate=0.2,
            regularization=0.03,
            rival_regularization=0.05,
        )
        figures = work.train_epoch()
        results.append([figures["log_likelihood"], *(array.copy() for array in work.factors.arrays)])
    for softmax, pairwise in zip(*results, strict=True):
        np.testing.assert_allclose(softmax, pairwise, rtol=1e-5, atol=1e-6)


def test_an_item_that_the_user_knows_is_no_negative():
    matrix = np.array([[1, 1, 1, 0, 0]], bool)
    work = softmax_trainer(matrix, np.array([1, 0, 0], np.float32), learning_rate=0.1, bias=False)
    before = work.factors.items.copy()
    assert work.train_epoch()["updates"] == 1
    moved = (work.factors.items != before).any(axis=1)
    np.testing.assert_array_equal(moved, [True, False, False, True, True])


def test_negatives_pay_the_penalty_of_one_among_them():
    matrix = np.zeros((1, 30), bool)
    matrix[0, 3] = True
    rate, l2 = 0.1, 0.2
    work = softmax_trainer(matrix, learning_rate=rate, regularization=l2, learn_rivals=False, bias=True)
    work.factors.users[:] = 0  # so that only the penalty changes the items, and all negatives have the same share
    work.factors.bias[:] = 0
    before = work.factors.items.copy()
    work.train_epoch()
    ratio = (work.factors.items / before)[:, 0]
    assert ratio[3] == pytest.approx(1 - 2 * rate * l2, rel=1e-5)
    assert np.prod(np.delete(ratio, 3)) == pytest.approx(1 - 2 * rate * l2, rel=1e-4)


def test_rows_decay_to_their_centres_and_negatives_as_far_as_one_among_them():
    matrix = np.zeros((1, 30), bool)
    matrix[0, 3] = True
    rate, l2 = 0.1, 0.2
    centre = np.ones((1, K), np.float32), np.full((30, K), 2, np.float32), np.full(30, 3, np.float32)
    moved = []
    for centres in (None, lambda factors: centre):
        work = softmax_trainer(matrix, learning_rate=rate, regularization=l2, learn_rivals=False, bias=True)
        work.factors.users[:] = 0
        work._centre = centres
        work.train_epoch()
        moved.append([work.factors.users[:, 0], work.factors.items[:, 0], work.factors.bias])
    kept = [1 - (held - free) / value for free, held, value in zip(*moved, (1, 2, 3), strict=True)]
    assert kept[0] == pytest.approx(1 - 2 * rate * l2, rel=1e-5)
    for of_items in kept[1:]:
        assert of_items[3] == pytest.approx(1 - 2 * rate * l2, rel=1e-5)
        assert np.prod(np.delete(of_items, 3)) == pytest.approx(1 - 2 * rate * l2, rel=1e-4)


@pytest.mark.parametrize("negatives", [1, 7, 50])
def test_so_many_negatives_move_at_a_time(negatives):
    matrix = np.zeros((1, 50), bool)
    matrix[0, 3] = True
    work = softmax_trainer(matrix, negatives=negatives, learning_rate=0.1, learn_rivals=False, bias=True)
    before = work.factors.items.copy()
    work.train_epoch()
    moved = (work.factors.items != before).any(axis=1).sum() - 1
    assert negatives - 1 <= moved <= negatives  # the positive itself may be among those sampled


def test_positives_are_trained_on_once_with_more_of_them_than_fit_a_chunk():
    matrix = np.zeros((3, 2000), bool)
    matrix[0, :900] = matrix[1, 300:] = matrix[2, 7] = True
    work = softmax_trainer(matrix, negatives=20, blocks=3, learning_rate=0.01, bias=True)
    figures = work.train_epoch()
    assert figures["updates"] == matrix.sum() and figures["skipped"] == 0


def test_a_chunk_has_at_most_half_as_many_positives_again_as_negatives():
    matrix = np.zeros((1, 500), bool)
    matrix[0, :7] = True
    work = softmax_trainer(matrix, negatives=4, learning_rate=0.1, bias=True)
    before = work.factors.bias.copy()
    work.train_epoch()
    moved = np.count_nonzero(work.factors.bias[7:] != before[7:])
    assert 4 < moved <= 8  # the negatives of two chunks


@pytest.mark.parametrize("learn_rivals", [False, True])
def test_vectors_keep_their_length(learn_rivals):
    matrix = interactions(users=60, items=80)
    changed = {"learn_rivals": learn_rivals, "bias": True}
    work = softmax_trainer(matrix, length=2.5, blocks=4, negatives=10, **changed)
    work.factors.users[5] = 0  # a user of whom nothing is known has no direction
    matrix[5] = False
    for _ in range(2):
        work.train_epoch()
    np.testing.assert_allclose(np.linalg.norm(work.factors.users[:5], axis=1), 2.5, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(work.factors.eta, axis=1), 2.5, rtol=1e-5)
    if learn_rivals:
        assert np.abs(np.linalg.norm(work.factors.tau, axis=1) - 2.5).max() > 0.01


def test_a_vector_whose_length_overflows_is_no_number():
    vector = np.full(3, 1e30, np.float32)
    put_to_length(vector, 2.0)
    assert np.isnan(vector).all()  # the trainer sees that it diverged


@pytest.mark.parametrize("shape", [(1, 1, 16), (3, 7, 32), (8, 16, 16), (21, 10, 48)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_those_of_numpy(shape, order):
    rows, inner, columns = shape
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=size).astype(np.float32) for size in ((32, inner + 2), (inner + 2, columns)))
    product = np.full((32, columns), 9, np.float32)
    multiply(np.asarray(left, order=order), right, rows, inner, columns, product)
    np.testing.assert_allclose(product[:rows], left[:rows, :inner] @ right[:inner], rtol=1e-4, atol=1e-5)
    assert (product[rounded(rows) :] == 9).all()


@pytest.mark.parametrize("shape", [(1, 1), (8, 16), (13, 25), (32, 48)])
def test_transposed_is_that_of_numpy(shape):
    rows, columns = shape
    matrix = np.random.default_rng(0).normal(size=(32, 48)).astype(np.float32)
    written = np.zeros((48, 32), np.float32)
    transpose(matrix, rows, columns, written)
    np.testing.assert_array_equal(written[:columns, :rows], matrix[:rows, :columns].T)


def test_exponentials_are_those_of_numpy():
    x = np.append(-np.linspace(0, 79.9, 1_000), (-80.1, -np.inf)).astype(np.float32)
    scale, margins = np.float32(1), x.copy()
    least, odds = write_odds(np.negative(margins, out=margins))
    part, likelihood = scale_of_shares(np.float32(0), least, odds, scale)
    margins, total = part * margins, part * odds
    expected = np.exp(x.astype(float)) * (x > -80)
    np.testing.assert_allclose(margins, expected / (1 + expected.sum()), rtol=1e-6)
    np.testing.assert_allclose((total, likelihood), (expected.sum(), 1) / (1 + expected.sum()), rtol=1e-6)
    assert np.isnan(write_odds(np.array([np.nan, 1], np.float32))[1])


@pytest.mark.parametrize("model", [SAD, BPR])
@pytest.mark.parametrize("length", [0.0, 3.0])
def test_a_model_learns_files_and_continues(model, length, tmp_path):
    matrix = np.kron(np.eye(2), np.ones((30, 20))) * (np.random.default_rng(0).random((60, 40)) < 0.6)
    data = Interactions.from_csr(sp.csr_matrix(matrix))
    options = {"loss": "softmax", "learning_rate": 0.1, "regularization": 0.03}
    options |= {"advanced": {"length": length, "negatives": 8, "user_balance": 0.0}}
    fitted = model(factors=4, iterations=10, **options).fit(data, show_progress=False)
    lists = fitted.recommend(fitted.users, N=3)[0]
    own = (np.asarray(lists, np.int64) >= 20) == (np.arange(60) >= 30)[:, None]
    assert own.mean() > 0.9
    against_all = fold_in(fitted.state.parameters, np.arange(6), regularization=0.2 / length**4 if length else 0.03)
    np.testing.assert_allclose(fitted.visitor(fitted.items[:6]).user_factors[0], against_all.vector, rtol=1e-6)
    assert (np.asarray(fitted.recommend_for(fitted.items[:6], N=5)[0], np.int64) < 20).all()
    fitted.save(tmp_path / "m.sad")
    loaded = model.load(tmp_path / "m.sad")
    assert loaded.settings == fitted.settings and loaded.settings.loss == "softmax"
    assert loaded.partial_fit(data, show_progress=False).settings.loss == "softmax"


def test_stopped_and_resumed_it_ends_with_the_same_bits(tmp_path):
    data = Interactions.from_csr(sp.csr_matrix(interactions(users=80, items=90)))
    model = SAD(factors=K, iterations=6, loss="softmax", advanced={"negatives": 20, "length": 2.0}, num_threads=2)
    whole = model.fit(data, show_progress=False).item_factors

    def stop(epoch, figures, fitted):
        if epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(data, show_progress=False, checkpoint=tmp_path, callbacks=[stop])
    resumed = model.fit(data, show_progress=False, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.item_factors, whole)
    assert len(resumed.state.history) == 6


def test_shares_too_small_for_their_inverse_leave_everything_finite():
    matrix = interactions()
    tiny = np.full(matrix.sum(), 1e-40, np.float32)
    work = softmax_trainer(matrix, tiny, learning_rate=0.3, regularization=0.01, bias=False)
    work.train_epoch()
    assert work.factors.finite()


def test_negatives_that_a_chunk_shares_take_the_same_memory_however_long_the_rows():
    def negatives(items):
        data = Interactions.from_csr(sp.csr_matrix(np.ones((2, items))))
        return bytes_needed(training_data(data), settings_for(SAD(loss="softmax"), data), 1)["negatives"]

    assert negatives(20_000) == negatives(2_000) < 2**21


def test_without_softmax_a_length_is_not_used():
    data = Interactions.from_csr(sp.csr_matrix(interactions()))
    settings = settings_for(SAD(loss="pairwise"), data)
    assert settings.length == 0 and settings.origins["length"] == "not used"
    settings = settings_for(SAD(loss="softmax"), data)
    assert settings.length > 0 and settings.origins["length"] == "data" and settings.negatives > 8
