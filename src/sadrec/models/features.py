"""Features in a model: what is prepared before a fit, what is kept after it, and what they explain."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._sparse import checked_csr
from sadrec._types import Doubles, Positions
from sadrec.data import Interactions
from sadrec.data._matrix import compressed, enlarged, join_ids
from sadrec.data.ids import Ids
from sadrec.features import Encoder, Features
from sadrec.features.ridge import Linear
from sadrec.features.table import Table
from sadrec.ranking import Parameters
from sadrec.training.centres import Centres, Side, item_targets, user_targets
from sadrec.training.dataset import TrainingData
from sadrec.training.factors import Factors
from sadrec.training.given import Pairs

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Predictor:
    """What the features of the users, or of the items, of a model predict."""

    encoder: Encoder
    rows: Any  # CSR: the encoded features of every row of the model; empty where none are known
    linear: Linear  # of users: xi; of items: eta, tau - 1 where rivals are learnt, the bias where there is one
    cold: Mask  # which rows have no history

    def predict(self, rows: Any) -> Doubles:
        """Return the predicted targets for encoded features."""
        return self.linear.predict(rows)


@dataclass(frozen=True, eq=False)
class ModelFeatures:
    """What a model knows by features; None for a side that has none."""

    user: Predictor | None = None
    item: Predictor | None = None

    def side(self, what: str) -> Predictor:
        """Return one side, "item" or "user"."""
        predictor = self.item if what == "item" else self.user
        if predictor is None:
            raise ValueError(f"the model was fitted without {what}_features: give them to fit")
        return predictor


@dataclass(frozen=True, eq=False)
class Encoded:
    """The features of one side before a fit, over all ids of the model."""

    encoder: Encoder
    rows: Any
    cold: Mask


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features brought together with the data of a fit.

    ``data`` is what is trained on: of interactions, items without any are left out, or training would meet them as
    negatives. ``whole`` is the same with all users and items of the model.
    """

    whole: TrainingData
    data: TrainingData
    kept: Positions  # the items of ``data`` among all items
    user: Encoded | None
    item: Encoded | None
    counts: dict[str, Doubles]  # how often each user and item of ``data`` is observed

    def centres(self) -> Centres:
        """Return what training asks for its centres."""
        user = None if self.user is None else Side(self.user.rows, self.counts["user"])
        item = None if self.item is None else Side(self.item.rows[self.kept], self.counts["item"])
        return Centres(user, item)

    @property
    def rows(self) -> tuple[Any, Any]:
        """The encoded features of all users and of all items; None for a side that has none."""
        return None if self.user is None else self.user.rows, None if self.item is None else self.item.rows

    def of_trained(self, validation: Any) -> Any:
        """Return held-out data without the items that are left out of training."""
        if not isinstance(validation, Interactions) or len(self.data.items) == len(self.whole.items):
            return validation
        known = self.data.items.known(validation.items)
        return Interactions.from_csr(validation.matrix[:, known], users=validation.users, items=validation.items[known])

    def arrays(self) -> list[NDArray[Any]]:
        """Return all numbers that the result depends on, for an identity."""
        found: list[NDArray[Any]] = [self.kept]
        for side in (self.user, self.item):
            if side is not None:
                found += [side.rows.indptr, side.rows.indices, side.rows.data, side.cold]
        return found

    def complete(self, factors: Factors, centres: Centres) -> tuple[Parameters, ModelFeatures]:
        """Return parameters of all users and items; those without history have what their features predict."""
        user = item = None
        xi, rows, bias, k = factors.users, factors.items, factors.bias, factors.k
        if centres.user is not None and self.user is not None:
            prediction = centres.user.fit(*user_targets(factors))
            user = Predictor(self.user.encoder, self.user.rows, prediction, self.user.cold)
            if self.user.cold.any():
                xi = xi.copy()
                xi[self.user.cold] = prediction.predict(self.user.rows[self.user.cold])
        if centres.item is not None and self.item is not None:
            prediction = centres.item.fit(*item_targets(factors))
            item = Predictor(self.item.encoder, self.item.rows, prediction, self.item.cold)
            if self.item.cold.any():
                eta, tau, cold_bias = item_parts(prediction.predict(self.item.rows[self.item.cold]), k, factors)
                wider = np.empty((len(self.whole.items), rows.shape[1]), np.float32)
                wider[self.kept] = rows
                wider[self.item.cold, :k] = eta
                if factors.tau is not None:
                    wider[self.item.cold, k:] = tau
                rows = wider
                if bias is not None:
                    all_bias = np.empty(len(rows), np.float32)
                    all_bias[self.kept], all_bias[self.item.cold] = bias, cold_bias
                    bias = all_bias
        elif len(self.kept) < len(self.whole.items):
            raise ValueError("items without data need features")
        full = Factors(xi, rows, bias)
        for array in full.arrays:
            if not any(array is own for own in factors.arrays):
                array.flags.writeable = False
        return Parameters(full.users, full.eta, full.tau, full.bias), ModelFeatures(user, item)


