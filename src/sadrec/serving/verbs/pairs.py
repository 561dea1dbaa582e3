"""Verbs of pairs: preferences, margins, ranks, and explanations."""

from typing import Any

import numpy as np

from sadrec._core.types import Doubles
from sadrec.serving import questions
from sadrec.serving.loaded import Json, Loaded
from sadrec.serving.problems import answered

_COLUMNS = 20
"""Columns of features that an explanation names, at most."""


def prefer(loaded: Loaded, question: questions.Prefer) -> Json:
    """Return which of two items is preferred, for each pair, and how surely."""
    model, user = loaded.person(question)
    items = np.array(loaded.item_ids([pair.item for pair in question.pairs]))
    rivals = np.array(loaded.item_ids([pair.rival for pair in question.pairs]))
    margins, chances = model.preference(user, items, rivals), model.probability(user, items, rivals)
    nothing: list[Any] = [None] * len(items)
    deviations, intervals = nothing, nothing
    posterior = loaded.posterior
    if posterior is not None and model is loaded.model and user in posterior.state.users:
        draws = posterior.preference_draws(user, items, rivals)
        tail = (1 - question.level) / 2
        intervals = np.quantile(draws, (tail, 1 - tail), axis=0).T.tolist()
        deviations, margins = draws.std(axis=0).tolist(), draws.mean(axis=0)
        chances = posterior.probability(user, items, rivals)
    elif model.state.belief.has_variance:
        from scipy.special import ndtri

        deviations = model.deviation(user, items, rivals).tolist()
        reach = float(ndtri((1 + question.level) / 2))
        intervals = [[x - reach * d, x + reach * d] for x, d in zip(margins.tolist(), deviations, strict=True)]
    ties = nothing if model.state.belief.ties is None else model.probability(user, items, rivals, "tie").tolist()
    shared = loaded.plain(items), loaded.plain(rivals), margins.tolist(), chances.tolist()
    columns = (*shared, ties, deviations, intervals)
    names = ("item", "rival", "margin", "probability", "tie_probability", "deviation", "interval")
    return {
        "user": loaded.plain(user),
        "preferences": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
    }


def margins(loaded: Loaded, question: questions.Margins) -> Json:
    """Return the margins of all of some items over all of some rivals."""
    model, user = loaded.person(question)
    items, rivals = loaded.item_ids(question.items), loaded.item_ids(question.rivals)
    return {
        "user": loaded.plain(user),
        "items": loaded.shown(items),
        "rivals": loaded.shown(rivals),
        "margins": model.margins(user, items, rivals).astype(np.float64).tolist(),
    }


def rank(loaded: Loaded, question: questions.Rank) -> Json:
    """Put items in an order."""
    model, user = loaded.person(question)
    items = loaded.distinct_item_ids(question.items)
    order = answered(lambda: model.rank(user, items, question.method))
    listed = loaded.scored(order.items, order.scores)
    return {"user": loaded.plain(user), "method": question.method, "items": listed}


def explain(loaded: Loaded, question: questions.Explain) -> Json:
    """Explain the preference for an item over a rival."""
    model, user = loaded.person(question)
    item, rival = loaded.item_ids([question.item, question.rival])
    reason = answered(lambda: model.explain(user, item, rival))
    votes = [
        [
            {**entry, "influence": value}
            for entry, (_, value) in zip(loaded.entries([i for i, _ in side]), side, strict=True)
        ]
        for side in (reason.supporters(), reason.opponents())
    ]
    return {
        "user": loaded.plain(user),
        "item": loaded.entry(item)["item"],
        "rival": loaded.entry(rival)["item"],
        "margin": reason.margin,
        "probability": model.probability(user, item, rival),
        "contributions": reason.contributions.tolist(),
        "bias": reason.bias,
        "factors": main_parts(reason.contributions, reason.has_bias, reason.pair_part, 5),
        "for_item": votes[0],
        "for_rival": votes[1],
        "by_features": reason.by_features,
        "columns": [{"column": name, "contribution": value} for name, value in reason.columns[:_COLUMNS]],
    }


def main_parts(contributions: Doubles, has_bias: bool, pair_part: float, most: int) -> list[Json]:
    """Return the parts of a margin that contribute most: factors, the bias, and what is about these two items alone."""
    names: list[Any] = [*range(len(contributions) - has_bias), *["bias"] * has_bias, "pair"]
    parts = np.append(contributions, pair_part)
    total = float(np.abs(parts).sum()) or 1.0
    return [
        {"factor": names[h], "contribution": float(parts[h]), "share": float(parts[h]) / total}
        for h in np.argsort(-np.abs(parts), kind="stable")[:most].tolist()
        if parts[h] or names[h] != "pair"
    ]
