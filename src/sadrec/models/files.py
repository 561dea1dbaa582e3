"""Model files: factors, bias, ids and seen items, without any code."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.check import number
from sadrec._core.files import (
    FileFormatError,
    Pieces,
    checksum_for,
    checksum_of,
    kind_in_words,
    plain,
    read_arrays,
    write_arrays,
)
from sadrec._core.sparse import check_starts, checked_csr
from sadrec.data.ids import IdArray, Ids, text_ids
from sadrec.features.predictor import pack_features, unpack_features
from sadrec.models.base import ModelFileError
from sadrec.models.state import State
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Belief, Gaussian, Point
from sadrec.ranking.controls import Controls
from sadrec.ranking.results import Results
from sadrec.ranking.ties import Ties
from sadrec.training.engine import EngineResult
from sadrec.training.loop import Figures
from sadrec.training.settings import Settings

Tensors = dict[str, NDArray[Any]]

FORMAT = 1
_PARAMETERS = ("user_factors", "item_factors", "rival_factors", "item_bias", "user_mean")
_GAUSSIAN = ("user_covariance", "item_covariance", "population", "pairings", "pairing_mean", "pairing_variance")
_OWN = ("own", "own_mean", "own_variance")
_ID_KINDS = {"i": "<i8", "u": "<u8", "f": "<f8", "M": "<i8"}


def save_model(path: str | Path, state: State, class_name: str, params: Mapping[str, Any]) -> None:
    """Write a model, whole or not at all: its state, its class and its settings as given."""
    write_arrays(Path(path), *_content(state, class_name, params))


def model_checksum(state: State, class_name: str, params: Mapping[str, Any]) -> str:
    """Return the checksum of the file that a model was read from, or would have if it were saved."""
    return state.file[1] if state.file is not None else checksum_for(*_content(state, class_name, params))


def _content(state: State, class_name: str, params: Mapping[str, Any]) -> tuple[Tensors, dict[str, Any]]:
    """Return the arrays and the header of the file of a model."""
    arrays = {name: getattr(state.parameters, name) for name in _PARAMETERS}
    tensors = {name: array for name, array in arrays.items() if array is not None}
    ids = {"users": state.users.array, "items": state.items.array}
    kinds = {name: pack_ids(name, array, tensors) for name, array in ids.items()}
    scale = state.belief.pairing_scale if isinstance(state.belief, Gaussian) else None
    header = _header(state.settings, state.history, class_name, params, kinds, scale)
    if isinstance(state.belief, Gaussian):
        tensors |= {name: getattr(state.belief, name) for name in (*_GAUSSIAN, *_OWN)}
        header["own_scale"] = state.belief.own_scale
        if (ties := state.belief.ties) is not None:
            header["ties"] = [ties.common, ties.slope]
            tensors |= {"tie_item": ties.item, "tie_user": ties.user}
        if (controls := state.belief.controls) is not None:
            header["controls"] = list(controls.names)
            tensors |= {"control_mean": controls.mean, "control_covariance": controls.covariance}
    if state.features is not None:
        header["features"], of_features = pack_features(state.features)
        tensors |= of_features
    if state.results is not None:
        tensors |= {f"results_{name}": array for name, array in state.results._asdict().items()}
    return {**tensors, **pack_seen(state.seen)}, header


def write_result(
    path: str | Path,
    result: EngineResult,
    settings: Settings,
    history: list[Figures],
    class_name: str,
    params: Mapping[str, Any],
) -> None:
    """Write a model that other processes hold, a piece at a time."""
    k, rows = settings.factors, result.item_rows
    tensors: dict[str, NDArray[Any] | Pieces] = {
        "user_factors": result.user_factors,
        "item_factors": rows[:, :k],
        **({"rival_factors": rows[:, k:]} if settings.learn_rivals else {}),
        **({} if result.item_bias is None else {"item_bias": result.item_bias}),
        "seen_indptr": result.seen_indptr,
        "seen_indices": result.seen_indices,
        "seen_data": result.seen_data,
    }
    ids: Tensors = {}
    kinds = {name: pack_ids(name, array, ids) for name, array in (("users", result.users), ("items", result.items))}
    write_arrays(Path(path), tensors | ids, _header(settings, history, class_name, params, kinds))


def _header(
    settings: Settings | None,
    history: list[Figures],
    class_name: str,
    params: Mapping[str, Any],
    ids: Mapping[str, str],
    pairing_scale: float | None = None,
) -> dict[str, Any]:
    """Return the header of a model file; ``ids`` are the types of its ids."""
    return {
        "kind": "model",
        "format": FORMAT,
        "ids": ids,
        "class": class_name,
        "params": plain(params),
        "settings": None if settings is None else settings.as_dict(),
        "history": history,
        "pairing_scale": pairing_scale,
    }


def _settled_header(header: Mapping[str, Any]) -> tuple[Settings | None, list[Any], dict[str, Any], str]:
    """Return the settings that were used, the history, the settings as given and the class, checked."""
    settings = None if header["settings"] is None else Settings.from_dict(header["settings"])
    history, params, name = header["history"], header["params"], header["class"]
    if not isinstance(history, list) or not all(isinstance(figures, dict) for figures in history):
        raise ValueError("its history is not a list of figures")
    if not isinstance(params, dict) or not isinstance(name, str):
        raise ValueError("its settings are not a mapping, or its class has no name")
    return settings, history, params, name


def read_kind(path: str | Path, kind: str, version: int, verify: bool = True) -> tuple[Tensors, dict[str, Any]]:
    """Return arrays and header of a file of this kind and version, or raise a ModelFileError."""
    tensors, header = read_arrays(Path(path), f"a sadrec {kind}", verify)
    if header.get("kind") != kind:
        raise ModelFileError(f"{str(path)!r} is not a sadrec {kind} but {kind_in_words(header.get('kind'))}")
    if header.get("format") != version:
        raise ModelFileError(
            f"{str(path)!r} has the format {header.get('format')!r}, this version reads {version}: update sadrec"
        )
    return tensors, header


def load_model(path: str | Path, mmap: bool, verify: bool) -> tuple[State, str, dict[str, Any]]:
    """Return the state of a model, the name of its class and its settings as given, or raise a ModelFileError.

    Shapes, types, offsets and positions are checked in any case; the items seen in training, when they are first
    needed. Numbers are checked only where they are verified or copied to memory.
    """
    with refusing(path, "a sadrec model"):
        tensors, header = read_kind(path, "model", FORMAT, verify)
        file = Path(path).absolute(), checksum_of(Path(path))
        if not mmap:
            tensors = {name: np.array(array) for name, array in tensors.items()}
        parameters = _parameters(tensors, finite=verify or not mmap)
        shape = parameters.n_users, parameters.n_items
        users, items = (
            Ids(unpack_ids(f"{what}s", header["ids"][f"{what}s"], tensors, count), what)
            for what, count in zip(("user", "item"), shape, strict=True)
        )

        def seen() -> Any:
            with refusing(path, "a sadrec model"):
                return unpack_seen(tensors, shape)

        settings, history, params, name = _settled_header(header)
        lazily = mmap and not verify
        belief = _belief(tensors, header, parameters, finite=verify or not mmap)
        features = unpack_features(header.get("features"), tensors, _targets(parameters), finite=verify or not mmap)
        seen_rows = seen if lazily else seen()
        results = unpack_results(tensors, shape, finite=verify or not mmap)
        return State(belief, users, items, seen_rows, settings, history, features, file, results), name, params


@contextmanager
def refusing(path: str | Path, kind: str) -> Iterator[None]:
    """Turn any error while a file is read into a ModelFileError that names the file."""
    try:
        yield
    except ModelFileError:
        raise
    except FileFormatError as error:
        raise ModelFileError(
            f"{error}; make it again (sadrec fit makes a model of a table), or fetch it again"
        ) from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{str(path)!r} cannot be read as {kind}: {error}") from error


def _parameters(tensors: Tensors, finite: bool) -> Parameters:
    """Take out the parameters and check that they fit each other."""
    parameters = Parameters(**_arrays(tensors, _PARAMETERS, finite))
    if not parameters.n_factors or not parameters.n_items:
        raise ValueError(f"factors of shapes {parameters.user_factors.shape} and the like do not fit a model")
    return parameters


def _arrays(tensors: Tensors, names: Sequence[str], finite: bool) -> Tensors:
    """Take out parameters, each checked by itself."""
    arrays = {name: tensors[name].view(np.ndarray) for name in names if name in tensors}
    for name, array in arrays.items():
        if array.dtype != np.float32 or (finite and not np.isfinite(array).all()):
            raise ValueError(f"{name} is not made of finite float32 numbers")
        if finite and name == "rival_factors" and array.min(initial=0) < 0:
            raise ValueError("rival_factors must not be negative")
        array.flags.writeable = False
    return arrays


def _targets(parameters: Parameters) -> dict[str, tuple[int, int]]:
    """Return the numbers of users and items, and the number of targets that features predict of each."""
    k, learns, has_bias = parameters.n_factors, parameters.rival_factors is not None, parameters.item_bias is not None
    return {"user": (parameters.n_users, k), "item": (parameters.n_items, k * (1 + learns) + has_bias)}


def _belief(tensors: Tensors, header: Mapping[str, Any], parameters: Parameters, finite: bool) -> Belief:
    """Take out the covariances of the parameters, if any, and check that they fit the parameters."""
    if header.get("pairing_scale") is None:
        return Point(parameters)
    if parameters.item_bias is None:
        raise ValueError("it has covariances, but no item_bias")
    n, m, k = parameters.n_users, parameters.n_items, parameters.n_factors + 1
    pairings = tensors["pairings"]
    shapes = {"user_covariance": (n, k, k), "item_covariance": (m, 2 * k, 2 * k), "population": (4, k - 1)}
    shapes |= {"pairings": (pairings.size,), "pairing_mean": (pairings.size,), "pairing_variance": (pairings.size,)}
    shapes |= dict.fromkeys(_OWN, (tensors["own"].size,))
    types = {"population": np.float64, "pairings": np.int64, "own": np.int64}
    for name, shape in shapes.items():
        array = tensors[name]
        if array.shape != shape or array.dtype != types.get(name, np.float32):
            raise ValueError(f"{name} does not fit the parameters")
        if finite and not np.isfinite(array).all():
            raise ValueError(f"{name} is not made of finite numbers")
    for name, keys, most in (("pairings", pairings, m * m), ("own scores", tensors["own"], n * m)):
        if (np.diff(keys) <= 0).any() or (keys.size and not 0 <= keys[0] <= keys[-1] < most):
            raise ValueError(f"the {name} are out of order, or of items that it does not have")
    if not pairings.size:
        raise ValueError("the pairings are missing")
    if finite:
        diagonals = [np.diagonal(tensors[f"{side}_covariance"], axis1=1, axis2=2) for side in ("user", "item")]
        variances = [part for name, part in tensors.items() if name in ("pairing_variance", "own_variance")]
        if min(part.min(initial=0) for part in (*diagonals, *variances)) < -1e-3:
            raise ValueError("a variance is negative")
    arrays: dict[str, Any] = {name: tensors[name].view(np.ndarray) for name in (*_GAUSSIAN, *_OWN)}
    return Gaussian(
        parameters,
        **arrays,
        pairing_scale=number(header["pairing_scale"], "pairing_scale"),
        own_scale=number(header["own_scale"], "own_scale"),
        ties=None if header.get("ties") is None else _ties(tensors, header["ties"], parameters, finite),
        controls=None if header.get("controls") is None else _controls(tensors, header["controls"]),
    )


def _controls(tensors: Tensors, names: Any) -> Controls:
    """Take out the coefficients of the features of comparisons."""
    mean, covariance = (np.array(tensors[f"control_{name}"]) for name in ("mean", "covariance"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of the features are not a list of texts")
    if mean.shape != (len(names),) or covariance.shape != (len(names), len(names)):
        raise ValueError("the coefficients do not fit their names")
    if mean.dtype != np.float64 or covariance.dtype != np.float64 or not np.isfinite(covariance).all():
        raise ValueError("the coefficients are not finite numbers of double precision")
    return Controls(tuple(names), mean, covariance)


def _ties(tensors: Tensors, numbers: Any, parameters: Parameters, finite: bool) -> Ties:
    """Take out the parameters of ties."""
    common, slope = (number(value, "ties", -np.inf) for value in numbers)
    widths = _arrays(tensors, ("tie_item", "tie_user"), finite)
    item, user = widths["tie_item"], widths["tie_user"]
    if item.shape != (parameters.n_items,) or user.shape != (parameters.n_users,):
        raise ValueError("the widths of ties do not fit the parameters")
    return Ties(common, slope, item, user)


def pack_ids(name: str, ids: IdArray, tensors: Tensors) -> str:
    """Add ids to the tensors and return their type; text is kept as UTF-8 bytes and offsets."""
    if ids.dtype.kind == "U":
        encoded = [text.encode("utf-8", "surrogatepass") for text in ids.tolist()]
        tensors[name] = np.frombuffer(b"".join(encoded), np.uint8)
        tensors[f"{name}_offsets"] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return "text"
    tensors[name] = ids.view(np.int64) if ids.dtype.kind == "M" else ids.astype(_ID_KINDS[ids.dtype.kind])
    return ids.dtype.str


def unpack_ids(name: str, kind: str, tensors: Tensors, count: int) -> IdArray:
    """Return the ids that were packed."""
    if kind == "text":
        blob, offsets = tensors[name].tobytes(), tensors[f"{name}_offsets"]
        check_starts(offsets, count, len(blob), f"the list of {name}", "id")
        texts = [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(offsets.tolist())]
        return text_ids(texts)  # refuses a single long text, which would make all of them as wide
    dtype = np.dtype(kind)
    if dtype.kind not in _ID_KINDS or dtype.itemsize != 8 or tensors[name].shape != (count,):
        raise ValueError(f"the {name} are not {count} ids of a known type")
    return np.array(tensors[name]).view(dtype) if dtype.kind == "M" else tensors[name].astype(dtype)


def unpack_results(tensors: Tensors, shape: tuple[int, int], finite: bool) -> Results | None:
    """Return the results of comparisons, checked, or None."""
    if "results_user" not in tensors:
        return None
    results = Results(*(tensors[f"results_{name}"].view(np.ndarray) for name in Results._fields))
    types = (np.int32,) * 3 + (np.float32,) * 3
    for array, kind in zip(results, types, strict=True):
        if array.shape != results.user.shape or array.dtype != kind:
            raise ValueError("the results of comparisons do not fit each other")
    for array, size in zip(results[:3], (shape[0], shape[1], shape[1]), strict=True):
        if finite and array.size and not 0 <= array.min() <= array.max() < size:
            raise ValueError("the results of comparisons are of users or items that the model does not have")
    if finite and not all(np.isfinite(array).all() and array.min(initial=0) >= 0 for array in results[3:]):
        raise ValueError("the results of comparisons are not counts")
    return results


def pack_seen(seen: Any) -> Tensors:
    """Return the items seen in training as arrays."""
    if seen is None:
        return {}
    return {"seen_indptr": seen.indptr.astype(np.int64), "seen_indices": seen.indices, "seen_data": seen.data}


def unpack_seen(tensors: Tensors, shape: tuple[int, int]) -> Any:
    """Return the items seen in training, checked, or None."""
    if "seen_indptr" not in tensors:
        return None
    indptr, indices, data = (tensors[f"seen_{part}"] for part in ("indptr", "indices", "data"))
    return checked_csr(data, indices, indptr, shape, "what was seen in training")