def item_parts(predicted: Doubles, k: int, like: Factors | Parameters) -> tuple[Doubles, Doubles, Doubles]:
    """Return eta, tau and bias of predicted items; tau is 1 and the bias 0 for a model without."""
    learns = (like.tau if isinstance(like, Factors) else like.rival_factors) is not None
    has_bias = (like.bias if isinstance(like, Factors) else like.item_bias) is not None
    tau = np.maximum(predicted[:, k : 2 * k] + 1, 0) if learns else np.ones((len(predicted), k))
    return predicted[:, :k], tau, predicted[:, -1] if has_bias else np.zeros(len(predicted))


def prepare(
    data: TrainingData, item_features: Any, user_features: Any, before: ModelFeatures | None = None
) -> Prepared | None:
    """Bring features and data together; None where there are no features.

    Features left out are those of the model that the fit starts from, ``before``, whose ids come first.
    """
    given = {"user": user_features, "item": item_features}
    past = {"user": None if before is None else before.user, "item": None if before is None else before.item}
    if all(given[what] is None and past[what] is None for what in given):
        return None
    data = data.joined()
    tables: dict[str, tuple[Table, int]] = {}
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
    sides: dict[str, Encoded | None] = {}
    for what in given:
        old = past[what]
        history = observed[what] > 0
        if old is not None:
            history[: len(old.cold)] |= ~old.cold
        if what in tables:
            table, minimum = tables[what]
            encoder = Encoder.fit(table, Ids(ids[what].array[history], what), minimum)
            sides[what] = Encoded(encoder, _aligned(encoder.encode(table), table.ids, ids[what]), ~history)
        elif old is not None:
            more = sp.csr_matrix((len(history) - old.rows.shape[0], old.rows.shape[1]))
            sides[what] = Encoded(old.encoder, sp.csr_matrix(sp.vstack((old.rows, more))), ~history)
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
    return Prepared(whole, trained, kept, sides["user"], item, counts)


def _aligned(encoded: Any, table: Ids, ids: Ids) -> Any:
    """Return encoded rows in the order of ids; those that the table lacks are empty."""
    known = table.known(ids.array)
    place = np.asarray(table.positions(ids.array[known]))
    choose = sp.csr_matrix((np.ones(len(place)), (np.flatnonzero(known), place)), shape=(len(ids), encoded.shape[0]))
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


# -- files ------------------------------------------------------------------------------------------------------------


