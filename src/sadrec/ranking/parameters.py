"""The parameters of a model, as every function of this folder takes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
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

    Examples
    --------
    >>> Parameters(np.ones((2, 3)), np.ones((5, 3)))
    Parameters(users=2, items=5, factors=3, rival_factors=no, item_bias=no)
    """

    user_factors: NDArray[Any]
    item_factors: NDArray[Any]
    rival_factors: NDArray[Any] | None = None
    item_bias: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.item_factors.ndim != 2:
            raise ValueError(f"item_factors must be a matrix (items, factors), not of shape {self.item_factors.shape}")
        items, factors = self.item_factors.shape
        if self.user_factors.ndim != 2 or self.user_factors.shape[1] != factors:
            raise ValueError(
                f"user_factors must be a matrix (users, {factors}) to match item_factors, "
                f"not of shape {self.user_factors.shape}"
            )
        if self.rival_factors is not None and self.rival_factors.shape != (items, factors):
            raise ValueError(
                f"rival_factors must have the shape of item_factors, {(items, factors)}, "
                f"not {self.rival_factors.shape}; leave it out (None) for all ones"
            )
        if self.item_bias is not None and self.item_bias.shape != (items,):
            raise ValueError(f"item_bias must hold one number per item, shape {(items,)}, not {self.item_bias.shape}")

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.user_factors.shape[0])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.item_factors.shape[0])

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return int(self.item_factors.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that products of the factors are computed in."""
        return np.result_type(self.user_factors, self.item_factors, np.float32)

    def __repr__(self) -> str:
        return (
            f"Parameters(users={self.n_users}, items={self.n_items}, factors={self.n_factors}, "
            f"rival_factors={'no' if self.rival_factors is None else 'yes'}, "
            f"item_bias={'no' if self.item_bias is None else 'yes'})"
        )
