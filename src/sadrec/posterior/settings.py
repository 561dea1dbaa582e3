"""The settings of the sampler, checked."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Scale = float | Literal["learn"]


@dataclass(frozen=True)
class GibbsSettings:
    """What a run of the sampler depends on, apart from the data.

    Attributes
    ----------
    factors, draws, warmup, chains, thin
        Length of the vectors, kept draws per chain, sweeps before the first, chains, sweeps per kept draw.
    user_scale, item_scale, rival_scale
        Standard deviations of the prior of xi, eta and tau, or "learn". ``rival_scale=0`` holds tau at its mean.
    user_mean, rival_mean
        Means of the prior of xi (a number, or "learn") and tau (before it is cut at 0). That of eta is 0.
    negatives
        Items nobody touched drawn per interaction.
    seed
        Of all random numbers.
    """

    factors: int
    draws: int
    warmup: int
    chains: int
    thin: int
    user_scale: Scale
    item_scale: Scale
    rival_scale: Scale
    user_mean: Scale
    rival_mean: float
    negatives: int
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("factors", 1), ("draws", 1), ("warmup", 0), ("chains", 1), ("thin", 1), ("negatives", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number, {least} or more, not {value!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise ValueError(f"random_state must be a whole number from 0 to 2**63 - 1, or None, not {self.seed!r}")
        for name in ("user_scale", "item_scale", "rival_scale"):
            value = getattr(self, name)
            if value == "learn":
                continue
            least_scale = 0.0 if name == "rival_scale" else 1e-6
            if not is_number(value) or not least_scale <= value <= 1e6 or 0 < value < 1e-6:
                zero = "0 (no rival factors), " if name == "rival_scale" else ""
                raise ValueError(f"{name} must be {zero}a number from 1e-6 to 1e6 or 'learn', not {value!r}")
        if self.user_mean != "learn" and (not is_number(self.user_mean) or abs(self.user_mean) > 1e6):
            raise ValueError(f"user_mean must be a number from -1e6 to 1e6 or 'learn', not {self.user_mean!r}")
        if not is_number(self.rival_mean) or not 0 <= self.rival_mean <= 1e6:
            raise ValueError(f"rival_mean must be a number from 0 to 1e6, not {self.rival_mean!r}")
        if self.rival_scale == 0 and self.rival_mean == 0:
            raise ValueError("rival_scale=0 holds tau at rival_mean=0, where every preference is 0: set rival_mean=1")

    @property
    def sweeps(self) -> int:
        """How many sweeps a chain makes."""
        return self.warmup + self.draws * self.thin

    @property
    def learnt(self) -> NDArray[np.bool_]:
        """Which of the scales of xi, eta and tau, and whether the means of xi, are learnt."""
        given = self.user_scale, self.item_scale, self.rival_scale, self.user_mean
        return np.array([value == "learn" for value in given])

    def prior(self) -> NDArray[np.float64]:
        """Return the precisions of xi and eta, and mean and precision of tau, as the kernels take them.

        Learnt scales start at 1.
        """
        user, item, rival = (
            1.0 if scale == "learn" else float(scale) for scale in (self.user_scale, self.item_scale, self.rival_scale)
        )
        held = math.inf if rival == 0 else rival**-2
        return np.array([user**-2, item**-2, self.rival_mean, held])

    def means(self) -> NDArray[np.float64]:
        """Return the means of xi, one per factor; learnt ones start at 0."""
        return np.full(self.factors, 0.0 if self.user_mean == "learn" else float(self.user_mean))

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for a file."""
        return asdict(self)


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
