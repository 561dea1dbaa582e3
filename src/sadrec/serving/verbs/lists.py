"""Verbs of lists: recommendations, slates of items in a cycle, and popular items."""

from typing import Any

import numpy as np

from sadrec import SAD
from sadrec.ranking import recommend_groups
from sadrec.serving import questions
from sadrec.serving.loaded import EVERYBODY, Json, Loaded
from sadrec.serving.problems import EmptyVisitorError, Unanswerable, UnknownUserError
from sadrec.serving.settings import MOST_PLAYERS

_NUMBERS = 1 << 23
"""The largest number of draws of scores held at a time."""


def recommend(loaded: Loaded, question: questions.Recommend) -> Json:
    """Return the best items."""
    fallback = None
    try:
        model, user = loaded.person(question)
    except (UnknownUserError, EmptyVisitorError):
        if question.fallback != "popular":
            raise
        model, user, fallback = loaded.everybody, EVERYBODY, "popular"
    named = loaded.unknown_user(question.user) if fallback and question.user is not None else user
    if question.items is not None and question.filter_items:
        raise Unanswerable("give items (the only ones to consider) or filter_items (to leave out), not both")
    ids, scores = model.recommend(
        user,
        N=question.N,
        filter_already_liked_items=not question.keep_seen,
        filter_items=loaded.item_ids(question.filter_items) if question.filter_items else None,
        items=None if question.items is None else loaded.item_ids(question.items),
        method=question.method,
        candidates=question.candidates,
    )
    listed = loaded.scored(ids, scores)
    if question.intervals and question.method == "margin":
        add_intervals(loaded, model, user, ids, listed)
    return _list(loaded, named, listed, question.method, fallback)


def recommend_by_query(loaded: Loaded, query: questions.RecommendQuery) -> Json:
    """Return the best items for a known user."""
    return recommend(loaded, questions.DEFAULTS.model_copy(update={**query.__dict__, "items": query.items or None}))


def _list(loaded: Loaded, user: Any, listed: list[Json], method: str = "margin", fallback: str | None = None) -> Json:
    return {
        "user": loaded.plain(user),
        "method": method,
        "items": listed,
        "fallback": fallback,
    }


def add_intervals(loaded: Loaded, model: SAD, user: Any, ids: Any, listed: list[Json]) -> None:
    """Add intervals of scores, from the posterior or from the covariance of the person's vector."""
    from sadrec.posterior import LOGIT_PER_PROBIT

    if not len(ids):
        return
    posterior, belief, rows = loaded.posterior, model.state.belief, model.state.items.positions(ids)
    if posterior is not None and model is loaded.model and user in posterior.state.users:
        rows, row = posterior.state.items.positions(ids), posterior.state.users.one(user)
        every = np.arange(len(posterior.items))
        draws = posterior.drawn.at_most(max(1, min(500, _NUMBERS // len(every))))
        scores = LOGIT_PER_PROBIT * draws.scores(row, every)[:, rows]
        low, high = np.quantile(scores, (0.05, 0.95), axis=0)
        deviation = scores.std(axis=0)
    else:
        covariance = belief.user_covariance_of(model.state.users.one(user))
        if covariance is None:
            return
        vectors = model.state.index.vectors[rows, : len(covariance)].astype(np.float64)
        deviation = np.sqrt(np.maximum(np.einsum("ih,ih->i", vectors @ covariance, vectors), 0.0))
        centre = np.array([entry["score"] for entry in listed], np.float64)
        low, high = centre - 1.645 * deviation, centre + 1.645 * deviation
    for entry, interval, spread in zip(listed, np.column_stack((low, high)).tolist(), deviation.tolist(), strict=True):
        entry |= {"interval": interval, "deviation": spread}


def groups(loaded: Loaded, question: questions.Groups) -> Json:
    """Return slates on which items that form a cycle are shown together."""
    model, user = loaded.person(question)
    most, least = min(question.N, MOST_PLAYERS), question.minimum
    best, _ = model.recommend(user, N=max(most, question.candidates))
    shown = recommend_groups(model.tournament(user, best), most, largest=question.largest, minimum=least)
    return {
        "user": loaded.plain(user),
        "groups": [
            {"items": loaded.entries(group.items), "wins": group.wins, "strength": group.strength} for group in shown
        ],
    }


def popular(loaded: Loaded, question: questions.PopularQuery) -> Json:
    """Return the popular items, by the mean margin of all users."""
    ids, scores = loaded.model.recommend(None, N=question.N)
    return _list(loaded, EVERYBODY, loaded.scored(ids, scores), fallback="popular")
