"""The next question to ask a person, and contradictions in their answers: noise, or a cycle.

An answer tells much when the model is unsure because it does not know, not because the person is indifferent. With a
margin ``x ~ N(mean, variance)`` the expected information of an answer about x is ``H(E sigmoid(x)) - E H(sigmoid(x))``
bits, H being the entropy of a yes or no.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.types import Doubles, Positions
from sadrec.ranking.belief import Belief
from sadrec.ranking.cycles import best_cycle, cyclic_components
from sadrec.ranking.parameters import item_positions
from sadrec.ranking.rank import LONGEST


def ask_next(belief: Belief, user: Any, items: Positions, N: int) -> tuple[Positions, Positions, Doubles, Doubles]:
    """Return the N pairs whose answer is expected to tell the most about a user's margins.

    Returns items, rivals, the expected information in bits and the probability that the item wins, largest information
    first.
    """
    if not 2 <= len(items) <= LONGEST:
        raise ValueError(f"a question is chosen among 2 to {LONGEST} items, not {len(items)}: name some")
    one, other = (items[side] for side in np.triu_indices(len(items), 1))
    bits, chance = belief.information(user, one, other)
    best = np.argsort(-bits, kind="stable")[:N]
    return one[best], other[best], bits[best], chance[best]


@dataclass(frozen=True, eq=False)
class Contradiction:
    """A contradiction: answers of one person that no order of the items fits.

    Attributes
    ----------
    path
        Items, each of which the person preferred to the next, and the last to the first. Two items: the same question
        was answered both ways.
    probabilities
        Of each step, given all the person's answers.
    probability
        That all steps hold at once, given all the answers.

    Examples
    --------
    >>> Contradiction(np.array(["rock", "scissors", "paper"]), np.array([0.9, 0.8, 0.7]), 0.6)
    rock > scissors > paper > rock: a cycle (60 %); to be sure, ask again about paper and rock
    """

    path: NDArray[Any]
    probabilities: Doubles
    probability: float

    @property
    def verdict(self) -> Literal["cycle", "noise"]:
        """The likelier explanation: a real cycle in the person's taste, or a slip in an answer."""
        return "cycle" if self.probability >= 0.5 else "noise"

    @property
    def ask_again(self) -> tuple[Any, Any]:
        """The step that is least probable: winner and loser."""
        step = int(np.argmin(self.probabilities))
        return self.path[step], self.path[(step + 1) % len(self.path)]

    def __repr__(self) -> str:
        chain = " > ".join(map(str, [*self.path, self.path[0]]))
        kind = "a cycle" if self.verdict == "cycle" else "noise, probably"
        first, second = self.ask_again
        return f"{chain}: {kind} ({100 * self.probability:.0f} %); to be sure, ask again about {first} and {second}"


def contradictions(belief: Belief, winners: ArrayLike, losers: ArrayLike) -> list[Contradiction]:
    """Find where a person's answers contradict each other, the most probable cycles first.

    ``belief`` has the person as its only user, given these answers.
    There is one contradiction for each question that was answered both ways, and one for each group of items that the
    answers, by majority, let beat each other in cycles.
    """
    i, j = (item_positions(belief, side, name) for side, name in ((winners, "winners"), (losers, "losers")))
    items, places = np.unique(np.concatenate([i, j]), return_inverse=True)
    counts = np.zeros((items.size, items.size))
    np.add.at(counts, tuple(np.split(places, 2)), 1.0)
    answer = []
    for first, second in np.argwhere(np.triu((counts > 0) & (counts.T > 0))):
        path = np.array([first, second] if counts[first, second] >= counts[second, first] else [second, first])
        answer.append(_judged(belief, items[path]))
    wins = np.where(counts > counts.T, 1.0, 0.0)
    for part in cyclic_components(wins):
        rows, columns = np.nonzero(wins[np.ix_(part, part)])
        strength = np.zeros((part.size, part.size))
        strength[rows, columns] = belief.probability(0, items[part[rows]], items[part[columns]])
        answer.append(_judged(belief, items[part[best_cycle(strength)]]))
    return sorted(answer, key=lambda one: -one.probability)


def _judged(belief: Belief, path: Positions) -> Contradiction:
    """Return the contradiction of a path with the probabilities of its steps, and of all at once."""
    after = np.roll(path, -1)
    together = 0.0 if len(path) < 3 else belief.together(0, path, after)
    return Contradiction(path, belief.probability(0, path, after), together)
