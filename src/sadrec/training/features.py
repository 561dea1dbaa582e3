"""Features joined with training data, and the centres that parameters shrink to.

A row's factors are predicted + own. The prediction is a regression of the present factors on the features, and l2 holds
the row to a share of it (``SHARE``). Centres change between epochs only and follow from the factors alone, so that
neither the schedule nor checkpoints know of them.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.sparse import compressed, enlarged
from sadrec._core.types import Doubles, Floats, Positions
from sadrec.data import Interactions
from sadrec.data.ids import Ids, join_ids
from sadrec.features import Encoder, Features
from sadrec.features.predictor import ModelFeatures, Predictor, item_parts
from sadrec.features.ridge import Linear, Ridge
from sadrec.features.table import FeatureTable
from sadrec.training.dataset import TrainingData
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.given import Pairs
from sadrec.training.sgd.pairwise import Centre

SHARE = 0.5
"""The share of the prediction that is the centre: the penalties were chosen for centres at 0."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features brought together with the data of a fit.

    ``data`` is what is trained on: of interactions, items without any are left out, or training would meet them as
    negatives. ``whole`` is the same with all users and items of the model. ``features`` predict nothing yet.
    """

    whole: TrainingData
    data: TrainingData
    kept: Positions  # the items of ``data`` among all items
    features: ModelFeatures
    counts: dict[str, Doubles]  # how often each user and item of ``data`` is observed

    @cached_property
    def _user(self) -> Ridge | None:
        encoded = self.features.user
        return None if encoded is None else Ridge.observed(encoded.rows, self.counts["user"])

    @cached_property
    def _item(self) -> Ridge | None:
        encoded = self.features.item
        return None if encoded is None else Ridge.observed(encoded.rows[self.kept], self.counts["item"])

    def centre(self, factors: Factors) -> Centre:
        """Return the centres of the parameters for the present factors."""
        users = items = bias = None
        if self._user is not None:
            users = _shares(self._user, *_user_targets(factors))
        if self._item is not None:
            parts, groups = [factors.eta], [factors.k]
            if factors.bias is not None:
                parts, groups = [*parts, factors.bias[:, None]], [*groups, 1]
            shares = _shares(self._item, np.hstack(parts, dtype=np.float64), tuple(groups))
            items = np.ascontiguousarray(shares[:, : factors.k])
            bias = None if factors.bias is None else np.ascontiguousarray(shares[:, factors.k])
        return users, items, bias

    @property
    def rows(self) -> tuple[Any, Any]:
        """The encoded features of all users and of all items; None for a side that has none."""
        user, item = self.features.user, self.features.item
        return None if user is None else user.rows, None if item is None else item.rows

    def of_trained(self, validation: Any) -> Any:
        """Return held-out data without the items that are left out of training."""
        if not isinstance(validation, Interactions) or len(self.data.items) == len(self.whole.items):
            return validation
        present = self.data.items.known(validation.items)
        return Interactions.from_csr(
            validation.matrix[:, present], users=validation.users, items=validation.items[present]
        )

    def arrays(self) -> list[NDArray[Any]]:
        """Return all numbers that the result depends on, for an identity."""
        arrays: list[NDArray[Any]] = [self.kept]
        for side in (self.features.user, self.features.item):
            if side is not None:
                arrays += [side.rows.indptr, side.rows.indices, side.rows.data, side.cold]
        return arrays

    def complete(self, factors: Factors) -> tuple[Factors, ModelFeatures]:
        """Return factors of all users and items; those without history have what their features predict."""
        user, item = self.features.user, self.features.item
        xi, rows, bias, k = factors.users, factors.items, factors.bias, factors.k
        if user is not None and self._user is not None:
            user = replace(user, linear=self._user.fit(*_user_targets(factors)))
            if user.cold.any():
                xi = xi.copy()
                xi[user.cold] = user.predict(user.rows[user.cold])
        if item is not None and self._item is not None:
            item = replace(item, linear=self._item.fit(*_item_targets(factors)))
            if item.cold.any():
                given = k, factors.tau is not None, bias is not None
                eta, tau, cold_bias = item_parts(item.predict(item.rows[item.cold]), *given)
                wider = np.empty((len(self.whole.items), rows.shape[1]), np.float32)
                wider[self.kept] = rows
                wider[item.cold, :k] = eta
                if factors.tau is not None:
                    wider[item.cold, k:] = np.maximum(tau, 0)
                rows = wider
                if bias is not None:
                    all_bias = np.empty(len(rows), np.float32)
                    all_bias[self.kept], all_bias[item.cold] = bias, cold_bias
                    bias = all_bias
        elif len(self.kept) < len(self.whole.items):
            raise ValueError("items without data need features")
        full = Factors(xi, rows, bias)
        for array in full.arrays:
            if not any(array is own for own in factors.arrays):
                array.flags.writeable = False
        return full, ModelFeatures(user, item)


def _shares(ridge: Ridge, targets: Doubles, groups: tuple[int, ...]) -> Floats:
    return np.asarray(SHARE * ridge.fit(targets, groups).predict(ridge.rows), np.float32)


def _user_targets(factors: Factors) -> tuple[Doubles, tuple[int, ...]]:
    """Return the targets of the users' features, (n, k), and groups of columns with a common penalty."""
    return factors.users.astype(np.float64), (factors.k,)


