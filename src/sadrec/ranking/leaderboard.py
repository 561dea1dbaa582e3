"""Leaderboards: strengths, ranks and results of items with intervals, for one judge, some, or all."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec._core.types import Doubles, Positions
from sadrec.ranking.belief import Belief
from sadrec.ranking.results import Results

_BLOCK = 1 << 22
"""Margins that are held at a time."""


def leaderboard(
    belief: Belief,
    users: Positions | None,
    items: Positions,
    labels: NDArray[Any],
    level: float = 0.9,
    *,
    field: Positions | None = None,
    results: Results | None = None,
) -> pl.DataFrame:
    """Return the items of a leaderboard, the strongest first.

    ``users`` are those whose margins are averaged, None the average user; ``labels`` what items are called. The
    columns are those of ``SAD.leaderboard``. Strengths are mean margins over ``field``, by default the items; ranks and
    results are among the items.
    """
    against = items if field is None else field
    alone = belief.average if users is None else belief.of_group(users)
    strength = np.asarray(alone.mean_margins(items, against), np.float64)
    order = np.argsort(-strength, kind="stable")
    table: dict[str, Any] = {
        "rank": np.arange(1, len(items) + 1),
        "item": labels[order],
        "strength": strength[order].astype(np.float64),
    }
    names = ("lower", "upper", "rank_lower", "rank_upper")
    if belief.has_variance:
        draws = belief.strengths(users, items, against, results)
        tail = (1 - level) / 2
        ends = *np.quantile(draws, (tail, 1 - tail), axis=0), *rank_intervals(draws, level)
        table |= {name: end[order] for name, end in zip(names, ends, strict=True)}
        table["best"] = np.bincount(draws.argmax(axis=1), minlength=len(items))[order] / len(draws)
    else:
        table |= {name: pl.Series([None] * len(items), dtype=pl.Float64) for name in names[:2]}
        table |= {name: pl.Series([None] * len(items), dtype=pl.Int64) for name in names[2:]}
        table["best"] = pl.Series([None] * len(items), dtype=pl.Float64)
    count = belief.n_items
    if results is None:
        table |= {name: pl.Series([None] * len(items), dtype=pl.Float64) for name in ("wins", "ties", "losses")}
    else:
        totals = results.by(users, items, count).totals(count)
        table |= {name: total[items][order] for name, total in zip(("wins", "ties", "losses"), totals, strict=True)}
    return pl.DataFrame({**table, "unexplained": unexplained(alone, items)[order]})


def rank_intervals(draws: Doubles, level: float) -> tuple[Positions, Positions]:
    """Return the first and the last rank of the shortest intervals that hold this share of the draws of each rank.

    Of several that are as short, the one that holds most is taken.

    >>> rank_intervals(np.array([[2.0, 1.0, 0.0], [2.0, 0.0, 1.0], [3.0, 2.0, 1.0], [2.0, 1.0, 0.0]]), 0.7)
    (array([1, 2, 3]), array([1, 2, 3]))
    """
    count, size = draws.shape
    places = np.empty((count, size), np.int64)
    np.put_along_axis(places, np.argsort(-draws, axis=1), np.arange(size)[None], axis=1)
    lower, upper = np.empty(size, np.int64), np.empty(size, np.int64)
    needed = int(np.ceil(level * count - 1e-9))
    for item, of_item in enumerate(np.ascontiguousarray(places.T)):
        below = np.concatenate(([0], np.cumsum(np.bincount(of_item, minlength=size))))
        starts = np.flatnonzero(below[-1] - below[:-1] >= needed)
        ends = np.searchsorted(below, below[starts] + needed)  # the first places that are outside
        best = np.lexsort((below[starts] - below[ends], ends - starts))[0]
        lower[item], upper[item] = starts[best] + 1, ends[best]
    return lower, upper


def unexplained(belief: Belief, items: Positions) -> Doubles:
    """Return the share of each item's margins over the others, in squares, that no scores explain, for user 0."""
    score = belief.mean_margins(items, items)
    answer = np.zeros(len(items))
    step = max(1, _BLOCK // len(items))
    for start in range(0, len(items), step):
        part = slice(start, start + step)
        margins = belief.margins(0, items[part], items)
        rest = ((margins - (score[part, None] - score)) ** 2).sum(axis=1)
        total = (margins**2).sum(axis=1)
        answer[part] = np.divide(rest, total, out=np.zeros_like(total), where=total > 0)
    return answer
