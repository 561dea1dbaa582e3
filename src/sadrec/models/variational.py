"""Fit comparisons by the variational solver: what it believes, as parameters and their uncertainty."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from sadrec._types import Doubles, Floats
from sadrec.features.ridge import on_one_thread
from sadrec.models.state import State
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Belief, Gaussian
from sadrec.ranking.controls import Controls
from sadrec.ranking.results import Results
from sadrec.ranking.ties import Ties, distance
from sadrec.training.beliefs import Rows
from sadrec.training.dataset import TrainingData
from sadrec.training.factors import Factors
from sadrec.training.features import Prepared
from sadrec.training.given import Pairs
from sadrec.training.layout import Counts, count
from sadrec.training.learners import Learners
from sadrec.training.leave_one_out import left_out_margins
from sadrec.training.run import check_patience, run_sweeps
from sadrec.training.settings import Settings
from sadrec.training.ties import Outcomes, fit_widths
from sadrec.training.trainer import Figures, lasting
from sadrec.training.validation import HeldOut
from sadrec.training.variational import Variational

_AT_ONCE = 4096  # rows whose covariances are made at once


def fit_comparisons(
    data: TrainingData,
    settings: Settings,
    threads: int,
    keep: Callable[[State], None],
    call_back: Callable[[int, Figures], bool] | None,
    *,
    validation: Pairs | HeldOut | None,
    patience: int | None,
    monitor: str,
    features: Prepared | None = None,
    **options: Any,
) -> None:
    """Learn from comparisons; ``keep`` gets what is learnt.

    ``call_back`` gets number and figures of each sweep, after what is learnt was kept, and may end the fit; without it,
    and without validation data, what is learnt is made at the end alone, Ctrl-C included. The options are those of
    :func:`~sadrec.training.run.run_sweeps`.
    """
    check_patience(patience, validation)
    if data.comparisons is None:
        raise ValueError("there are no comparisons to learn from")
    history: list[Figures] = []
    held_out = validation.all() if isinstance(validation, HeldOut) else validation

    def fitted(figures: Figures, last: bool = False) -> State:
        belief, losses = learnt(learners, data, last)
        parameters = belief.parameters
        figures |= dict(zip(("left_out_loss", "left_out_loss_without_factors"), losses, strict=False))
        predicted = None
        if features is not None:
            sides = (parameters.item_factors, parameters.rival_factors)
            rows = np.hstack([side for side in sides if side is not None])
            factors = Factors(parameters.user_factors, rows, parameters.item_bias)
            full, predicted = features.complete(factors)
            whole = Parameters(full.users, full.eta, full.tau, full.bias, user_mean=parameters.user_mean)
            belief = replace(belief, parameters=whole)
        return State(belief, data.users, data.items, None, settings, history, predicted, results=results)

    def after_sweep(figures: Figures) -> bool:
        if held_out is None and call_back is None:
            history.append(lasting(figures))
            return False
        known = fitted(figures)
        if held_out is not None:
            figures |= validation_figures(known.belief, held_out)
            if monitor not in figures:
                raise ValueError(f"monitor must be one of {sorted(figures)}, not {monitor!r}")
        history.append(lasting(figures))
        keep(known)
        best = int(np.argmax([figures[monitor] for figures in history])) if patience is not None else 0
        best = max(best, learners.last_stage)  # until then, parts of the model come and go
        stop = call_back is not None and call_back(learners.sweep, figures)
        return stop or (patience is not None and len(history) - 1 - best >= patience)

    known = (None, None) if features is None else features.rows
    size = len(data.users), len(data.items), settings.factors
    with ThreadPoolExecutor(threads) as executor:
        learners = Learners(
            data.comparisons,
            *size,
            settings.seed,
            settings.learn_rivals,
            threads=threads,
            executor=executor if threads > 1 else None,
            sweeps=settings.iterations,
            features=known,
        )
        tied = None if data.ties is None else count_outcomes(data.ties, len(data.items))
        alike = data.comparisons.features is None
        counts = learners.counts if alike else count_outcomes(data.comparisons, len(data.items))
        results = Results.of(counts, tied, len(data.items))
        try:
            run_sweeps(learners, settings.iterations, after_sweep, history=history, **options)
        except KeyboardInterrupt:  # between sweeps
            if history:
                keep(fitted(history[-1], last=True))
            raise
    if held_out is None and call_back is None:
        keep(fitted(history[-1], last=True))


def validation_figures(belief: Belief, pairs: Pairs) -> Figures:
    """Return the mean log likelihood of held-out pairs and the share that is ordered rightly (equals count half)."""
    x = belief.log_odds(pairs.user, pairs.winner, pairs.loser)
    figures = {"validation_log_likelihood": -np.logaddexp(0, -x), "validation_accuracy": (x > 0) + 0.5 * (x == 0)}
    return {name: float(np.average(values, weights=pairs.weight)) for name, values in figures.items()}


def learnt(learners: Learners, data: TrainingData, last: bool = False) -> tuple[Gaussian, list[float]]:
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
    """Learn how often items tie, where each comparison's margin is that which the others tell.

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
    with on_one_thread():
        widths = fit_widths(outcomes, belief.parameters.n_users, belief.parameters.n_items)
    return Ties(*widths[:2], *map(_single, widths[2:]))


def believed(learner: Variational) -> Gaussian:
    """Return the belief of a learner.

    There is at least one factor, all zeros where every factor was dropped.
    """
    beliefs, prior, pairings = learner.beliefs, learner.prior, learner.pairings
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
    """Return covariances with a row and a column of zeros behind each of theirs."""
    rows, size, _ = covariance.shape
    wider = np.zeros((rows, 2 * size, 2 * size), np.float32)
    wider[:, ::2, ::2] = covariance
    return wider


def _single(array: Any) -> Any:
    """Return numbers in single precision that nobody can change; those of double precision are copied."""
    single = np.ascontiguousarray(array, np.float32)
    single.flags.writeable = False
    return single
