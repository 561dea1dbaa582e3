"""One piece of the simulation study: a model, fitted to one simulation and watched epoch by epoch."""

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sadrec
from sadrec import BPR, SAD
from sadrec.data import Simulation, simulate
from sadrec.models import DivergedError
from sadrec.ranking import Parameters
from sadrec.ranking.alignment import factors_of
from studies._tools import Record, Unit, digest, fingerprint, settings_of
from studies.simulation.alignment import HasFactors, align
from studies.simulation.authors import read_simulation

log = logging.getLogger("sadrec")

Floats = NDArray[np.float64]

SCENARIOS = {
    "sim1": "Sim1, a fresh truth per seed",
    "sim2": "Sim2, a fresh truth per seed",
    "authors": "Sim2, the authors' own truth",
}
MODELS = {
    "sad": "SAD, ours",
    "bpr": "BPR, ours",
    "sad-paper": "SAD, the paper's setting",
    "bpr-paper": "BPR, the paper's setting",
}
# As the paper has it; BPR without the l1 term. The learning rate does not fall, and there is no item bias.
PAPER: dict[str, Any] = {
    "iterations": 20,
    "learning_rate": 0.05,
    "regularization": 0.005,
    "solver": "sgd",
    "advanced": {"schedule": "constant"},
    "bias": False,
}
PAPER_RIVAL_REGULARIZATION = 0.01

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 3

# An entry of T that is as close to 1 as this counts as 1, as in the history of a fit.
SPARSE = 0.05


@dataclass(frozen=True)
class Piece:
    """The simulation that some models are fitted to.

    Attributes
    ----------
    scenario
        One of :data:`SCENARIOS`.
    missing
        Percentage of the comparisons left out.
    seed
        Of the simulation and of the fit. The authors' truth and outcomes are what they are; there it decides what is
        missing.
    authors_file
        The authors' .npz file, for the scenario "authors".
    """

    scenario: str
    missing: int
    seed: int
    authors_file: Path | None = None

    def simulation(self) -> Simulation:
        """Make or load it."""
        share = self.missing / 100
        if self.scenario == "authors":
            if self.authors_file is None:
                raise ValueError("the scenario 'authors' needs the authors' .npz file: pass authors_file")
            return read_simulation(self.authors_file, missing=share, seed=self.seed)
        if self.scenario not in SCENARIOS:
            raise ValueError(f"scenario must be one of {', '.join(SCENARIOS)}, not {self.scenario!r}")
        return simulate("sim1" if self.scenario == "sim1" else "sim2", missing=share, seed=self.seed)


def make_model(name: str, simulation: Simulation, seed: int) -> tuple[SAD, SAD | None]:
    """Return a model to be fitted and the model to start from, if it does not start as it would by itself.

    Parameters
    ----------
    name
        One of :data:`MODELS`.
    simulation
        What it will be fitted to; it is given the true number of factors, as in the paper.
    seed
        Of the fit.

    Examples
    --------
    >>> model, start = make_model("sad", simulate(), seed=0)
    >>> model
    <SAD(factors=5, num_threads=1, solver='sgd', advanced={'adaptive': True}), not fitted>
    """
    n, m, k = simulation.shape
    if name == "sad":
        return SAD(factors=k, solver="sgd", advanced={"adaptive": True}, num_threads=1, random_state=seed), None
    if name == "bpr":
        return BPR(factors=k, solver="sgd", num_threads=1, random_state=seed), None
    if name not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}, not {name!r}")
    rng = np.random.default_rng((seed, 0x5AD))
    xi, eta, tau = rng.standard_normal((n, k)), rng.standard_normal((m, k)), np.exp(rng.standard_normal((m, k)))
    ids = {"users": simulation.comparisons.users, "items": simulation.comparisons.items}
    common = {"factors": k, "num_threads": 1, "random_state": seed, **PAPER}
    if name == "bpr-paper":
        return BPR(**common), BPR.from_factors(xi, eta, **ids)
    sad = SAD(**common, rival_regularization=PAPER_RIVAL_REGULARIZATION)
    return sad, SAD.from_factors(xi, eta, tau, **ids)


