"""What is served: the model, its items and users, and what is alike."""

import numpy as np

import sadrec
from sadrec.serving import questions
from sadrec.serving.catalogue import folded
from sadrec.serving.newcomers import cold, known_features
from sadrec.serving.problems import Unanswerable
from sadrec.serving.served import Served
from sadrec.serving.verbs.person import Answer, known_items, known_user
from sadrec.serving.verbs.twin import kind_of_twin


def describe(served: Served) -> Answer:
    """Tell what is served."""
    model = served.model
    settings = model.settings
    return {
        "model": served.digest,
        "class_name": type(model).__name__,
        "users": len(model.users),
        "items": len(model.items),
        "factors": model.state.parameters.n_factors,
        "rivals": model.state.parameters.rival_factors is not None,
        "comparisons": model.state.results is not None,
        "knows_how_sure": model.state.belief.has_variance,
        "posterior": served.posterior is not None,
        "twin": kind_of_twin(served),
        "titles": served.items.has_titles,
        "pictures": served.items.has_pictures,
        "log": served.log,
        "user_example": served.plain(model.users[0]),
        "item_example": served.items.ids[0],
        "user_features": known_features(model.state.features.user if model.state.features else None),
        "item_features": known_features(model.state.features.item if model.state.features else None),
        "settings": None if settings is None else settings.as_dict(),
        "version": sadrec.__version__,
    }


def arena(served: Served) -> Answer:
    """Return the leaderboard, the match-ups of the strongest items, cycles, and what to ask next."""
    return {"model": served.digest, **served.arena}


def similar(served: Served, asked: questions.Similar) -> Answer:
    """Return what is alike to an item, or who to a user."""
    if (asked.item is None) == (asked.user is None):
        raise Unanswerable("give the id of an item, or that of a user")
    if asked.item is not None:
        kind, (given,) = "item", known_items(served, [asked.item])
        ids, cosines = served.model.similar_items(given, min(asked.N, len(served.items.ids)))
        named = [{"title": entry["title"], "picture": entry["picture"]} for entry in served.entries(ids)]
    else:
        kind, given = "user", known_user(served, asked.user)
        ids, cosines = served.model.similar_users(given, min(asked.N, len(served.model.users)))
        named = [{} for _ in ids]
    rows = zip(served.plain(ids), named, cosines.tolist(), strict=True)
    shown = served.entry(given)["item"] if kind == "item" else served.plain(given)
    neighbours = [{"id": one, **more, "cosine": cosine} for one, more, cosine in rows]
    return {"model": served.digest, "of": kind, "id": shown, "neighbours": neighbours}


def search(served: Served, asked: questions.SearchQuery) -> Answer:
    """Find items by title or id, popular ones first."""
    total, places = served.items.search(asked.query, served.by_popularity, asked.N)
    return {"model": served.digest, "total": total, "items": [served.items.entries[place] for place in places]}


def item(served: Served, given: str) -> Answer:
    """Return one item."""
    (one,) = known_items(served, [given])
    place = served.model.state.items.positions(one)
    known = served.model.state.features
    return {
        "model": served.digest,
        **served.entry(one),
        "popularity": float(served.popularity[place]),
        "cold": cold(known.item if known else None, place),
    }


def users(served: Served, asked: questions.UsersQuery) -> Answer:
    """Return some users."""
    ids = served.model.users
    order = np.arange(len(ids))
    if asked.order == "intransitivity":
        order = np.argsort(-served.intransitivity, kind="stable")
    wanted = folded(asked.query.strip())
    if wanted:
        fits = np.array([wanted in folded(text) for text in ids.astype(str).tolist()])
        order = order[fits[order]]
    known = served.model.state.features
    return {
        "model": served.digest,
        "total": len(order),
        "users": [
            {
                "user": served.plain(ids[row]),
                "intransitivity": float(served.intransitivity[row]),
                "cold": cold(known.user if known else None, row),
            }
            for row in order[: asked.N].tolist()
        ],
    }
