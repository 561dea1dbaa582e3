"""The report behind a page about an arena, as plain numbers: match-ups, cycles, Nash mixture, next pairs."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from sadrec._core.types import Positions
from sadrec.ranking.belief import Belief
from sadrec.ranking.cycles import probable_cycles
from sadrec.ranking.intransitivity import share_of_margins
from sadrec.ranking.leaderboard import leaderboard
from sadrec.ranking.next_games import next_games
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.rank import maximal_lottery
from sadrec.ranking.results import Results

MOST = 100
"""Items of a match-up matrix, the strongest ones: more can hardly be read."""
PROBABLE = 0.5
"""Probability from which on a cycle is shown."""


def arena_report(
    belief: Belief,
    users: Positions | None,
    names: NDArray[Any],
    level: float,
    results: Results | None,
    field: Positions | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the leaderboard of all items, and the report for a page; items are positions, with these ``names``.

    ``field`` are the rivals that strengths are measured against. ``items`` are the strongest ones, to which all else is
    limited: ``probability``, ``lower``, ``upper`` and ``games`` of their match-ups (items, items);
    ``cycles`` that are probable; ``nash``, the shares of the Nash mixture; ``ask``, pairs to compare next;
    ``unexplained``, the share of their margins that no scores explain; ``features``, the coefficients of features.
    """
    every = np.arange(len(names))
    table = leaderboard(belief, users, every, every, level, field=field, results=results)
    best = table["item"].to_numpy()[:MOST]
    alone, row = (belief.average if users is None else belief.of_group(users)), 0
    margins = alone.margins(row, best, best)
    margins = (margins - margins.T) / 2
    probability = alone.probability(row, best[:, None], best)
    report: dict[str, Any] = {
        "kind": "contests" if belief.parameters.n_users == 1 else "taste",
        "level": level,
        "item_names": [str(name) for name in names.tolist()],
        "leaderboard": table.to_dicts(),
        "items": best.tolist(),
    }
    report |= {"probability": probability.round(4).tolist(), "lower": None, "upper": None, "games": None, "ask": []}
    if belief.has_variance:
        mean, variance = alone.distribution(row, best[:, None], best)
        reach = ndtri((1 + level) / 2) * np.sqrt(variance)
        report |= {name: sigmoid(mean + way * reach).round(4).tolist() for name, way in (("lower", -1), ("upper", 1))}
        if len(best) > 1:
            one, other = (best[side] for side in next_games(belief, users, best, 12, None, results))
            bits, chance = alone.information(row, one, other)
            columns = {"item": one, "rival": other, "bits": bits, "probability": chance}
            report["ask"] = pl.DataFrame(columns).to_dicts()
    if results is not None:
        report["games"] = _games(results, users, best, belief.parameters.n_items).tolist()
    report["nash"] = [
        {"item": int(item), "share": float(share)}
        for item, share in zip(best, maximal_lottery(margins), strict=True)
        if share > 1e-3
    ]
    report["unexplained"] = share_of_margins(margins)
    report["features"] = [] if belief.controls is None else belief.controls.to_frame(level).to_dicts()
    report["cycles"] = [
        {
            "path": cycle.path.tolist(),
            "probabilities": cycle.probabilities.tolist(),
            "strength": cycle.strength,
            "probability": cycle.probability,
        }
        for cycle in probable_cycles(alone, row, best)
        if cycle.probability is None or cycle.probability >= PROBABLE
    ]
    return table, report


def _games(results: Results, users: Positions | None, items: Positions, count: int) -> NDArray[Any]:
    """Return how often each of some items met each other, ties included."""
    place = np.full(count, -1)
    place[items] = np.arange(len(items))
    chosen = results.by(users, items, count)
    met = chosen.wins + chosen.losses + chosen.ties
    size = len(items)
    key = place[chosen.item] * size + place[chosen.rival]
    games = np.bincount(key, met, size * size).reshape(size, size)
    return np.asarray(games + games.T)
