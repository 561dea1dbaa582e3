"""The verbs: one function for each, from a loaded model and a typed question to an answer."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from sadrec.serving import answers, questions
from sadrec.serving.loaded import Loaded
from sadrec.serving.verbs.catalogue import arena, describe, item, search, similar, users
from sadrec.serving.verbs.interviews import question, visitor
from sadrec.serving.verbs.lists import groups, popular, recommend, recommend_by_query
from sadrec.serving.verbs.pairs import explain, margins, prefer, rank
from sadrec.serving.verbs.tournaments import cycles, nemesis, slate

__all__ = ["VERBS", "Verb", "ask_once", "describe", "recommend", "recommend_by_query", "warm_up"]


class Verb(NamedTuple):
    """A verb: its method and path ``/v1/PATH``, the type of its question, and its function."""

    method: str
    path: str
    question: Any
    answer: type
    ask: Callable[..., dict[str, Any]]
    summary: str

    def answered(self, loaded: Loaded, *question: Any) -> dict[str, Any]:
        """Return the answer to a question, by the model with the new items that the question names."""
        with loaded.joined(getattr(question[0], "new_items", ()) if question else ()) as larger:
            return self.ask(larger, *question)


VERBS = (
    Verb("GET", "describe", None, answers.DescribeAnswer, describe, "What is served"),
    Verb("GET", "recommend", questions.RecommendQuery, answers.RecommendAnswer, recommend_by_query,
         "What to show a known user"),
    Verb("POST", "recommend", questions.Recommend, answers.RecommendAnswer, recommend,
         "What to show a user, or a visitor by likes, comparisons or features"),
    Verb("POST", "groups", questions.Groups, answers.GroupsAnswer, groups,
         "Slates: items that form a cycle are shown together"),
    Verb("POST", "prefer", questions.Prefer, answers.PreferAnswer, prefer,
         "Which of two items is preferred, and how surely"),
    Verb("POST", "margins", questions.Margins, answers.MarginsAnswer, margins,
         "All of some items against all of some rivals"),
    Verb("POST", "rank", questions.Rank, answers.RankAnswer, rank, "An order of given items"),
    Verb("POST", "cycles", questions.Cycles, answers.CyclesAnswer, cycles,
         "Where taste runs in a cycle, and which factors carry it"),
    Verb("POST", "explain", questions.Explain, answers.ExplainAnswer, explain, "Why an item rather than a rival"),
    Verb("GET", "similar", questions.Similar, answers.SimilarAnswer, similar,
         "What is alike to an item, or who to a user"),
    Verb("POST", "question", questions.Ask, answers.AskAnswer, question, "What to ask a person next"),
    Verb("POST", "visitor", questions.VisitorQuestion, answers.VisitorAnswer, visitor,
         "All about a visitor: list, next question, contradictions, cycle"),
    Verb("POST", "slate", questions.Slate, answers.SlateAnswer, slate,
         "Who wins among a few items, and whose presence changes that"),
    Verb("GET", "arena", None, answers.ArenaAnswer, arena,
         "Who is best: leaderboard, match-ups, cycles, what to ask next"),
    Verb("GET", "nemesis", questions.NemesisQuery, answers.NemesisAnswer, nemesis,
         "What beats an item, for what share of the users"),
    Verb("GET", "items", questions.SearchQuery, answers.SearchAnswer, search, "Items by title or id"),
    Verb("GET", "items/{item:path}", Annotated[str, Field(max_length=256)], answers.ItemAnswer, item, "One item"),
    Verb("GET", "users", questions.UsersQuery, answers.UsersAnswer, users, "Some users"),
    Verb("GET", "popular", questions.PopularQuery, answers.RecommendAnswer, popular, "What is popular"),
)  # fmt: skip
"""All verbs but ``events``, which keeps answers and so needs the log of the service."""


def ask_once(loaded: Loaded) -> None:
    """Answer one request before reporting ready, so that kernels are loaded."""
    recommend(loaded, questions.Recommend.model_validate({"user": loaded.plain(loaded.model.users[0])}))


def warm_up(loaded: Loaded) -> None:
    """Call the verbs once, so that caches are filled, and kernels are compiled or loaded."""
    some = loaded.items.ids[: min(3, len(loaded.items.ids))]
    who = {"user": loaded.plain(loaded.model.users[0])}
    samples: list[tuple[Callable[..., object], type[questions.Base], dict[str, Any]]] = [
        *[(recommend, questions.Recommend, who)] * 20,
        (recommend, questions.Recommend, {**who, "method": "wins", "intervals": True}),
        (cycles, questions.Cycles, who),
        (users, questions.UsersQuery, {}),
        (similar, questions.Similar, {"item": str(some[0])}),
    ]
    if len(some) > 1:
        pair = {"item": some[0], "rival": some[1]}
        comparison = {"winner": some[0], "loser": some[1]}
        samples += [
            (recommend, questions.Recommend, {"likes": some[:1]}),
            (prefer, questions.Prefer, {**who, "pairs": [pair]}),
            (visitor, questions.VisitorQuestion, {"comparisons": [comparison]}),
            (explain, questions.Explain, {**who, **pair}),
            (slate, questions.Slate, {**who, "items": some[:2]}),
        ]
    for verb, kind, values in samples:
        verb(loaded, kind.model_validate(values))
