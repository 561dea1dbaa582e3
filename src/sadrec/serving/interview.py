"""The next question to a visitor in an interview.

Most questions are those whose answer tells most. Every fourth tests a cycle that the answers so far make probable. A
cycle among the answers themselves, and an answer that the others make improbable, are asked about once more, with the
sides exchanged: an answer that is given twice is taste, one that is taken back was noise.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sadrec import SAD, Comparisons
from sadrec.ranking import Contradiction, surprises

Reason = Literal["new", "step", "cycle", "surprise"]

_EVERY = 4
"""One question in this number tests a cycle, from the eighth on."""
_WAIT = 2
"""The number of other answers before a question is repeated."""
_SURE = 0.9
"""From which probability on a cycle is real; below one minus it, noise."""
_SURPRISING = 0.1
"""An answer is surprising if the others give it a smaller probability."""


@dataclass(frozen=True)
class NextQuestion:
    """A question and its reason: "new", a "step" of a probable cycle, or repeated: "cycle", "surprise"."""

    item: Any
    rival: Any
    bits: float
    probability: float
    reason: Reason


def next_question(
    visitor: SAD,
    user: Any,
    items: list[Any],
    comparisons: Comparisons | None = None,
    contradictions: list[Contradiction] | None = None,
) -> NextQuestion | None:
    """Return the next question, or None if none is left.

    ``visitor`` is ``model.visitor(comparisons=comparisons, name=user)``, or any model with a covariance of a
    user; ``items`` are the ids to choose new questions from, ``contradictions`` those in the comparisons, with ids.
    """
    answers: list[tuple[Any, Any]] = []
    if comparisons is not None:
        sides = comparisons.items[comparisons.winner_index], comparisons.items[comparisons.loser_index]
        answers = list(zip(*sides, strict=True))
        again = _again(visitor, user, answers, contradictions or [])
        if again is not None:
            return again
    before = {frozenset(pair) for pair in answers}
    if len(answers) % _EVERY == _EVERY - 1 and len(answers) >= 2 * _EVERY - 1:
        step = _step(visitor, user, before)
        if step is not None:
            return step
    just_shown = set(answers[-1]) if answers else set()
    other = None
    for row in visitor.ask_next(user, items, len(before) + 2 * len(items)).iter_rows(named=True):
        pair = {row["item"], row["rival"]}
        if pair not in before:
            question = NextQuestion(row["item"], row["rival"], row["bits"], row["probability"], "new")
            if not pair & just_shown:
                return question
            other = other or question
    return other


def _again(
    visitor: SAD, user: Any, answers: list[tuple[Any, Any]], contradictions: list[Contradiction]
) -> NextQuestion | None:
    """Return a question to repeat."""
    pairs = [frozenset(pair) for pair in answers]
    recent = set(pairs[-_WAIT:])
    waiting: list[tuple[Any, Any, Reason]] = []
    for one in contradictions:
        if len(one.path) > 2 and 1 - _SURE < one.probability < _SURE:
            path = list(one.path)
            steps = np.argsort(one.probabilities, kind="stable").tolist()
            waiting.extend((path[step], path[(step + 1) % len(path)], "cycle") for step in steps)
    once = np.array([pairs.count(pair) == 1 for pair in pairs])
    winners, losers = (visitor.state.items.positions(list(side)) for side in zip(*answers, strict=True))
    chances = surprises(visitor.state.belief, winners, losers)
    if once.any() and chances[once].min() < _SURPRISING:  # the most surprising alone: it upsets the others
        waiting.append((*answers[int(np.flatnonzero(once)[chances[once].argmin()])], "surprise"))
    for winner, loser, reason in waiting:
        pair = frozenset((winner, loser))
        if pairs.count(pair) == 1 and pair not in recent:
            return _question(visitor, user, loser, winner, reason)
    return None


def _step(visitor: SAD, user: Any, before: set[frozenset[Any]]) -> NextQuestion | None:
    """Return the least probable new step of the strongest cycle."""
    for cycle in visitor.cycles(user, 30)[:1]:
        after = np.roll(cycle.path, -1)
        chances = visitor.probability(user, cycle.path, after)
        for step in np.argsort(chances, kind="stable").tolist():
            item, rival = cycle.path[step], after[step]
            if frozenset((item, rival)) not in before:
                return _question(visitor, user, item, rival, "step")
    return None


def _question(visitor: SAD, user: Any, item: Any, rival: Any, reason: Reason) -> NextQuestion:
    (row,) = visitor.ask_next(user, [item, rival]).iter_rows(named=True)
    chance = row["probability"] if row["item"] == item else 1 - row["probability"]
    return NextQuestion(item, rival, row["bits"], chance, reason)
