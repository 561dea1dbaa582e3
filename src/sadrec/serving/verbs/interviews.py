"""What to ask a person next, and all about a visitor at once."""

from typing import Any

import numpy as np

from sadrec import SAD
from sadrec.ranking.questions import Contradiction
from sadrec.serving import interview, questions
from sadrec.serving.problems import Unanswerable, answered
from sadrec.serving.served import Served
from sadrec.serving.verbs.lists import add_intervals
from sadrec.serving.verbs.person import Answer, known_items, person, scored, shown, stated
from sadrec.serving.verbs.tournaments import told_cycle

_ASKED = 60
"""Items among which the next question is looked for."""


def ask(served: Served, asked: questions.Ask) -> Answer:
    """Return the questions whose answers are expected to tell the most."""
    model, user = person(served, asked)
    items = _to_ask(served, model, user, asked.items)
    posterior = served.posterior
    source = "fit" if model is served.model else "visitor"
    if posterior is not None and model is served.model and user in posterior.state.users:
        source = "posterior"
        questions = posterior.ask_next(user, items, asked.N)
    elif not model.state.belief.has_variance:
        raise Unanswerable(
            "the model does not know how sure it is of its users: start the service with --posterior, or POST what "
            "the person likes, or comparisons, in place of user"
        )
    else:
        questions = answered(lambda: model.ask_next(user, items, asked.N))
    return {
        "model": served.digest,
        "user": served.plain(user),
        "source": source,
        "questions": _questions(served, questions),
    }


def _to_ask(served: Served, model: SAD, user: Any, given: list[Any] | None) -> list[Any]:
    """Return the items to choose a question from: those given, or half the person's best and half popular ones."""
    if given is not None:
        items = list(dict.fromkeys(known_items(served, given)))
        if len(items) < 2:
            raise Unanswerable(f"a question needs two items, and {len(items)} are given")
        return items
    best, _ = model.recommend(user, N=_ASKED // 2, filter_already_liked_items=False)
    popular = served.model.items[served.by_popularity[:_ASKED]]
    both = np.concatenate([best, popular[~np.isin(popular, best)]])
    return list(both[:_ASKED])


def _questions(served: Served, questions: Any) -> list[dict[str, Any]]:
    return [
        {
            "item": served.entry(row["item"]),
            "rival": served.entry(row["rival"]),
            "bits": row["bits"],
            "probability": row["probability"],
        }
        for row in questions.iter_rows(named=True)
    ]


def visitor(served: Served, asked: questions.Visitor) -> Answer:
    """Tell all about a visitor at once."""
    model, user = person(served, asked)
    ids, scores = model.recommend(user, N=asked.N)
    listed = scored(served.entries(ids), scores)
    add_intervals(served, model, user, ids, listed)
    if model is not served.model:
        spread = interview.places(model, ids)
        rows = zip(listed, spread["lower"], spread["upper"], spread["first"], strict=True)
        for entry, lower, upper, first in rows:
            entry |= {"place_lower": lower, "place_upper": upper, "first": first}
    answers: list[dict[str, Any]] = []
    found: list[Contradiction] = []
    said = None
    if asked.comparisons:
        said = stated(served, asked.comparisons)
        sides = said.items[said.winner_index], said.items[said.loser_index]
        columns = (
            *(shown(served, side) for side in sides),
            model.preference(user, *sides),
            model.probability(user, *sides),
        )
        names = ("winner", "loser", "margin", "probability")
        answers = [dict(zip(names, map(served.plain, row), strict=True)) for row in zip(*columns, strict=True)]
        found = interview.contradictions_of(served.model, said)
    question = None
    if len(served.items.ids) > 1 and model.state.belief.has_variance:
        next_one = interview.next_question(model, user, _to_ask(served, model, user, asked.items), said, found)
        if next_one is not None:
            question = {
                "item": served.entry(next_one.item),
                "rival": served.entry(next_one.rival),
                "bits": next_one.bits,
                "probability": next_one.probability,
                "reason": next_one.reason,
            }
    found_cycles = model.cycles(user, min(50, len(served.items.ids)))
    return {
        "model": served.digest,
        "answers": len(asked.comparisons or asked.likes or []),
        "items": listed,
        "sure": _sureness(model, user, ids),
        "question": question,
        "stated": answers,
        "contradictions": [
            {
                "path": served.entries(one.path),
                "probabilities": one.probabilities.tolist(),
                "probability": one.probability,
                "verdict": one.verdict,
                "ask_again": served.entries(list(one.ask_again)),
            }
            for one in found
        ],
        "intransitivity": model.intransitivity(user),
        "strongest_cycle": told_cycle(served, model, user, found_cycles[0], 3) if found_cycles else None,
    }


def _sureness(model: SAD, user: Any, ids: Any) -> float:
    """Return the mean probability that an item of a list is preferred to one further down."""
    if len(ids) < 2:
        return 1.0
    one, other = np.triu_indices(len(ids), 1)
    return float(np.mean(model.probability(user, ids[one], ids[other])))
