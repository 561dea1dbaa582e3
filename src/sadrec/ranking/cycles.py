"""Cycles among the items of a tournament (A beats B, B beats C, C beats A), and slates that show them together."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.check import number, whole
from sadrec._core.types import Doubles, Positions
from sadrec._core.words import one_line, titled
from sadrec.ranking.belief import Belief
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.tournament import Tournament, strong_components


@dataclass(frozen=True, eq=False)
class Cycle:
    """Items that beat each other in a cycle.

    Attributes
    ----------
    members
        All items of the strongly connected component: each beats each other one, directly or through others.
    path
        One cycle through some of them, in order. No cycle has a stronger weakest step; it is a shortest such.
    margins, probabilities
        Of each step of the path; probabilities that are not given are ``sigmoid(margins)``.
    probability
        That all steps of the path hold at once; None where it is not known.

    Examples
    --------
    >>> print(Cycle(np.arange(3), np.array(["rock", "scissors", "paper"]), np.array([2.0, 3.0, 1.0])))
    Cycle of strength 1 through 3 of 3 items
      rock      beats  scissors  by 2     (wins 88 %)
      scissors  beats  paper     by 3     (wins 95 %)
      paper     beats  rock      by 1     (wins 73 %)
    """

    members: NDArray[Any]
    path: NDArray[Any]
    margins: Doubles
    probabilities: Doubles = field(default_factory=lambda: np.empty(0))
    probability: float | None = None

    def __post_init__(self) -> None:
        if not len(self.probabilities):
            object.__setattr__(self, "probabilities", sigmoid(self.margins))

    @property
    def strength(self) -> float:
        """The margin of the weakest step of the path."""
        return float(self.margins.min())

    def named(self, titles: Mapping[Any, str]) -> "Cycle":
        """Return the same with titles (:class:`sadrec.Items`, or a mapping) in place of ids."""
        return replace(self, members=titled(self.members, titles), path=titled(self.path, titles))

    def __len__(self) -> int:
        return len(self.path)

    def __repr__(self) -> str:
        names = [one_line(item) for item in self.path]
        width = max(map(len, names))
        sure = "" if self.probability is None else f" ({100 * self.probability:.0f} % sure that all steps hold)"
        lines = [f"Cycle of strength {self.strength:.3g} through {len(names)} of {len(self.members)} items{sure}"]
        for step, name in enumerate(names):
            other = names[(step + 1) % len(names)]
            lines.append(
                f"  {name:<{width}}  beats  {other:<{width}}  by {self.margins[step]:<6.3g}"
                f" (wins {100 * self.probabilities[step]:.0f} %)"
            )
        return "\n".join(lines)


def cycles(game: Tournament, minimum: float = 0.0) -> list[Cycle]:
    """Return one cycle for each strongly connected component of two items or more, strongest first.

    ``minimum`` is the margin that a win needs to count: a higher one splits large components into their strong cores.
    Without rival factors (BPR) there are no cycles.

    >>> game = Tournament(np.array(["rock", "paper", "scissors", "air"]), np.array(
    ...     [[0.0, -1, 2, 1], [1, 0, -3, 1], [-2, 3, 0, 1], [-1, -1, -1, 0]]))
    >>> [cycle.path.tolist() for cycle in cycles(game)]
    [['rock', 'scissors', 'paper']]
    """
    minimum = number(minimum, "minimum")
    margins = game.margins
    answer = []
    for part in cyclic_components(margins, minimum):
        inner = margins[np.ix_(part, part)]
        path = best_cycle(np.where(inner > minimum, inner, 0.0))
        steps = inner[path, np.roll(path, -1)]
        answer.append(Cycle(game.items[part], game.items[part[path]], steps))
    return sorted(answer, key=lambda cycle: -cycle.strength)


def probable_cycles(belief: Belief, user: Any, items: Positions, minimum: float = 0.0) -> list[Cycle]:
    """Return the :func:`cycles` of a user among some items with their probabilities, by probability times strength."""
    game = belief.tournament(user, items, items)
    judged = [judge(cycle, belief, user) for cycle in cycles(game, minimum)]
    return sorted(judged, key=lambda cycle: -cycle.strength * (1 if cycle.probability is None else cycle.probability))


def judge(cycle: Cycle, belief: Belief, user: Any) -> Cycle:
    """Return a cycle of positions with the probabilities of its steps and, where known, of all of them at once."""
    after = np.roll(cycle.path, -1)
    together = belief.together(user, cycle.path, after) if belief.has_variance else None
    return replace(cycle, probabilities=belief.probability(user, cycle.path, after), probability=together)


def cycle_through(game: Tournament, item: Any) -> Cycle | None:
    """Return the cycle through one of ``game.items`` whose weakest step is strongest, or None if there is none.

    It is a shortest of these and starts at the item. Its ``members`` are those of the item's component.

    >>> game = Tournament(np.array(["rock", "paper", "scissors", "air"]), np.array(
    ...     [[0.0, -1, 2, 1], [1, 0, -3, 1], [-2, 3, 0, 1], [-1, -1, -1, 0]]))
    >>> cycle_through(game, "paper").path.tolist(), cycle_through(game, "air")
    (['paper', 'rock', 'scissors'], None)
    """
    places = np.flatnonzero(game.items == item)
    if not places.size:
        raise ValueError(f"item {item!r} does not take part: give one of the tournament's items")
    at, margins = int(places[0]), game.margins
    part = next((part for part in cyclic_components(margins) if at in part), None)
    if part is None:
        return None
    inner, start = margins[np.ix_(part, part)], int(np.searchsorted(part, at))
    levels = np.unique(inner[inner > 0])
    low, high = 0, levels.size  # at the lowest level the item is in a cycle
    while high - low > 1:
        middle = (low + high) // 2
        labels = strong_components(inner >= levels[middle])
        if np.count_nonzero(labels == labels[start]) > 1:
            low = middle
        else:
            high = middle
    beats = inner >= levels[low]
    ways = (_shortest_way(beats, int(after), start, len(part)) for after in np.flatnonzero(beats[start]))
    path = np.roll(min((way for way in ways if way), key=len), 1)
    return Cycle(game.items[part], game.items[part[path]], inner[path, np.roll(path, -1)])


def cyclic_components(margins: Doubles, minimum: float = 0.0) -> list[Positions]:
    """Return the strongly connected components of two items or more, by wins of more than ``minimum``."""
    labels = strong_components(margins > minimum)
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if order.size else []
    return sorted((np.sort(part) for part in parts if part.size > 1), key=lambda part: int(part[0]))


def best_cycle(margins: Doubles) -> Positions:
    """Return a cycle whose weakest step is as strong as can be; a shortest of these; starting at its first item.

    The margins are those of a strongly connected component; only positive entries count as wins.
    """
    levels = np.unique(margins[margins > 0])
    # The highest level at which the wins that strong still form a cycle: they do at the lowest.
    low, high = 0, levels.size
    while high - low > 1:
        middle = (low + high) // 2
        if np.unique(strong_components(margins >= levels[middle])).size < len(margins):
            low = middle
        else:
            high = middle
    beats = margins >= levels[low]
    best: list[int] = []
    # The cycle closed only with this level, so it goes through a win of exactly that margin.
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


@dataclass(frozen=True, eq=False)
class CyclicTriads:
    """The number of triples of items that are cycles.

    Attributes
    ----------
    count, total
        How many there are, of how many triples: n choose 3.
    strongest
        (triads, 3): items, each beating the next and the last the first, strongest first.
    strengths
        The smallest of the three margins of each.

    Examples
    --------
    >>> CyclicTriads(1, 4, np.array([["rock", "scissors", "paper"]]), np.array([1.0]))
    1 of 4 triples are cycles (25 %)
      rock > scissors > paper > rock   strength 1
    """

    count: int
    total: int
    strongest: NDArray[Any] = field(repr=False)
    strengths: Doubles = field(repr=False)

    @property
    def share(self) -> float:
        """The share of all triples; 0 where there are none. In a coin-tossed tournament it is 1/4 on average."""
        return self.count / self.total if self.total else 0.0

    def __repr__(self) -> str:
        lines = [f"{self.count} of {self.total} triples are cycles ({100 * self.share:.3g} %)"]
        for triad, strength in zip(self.strongest[:10], self.strengths[:10], strict=True):
            a, b, c = map(one_line, triad)
            lines.append(f"  {a} > {b} > {c} > {a}   strength {strength:.3g}")
        return "\n".join(lines)


def cyclic_triads(game: Tournament, strongest: int = 10) -> CyclicTriads:
    """Count the triples of items that are cycles, and list the strongest.

    Without ties the count comes from the win counts d_i alone: ``C(n, 3) - sum C(d_i, 2)`` (Kendall and Babington
    Smith, 1940). A triple with a tie in it is no cycle.
    """
    size, margins = len(game), game.margins
    wins = (margins > 0).sum(1)
    number = comb(size, 3) - sum(comb(int(d), 2) for d in wins)
    if np.count_nonzero(margins == 0) > size:
        beats = (margins > 0).astype(np.float64)
        number = round(float(((beats @ beats) * beats.T).sum()) / 3)
    triads, strengths = _strongest(margins, min(whole(strongest, "strongest"), number))
    return CyclicTriads(number, comb(size, 3), game.items[triads], strengths)


def _strongest(margins: Doubles, wanted: int) -> tuple[NDArray[np.int64], Doubles]:
    """Return the strongest cyclic triads, each from its first item on, and their strengths."""
    triads, strengths = np.empty((0, 3), np.int64), np.empty(0)
    if not wanted:
        return triads, strengths
    for i in range(len(margins) - 2):
        least = strengths[-1] if strengths.size == wanted else 0.0
        beaten = i + 1 + np.flatnonzero(margins[i, i + 1 :] > least)
        beating = i + 1 + np.flatnonzero(margins[i + 1 :, i] > least)
        # strength[j, t] of the cycle i > j > t > i
        strength = np.minimum(margins[np.ix_(beaten, beating)], margins[i, beaten, None])
        strength = np.minimum(strength, margins[None, beating, i])
        j, t = np.nonzero(strength > least)
        if not j.size:
            continue
        triads = np.vstack([triads, np.stack([np.full(j.size, i), beaten[j], beating[t]], axis=1)])
        strengths = np.concatenate([strengths, strength[j, t]])
        best = np.argsort(-strengths, kind="stable")[:wanted]
        triads, strengths = triads[best], strengths[best]
    return triads, strengths


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

    def named(self, titles: Mapping[Any, str]) -> "Group":
        """Return the same with titles (:class:`sadrec.Items`, or a mapping) in place of ids."""
        return replace(self, items=titled(self.items, titles))

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        cycle = f"a cycle of strength {self.strength:.3g}; " if len(self) > 1 else ""
        return f"{' | '.join(map(one_line, self.items))}   ({cycle}{self.wins:.3g} wins)"


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
        place = -wins[part].mean(), -mean[part].mean(), int(part[0])
        groups.append((place, Group(game.items[ordered], float(wins[part].mean()), strength)))
    shown: list[Group] = []
    for _, group in sorted(groups, key=lambda entry: entry[0]):
        if sum(map(len, shown)) >= N:
            break
        shown.append(group)
    return shown


def _split(game: Tournament, largest: int, minimum: float) -> list[Positions]:
    """Split positions into cycles of at most ``largest`` items and single items."""
    waiting = [(np.arange(len(game)), minimum)]
    parts: list[Positions] = []
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
