"""The properties of a set of interactions, as the paper's appendix lists them, and of a set of comparisons."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


class _Figures:
    """Counts and how they are spread, as plain values and as text."""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def __str__(self) -> str:
        published = getattr(self, "published", None)
        beside = published._cells() if published else {}
        cells = self._cells()
        width = max(9, *map(len, cells))
        lines = [
            f"{name:<{width}} {value}" + (f"   (published: {beside[name]})" if beside.get(name) else "")
            for name, value in cells.items()
        ]
        return "\n".join([*lines, "(per_user and per_item: minimum/5 %/median/95 %/maximum)"])

    def _cells(self) -> dict[str, str]:
        """Return each figure as text, by its name."""
        return {name: _text(name, value) for name, value in vars(self).items() if name != "published"}


def _text(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(f"{entry:,.0f}" for entry in value)
    return f"{value:.2%}" if name == "sparsity" else f"{value:,}"


@dataclass(frozen=True)
class Description(_Figures):
    """How many users, items and ratings, how sparse, and how they are spread.

    Attributes
    ----------
    users, items, ratings
        Counts; users and items count whether or not they have interactions.
    sparsity
        Share of the matrix that is empty, ``1 - ratings / (users * items)``.
    per_user, per_item
        Interactions per user and per item: minimum, 5 %, median, 95 % and maximum.
    published
        The same figures as published, where this is a named data set.
    """

    users: int
    items: int
    ratings: int
    sparsity: float
    per_user: tuple[float, ...] = ()
    per_item: tuple[float, ...] = ()
    published: "Description | None" = None


@dataclass(frozen=True)
class PairsDescription(_Figures):
    """How many users, items and comparisons, and how they are spread.

    Attributes
    ----------
    users, items, comparisons
        Counts.
    pairs
        How many pairs of items were compared by anybody, whichever of the two won.
    per_user, per_item
        Comparisons per user and per item: minimum, 5 %, median, 95 % and maximum.
    """

    users: int
    items: int
    comparisons: int
    pairs: int
    per_user: tuple[float, ...]
    per_item: tuple[float, ...]


def describe(matrix: Any, published: Description | None = None) -> Description:
    """Describe a canonical CSR matrix of users x items."""
    users, items = matrix.shape
    per_user = np.diff(matrix.indptr)
    per_item = np.bincount(matrix.indices, minlength=items)
    cells = users * items
    return Description(
        users=users,
        items=items,
        ratings=int(matrix.nnz),
        sparsity=1 - matrix.nnz / cells if cells else 0.0,
        per_user=_quantiles(per_user),
        per_item=_quantiles(per_item),
        published=published,
    )


def describe_pairs(
    users: int, items: int, user: NDArray[np.int32], winner: NDArray[np.int32], loser: NDArray[np.int32]
) -> PairsDescription:
    """Describe comparisons given as rows of users and items."""
    pairs = np.unique(np.minimum(winner, loser).astype(np.int64) * items + np.maximum(winner, loser))
    return PairsDescription(
        users=users,
        items=items,
        comparisons=len(user),
        pairs=len(pairs),
        per_user=_quantiles(np.bincount(user, minlength=users)),
        per_item=_quantiles(np.bincount(winner, minlength=items) + np.bincount(loser, minlength=items)),
    )


def _quantiles(counts: NDArray[Any]) -> tuple[float, ...]:
    return tuple(float(q) for q in np.quantile(counts, QUANTILES))
