"""Keeping active users and popular items."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def select(
    matrix: Any, min_per_user: int, min_per_item: int, top_users: int | None, *, until_stable: bool
) -> NDArray[np.bool_]:
    """Mask of the stored entries that remain; see ``Interactions.filter`` for the order of the steps."""
    for name, value in (
        ("min_per_user", min_per_user),
        ("min_per_item", min_per_item),
        ("top_users", top_users),
    ):
        least = 1 if name == "top_users" else 0
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least):
            raise ValueError(f"{name} must be a whole number, {least} or more, not {value!r}")
    sizes = np.diff(matrix.indptr)
    mask = np.ones(matrix.nnz, dtype=np.bool_)
    if top_users is not None and top_users < len(sizes):
        chosen = np.zeros(len(sizes), dtype=np.bool_)
        chosen[np.argsort(-sizes, kind="stable")[:top_users]] = True
        mask = np.repeat(chosen, sizes)
    rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    while True:
        before = int(mask.sum())
        if min_per_item:
            per_item = np.bincount(matrix.indices[mask], minlength=matrix.shape[1])
            mask &= (per_item >= min_per_item)[matrix.indices]
        if min_per_user:
            per_user = np.bincount(rows[mask], minlength=matrix.shape[0])
            mask &= (per_user >= min_per_user)[rows]
        if not until_stable or int(mask.sum()) == before:
            break
    if not mask.any():
        raise ValueError(
            f"nothing is left with min_per_user={min_per_user}, min_per_item={min_per_item}, "
            f"top_users={top_users}: the busiest user has {sizes.max()} interactions, the most popular item "
            f"{np.bincount(matrix.indices, minlength=1).max()}"
        )
    return mask
