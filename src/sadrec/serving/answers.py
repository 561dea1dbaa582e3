"""The types of answers. The OpenAPI page is made of these classes and of those of the questions."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from sadrec._core.types import SlateMethod


class ModelAnswer(BaseModel):
    """The base of answers, with the checksum of the model."""

    model: str = Field(description="The model's hash: the checksum in its file.")


class Problem(BaseModel):
    """An error: what is wrong, and the remedy."""

    error: str
    model: str | None = None


class Item(BaseModel):
    """An item."""

    item: Any
    title: str | None = Field(None, description="From the table given by --items.")
    picture: str | None = None


class ScoredItem(Item):
    """An item of a list."""

    score: float | None
    deviation: float | None = Field(None, description="The score's standard deviation, where it is known.")
    interval: list[float] | None = Field(
        None, description="Where the score lies, for a visitor or where a posterior is given."
    )


class RecommendAnswer(ModelAnswer):
    """The best items, best first."""

    user: Any
    method: str
    items: list[ScoredItem]
    fallback: Literal["popular"] | None = Field(
        None, description="Popular items: they were asked for, or the user is not known."
    )


class GroupAnswer(BaseModel):
    """Items to show together."""

    items: list[Item]
    wins: float
    strength: float


class GroupsAnswer(ModelAnswer):
    """Slates, best first."""

    user: Any
    groups: list[GroupAnswer]


class Preference(BaseModel):
    """The preference for an item over a rival."""

    item: Any
    rival: Any
    margin: float = Field(description="In log-odds; above 0 if the item is preferred.")
    probability: float = Field(description="Of one answer: how often the person is expected to prefer the item.")
    tie_probability: float | None = Field(None, description="Of one answer: how often it is expected to be a tie.")
    deviation: float | None = None
    interval: list[float] | None = None


class PreferAnswer(ModelAnswer):
    """Preferences, in the order of the pairs."""

    user: Any
    preferences: list[Preference]


class MarginsAnswer(ModelAnswer):
    """Margins, a row per item and a column per rival."""

    user: Any
    items: list[Any]
    rivals: list[Any]
    margins: list[list[float]]


class RankAnswer(ModelAnswer):
    """Items, best first."""

    user: Any
    method: str
    items: list[ScoredItem]


class FactorPart(BaseModel):
    """The contribution of a part of the model to a margin."""

    factor: int | Literal["bias", "pair"] = Field(description="A factor, the bias, or what is about this pair alone.")
    contribution: float
    share: float = Field(description="Of the sum of all contributions without their signs; negative if it opposes.")


class CycleStep(BaseModel):
    """A step of a cycle: the item beats the rival."""

    item: Any
    rival: Any
    margin: float
    probability: float = Field(description="Of one answer: how often the person is expected to answer so.")
    weakest: bool = Field(description="Whether this is the step with the smallest probability.")
    factors: list[FactorPart]


class CycleAnswer(BaseModel):
    """Items that beat each other in a cycle."""

    members: list[Any]
    path: list[Item]
    strength: float = Field(description="The smallest margin of its steps.")
    steps: list[CycleStep]
    probability: float | None = Field(
        None,
        description="How sure the model is that all steps point this way, where that is known; not how often answers "
        "come out so, which the probabilities of the steps tell.",
    )


class CyclesAnswer(ModelAnswer):
    """Cycles, by probability times strength."""

    user: Any
    among: int = Field(description="Among how many items was looked.")
    intransitivity: float = Field(description="The share of the user's preferences that no scores explain.")
    cyclic_triads: int
    triads: int
    cycles: list[CycleAnswer]


class Vote(Item):
    """A liked item that speaks for a side."""

    influence: float


class FeaturePart(BaseModel):
    """The contribution of a column of the features to a margin."""

    column: str
    contribution: float


class ExplainAnswer(ModelAnswer):
    """Why an item rather than a rival: contributions that sum to the margin."""

    user: Any
    item: Any
    rival: Any
    margin: float
    probability: float
    contributions: list[float]
    bias: float
    factors: list[FactorPart]
    for_item: list[Vote]
    for_rival: list[Vote]
    by_features: float | None = Field(
        None, description="What the margin would be by the features of item and rival alone; null without any."
    )
    columns: list[FeaturePart] = Field(
        [], description="The columns that add most to by_features, which is the sum of all."
    )


class Neighbour(BaseModel):
    """A similar user or item."""

    id: Any
    title: str | None = None
    picture: str | None = None
    cosine: float


class SimilarAnswer(ModelAnswer):
    """Similar items or users, most similar first; the first is the one in the question."""

    of: Literal["item", "user"]
    id: Any
    neighbours: list[Neighbour]


class QuestionAnswer(BaseModel):
    """A question worth asking."""

    item: Item
    rival: Item
    bits: float = Field(description="How much the answer is expected to tell.")
    probability: float = Field(description="The chance that the item is preferred.")


class InterviewAnswer(QuestionAnswer):
    """The next question of an interview."""

    reason: Literal["new", "step", "cycle", "surprise"] = Field(
        description="The answer tells most; it tests a step of a probable cycle; or it is asked again, because the "
        "answers form a cycle here, or because this one does not fit the others."
    )


class PlacedItem(ScoredItem):
    """An item of a visitor's list."""

    place_lower: int | None = Field(None, description="The best place that is not improbable (90 %).")
    place_upper: int | None = Field(None, description="The worst place that is not improbable (90 %).")
    first: float | None = Field(None, description="How sure the model is of the first place.")


