"""Fit comparisons by the variational solver: what it believes, as parameters and their uncertainty."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sadrec._files import fingerprint
from sadrec._record import Records
from sadrec._types import Doubles
from sadrec.models.fitted import Fitted
from sadrec.ranking import Parameters
from sadrec.ranking.uncertainty import Uncertainty
from sadrec.training.dataset import TrainingData
from sadrec.training.given import Pairs
from sadrec.training.learn import learn
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures
from sadrec.training.variational import Variational


@dataclass(frozen=True)
class Stopping:
    """When to stop before the last sweep: when ``monitor`` has not risen for ``patience`` sweeps on held-out pairs."""

    held_out: Pairs | None
    monitor: str
    patience: int | None

    def __post_init__(self) -> None:
        if self.patience is not None and (self.held_out is None or self.patience < 1 or self.patience % 1):
            raise ValueError(
                f"patience ({self.patience!r}) must be a whole number from 1 and needs a validation set to watch"
            )

    def figures(self, parameters: Parameters, uncertainty: Uncertainty) -> Figures:
        """Return the figures of the held-out pairs."""
        pairs = self.held_out
        if pairs is None:
            return {}
        p = uncertainty.probability(parameters, pairs.user, pairs.winner, pairs.loser)
        right = (p > 0.5) + 0.5 * (p == 0.5)
        figures = {"validation_log_likelihood": np.log(p), "validation_accuracy": right}
        if self.monitor not in figures:
            raise ValueError(f"monitor must be one of {sorted(figures)}, not {self.monitor!r}")
        return {name: float(np.average(values, weights=pairs.weight)) for name, values in figures.items()}

    def due(self, history: list[Figures]) -> bool:
        """Tell whether it is time to stop."""
        if self.patience is None:
            return False
        values = [figures[self.monitor] for figures in history]
        return len(values) - 1 - int(np.argmax(values)) >= self.patience


def fit_comparisons(
    data: TrainingData,
    settings: Settings,
    threads: int,
    stopping: Stopping,
    keep: Callable[[Fitted, int, Figures], bool],
    *,
    checkpoint: str | Path | None,
    checkpoint_seconds: float,
    show_progress: bool,
    title: str,
) -> None:
    """Learn from comparisons.

    Parameters
    ----------
    data
        The comparisons.
    settings
        Of the fit.
    threads
        How many.
    stopping
        When to stop before the last sweep.
    keep
        Called after each sweep with what is learnt, the number of the sweep and its figures; True ends the fit.
    checkpoint, checkpoint_seconds, show_progress, title
        As for ``fit``.
    """
    records = None
    if checkpoint is not None:
        pairs = stopping.held_out
        held_out = None if pairs is None else fingerprint(pairs.user, pairs.winner, pairs.loser, pairs.weight)
        identity = {
            "class": title,
            "data": data.fingerprint(),
            "settings": settings.identity(),
            "validation": held_out,
            "stopping": [stopping.patience, stopping.monitor],
        }
        records = Records(checkpoint, "checkpoint", identity)
    history: list[Figures] = []

    def after_sweep(figures: Figures) -> bool:
        parameters, uncertainty = learnt(learner)
        figures |= stopping.figures(parameters, uncertainty)
        history.append(figures)
        fitted = Fitted(parameters, data.users, data.items, None, settings, history, uncertainty)
        return keep(fitted, learner.sweep, figures) or stopping.due(history)

    with ThreadPoolExecutor(threads) as executor:
        if data.comparisons is None:
            raise ValueError("there are no comparisons to learn from")
        learner = Variational(
            data.comparisons,
            len(data.users),
            len(data.items),
            settings.factors,
            settings.seed,
            settings.learn_rivals,
            threads,
            executor if threads > 1 else None,
        )
        options: dict[str, Any] = {"records": records, "seconds": checkpoint_seconds, "history": history}
        learn(learner, settings.iterations, after_sweep, show_progress=show_progress, title=title, **options)


def learnt(learner: Variational) -> tuple[Parameters, Uncertainty]:
    """Return the means that a learner believes in as parameters, and how uncertain they are.

    There is at least one factor, if only one that says nothing.
    """
    beliefs, prior, pairings = learner.beliefs, learner.prior, learner.pairings
    k = len(prior.user_mean)
    user, item = beliefs.user, beliefs.item
    covariances = [
        moment - mean[:, :, None] * mean[:, None, :]
        for mean, moment in ((user, beliefs.user_moment), (item, beliefs.item_moment))
    ]
    eta, tau = item[:, :k], item[:, k:]
    population = np.stack((prior.user_mean, *(values**-0.5 for values in prior[1:])))
    if k == 1:  # all factors were dropped
        user, eta, tau = (
            np.hstack((side, np.full((len(side), 1), value))) for side, value in ((user, 0.0), (eta, 0.0), (tau, 1.0))
        )
        population = np.hstack((population, np.zeros((4, 1))))
        covariances = [_spaced(covariance) for covariance in covariances]
    parameters = Parameters(
        _single(user[:, 1:]),
        _single(eta[:, 1:]),
        _single(tau[:, 1:]) if learner.rivals else None,
        _single(eta[:, 0]),
        _single(population[0, 1:]),
    )
    uncertainty = Uncertainty(
        _single(covariances[0]),
        _single(covariances[1]),
        np.ascontiguousarray(population[:, 1:]),
        pairings.keys,
        _single(pairings.mean),
        _single(pairings.variance),
        float(pairings.scale),
    )
    return parameters, uncertainty


def _spaced(covariance: Doubles) -> Doubles:
    """Return covariances with a row and a column of zeros behind each of theirs."""
    rows, size, _ = covariance.shape
    wider = np.zeros((rows, 2 * size, 2 * size))
    wider[:, ::2, ::2] = covariance
    return wider


def _single(array: Doubles) -> Any:
    """Return a copy in single precision that nobody can change."""
    copy = np.ascontiguousarray(array, np.float32)
    copy = copy.copy() if copy is array else copy
    copy.flags.writeable = False
    return copy
