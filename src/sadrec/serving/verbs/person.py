"""About whom a question is, and how the ids that it names are read and written."""

import math
from typing import Any

import numpy as np

from sadrec import SAD, Comparisons
from sadrec._types import Doubles
from sadrec.data.ids import UnknownIdError
from sadrec.serving import questions
from sadrec.serving.problems import NothingSaidError, Unanswerable, UnknownUserError, answered
from sadrec.serving.served import EVERYBODY, VISITOR, Served

Answer = dict[str, Any]


def person(served: Served, who: questions.Who) -> tuple[SAD, Any]:
    """Return the model to ask, and the id by which it knows the person."""
    if who.user is not None:
        return served.model, known_user(served, who.user)
    for name, given in (("likes", who.likes), ("comparisons", who.comparisons), ("features", who.features)):
        if given is not None and not given:
            raise NothingSaidError(
                f"{name} is empty: nothing is known of this visitor. Leave it out to ask about the average user; "
                "/v1/recommend also takes fallback=popular"
            )
    if who.likes is None and who.comparisons is None and who.features is None:
        return served.everybody, EVERYBODY
    said = said_by(served, who)
    if who.features is None:
        return answered(lambda: served.model.visitor(*said, name=VISITOR)), VISITOR
    refusals = ValueError, TypeError  # also a value of another kind than the model knows
    return answered(lambda: served.model.visitor(*said, features=who.features, name=VISITOR), refusals), VISITOR


def said_by(served: Served, who: questions.Who) -> tuple[list[Any] | None, Comparisons | None]:
    """Return the likes of a visitor, or else their comparisons; None for what is not given."""
    if who.likes is not None:
        return served.item_ids(who.likes), None
    return None, None if who.comparisons is None else stated(served, who.comparisons)


def known_user(served: Served, given: Any) -> Any:
    """Return a user's id as the model has it, or say what to do about an unknown one."""
    try:
        user = served.user_id(given)
        served.model.state.users.positions(user)
    except UnknownIdError as error:
        raise UnknownUserError(
            f"{error}; for somebody new, POST likes or comparisons, and /v1/recommend also takes fallback=popular"
        ) from None
    return user


def unknown_user(served: Served, given: Any) -> Any:
    """Return the id of somebody unknown as it was given: an address holds text, also where it means a number."""
    if served.model.state.users.array.dtype.kind not in "iuf":
        return given
    try:
        number = served.user_id(given)
    except UnknownIdError:
        return given
    return number if math.isfinite(number) else given


def stated(served: Served, comparisons: list[questions.Comparison]) -> Comparisons:
    """Return what a visitor said as comparisons."""
    ids = served.model.state.items
    winners, losers = (
        ids.positions(served.item_ids([getattr(one, side) for one in comparisons])) for side in ("winner", "loser")
    )
    if (same := winners == losers).any():
        item = served.items.ids[int(winners[same][0])]
        raise Unanswerable(f"item {item!r} is compared with itself: give two different items")
    # By rows of the items that occur, which are few.
    some, rows = np.unique(np.concatenate([winners, losers]), return_inverse=True)
    winner, loser = np.split(rows, 2)
    zeros = np.zeros(len(winner), np.int32)
    return Comparisons.from_indices(zeros, winner, loser, users=[VISITOR], items=ids.array[some])


def known_items(served: Served, given: list[Any]) -> list[Any]:
    """Return items' ids as the model has them, refusing unknown ones."""
    ids = served.item_ids(given)
    if ids:
        served.model.state.items.positions(ids)
    return ids


def distinct(ids: list[Any]) -> list[Any]:
    """Return ids, refusing any that is given twice."""
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise Unanswerable(f"item {twice!r} is given twice: give each item once")
    return ids


def shown(served: Served, ids: Any) -> list[Any]:
    """Return ids as JSON holds them."""
    return [served.items.ids[place] for place in served.model.state.items.positions(ids).tolist()] if len(ids) else []


def scored(entries: list[dict[str, Any]], scores: Any) -> list[dict[str, Any]]:
    """Return items with their scores, which are written with the digits of their precision."""
    return [{**entry, "score": score} for entry, score in zip(entries, scores, strict=True)]


def covariance_of(model: SAD, user: Any) -> Doubles | None:
    """Return the covariance of a person's vector, where it is known."""
    return model.state.belief.user_covariance_of(model.state.users.one(user))