def _item_targets(factors: Factors) -> tuple[Doubles, tuple[int, ...]]:
    """Return the targets of the items' features: eta, tau - 1 if rivals are learnt, and the bias."""
    parts = [factors.items.astype(np.float64)]
    parts[0][:, factors.k :] -= 1
    groups = (factors.k,) * (factors.items.shape[1] // factors.k)
    if factors.bias is not None:
        parts.append(factors.bias[:, None].astype(np.float64))
        groups += (1,)
    return np.hstack(parts), groups


def prepare(
    data: TrainingData, item_features: Any, user_features: Any, before: ModelFeatures | None = None
) -> Prepared:
    """Join features with training data.

    Features left out are those of the model that the fit starts from, ``before``, whose ids come first.
    """
    given = {"user": user_features, "item": item_features}
    past = {"user": None if before is None else before.user, "item": None if before is None else before.item}
    tables: dict[str, tuple[FeatureTable, int]] = {}
    ids = {"user": data.users, "item": data.items}
    for what, values in given.items():
        if values is not None:
            features = values if isinstance(values, Features) else Features(values)
            table = features.table(ids[what].array, what)
            tables[what] = table, features.minimum
            try:
                ids[what] = Ids(join_ids(ids[what].array, table.ids.array), what)
            except TypeError as error:
                raise TypeError(f"{what}_features: {error}{table.source}") from None
    whole = _enlarged(data, ids["user"], ids["item"])
    observed = {"user": _of_users(whole), "item": _of_items(whole)}
    sides: dict[str, Predictor | None] = {}
    for what in given:
        old = past[what]
        history = observed[what] > 0
        if old is not None:
            history[: len(old.cold)] |= ~old.cold
        if what in tables:
            table, minimum = tables[what]
            encoder = Encoder.fit(table, Ids(ids[what].array[history], what), minimum)
            sides[what] = _unfitted(encoder, _aligned(encoder.encode(table), table.ids, ids[what]), ~history)
        elif old is not None:
            empty = sp.csr_matrix((len(history) - old.rows.shape[0], old.rows.shape[1]))
            sides[what] = _unfitted(old.encoder, sp.csr_matrix(sp.vstack((old.rows, empty))), ~history)
        else:
            sides[what] = None
    item = sides["item"]
    kept = np.arange(len(whole.items))
    trained = whole
    if item is not None and item.cold.any():
        kept = np.flatnonzero(~item.cold)
        if whole.matrix is not None:
            trained = _without(whole, kept)
    counts = {"user": observed["user"], "item": observed["item"]}
    if trained.matrix is not None:
        counts["item"] = counts["item"][kept] + trained.matrix.nnz / len(kept)  # as a negative
    else:
        kept = np.arange(len(whole.items))
    return Prepared(whole, trained, kept, ModelFeatures(**sides), counts)


def _unfitted(encoder: Encoder, rows: Any, cold: NDArray[np.bool_]) -> Predictor:
    return Predictor(encoder, rows, cold, Linear(np.empty((rows.shape[1], 0)), np.empty(0)))


def _aligned(encoded: Any, table: Ids, ids: Ids) -> Any:
    """Return encoded rows in the order of ids; those that the table lacks are empty."""
    present = table.known(ids.array)
    place = np.asarray(table.positions(ids.array[present]))
    choose = sp.csr_matrix((np.ones(len(place)), (np.flatnonzero(present), place)), shape=(len(ids), encoded.shape[0]))
    return sp.csr_matrix(choose @ encoded)


def _enlarged(data: TrainingData, users: Ids, items: Ids) -> TrainingData:
    if len(users) == len(data.users) and len(items) == len(data.items):
        return data
    matrix = None if data.matrix is None else enlarged(data.matrix, len(users), len(items))
    return replace(data, users=users, items=items, matrix=matrix)


def _without(data: TrainingData, kept: Positions) -> TrainingData:
    """Return the data with these items alone; the others occur nowhere."""
    place = np.zeros(len(data.items), np.int32)
    place[kept] = np.arange(len(kept))
    matrix = compressed(data.matrix, np.arange(len(data.users)), kept)
    pairs = data.comparisons
    if pairs is not None:
        pairs = Pairs(pairs.user, place[pairs.winner], place[pairs.loser], pairs.weight)
    return replace(data, items=Ids(data.items.array[kept], "item"), matrix=matrix, comparisons=pairs)


def _of_users(data: TrainingData) -> Doubles:
    counts = np.zeros(len(data.users))
    if data.matrix is not None:
        counts += np.diff(data.matrix.indptr)
    if data.comparisons is not None:
        counts += np.bincount(data.comparisons.user, minlength=len(counts))
    return counts


def _of_items(data: TrainingData) -> Doubles:
    counts = np.zeros(len(data.items))
    if data.matrix is not None:
        counts += np.bincount(data.matrix.indices, minlength=len(counts))
    if data.comparisons is not None:
        for side in (data.comparisons.winner, data.comparisons.loser):
            counts += np.bincount(side, minlength=len(counts))
    return counts
