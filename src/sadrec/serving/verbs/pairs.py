"""One item against another: who wins, by how much, in what order, and why."""

from typing import Any

import numpy as np

from sadrec._types import Doubles
from sadrec.serving import questions
from sadrec.serving.newcomers import with_new_items
from sadrec.serving.problems import answered
from sadrec.serving.served import Served
from sadrec.serving.verbs.person import Answer, distinct, known_items, person, scored, shown

_COLUMNS = 20
"""Columns of features that an explanation names, at most."""


@with_new_items
def prefer(served: Served, asked: questions.Prefer) -> Answer:
    """Tell which of two items is preferred, for each pair, and how surely."""
    model, user = person(served, asked)
    items = np.array(known_items(served, [pair.item for pair in asked.pairs]))
    rivals = np.array(known_items(served, [pair.rival for pair in asked.pairs]))
    margins, chances = model.preference(user, items, rivals), model.probability(user, items, rivals)
    nothing: list[Any] = [None] * len(items)
    deviations, intervals = nothing, nothing
    posterior = served.posterior
    if posterior is not None and model is served.model and user in posterior.state.users:
        draws = posterior.preference_draws(user, items, rivals)
        tail = (1 - asked.level) / 2
        intervals = np.quantile(draws, (tail, 1 - tail), axis=0).T.tolist()
        deviations, margins = draws.std(axis=0).tolist(), draws.mean(axis=0)
        chances = posterior.probability(user, items, rivals)
    elif model.state.belief.has_variance:
        from scipy.special import ndtri

        deviations = model.deviation(user, items, rivals).tolist()
        reach = float(ndtri((1 + asked.level) / 2))
        intervals = [[x - reach * d, x + reach * d] for x, d in zip(margins.tolist(), deviations, strict=True)]
    ties = nothing if model.state.belief.ties is None else model.probability(user, items, rivals, "tie").tolist()
    shared = served.plain(items), served.plain(rivals), margins.tolist(), chances.tolist()
    columns = (*shared, ties, deviations, intervals)
    names = ("item", "rival", "margin", "probability", "tie_probability", "deviation", "interval")
    return {
        "model": served.digest,
        "user": served.plain(user),
        "preferences": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
    }


@with_new_items
def margins(served: Served, asked: questions.Margins) -> Answer:
    """Return the margins of all of some items over all of some rivals."""
    model, user = person(served, asked)
    items, rivals = known_items(served, asked.items), known_items(served, asked.rivals)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "items": shown(served, items),
        "rivals": shown(served, rivals),
        "margins": model.margins(user, items, rivals).astype(np.float64).tolist(),
    }


@with_new_items
def rank(served: Served, asked: questions.Rank) -> Answer:
    """Put items in an order."""
    model, user = person(served, asked)
    items = distinct(known_items(served, asked.items))
    order = answered(lambda: model.rank(user, items, asked.method))
    listed = scored(served.entries(order.items), order.scores)
    return {"model": served.digest, "user": served.plain(user), "method": asked.method, "items": listed}


@with_new_items
def explain(served: Served, asked: questions.Explain) -> Answer:
    """Say why an item rather than a rival."""
    model, user = person(served, asked)
    item, rival = known_items(served, [asked.item, asked.rival])
    reason = answered(lambda: model.explain(user, item, rival))
    votes = [
        [
            {**entry, "influence": value}
            for entry, (_, value) in zip(served.entries([i for i, _ in side]), side, strict=True)
        ]
        for side in (reason.supporters(), reason.opponents())
    ]
    return {
        "model": served.digest,
        "user": served.plain(user),
        "item": served.entry(item)["item"],
        "rival": served.entry(rival)["item"],
        "margin": reason.margin,
        "probability": model.probability(user, item, rival),
        "contributions": reason.contributions.tolist(),
        "bias": reason.bias,
        "factors": main_parts(reason.contributions, reason.has_bias, reason.beside, 5),
        "for_item": votes[0],
        "for_rival": votes[1],
        "by_features": reason.by_features,
        "columns": [{"column": name, "contribution": value} for name, value in reason.columns[:_COLUMNS]],
    }


def main_parts(contributions: Doubles, has_bias: bool, beside: float, most: int) -> list[dict[str, Any]]:
    """Return the parts of a margin that contribute most: factors, the bias, and what is about these two items alone."""
    names: list[Any] = [*range(len(contributions) - has_bias), *["bias"] * has_bias, "pair"]
    parts = np.append(contributions, beside)
    total = float(np.abs(parts).sum()) or 1.0
    return [
        {"factor": names[h], "contribution": float(parts[h]), "share": float(parts[h]) / total}
        for h in np.argsort(-np.abs(parts), kind="stable")[:most].tolist()
        if parts[h] or names[h] != "pair"
    ]
