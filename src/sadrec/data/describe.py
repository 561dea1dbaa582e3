"""The properties of a set of interactions, as the paper's appendix lists them, and of a set of comparisons."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


@dataclass(frozen=True)
class Description:
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

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        published = dict(self.published._cells()) if self.published else {}
        lines = [
            f"{name:<9} {value}" + (f"   (published: {published[name]})" if published.get(name) else "")
            for name, value in self._cells()
        ]
        return "\n".join([*lines, _LEGEND])

    def _cells(self) -> list[tuple[str, str]]:
        return [
            ("users", f"{self.users:,}"),
            ("items", f"{self.items:,}"),
            ("ratings", f"{self.ratings:,}"),
            ("sparsity", f"{self.sparsity:.2%}"),
            ("per user", _spread(self.per_user)),
            ("per item", _spread(self.per_item)),
        ]


_LEGEND = "(per user and per item: minimum/5 %/median/95 %/maximum)"


@dataclass(frozen=True)
class PairsDescription:
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

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        counts = [(name, f"{getattr(self, name):,}") for name in ("users", "items", "comparisons", "pairs")]
        spreads = [("per user", _spread(self.per_user)), ("per item", _spread(self.per_item))]
        return "\n".join([*(f"{name:<11} {value}" for name, value in counts + spreads), _LEGEND])


def _spread(values: tuple[float, ...]) -> str:
    return "/".join(f"{value:,.0f}" for value in values)


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
