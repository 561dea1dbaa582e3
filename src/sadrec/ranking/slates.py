"""The winner of a slate, and the item that changes it without winning: no score can do that.

With scores the order of two items does not depend on what else is on the slate. With rivals it may: an item that ranks
below the winner can take enough wins from it to make a third item the winner.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from sadrec._check import one_of
from sadrec.ranking.parameters import Parameters, User, item_positions
from sadrec.ranking.rank import Ranking, rank_margins, rank_tournament
from sadrec.ranking.tournament import Tournament, tournament

SlateMethod = Literal["margin", "wins", "markov", "nash"]
SLATE_METHODS: tuple[str, ...] = get_args(SlateMethod)
"""The ways to choose a winner among the items of a slate alone."""


@dataclass(frozen=True, eq=False)
class Dethroner:
    """An item that changes the winner of a slate when it joins, without outranking that winner."""

    item: Any
    place: int  # of the item on the slate it joined, from 1
    winner: Any  # before
    new_winner: Any


def rank_slate(game: Tournament, method: SlateMethod) -> Ranking:
    """Order the items of a slate by each other; "margin" averages over the slate itself.

    >>> game = Tournament(np.array(["tea", "ale"]), np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> rank_slate(game, "margin")
    Ranking of 2 items by margin
      1.  tea  0.5
      2.  ale -0.5
    """
    one_of(method, "method", SLATE_METHODS)
    if method == "margin":
        return rank_margins(game.margins, method, game.items)
    return rank_tournament(game, method)


def dethroners(
    parameters: Parameters, user: User, items: ArrayLike, candidates: ArrayLike, method: SlateMethod = "wins"
) -> list[Dethroner]:
    """Return which candidates, joining a slate, change its winner without outranking it; lowest in place first.

    >>> tastes = Parameters(np.ones((1, 1)), np.array([[3.0], [2.0], [1.0]]))
    >>> dethroners(tastes, 0, [0, 1], [2])  # scores: never
    []
    """
    slate = item_positions(parameters, items)
    if slate.size < 2:
        return []
    joining = np.setdiff1d(item_positions(parameters, candidates, "candidates"), slate)
    game = tournament(parameters, user, np.append(slate, joining))
    size = slate.size
    winner = rank_slate(_part(game, np.arange(size)), method).items[0]
    found = []
    for place in range(size, len(game)):
        order = rank_slate(_part(game, np.append(np.arange(size), place)), method).items.tolist()
        below = order.index(game.items[place])
        if order[0] != winner and below > order.index(winner):
            found.append(Dethroner(int(game.items[place]), below + 1, int(winner), int(order[0])))
    return sorted(found, key=lambda one: -one.place)


def _part(game: Tournament, places: Any) -> Tournament:
    return Tournament(game.items[places], game.margins[np.ix_(places, places)])
