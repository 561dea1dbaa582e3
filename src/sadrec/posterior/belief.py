"""Beliefs made of draws of the sampler."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit, ndtr

from sadrec._core.types import Doubles, Floats, Positions
from sadrec.posterior.chain import ByUser
from sadrec.posterior.draws import Draws
from sadrec.posterior.mean_model import aligned, mean_factors
from sadrec.ranking import Parameters
from sadrec.ranking.alignment import Matrices
from sadrec.ranking.belief import Belief, entropy
from sadrec.ranking.pairs import preference
from sadrec.ranking.results import Results
from sadrec.ranking.tournament import Tournament

LOGIT_PER_PROBIT = 1.702
"""Phi(x) and sigmoid(1.702 x) differ by less than 0.01 everywhere (Haley, 1952)."""
_CHUNK = 1 << 20
"""Draws of margins that a thread holds at a time."""
_INFORMED, _ALIGNED = 1000, 1000
"""Draws from which the information of answers is computed, and draws that are aligned, at most."""


@dataclass(frozen=True, eq=False)
class Drawn(Belief):
    """Draws of all parameters, in units of the probit; every answer is in log-odds, 1.702 times as large.

    Margins are averaged over the draws. :attr:`parameters` is one model with as many factors whose margins come close
    to these means; :meth:`pair_part` is what it misses.
    """

    drawn: Draws
    observed: ByUser  # the comparisons that were learnt from
    num_threads: int = 0

    has_pairs = True

    @cached_property
    def by_product(self) -> bool:
        """False: the best items are searched among :meth:`scores`."""
        return False

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.drawn.user.shape[2])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.drawn.item.shape[2])

    @property
    def parameters(self) -> Parameters:  # type: ignore[override]
        """Parameters of the one model whose margins are nearest to the means, in log-odds."""
        return self.mean_model[0]

    @cached_property
    def mean_model(self) -> tuple[Parameters, float]:
        """The :attr:`parameters`, and the share of the squared size of the mean margins that they miss."""
        (xi, eta, tau), missed = mean_factors(self.drawn)
        bias = self.drawn.bias
        mean = None if bias is None else bias.mean(axis=(0, 1), dtype=np.float64)
        return in_log_odds(Parameters(xi, eta, tau, mean)), missed

    @cached_property
    def aligned(self) -> Matrices:
        """Draws of xi, eta and tau, (draws, rows, factors), that can be compared from draw to draw.

        Factors are matched to those of the last draw, and each is written in that of its equivalent forms in which most
        of tau is near 1. At most 1,000 draws; their margins are those of the sampler, in units of the probit, but for
        the bias. tau may fall below 0 here.
        """
        return aligned(self.drawn.at_most(_ALIGNED))

    # -- margins ------------------------------------------------------------------------------------------------------

    def mean(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the posterior means of margins."""
        return self.summarised(lambda x: x.mean(axis=0), users, items, rivals)

    def distribution(self, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return mean and variance of the draws of margins."""
        mean, variance = self.summarised(lambda x: np.stack((x.mean(axis=0), x.var(axis=0))), users, items, rivals)
        return mean, variance

    def probability(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the posterior mean of ``Phi(x)``: the chance that the next answer will be the item."""
        return self.summarised(lambda x: ndtr(x / LOGIT_PER_PROBIT).mean(axis=0), users, items, rivals)

    def log_odds(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the log-odds of :meth:`probability`."""
        return np.asarray(logit(self.probability(users, items, rivals)))

    def beats(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the probability that margins are above 0."""
        return self.summarised(lambda x: (x > 0).mean(axis=0), users, items, rivals)

    def draws(self, user: Any, items: Any, rivals: Any) -> Doubles:
        """Return the draws of margins, (draws, ...), chain after chain."""
        return LOGIT_PER_PROBIT * self.drawn.preference(user, items, rivals)

    def information(self, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return ``H(mean p) - mean H(p)``, with p the draws of ``Phi(x)``, in bits, and the mean of p."""

        def bits_of(x: Doubles) -> Doubles:
            p = ndtr(x / LOGIT_PER_PROBIT)
            chance = p.mean(axis=0)
            return np.stack((entropy(chance) - entropy(p).mean(axis=0), chance))

        bits, chance = replace(self, drawn=self.drawn.at_most(_INFORMED)).summarised(bits_of, users, items, rivals)
        return bits, chance

    def summarised(self, summary: Callable[[Doubles], Doubles], users: Any, items: Any, rivals: Any) -> Doubles:
        """Return summaries of the draws of margins, (summaries, ...) or one each, with few draws in memory at a time.

        ``summary`` turns (draws, pairs) into (numbers, pairs), or (pairs).
        """
        rows = np.broadcast_arrays(users, items, rivals)
        flat, step = [side.ravel() for side in rows], max(1, _CHUNK // len(self.drawn))
        starts = range(0, max(1, flat[0].size), step)

        def part(start: int) -> Doubles:
            return summary(self.draws(*(side[start : start + step] for side in flat)))

        threads = min(self.num_threads or os.cpu_count() or 1, len(starts))
        if threads == 1:
            parts = [part(start) for start in starts]
        else:
            with ThreadPoolExecutor(threads) as pool:
                parts = list(pool.map(part, starts))
        numbers = np.concatenate(parts, axis=-1)
        return np.asarray(numbers.reshape((*numbers.shape[:-1], *rows[0].shape)))

    def pair_part(self, users: Any, items: Any, rivals: Any) -> tuple[Any, Any]:
        """Return the mean margins minus those of :attr:`parameters`."""
        return self.mean(users, items, rivals) - preference(self.parameters, users, items, rivals), 0.0

    # -- many items ---------------------------------------------------------------------------------------------------

    def margins(self, user: Any, items: ArrayLike | None, rivals: ArrayLike | None) -> NDArray[Any]:
        """Return the mean margins of some items (rows) over some rivals (columns); None for the catalogue."""
        every = np.arange(self.n_items)
        sides = (every if side is None else np.asarray(side) for side in (items, rivals))
        return LOGIT_PER_PROBIT * self.drawn.margins(user, *sides)

    def tournament(self, user: Any, items: Positions, labels: ArrayLike) -> Tournament:
        """Return the tournament of items for a user, by mean margins."""
        x = self.margins(user, items, items)
        return Tournament(np.asarray(labels), (x - x.T) / 2)

    def scores(self, users: Any) -> NDArray[Any]:
        """Return the mean margin of every item over the catalogue, (users, items)."""
        return LOGIT_PER_PROBIT * self.drawn.mean_scores(np.atleast_1d(users))

    @cached_property
    def average(self) -> "Drawn":
        """The belief about the average user, the mean of xi over all users."""
        return replace(self, drawn=self.drawn.averaged())

    def of_group(self, users: Positions) -> Belief:
        """Return the belief about the mean margins of some users, as about one user, user 0 of it."""
        return replace(self, drawn=self.drawn.averaged(users))

    def strengths(
        self, users: Positions | None, items: Positions, field: Positions, results: Results | None = None
    ) -> Doubles:
        """Return the draws of the mean margins of items over a field, (draws, items); see :class:`Belief`."""
        one = self.drawn.averaged() if users is None else self.drawn.averaged(users)
        return LOGIT_PER_PROBIT * one.scores(0, items, field)


def in_log_odds(parameters: Parameters) -> Parameters:
    """Return parameters of the probit in single precision, with margins in log-odds."""
    xi, bias = parameters.user_factors * LOGIT_PER_PROBIT, parameters.item_bias
    bias = None if bias is None else _single(bias * LOGIT_PER_PROBIT)
    return Parameters(_single(xi), _single(parameters.item_factors), _single(parameters.rival_factors), bias)


def _single(array: Any) -> Floats:
    """Return numbers in single precision that nobody can change."""
    single = np.array(array, np.float32, order="C")
    single.flags.writeable = False
    return single
