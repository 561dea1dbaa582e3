"""Checkpoints of a fit on a cluster: every worker writes its rows, the manifest comes last.

The folder may be anything that fsspec reaches: a folder that all nodes share, s3://, gs://, ...
"""

import json
import logging
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sadrec._core.check import is_whole
from sadrec._core.files import (
    FileFormatError,
    checksum_of,
    fingerprint,
    make_folder,
    plain,
    read_arrays,
    write_arrays,
    write_whole,
)
from sadrec._core.record import Arrays, CheckpointError, differences, locked
from sadrec._core.types import Floats
from sadrec.training.engine import Settings, by_epoch

logger = logging.getLogger("sadrec")

FORMAT = 1
_KIND = "rows of a fit on a cluster"
_VALUES = ("epoch", "history", "stopped", "names", "bounds", "checksums")
"""What a manifest holds besides the identity of the fit."""

T = TypeVar("T")


class ParameterRows(NamedTuple):
    """Rows of parameters in transit: of users, of items, or of both."""

    users: Floats | None
    items: Floats
    bias: Floats | None
    l1_weights: Floats | None

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(array.nbytes for array in self if array is not None)


@dataclass(frozen=True)
class Saved:
    """One checkpoint: an epoch, and the files with the rows of each worker."""

    folder: str
    epoch: int
    names: list[str]
    bounds: list[list[int]]  # of each: first user, last, first item, last
    checksums: list[str]


class ClusterCheckpoints:
    """The folder of the last two checkpoints of a fit; those of a fit with another ``identity`` are refused."""

    def __init__(self, folder: str, identity: Mapping[str, Any], seconds: float = 0.0):
        self.place = folder
        self._identity, self._seconds, self._last = plain(identity), seconds, time.monotonic()

    def held(self) -> AbstractContextManager[None]:
        """Lock the folder for this process, if it is on a disk: other file systems have no locks."""
        system, path = file_system(self.place)
        return locked(path) if _on_a_disk(system) else nullcontext()

    def due(self) -> bool:
        """Whether it is time to write a checkpoint."""
        return time.monotonic() - self._last >= self._seconds

    def write(self, epoch: int, values: Mapping[str, Any], arrays: Arrays) -> None:
        """Write the manifest, which completes the checkpoint, and remove all but the last two."""
        system, path = file_system(self.place)
        content = plain({"format": FORMAT, "identity": self._identity, **{name: values[name] for name in _VALUES}})
        content["digest"] = _digest(content)
        name = f"epoch-{epoch:06d}.manifest"
        with _written(system, path, name) as file:
            write_whole(file, json.dumps(content))
        kept: dict[str, list[str]] = {}
        for entry in reversed(self._manifests()):
            there = self._read(entry) if len(kept) < 2 else None
            if there is not None and there["epoch"] <= epoch:  # later ones were damaged, and are left behind
                kept[entry] = there["names"]
        wanted = {*kept, *(shard for names in kept.values() for shard in names)}
        for entry in system.ls(path, detail=False):
            last = str(entry).rsplit("/", 1)[-1]
            old = last.startswith("epoch-") and last.endswith((".manifest", ".rows")) and last not in wanted
            cut = last.startswith(".epoch-") and last.endswith((".manifest", ".rows", ".part"))  # what a kill has left
            if old or cut:
                system.rm_file(entry)
        self._last = time.monotonic()

    def newest(self, unpack: Callable[[dict[str, Any], Arrays], T]) -> T | None:
        """Return ``unpack`` of the newest checkpoint that can be read, or None.

        A damaged checkpoint is logged and left out; one of another fit raises a CheckpointError.
        """
        for name in reversed(self._manifests()):
            content = self._read(name)
            if content is None:
                continue
            theirs = content.pop("identity")
            if theirs != self._identity:
                different = ", ".join(differences(theirs, self._identity))
                raise CheckpointError(
                    f"{self.place}/{name} belongs to another run ({different}): give another folder, or delete this "
                    "one to start anew"
                )
            try:
                return unpack({**content, "best_epoch": 0}, {})
            except CheckpointError as error:
                logger.warning("%s; going on from the checkpoint before, where there is one", error)
        return None

    def _manifests(self) -> list[str]:
        system, path = file_system(self.place)
        names = (str(entry).rsplit("/", 1)[-1] for entry in system.ls(path, detail=False))
        return sorted(
            (name for name in names if name.startswith("epoch-") and name.endswith(".manifest")), key=by_epoch
        )

    def _read(self, name: str) -> dict[str, Any] | None:
        """Return a manifest; if it is damaged, log that and return None."""
        system, path = file_system(self.place)
        try:
            content = json.loads(system.cat_file(f"{path}/{name}"))
            whole = isinstance(content, dict) and content.pop("digest", None) == _digest(content)
            if whole and content.get("format") != FORMAT:
                raise CheckpointError(f"{self.place}/{name} is of another version of sadrec: give another folder")
            whole = whole and _is_manifest(content)
        except CheckpointError:
            raise
        except (ValueError, TypeError, RecursionError):
            whole = False
        if not whole:
            logger.warning("%s/%s is damaged; it is left out", self.place, name)
            return None
        return dict(content)


def _digest(content: Mapping[str, Any]) -> str:
    return fingerprint(content)


