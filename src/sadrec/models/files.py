"""A model as a file: factors, bias, ids and what was seen, without any code in it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._files import FileFormatError, read_arrays, write_arrays
from sadrec.data.ids import IdArray, text_ids
from sadrec.models.errors import ModelFileError

FORMAT = 1
_KIND = "a sadrec model"
_ID_KINDS = {"i": "<i8", "u": "<u8", "f": "<f8", "M": "<i8"}


def save_model(path: str | Path, arrays: dict[str, NDArray[Any]], header: dict[str, Any], seen: Any) -> None:
    """Write a model, whole or not at all.

    Parameters
    ----------
    path
        Where to.
    arrays
        The parameters by name, and the ids as ``users`` and ``items``.
    header
        Class and settings.
    seen
        CSR matrix of what was seen in training, or None.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name the file to write")
    tensors = {name: array for name, array in arrays.items() if name not in ("users", "items")}
    kinds = {}
    for name in ("users", "items"):
        kinds[name] = _pack_ids(name, arrays[name], tensors)
    if seen is not None:
        tensors["seen_indptr"], tensors["seen_indices"] = seen.indptr.astype(np.int64), seen.indices
        tensors["seen_data"] = seen.data
    write_arrays(Path(path), tensors, {"kind": "model", "format": FORMAT, "ids": kinds, **header})


def load_model(path: str | Path, mmap: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any], Any]:
    """Return the arrays, the header and what was seen, checked: shapes, ranges, finiteness.

    Raises
    ------
    ModelFileError
        When the file is not a model that this version can read, in any way.
    """
    try:
        tensors, header = read_arrays(Path(path), _KIND)
        if header.get("kind") != "model":
            raise ModelFileError(f"{str(path)!r} is not {_KIND} but {header.get('kind')!r}")
        if header.get("format") != FORMAT:
            raise ModelFileError(
                f"{str(path)!r} has the format {header.get('format')!r}, this version reads {FORMAT}: update sadrec"
            )
        if not mmap:
            tensors = {name: np.array(array) for name, array in tensors.items()}
        arrays = _parameters(tensors)
        n, m = len(arrays["user_factors"]), len(arrays["item_factors"])
        for name, count in (("users", n), ("items", m)):
            arrays[name] = _unpack_ids(name, header["ids"][name], tensors, count)
        return arrays, header, _seen(tensors, (n, m))
    except (ModelFileError, FileNotFoundError):
        raise
    except (FileFormatError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{str(path)!r} cannot be read as {_KIND}: {error}") from error


def _parameters(tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Take out the parameters and check that they fit each other."""
    names = ("user_factors", "item_factors", "rival_factors", "item_bias")
    arrays: dict[str, NDArray[Any]] = {name: tensors[name] for name in names if name in tensors}
    users, items = arrays["user_factors"], arrays["item_factors"]
    if users.ndim != 2 or items.ndim != 2 or users.shape[1] != items.shape[1] or not users.shape[1]:
        raise ValueError(f"factors of shapes {users.shape} and {items.shape} do not fit")
    if "rival_factors" in arrays and arrays["rival_factors"].shape != items.shape:
        raise ValueError("rival_factors do not have the shape of item_factors")
    if "item_bias" in arrays and arrays["item_bias"].shape != items.shape[:1]:
        raise ValueError("item_bias is not one number per item")
    for name, array in arrays.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ValueError(f"{name} is not made of finite float32 numbers")
    return arrays


def _pack_ids(name: str, ids: IdArray, tensors: dict[str, NDArray[Any]]) -> str:
    """Add ids to the tensors and return their type; text is kept as UTF-8 bytes and offsets."""
    if ids.dtype.kind == "U":
        encoded = [text.encode("utf-8", "surrogatepass") for text in ids.tolist()]
        tensors[name] = np.frombuffer(b"".join(encoded), np.uint8)
        tensors[f"{name}_offsets"] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return "text"
    tensors[name] = ids.view(np.int64) if ids.dtype.kind == "M" else ids.astype(_ID_KINDS[ids.dtype.kind])
    return ids.dtype.str


def _unpack_ids(name: str, kind: str, tensors: dict[str, NDArray[Any]], count: int) -> IdArray:
    """Return the ids as they were."""
    if kind == "text":
        blob, offsets = tensors[name].tobytes(), tensors[f"{name}_offsets"]
        _check_offsets(offsets, count, len(blob), f"the list of {name}")
        texts = [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(offsets.tolist())]
        return text_ids(texts)  # refuses a single long text, which would make all of them as wide
    dtype = np.dtype(kind)
    if dtype.kind not in _ID_KINDS or dtype.itemsize != 8 or tensors[name].shape != (count,):
        raise ValueError(f"the {name} are not {count} ids of a known type")
    return np.array(tensors[name]).view(dtype) if dtype.kind == "M" else tensors[name].astype(dtype)


def _seen(tensors: dict[str, NDArray[Any]], shape: tuple[int, int]) -> Any:
    """Return what was seen in training, checked, or None."""
    if "seen_indptr" not in tensors:
        return None
    indptr, indices, data = (tensors[f"seen_{part}"] for part in ("indptr", "indices", "data"))
    _check_offsets(indptr, shape[0], len(indices), "what was seen in training")
    if indices.dtype.kind != "i" or indices.ndim != 1 or data.shape != indices.shape or not np.isfinite(data).all():
        raise ValueError("what was seen in training is not one finite number for each item named")
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise ValueError("what was seen in training names items that do not exist")
    return sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)


def _check_offsets(offsets: NDArray[Any], count: int, end: int, what: str) -> None:
    """Refuse offsets that do not rise from 0 to ``end`` in ``count`` steps; compiled code would follow them blindly."""
    if offsets.dtype != np.int64 or offsets.shape != (count + 1,) or offsets[0] != 0 or offsets[-1] != end:
        raise ValueError(f"{what} is cut short, or of another type")
    if (offsets[1:] < offsets[:-1]).any():  # a difference could overflow
        raise ValueError(f"{what} has offsets that are out of order")
