"""Three items in a circle: how many there are in a tournament, and the firmest of them."""

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._types import Doubles
from sadrec.ranking._arguments import count
from sadrec.ranking.tournament import Tournament


@dataclass(frozen=True, eq=False)
class CyclicTriads:
    """How many triples of items run in a circle.

    Attributes
    ----------
    count
        How many.
    total
        How many triples there are: n choose 3.
    strongest
        (triads, 3): items, each beating the next and the last the first, strongest first.
    strengths
        The smallest of the three margins of each.

    Examples
    --------
    >>> CyclicTriads(1, 4, np.array([["rock", "scissors", "paper"]]), np.array([1.0]))
    1 of 4 triples run in a circle (25 %)
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
        lines = [f"{self.count} of {self.total} triples run in a circle ({100 * self.share:.3g} %)"]
        for triad, strength in zip(self.strongest[:10], self.strengths[:10], strict=True):
            a, b, c = triad
            lines.append(f"  {a} > {b} > {c} > {a}   strength {strength:.3g}")
        return "\n".join(lines)


def cyclic_triads(game: Tournament, strongest: int = 10) -> CyclicTriads:
    """Count the triples of items that run in a circle, and list the firmest.

    Without ties the count comes from the win counts d_i alone: ``C(n, 3) - sum C(d_i, 2)`` (Kendall and Babington
    Smith, 1940). A triple with a tie in it runs in no circle.

    Parameters
    ----------
    game
        As from :func:`~sadrec.ranking.tournament.tournament`.
    strongest
        How many to list.

    Examples
    --------
    >>> game = Tournament(np.array(["rock", "paper", "scissors", "air"]), np.array(
    ...     [[0.0, -1, 2, 1], [1, 0, -3, 1], [-2, 3, 0, 1], [-1, -1, -1, 0]]))
    >>> cyclic_triads(game)
    1 of 4 triples run in a circle (25 %)
      rock > scissors > paper > rock   strength 1
    """
    size, margins = len(game), game.margins
    wins = (margins > 0).sum(1)
    number = comb(size, 3) - sum(comb(int(d), 2) for d in wins)
    if np.count_nonzero(margins == 0) > size:
        beats = (margins > 0).astype(np.float64)
        number = round(float(((beats @ beats) * beats.T).sum()) / 3)
    triads, strengths = _strongest(margins, min(count(strongest, "strongest"), number))
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
        # strength[j, t] of the circle i > j > t > i
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
