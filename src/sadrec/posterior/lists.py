"""Places of items, with intervals. Users and items are rows."""

import numpy as np
import polars as pl

from sadrec._types import Positions
from sadrec.data.ids import IdArray
from sadrec.posterior.belief import LOGIT_PER_PROBIT
from sadrec.posterior.draws import Draws


def ranking(draws: Draws, user: int | None, items: Positions, ids: IdArray, level: float) -> pl.DataFrame:
    """Rank items by their mean margin over each other, with intervals: see ``GibbsSAD.ranking``."""
    ends = (1 - level) / 2, (1 + level) / 2
    scores = LOGIT_PER_PROBIT * draws.scores(user, items)
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
