"""Checkpoints of a fit on a cluster: every worker writes its rows, the manifest comes last.

The folder may be anything that fsspec reaches: a folder that all nodes share, s3://, gs://, ...
"""

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sadrec._files import checksum_of, plain, read_arrays, write_arrays
from sadrec._record import CheckpointError, differences
from sadrec.cluster.worker import Rows
from sadrec.training.trainer import Figures

FORMAT = 1
_KIND = "rows of a fit on a cluster"


@dataclass(frozen=True)
class Saved:
    """What a manifest says: which files hold which rows, after which epoch."""

    folder: str
    epoch: int
    history: tuple[Figures, ...]
    stopped: bool
    names: list[str]
    bounds: list[list[int]]  # of each: first user, last, first item, last
    checksums: list[str] = field(default_factory=list)


class Shards:
    """A folder with the checkpoints of one fit: the last two. One of another ``identity`` is refused."""

    def __init__(self, folder: str, identity: Mapping[str, Any], seconds: float = 0.0):
        self.folder = folder
        self._identity, self._seconds, self._last = plain(identity), seconds, time.monotonic()

    def due(self) -> bool:
        """Tell whether it is time to write one."""
        return time.monotonic() - self._last >= self._seconds

    def write(self, saved: Saved) -> None:
        """Write the manifest: from now on the checkpoint is there. Remove all but the last two."""
        system, path = file_system(self.folder)
        content = {"format": FORMAT, "identity": self._identity, **asdict(saved)}
        content.pop("folder")
        name = f"epoch-{saved.epoch:06d}.manifest"
        with tempfile.TemporaryDirectory() as here:
            (Path(here) / name).write_text(json.dumps(plain(content)))
            system.put_file(str(Path(here) / name), f"{path}/.{name}")
        system.mv(f"{path}/.{name}", f"{path}/{name}")
        kept = self._manifests()[-2:]
        wanted = set(kept) | {shard for entry in kept for shard in self._read(entry)["names"]}
        for entry in system.ls(path, detail=False):
            last = str(entry).rsplit("/", 1)[-1]
            if last.startswith("epoch-") and last not in wanted:
                system.rm_file(entry)
        self._last = time.monotonic()

    def newest(self) -> Saved | None:
        """Return the newest checkpoint, None where there is none; one of another fit raises a CheckpointError."""
        for name in reversed(self._manifests()):
            content = self._read(name)
            if content.pop("format", None) != FORMAT:
                raise CheckpointError(f"{self.folder}/{name} is of another version of sadrec: give another folder")
            theirs = content.pop("identity")
            if theirs != self._identity:
                different = ", ".join(differences(theirs, self._identity))
                raise CheckpointError(
                    f"{self.folder}/{name} belongs to another run ({different}): give another folder, or delete this "
                    "one to start anew"
                )
            content["history"] = tuple(content["history"])
            return Saved(folder=self.folder, **content)
        return None

    def _manifests(self) -> list[str]:
        system, path = file_system(self.folder)
        names = (str(entry).rsplit("/", 1)[-1] for entry in system.ls(path, detail=False))
        return sorted(name for name in names if name.startswith("epoch-") and name.endswith(".manifest"))

    def _read(self, name: str) -> dict[str, Any]:
        system, path = file_system(self.folder)
        content = json.loads(system.cat_file(f"{path}/{name}"))
        if not isinstance(content, dict):
            raise CheckpointError(f"{self.folder}/{name} is not a checkpoint: give another folder")
        return content


def file_system(folder: str) -> tuple[Any, str]:
    """Return the file system of a path and the folder there, made when missing."""
    import fsspec

    system, path = fsspec.core.url_to_fs(folder)
    system.makedirs(path, exist_ok=True)
    return system, str(path).rstrip("/")


def write_rows(folder: str, name: str, rows: Rows) -> str:
    """Write the rows of one worker and return their checksum."""
    system, path = file_system(folder)
    arrays = {part: array for part, array in rows._asdict().items() if array is not None}
    with tempfile.TemporaryDirectory() as here:
        file = Path(here) / "rows"
        write_arrays(file, arrays, {"kind": _KIND, "format": FORMAT})
        system.put_file(str(file), f"{path}/{name}")
        return checksum_of(file)


def read_rows(saved: Saved, first_user: int, last_user: int, first_item: int, last_item: int) -> Rows:
    """Return the rows of some users and items from a checkpoint of however many workers."""
    system, path = file_system(saved.folder)
    found: dict[str, list[Any]] = {name: [] for name in Rows._fields}
    with tempfile.TemporaryDirectory() as here:
        for name, bounds, checksum in zip(saved.names, saved.bounds, saved.checksums, strict=True):
            users = slice(*(min(max(edge - bounds[0], 0), bounds[1] - bounds[0]) for edge in (first_user, last_user)))
            items = slice(*(min(max(edge - bounds[2], 0), bounds[3] - bounds[2]) for edge in (first_item, last_item)))
            file = Path(here) / name
            system.get_file(f"{path}/{name}", str(file))
            arrays, _ = read_arrays(file, f"{_KIND} of sadrec")
            if checksum_of(file) != checksum:
                raise CheckpointError(f"{saved.folder}/{name} is not the file that its manifest names")
            for part, array in arrays.items():
                found[part].append(np.array(array[users if part == "users" else items]))
    return Rows(*(np.concatenate(found[part]) if found[part] else None for part in Rows._fields))  # type: ignore[arg-type]
