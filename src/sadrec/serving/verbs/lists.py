"""What to show: lists, slates of items that belong together, and what is popular."""

from typing import Any

import numpy as np

from sadrec import SAD
from sadrec.ranking.cycles import recommend_groups
from sadrec.serving import questions
from sadrec.serving.newcomers import with_new_items
from sadrec.serving.problems import NothingSaidError, Unanswerable, UnknownUserError
from sadrec.serving.served import EVERYBODY, Served
from sadrec.serving.settings import MOST_PLAYERS
from sadrec.serving.verbs.person import Answer, covariance_of, known_items, person, scored, unknown_user

_NUMBERS = 1 << 23
"""How many draws of scores are held at a time."""


@with_new_items
def recommend(served: Served, asked: questions.Recommend) -> Answer:
    """Return the best items."""
    fallback = None
    try:
        model, user = person(served, asked)
    except (UnknownUserError, NothingSaidError):
        if asked.fallback != "popular":
            raise
        model, user, fallback = served.everybody, EVERYBODY, "popular"
    named = unknown_user(served, asked.user) if fallback and asked.user is not None else user
    if asked.items is not None and asked.exclude:
        raise Unanswerable("give items (the only ones to consider) or exclude (to leave out), not both")
    allowed = None if asked.items is None else known_items(served, asked.items)
    left_out = known_items(served, asked.exclude) or None
    ids, scores = model.recommend(
        user,
        N=asked.N,
        filter_already_liked_items=not asked.keep_seen,
        filter_items=left_out,
        items=allowed,
        method=asked.method,
        candidates=max(asked.N, asked.candidates) if asked.method == "margin" else asked.candidates,
    )
    listed = scored(served.entries(ids), scores)
    if asked.intervals and asked.method == "margin":
        add_intervals(served, model, user, ids, listed)
    return _list(served, named, listed, asked.method, fallback)


def recommend_known(served: Served, given: str, N: int) -> Answer | None:
    """Return what :func:`recommend` does for a user and a number alone, in less time; None for an unknown user."""
    user = served.user_id(given)
    if user not in served.model.state.users:
        return None
    ids, scores = served.model.recommend(user, N=N)
    return _list(served, user, scored(served.entries(ids), scores))


def _list(
    served: Served, user: Any, listed: list[dict[str, Any]], method: str = "margin", fallback: str | None = None
) -> Answer:
    return {
        "model": served.digest,
        "user": served.plain(user),
        "method": method,
        "items": listed,
        "fallback": fallback,
    }


def add_intervals(served: Served, model: SAD, user: Any, ids: Any, listed: list[dict[str, Any]]) -> None:
    """Say how sure scores are: by the posterior, or by what is known of the person's vector."""
    from sadrec.posterior.belief import LOGIT_PER_PROBIT

    if not len(ids):
        return
    posterior = served.posterior
    if posterior is not None and model is served.model and user in posterior.state.users:
        rows, row = posterior.state.items.positions(ids), posterior.state.users.one(user)
        every = np.arange(len(posterior.items))
        draws = posterior.drawn.at_most(max(1, min(500, _NUMBERS // len(every))))
        scores = LOGIT_PER_PROBIT * draws.scores(row, every)[:, rows]
        low, high = np.quantile(scores, (0.05, 0.95), axis=0)
        for entry, one, two, spread in zip(listed, low, high, scores.std(axis=0), strict=True):
            entry |= {"interval": [float(one), float(two)], "deviation": float(spread)}
        return
    covariance = covariance_of(model, user)
    if covariance is None:
        return
    vectors = model.state.index.vectors[model.state.items.positions(ids), : len(covariance)].astype(np.float64)
    spread = np.sqrt(np.maximum(np.einsum("ih,ih->i", vectors @ covariance, vectors), 0.0))
    for entry, one in zip(listed, spread, strict=True):
        centre = float(entry["score"])
        entry |= {"deviation": float(one), "interval": [centre - 1.645 * float(one), centre + 1.645 * float(one)]}


@with_new_items
def groups(served: Served, asked: questions.Groups) -> Answer:
    """Return slates on which items that form a cycle are shown together."""
    model, user = person(served, asked)
    most, least = min(asked.N, MOST_PLAYERS), asked.minimum
    best, _ = model.recommend(user, N=max(most, asked.candidates))
    shown = recommend_groups(model.tournament(user, best), most, largest=asked.largest, minimum=least)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "groups": [
            {"items": served.entries(group.items), "wins": group.wins, "strength": group.strength} for group in shown
        ],
    }


def popular(served: Served, asked: questions.PopularQuery) -> Answer:
    """Return what is popular by margin, over all users."""
    ids, scores = served.model.recommend(None, N=asked.N)
    return _list(served, EVERYBODY, scored(served.entries(ids), scores), fallback="popular")
