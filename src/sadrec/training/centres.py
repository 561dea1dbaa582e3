"""What features predict of every row: the centres that training holds the parameters to, made anew for every epoch.

A row's factors are predicted + own. The prediction is a regression of the present factors on the features; the
penalties shrink what is a row's own to 0. Centres change between epochs only and follow from the factors alone, so that
neither the schedule nor checkpoints know of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sadrec._types import Doubles, Floats
from sadrec.features.ridge import Linear, Ridge
from sadrec.training.factors import Factors

HALF = 20.0
"""Of how many observations a row counts half as much as one of very many."""


class Side:
    """The features of the users, or of the items, that are trained: CSR rows, and how often each was observed."""

    def __init__(self, rows: Any, counts: Doubles) -> None:
        self.rows = rows
        self._ridge = Ridge(rows, counts / (counts + HALF))

    def fit(self, targets: Doubles, groups: tuple[int, ...]) -> Linear:
        """Return what the features predict of the targets, (rows, targets)."""
        return self._ridge.fit(targets, groups)


@dataclass(frozen=True, eq=False)
class Centre:
    """What each row is held to; None where it is held to 0 (and tau to 1)."""

    users: Floats | None = None
    items: Floats | None = None  # eta | tau, as factors have them
    bias: Floats | None = None


@dataclass(frozen=True, eq=False)
class Centres:
    """Features of users, of items or of both, and what they predict of factors."""

    user: Side | None = None
    item: Side | None = None

    def of(self, factors: Factors) -> Centre:
        """Return the centres for these factors."""
        users = items = bias = None
        if self.user is not None:
            users = self.user.fit(*user_targets(factors)).predict(self.user.rows).astype(np.float32)
        if self.item is not None:
            width = factors.items.shape[1]
            predicted = self.item.fit(*item_targets(factors)).predict(self.item.rows).astype(np.float32)
            items = np.ascontiguousarray(predicted[:, :width])
            items[:, factors.k :] = np.maximum(items[:, factors.k :] + 1, 0)
            bias = None if factors.bias is None else np.ascontiguousarray(predicted[:, width])
        return Centre(users, items, bias)


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
