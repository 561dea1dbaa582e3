"""Many items at once: places with intervals, and the pairs to ask about next. Users and items are rows."""

import numpy as np
import polars as pl
from scipy.special import entr, ndtr

from sadrec._types import Doubles, Positions
from sadrec.data.ids import IdArray
from sadrec.posterior.draws import Draws

_CHUNK = 1 << 23
"""How many draws of preferences are held at a time."""


def ranking(draws: Draws, user: int | None, items: Positions, ids: IdArray, level: float) -> pl.DataFrame:
    """Rank items by their mean margin over each other, with intervals: see ``GibbsSAD.ranking``."""
    ends = (1 - level) / 2, (1 + level) / 2
    scores = draws.scores(user, items)
    places = np.empty(scores.shape, np.int64)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.put_along_axis(places, order, np.arange(1, len(items) + 1)[None], axis=1)
    low, high = np.quantile(scores, ends, axis=0)
    place_low, place_high = np.quantile(places, ends, axis=0, method="nearest")
    best = np.argsort(-scores.mean(axis=0), kind="stable")
    return pl.DataFrame(
        {
            "rank": np.arange(1, len(items) + 1),
            "item": ids[items[best]],
            "score": scores.mean(axis=0)[best],
            "score_lower": low[best],
            "score_upper": high[best],
            "rank_lower": place_low[best].astype(np.int64),
            "rank_upper": place_high[best].astype(np.int64),
            "best": (places == 1).mean(axis=0)[best],
        }
    )


def ask_next(draws: Draws, user: int, items: Positions, ids: IdArray, N: int) -> pl.DataFrame:
    """Return the N pairs whose answer is expected to tell the most: see ``GibbsSAD.ask_next``."""
    if len(items) < 2:
        raise ValueError(f"a question needs two items, and {len(items)} are given")
    one, other = np.triu_indices(len(items), 1)
    bits, chance = np.empty(len(one)), np.empty(len(one))
    step = max(1, _CHUNK // len(draws))
    for start in range(0, len(one), step):
        part = slice(start, start + step)
        p = ndtr(draws.preference(user, items[one[part]], items[other[part]]))
        chance[part] = p.mean(axis=0)
        bits[part] = _entropy(chance[part]) - _entropy(p).mean(axis=0)
    best = np.argsort(-bits, kind="stable")[:N]
    named = {"item": ids[items[one[best]]], "rival": ids[items[other[best]]]}
    return pl.DataFrame({**named, "bits": bits[best], "probability": chance[best]})


def _entropy(p: Doubles) -> Doubles:
    """Return the entropy of a yes or no, in bits."""
    return np.asarray((entr(p) + entr(1 - p)) / np.log(2))