def _is_manifest(content: dict[str, Any]) -> bool:
    """Whether all values have the types of a manifest, and its files are consecutive and in its folder."""
    values: dict[str, Any] = {name: content.get(name) for name in _VALUES}
    if set(content) != {"format", "identity", *values}:
        return False
    epoch, history, names, sums = (values[name] for name in ("epoch", "history", "names", "checksums"))
    if not all(isinstance(listed, list) for listed in (history, names, sums, values["bounds"])):
        return False
    bounds = [[0] * 4, *values["bounds"]]
    return (
        is_whole(epoch)
        and epoch == len(history) > 0
        and all(isinstance(figures, dict) for figures in history)
        and isinstance(values["stopped"], bool)
        and len(names) == len(sums) == len(bounds) - 1
        and all(isinstance(text, str) for text in (*names, *sums))
        and all(name.startswith("epoch-") and "/" not in name and "\\" not in name for name in names)
        and all(len(edges) == 4 and all(map(is_whole, edges)) for edges in bounds)
        and all(old[1] == new[0] <= new[1] and old[3] == new[2] <= new[3] for old, new in pairwise(bounds))
    )


def _on_a_disk(system: Any) -> bool:
    """Whether a file system is local: there, files are written whole and no link is followed."""
    import fsspec

    return isinstance(system, fsspec.implementations.local.LocalFileSystem)


def file_system(folder: str) -> tuple[Any, str]:
    """Return the file system of a path and the folder there, made when missing."""
    import fsspec

    system, path = fsspec.core.url_to_fs(folder)
    if _on_a_disk(system):
        make_folder(path)
    else:
        system.makedirs(path, exist_ok=True)
    return system, str(path).rstrip("/")


@contextmanager
def _written(system: Any, path: str, name: str) -> Iterator[Path]:
    """Yield a path to write to; once the file there is whole, it moves to its name in the folder."""
    if _on_a_disk(system):
        yield Path(path) / name
        return
    with tempfile.TemporaryDirectory() as here:
        yield Path(here) / name
        system.put_file(str(Path(here) / name), f"{path}/.{name}")
    system.mv(f"{path}/.{name}", f"{path}/{name}")


def write_rows(folder: str, name: str, rows: ParameterRows) -> str:
    """Write the rows of one worker and return their checksum."""
    arrays = {part: array for part, array in rows._asdict().items() if array is not None}
    with _written(*file_system(folder), name) as file:
        write_arrays(file, arrays, {"kind": _KIND, "format": FORMAT})
        return checksum_of(file)


def read_rows(saved: Saved, bounds: Sequence[int], settings: Settings) -> ParameterRows:
    """Return the rows of ranges of users and of items from a checkpoint that any number of workers wrote.

    Damage, and what does not fit the settings, raises a CheckpointError.
    """
    first_user, last_user, first_item, last_item = bounds
    system, path = file_system(saved.folder)
    pieces: dict[str, list[Any]] = {name: [] for name in ParameterRows._fields}
    with tempfile.TemporaryDirectory() as here:
        for name, edges, checksum in zip(saved.names, saved.bounds, saved.checksums, strict=True):
            users = slice(*(min(max(edge - edges[0], 0), edges[1] - edges[0]) for edge in (first_user, last_user)))
            items = slice(*(min(max(edge - edges[2], 0), edges[3] - edges[2]) for edge in (first_item, last_item)))
            file = Path(here) / name
            try:
                system.get_file(f"{path}/{name}", str(file))
                arrays, _ = read_arrays(file, f"{_KIND} of sadrec")
            except FileNotFoundError:
                raise FileNotFoundError(
                    f"{saved.folder}/{name} is not there on {socket.gethostname()}: a checkpoint must be in a folder "
                    "that all nodes reach; where the file was removed, give another folder"
                ) from None
            except FileFormatError as error:
                raise CheckpointError(f"{saved.folder}/{name} is damaged ({error})") from None
            if checksum_of(file) != checksum:
                raise CheckpointError(f"{saved.folder}/{name} is not the file that its manifest names")
            try:
                _check_rows(arrays, edges[1] - edges[0], edges[3] - edges[2], settings)
            except ValueError as error:
                raise CheckpointError(f"{saved.folder}/{name} does not fit this fit ({error})") from None
            for part, array in arrays.items():
                pieces[part].append(np.array(array[users if part == "users" else items]))
    rows = ParameterRows(*(np.concatenate(pieces[part]) if pieces[part] else None for part in ParameterRows._fields))  # type: ignore[arg-type]
    if rows.users is None or len(rows.users) != last_user - first_user or len(rows.items) != last_item - first_item:
        raise CheckpointError(f"the checkpoint in {saved.folder} does not hold all users and items")
    return rows


def _check_rows(arrays: Mapping[str, Any], users: int, items: int, settings: Settings) -> None:
    """Raise on rows of other shapes and types, and on numbers that kernels cannot take."""
    k = settings.factors
    shapes: dict[str, tuple[int, ...]] = {"users": (users, k), "items": (items, 2 * k if settings.learn_rivals else k)}
    shapes |= {"bias": (items,)} if settings.bias else {}
    shapes |= {"l1_weights": (items, k)} if "l1_weights" in arrays and settings.adaptive else {}
    if set(arrays) != set(shapes):
        raise ValueError(f"it holds {', '.join(sorted(arrays))}")
    for name, array in arrays.items():
        if array.dtype != np.float32 or array.shape != shapes[name] or not np.isfinite(array).all():
            raise ValueError(f"{name} are not finite numbers of the shape {shapes[name]}")
    if arrays["items"][:, k:].min(initial=0) < 0 or arrays.get("l1_weights", arrays["items"][:0]).min(initial=0) < 0:
        raise ValueError("some rival factors, or penalties, are below 0")
