"""Choose the number of factors, the length of vectors, and whether T is learnt, from the interactions, before a fit.

The length is found by a race: models of different lengths learn two epochs on a part of the users, a tenth of whose
interactions are held out, and the likelihood of these decides. After two epochs lengths are ordered as after a whole
fit. Rivals have to make better lists than T at 1 in such a race.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

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

MIDDLE, STEP = 2.0, 1.25
"""Lengths of the race are ``MIDDLE * STEP**k``."""
_SHORTEST, _LONGEST = -3, 3
LONGER = 1.12
"""By how much the length of a whole fit on all data is above the one of the race that predicts best."""
CHANCE = 2.0
"""What rivals have to gain, in its standard errors, to be learnt."""
HELD_OUT, EPOCHS = 0.1, 2
USERS, JUDGED = 2000, 3000
"""A third of the users take part, or this number where that is more; the lists of at most ``JUDGED`` are judged."""
_CUT = 20  # of the lists
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

    gains: Doubles  # nDCG of the lists
    likelihoods: Doubles  # mean log likelihood of the held-out items among all, seen ones as well


class _Race:
    """Models that learn from a part of the users, and are judged by what these chose besides."""

    def __init__(self, chosen: Any, settings: Settings, threads: int):
        users = np.random.default_rng(0).permutation(chosen.shape[0])
        self.kept, self.held_out = _held_out(chosen[np.sort(users[: max(len(users) // 3, USERS)])])
        self.threads = threads
        self._settings = replace(settings, iterations=EPOCHS, order_share=0.0, adaptive=False)

    def spectrum(self, factors: int) -> Spectrum:
        """Return where models with this number of factors start."""
        return decompose(self.kept, min(factors, *self.kept.shape))

    def judged(self, spectrum: Spectrum, length: float, rivals: bool = False) -> "Judged":
        """Return how good a model is for each user; T has the last epoch."""
        settings = replace(self._settings, factors=len(spectrum.values), length=length, learn_rivals=rivals)
        rows = self.kept.indptr.astype(np.int64), self.kept.indices.astype(np.int32), None
        power = settings.user_balance
        weights = balance(np.diff(rows[0]), power).astype(np.float32) if power else None
        users, items = self.kept.shape
        model = initial_factors(users, items, settings.factors, 0.0, rivals, settings.bias, 0)
        start_items(model, spectrum, slice(None), length)
        start_users(model.users, spectrum, rows, length)
        trainer = Trainer(model, settings, Positives(*rows, weights), num_threads=self.threads)
        for _ in range(EPOCHS):
            trainer.train_epoch(lambda: None)
        if not model.finite():
            return Judged(np.zeros(1), np.array([-np.inf]))
        return _judge(model, self.kept, self.held_out, self.threads)


def _best_length(race: _Race, factors: int) -> float:
    """Climb from the middle of the ladder to the length under which held-out items are likeliest, and go between."""
    if not race.held_out.nnz:
        return MIDDLE
    spectrum = race.spectrum(factors)
    likelihoods: dict[int, float] = {}

    def likelihood(step: int) -> float:
        """Return the mean log likelihood with a length; the least beyond the ends of the ladder."""
        if not _SHORTEST <= step <= _LONGEST:
            return -np.inf
        if step not in likelihoods:
            likelihoods[step] = float(race.judged(spectrum, MIDDLE * STEP**step).likelihoods.mean())
        return likelihoods[step]

    best = 0
    for direction in (1, -1):
        while likelihood(best + direction) > likelihood(best):
            best += direction
    below, at, above = (likelihood(best + step) for step in (-1, 0, 1))
    bend = below + above - 2 * at  # of the parabola through the three
    vertex = best + (0.5 * (below - above) / bend if -np.inf < bend < 0 else 0.0)
    return round(float(LONGER * MIDDLE * STEP**vertex), 3)


def _rivals_pay(race: _Race, factors: int, length: float) -> bool:
    """Whether lists are better with rivals than with T at 1, by more than chance; few factors show it."""
    if not race.held_out.nnz:
        return False
    spectrum = race.spectrum(min(factors, FEWEST_FACTORS))
    gained = race.judged(spectrum, length, rivals=True).gains - race.judged(spectrum, length).gains
    return bool(gained.mean() > CHANCE * gained.std() / np.sqrt(len(gained)))


def _judge(model: Factors, kept: Any, held_out: Any, threads: int) -> Judged:
    """Judge a model by the held-out items of some users."""
    from threadpoolctl import threadpool_limits

    users = np.flatnonzero(np.diff(held_out.indptr))
    if len(users) > JUDGED:
        users = np.sort(np.random.default_rng(0).permutation(users)[:JUDGED])
    discounts = 1 / np.log2(np.arange(2, _CUT + 2))
    ideal = np.cumsum(discounts)
    gains, likelihoods, vectors = np.zeros(len(users)), np.zeros(len(users)), model.eta
    if model.tau is not None:  # margins against all items, on average
        vectors = model.eta * model.tau.mean(axis=0) - model.tau * model.eta.mean(axis=0)
    step = max(_SCORES // kept.shape[1], 1)

    def judge(first: int) -> None:
        scores = model.users[users[first : first + step]] @ vectors.T
        if model.bias is not None:
            scores += model.bias
        for row, user in enumerate(users[first : first + step].tolist()):
            own = scores[row]
            most = own.max()
            total = most + np.log(np.exp(own - most).sum())
            own[kept.indices[kept.indptr[user] : kept.indptr[user + 1]]] = -np.inf
            wanted = own[held_out.indices[held_out.indptr[user] : held_out.indptr[user + 1]]]
            likelihoods[first + row] = wanted.mean() - total
            ranks = np.count_nonzero(own > wanted[:, None], axis=1)
            gained = discounts[ranks[ranks < _CUT]].sum()
            gains[first + row] = gained / ideal[min(len(wanted), _CUT) - 1]

    # On several threads a product would have other bits: each takes users of its own.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
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
