"""Data and features brought together: who takes part in the chains, and who is known by features alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sadrec._types import Positions
from sadrec.data import Comparisons, Interactions
from sadrec.data.ids import Ids
from sadrec.models.features import Encoded, prepare
from sadrec.posterior.layout import ByUser
from sadrec.posterior.regression import Basis, Regression
from sadrec.posterior.settings import GibbsSettings
from sadrec.posterior.triples import Triples, as_pairs, as_triples
from sadrec.training.dataset import training_data
from sadrec.training.given import Pairs
from sadrec.training.layout import starts


@dataclass(frozen=True, eq=False)
class Places:
    """Where the rows of a chain, and behind them those without data, stand among all users and items."""

    users: Positions
    items: Positions


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run samples: comparisons of those with data, and the features of all.

    ``observed`` are the comparisons in rows of ``users`` and ``items``, which are all that the posterior knows.
    """

    triples: Triples
    users: Ids
    items: Ids
    observed: ByUser
    seen: Any
    regression: Regression | None = None
    places: Places | None = None
    features: tuple[NDArray[Any], ...] = ()  # what the result depends on beside the data


def asked_of(
    data: Comparisons | Interactions, item_features: Any, user_features: Any, settings: GibbsSettings
) -> Asked:
    """Bring data and features together: see ``GibbsSAD.fit``."""
    if item_features is None and user_features is None:
        triples = as_triples(as_pairs(data, settings.negatives, settings.seed), len(data.users), len(data.items))
        seen = data.matrix if isinstance(data, Interactions) else None
        return Asked(triples, data.user_ids, data.item_ids, triples.by_user, seen)
    prepared = prepare(training_data(data), item_features, user_features)
    assert prepared is not None
    users, items = prepared.whole.users, prepared.whole.items
    user_order, item_order = _order(prepared.user, len(users)), _order(prepared.item, len(items))
    n, m = _known(prepared.user, len(users)), _known(prepared.item, len(items))
    if isinstance(data, Interactions):
        matrix: Any = prepared.whole.matrix
        part = Interactions.from_csr(matrix[user_order[:n]][:, item_order[:m]], allow_negative=True)
        pairs = as_pairs(part, settings.negatives, settings.seed)
    else:
        given = as_pairs(data, settings.negatives, settings.seed)
        user_place = np.argsort(user_order)[users.positions(data.users)]
        item_place = np.argsort(item_order)[items.positions(data.items)]
        winner, loser = (item_place[side].astype(np.int32) for side in (given.winner, given.loser))
        pairs = Pairs(user_place[given.user].astype(np.int32), winner, loser, given.weight)
    triples = as_triples(pairs, n, m)
    by_user = triples.by_user
    user, winner, loser = (
        order[side].astype(np.int32)
        for order, side in (
            (user_order, by_user.user),
            (item_order, by_user.winner),
            (item_order, by_user.loser),
        )
    )
    observed = ByUser(starts(user, len(users)), user, winner, loser, by_user.root)
    with threadpool_limits(1, "blas"):
        user_basis = None if prepared.user is None else Basis.of(prepared.user.rows, prepared.user.cold, "user")
        item_basis = None if prepared.item is None else Basis.of(prepared.item.rows, prepared.item.cold, "item")
    seen = prepared.whole.matrix if isinstance(data, Interactions) else None
    places = Places(user_order, item_order)
    regression = Regression(user_basis, item_basis)
    return Asked(triples, users, items, observed, seen, regression, places, tuple(prepared.arrays()))


def _order(side: Encoded | None, count: int) -> Positions:
    """Return all rows of a side, those without data last."""
    return np.arange(count) if side is None else np.argsort(side.cold, kind="stable")


def _known(side: Encoded | None, count: int) -> int:
    return count if side is None else int((~side.cold).sum())
