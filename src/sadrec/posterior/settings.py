"""The settings of the sampler, declared once."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sadrec._core.check import is_number
from sadrec._core.settings import Flag, Number, Rule, Seed, Threads, Whole, checked, setting
from sadrec._core.types import Doubles

Scale = float | Literal["learn"]


@dataclass(frozen=True)
class Learnable(Rule):
    """A number between two bounds, possibly 0, or the word "learn"."""

    least: float = 1e-6
    most: float = 1e6
    zero: bool = False

    def check(self, value: Any, name: str) -> Any:
        """Return the number or the word."""
        if isinstance(value, str) and value == "learn":
            return value
        if not is_number(value) or not (self.least <= value <= self.most or (self.zero and value == 0)):
            raise ValueError(f"{name} must be {self.describe()}, not {value!r}")
        return float(value)

    def describe(self) -> str:
        """Return the rule in words."""
        return f"{'0, ' * self.zero}a number from {self.least:g} to {self.most:g} or 'learn'"


@dataclass(eq=False, repr=False)
class SamplerSettings:
    """The settings of :class:`~sadrec.posterior.GibbsSAD` as they are given."""

    factors: int = setting(8, Whole(1), "The length k of the vectors.", search=(2, 4, 8, 16), positional=True)
    draws: int = setting(1000, Whole(1), "How many draws each chain keeps.", positional=True)
    warmup: int = setting(1000, Whole(0), "Sweeps before the first draw is kept.", positional=True)
    chains: int = setting(
        4,
        Whole(1),
        "Independent runs, from different starts; several are needed to see whether they agree.",
        positional=True,
    )
    thin: int = setting(1, Whole(1), "Keep every thin-th sweep.", positional=True)
    user_scale: Scale = setting(
        "learn",
        Learnable(),
        "Standard deviation of the prior of users: a number (the paper's is 1), or 'learn', which samples it, with a "
        "half-normal prior of scale 1.",
    )
    item_scale: Scale = setting("learn", Learnable(), "The same for items.")
    rival_scale: Scale = setting(
        "learn", Learnable(zero=True), "The same for rival factors. 0 holds tau at rival_mean: the posterior of BPR."
    )
    user_mean: Scale = setting(
        "learn",
        Learnable(-1e6),
        "Prior mean of the users' factors: 0, or 1 (people agree, up to user_scale), or 'learn' (each factor has a "
        "mean "
        "of its own, with the prior N(0, 1)).",
    )
    rival_mean: float = setting(
        1.0, Number(0, 1e6), "Prior mean of tau: 1, as in the paper's penalty, or 0, as in its appendix."
    )
    bias: bool = setting(
        True,
        Flag(),
        "Whether items have a bias b_i - b_j, the same for everybody. Its mean is a line in the logarithm of how many "
        "others an item met; slope and scale are learnt.",
    )
    negatives: int = setting(
        1,
        Whole(1),
        "For interactions: how many untouched items each is compared with (drawn once, before the first sweep).",
    )
    random_state: int | np.random.Generator | None = setting(
        0, Seed(), "A whole number, a numpy generator, or None for a seed from the operating system."
    )
    num_threads: int = setting(
        0, Threads(), "How many threads; 0 means all cores. The draws are the same, bit by bit, for any number."
    )


@dataclass
class GibbsSettings(SamplerSettings):
    """Resolved settings of the sampler: checked, with a seed."""

    def __post_init__(self) -> None:
        if self.rival_scale == 0 and self.rival_mean == 0:
            raise ValueError("rival_scale=0 holds tau at rival_mean=0, where every preference is 0: set rival_mean=1")

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        assert isinstance(self.random_state, int)
        return self.random_state

    @property
    def sweeps(self) -> int:
        """Number of sweeps of a chain."""
        return self.warmup + self.draws * self.thin

    @property
    def learns(self) -> NDArray[np.bool_]:
        """Which of the scales of xi, eta and tau, and whether the means of xi, are learnt."""
        given = self.user_scale, self.item_scale, self.rival_scale, self.user_mean
        return np.array([value == "learn" for value in given])

    def prior(self) -> Doubles:
        """Return the prior of a ``ChainState``; learnt scales start at 1, slopes at 0."""
        user, item, rival = (
            1.0 if scale == "learn" else float(scale) for scale in (self.user_scale, self.item_scale, self.rival_scale)
        )
        held = math.inf if rival == 0 else rival**-2
        return np.array([user**-2, item**-2, self.rival_mean, held, 1.0, 0.0])

    def means(self) -> Doubles:
        """Return the means of xi, one per factor; learnt ones start at 0."""
        return np.full(self.factors, 0.0 if self.user_mean == "learn" else float(self.user_mean))

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for a file."""
        given = {**asdict(self), "seed": self.seed}
        return {name: value for name, value in given.items() if name not in ("random_state", "num_threads")}


def resolved(settings: SamplerSettings) -> GibbsSettings:
    """Return settings that were given, each checked by its rule, with a seed."""
    return GibbsSettings(**checked(settings))
