"""The fitted regression of factors on features, and how much of a margin it explains."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.sparse import checked_csr
from sadrec._core.types import Doubles, Floats, Mask
from sadrec.features.encoder import Encoder
from sadrec.features.ridge import Linear


@dataclass(frozen=True, eq=False)
class Predictor:
    """The features of the users, or of the items, of a model, and what they predict."""

    encoder: Encoder
    rows: Any  # CSR: the encoded features of every row of the model; empty where none are known
    cold: Mask  # which rows have no history
    linear: Linear  # of users: xi; of items: eta, tau - 1 where rivals are learnt, the bias where there is one

    def predict(self, rows: Any) -> Doubles:
        """Return the predicted targets for encoded features."""
        return self.linear.predict(rows)


@dataclass(frozen=True, eq=False)
class ModelFeatures:
    """The predictors of a model, for items and for users; None for a side without features."""

    user: Predictor | None = None
    item: Predictor | None = None

    def side(self, what: str) -> Predictor:
        """Return one side, "item" or "user"."""
        predictor = self.item if what == "item" else self.user
        if predictor is None:
            raise ValueError(f"the model was fitted without {what}_features: give them to fit")
        return predictor


def item_parts(predicted: Doubles, k: int, learn_rivals: bool, bias: bool, one: float = 1.0) -> tuple[Doubles, ...]:
    """Return eta, tau and bias of predicted items; tau is ``one``, and the bias 0, for a model that learns none."""
    tau = predicted[:, k : 2 * k] + one if learn_rivals else np.full((len(predicted), k), one)
    return predicted[:, :k], tau, predicted[:, -1] if bias else np.zeros(len(predicted))


# -- files ------------------------------------------------------------------------------------------------------------


def pack_features(features: ModelFeatures | None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays that describe features in a model file."""
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
    header: Any, tensors: Mapping[str, NDArray[Any]], sizes: Mapping[str, tuple[int, int]], finite: bool
) -> ModelFeatures | None:
    """Return the features of a model from its file, checked; None where there are none.

    ``sizes`` are the number of rows and of predicted targets of each side.
    """
    if not header:
        return None
    sides = {}
    for what, values in header.items():
        start = f"{what}_features_"
        own = {name[len(start) :]: array.view(np.ndarray) for name, array in tensors.items() if name.startswith(start)}
        encoder = Encoder.unpack(values, own)
        width, (count, targets) = len(encoder.columns), sizes[what]
        shapes: dict[str, tuple[int, ...]]
        shapes = {"coefficients": (width, targets), "intercept": (targets,), "cold": (count,)}
        for name, shape in shapes.items():
            dtype = np.uint8 if name == "cold" else np.float64
            if own[name].shape != shape or own[name].dtype != dtype:
                raise ValueError(f"{start}{name} does not fit the model")
        indptr, indices, data = own["indptr"], own["indices"], own["data"]
        if finite and not all(np.isfinite(own[name]).all() for name in shapes):
            raise ValueError(f"{start}coefficients and the like are not made of finite numbers")
        rows = checked_csr(data, indices, indptr, (count, width), f"the {what} features")
        linear = Linear(own["coefficients"], own["intercept"])
        sides[what] = Predictor(encoder, rows, own["cold"].astype(np.bool_), linear)
    return ModelFeatures(**sides)


# -- why --------------------------------------------------------------------------------------------------------------


def explained_by_features(
    predictor: Predictor, vector: Floats, item: int, rival: int, learn_rivals: bool, bias: bool
) -> tuple[float, list[tuple[str, float]]]:
    """Return the margin by features of the items alone, and what each column adds to it, largest first.

    With ``B`` the margin as a bilinear form of what is predicted of item and rival, z0 what is predicted without any
    feature and w the coefficients, the columns of the item add ``B(f w, (z_j + z0) / 2)``, those of the rival
    ``B((z_i + z0) / 2, f w)``: together exactly ``B(z_i, z_j)``. ``vector`` is the user's.
    """
    k, xi = len(vector), vector.astype(np.float64)
    pair = predictor.rows[[item, rival]]
    base = predictor.linear.intercept[None]
    z = predictor.predict(pair)

    def split(values: Doubles, one: float) -> tuple[Doubles, ...]:
        return item_parts(values, k, learn_rivals, bias, one)

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
