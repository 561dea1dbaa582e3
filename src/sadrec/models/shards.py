"""A model as a folder: the items in one file, the users in several, each written by whoever has them.

``model.json`` comes last and names the files, with their checksums; what it does not name does not count. A model that
is written over another leaves that one whole until then.
"""

import errno
import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sadrec._check import is_whole
from sadrec._files import FileFormatError, checksum_of, fingerprint, read_arrays, write_arrays, write_whole
from sadrec._types import Floats
from sadrec.data.ids import IdArray, Ids
from sadrec.models.base import ModelFileError
from sadrec.models.files import (
    FORMAT,
    header_of,
    item_parameters,
    load_model,
    pack_ids,
    refusing,
    settled_header,
    unpack_ids,
    unpack_seen,
)
from sadrec.models.stacked import StackedMatrix, StackedRows
from sadrec.models.state import State
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Point
from sadrec.training.engine import SharedFeedback
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures

MANIFEST = "model.json"
_KIND = "sharded model"
_ITEMS, _USERS = "items of a model", "users of a model"


class ShardFile(NamedTuple):
    """A file of a model, and which users it holds; of items, none."""

    name: str
    first: int
    last: int
    checksum: str


_REMEDY = (
    "the users of this model are with the workers that learnt it: call save('folder/') first, or fit with "
    "engine=Ray(collect=True)"
)


