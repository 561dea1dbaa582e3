"""Verbs of interviews: the next question, and everything about a visitor."""

from dataclasses import replace
from typing import Any

import numpy as np

from sadrec import SAD
from sadrec.ranking import Contradiction, contradictions, places
from sadrec.serving import questions
from sadrec.serving.interview import next_question
from sadrec.serving.loaded import Json, Loaded
from sadrec.serving.problems import Unanswerable, answered
from sadrec.serving.verbs.lists import add_intervals
from sadrec.serving.verbs.tournaments import cycle_answer

_CANDIDATES = 60
"""Items among which the next question is looked for."""
_RANKED = 200
"""Best items of a visitor among which places are counted."""


def question(loaded: Loaded, question: questions.Ask) -> Json:
    """Return the questions whose answers are expected to tell the most."""
    model, user = loaded.person(question)
    items = _candidates(loaded, model, user, question.items)
    posterior = loaded.posterior
    source = "fit" if model is loaded.model else "visitor"
    if posterior is not None and model is loaded.model and user in posterior.state.users:
        source = "posterior"
        rows = posterior.ask_next(user, items, question.N)
    elif not model.state.belief.has_variance:
        raise Unanswerable(
            "the model has no uncertainty about its users: start the service with --posterior, or POST what "
            "the person likes, or comparisons, in place of user"
        )
    else:
        rows = answered(lambda: model.ask_next(user, items, question.N))
    return {
        "user": loaded.plain(user),
        "source": source,
        "questions": [_pair(loaded, row) for row in rows.iter_rows(named=True)],
    }


def _candidates(loaded: Loaded, model: SAD, user: Any, given: list[Any] | None) -> list[Any]:
    """Return the items to choose a question from: those given, or half the person's best and half popular ones."""
    if given is not None:
        items = list(dict.fromkeys(loaded.item_ids(given)))
        if len(items) < 2:
            raise Unanswerable(f"a question needs two items, and {len(items)} are given")
        return items
    best, _ = model.recommend(user, N=_CANDIDATES // 2, filter_already_liked_items=False)
    popular = loaded.model.items[loaded.by_popularity[:_CANDIDATES]]
    both = np.concatenate([best, popular[~np.isin(popular, best)]])
    return list(both[:_CANDIDATES])


def _pair(loaded: Loaded, row: Json) -> Json:
    return {**row, "item": loaded.entry(row["item"]), "rival": loaded.entry(row["rival"])}


def visitor(loaded: Loaded, question: questions.VisitorQuestion) -> Json:
    """Return everything about a visitor: list, next question, contradictions, cycle."""
    model, user = loaded.person(question)
    ids, scores = model.recommend(user, N=question.N)
    listed = loaded.scored(ids, scores)
    add_intervals(loaded, model, user, ids, listed)
    catalogue = model.state.items
    if model is not loaded.model:
        best, _ = model.recommend(user, N=_RANKED, filter_already_liked_items=False)
        columns = map(
            np.ndarray.tolist, places(model.state.belief, catalogue.positions(ids), catalogue.positions(best))
        )
        for entry, lower, upper, first in zip(listed, *columns, strict=True):
            entry |= {"place_lower": lower, "place_upper": upper, "first": first}
    answers: list[Json] = []
    contradicting: list[Contradiction] = []
    comparisons = None
    if question.comparisons:
        comparisons = loaded.comparisons(question.comparisons)
        sides = comparisons.items[comparisons.winner_index], comparisons.items[comparisons.loser_index]
        judged = model.preference(user, *sides), model.probability(user, *sides)
        rows = zip(*(loaded.shown(side) for side in sides), *map(np.ndarray.tolist, judged), strict=True)
        answers = [dict(zip(("winner", "loser", "margin", "probability"), row, strict=True)) for row in rows]
        contradicting = [
            replace(one, path=model.items[one.path])
            for one in contradictions(model.state.belief, *map(catalogue.positions, sides))
        ]
    next_one = None
    if len(loaded.items.ids) > 1 and model.state.belief.has_variance:
        items = _candidates(loaded, model, user, question.items)
        next_one = next_question(model, user, items, comparisons, contradicting)
    cycles = model.cycles(user, min(50, len(loaded.items.ids)))
    return {
        "answers": len(question.comparisons or question.likes or []),
        "items": listed,
        "sure": _sureness(model, user, ids),
        "question": None if next_one is None else _pair(loaded, vars(next_one)),
        "stated": answers,
        "contradictions": [
            {
                "path": loaded.entries(one.path),
                "probabilities": one.probabilities.tolist(),
                "probability": one.probability,
                "verdict": one.verdict,
                "ask_again": loaded.entries(list(one.ask_again)),
            }
            for one in contradicting
        ],
        "intransitivity": model.intransitivity(user),
        "strongest_cycle": cycle_answer(loaded, model, user, cycles[0], 3) if cycles else None,
    }


def _sureness(model: SAD, user: Any, ids: Any) -> float:
    """Return the mean probability that an item of a list is preferred to one further down."""
    if len(ids) < 2:
        return 1.0
    one, other = np.triu_indices(len(ids), 1)
    return float(np.mean(model.probability(user, ids[one], ids[other])))
