"""How well the truth is recovered: what the project promises of the paper's simulations."""

from functools import cache

import numpy as np
import pytest

from sadrec import BPR, SAD
from sadrec.data import simulate
from studies.simulation.alignment import align
from studies.simulation.authors import read_simulation
from studies.simulation.fits import make_model, preferences, sparsity


def ours(simulation, seed):
    return SAD(factors=5, solver="sgd", advanced={"adaptive": True}, random_state=seed, num_threads=1).fit(
        simulation.comparisons
    )


def bpr(simulation, seed):
    return BPR(solver="sgd", factors=5, random_state=seed, num_threads=1).fit(simulation.comparisons)


def as_printed(simulation, seed):
    model, start = make_model("sad-paper", simulation, seed)
    return model.fit(simulation.comparisons, warm_start=start)


def mse(model, simulation):
    return float(np.mean((preferences(model.state.parameters) - simulation.X) ** 2))


@pytest.fixture(scope="module")
def authors(data_folder):
    """Load the authors' simulation with a share missing; the seed decides which."""
    path = data_folder / "authors-sim2" / "raw.npz"
    return lambda missing, seed: read_simulation(path, missing=missing, seed=seed)


@pytest.fixture(scope="module")
def relative_error(authors):
    """Return MSE over the variance of X on the authors' truth as a function of the missing share; five seeds."""

    @cache
    def mean(missing):
        pieces = [authors(missing, seed) for seed in range(5)]
        return np.mean([mse(ours(piece, seed), piece) / piece.X.var() for seed, piece in enumerate(pieces)])

    return mean


@pytest.mark.data
def test_complete_data_ours_finds_x_t_and_its_sparsity_in_the_same_fits(authors):
    simulation = authors(0, 0)
    models = [ours(simulation, seed) for seed in range(5)]
    assert np.mean([mse(model, simulation) for model in models]) <= 0.9
    assert np.mean([align(model, simulation).rival_correlation for model in models]) >= 0.99
    assert abs(np.mean([sparsity(model.rival_factors) for model in models]) - 0.86) <= 0.02


@pytest.mark.data
def test_complete_data_the_papers_setting_finds_what_the_paper_shows(authors):
    simulation = authors(0, 0)
    models = [as_printed(simulation, seed) for seed in range(5)]
    assert np.mean([mse(model, simulation) for model in models]) <= 6.5
    assert np.mean([align(model, simulation).rival_correlation for model in models]) >= 0.95


@pytest.mark.data
def test_complete_data_bpr_cannot_find_it(authors):
    simulation = authors(0, 0)
    assert np.mean([mse(bpr(simulation, seed), simulation) for seed in range(5)]) > 14


@pytest.mark.data
@pytest.mark.parametrize(("missing", "most"), [(0.5, 1.4), (0.8, 5.0)])
def test_with_comparisons_missing(authors, relative_error, missing, most):
    assert relative_error(missing) * authors(0, 0).X.var() <= most


@pytest.mark.data
@pytest.mark.parametrize("missing", [0.0, 0.5, 0.8])
def test_ten_fresh_truths_are_found_as_well_as_the_authors(relative_error, missing):
    fresh = [simulate("sim2", missing=missing, seed=seed) for seed in range(10)]
    error = np.mean([mse(ours(piece, seed), piece) / piece.X.var() for seed, piece in enumerate(fresh)])
    assert error <= 1.5 * relative_error(missing)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.5])
def test_where_bpr_is_true_sad_is_as_good(missing):
    pieces = [simulate("sim1", missing=missing, seed=seed) for seed in range(3)]
    errors = [[mse(fit(piece, seed), piece) for seed, piece in enumerate(pieces)] for fit in (ours, bpr)]
    assert np.mean(errors[0]) <= 1.05 * np.mean(errors[1])
