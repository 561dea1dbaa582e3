"""The race of lengths: what it finds, and that it finds it again."""

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec.models import settings_for
from sadrec.training.dataset import training_data
from sadrec.training.settings import RIVALS_REST
from sadrec.training.sgd import survey as module
from tests.training.sgd.test_spectrum import in_groups


def by_popularity(users=600, items=300, seed=0):
    """Everybody chooses by the same odds."""
    rng = np.random.default_rng(seed)
    odds = 0.5 * (1 + np.arange(items)) ** -0.7
    return sp.csr_matrix((rng.random((users, items)) < odds).astype(np.float32))


def length_of(matrix, model=SAD):
    return settings_for(model(8), Interactions.from_csr(matrix)).length


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


@pytest.mark.parametrize(
    ("lists", "likelihood", "tried"),
    [(-6, -6, 5), (-2.3, -2.3, 5), (-0.2, -0.2, 3), (0, 0, 3), (1.4, 1.4, 3), (9, 9, 4), (1.4, -1.4, 5)],
)
def test_the_length_is_in_the_middle_of_the_best_lists_and_the_greatest_likelihood(
    monkeypatch, lists, likelihood, tried
):
    lengths = []
    monkeypatch.setattr(module, "start_items", lambda model, spectrum, items, length: None)
    monkeypatch.setattr(module, "start_users", lambda users, spectrum, rows, length: None)
    monkeypatch.setattr(module.Trainer, "train_epoch", lambda trainer, between: lengths.append(trainer.settings.length))

    def judge(model, kept, held_out, threads):
        step = np.log(lengths[-1] / module.MIDDLE) / np.log(module.RATIO)
        return module.Judged(*(-((step - best) ** 2) + np.array([-1, 1]) for best in (lists, likelihood)))

    monkeypatch.setattr(module, "_judge", judge)
    length = length_of(in_groups(4, 40, 40), BPR)
    middle = np.mean(np.clip([lists, likelihood], -3, 3))
    assert length == pytest.approx(module.MIDDLE * module.RATIO**middle, rel=0.001)
    assert len(set(lengths)) == len(lengths) == tried  # no length is tried twice


def test_a_length_that_diverges_does_not_win(monkeypatch):
    finite = module.Factors.finite
    monkeypatch.setattr(module.Factors, "finite", lambda model: finite(model) and np.abs(model.users).max() < 0.1)
    assert length_of(in_groups(4, 60, 40)) == module.MIDDLE


@pytest.mark.parametrize(
    "matrix",
    [np.ones((1, 3)), np.eye(30), np.ones((40, 8)), np.tri(3, 4)],
    ids=["one user", "one each", "everything", "few"],
)
def test_where_nothing_can_be_held_out_or_told_there_is_a_length(matrix):
    assert 1 < length_of(sp.csr_matrix(matrix.astype(np.float32))) < 5


def test_models_are_judged_by_places_and_likelihood():
    model = module.Factors(np.eye(2, dtype=np.float32), np.array([[4, 1], [3, 2], [2, 3], [1, 4]], np.float32), None)
    kept, held_out = (
        sp.csr_matrix(np.array(rows)) for rows in ([[1, 0, 0, 0], [0, 0, 0, 1]], [[0, 0, 1, 0], [1, 0, 1, 0]])
    )
    gains, likelihoods = module._judge(model, kept, held_out, 1)  # places 2; 1 and 3
    np.testing.assert_allclose(gains, [1 / np.log2(3), (1 + 0.5) / 2])
    np.testing.assert_allclose(likelihoods, 2 - np.log(np.exp([1, 2, 3, 4]).sum()), rtol=1e-5)


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


@pytest.mark.parametrize(("gained", "learnt"), [(0.05, True), (0.001, False), (0.0, False), (-0.05, False)])
def test_rivals_are_learnt_where_lists_gain_more_than_chance(monkeypatch, gained, learnt):
    judge = module._judge

    def changed(model, kept, held_out, threads):
        own = judge(model, kept, held_out, threads)
        noise = np.random.default_rng(0).normal(0, 0.1, len(own.gains))
        return own if model.tau is None else own._replace(gains=own.gains + gained + noise - noise.mean())

    monkeypatch.setattr(module, "_judge", changed)
    data = Interactions.from_csr(in_groups(6, 300, 120))
    settings = settings_for(SAD(8), data)
    assert settings.rival_regularization == (0.03 if learnt else RIVALS_REST)
    assert settings.origins["rival_regularization"] == ("default" if learnt else "data")
    given = settings_for(SAD(8, rival_regularization=0.01), data)
    assert (given.rival_regularization, given.origins["rival_regularization"]) == (0.01, "given")
    fitted = SAD(8, iterations=3).fit(data)
    assert (fitted.rival_factors == 1).all() != learnt


def test_with_t_at_1_sad_is_bpr_bit_by_bit():
    data = Interactions.from_csr(in_groups(6, 300, 120))
    sad, bpr = (model(8, iterations=3).fit(data) for model in (SAD, BPR))
    assert sad.settings.rival_regularization == RIVALS_REST
    np.testing.assert_array_equal(sad.user_factors, bpr.user_factors)
    np.testing.assert_array_equal(sad.item_factors, bpr.item_factors)


def test_a_model_whose_t_rests_continues_so_with_interactions_alone():
    data = Interactions.from_csr(in_groups(6, 300, 120))
    model = SAD(8, iterations=3).fit(data)
    assert model.partial_fit(data).settings.rival_regularization == RIVALS_REST
    stated = Comparisons.from_indices([0, 1], [3, 4], [5, 6], users=list(data.users), items=list(data.items))
    assert model.partial_fit(stated).settings.rival_regularization < RIVALS_REST


def test_lists_of_a_race_follow_mean_margins():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(3, 2)), np.abs(rng.normal(1, 0.5, size=(5, 4)))
    model = module.Factors(users.astype(np.float32), items.astype(np.float32), None)
    kept = sp.csr_matrix((3, 5))
    eta, tau = items[:, :2], items[:, 2:]
    margins = [[xi @ (eta[i] * tau - tau[i] * eta).T for i in range(5)] for xi in users]
    best = np.mean(margins, axis=2).argmax(axis=1)
    held_out = sp.csr_matrix((np.ones(3), (np.arange(3), best)), (3, 5))
    np.testing.assert_array_equal(module._judge(model, kept, held_out, 2).gains, np.ones(3))
