"""Posterior predictive checks: compare the data with data simulated from the draws."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from sadrec._core.check import whole
from sadrec._core.types import Doubles, Integers
from sadrec.posterior.chain import ByUser
from sadrec.posterior.draws import Draws
from sadrec.ranking.pairs import preference

Statistic = Callable[[Integers, Integers, Integers], float]
_OfDraw = Callable[[Integers, Integers, Integers, Doubles], float]

MOST_WORK = 2 * 10**9
"""The largest number of products for counting cycles in the data."""


_OF_DRAW: dict[str, _OfDraw] = {
    "log_likelihood": lambda user, winner, loser, x: float(log_ndtr(x).sum()),
    "upsets": lambda user, winner, loser, x: float((x < 0).mean()),
    "user_upsets": lambda user, winner, loser, x: _spread(user, x < 0),
}
"""The statistics that depend on the draw."""


def some_observed(observed: ByUser, number: int | None, seed: int) -> tuple[Integers, Integers, Integers]:
    """Return rows (user, winner, loser) of comparisons that were learnt from: all, or a random choice."""
    rows = np.arange(len(observed.user))
    if number is not None and whole(number, "number", least=1) < len(rows):
        rows = np.sort(np.random.default_rng(seed).choice(len(rows), number, replace=False))
    return observed.user[rows], observed.winner[rows], observed.loser[rows]


def predictive_check(
    draws: Draws, observed: ByUser, statistics: Mapping[str, Statistic] | None, seed: int, level: float
) -> pl.DataFrame:
    """Compare what was observed with a data set simulated from each draw: see ``GibbsSAD.predictive_check``."""
    entire = observed.root == 1
    if not entire.any():
        raise ValueError("all comparisons have fractional weights: there is nothing to compare with")
    user, winner, loser = observed.user[entire], observed.winner[entire], observed.loser[entire]
    rng = np.random.default_rng(seed)
    of_draw: dict[str, _OfDraw] = {}
    if statistics is None:
        of_draw, statistics = _OF_DRAW, _of_data(len(observed.start) - 1, draws.item.shape[2])
    fixed = {name: statistic(user, winner, loser) for name, statistic in statistics.items()}
    names = [*of_draw, *statistics]
    actual, replicated = ({name: np.empty(len(draws)) for name in names} for _ in range(2))
    for d, one in enumerate(draws):
        x = preference(one, user, winner, loser)
        same = rng.random(len(x)) < ndtr(x)
        new = user, np.where(same, winner, loser), np.where(same, loser, winner)
        for name, statistic in statistics.items():
            actual[name][d], replicated[name][d] = fixed[name], statistic(*new)
        for name, measure in of_draw.items():
            actual[name][d] = measure(user, winner, loser, x)
            replicated[name][d] = measure(*new, np.where(same, x, -x))
    return pl.DataFrame([{"statistic": name, **_row(actual[name], replicated[name], level)} for name in names])


def _row(actual: Doubles, replicated: Doubles, level: float) -> dict[str, float]:
    return {
        "observed": float(actual.mean()),
        "replicated": float(replicated.mean()),
        "lower": float(np.quantile(replicated, (1 - level) / 2)),
        "upper": float(np.quantile(replicated, (1 + level) / 2)),
        "p_value": float((replicated > actual).mean() + (replicated == actual).mean() / 2),
    }


def _of_data(users: int, items: int) -> dict[str, Statistic]:
    """Return the statistics of data alone, those that take too long left out."""

    def item_spread(user: Integers, winner: Integers, loser: Integers) -> float:
        return _spread(np.concatenate((winner, loser)), np.repeat([1.0, 0.0], len(winner)))

    def user_cycles(user: Integers, winner: Integers, loser: Integers) -> float:
        ends = np.searchsorted(user, np.arange(users + 1))
        return sum(_cycles(winner[a:b], loser[a:b]) for a, b in pairwise(ends) if b - a >= 3)

    statistics: dict[str, Statistic] = {"item_spread": item_spread}
    if items**3 <= MOST_WORK:
        statistics["crowd_cycles"] = lambda user, winner, loser: _cycles(winner, loser)
    if users * items**3 <= MOST_WORK:
        statistics["user_cycles"] = user_cycles
    return statistics


def _spread(rows: Integers, values: NDArray[Any]) -> float:
    """Return the standard deviation of the mean values of rows."""
    count, total = np.bincount(rows), np.bincount(rows, weights=values)
    return float((total[count > 0] / count[count > 0]).std())


def _cycles(winner: Integers, loser: Integers) -> float:
    """Count cycles of three items in the majority of some comparisons."""
    used, codes = np.unique(np.concatenate((winner, loser)), return_inverse=True)
    one, other = codes[: len(winner)], codes[len(winner) :]
    size = len(used)
    wins = np.bincount(one * size + other, minlength=size * size).reshape(size, size)
    beats = (wins > wins.T).astype(np.float64)
    return float(np.einsum("ij,ji->", beats @ beats, beats) / 3)
