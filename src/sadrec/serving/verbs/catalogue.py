"""Verbs about the loaded model: its items and users, and similar ones."""

from typing import Any

import numpy as np

import sadrec
from sadrec.features import Listed, Predictor, Scaled
from sadrec.serving import questions
from sadrec.serving.catalogue import folded
from sadrec.serving.loaded import Json, Loaded
from sadrec.serving.problems import Unanswerable

_SHOWN = 100
"""Categories that are named as examples, at most."""


def describe(loaded: Loaded) -> Json:
    """Describe the loaded model."""
    model = loaded.model
    settings, features = model.settings, model.state.features
    return {
        "class_name": type(model).__name__,
        "users": len(model.users),
        "items": len(model.items),
        "factors": model.state.parameters.n_factors,
        "rivals": model.state.parameters.rival_factors is not None,
        "comparisons": model.state.results is not None,
        "knows_how_sure": model.state.belief.has_variance,
        "posterior": loaded.posterior is not None,
        "titles": loaded.items.has_titles,
        "pictures": loaded.items.has_pictures,
        "log": loaded.log,
        "user_example": loaded.plain(model.users[0]),
        "item_example": loaded.items.ids[0],
        "user_features": _about(features.user if features else None),
        "item_features": _about(features.item if features else None),
        "settings": None if settings is None else settings.as_dict(),
        "version": sadrec.__version__,
    }


def _about(predictor: Predictor | None) -> Json | None:
    """Return the features of a side that a model was fitted with, or None."""
    if predictor is None:
        return None
    codes = predictor.encoder.codes
    return {
        "numbers": [name for code in codes if isinstance(code, Scaled) for name in code.names],
        "categories": {code.name: code.levels[:_SHOWN] for code in codes if isinstance(code, Listed)},
        "cold": int(predictor.cold.sum()),
    }


def _cold(predictor: Predictor | None, row: Any) -> bool:
    """Whether the user or item in a row of the model has features alone."""
    return predictor is not None and bool(np.asarray(predictor.cold)[row])


def arena(loaded: Loaded) -> Json:
    """Return the leaderboard, the match-ups of the strongest items, cycles, and what to ask next."""
    return loaded.arena


def similar(loaded: Loaded, question: questions.Similar) -> Json:
    """Return the items similar to an item, or the users similar to a user."""
    if (question.item is None) == (question.user is None):
        raise Unanswerable("give the id of an item, or that of a user")
    if question.item is not None:
        kind, (given,) = "item", loaded.item_ids([question.item])
        ids, cosines = loaded.model.similar_items(given, min(question.N, len(loaded.items.ids)))
        named = [{"title": entry["title"], "picture": entry["picture"]} for entry in loaded.entries(ids)]
    else:
        kind, given = "user", loaded.user_id(question.user)
        ids, cosines = loaded.model.similar_users(given, min(question.N, len(loaded.model.users)))
        named = [{} for _ in ids]
    rows = zip(loaded.plain(ids), named, cosines.tolist(), strict=True)
    shown = loaded.entry(given)["item"] if kind == "item" else loaded.plain(given)
    neighbours = [{"id": one, **about, "cosine": cosine} for one, about, cosine in rows]
    return {"of": kind, "id": shown, "neighbours": neighbours}


def search(loaded: Loaded, question: questions.SearchQuery) -> Json:
    """Find items by title or id, popular ones first."""
    total, places = loaded.items.search(question.query, loaded.by_popularity, question.N)
    return {"total": total, "items": [loaded.items.entries[place] for place in places]}


def item(loaded: Loaded, given: str) -> Json:
    """Return one item."""
    (one,) = loaded.item_ids([given])
    place = loaded.model.state.items.positions(one)
    features = loaded.model.state.features
    return {
        **loaded.entry(one),
        "popularity": float(loaded.popularity[place]),
        "cold": _cold(features.item if features else None, place),
    }


def users(loaded: Loaded, question: questions.UsersQuery) -> Json:
    """Return some users."""
    ids = loaded.model.users
    order = np.arange(len(ids))
    if question.order == "intransitivity":
        order = np.argsort(-loaded.intransitivity, kind="stable")
    wanted = folded(question.query.strip())
    if wanted:
        fits = np.array([wanted in folded(text) for text in ids.astype(str).tolist()])
        order = order[fits[order]]
    features = loaded.model.state.features
    return {
        "total": len(order),
        "users": [
            {
                "user": loaded.plain(ids[row]),
                "intransitivity": float(loaded.intransitivity[row]),
                "cold": _cold(features.user if features else None, row),
            }
            for row in order[: question.N].tolist()
        ],
    }
