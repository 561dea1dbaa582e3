"""What features predict of every row: the centres that training holds the parameters to, made anew for every epoch.

A row's factors are predicted + own. The prediction is a regression of the present factors on the features, and l2 holds
the row to a share of it (``SHARE``). Centres change between epochs only and follow from the factors alone, so that
neither the schedule nor checkpoints know of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sadrec._types import Doubles, Floats
from sadrec.features.ridge import Linear, Ridge
from sadrec.training.factors import Factors

HALF = 5.0
"""Of how many observations a row counts half as much as one of very many."""
SHARE = 0.5
"""How far from 0 to the prediction the centres lie: the penalties are those that were chosen for 0."""


class Side:
    """The features of the users, or of the items, that are trained: CSR rows, and how often each was observed."""

    def __init__(self, rows: Any, counts: Doubles) -> None:
        self.rows = rows
        self._regression = Ridge(rows, counts / (counts + HALF))

    def fit(self, targets: Doubles, groups: tuple[int, ...]) -> Linear:
        """Return what the features predict of the targets, (rows, targets)."""
        return self._regression.fit(targets, groups)


@dataclass(frozen=True, eq=False)
class Centre:
    """What each row is held to; None where it is held to 0."""

    users: Floats | None = None
    items: Floats | None = None  # of eta
    bias: Floats | None = None


@dataclass(frozen=True, eq=False)
class Centres:
    """Features of users, of items or of both, and what they predict of factors."""

    user: Side | None = None
    item: Side | None = None

    def of(self, factors: Factors) -> Centre:
        """Return the centres for these factors; tau is held to 1 as ever."""
        users = items = bias = None
        if self.user is not None:
            users = _part_of(self.user, *user_targets(factors))
        if self.item is not None:
            parts, groups = [factors.eta], [factors.k]
            if factors.bias is not None:
                parts, groups = [*parts, factors.bias[:, None]], [*groups, 1]
            predicted = _part_of(self.item, np.hstack(parts, dtype=np.float64), tuple(groups))
            items = np.ascontiguousarray(predicted[:, : factors.k])
            bias = None if factors.bias is None else np.ascontiguousarray(predicted[:, factors.k])
        return Centre(users, items, bias)


def _part_of(side: Side, targets: Doubles, groups: tuple[int, ...]) -> Floats:
    return np.asarray(SHARE * side.fit(targets, groups).predict(side.rows), np.float32)


def user_targets(factors: Factors) -> tuple[Doubles, tuple[int, ...]]:
    """Return what the features of users are to predict, (n, k), and groups of columns with a penalty in common."""
    return factors.users.astype(np.float64), (factors.k,)


def item_targets(factors: Factors) -> tuple[Doubles, tuple[int, ...]]:
    """Return what the features of items are to predict: eta, tau - 1 where rivals are learnt, and the bias."""
    parts = [factors.items.astype(np.float64)]
    parts[0][:, factors.k :] -= 1
    groups = (factors.k,) * (factors.items.shape[1] // factors.k)
    if factors.bias is not None:
        parts.append(factors.bias[:, None].astype(np.float64))
        groups += (1,)
    return np.hstack(parts), groups
