"""Choose the number of factors, the length of vectors, and whether T is learnt, from the interactions, before a fit.

The length is found by a race: models of different lengths learn one epoch on half of the users, a tenth of whose
interactions are held out. After one epoch lengths are ordered as after a whole fit. The length taken is in the middle
between the one with the best lists, mostly the longer, and the one under which held-out items are likeliest. Rivals
have to make better lists than T at 1 in such a race.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.linear import blas_threads
from sadrec._core.types import Doubles
from sadrec.training.settings import RIVALS_REST, Settings
from sadrec.training.sgd.factors import Factors, initial_factors
from sadrec.training.sgd.negatives import Positives
from sadrec.training.sgd.samplers import balance
from sadrec.training.sgd.spectrum import (
    FEWEST_FACTORS,
    Spectrum,
    decompose,
    factors_above_chance,
    start_items,
    start_users,
)
from sadrec.training.sgd.trainer import Trainer

MIDDLE, RATIO = 2.0, 1.25
"""Lengths of the race are ``MIDDLE * RATIO**k``."""
_SHORTEST, _LONGEST = -3, 3
CHANCE = 2.0
"""What rivals have to gain, in its standard errors, to be learnt."""
HELD_OUT = 0.1
USERS, JUDGED = 3000, 5000
"""Half of the users take part, or this number where that is more; the lists of at most ``JUDGED`` are judged."""
_SCORES = 1 << 22  # held at a time by a thread


class Survey(NamedTuple):
    """The settings that suit the data."""

    factors: int
    length: float
    rival_regularization: float


def survey(chosen: Any, settings: Settings, factors: int | None, length: float | None, threads: int) -> Survey:
    """Return the number of factors that the spectrum supports, the length that wins the race, and whether rivals pay.

    What is given stays. ``chosen`` has a row for each user; ``settings`` are those of the fit, whose factors and length
    do not count.
    """
    if factors is None:
        factors = factors_above_chance(chosen)
    race = _Race(chosen, settings, threads)
    if length is None:
        length = _best_length(race, factors)
    l1, given = settings.rival_regularization, settings.origins.get("rival_regularization") == "given"
    if settings.learn_rivals and not (given or settings.adaptive or _rivals_pay(race, factors, length)):
        l1 = RIVALS_REST
    return Survey(factors, length, l1)


class Judged(NamedTuple):
    """How good a model is for each user with held-out items."""

    gains: Doubles  # mean of 1 / log2(1 + place) in the list of unseen items: nDCG without a cut
    likelihoods: Doubles  # mean log likelihood of the held-out items among all, seen ones as well


class _Race:
    """Models that learn from a part of the users, and are judged by what these chose besides."""

    def __init__(self, chosen: Any, settings: Settings, threads: int):
        users = np.random.default_rng(0).permutation(chosen.shape[0])
        self.kept, self.held_out = _held_out(chosen[np.sort(users[: max(len(users) // 2, USERS)])])
        self.threads = threads
        self._settings = replace(settings, iterations=1, order_share=0.0, adaptive=False)

    def spectrum(self, factors: int) -> Spectrum:
        """Return where models with this number of factors start."""
        return decompose(self.kept, min(factors, *self.kept.shape))

    def judged(self, spectrum: Spectrum, length: float, rivals: bool = False) -> Judged:
        """Return how good a model is for each user."""
        settings = replace(self._settings, factors=len(spectrum.values), length=length, learn_rivals=rivals)
        rows = self.kept.indptr.astype(np.int64), self.kept.indices.astype(np.int32), None
        power = settings.user_balance
        weights = balance(np.diff(rows[0]), power).astype(np.float32) if power else None
        users, items = self.kept.shape
        model = initial_factors(users, items, settings.factors, 0.0, rivals, settings.bias, 0)
        start_items(model, spectrum, slice(None), length)
        start_users(model.users, spectrum, rows, length)
        trainer = Trainer(model, settings, Positives(*rows, weights), num_threads=self.threads)
        trainer.train_epoch(lambda: None)
        if not model.finite():
            return Judged(np.zeros(1), np.array([-np.inf]))
        return _judge(model, self.kept, self.held_out, self.threads)


def _best_length(race: _Race, factors: int) -> float:
    """Return the middle, in logarithms, between the lengths of the best lists and of the greatest likelihood."""
    if not race.held_out.nnz:
        return MIDDLE
    spectrum = race.spectrum(factors)

    @cache
    def judged(step: int) -> Judged:
        """Judge the model with a length of the ladder."""
        return race.judged(spectrum, MIDDLE * RATIO**step)

    best_lists = _top(lambda step: judged(step).gains.mean())
    likeliest = _top(lambda step: judged(step).likelihoods.mean())
    return round(float(MIDDLE * RATIO ** (0.5 * (best_lists + likeliest))), 3)


def _top(value: Callable[[int], float]) -> float:
    """Climb the ladder from 0 to the step with the largest value; return the top of the parabola there."""

    def at(step: int) -> float:
        return float(value(step)) if _SHORTEST <= step <= _LONGEST else -np.inf

    best = 0
    for direction in (1, -1):
        while at(best + direction) > at(best):
            best += direction
    below, above = at(best - 1), at(best + 1)
    bend = below + above - 2 * at(best)
    return best + (0.5 * (below - above) / bend if -np.inf < bend < 0 else 0.0)


def _rivals_pay(race: _Race, factors: int, length: float) -> bool:
    """Whether lists are better with rivals than with T at 1, by more than chance; few factors show it."""
    if not race.held_out.nnz:
        return False
    spectrum = race.spectrum(min(factors, FEWEST_FACTORS))
    gained = race.judged(spectrum, length, rivals=True).gains - race.judged(spectrum, length).gains
    return bool(gained.mean() > CHANCE * gained.std() / np.sqrt(len(gained)))


def _judge(model: Factors, kept: Any, held_out: Any, threads: int) -> Judged:
    """Judge a model by the held-out items of some users.

    Lists have no cut: where users have few items, the first places alone are mostly chance.
    """
    users = np.flatnonzero(np.diff(held_out.indptr))
    if len(users) > JUDGED:
        users = np.sort(np.random.default_rng(0).permutation(users)[:JUDGED])
    gains, likelihoods, vectors = np.zeros(len(users)), np.zeros(len(users)), model.eta
    if model.tau is not None:  # margins against all items, on average
        vectors = model.eta * model.tau.mean(axis=0) - model.tau * model.eta.mean(axis=0)
    step = max(_SCORES // kept.shape[1], 1)

    def judge(first: int) -> None:
        scores = model.users[users[first : first + step]] @ vectors.T
        if model.bias is not None:
            scores += model.bias
        for row, user in enumerate(users[first : first + step].tolist()):
            own, seen = scores[row], kept.indices[kept.indptr[user] : kept.indptr[user + 1]]
            wanted = own[held_out.indices[held_out.indptr[user] : held_out.indptr[user + 1]]]
            most = own.max()
            likelihoods[first + row] = wanted.mean() - most - np.log(np.exp(own - most).sum())
            own[seen] = -np.inf
            gains[first + row] = np.mean(1 / np.log2(2 + np.count_nonzero(own > wanted[:, None], axis=1)))

    # On several threads a product would have other bits: each takes users of its own.
    with blas_threads(1), ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        list(pool.map(judge, range(0, len(users), step)))
    return Judged(gains, likelihoods)


def _held_out(chosen: Any) -> tuple[Any, Any]:
    """Split the choices of users with three or more at random."""
    lengths = np.diff(chosen.indptr)
    users = np.repeat(np.arange(chosen.shape[0]), lengths)
    out = (np.random.default_rng(0).random(chosen.nnz) < HELD_OUT) & (lengths[users] > 2)
    return _part(chosen, users, ~out), _part(chosen, users, out)


def _part(chosen: Any, users: NDArray[np.int64], kept: NDArray[np.bool_]) -> Any:
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users[kept], minlength=chosen.shape[0]))])
    return sp.csr_matrix((chosen.data[kept], chosen.indices[kept], indptr), chosen.shape)