class AskAnswer(ModelAnswer):
    """Questions, the most informative first."""

    user: Any
    source: Literal["posterior", "fit", "visitor"] = Field(description="The source of the uncertainty.")
    questions: list[QuestionAnswer]


class ContradictionAnswer(BaseModel):
    """Answers that no order of the items fits."""

    path: list[Item]
    probabilities: list[float] = Field(description="Of one answer to each step.")
    probability: float = Field(description="How sure the model is that all steps point this way.")
    verdict: Literal["cycle", "noise"]
    ask_again: list[Item]


class StatedAnswer(BaseModel):
    """An answer, and how probable it is given all of them."""

    winner: Any
    loser: Any
    margin: float
    probability: float


class VisitorAnswer(ModelAnswer):
    """Everything about a visitor: list, next question, contradictions, cycle."""

    answers: int
    items: list[PlacedItem]
    sure: float = Field(
        description="Mean probability of one answer: that an item of the list is preferred to one further down."
    )
    question: InterviewAnswer | None
    stated: list[StatedAnswer]
    contradictions: list[ContradictionAnswer]
    intransitivity: float
    strongest_cycle: CycleAnswer | None


class SlateRanking(BaseModel):
    """The slate in the order of a method."""

    method: SlateMethod
    winner: Any
    items: list[Any]
    scores: list[float]


class SpoilerAnswer(BaseModel):
    """An item that dethrones a winner it does not itself outrank."""

    method: SlateMethod
    item: Item
    on_slate: bool
    winner_without: Any
    winner_with: Any


class SlateAnswer(ModelAnswer):
    """The winners of a slate, by four methods."""

    user: Any
    items: list[Item]
    margins: list[list[float]]
    probabilities: list[list[float]]
    rankings: list[SlateRanking]
    condorcet_winner: Any | None
    smith_set: list[Any]
    spoilers: list[SpoilerAnswer]


class Nemesis(Item):
    """An item that beats another."""

    share: float = Field(description="Of the users who prefer it; equals count half.")
    margin: float = Field(description="The mean margin over the users.")
    popularity: float = Field(description="Its mean margin over the catalogue for the average user.")
    place: int = Field(description="Its place by popularity, from 1.")


class ArenaAnswer(ModelAnswer):
    """A leaderboard for the average judge; items are positions in ``item_names``."""

    kind: Literal["contests", "taste"] = Field(description="Whether games were played, or people prefer.")
    level: float = Field(description="The probability content of intervals.")
    item_names: list[str]
    leaderboard: list[dict[str, Any]] = Field(description="Rows as those of the leaderboard, best first.")
    items: list[int] = Field(description="The strongest items, to which the rest is limited.")
    probability: list[list[float]] = Field(description="That each wins against each.")
    lower: list[list[float]] | None
    upper: list[list[float]] | None
    games: list[list[float]] | None
    cycles: list[dict[str, Any]]
    nash: list[dict[str, Any]]
    ask: list[dict[str, Any]]
    unexplained: float


class NemesisAnswer(ModelAnswer, Item):
    """The items that beat an item, for the most users first."""

    popularity: float
    place: int = Field(description="Its place by popularity, from 1.")
    users: int = Field(description="How many users were asked.")
    nemeses: list[Nemesis]


class SearchAnswer(ModelAnswer):
    """Items that were found."""

    total: int = Field(description="How many there are.")
    items: list[Item]


class ItemAnswer(ModelAnswer, Item):
    """One item."""

    popularity: float
    cold: bool = Field(False, description="Whether it is known by its features alone.")


class UserRow(BaseModel):
    """A user."""

    user: Any
    intransitivity: float
    cold: bool = Field(False, description="Whether they are known by their features alone.")


class UsersAnswer(ModelAnswer):
    """Some users."""

    total: int
    users: list[UserRow]


class EventsAnswer(ModelAnswer):
    """The number of logged answers."""

    kept: int


class KnownFeatures(BaseModel):
    """The features that a model was fitted with, of its users or of its items."""

    numbers: list[str] = Field(description="Names of numbers.")
    categories: dict[str, list[str]] = Field(description="Names of categories or tags, with some that are known.")
    cold: int = Field(description="How many users or items are known by their features alone.")


class DescribeAnswer(ModelAnswer):
    """The loaded model."""

    class_name: str
    users: int
    items: int
    factors: int
    rivals: bool = Field(description="Whether T was learnt: without it there are no cycles.")
    comparisons: bool = Field(description="Whether it learnt from comparisons: GET /v1/arena.")
    knows_how_sure: bool
    posterior: bool
    titles: bool
    pictures: bool
    log: bool = Field(description="Whether people's answers are kept: POST /v1/events.")
    user_example: Any
    item_example: Any
    user_features: KnownFeatures | None = Field(description="What features of a visitor can be given.")
    item_features: KnownFeatures | None = Field(description="What features of new items can be given.")
    settings: dict[str, Any] | None
    version: str


class Health(BaseModel):
    """Health of the process: alive, or ready."""

    status: Literal["alive", "ready", "loading", "draining", "failing"]
    model: str | None = None
    problem: str | None = Field(None, description="Why a file that changed is not used; the model before it answers.")
