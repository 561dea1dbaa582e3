"""The settings of training, declared once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sadrec._core.settings import (
    Flag,
    Number,
    OneOf,
    Seed,
    SettingGroup,
    Share,
    Span,
    Threads,
    Whole,
    ZeroOr,
    opened,
    setting,
)

Loss = Literal["pairwise", "softmax"]
Kind = Literal["interactions", "comparisons"]
Solver = Literal["sgd", "variational"]

MOST_ORDER_SHARE = 0.99
"""The largest order_share below 1: an epoch visits every interaction once, and 99 ordered pairs for each."""
RIVALS_REST = 1.0
"""The l1 with loss="softmax" from which on T stays at 1: no step moves it by more than this penalty pulls back."""
_OF_INTERACTIONS = ("interactions",)
_SGD = {"solver": "sgd"}
_PAIRWISE, _SOFTMAX = {"loss": "pairwise"}, {"loss": "softmax"}


@dataclass
class Advanced:
    """Rarely used settings, in the mapping ``advanced`` of :class:`TrainingSettings`."""

    adaptive: bool = setting(
        False,
        Flag(),
        "Whether the second half of the epochs holds each rival factor to 1 by as much as the first half suggests; "
        "without iterations, twice as many epochs.",
        needs=_SGD,
    )
    schedule: str = setting(
        "linear",
        OneOf("linear", "constant"),
        "'linear' lets the learning rate fall to zero, 'constant' keeps it.",
        needs=_SGD,
    )
    init_scale: float | None = setting(
        None,
        Number(most=100),
        "Standard deviation of the first factors; with loss='softmax' they start at the spectrum of the data. Rival "
        "factors start at 1.",
        needs={**_SGD, **_PAIRWISE},
    )
    user_balance: float | None = setting(
        None,
        Share(),
        "An interaction of a user with n of them weighs n ** -user_balance (1 on average): at 0 every interaction "
        "counts the same, at 1 every user.",
        search=(0.0, 0.15, 0.3, 0.45),
        kinds=_OF_INTERACTIONS,
    )
    negatives: int | None = setting(
        None,
        Whole(1, 10_000),
        "The number of sampled items that an interaction is trained against (at most those of a block).",
        kinds=_OF_INTERACTIONS,
        needs=_SOFTMAX,
    )
    length: float | None = setting(
        None,
        ZeroOr(0.1, 100),
        "The length to which the vectors of users and items are put back after every step, so that their cosine "
        "decides; 0 leaves the length free.",
        kinds=_OF_INTERACTIONS,
        needs=_SOFTMAX,
    )


@dataclass(eq=False, repr=False)
class TrainingSettings:
    """The settings of :class:`~sadrec.SAD` as they are given; None means that the data decides, in ``fit``.

    Nothing slow is imported with them: the command line reads its options here.
    """

    factors: int | None = setting(
        None,
        Whole(1),
        "The length k of the vectors. None: the number of singular values above those of chance, 64 to 384 (64 with "
        "loss='pairwise'); the variational solver starts with 8 (2 where there are few comparisons per user and item) "
        "and keeps those that the data supports.",
        search={"interactions": (32, 64, 128, 256), "comparisons": (2, 4, 8, 16)},
        positional=True,
    )
    iterations: int | None = setting(
        None,
        Whole(0),
        "Passes over the data: each visits every interaction or comparison once.",
        search=Span(10, 100, log=True),
    )
    learning_rate: float | None = setting(
        None,
        Number(),
        "The learning rate of the first step; it falls to zero.",
        search=Span(0.01, 0.3, log=True),
        needs=_SGD,
    )
    regularization: float | None = setting(
        None,
        Number(),
        "l2 on user factors, item factors and bias (the paper's w2: a step subtracts 2 w2 theta).",
        search=Span(0.0005, 0.1, log=True),
        needs=_SGD,
    )
    rival_regularization: float | None = setting(
        None,
        Number(),
        "l1 that holds the rival factors to 1 (the paper's w1). The larger, the more of them are exactly 1; with "
        "loss='softmax' all are from 1 on, which None takes where they do not pay.",
        search=Span(0.0001, 0.03, log=True),
        needs=_SGD,
    )
    blocks: int | None = setting(
        None,
        Whole(1),
        "The number of blocks that the items are dealt into every epoch, at most half the number of items. The result "
        "depends on it, unlike on num_threads.",
        needs=_SGD,
    )
    num_threads: int = setting(
        0, Threads(), "How many threads; 0 means all cores. The result is the same, bit by bit, for any number."
    )
    random_state: int | np.random.Generator | None = setting(
        0, Seed(), "A whole number, a numpy generator, or None for a seed from the operating system."
    )
    solver: Solver | None = setting(
        None,
        OneOf("sgd", "variational"),
        "'variational' (comparisons) learns the amount of shrinkage and the uncertainty; 'sgd' uses the given "
        "penalties. None: 'variational' for comparisons, unless a fitted model is continued or the data has too many "
        "users or items; 'sgd' for interactions.",
        search={"comparisons": ("variational", "sgd")},
    )
    loss: Loss | None = setting(
        None,
        OneOf("pairwise", "softmax"),
        "What an interaction is trained against: 'pairwise', one sampled item, or 'softmax', many at once, each by its "
        "share. None: 'softmax', or 'pairwise' where order_share is above 0.",
        search=("pairwise", "softmax"),
        kinds=_OF_INTERACTIONS,
        needs=_SGD,
    )
    negative_candidates: int | None = setting(
        None,
        Whole(1, 10_000),
        "An interaction is trained against the hardest of this number of sampled items.",
        kinds=_OF_INTERACTIONS,
        needs=_PAIRWISE,
    )
    bias: bool | None = setting(
        None, Flag(), "Whether items have a bias b_i - b_j, the same for everybody.", search=(False, True), needs=_SGD
    )
    order_share: float = setting(
        0.0,
        Share(),
        "The share of training pairs drawn from the order of the user's own ratings; the rest are items the user "
        "interacted with over items they did not.",
        kinds=_OF_INTERACTIONS,
    )
    advanced: Mapping[str, Any] | None = setting(
        None, SettingGroup(Advanced), 'Rarely used settings in a mapping, such as {"schedule": "constant"}.'
    )


@dataclass(frozen=True)
class Settings:
    """Resolved settings: everything but the data that the result of training depends on.

    The number of threads is not among them: it changes how long training takes and nothing else. ``origins`` says where
    each value came from: "given", "default", "data" (a rule for data of this kind and size) or "not used".
    """

    factors: int
    iterations: int
    learning_rate: float
    regularization: float
    rival_regularization: float
    blocks: int
    seed: int
    solver: Solver
    loss: Loss
    negative_candidates: int
    bias: bool
    order_share: float
    adaptive: bool
    schedule: str
    init_scale: float
    user_balance: float
    negatives: int
    length: float
    learn_rivals: bool
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Raise on combinations of values that are not allowed."""
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
        return {**vars(self), "origins": dict(self.origins)}

    def identity(self) -> dict[str, Any]:
        """Return what the result depends on: the values, wherever they came from."""
        return {name: value for name, value in vars(self).items() if name != "origins"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Settings":
        """Make settings from what :meth:`as_dict` gave, each value checked by its rule."""
        try:
            checks = {name: rule.check(values[name], name) for name, rule in _RULES.items()}
            return cls(**{**values, **checks, "origins": dict(values.get("origins", {}))})
        except (TypeError, KeyError) as error:
            raise ValueError(f"the settings do not fit this version of sadrec: {error}") from error


_RULES = {
    name: entry.metadata["rule"]
    for name, entry in opened(TrainingSettings).items()
    if name not in ("num_threads", "random_state")
} | {"seed": Whole(0, 2**63 - 1), "learn_rivals": Flag()}
