"""The properties of a set of interactions, as the paper's appendix lists them."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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
        return "\n".join(
            f"{name:<9} {value}" + (f"   (published: {published[name]})" if published.get(name) else "")
            for name, value in self._cells()
        )

    def _cells(self) -> list[tuple[str, str]]:
        return [
            ("users", f"{self.users:,}"),
            ("items", f"{self.items:,}"),
            ("ratings", f"{self.ratings:,}"),
            ("sparsity", f"{self.sparsity:.2%}"),
            ("per user", _spread(self.per_user)),
            ("per item", _spread(self.per_item)),
        ]


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
        per_user=tuple(float(q) for q in np.quantile(per_user, QUANTILES)),
        per_item=tuple(float(q) for q in np.quantile(per_item, QUANTILES)),
        published=published,
    )
