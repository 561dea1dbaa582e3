"""The settings of a training run: checked, and resolved by the kind of data they meet."""

import math
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal

Schedule = Literal["linear", "constant"]
NegativeSampling = Literal["uniform", "popular"]
Kind = Literal["interactions", "comparisons"]

# What a setting left at None becomes. docs/defaults.md tells where the numbers come from. Some follow the size of the
# data, see ``defaults``: l2 and candidates for interactions are those for 300 of them per vector, the penalties for
# comparisons those for 1000.
DEFAULTS: dict[Kind, dict[str, Any]] = {
    "interactions": {
        "iterations": 50,
        "learning_rate": 0.05,
        "regularization": 0.01,
        "rival_regularization": 0.001,
        "init_scale": 0.1,
        "bias": True,
        "negative_candidates": 8,
    },
    "comparisons": {
        "iterations": 60,
        "learning_rate": 0.05,
        "regularization": 0.0005,
        "rival_regularization": 0.01,
        "init_scale": 0.1,
        "bias": False,
        "negative_candidates": 1,
    },
}

MOST_BLOCKS = 16


@dataclass(frozen=True)
class Settings:
    """Everything the result of training depends on, apart from the data.

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

    def __post_init__(self) -> None:
        """Check every value and say what would be right."""
        whole = {"factors": 1, "iterations": 0, "blocks": 1, "seed": 0, "negative_candidates": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number, at least {least}, not {value!r}")
        for name in ("learning_rate", "regularization", "rival_regularization", "init_scale"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a finite number, 0 or more, not {value!r}")
        for name in ("bias", "adaptive"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.schedule not in ("linear", "constant"):
            raise ValueError(f"schedule must be 'linear' or 'constant', not {self.schedule!r}")
        if self.negative_sampling not in ("uniform", "popular"):
            raise ValueError(f"negative_sampling must be 'uniform' or 'popular', not {self.negative_sampling!r}")
        if self.negative_sampling == "popular" and self.negative_candidates > 1:
            raise ValueError(
                f"negative_candidates={self.negative_candidates} chooses among uniform rivals: leave it at 1 with "
                "negative_sampling='popular'"
            )
        for name in ("order_share", "user_balance"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise ValueError(f"{name} must be a share between 0 and 1, not {value!r}")
        if 2 * self.learning_rate * self.regularization >= 1:
            raise ValueError(
                f"learning_rate {self.learning_rate!r} times regularization {self.regularization!r} must stay "
                "below 0.5, or a step shrinks the factors past zero: lower one of them"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Settings":
        """Make settings from what :meth:`as_dict` gave, now or before there were settings that have a default."""
        names = {field.name for field in fields(cls)}
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        if odd := sorted((set(values) - names) | (needed - set(values))):
            raise ValueError(f"settings do not fit this version: {odd} missing or unknown")
        return cls(**values)


# Interactions per vector that each candidate needs, and the strongest l2 for those that have next to none.
PER_CANDIDATE = 25.0
STRONGEST = 0.03

# Comparisons per vector below which what one judge says is mostly noise, and what becomes of the settings then: a bias
# learns what all judges agree on, and their own vectors start near 0 and stay there unless there is a reason.
SCARCE_PER_VECTOR = 100.0
SCARCE: dict[str, Any] = {"regularization": 0.03, "rival_regularization": 0.01, "init_scale": 0.01, "bias": True}

# So few comparisons are not a sample but a statement: they are learnt as they stand.
STATEMENT = 100


def defaults(kind: Kind, users: int, items: int, pairs: int) -> dict[str, Any]:
    """Return what settings left at None become for data of this kind and size.

    Interactions: the more is known per vector, the harder the rivals it can be trained against and the less it has to
    be held back: candidates grow in proportion to the interactions per vector (1 to 8), l2 falls with their square root
    (measured: docs/defaults.md).

    >>> values = defaults("interactions", users=6_040, items=3_706, pairs=800_000)
    >>> values["negative_candidates"], round(values["regularization"], 4)
    (8, 0.011)
    >>> values = defaults("interactions", users=17_482, items=1_358, pairs=130_000)
    >>> values["negative_candidates"], values["regularization"]
    (1, 0.03)

    Comparisons: each pulls on the vectors of one user and two items, and a penalty is paid at every pull. So that it
    amounts to the same prior however much is known, l2 is divided by the comparisons per vector: 0.0005 at 1000 of them
    is a standard normal prior. The l1 penalty, which separates signal from noise in tau, falls with their fourth root
    (measured: docs/simulation.md). Where there are few, as when many judges say a little each, an item bias takes over
    (measured: docs/feedback.md).

    >>> round(defaults("comparisons", users=20, items=50, pairs=24_500)["regularization"], 6)
    0.000476
    >>> round(defaults("comparisons", users=20, items=50, pairs=4_900)["regularization"], 6)
    0.002381
    >>> defaults("comparisons", users=600, items=500, pairs=12_000)["bias"]
    True
    """
    values = dict(DEFAULTS[kind])
    per_vector = 3 * pairs / max(users + items, 1)
    if kind == "interactions":
        values["regularization"] = min(0.01 * math.sqrt(300 / max(per_vector, 1)), STRONGEST)
        values["negative_candidates"] = min(max(round(per_vector / PER_CANDIDATE), 1), values["negative_candidates"])
    elif pairs >= STATEMENT:
        if per_vector < SCARCE_PER_VECTOR:
            return values | SCARCE
        scarcity = 1000 / per_vector
        values["regularization"] *= scarcity
        values["rival_regularization"] *= scarcity**0.25
    return values


def default_blocks(kind: Kind, users: int, items: int, pairs: int) -> int:
    """Return a number of blocks that suits the data: 1 for tiny data, at most 16.

    >>> default_blocks("interactions", users=6040, items=3706, pairs=1_000_000)
    16
    >>> default_blocks("comparisons", users=20, items=50, pairs=24_500)
    1
    """
    blocks = min(users // 32, items // 64, MOST_BLOCKS)
    if kind == "comparisons":
        blocks = 2 * min(blocks // 2, pairs // 100_000)
    return max(blocks, 1)