def pack_features(features: ModelFeatures | None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what the header of a model's file says of features, and their arrays."""
    header: dict[str, Any] = {}
    tensors: dict[str, NDArray[Any]] = {}
    for what in ("user", "item"):
        predictor = None if features is None else getattr(features, what)
        if predictor is None:
            continue
        header[what], arrays = predictor.encoder.pack()
        rows = predictor.rows
        arrays |= {
            "indptr": rows.indptr.astype(np.int64),
            "indices": rows.indices.astype(np.int64),
            "data": rows.data.astype(np.float64),
            "coefficients": predictor.linear.coefficients,
            "intercept": predictor.linear.intercept,
            "cold": predictor.cold.astype(np.uint8),
        }
        tensors |= {f"{what}_features_{name}": array for name, array in arrays.items()}
    return header, tensors


def unpack_features(
    header: Any, tensors: Mapping[str, NDArray[Any]], parameters: Parameters, finite: bool
) -> ModelFeatures | None:
    """Return the features of a model from its file, checked; None where there are none."""
    if not header:
        return None
    targets = {
        "user": parameters.n_factors,
        "item": parameters.n_factors * (1 + (parameters.rival_factors is not None))
        + (parameters.item_bias is not None),
    }
    sizes = {"user": parameters.n_users, "item": parameters.n_items}
    found = {}
    for what, values in header.items():
        start = f"{what}_features_"
        own = {name[len(start) :]: array.view(np.ndarray) for name, array in tensors.items() if name.startswith(start)}
        encoder = Encoder.unpack(values, own)
        width, count = len(encoder.columns), sizes[what]
        shapes: dict[str, tuple[int, ...]]
        shapes = {"coefficients": (width, targets[what]), "intercept": (targets[what],), "cold": (count,)}
        for name, shape in shapes.items():
            dtype = np.uint8 if name == "cold" else np.float64
            if own[name].shape != shape or own[name].dtype != dtype:
                raise ValueError(f"{start}{name} does not fit the model")
        indptr, indices, data = own["indptr"], own["indices"], own["data"]
        if finite and not all(np.isfinite(own[name]).all() for name in shapes):
            raise ValueError(f"{start}coefficients and the like are not made of finite numbers")
        rows = checked_csr(data, indices, indptr, (count, width), f"the {what} features")
        linear = Linear(own["coefficients"], own["intercept"])
        found[what] = Predictor(encoder, rows, linear, own["cold"].astype(np.bool_))
    return ModelFeatures(**found)


# -- why --------------------------------------------------------------------------------------------------------------


def explained_by_features(
    features: ModelFeatures, parameters: Parameters, user: int, item: int, rival: int
) -> tuple[float, list[tuple[str, float]]]:
    """Return what the margin would be by features alone, and what each column adds to it, largest first.

    With ``B`` the margin as a bilinear form of what is predicted of item and rival, z0 what is predicted without any
    feature and w the coefficients, the columns of the item add ``B(f w, (z_j + z0) / 2)``, those of the rival
    ``B((z_i + z0) / 2, f w)``: together exactly ``B(z_i, z_j)``. The user's vector is as it is.
    """
    predictor = features.side("item")
    k = parameters.n_factors
    xi = parameters.user_factors[user].astype(np.float64)
    pair = predictor.rows[[item, rival]]
    base = predictor.linear.intercept[None]
    z = predictor.predict(pair)
    learns, has_bias = parameters.rival_factors is not None, parameters.item_bias is not None

    def split(values: Doubles, one: float) -> tuple[Doubles, Doubles, Doubles]:
        tau = values[:, k : 2 * k] + one if learns else np.full((len(values), k), one)
        return values[:, :k], tau, values[:, -1] if has_bias else np.zeros(len(values))

    middle = [split((z[[side]] + base) / 2, 1.0) for side in (0, 1)]
    columns: dict[int, float] = {}
    for side, sign in ((0, 1.0), (1, -1.0)):
        row = pair[[side]]
        parts = row.data[:, None] * predictor.linear.coefficients[row.indices]
        a, b, c = split(parts, 0.0)
        d, e, _ = middle[1 - side]
        values = sign * ((a * e - d * b) @ xi + c)
        for column, value in zip(row.indices.tolist(), values.tolist(), strict=True):
            columns[column] = columns.get(column, 0.0) + value
    first, second = split(z[[0]], 1.0), split(z[[1]], 1.0)
    total = float(((first[0] * second[1] - second[0] * first[1]) @ xi + first[2] - second[2])[0])
    names = predictor.encoder.columns
    ordered = sorted(columns.items(), key=lambda entry: (-abs(entry[1]), entry[0]))
    return total, [(names[column], value) for column, value in ordered]
