"""What beats an item head to head, and for what share of users."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from sadrec._check import whole
from sadrec._types import Doubles, Positions
from sadrec.ranking.parameters import Parameters, item_positions, positions
from sadrec.ranking.vectors import user_vectors

_CHUNK = 1 << 22
"""Margins held at a time."""


@dataclass(frozen=True, eq=False)
class HeadToHead:
    """Rivals of an item, and how they do against it.

    Examples
    --------
    >>> HeadToHead(7, np.array([1, 2]), np.array([0.25, 0.75]), np.array([-1.0, 1.0]))
    HeadToHead of item 7: most often beaten by 2, for 75 % of the users
    """

    item: int
    rivals: Positions = field(repr=False)
    share: Doubles = field(repr=False)  # of users who prefer the rival to the item; one without a preference is half
    margin: Doubles = field(repr=False)  # of the rival over the item, on average over users

    def strongest(self, N: int = 10) -> Positions:
        """Return the places in ``rivals`` of the N that beat the item for most users; of equals, by margin."""
        return np.lexsort((-self.margin, -self.share))[: whole(N, "N")]

    def __repr__(self) -> str:
        if not self.rivals.size:
            return f"HeadToHead of item {self.item}: no rivals"
        first = self.strongest(1)[0]
        return (
            f"HeadToHead of item {self.item}: most often beaten by {self.rivals[first]}, "
            f"for {100 * self.share[first]:.0f} % of the users"
        )


def head_to_head(
    parameters: Parameters, item: int, rivals: ArrayLike | None = None, users: ArrayLike | None = None
) -> HeadToHead:
    """Compare an item with rivals, by default all others, for every user or for some.

    >>> rock_paper_scissors = Parameters(np.ones((2, 3)), np.eye(3), np.roll(np.eye(3), -1, axis=0))
    >>> head_to_head(rock_paper_scissors, 0)
    HeadToHead of item 0: most often beaten by 1, for 100 % of the users
    """
    at = int(positions(item, parameters.n_items, "item"))
    others = item_positions(parameters, rivals, "rivals")
    others = others[others != at]
    vectors = user_vectors(parameters, users).astype(np.float32)
    design = parameters.wedge(others, np.full(others.size, at)).astype(np.float32)
    share, margin = np.zeros(others.size), np.zeros(others.size)
    step = max(1, _CHUNK // max(1, others.size))
    for start in range(0, len(vectors), step):
        x = vectors[start : start + step] @ design.T
        share += np.sign(x).sum(axis=0, dtype=np.float64)
        margin += x.sum(axis=0, dtype=np.float64)
    count = max(1, len(vectors))
    return HeadToHead(at, others, (share / count + 1) / 2, margin / count)
