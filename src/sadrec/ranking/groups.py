"""Slates: the items of a cycle are shown together, in the place their group earned."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._check import number, whole
from sadrec.ranking._arguments import Indices
from sadrec.ranking.cycles import best_cycle, cyclic_components
from sadrec.ranking.tournament import Tournament


@dataclass(frozen=True, eq=False)
class Group:
    """Items to show together.

    Attributes
    ----------
    items
        Best first, by wins in the whole list.
    wins
        How many of the other items in the list the group's items beat, on average.
    strength
        The weakest step of the strongest cycle through the items; 0 for a single item.

    Examples
    --------
    >>> Group(np.array(["rock", "paper", "scissors"]), 2.0, 1.0)
    rock | paper | scissors   (a cycle of strength 1; 2 wins)
    """

    items: NDArray[Any]
    wins: float
    strength: float

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        cycle = f"a cycle of strength {self.strength:.3g}; " if len(self) > 1 else ""
        return f"{' | '.join(map(str, self.items))}   ({cycle}{self.wins:.3g} wins)"


def recommend_groups(
    game: Tournament, N: int | None = None, *, largest: int | None = 5, minimum: float = 0.0
) -> list[Group]:
    """Turn a tournament into slates, best first: the items of a cycle together, every other item alone.

    Slates come in the order of their mean number of wins in the list; then of their items' mean margin, then of the
    list. They end with the one that reaches N items. A cycle of more than ``largest`` items is split into its strongest
    cycles, by raising the margin that a win needs to count. Without ties, and without ``largest``, everything in one
    slate beats everything in the later ones.

    >>> game = Tournament(np.array(["air", "rock", "paper", "scissors"]), np.array(
    ...     [[0.0, -1, -1, -1], [1, 0, -1, 2], [1, 1, 0, -3], [1, -2, 3, 0]]))
    >>> recommend_groups(game)
    [rock | scissors | paper   (a cycle of strength 1; 2 wins), air   (0 wins)]
    """
    N = len(game) if N is None else whole(N, "N")
    largest = len(game) if largest is None else whole(largest, "largest", least=1)
    minimum = number(minimum, "minimum")
    wins, mean = game.wins(), game.mean_margins()
    groups = []
    for part in _split(game, largest, minimum):
        ordered = part[np.lexsort((-mean[part], -wins[part]))]
        inner = game.margins[np.ix_(part, part)]
        strength = 0.0
        if part.size > 1:
            path = best_cycle(np.where(inner > minimum, inner, 0.0))
            strength = float(inner[path, np.roll(path, -1)].min())
        groups.append((-wins[part].mean(), -mean[part].mean(), int(part[0]), ordered, strength))
    groups.sort(key=lambda group: group[:3])
    shown: list[Group] = []
    for negative_wins, _, _, ordered, strength in groups:
        if sum(map(len, shown)) >= N:
            break
        shown.append(Group(game.items[ordered], -float(negative_wins), strength))
    return shown


def _split(game: Tournament, largest: int, minimum: float) -> list[Indices]:
    """Split positions into cycles of at most ``largest`` items and single items."""
    waiting = [(np.arange(len(game)), minimum)]
    parts: list[Indices] = []
    while waiting:
        positions, level = waiting.pop()
        inner = game.margins[np.ix_(positions, positions)]
        cycles = cyclic_components(inner, level)
        alone = np.ones(positions.size, dtype=bool)
        for cycle in cycles:
            alone[cycle] = False
            if cycle.size <= largest:
                parts.append(positions[cycle])
            else:
                within = inner[np.ix_(cycle, cycle)]
                waiting.append((positions[cycle], _level_that_splits(within, level)))
        parts.extend(positions[place : place + 1] for place in np.flatnonzero(alone))
    return parts


def _level_that_splits(margins: NDArray[np.float64], level: float) -> float:
    """Return the lowest margin such that wins above it no longer hold all the items of a cycle together."""
    levels = np.unique(margins[margins > level])
    low, high = -1, levels.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        together = cyclic_components(margins, float(levels[middle]))
        if len(together) == 1 and together[0].size == len(margins):
            low = middle
        else:
            high = middle
    return float(levels[high])
