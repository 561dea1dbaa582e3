"""The parameters of a model, as every function of this folder takes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Parameters:
    """What a preference is computed from: three factor matrices and, possibly, an item bias.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) + b_i - b_j``

    Attributes
    ----------
    user_factors
        Xi, (users, factors).
    item_factors
        H, (items, factors): how strongly an item appeals.
    rival_factors
        T, (items, factors), not negative: what an item does to its rivals. ``None`` means all ones, which is BPR.
    item_bias
        b, (items,). ``None`` means zero.
    """

    user_factors: NDArray[Any]
    item_factors: NDArray[Any]
    rival_factors: NDArray[Any] | None = None
    item_bias: NDArray[Any] | None = None
