"""Checkpoints: the state of training after an epoch, so that a killed run ends as if nothing had happened.

All random numbers are keyed by (seed, epoch, cell), so the state is the parameters and the number of the epoch;
no generator has to be saved.
"""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sadrec._record import Arrays, Records

logger = logging.getLogger("sadrec")


T = TypeVar("T")


class Checkpoints:
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
        """Where they are."""
        return self._records.folder

    def due(self) -> bool:
        """Tell whether it is time to write one."""
        return time.monotonic() - self._last >= self._seconds

    def write(self, epoch: int, values: Mapping[str, Any], arrays: Arrays) -> None:
        """Write the state after an epoch, whole or not at all, then remove all but the last two."""
        self._records.write(f"epoch-{epoch:06d}", values, arrays)
        for old in self._records.names()[:-2]:
            self._records.remove(old)
        self._last = time.monotonic()

    def newest(self, unpack: Callable[[dict[str, Any], Arrays], T]) -> T | None:
        """Return what ``unpack`` makes of the newest checkpoint that it takes, or None when there is none.

        What a kill left half-written is cleared away. A checkpoint of other data or settings raises a CheckpointError.
        """
        for part in self.folder.glob(".epoch-*.part"):
            part.unlink(missing_ok=True)
        for name in reversed(self._records.names()):
            record = self._records.read(name)
            if record is None:
                continue
            try:
                return unpack(*record)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                logger.warning("%r cannot be used, so that an older one is: %s", str(self._records.path(name)), error)
        return None


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, the newest first; none where there is no folder."""
    found = [*folder.glob("epoch-*.checkpoint"), *folder.glob("epoch-*.manifest")]  # of a fit here, or on a cluster
    return sorted(found, reverse=True)