def preferences(parameters: Parameters) -> Floats:
    """Return the whole tensor X, (users, items, items), anti-symmetric in its last two axes."""
    xi, eta, tau = factors_of(parameters.extended())
    half = (xi[:, None, :] * eta) @ tau.T
    return np.asarray(half - half.transpose(0, 2, 1))


class Watcher:
    """Compares a model in training with the truth, as a callback of ``fit``.

    Parameters
    ----------
    simulation
        Its comparisons are those the model is trained on.

    Attributes
    ----------
    curves
        ``log_likelihood`` (mean over the comparisons), ``mse`` (mean squared error of X) and ``sparsity`` (share of T
        within 0.05 of 1), a number per epoch.
    """

    def __init__(self, simulation: Simulation) -> None:
        pairs = simulation.comparisons
        self._pairs = pairs.user_index, pairs.winner_index, pairs.loser_index
        self._truth = simulation.X
        self.curves: dict[str, list[float]] = {"log_likelihood": [], "mse": [], "sparsity": []}

    def __call__(self, epoch: int, figures: Any, model: SAD) -> None:
        """Add a point to every curve."""
        estimate = preferences(model.state.parameters)
        self.curves["log_likelihood"].append(self.log_likelihood(estimate))
        self.curves["mse"].append(float(np.mean((estimate - self._truth) ** 2)))
        self.curves["sparsity"].append(sparsity(model.rival_factors))

    def log_likelihood(self, preferences: Floats) -> float:
        """Return the mean log likelihood of the comparisons."""
        x = preferences[self._pairs]
        return float(np.mean(np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))))


def sparsity(rival_factors: NDArray[Any]) -> float:
    """Return the share of T that counts as 1."""
    return float(np.mean(np.abs(rival_factors - 1) < SPARSE))


def unit(piece: Piece, name: str, simulation: Simulation) -> Unit:
    """Return the unit that fits a model to a piece; ``simulation`` is what the piece makes."""
    model, start = make_model(name, simulation, piece.seed)
    first = () if start is None else (start.user_factors, start.item_factors, start.rival_factors)
    identity = {
        "format": FORMAT,
        "version": sadrec.__version__,
        "model": name,
        "settings": settings_of(model, simulation.comparisons),
        "data": digest(simulation.comparisons),
        "truth": fingerprint(simulation.user_factors, simulation.item_factors, simulation.rival_factors),
        "start": fingerprint(*first),
    }
    title = f"{piece.scenario}-{piece.missing:02d}-{name}-{piece.seed:03d}"
    return Unit(title, identity, partial(fit_and_watch, piece, name))


def fit_and_watch(piece: Piece, name: str) -> Record:
    """Fit a model to a piece and return what the study reports of it, as plain values.

    A fit that diverges is part of the study (the paper's learning rate does, on some truths): its record says so.
    """
    simulation = piece.simulation()
    watcher = Watcher(simulation)
    model, start = make_model(name, simulation, piece.seed)
    untrained, _ = make_model(name, simulation, piece.seed)
    untrained.set_params(iterations=0).fit(simulation.comparisons, False, warm_start=start)
    watcher(0, {}, untrained)
    aligned = None
    try:
        model.fit(simulation.comparisons, False, warm_start=start, callbacks=[watcher])
        aligned = align(model, simulation)
    except DivergedError:
        log.info("%s diverged on %s", name, piece)
    correlations = ("user_correlation", "item_correlation", "rival_correlation")
    shown = aligned is not None and piece.seed == 0  # the figures of the factors show one seed
    return {
        "scenario": piece.scenario,
        "missing": piece.missing,
        "seed": piece.seed,
        "model": name,
        "diverged": aligned is None,
        **watcher.curves,
        "true_log_likelihood": watcher.log_likelihood(simulation.X),
        "true_sparsity": sparsity(simulation.rival_factors),
        "variance": float(simulation.X.var()),
        "cells": simulation.X.size,
        **{name: None if aligned is None else getattr(aligned, name) for name in correlations},
        "aligned": _factors(aligned.parameters) if aligned is not None and shown else None,
        "truth": _factors(simulation) if shown else None,
    }


def _factors(owner: HasFactors) -> dict[str, list[list[float]]]:
    """Return factors as plain numbers."""
    names = ("user_factors", "item_factors", "rival_factors")
    return {name: np.round(np.asarray(getattr(owner, name), np.float64), 5).tolist() for name in names}
