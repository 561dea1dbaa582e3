"""Posterior predictive checks: data simulated from the draws beside the data there is."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from sadrec.posterior.diagnostics import Diagnostics
from sadrec.posterior.questions import check_count, check_level

Rows = NDArray[np.int32]
Statistic = Callable[[Rows, Rows, Rows], float]

MOST_WORK = 2 * 10**9
"""How many products counting circles in the data may take."""


class PredictiveChecks(Diagnostics):
    """Data that the draws predict, beside the data that was observed."""

    def predictive_check(
        self, statistics: Mapping[str, Statistic] | None = None, number: int = 200, seed: int = 0, level: float = 0.9
    ) -> pl.DataFrame:
        """Compare what was observed with data sets simulated from the posterior.

        The same users compare the same pairs again; the outcomes come from one draw per data set. A p-value near 0 or 1
        means that the model does not produce data like that which was observed, in that respect. Fractions of
        comparisons (the halves of ties) are left out: no data set has them.

        Parameters
        ----------
        statistics
            Functions of (user, winner, loser), arrays of rows, returning a number. None takes these:
            ``log_likelihood`` of the comparisons under the draw; ``upsets``, the share won by the side the draw favours
            less; ``item_spread``, the standard deviation of the items' shares of wins; ``user_upsets``, the standard
            deviation of the users' shares of upsets; ``crowd_circles``, the number of circles of three items
            in the majority of all answers; ``user_circles``, the same inside each user's own answers, added up.
        number
            How many data sets.
        seed
            Of the simulation.
        level
            Probability content of the interval of simulated values.

        Returns
        -------
        polars.DataFrame
            A row per statistic: ``observed`` (the mean over draws where it depends on the draw), ``replicated`` with
            ``lower`` and ``upper``, and ``p_value``, the share of data sets whose value is at least the observed one
            (equal ones counted half).
        """
        tail = (1 - check_level(level)) / 2
        draws = self.drawn.at_most(check_count("number", number))
        whole = self.observed.root == 1
        if not whole.any():
            raise ValueError("all comparisons have fractional weights: there is nothing to compare with")
        user, winner, loser = self._observed_user[whole], self.observed.winner[whole], self.observed.loser[whole]
        rng = np.random.default_rng(seed)
        names = list(statistics) if statistics is not None else _default_names(len(self.user_ids), len(self.item_ids))
        observed = {name: np.empty(len(draws)) for name in names}
        replicated = {name: np.empty(len(draws)) for name in names}
        sizes = len(self.user_ids), len(self.item_ids)
        fixed: dict[str, float] = {}
        for d in range(len(draws)):
            chain, place = divmod(d, len(draws) // draws.chains)
            x = draws.one(chain, place).preference(user, winner, loser)[0]
            same = rng.random(len(x)) < ndtr(x)
            new = user, np.where(same, winner, loser), np.where(same, loser, winner)
            if statistics is not None:
                for name, statistic in statistics.items():
                    if name not in fixed:
                        fixed[name] = statistic(user, winner, loser)
                    observed[name][d], replicated[name][d] = fixed[name], statistic(*new)
                continue
            signed = np.where(same, x, -x)
            for values, rows, margin in ((observed, (user, winner, loser), x), (replicated, new, signed)):
                for name in names:
                    if values is observed and name in fixed:
                        values[name][d] = fixed[name]
                        continue
                    values[name][d] = _default(name, rows, margin, sizes)
                    if values is observed and name not in ("log_likelihood", "upsets", "user_upsets"):
                        fixed[name] = values[name][d]
        return pl.DataFrame(
            [
                {
                    "statistic": name,
                    "observed": float(observed[name].mean()),
                    "replicated": float(replicated[name].mean()),
                    "lower": float(np.quantile(replicated[name], tail)),
                    "upper": float(np.quantile(replicated[name], 1 - tail)),
                    "p_value": float(
                        (replicated[name] > observed[name]).mean() + (replicated[name] == observed[name]).mean() / 2
                    ),
                }
                for name in names
            ]
        )


def _default_names(users: int, items: int) -> list[str]:
    names = ["log_likelihood", "upsets", "item_spread", "user_upsets"]
    if items**3 <= MOST_WORK:
        names.append("crowd_circles")
    if users * items**3 <= MOST_WORK:
        names.append("user_circles")
    return names


def _default(name: str, rows: tuple[Any, Any, Any], margin: NDArray[np.float64], sizes: tuple[int, int]) -> float:
    """Compute one of the statistics that come with the library."""
    user, winner, loser = rows
    users, items = sizes
    if name == "log_likelihood":
        return float(log_ndtr(margin).sum())
    if name == "upsets":
        return float((margin < 0).mean())
    if name == "item_spread":
        wins, losses = np.bincount(winner, minlength=items), np.bincount(loser, minlength=items)
        met = wins + losses > 0
        return float((wins[met] / (wins + losses)[met]).std())
    if name == "user_upsets":
        count = np.bincount(user, minlength=users)
        upsets = np.bincount(user, weights=margin < 0, minlength=users)
        return float((upsets[count > 0] / count[count > 0]).std())
    if name == "crowd_circles":
        return _circles(winner, loser)
    ends = np.searchsorted(user, np.arange(users + 1))
    return sum(_circles(winner[first:last], loser[first:last]) for first, last in pairwise(ends) if last - first >= 3)


def _circles(winner: Rows, loser: Rows) -> float:
    """Count circles of three items in the majority of some comparisons."""
    used, codes = np.unique(np.concatenate((winner, loser)), return_inverse=True)
    one, other = codes[: len(winner)], codes[len(winner) :]
    size = len(used)
    wins = np.bincount(one * size + other, minlength=size * size).reshape(size, size)
    beats = (wins > wins.T).astype(np.float64)
    return float(np.einsum("ij,ji->", beats @ beats, beats) / 3)
