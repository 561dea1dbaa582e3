"""The types of questions. The OpenAPI page is made of these classes and of those of the answers."""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from sadrec._core.types import Method
from sadrec.serving.settings import MOST_EVENTS, MOST_FEATURES, MOST_IDS, MOST_N, MOST_NEW, MOST_PLAYERS

ShortText = Annotated[StrictStr, Field(max_length=256)]
_Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**64)]
_Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Id = _Whole | _Number | ShortText
"""An id as the model has it: a whole number, a number, or text; dates as text."""


def _no_truth(value: Any) -> Any:
    """Raise on true and false, which Python takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"give a number, not {str(value).lower()}")
    return value


Count = Annotated[int, BeforeValidator(_no_truth)]
Real = Annotated[float, BeforeValidator(_no_truth)]

ItemIds = Annotated[list[Id], Field(max_length=MOST_IDS)]
Players = Annotated[list[Id], Field(max_length=MOST_PLAYERS)]
_UP_TO_MOST: Any = Field(ge=1, le=MOST_N, description="How many.")
HowMany = Annotated[Count, _UP_TO_MOST]
QueryMany = Annotated[int, _UP_TO_MOST]
"""The same in an address, which is text: there true is no number."""
Margin = Annotated[Real, Field(ge=0, le=1e6, description="The margin that a win needs to count.")]

_Tags = Annotated[list[ShortText], Field(max_length=MOST_FEATURES)]
_Numbers = Annotated[list[_Whole | _Number], Field(max_length=MOST_FEATURES)]
FeatureValues = (
    Annotated[
        dict[ShortText, StrictBool | _Whole | _Number | ShortText | _Tags | _Numbers | None],
        Field(max_length=MOST_FEATURES),
    ]
    | _Tags
    | _Numbers
)
"""Features of a person or an item: names with values, or a list of tags, or a row of numbers."""


class Base(BaseModel):
    """The base of questions; unknown names are errors."""

    model_config = ConfigDict(extra="forbid")


class Comparison(Base):
    """A comparison: which of two items a person prefers."""

    winner: Id
    loser: Id


class Who(Base):
    """The person: a known user, a visitor with likes, comparisons or features, or else the average user."""

    user: Id | None = Field(None, description="A user that the model knows.")
    likes: ItemIds | None = Field(None, description="A visitor: ids of the items they like.")
    comparisons: Annotated[list[Comparison], Field(max_length=MOST_IDS)] | None = Field(
        None, description="A visitor: pairs of which they preferred one."
    )
    features: FeatureValues | None = Field(
        None,
        description="A visitor: their features, alone or with likes or comparisons, for a model fitted with "
        "user_features; /v1/describe names the features. A feature that is left out counts as unknown.",
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> "Who":
        if sum(part is not None for part in (self.user, self.likes, self.comparisons)) > 1:
            raise ValueError("give a user, or likes, or comparisons: only one of them")
        if self.user is not None and self.features is not None:
            raise ValueError("give a user, or the features of a visitor: the model has those of its users")
        return self


class ItemWithFeatures(Base):
    """An item that the model does not know, by its features."""

    item: Id = Field(description="A new id, of the kind that the model has.")
    features: FeatureValues = Field(description="Its features; /v1/describe names those of the fit.")


class WhoAndNew(Who):
    """The person, and new items that the question may name."""

    new_items: Annotated[list[ItemWithFeatures], Field(max_length=MOST_NEW)] = Field(
        [], description="Items that the model does not know, for one fitted with item_features; nothing is kept."
    )


class RecommendQuery(Base):
    """The parameters of ``GET /v1/recommend``."""

    user: Annotated[str, Field(max_length=256, description="Id of a user that the model knows.")]
    N: QueryMany = 10
    method: Method = "margin"
    keep_seen: bool = Field(False, description="Whether to list what the user has seen, too.")
    filter_items: Annotated[list[ShortText], Field(max_length=MOST_IDS, description="ItemIds to leave out.")] = []
    items: Annotated[list[ShortText], Field(max_length=MOST_IDS, description="The only ids to consider.")] = []
    fallback: Literal["none", "popular"] = Field(
        "none", description="What an unknown user gets: an error, or what is popular."
    )


class Recommend(WhoAndNew):
    """A list for a person."""

    N: HowMany = 10
    method: Method = Field("margin", description="How the best candidates are ordered.")
    candidates: Annotated[Count, Field(ge=1, le=MOST_PLAYERS)] = MOST_PLAYERS
    keep_seen: bool = Field(False, description="Whether to list what the user has seen or likes, too.")
    filter_items: ItemIds = Field([], description="ItemIds to leave out.")
    items: ItemIds | None = Field(None, description="The only ids to consider.")
    fallback: Literal["none", "popular"] = "none"
    intervals: bool = Field(False, description="Tell how sure the scores are, where that is known.")


DEFAULTS = Recommend.model_validate({})
"""A question about nobody, with the usual options."""


class Groups(WhoAndNew):
    """Slates: items that form a cycle are shown together."""

    N: HowMany = 10
    candidates: Annotated[Count, Field(ge=1, le=MOST_PLAYERS)] = 50
    largest: Annotated[Count, Field(ge=1, le=MOST_PLAYERS)] = 5
    minimum: Margin = 0.0


class Pair(Base):
    """An item and a rival."""

    item: Id
    rival: Id


class Prefer(WhoAndNew):
    """Which of two items is preferred, for one or many pairs."""

    pairs: Annotated[list[Pair], Field(min_length=1, max_length=MOST_IDS)]
    level: Annotated[Real, Field(gt=0, lt=1, description="Probability content of the intervals.")] = 0.9


class Margins(WhoAndNew):
    """All of some items against all of some rivals."""

    items: Annotated[list[Id], Field(min_length=1, max_length=MOST_PLAYERS)]
    rivals: Annotated[list[Id], Field(min_length=1, max_length=MOST_PLAYERS)]


class Rank(WhoAndNew):
    """An order of given items."""

    items: Annotated[list[Id], Field(min_length=1, max_length=MOST_PLAYERS)]
    method: Method = "margin"


class Cycles(WhoAndNew):
    """Cycles among the best N items, among given ones, or in the neighbourhood of an item."""

    items: Players | None = Field(None, description="ItemIds to look among.")
    item: Id | None = Field(None, description="Find the strongest cycle through this item, among those most like it.")
    N: Annotated[Count, Field(ge=2, le=MOST_PLAYERS, description="How many items to look among.")] = 50
    minimum: Margin = 0.0
    most: Annotated[Count, Field(ge=1, le=100, description="Cycles in the answer, at most.")] = 10
    factors: Annotated[Count, Field(ge=0, le=20, description="Factors to name for each step.")] = 3

    @model_validator(mode="after")
    def _one_place(self) -> "Cycles":
        if self.items is not None and self.item is not None:
            raise ValueError("give items to look among, or an item to look around: not both")
        return self


class Explain(WhoAndNew):
    """Why an item rather than a rival."""

    item: Id
    rival: Id


class Similar(Base):
    """The parameters of ``GET /v1/similar``."""

    item: Annotated[str, Field(max_length=256)] | None = Field(None, description="Id of an item.")
    user: Annotated[str, Field(max_length=256)] | None = Field(None, description="Id of a user.")
    N: QueryMany = 10


class Ask(Who):
    """The next questions for a person."""

    items: Players | None = Field(None, description="ItemIds to choose from; by default some that suit the person.")
    N: Annotated[Count, Field(ge=1, le=100)] = 1


class VisitorQuestion(Who):
    """Everything about a visitor: list, next question, contradictions, cycle."""

    N: Annotated[Count, Field(ge=1, le=100)] = 10
    items: Players | None = Field(None, description="ItemIds to ask about; by default some that suit the person.")


class Slate(WhoAndNew):
    """The winner among a few items, and the items whose presence changes it."""

    items: Annotated[list[Id], Field(min_length=2, max_length=30)]
    others: Annotated[list[Id], Field(max_length=30)] | None = Field(
        None, description="Items that could be put on the slate; by default the person's best ten others."
    )


class NemesisQuery(Base):
    """The parameters of ``GET /v1/nemesis``."""

    item: Annotated[str, Field(max_length=256, description="Id of an item.")]
    N: QueryMany = 10


class SearchQuery(Base):
    """The parameters of ``GET /v1/items``."""

    query: Annotated[str, Field(max_length=200, description="A part of the title, or an id; empty: all.")] = ""
    N: QueryMany = 20


class UsersQuery(Base):
    """The parameters of ``GET /v1/users``."""

    query: Annotated[str, Field(max_length=200, description="A part of the id; empty: all.")] = ""
    order: Literal["id", "intransitivity"] = Field("id", description="Whose preferences scores explain least, first.")
    N: QueryMany = 20


class PopularQuery(Base):
    """The parameters of ``GET /v1/popular``."""

    N: QueryMany = 10


class Event(Base):
    """A person's answer to a question: which of two items they prefer."""

    user: Id = Field(description="Who answered: a user's id, or any name for a visitor.")
    winner: Id
    loser: Id


class Events(Base):
    """Answers to keep for the next fit."""

    events: Annotated[list[Event], Field(min_length=1, max_length=MOST_EVENTS)]
