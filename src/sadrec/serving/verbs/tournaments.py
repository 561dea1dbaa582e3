"""Who beats whom: cycles, the winners of a slate, and what beats an item."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec import SAD
from sadrec.ranking.cycles import Cycle, cycle_through, cyclic_triads, judge
from sadrec.ranking.pairs import contributions
from sadrec.ranking.rank import SlateMethod, rank_tournament
from sadrec.ranking.slates import nemeses, spoilers
from sadrec.serving import questions
from sadrec.serving.newcomers import with_new_items
from sadrec.serving.served import Served
from sadrec.serving.settings import MOST_USERS
from sadrec.serving.verbs.pairs import main_parts
from sadrec.serving.verbs.person import Answer, distinct, known_items, person, shown

_SLATE: tuple[SlateMethod, ...] = ("margin", "wins", "markov", "nash")


@with_new_items
def cycles(served: Served, asked: questions.Cycles) -> Answer:
    """Find cycles: among a person's best items, given ones, or around an item."""
    model, user = person(served, asked)
    among: Any = None
    around = None
    if asked.items is not None:
        among = distinct(known_items(served, asked.items))
    elif asked.item is not None:
        (around,) = known_items(served, [asked.item])
        among = served.model.similar_items(around, min(asked.N, len(served.items.ids)))[0]
        among = list(dict.fromkeys([*among.tolist(), around])) if among.dtype.kind != "M" else among
    found = model.cycles(user, asked.N, items=among, minimum=asked.minimum)
    if around is not None:
        found = _through(model, user, among, around, asked.minimum)
    triads = cyclic_triads(model.tournament(user, among, asked.N), 0)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "among": min(asked.N, len(served.items.ids)) if among is None else len(among),
        "intransitivity": model.intransitivity(user),
        "cyclic_triads": triads.count,
        "triads": triads.total,
        "cycles": [told_cycle(served, model, user, cycle, asked.factors) for cycle in found[: asked.most]],
    }


def _through(model: SAD, user: Any, among: Any, around: Any, minimum: float) -> list[Cycle]:
    """Return the strongest cycle through an item, if there is one of more than ``minimum``, with its probability."""
    state = model.state
    row, rows = state.users.one(user), state.items.positions(among)
    cycle = cycle_through(state.belief.tournament(row, rows, rows), state.items.one(around))
    if cycle is None or cycle.strength <= minimum:
        return []
    found = judge(cycle, state.belief, row)
    return [replace(found, members=model.items[found.members], path=model.items[found.path])]


def told_cycle(served: Served, model: SAD, user: Any, cycle: Cycle, factors: int) -> dict[str, Any]:
    """Return a cycle with what carries each of its steps."""
    belief, row = model.state.belief, model.state.users.one(user)
    path = model.state.items.positions(cycle.path)
    after = np.roll(path, -1)
    parts = contributions(belief.parameters, row, path, after)
    beside = np.broadcast_to(belief.pair_part(row, path, after)[0], path.shape)
    has_bias = belief.parameters.item_bias is not None
    chances = model.probability(user, cycle.path, np.roll(cycle.path, -1))
    weakest = int(np.lexsort((cycle.margins, chances))[0])
    ids = served.items.ids
    return {
        "members": shown(served, cycle.members),
        "path": served.entries(cycle.path),
        "strength": cycle.strength,
        "steps": [
            {
                "item": ids[path[step]],
                "rival": ids[after[step]],
                "margin": float(cycle.margins[step]),
                "probability": float(chances[step]),
                "weakest": step == weakest,
                "factors": main_parts(parts[step], has_bias, beside[step], factors),
            }
            for step in range(len(path))
        ],
        "probability": cycle.probability,
    }


@with_new_items
def slate(served: Served, asked: questions.Slate) -> Answer:
    """Tell who wins among a few items by four methods, and whose presence changes that."""
    model, user = person(served, asked)
    items = distinct(known_items(served, asked.items))
    if asked.others is None:
        best, _ = model.recommend(user, N=len(items) + 10, filter_already_liked_items=False)
        others = [one for one in best.tolist() if one not in items][:10] if best.dtype.kind != "M" else []
    else:
        others = [one for one in dict.fromkeys(known_items(served, asked.others)) if one not in items]
    game = model.tournament(user, items)
    winner = game.condorcet_winner()
    rankings = [rank_tournament(game, method) for method in _SLATE]
    return {
        "model": served.digest,
        "user": served.plain(user),
        "items": served.entries(items),
        "margins": game.margins.tolist(),
        "probabilities": _pair_chances(model, user, game.items),
        "rankings": [
            {
                "method": order.method,
                "winner": served.plain(order.items[0]),
                "items": served.plain(order.items),
                "scores": order.scores.tolist(),
            }
            for order in rankings
        ],
        "condorcet_winner": None if winner is None else served.plain(winner),
        "smith_set": served.plain(game.smith_set()),
        "spoilers": [
            {
                "method": method,
                "item": served.entry(one.item),
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


def nemesis(served: Served, asked: questions.NemesisQuery) -> Answer:
    """Find what beats an item head to head, and for what share of the users."""
    (item,) = known_items(served, [asked.item])
    count = len(served.model.users)
    users = np.linspace(0, count - 1, min(count, MOST_USERS)).astype(np.int64)  # evenly over all
    found = nemeses(served.model.state.parameters, served.model.state.items.one(item), asked.N, users=users)
    places = found.items.tolist()
    return {
        "model": served.digest,
        **served.entry(item),
        "popularity": float(served.popularity[served.model.state.items.positions(item)]),
        "place": int(served.popular_place[served.model.state.items.positions(item)]),
        "users": found.users,
        "nemeses": [
            {
                **served.items.entries[place],
                "share": float(share),
                "margin": float(margin),
                "popularity": float(served.popularity[place]),
                "place": int(served.popular_place[place]),
            }
            for place, share, margin in zip(places, found.shares, found.margins, strict=True)
        ],
    }
