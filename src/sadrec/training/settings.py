"""The settings of training, declared once."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np

from sadrec._settings import Flag, Number, OneOf, Seed, Share, Span, Threads, Whole, ZeroOr, declared, setting

Schedule = Literal["linear", "constant"]
Loss = Literal["pairwise", "softmax"]
NegativeSampling = Literal["uniform", "popular"]
Kind = Literal["interactions", "comparisons"]
Solver = Literal["sgd", "variational"]

MOST_ORDER_SHARE = 0.99
"""Of an order_share below 1: an epoch visits every interaction once, and 99 ordered pairs for each."""
_OF_INTERACTIONS = ("interactions",)
_SGD = {"solver": "sgd"}


@dataclass(eq=False, repr=False)
class TrainingSettings:
    """The settings of :class:`~sadrec.SAD` as they are given; None means that the data decides, in ``fit``.

    Nothing slow is imported with them: the command line reads its options here.
    """

    factors: int | None = setting(
        None,
        Whole(1),
        "The length k of the vectors. Left at None it is 64 (128 with loss='softmax'); the variational solver starts "
        "with 8 (2 where there are few comparisons per user and item) and keeps those that the data supports.",
        search={"interactions": (32, 64, 128, 256), "comparisons": (2, 4, 8, 16)},
        positional=True,
    )
    iterations: int | None = setting(
        None,
        Whole(0),
        "Epochs; each visits every interaction or comparison once. Adaptive training runs twice as many.",
        search=Span(10, 100, log=True),
        beside=_SGD,
    )
    learning_rate: float | None = setting(
        None,
        Number(),
        "The learning rate of the first step; see schedule.",
        search=Span(0.01, 0.3, log=True),
        beside=_SGD,
    )
    regularization: float | None = setting(
        None,
        Number(),
        "l2 on user factors, item factors and bias (the paper's w2: a step subtracts 2 w2 theta).",
        search=Span(0.0005, 0.1, log=True),
        beside=_SGD,
    )
    rival_regularization: float | None = setting(
        None,
        Number(),
        "l1 that holds the rival factors to 1 (the paper's w1). The larger, the more of them are exactly 1.",
        search=Span(0.0001, 0.03, log=True),
        beside=_SGD,
    )
    blocks: int | None = setting(
        None,
        Whole(1),
        "Into how many blocks the items are dealt every epoch, at most half as many as there are items. The result "
        "depends on it, unlike on num_threads.",
    )
    num_threads: int = setting(
        0, Threads(), "How many threads; 0 means all cores. The result is the same, bit by bit, for any number."
    )
    random_state: int | np.random.Generator | None = setting(
        0, Seed(), "A whole number, a numpy generator, or None for a seed from the operating system."
    )
    order_share: float = setting(
        0.0,
        Share(),
        "The share of training pairs drawn from the order of the user's own ratings; the rest are items the user "
        "interacted with over items they did not.",
        kinds=_OF_INTERACTIONS,
    )
    loss: Loss | None = setting(
        None,
        OneOf("pairwise", "softmax"),
        "What an interaction is trained against: 'pairwise', one sampled negative (see negative_candidates), or "
        "'softmax', all of negative_candidates sampled ones at once, each by its share.",
        search=("pairwise", "softmax"),
        kinds=_OF_INTERACTIONS,
    )
    negative_candidates: int | None = setting(
        None,
        Whole(1, 10_000),
        "With loss='pairwise': train against the hardest of so many sampled negatives; 1 takes the negative as it is "
        "sampled. With loss='softmax': train against all of them (a whole block at most).",
        search=(1, 2, 4, 8, 16, 64),
        kinds=_OF_INTERACTIONS,
    )
    length: float | None = setting(
        None,
        ZeroOr(0.1, 100),
        "With loss='softmax': the length to which the vectors of users and items are put back after every step, so "
        "that their cosine decides; 0 leaves the length free.",
        search=Span(1.0, 4.0),
        kinds=_OF_INTERACTIONS,
    )
    bias: bool | None = setting(
        None, Flag(), "Whether items have a bias b_i - b_j, the same for everybody.", search=(False, True), beside=_SGD
    )
    adaptive: bool = setting(
        False,
        Flag(),
        "A second phase of training, in which each rival factor is held to 1 by as much as the first phase suggests.",
    )
    schedule: Schedule = setting(
        "linear", OneOf("linear", "constant"), "'linear' lets the learning rate fall to zero, 'constant' keeps it."
    )
    init_scale: float | None = setting(
        None, Number(most=100), "Standard deviation of the first factors. Rival factors start at 1."
    )
    negative_sampling: NegativeSampling = setting(
        "uniform",
        OneOf("uniform", "popular"),
        "How negatives are sampled from what a user has not touched: 'uniform', or 'popular' (in proportion to "
        "popularity).",
        kinds=_OF_INTERACTIONS,
    )
    user_balance: float | None = setting(
        None,
        Share(),
        "0 lets every interaction count the same, 1 lets every user count the same. In between, an interaction of a "
        "user with n of them weighs n ** -user_balance (1 on average). Measures that are averaged over users, such as "
        "nDCG, gain where users have done something (measured: docs/defaults.md).",
        search=(0.0, 0.15, 0.3, 0.45),
        kinds=_OF_INTERACTIONS,
    )
    solver: Solver | None = setting(
        None,
        OneOf("sgd", "variational"),
        "How the parameters are learnt. 'variational' is for comparisons: it learns from them how much to shrink, and "
        "knows how sure it is. 'sgd' takes the penalties that are given. Left at None, comparisons are learnt by "
        "'variational' unless a setting of 'sgd' is given, a fitted model is continued, or there are too many users or "
        "items; interactions are learnt by 'sgd'.",
        search={"comparisons": ("variational",)},
    )


@dataclass(frozen=True)
class Settings:
    """Everything the result of training depends on, apart from the data; nothing is left to be decided.

    The number of threads is not among them: it changes how long training takes and nothing else.
    """

    factors: int
    iterations: int
    learning_rate: float
    regularization: float
    rival_regularization: float
    blocks: int
    seed: int
    schedule: Schedule
    init_scale: float
    learn_rivals: bool
    bias: bool
    negative_candidates: int
    order_share: float
    adaptive: bool
    negative_sampling: NegativeSampling = "uniform"
    user_balance: float = 0.0
    solver: Solver = "sgd"
    loss: Loss = "pairwise"
    length: float = 0.0
    origins: dict[str, str] = field(default_factory=dict, compare=False)
    """Where each value came from: "given", "default", "data" (a rule for data of this kind and size) or "not used"."""

    def __post_init__(self) -> None:
        """Check every value by its rule, and those that depend on each other."""
        rules = {name: entry.metadata["rule"] for name, entry in declared(TrainingSettings).items()}
        rules |= {"seed": Whole(0, 2**63 - 1), "learn_rivals": Flag()}
        for entry in fields(self):
            if entry.name == "origins":
                continue
            value = rules[entry.name].check(getattr(self, entry.name), entry.name)
            object.__setattr__(self, entry.name, value)
        if self.negative_sampling == "popular" and self.negative_candidates > 1:
            raise ValueError(
                f"negative_candidates={self.negative_candidates} chooses among uniform negatives: leave it at 1 with "
                "negative_sampling='popular'"
            )
        if self.loss == "softmax" and self.negative_sampling == "popular":
            raise ValueError("loss='softmax' takes uniform negatives: leave negative_sampling='popular' out")
        if self.length and self.loss != "softmax":
            raise ValueError(f"length={self.length!r} is for loss='softmax': leave it out with loss={self.loss!r}")
        if MOST_ORDER_SHARE < self.order_share < 1:
            raise ValueError(
                f"order_share={self.order_share!r} asks for {1 / (1 - self.order_share) - 1:,.0f} ordered pairs for "
                f"every other one: set {MOST_ORDER_SHARE} at most, or 1 to learn from the order alone"
            )
        if 2 * self.learning_rate * self.regularization >= 1:
            raise ValueError(
                f"learning_rate {self.learning_rate!r} times regularization {self.regularization!r} must stay "
                "below 0.5, or a step shrinks the factors past zero: lower one of them"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, fit for JSON."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """Return what the result depends on: the values, wherever they came from."""
        return {name: value for name, value in self.as_dict().items() if name != "origins"}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Settings":
        """Make settings from what :meth:`as_dict` gave, now or before there were settings that have a default."""
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(f"the settings do not fit this version of sadrec: {error}") from error
