"""Verbs of tournaments: cycles, the winners of a slate, and what beats an item."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec import SAD
from sadrec._core.types import SlateMethod
from sadrec.ranking import (
    Cycle,
    contributions,
    cycle_through,
    cyclic_triads,
    judge,
    nemeses,
    rank_tournament,
    spoilers,
)
from sadrec.serving import questions
from sadrec.serving.loaded import Json, Loaded
from sadrec.serving.settings import MOST_USERS
from sadrec.serving.verbs.pairs import main_parts

_SLATE: tuple[SlateMethod, ...] = ("margin", "wins", "markov", "nash")


def cycles(loaded: Loaded, question: questions.Cycles) -> Json:
    """Find cycles: among a person's best items, given ones, or around an item."""
    model, user = loaded.person(question)
    among: Any = None
    if question.items is not None:
        among = loaded.distinct_item_ids(question.items)
    elif question.item is not None:
        (centre,) = loaded.item_ids([question.item])
        among = loaded.model.similar_items(centre, min(question.N, len(loaded.items.ids)))[0]
        among = list(dict.fromkeys([*among.tolist(), centre])) if among.dtype.kind != "M" else among
    if question.item is None:
        strongest = model.cycles(user, question.N, items=among, minimum=question.minimum)
    else:
        strongest = _through(model, user, among, centre, question.minimum)
    triads = cyclic_triads(model.tournament(user, among, question.N), 0)
    return {
        "user": loaded.plain(user),
        "among": min(question.N, len(loaded.items.ids)) if among is None else len(among),
        "intransitivity": model.intransitivity(user),
        "cyclic_triads": triads.count,
        "triads": triads.total,
        "cycles": [cycle_answer(loaded, model, user, cycle, question.factors) for cycle in strongest[: question.most]],
    }


def _through(model: SAD, user: Any, among: Any, centre: Any, minimum: float) -> list[Cycle]:
    """Return the strongest cycle through an item, if its strength is above ``minimum``, with its probability."""
    state = model.state
    row, rows = state.users.one(user), state.items.positions(among)
    cycle = cycle_through(state.belief.tournament(row, rows, rows), state.items.one(centre))
    if cycle is None or cycle.strength <= minimum:
        return []
    cycle = judge(cycle, state.belief, row)
    return [replace(cycle, members=model.items[cycle.members], path=model.items[cycle.path])]


def cycle_answer(loaded: Loaded, model: SAD, user: Any, cycle: Cycle, factors: int) -> Json:
    """Return a cycle with the main contributions to each step."""
    belief, row = model.state.belief, model.state.users.one(user)
    path = model.state.items.positions(cycle.path)
    after = np.roll(path, -1)
    parts = contributions(belief.parameters, row, path, after)
    pair_part = np.broadcast_to(belief.pair_part(row, path, after)[0], path.shape)
    has_bias = belief.parameters.item_bias is not None
    chances = model.probability(user, cycle.path, np.roll(cycle.path, -1))
    weakest = int(np.lexsort((cycle.margins, chances))[0])
    ids = loaded.items.ids
    return {
        "members": loaded.shown(cycle.members),
        "path": loaded.entries(cycle.path),
        "strength": cycle.strength,
        "steps": [
            {
                "item": ids[path[step]],
                "rival": ids[after[step]],
                "margin": float(cycle.margins[step]),
                "probability": float(chances[step]),
                "weakest": step == weakest,
                "factors": main_parts(parts[step], has_bias, pair_part[step], factors),
            }
            for step in range(len(path))
        ],
        "probability": cycle.probability,
    }


def slate(loaded: Loaded, question: questions.Slate) -> Json:
    """Return the winner among a few items by four methods, and the items whose presence changes it."""
    model, user = loaded.person(question)
    items = loaded.distinct_item_ids(question.items)
    if question.others is None:
        best, _ = model.recommend(user, N=len(items) + 10, filter_already_liked_items=False)
        others = [one for one in best.tolist() if one not in items][:10] if best.dtype.kind != "M" else []
    else:
        others = [one for one in dict.fromkeys(loaded.item_ids(question.others)) if one not in items]
    game = model.tournament(user, items)
    winner = game.condorcet_winner()
    rankings = [rank_tournament(game, method) for method in _SLATE]
    return {
        "user": loaded.plain(user),
        "items": loaded.entries(items),
        "margins": game.margins.tolist(),
        "probabilities": _pair_chances(model, user, game.items),
        "rankings": [
            {
                "method": order.method,
                "winner": loaded.plain(order.items[0]),
                "items": loaded.plain(order.items),
                "scores": order.scores.tolist(),
            }
            for order in rankings
        ],
        "condorcet_winner": None if winner is None else loaded.plain(winner),
        "smith_set": loaded.plain(game.smith_set()),
        "spoilers": [
            {
                "method": method,
                "item": loaded.entry(one.item),
                "on_slate": one.item in items,
                "winner_without": one.winner_without,
                "winner_with": one.winner_with,
            }
            for method in _SLATE
            for one in spoilers(model.tournament(user, [*items, *others]), len(items), method)
        ],
    }


def _pair_chances(model: SAD, user: Any, items: NDArray[Any]) -> list[list[float]]:
    """Return the probabilities that each of some items is preferred to each other."""
    one, other = np.meshgrid(items, items, indexing="ij")
    chances: list[list[float]] = model.probability(user, one, other).tolist()
    return chances


def nemesis(loaded: Loaded, question: questions.NemesisQuery) -> Json:
    """Return the items that beat an item head to head, and the share of users for whom each does."""
    (item,) = loaded.item_ids([question.item])
    count = len(loaded.model.users)
    users = np.linspace(0, count - 1, min(count, MOST_USERS)).astype(np.int64)  # evenly over all
    row = loaded.model.state.items.one(item)
    beating = nemeses(loaded.model.state.parameters, row, question.N, users=users)
    return {
        **loaded.entry(item),
        "popularity": float(loaded.popularity[row]),
        "place": int(loaded.popular_place[row]),
        "users": beating.users,
        "nemeses": [
            {
                **loaded.items.entries[row],
                "share": float(share),
                "margin": float(margin),
                "popularity": float(loaded.popularity[row]),
                "place": int(loaded.popular_place[row]),
            }
            for row, share, margin in zip(beating.items.tolist(), beating.shares, beating.margins, strict=True)
        ],
    }
