"""What to ask a visitor next in an interview, and between which places of their list an item is.

Most questions are those whose answer tells most. Every fourth tests a cycle that the answers so far make probable. A
cycle among the answers themselves, and an answer that the others make improbable, are asked about once more, with the
sides exchanged: an answer that is given twice is taste, one that is taken back was noise.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sadrec import SAD, Comparisons
from sadrec._types import Doubles
from sadrec.ranking.belief import information
from sadrec.ranking.fold_in import pair_design
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.questions import Contradiction, contradictions

Reason = Literal["new", "step", "cycle", "surprise"]

_EVERY = 4
"""Every which question tests a cycle; the first of them after twice as many."""
_WAIT = 2
"""How many other answers there are before a question is asked again."""
_SURE = 0.9
"""From which probability on a cycle is real; below one minus it, noise."""
_SURPRISING = 0.1
"""An answer is surprising if the others give it a smaller probability."""
_DRAWS = 1000


@dataclass(frozen=True)
class NextQuestion:
    """A question, and why it is asked: "new", a "step" of a probable cycle, or again: "cycle", "surprise"."""

    item: Any
    rival: Any
    bits: float
    probability: float
    reason: Reason


def next_question(
    visitor: SAD, user: Any, items: list[Any], said: Comparisons | None = None, found: list[Contradiction] | None = None
) -> NextQuestion | None:
    """Return what to ask next, or None if there is nothing left to ask.

    ``visitor`` is ``model.visitor(said, user)``, or any model that knows how sure it is of a user; ``items`` are the
    ids to choose new questions from, ``found`` is ``contradictions_of(model, said)``.
    """
    answers = [] if said is None else _answers(said)
    if said is not None:
        again = _again(visitor, user, said, answers, found or [])
        if again is not None:
            return again
    asked = {frozenset(pair) for pair in answers}
    if len(answers) % _EVERY == _EVERY - 1 and len(answers) >= 2 * _EVERY - 1:
        step = _step(visitor, user, asked)
        if step is not None:
            return step
    just_shown = set(answers[-1]) if answers else set()
    rows = visitor.ask_next(user, items, len(asked) + 2 * len(items))
    other = None
    for row in rows.iter_rows(named=True):
        pair = {row["item"], row["rival"]}
        if pair not in asked:
            question = NextQuestion(row["item"], row["rival"], row["bits"], row["probability"], "new")
            if not pair & just_shown:
                return question
            other = other or question
    return other


def contradictions_of(model: SAD, said: Comparisons) -> list[Contradiction]:
    """Return where a visitor's answers contradict each other, with ids in their paths."""
    sides = (model.state.items.positions(said.items[side]) for side in (said.winner_index, said.loser_index))
    found = contradictions(model.visitor(comparisons=said).state.belief, *sides)
    return [replace(one, path=model.items[one.path]) for one in found]


def surprises(visitor: SAD, said: Comparisons) -> Doubles:
    """Return the probability of each answer by all the others: the answer is taken out by one Newton step."""
    known = visitor.state
    sides = (known.items.positions(said.items[side]) for side in (said.winner_index, said.loser_index))
    design, offset = pair_design(known.parameters, *sides)
    x = design @ known.parameters.user_factors[0].astype(np.float64) + offset
    variance = np.einsum("ph,ph->p", design @ vector_covariance(visitor), design)
    p = sigmoid(x)
    left = np.maximum(1 - p * (1 - p) * variance, 0.05)
    return information(x - variance * (1 - p) / left, variance / left)[1]


def vector_covariance(visitor: SAD) -> Doubles:
    """Return how uncertain the vector of a ``model.visitor(...)`` is."""
    covariance = visitor.state.belief.user_covariance_of(0)
    if covariance is None:
        raise ValueError("only a model.visitor(...) knows how sure it is of one vector")
    return covariance


def places(visitor: SAD, ids: Any, level: float = 0.9, among: int = 200) -> dict[str, Any]:
    """Return between which places items of a visitor's list are, and how probably each is the first.

    Places are those by the mean margin among these items and the visitor's best ``among``. The keys are ``lower``,
    ``upper`` and ``first``.
    """
    known, covariance = visitor.state, vector_covariance(visitor)
    best, _ = visitor.recommend(visitor.users[0], N=among, filter_already_liked_items=False)
    shown, more = known.items.positions(ids), known.items.positions(best)
    vectors = known.index.vectors[np.concatenate([shown, more[~np.isin(more, shown)]])].astype(np.float64)
    k = len(covariance)
    values, axes = np.linalg.eigh(covariance)
    noise = np.random.default_rng(0).standard_normal((_DRAWS, k)) * np.sqrt(np.maximum(values, 0.0))
    drawn = known.parameters.user_factors[0] + noise @ axes.T
    scores = drawn @ vectors[:, :k].T + (vectors[:, k] if vectors.shape[1] > k else 0.0)
    order = np.argsort(-scores, axis=1, kind="stable")
    place = np.empty(order.shape, np.int64)
    np.put_along_axis(place, order, np.arange(1, len(vectors) + 1)[None], axis=1)
    place = place[:, : len(shown)]
    lower, upper = np.quantile(place, ((1 - level) / 2, (1 + level) / 2), axis=0, method="nearest")
    return {"lower": lower.tolist(), "upper": upper.tolist(), "first": (place == 1).mean(axis=0).tolist()}


def _answers(said: Comparisons) -> list[tuple[Any, Any]]:
    """Return winners and losers, as ids."""
    return list(zip(said.items[said.winner_index], said.items[said.loser_index], strict=True))


def _again(
    visitor: SAD, user: Any, said: Comparisons, answers: list[tuple[Any, Any]], found: list[Contradiction]
) -> NextQuestion | None:
    """Return a question to ask once more."""
    pairs = [frozenset(pair) for pair in answers]
    recent = set(pairs[-_WAIT:])
    waiting: list[tuple[Any, Any, Reason]] = []
    for one in found:
        if len(one.path) > 2 and 1 - _SURE < one.probability < _SURE:
            path = list(one.path)
            steps = np.argsort(one.probabilities, kind="stable").tolist()
            waiting.extend((path[step], path[(step + 1) % len(path)], "cycle") for step in steps)
    once = np.array([pairs.count(pair) == 1 for pair in pairs])
    chances = surprises(visitor, said)
    if once.any() and chances[once].min() < _SURPRISING:  # the most surprising alone: it upsets the others
        waiting.append((*answers[int(np.flatnonzero(once)[chances[once].argmin()])], "surprise"))
    for winner, loser, reason in waiting:
        pair = frozenset((winner, loser))
        if pairs.count(pair) == 1 and pair not in recent:
            return _question(visitor, user, loser, winner, reason)
    return None


def _step(visitor: SAD, user: Any, asked: set[frozenset[Any]]) -> NextQuestion | None:
    """Return the least sure step of the strongest cycle that has not been asked about."""
    for cycle in visitor.cycles(user, 30)[:1]:
        after = np.roll(cycle.path, -1)
        chances = visitor.probability(user, cycle.path, after)
        for step in np.argsort(chances, kind="stable").tolist():
            item, rival = cycle.path[step], after[step]
            if frozenset((item, rival)) not in asked:
                return _question(visitor, user, item, rival, "step")
    return None


def _question(visitor: SAD, user: Any, item: Any, rival: Any, reason: Reason) -> NextQuestion:
    (row,) = visitor.ask_next(user, [item, rival]).iter_rows(named=True)
    chance = row["probability"] if row["item"] == item else 1 - row["probability"]
    return NextQuestion(item, rival, row["bits"], chance, reason)
