"""Where taste runs in a circle: cycles among the items of a tournament, and how firmly they are closed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._types import Doubles
from sadrec.ranking._arguments import Indices, least_margin
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.tournament import Tournament, strong_components


@dataclass(frozen=True, eq=False)
class Cycle:
    """Items that beat each other in a circle.

    Attributes
    ----------
    members
        All items of the strongly connected component: each beats each other one, directly or through others.
    path
        One cycle through some of them, in order: each beats the next, and the last beats the first. Of all cycles in
        the component it is one whose weakest step is strongest, and a shortest of those.
    margins
        Of each step of the path.
    strength
        The margin of its weakest step.

    Examples
    --------
    >>> print(Cycle(np.arange(3), np.array(["rock", "scissors", "paper"]), np.array([2.0, 3.0, 1.0])))
    Cycle of strength 1 through 3 of 3 items
      rock      beats  scissors  by 2     (88 %)
      scissors  beats  paper     by 3     (95 %)
      paper     beats  rock      by 1     (73 %)
    """

    members: NDArray[Any]
    path: NDArray[Any]
    margins: Doubles

    @property
    def strength(self) -> float:
        """The margin of the weakest step of the path."""
        return float(self.margins.min())

    @property
    def probabilities(self) -> Doubles:
        """The probability of each step of the path."""
        return sigmoid(self.margins)

    def __len__(self) -> int:
        return len(self.path)

    def __repr__(self) -> str:
        names = [str(item) for item in self.path]
        width = max(map(len, names))
        lines = [
            f"Cycle of strength {self.strength:.3g} through {len(names)} of {len(self.members)} items",
        ]
        for step, name in enumerate(names):
            other = names[(step + 1) % len(names)]
            lines.append(
                f"  {name:<{width}}  beats  {other:<{width}}  by {self.margins[step]:<6.3g}"
                f" ({100 * self.probabilities[step]:.0f} %)"
            )
        return "\n".join(lines)


def cycles(game: Tournament, minimum: float = 0.0) -> list[Cycle]:
    """Find where the items of a tournament beat each other in a circle.

    Parameters
    ----------
    game
        As from :func:`~sadrec.ranking.tournament.tournament`.
    minimum
        The margin a win needs to count. A higher one splits large components into their firm cores.

    Returns
    -------
    list of Cycle
        One for each strongly connected component of two items or more, strongest first. Empty if the wins that count
        run in no circle, as they never do without rival factors (BPR).

    Examples
    --------
    >>> game = Tournament(np.array(["rock", "paper", "scissors", "air"]), np.array(
    ...     [[0.0, -1, 2, 1], [1, 0, -3, 1], [-2, 3, 0, 1], [-1, -1, -1, 0]]))
    >>> cycles(game)
    [Cycle of strength 1 through 3 of 3 items
      rock      beats  scissors  by 2      (88 %)
      scissors  beats  paper     by 3      (95 %)
      paper     beats  rock      by 1      (73 %)]
    """
    minimum = least_margin(minimum)
    margins = game.margins
    found = []
    for part in cyclic_components(margins, minimum):
        inner = margins[np.ix_(part, part)]
        path = best_cycle(np.where(inner > minimum, inner, 0.0))
        steps = inner[path, np.roll(path, -1)]
        found.append(Cycle(game.items[part], game.items[part[path]], steps))
    return sorted(found, key=lambda cycle: -cycle.strength)


def cyclic_components(margins: Doubles, minimum: float = 0.0) -> list[Indices]:
    """Return the strongly connected components of two items or more, by wins of more than ``minimum``."""
    labels = strong_components(margins > minimum)
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if order.size else []
    return sorted((np.sort(part) for part in parts if part.size > 1), key=lambda part: int(part[0]))


def best_cycle(margins: Doubles) -> Indices:
    """Find a cycle whose weakest step is as strong as can be; a shortest of these; starting at its first item.

    Parameters
    ----------
    margins
        Of a strongly connected component; only positive entries count as wins.
    """
    levels = np.unique(margins[margins > 0])
    # The highest level at which the wins that strong still run in a circle: they do at the lowest.
    low, high = 0, levels.size
    while high - low > 1:
        middle = (low + high) // 2
        if np.unique(strong_components(margins >= levels[middle])).size < len(margins):
            low = middle
        else:
            high = middle
    beats = (margins >= levels[low]) & (margins > 0)
    best: list[int] = []
    # The circle closed only with this level, so it goes through a win of exactly that margin.
    for start, after in np.argwhere(beats & (margins == levels[low])):
        way = _shortest_way(beats, int(after), int(start), len(best) - 1 if best else len(margins))
        if way:
            best = way
        if len(best) == 3:
            break
    path = np.array(best)
    return np.roll(path, -int(path.argmin()))


def _shortest_way(beats: NDArray[np.bool_], start: int, end: int, longest: int) -> list[int]:
    """Return a shortest way from one item to another along wins, both included; empty if longer than ``longest``."""
    came_from = np.full(len(beats), -1)
    came_from[start] = start
    frontier = np.array([start])
    for _ in range(longest - 1):
        reached = beats[frontier] & (came_from < 0)
        new = np.flatnonzero(reached.any(axis=0))
        if not new.size:
            return []
        came_from[new] = frontier[reached[:, new].argmax(axis=0)]
        if came_from[end] >= 0:
            way = [end]
            while way[-1] != start:
                way.append(int(came_from[way[-1]]))
            return way[::-1]
        frontier = new
    return []