class RowsAway:
    """Factors of users that are elsewhere: their shape is known."""

    ndim, dtype = 2, np.dtype(np.float32)

    def __init__(self, users: int, factors: int) -> None:
        self.shape = users, factors

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else ValueError(_REMEDY)

    def __getitem__(self, key: Any) -> Any:
        raise ValueError(_REMEDY)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Say where they are."""
        raise ValueError(_REMEDY)


class LazyIds(Ids):
    """So many ids of users, which are fetched when somebody asks for one."""

    __slots__ = ("_count", "_fetch")

    def __init__(self, count: int, fetch: Callable[[], IdArray]) -> None:
        self.what, self._count, self._fetch = "user", count, fetch

    def __len__(self) -> int:
        return self._count

    def __getattr__(self, name: str) -> Any:
        if name not in ("_array", "_sorted", "_order"):
            raise AttributeError(name)
        super().__init__(self._fetch(), "user")
        return getattr(self, name)


def fitted_away(away: SharedFeedback, settings: Settings, history: list[Figures]) -> State:
    """Return a model whose items are here and whose users are not."""
    ids, rows, bias = away.items()
    for array in (rows, bias):
        if array is not None:
            array.flags.writeable = False
    k = settings.factors
    users: Any = RowsAway(away.shape[0], k)
    parameters = Parameters(users, rows[:, :k], rows[:, k:] if settings.learn_rivals else None, bias)
    return State(
        Point(parameters), LazyIds(away.shape[0], _away), Ids(ids, "item"), _away, settings, history, away=away
    )


def _away() -> Any:
    raise ValueError(_REMEDY)


def write_users(
    folder: str | Path, name: str, first: int, factors: Floats, ids: IdArray, seen: tuple[Any, Any, Any]
) -> ShardFile:
    """Write some users, the first of whom is the so-many-th of all: factors, ids, and indptr, items, ratings."""
    tensors = {"user_factors": np.asarray(factors)}
    kind = pack_ids("users", ids, tensors)
    tensors |= dict(zip(("seen_indptr", "seen_indices", "seen_data"), seen, strict=True))
    path = Path(folder) / name
    write_arrays(path, tensors, {"kind": _USERS, "format": FORMAT, "ids": kind, "first": first})
    return ShardFile(name, first, first + len(ids), checksum_of(path))


def save_shards(folder: str | Path, state: State, class_name: str, params: Mapping[str, Any]) -> None:
    """Write a model whose users are elsewhere."""
    place = Path(folder).expanduser().absolute()
    away: SharedFeedback | None = state.away
    if away is None:
        raise ValueError("the users of this model are here: it is saved to one file")
    if "://" in str(folder):
        raise ValueError(f"a model is saved to a folder that all nodes have mounted, not to {str(folder)!r}")
    if place.is_file():
        raise ValueError(f"{str(folder)!r} is a file, and this model is saved to a folder: choose another name")
    known = place / MANIFEST
    if place.is_dir() and not known.exists():
        others = [entry for entry in place.iterdir() if not entry.name.startswith((".", "users-", "items-"))]
        if others:
            raise ValueError(f"the folder {str(folder)!r} holds other files: give a new folder, or an empty one")
    place.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(4)
    parameters, tensors = state.parameters, {}
    for name in ("item_factors", "rival_factors", "item_bias"):
        if getattr(parameters, name) is not None:
            tensors[name] = getattr(parameters, name)
    header = header_of(state, class_name, params)
    header |= {"kind": _ITEMS, "ids": {"items": pack_ids("items", state.items.array, tensors)}}
    items = f"items-{token}.sad"
    write_arrays(place / items, tensors, header)
    users = away.write_users(place, token)
    for file in users:
        if not (place / file.name).is_file() or checksum_of(place / file.name) != file.checksum:
            raise ValueError(
                f"a worker has written {file.name}, and it is not in {str(folder)!r} here: save to a folder that all "
                "nodes share"
            )
    entry = ShardFile(items, 0, 0, checksum_of(place / items))
    content = {"kind": _KIND, "format": FORMAT, "items": entry._asdict(), "users": [file._asdict() for file in users]}
    write_whole(known, json.dumps({**content, "checksum": fingerprint(content)}, indent=1) + "\n")
    named = {items, *(file.name for file in users)}
    for old in place.glob("*.sad"):
        if old.name.startswith(("users-", "items-")) and old.name not in named:
            old.unlink(missing_ok=True)


def read_model(path: str | Path, mmap: bool, verify: bool) -> tuple[State, str, dict[str, Any]]:
    """Read a model from a file or a folder: see :func:`sadrec.models.files.load_model`."""
    return _load_shards(Path(path), mmap, verify) if Path(path).is_dir() else load_model(path, mmap, verify)


def checksum_at(path: str | Path) -> str:
    """Return the checksum of a model in a file or a folder; of its content nothing is read."""
    return str(_manifest(Path(path))["checksum"]) if Path(path).is_dir() else checksum_of(Path(path))


def _manifest(folder: Path) -> dict[str, Any]:
    """Return what the manifest of a folder says, checked."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        checksum = content.pop("checksum")
        if content["kind"] != _KIND or fingerprint(content) != checksum:
            raise FileFormatError("its content does not fit its checksum")
        if content["format"] != FORMAT:
            raise FileFormatError(f"it has the format {content['format']!r}, this version reads {FORMAT}")
        content["items"], content["users"] = (
            ShardFile(**content["items"]),
            [ShardFile(**one) for one in content["users"]],
        )
        ends = [0, *(file.last for file in content["users"])]
        whole = all(is_whole(edge) for file in content["users"] for edge in (file.first, file.last))
        rises = whole and all(file.first == end <= file.last for file, end in zip(content["users"], ends, strict=False))
        names = [content["items"].name, *(file.name for file in content["users"])]
        if not content["users"] or not rises or any(Path(name).name != name for name in names):
            raise FileFormatError("its files do not follow each other")
    except FileNotFoundError:
        raise ModelFileError(
            f"the folder {str(folder)!r} is not a sadrec model: it has no {MANIFEST}, which is written last"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{str(folder / MANIFEST)!r} cannot be read ({error}): save the model again") from error
    return {**content, "checksum": checksum}


def _load_shards(folder: Path, mmap: bool, verify: bool) -> tuple[State, str, dict[str, Any]]:
    manifest = _manifest(folder)

    def opened(file: ShardFile, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            tensors, header = read_arrays(folder / file.name, f"the {kind} of sadrec", verify)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and error.errno != errno.ENAMETOOLONG:
                raise
            raise ModelFileError(f"{str(folder)!r} lacks {file.name}, which {MANIFEST} names: save it again") from None
        if checksum_of(folder / file.name) != file.checksum or header.get("kind") != kind:
            raise ModelFileError(f"{str(folder / file.name)!r} is not the file that {MANIFEST} names")
        return (tensors if mmap else {name: np.array(array) for name, array in tensors.items()}), header

    with refusing(folder, "a sadrec model"):
        tensors, header = opened(manifest["items"], _ITEMS)
        finite = verify or not mmap
        items = item_parameters(tensors, finite)
        count, factors = items["item_factors"].shape
        item_ids = Ids(unpack_ids("items", header["ids"]["items"], tensors, count), "item")
        vectors, parts = [], []
        for file in manifest["users"]:
            own, about = opened(file, _USERS)
            size = file.last - file.first
            xi = own["user_factors"].view(np.ndarray)
            if xi.shape != (size, factors) or xi.dtype != np.float32 or (finite and not np.isfinite(xi).all()):
                raise ValueError(f"{file.name} does not hold the factors of {size} users in finite float32 numbers")
            vectors.append(xi)
            parts.append((own, about["ids"], (size, count)))
        if len({kind for _, kind, _ in parts}) > 1:
            raise ValueError("the ids of its users are of several types")

        def ids() -> IdArray:
            with refusing(folder, "a sadrec model"):
                return np.concatenate([unpack_ids("users", kind, own, shape[0]) for own, kind, shape in parts])

        def seen() -> Any:
            with refusing(folder, "a sadrec model"):
                matrices = [unpack_seen(own, shape) for own, _, shape in parts]
                if any(matrix is None for matrix in matrices):
                    raise ValueError("one of its files does not tell what its users have seen")
                return StackedMatrix(matrices) if mmap else sp.vstack(matrices, "csr")

        users: Any = StackedRows(vectors) if mmap else np.concatenate(vectors)
        if not mmap:
            users.flags.writeable = False
        settings, history, params, name = settled_header(header)
        parameters = Parameters(users, **items)
        place = folder.absolute(), manifest["checksum"]
        lazily = mmap and not verify
        known = seen if lazily else seen()
        user_ids = LazyIds(len(users), ids) if lazily else Ids(ids(), "user")
        return State(Point(parameters), user_ids, item_ids, known, settings, history, file=place), name, params
