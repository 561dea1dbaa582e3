"""Checkpoints: the state of training after an epoch, so that a killed run ends as if nothing had happened.

All random numbers are keyed by (seed, epoch, cell), so the state is the parameters and the number of the epoch;
no generator has to be saved.
"""

import hashlib
import shutil
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._files import FileFormatError, read_arrays, write_arrays
from sadrec.training.factors import Factors, Floats

FORMAT = 2
_KIND = "a sadrec checkpoint"
_NAME = "epoch-{:06d}.checkpoint"


class CheckpointError(ValueError):
    """A checkpoint belongs to other data or other settings."""


@dataclass
class State:
    """What training has reached."""

    factors: Factors
    epoch: int = 0
    l1_weights: Floats | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    best: Factors | None = None
    best_epoch: int = 0
    stopped: bool = False


def fingerprint(*arrays: NDArray[Any] | None) -> str:
    """Return a digest that changes whenever a value, a type or a shape among the arrays does."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


class Checkpoints:
    """A folder that holds the last two checkpoints of one training run.

    Parameters
    ----------
    folder
        Where they are written; made when missing.
    identity
        What the run depends on (settings, fingerprints of the data); a checkpoint of another identity is refused.
    seconds
        Write at most once in this time; 0 writes after every epoch.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], seconds: float = 0.0):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)  # rather now than after an hour of training
        self._writing = self.folder / ".writing"  # a folder of its own, so that what a kill leaves can be told apart
        self._identity = identity
        self._seconds = seconds
        self._last = time.monotonic()

    def files(self) -> list[Path]:
        """Return the checkpoints there are, the newest first."""
        return checkpoints_in(self.folder)

    def due(self) -> bool:
        """Tell whether it is time to write one."""
        return time.monotonic() - self._last >= self._seconds

    def save(self, state: State) -> None:
        """Write the state whole, then remove all but the last two."""
        arrays: dict[str, NDArray[Any]] = {}
        for prefix, factors in (("", state.factors), ("best_", state.best)):
            if factors is not None:
                arrays[f"{prefix}users"], arrays[f"{prefix}items"] = factors.users, factors.items
                if factors.bias is not None:
                    arrays[f"{prefix}bias"] = factors.bias
        if state.l1_weights is not None:
            arrays["l1_weights"] = state.l1_weights
        header = {
            "kind": "checkpoint",
            "format": FORMAT,
            "identity": self._identity,
            "epoch": state.epoch,
            "history": state.history,
            "best_epoch": state.best_epoch,
            "stopped": state.stopped,
        }
        name = _NAME.format(state.epoch)
        write_arrays(self._writing / name, arrays, header)
        (self._writing / name).replace(self.folder / name)
        shutil.rmtree(self._writing, ignore_errors=True)
        for old in self.files()[2:]:
            old.unlink(missing_ok=True)
        self._last = time.monotonic()

    def load(self) -> State | None:
        """Return the newest whole state, or None when there is none; clear away what a kill left half-written.

        Raises
        ------
        CheckpointError
            When a checkpoint belongs to other data or settings.
        """
        shutil.rmtree(self._writing, ignore_errors=True)
        for path in self.files():
            try:
                arrays, header = read_arrays(path, _KIND)
                return self._state(path, arrays, header)
            except FileFormatError as error:
                warnings.warn(f"a checkpoint cannot be used, so that an older one or none is: {error}", stacklevel=2)
        return None

    def _state(self, path: Path, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> State:
        if header.get("kind") != "checkpoint" or header.get("format") != FORMAT:
            raise FileFormatError(f"{str(path)!r} is not {_KIND} of this version")
        found = header.get("identity")
        if found != self._identity:
            differs = list(differences(found, self._identity))
            raise CheckpointError(
                f"the checkpoint {str(path)!r} belongs to another run ({', '.join(differs)}): give another folder, or "
                "delete this one to start anew"
            )

        def factors(prefix: str) -> Factors:
            bias = arrays.get(f"{prefix}bias")
            return Factors(
                np.array(arrays[f"{prefix}users"]),
                np.array(arrays[f"{prefix}items"]),
                None if bias is None else np.array(bias),
            )

        try:
            weights = arrays.get("l1_weights")
            return State(
                factors=factors(""),
                epoch=int(header["epoch"]),
                l1_weights=None if weights is None else np.array(weights),
                history=list(header["history"]),
                best=factors("best_") if "best_users" in arrays else None,
                best_epoch=int(header["best_epoch"]),
                stopped=bool(header["stopped"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{str(path)!r} lacks {error}") from error


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, the newest first; none where there is no folder."""
    return sorted(folder.glob("epoch-*.checkpoint"), reverse=True)


def differences(found: Any, wanted: dict[str, Any]) -> Iterator[str]:
    """Say in what a run differs: settings with both values, of data the name alone."""
    for name, value in wanted.items():
        other = found.get(name) if isinstance(found, dict) else None
        if isinstance(value, dict):
            yield from differences(other, value)
        elif other != value:
            short = len(f"{other}{value}") < 30
            yield f"{name} was {other!r} and is {value!r}" if short else f"another {name}"
