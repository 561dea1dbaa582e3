"""From a question to an answer: one function per verb, each of what is served and of a typed question."""

from sadrec.serving import questions
from sadrec.serving.served import Served
from sadrec.serving.verbs.catalogue import arena, describe, item, search, similar, users
from sadrec.serving.verbs.interviews import ask, visitor
from sadrec.serving.verbs.lists import groups, popular, recommend, recommend_known
from sadrec.serving.verbs.pairs import explain, margins, prefer, rank
from sadrec.serving.verbs.tournaments import cycles, nemesis, slate
from sadrec.serving.verbs.twin import worth

__all__ = [
    "arena",
    "ask",
    "ask_once",
    "cycles",
    "describe",
    "explain",
    "groups",
    "item",
    "margins",
    "nemesis",
    "popular",
    "prefer",
    "rank",
    "recommend",
    "recommend_known",
    "search",
    "similar",
    "slate",
    "users",
    "visitor",
    "warm_up",
    "worth",
]


def ask_once(served: Served) -> None:
    """Answer for one user: whoever is told that the service is ready finds it so, and warm."""
    recommend(served, questions.Recommend.model_validate({"user": served.plain(served.model.users[0])}))


def warm_up(served: Served) -> None:
    """Ask each verb once: what is kept gets computed, and the kernels that questions run are compiled or loaded."""
    some = served.items.ids[: min(3, len(served.items.ids))]
    who = {"user": served.plain(served.model.users[0])}
    for _ in range(20):
        ask_once(served)
    recommend(served, questions.Recommend.model_validate({**who, "method": "wins", "intervals": True}))
    if len(some) > 1:
        recommend(served, questions.Recommend.model_validate({"likes": some[:1]}))
        pair = {"item": some[0], "rival": some[1]}
        prefer(served, questions.Prefer.model_validate({**who, "pairs": [pair]}))
        visitor(served, questions.Visitor.model_validate({"comparisons": [{"winner": some[0], "loser": some[1]}]}))
        explain(served, questions.Explain.model_validate({**who, **pair}))
        slate(served, questions.Slate.model_validate({**who, "items": some[:2]}))
    cycles(served, questions.Cycles.model_validate(who))
    worth(served, questions.Worth.model_validate({}))
    users(served, questions.UsersQuery.model_validate({}))
    similar(served, questions.Similar.model_validate({"item": str(some[0])}))
