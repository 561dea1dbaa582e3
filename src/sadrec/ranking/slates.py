"""Slates: the winner among a few items, the items whose presence changes it, and what beats an item."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.check import positions, whole
from sadrec._core.types import Doubles, Positions, SlateMethod
from sadrec._core.words import one_line
from sadrec.ranking.parameters import Parameters, item_positions, user_vectors
from sadrec.ranking.rank import rank_tournament
from sadrec.ranking.tournament import Tournament

_NUMBERS = 1 << 22
"""The largest number of margins held at a time."""


@dataclass(frozen=True)
class Spoiler:
    """An item that changes the winner without outranking it: with it on the slate a third item wins.

    >>> Spoiler("air", "rock", "paper")
    air lets paper win instead of rock
    """

    item: Any
    winner_without: Any
    winner_with: Any

    def __repr__(self) -> str:
        names = map(one_line, (self.item, self.winner_with, self.winner_without))
        return "{} lets {} win instead of {}".format(*names)


def spoilers(game: Tournament, slate: int, method: SlateMethod = "wins") -> list[Spoiler]:
    """Find the items that dethrone a winner without outranking it.

    The first ``slate`` items of the tournament are on the slate, the others could be put there. Each item of the slate
    is taken out, and each other one put in, alone. A spoiler changes who wins, does not win itself, and comes after the
    winner that it dethrones. With scores (BPR) there is none, whatever the method.

    >>> game = Tournament(np.array(["a", "b", "c"]), np.array([[0.0, 1, -1], [-1, 0, 3], [1, -3, 0]]))
    >>> spoilers(game, 2, "margin")
    [c lets b win instead of a]
    """
    slate = whole(slate, "slate", least=1, most=len(game))
    inside = list(range(slate))
    answer = []
    for other in range(len(game)):
        without = [place for place in inside if place != other]
        if not without:
            continue
        before = rank_tournament(_part(game, without), method).items[0]
        order = list(rank_tournament(_part(game, [*without, other]), method).items)
        if order[0] not in (before, other) and order.index(other) > order.index(before):
            answer.append(Spoiler(*game.items[[other, before, order[0]]].tolist()))
    return answer


def _part(game: Tournament, places: list[int]) -> Tournament:
    """Return the tournament of some of the items, which are called by their places."""
    return Tournament(np.array(places), game.margins[np.ix_(places, places)])


@dataclass(frozen=True, eq=False)
class Nemeses:
    """The items that beat an item head to head.

    >>> Nemeses("rock", np.array(["paper"]), np.array([0.75]), np.array([1.5]), 20)
    what beats rock, of 20 users
      paper  for 75 %
    """

    item: Any
    items: NDArray[Any]
    shares: Doubles  # of the users who prefer each of the items to the item; equals count half
    margins: Doubles = field(repr=False)  # the mean margin of each of the items over the item
    users: int  # how many were asked

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        width = max((len(str(item)) for item in self.items), default=0)
        rows = zip(self.items, self.shares, strict=True)
        lines = [f"  {item!s:<{width}}  for {100 * share:.0f} %" for item, share in rows]
        return "\n".join([f"what beats {self.item}, of {self.users} users", *lines])


def nemeses(
    parameters: Parameters, item: int, N: int = 10, *, items: ArrayLike | None = None, users: ArrayLike | None = None
) -> Nemeses:
    """Find the N items that most users prefer to an item; then those with the larger mean margin over it.

    >>> nemeses(Parameters(np.array([[1.0], [2.0], [-1.0]]), np.array([[0.0], [1.0], [-1.0]])), 0)
    what beats 0, of 3 users
      1  for 67 %
      2  for 33 %
    """
    j = int(positions(item, parameters.n_items, "item"))
    others: Positions = item_positions(parameters, items)
    others = others[others != j]
    vectors = user_vectors(parameters, users).astype(np.float32, copy=False)
    wedge = parameters.wedge(others, np.full(others.size, j)).astype(np.float32)
    twice, total = np.zeros(others.size), np.zeros(others.size)
    step = max(1, _NUMBERS // max(1, others.size))
    for start in range(0, len(vectors), step):
        x = vectors[start : start + step] @ wedge.T
        twice += np.sign(x).sum(axis=0)
        total += x.sum(axis=0, dtype=np.float64)
    count = max(1, len(vectors))
    shares, margins = (twice / count + 1) / 2, total / count
    best = np.lexsort((others, -margins, -shares))[: whole(N, "N")]
    return Nemeses(j, others[best], shares[best], margins[best], len(vectors))
