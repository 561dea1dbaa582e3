"""The race of lengths: what it finds, and that it finds it again."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD, Interactions
from sadrec.models.fitting import settings_for
from sadrec.training import survey as module
from sadrec.training.dataset import training_data
from tests.training.test_spectrum import in_groups


def by_popularity(users=600, items=300, seed=0):
    """Everybody chooses by the same odds."""
    rng = np.random.default_rng(seed)
    odds = 0.5 * (1 + np.arange(items)) ** -0.7
    return sp.csr_matrix((rng.random((users, items)) < odds).astype(np.float32))


def length_of(matrix, **given):
    return settings_for(SAD(8, **given), Interactions.from_csr(matrix)).length


def test_vectors_are_short_where_all_choose_alike_and_long_where_tastes_differ():
    assert length_of(by_popularity()) < 1.4 < 1.9 < length_of(in_groups(200, 2000, 2000, 0.8, 0.0))


def test_the_same_data_has_the_same_survey_on_any_number_of_threads():
    matrix = in_groups(12, 500, 300)
    rated = matrix.copy()
    rated.data[:] = np.random.default_rng(1).integers(0, 6, matrix.nnz)  # stored zeros are interactions too
    found = [
        settings_for(SAD(num_threads=threads), Interactions.from_csr(data))
        for data in (matrix, rated)
        for threads in (1, 2)
    ]
    assert all(settings == found[0] for settings in found)


@pytest.mark.parametrize(("spread", "expected"), [(0.01, 2.5), (0.03, 2.0), (0.15, 1.6), (0.3, 1.024)])
def test_the_shortest_length_that_is_about_as_good_is_taken(monkeypatch, spread, expected):
    quality, lengths = {-3: 0.05, -2: 0.10, -1: 0.20, 0: 0.29, 1: 0.30, 2: 0.28, 3: 0.4}, []
    monkeypatch.setattr(module, "start_items", lambda model, spectrum, items, length: None)
    monkeypatch.setattr(module, "start_users", lambda users, spectrum, rows, length: None)
    monkeypatch.setattr(module.Trainer, "train_epoch", lambda trainer, between: lengths.append(trainer.settings.length))

    def gains(model, kept, held_out):
        step = round(np.log(lengths[-1] / module.MIDDLE) / np.log(module.STEP))
        return quality[step] + spread * step * np.array([-1, 1])

    monkeypatch.setattr(module, "_gains", gains)
    assert length_of(in_groups(4, 40, 40)) == expected
    assert len(set(lengths)) == len(lengths) / module.EPOCHS <= 6  # no length is tried twice


def test_a_length_that_diverges_does_not_win(monkeypatch):
    finite = module.Factors.finite
    monkeypatch.setattr(module.Factors, "finite", lambda model: finite(model) and np.abs(model.users).max() < 0.1)
    assert length_of(in_groups(4, 60, 40)) in (module.MIDDLE, 1.024)


@pytest.mark.parametrize(
    "matrix",
    [np.ones((1, 3)), np.eye(30), np.ones((40, 8)), np.tri(3, 4)],
    ids=["one user", "one each", "everything", "few"],
)
def test_where_nothing_can_be_held_out_or_told_there_is_a_length(matrix):
    assert 1 < length_of(sp.csr_matrix(matrix.astype(np.float32))) < 5


def test_gains_are_the_ndcg_of_the_lists():
    model = module.Factors(np.eye(2, dtype=np.float32), np.array([[4, 1], [3, 2], [2, 3], [1, 4]], np.float32), None)
    kept, held_out = (
        sp.csr_matrix(np.array(rows)) for rows in ([[1, 0, 0, 0], [0, 0, 0, 1]], [[0, 0, 1, 0], [1, 0, 1, 0]])
    )
    gains = module._gains(model, kept, held_out)  # ranks 2; 1 and 3
    expected = [1 / np.log2(3), (1 + 0.5) / (1 + 1 / np.log2(3))]
    np.testing.assert_allclose(gains, expected)


def test_dislikes_and_weights_of_0_take_no_part():
    matrix = in_groups(6, 300, 120)
    matrix.data[:] = np.random.default_rng(0).integers(1, 6, matrix.nnz)
    rated = Interactions.from_csr(matrix)
    settings = settings_for(SAD(8), rated)
    whole, without = training_data(rated, dislikes=2.5), rated.matrix.copy()
    without.data[without.data < 2.5] = 0
    without.eliminate_zeros()
    left = training_data(Interactions.from_csr(without))
    assert whole.survey(settings, None, None, 1) == left.survey(settings, None, None, 1)
