"""Checkpoints of a training run; :meth:`sadrec.training.loop.Step.record` gives their content."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sadrec._core.record import Arrays, Records, locked

logger = logging.getLogger("sadrec")

T = TypeVar("T")


class Checkpoints(Protocol):
    """The checkpoints of one run: a folder of this machine, or what workers of a cluster write."""

    def held(self) -> AbstractContextManager[None]:
        """Lock the folder for this process."""
        ...

    def due(self) -> bool:
        """Whether it is time to write a checkpoint."""
        ...

    def write(self, epoch: int, values: Mapping[str, Any], arrays: Arrays) -> None:
        """Complete the checkpoint of an epoch, and remove all but the last two."""
        ...

    def newest(self, unpack: Callable[[dict[str, Any], Arrays], T]) -> T | None:
        """Return what ``unpack`` makes of the newest checkpoint that it takes."""
        ...


class LocalCheckpoints:
    """A folder that holds the last two checkpoints of one training run, made when missing.

    A checkpoint of another ``identity`` (settings, fingerprints of the data) is refused. One is due after
    ``seconds``; 0 means after every epoch.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any], seconds: float = 0.0):
        self._records = Records(folder, "checkpoint", identity)  # a folder that cannot be made is refused now
        self._seconds = seconds
        self._last = time.monotonic()

    @property
    def folder(self) -> Path:
        """The folder of the checkpoints."""
        return self._records.folder

    def held(self) -> AbstractContextManager[None]:
        """Lock the folder for this process."""
        return locked(self.folder)

    def due(self) -> bool:
        """Whether it is time to write a checkpoint."""
        return time.monotonic() - self._last >= self._seconds

    def write(self, epoch: int, values: Mapping[str, Any], arrays: Arrays) -> None:
        """Write the state after an epoch, whole or not at all, then remove all but the last two."""
        self._records.write(f"epoch-{epoch:06d}", values, arrays)
        for old in self._names()[:-2]:
            self._records.remove(old)
        self._last = time.monotonic()

    def newest(self, unpack: Callable[[dict[str, Any], Arrays], T]) -> T | None:
        """Return what ``unpack`` makes of the newest checkpoint that it takes, or None when there is none.

        What a kill left half-written is cleared away. A checkpoint of other data or settings raises a CheckpointError.
        """
        for part in self.folder.glob(".epoch-*.part"):
            part.unlink(missing_ok=True)
        for name in reversed(self._names()):
            record = self._records.read(name)
            if record is None:
                continue
            try:
                return unpack(*record)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                logger.warning("%r cannot be used, so that an older one is: %s", str(self._records.path(name)), error)
        return None

    def _names(self) -> list[str]:
        """Return the names of the checkpoints, in the order of their epochs."""
        return sorted(self._records.names(), key=by_epoch)


def by_epoch(name: str) -> tuple[int, str]:
    """Return what sorts names of checkpoints by epoch, which may have more than six digits."""
    return len(name), name


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, the newest first; none where there is no folder."""
    files = [*folder.glob("epoch-*.checkpoint"), *folder.glob("epoch-*.manifest")]  # of a fit here, or on a cluster
    return sorted(files, key=lambda path: by_epoch(path.stem), reverse=True)
