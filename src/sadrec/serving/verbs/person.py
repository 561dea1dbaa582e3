"""The person in a question, and the conversion of its ids."""

import math
from typing import Any

import numpy as np

from sadrec import SAD, Comparisons
from sadrec.data import UnknownIdError
from sadrec.serving import questions
from sadrec.serving.loaded import EVERYBODY, VISITOR, Loaded
from sadrec.serving.problems import EmptyVisitorError, Unanswerable, UnknownUserError, answered


def person(loaded: Loaded, who: questions.Who) -> tuple[SAD, Any]:
    """Return the model that answers, and the person's id in it."""
    if who.user is not None:
        return loaded.model, known_user(loaded, who.user)
    for name, given in (("likes", who.likes), ("comparisons", who.comparisons), ("features", who.features)):
        if given is not None and not given:
            raise EmptyVisitorError(
                f"{name} is empty. Leave it out to ask about the average user; "
                "/v1/recommend also takes fallback=popular"
            )
    if who.likes is None and who.comparisons is None and who.features is None:
        return loaded.everybody, EVERYBODY
    history = history_of(loaded, who)
    if who.features is None:
        return answered(lambda: loaded.model.visitor(*history, name=VISITOR)), VISITOR
    refusals = ValueError, TypeError  # also a value of another kind than the model knows
    return answered(lambda: loaded.model.visitor(*history, features=who.features, name=VISITOR), refusals), VISITOR


def history_of(loaded: Loaded, who: questions.Who) -> tuple[list[Any] | None, Comparisons | None]:
    """Return the likes and the comparisons of a visitor; None for what is not given."""
    if who.likes is not None:
        return loaded.item_ids(who.likes), None
    return None, None if who.comparisons is None else as_comparisons(loaded, who.comparisons)


def known_user(loaded: Loaded, given: Any) -> Any:
    """Return a user's id as the model has it; the error for an unknown one names the remedy."""
    try:
        user = loaded.user_id(given)
        loaded.model.state.users.positions(user)
    except UnknownIdError as error:
        raise UnknownUserError(
            f"{error}; for somebody new, POST likes or comparisons, and /v1/recommend also takes fallback=popular"
        ) from None
    return user


def unknown_user(loaded: Loaded, given: Any) -> Any:
    """Return an unknown user's id as it was given: a URL holds text, also for a number."""
    if loaded.model.state.users.array.dtype.kind not in "iuf":
        return given
    try:
        number = loaded.user_id(given)
    except UnknownIdError:
        return given
    return number if math.isfinite(number) else given


def as_comparisons(loaded: Loaded, comparisons: list[questions.Comparison]) -> Comparisons:
    """Return a visitor's answers as comparisons."""
    ids = loaded.model.state.items
    winners, losers = (
        ids.positions(loaded.item_ids([getattr(one, side) for one in comparisons])) for side in ("winner", "loser")
    )
    if (same := winners == losers).any():
        item = loaded.items.ids[int(winners[same][0])]
        raise Unanswerable(f"item {item!r} is compared with itself: give two different items")
    # By rows of the items that occur, which are few.
    some, rows = np.unique(np.concatenate([winners, losers]), return_inverse=True)
    winner, loser = np.split(rows, 2)
    zeros = np.zeros(len(winner), np.int32)
    return Comparisons.from_indices(zeros, winner, loser, users=[VISITOR], items=ids.array[some])


def known_items(loaded: Loaded, given: list[Any]) -> list[Any]:
    """Return items' ids as the model has them; raise on unknown ones."""
    ids = loaded.item_ids(given)
    if ids:
        loaded.model.state.items.positions(ids)  # raises for an unknown one
    return ids


def distinct(ids: list[Any]) -> list[Any]:
    """Return ids; raise if one is given twice."""
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise Unanswerable(f"item {twice!r} is given twice: give each item once")
    return ids


def shown(loaded: Loaded, ids: Any) -> list[Any]:
    """Return ids as JSON holds them."""
    return [loaded.items.ids[place] for place in loaded.model.state.items.positions(ids).tolist()] if len(ids) else []


def scored(entries: list[dict[str, Any]], scores: Any) -> list[dict[str, Any]]:
    """Return items with their scores, which are written with the digits of their precision."""
    return [{**entry, "score": score} for entry, score in zip(entries, scores, strict=True)]
