"""Fit comparisons by the variational solver, which gives parameters and their uncertainty."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from sadrec._core.linear import blas_threads
from sadrec._core.types import Doubles, Floats
from sadrec.models.state import State
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Belief, Gaussian
from sadrec.ranking.controls import Controls
from sadrec.ranking.results import Results
from sadrec.ranking.ties import Ties, distance
from sadrec.training.dataset import TrainingData
from sadrec.training.features import Prepared
from sadrec.training.loop import Figures
from sadrec.training.settings import Settings
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.given import Pairs
from sadrec.training.validation import HeldOut
from sadrec.training.variational.arrays import Rows
from sadrec.training.variational.counts import Counts, count
from sadrec.training.variational.learners import Learners, Sweeps, left_out_margins
from sadrec.training.variational.solver import Variational
from sadrec.training.variational.tie_widths import Outcomes, fit_widths

_AT_ONCE = 4096  # rows whose covariances are made at once


class ModelSweeps(Sweeps):
    """Sweeps from comparisons to the state of a model, which training does not know.

    The state is made when it is needed: by :meth:`learnt`, and after every sweep where there is held-out data.
    ``history`` is that of the run; when the state is made, its last entry gets the left-out losses.
    """

    def __init__(
        self,
        data: TrainingData,
        settings: Settings,
        threads: int,
        validation: Pairs | HeldOut | None,
        history: list[Figures],
        features: Prepared | None = None,
    ) -> None:
        if data.comparisons is None:
            raise ValueError("there are no comparisons to learn from")
        self._data, self._settings, self._features, self._history = data, settings, features, history
        self._held_out = validation.all() if isinstance(validation, HeldOut) else validation
        self._made: tuple[int, State] | None = None  # after which sweep, and the state
        self._executor = ThreadPoolExecutor(threads)
        self._both = Learners(
            data.comparisons,
            len(data.users),
            len(data.items),
            settings.factors,
            settings.seed,
            settings.learn_rivals,
            threads=threads,
            executor=self._executor if threads > 1 else None,
            sweeps=settings.iterations,
            features=(None, None) if features is None else features.rows,
        )
        super().__init__(self._both, settings.iterations)
        self.judged = validation is not None
        tied = None if data.ties is None else count_outcomes(data.ties, len(data.items))
        alike = data.comparisons.features is None
        counts = self._both.counts if alike else count_outcomes(data.comparisons, len(data.items))
        self._results = Results.of(counts, tied, len(data.items))

    def judge(self) -> Figures:
        """Return the left-out losses, and mean log likelihood and accuracy on the held-out data."""
        losses: Figures = {}
        state = self._make(losses)
        self._made = self.done, state
        return losses if self._held_out is None else {**losses, **figures_of_belief(state.belief, self._held_out)}

    def learnt(self, finished: bool = False) -> State:
        """Return the state of a model; when it is finished no sweep can follow, and less memory is taken."""
        if self._made is None or self._made[0] != self.done:
            self._made = self.done, self._make(self._history[-1] if self._history else {}, finished)
        return self._made[1]

    def close(self) -> None:
        """End the threads."""
        self._executor.shutdown()

    def _make(self, losses: Figures, last: bool = False) -> State:
        """Return the state of a model, and add the left-out losses to some figures."""
        belief, left_out = chosen_belief(self._both, self._data, last)
        losses |= dict(zip(("left_out_loss", "left_out_loss_without_factors"), left_out, strict=False))
        parameters, predicted = belief.parameters, None
        if self._features is not None:
            sides = (parameters.item_factors, parameters.rival_factors)
            rows = np.hstack([side for side in sides if side is not None])
            factors = Factors(parameters.user_factors, rows, parameters.item_bias)
            full, predicted = self._features.complete(factors)
            whole = Parameters(full.users, full.eta, full.tau, full.bias, user_mean=parameters.user_mean)
            belief = replace(belief, parameters=whole)
        users, items = self._data.users, self._data.items
        return State(belief, users, items, None, self._settings, self._history, predicted, results=self._results)


def figures_of_belief(belief: Belief, pairs: Pairs) -> Figures:
    """Return the mean log likelihood of held-out pairs and the share that is ordered rightly (equals count half)."""
    x = belief.log_odds(pairs.user, pairs.winner, pairs.loser)
    figures = {"validation_log_likelihood": -np.logaddexp(0, -x), "validation_accuracy": (x > 0) + 0.5 * (x == 0)}
    return {name: float(np.average(values, weights=pairs.weight)) for name, values in figures.items()}


def chosen_belief(learners: Learners, data: TrainingData, last: bool = False) -> tuple[Gaussian, list[float]]:
    """Return the belief of the better learner, and the left-out losses.

    With ``last`` it can make no sweep afterwards, and less memory is taken.
    """
    learner, losses = learners.chosen()
    rows, margins = learner.rows, None if data.ties is None else left_out_margins(learner)
    moments = learner.control_moments()
    if last:
        learner.finish()
    belief = believed(learner)
    if moments is not None:
        belief = replace(belief, controls=Controls(data.feature_names, *moments))
    if data.ties is not None and margins is not None:
        belief = replace(belief, ties=fit_ties(belief, data.ties, rows, margins))
    return belief, losses


def count_outcomes(pairs: Pairs, items: int) -> Counts:
    """Count comparisons of a user and two items, whatever their features."""
    return count(replace(pairs, features=None), items)


def fit_ties(belief: Belief, ties: Pairs, rows: Rows, margins: tuple[Doubles, Doubles]) -> Ties:
    """Fit the probability of ties, with each comparison's margin predicted from the others.

    ``margins`` are mean and variance of those of ``rows``, won and lost, with one such comparison left out.
    """
    tied = count_outcomes(ties, belief.parameters.n_items)
    apart = distance(*belief.distribution(tied.user, tied.item, tied.rival))
    parts = [Outcomes(tied.user, tied.item, tied.rival, tied.weight, 0 * tied.weight, apart)]
    for column, decided in enumerate((rows.wins, rows.weight - rows.wins)):
        some = decided > 0
        apart = distance(*(moment[some, column] for moment in margins))
        sides = rows.user[some], rows.item[some], rows.rival[some]
        parts.append(Outcomes(*sides, 0 * decided[some], decided[some], apart))
    outcomes = Outcomes(*map(np.concatenate, zip(*parts, strict=True)))
    with blas_threads(1):
        widths = fit_widths(outcomes, belief.parameters.n_users, belief.parameters.n_items)
    return Ties(*widths[:2], *map(_single, widths[2:]))


def believed(learner: Variational) -> Gaussian:
    """Return the belief of a learner.

    There is at least one factor, all zeros where every factor was dropped.
    """
    beliefs, prior, pairings = learner.widened(), learner.prior, learner.pairings
    k = len(prior.user_mean)
    user, item = beliefs.user, beliefs.item
    covariances = [_covariance(user, beliefs.user_moment), _covariance(item, beliefs.item_moment)]
    eta, tau = item[:, :k].copy(), item[:, k:]
    eta[:, 0] += learner.trend * learner.meetings
    population = np.stack((prior.user_mean, *(values**-0.5 for values in prior[1:])))
    if k == 1:  # all factors were dropped
        user, eta, tau = (
            np.hstack((side, np.full((len(side), 1), value))) for side, value in ((user, 0.0), (eta, 0.0), (tau, 1.0))
        )
        population = np.hstack((population, np.zeros((4, 1))))
        covariances = [_spaced(covariance) for covariance in covariances]
    own: tuple[Any, ...] = ()
    if learner.own is not None and learner.own.scale:
        own = learner.own_keys, _single(learner.own.mean), _single(learner.own_variance), learner.own.scale
    parameters = Parameters(
        _single(user[:, 1:]),
        _single(eta[:, 1:]),
        _single(tau[:, 1:]) if learner.rivals else None,
        _single(eta[:, 0]),
        _single(population[0, 1:]),
    )
    return Gaussian(
        parameters,
        _single(covariances[0]),
        _single(covariances[1]),
        np.ascontiguousarray(population[:, 1:]),
        learner.pairing_keys,
        _single(pairings.mean),
        _single(pairings.variance),
        float(pairings.scale),
        *own,
    )


def _covariance(mean: Doubles, moment: Doubles) -> Floats:
    """Return covariances in single precision, made of a few rows at a time."""
    covariance = np.empty(moment.shape, np.float32)
    for start in range(0, len(mean), _AT_ONCE):
        part = mean[start : start + _AT_ONCE]
        covariance[start : start + _AT_ONCE] = moment[start : start + _AT_ONCE] - part[:, :, None] * part[:, None, :]
    return covariance


def _spaced(covariance: Floats) -> Floats:
    """Return covariances with a row and a column of zeros appended."""
    rows, size, _ = covariance.shape
    wider = np.zeros((rows, 2 * size, 2 * size), np.float32)
    wider[:, ::2, ::2] = covariance
    return wider


def _single(array: Any) -> Any:
    """Return a read-only array in single precision; double precision is copied."""
    single = np.ascontiguousarray(array, np.float32)
    single.flags.writeable = False
    return single
