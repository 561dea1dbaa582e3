"""The properties of a set of interactions, as the paper's appendix lists them, and of a set of comparisons."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Figures:
    """Counts and quantiles, as plain values and as text."""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def __str__(self) -> str:
        width = max(9, *map(len, vars(self)))
        lines = [f"{name:<{width}} {_shown(name, value)}" for name, value in vars(self).items()]
        return "\n".join([*lines, "(per_user and per_item: minimum/5 %/median/95 %/maximum)"])


def _shown(name: str, value: Any) -> str:
    """Return a figure as text."""
    if isinstance(value, tuple):
        return "/".join(f"{entry:,.0f}" for entry in value)
    return f"{value:.2%}" if name == "sparsity" else f"{value:,}"


@dataclass(frozen=True)
class Description(_Figures):
    """Numbers of users, items and ratings, sparsity, and quantiles per user and item.

    Attributes
    ----------
    users, items, ratings
        Counts; users and items count whether or not they have interactions.
    sparsity
        Share of the matrix that is empty, ``1 - ratings / (users * items)``.
    per_user, per_item
        Interactions per user and per item: minimum, 5 %, median, 95 % and maximum.
    """

    users: int
    items: int
    ratings: int
    sparsity: float
    per_user: tuple[float, ...] = ()
    per_item: tuple[float, ...] = ()


@dataclass(frozen=True)
class PairsDescription(_Figures):
    """Numbers of users, items and comparisons, and quantiles per user and item.

    Attributes
    ----------
    users, items, comparisons, ties
        Counts; ties are among the comparisons.
    pairs
        How many pairs of items were compared by anybody, whichever of the two won.
    per_user, per_item
        Comparisons per user and per item: minimum, 5 %, median, 95 % and maximum.
    """

    users: int
    items: int
    comparisons: int
    ties: int
    pairs: int
    per_user: tuple[float, ...]
    per_item: tuple[float, ...]


def quantiles(counts: NDArray[Any]) -> tuple[float, ...]:
    """Return minimum, 5 %, median, 95 % and maximum."""
    return tuple(float(q) for q in np.quantile(counts, (0.0, 0.05, 0.5, 0.95, 1.0)))
