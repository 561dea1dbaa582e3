"""Checkpoints: the state of training after an epoch, so that a killed run ends as if nothing had happened.

All random numbers are keyed by (seed, epoch, cell), so the state is the parameters and the number of the epoch;
no generator has to be saved.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sadrec._record import Arrays, Records
from sadrec._types import Floats
from sadrec.training.factors import Factors
from sadrec.training.stored import Stored

logger = logging.getLogger("sadrec")


T = TypeVar("T")


@dataclass(frozen=True)
class State:
    """What training has reached, beside the factors."""

    epoch: int = 0  # how many epochs are done
    l1_weights: Floats | None = None  # of the second phase of adaptive training
    history: tuple[dict[str, float], ...] = ()  # the figures of every epoch
    best: Stored | None = None  # the factors of the epoch with the best figure to watch,
    best_epoch: int = 0  # and its number
    stopped: bool = False  # whether training ended before the last epoch


class Checkpoints:
    """A folder that holds the last two checkpoints of one training run, made when missing.

    A checkpoint of another ``identity`` (settings, fingerprints of the data) is refused. One is due after so many
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

    def save(self, factors: Factors, state: State) -> None:
        """Write factors and state."""
        arrays = _packed(factors)
        if state.best is not None:
            arrays |= _packed(state.best.put_into(factors.copy()), "best_")
        if state.l1_weights is not None:
            arrays["l1_weights"] = state.l1_weights
        names = ("epoch", "history", "best_epoch", "stopped")
        self.write(state.epoch, {name: getattr(state, name) for name in names}, arrays)

    def load(self, like: Factors) -> tuple[Factors, State] | None:
        """Return the factors and state of the newest checkpoint whose factors have the shapes of ``like``."""
        return self.newest(lambda values, arrays: _unpacked(values, arrays, like))


def _packed(factors: Factors, prefix: str = "") -> Arrays:
    arrays = {"users": factors.users, "items": factors.items, "bias": factors.bias}
    return {f"{prefix}{name}": array for name, array in arrays.items() if array is not None}


def _unpacked(values: dict[str, Any], arrays: Arrays, like: Factors) -> tuple[Factors, State]:
    """Return factors and state, refusing what compiled code must not meet."""

    def factors(prefix: str) -> Factors:
        bias = None if like.bias is None else _fitting(arrays[f"{prefix}bias"], like.bias)
        return Factors(
            _fitting(arrays[f"{prefix}users"], like.users), _fitting(arrays[f"{prefix}items"], like.items), bias
        )

    epoch, best_epoch, history = int(values["epoch"]), int(values["best_epoch"]), tuple(values["history"])
    has_best, weights = "best_users" in arrays, arrays.get("l1_weights")
    if epoch != len(history) or not all(isinstance(figures, dict) for figures in history):
        raise ValueError(f"{len(history)} epochs of figures do not belong to epoch {epoch}")
    if not 0 <= best_epoch <= epoch or has_best != (best_epoch > 0):
        raise ValueError(f"the best epoch is {best_epoch} of {epoch}")
    if weights is not None and weights.min(initial=0) < 0:
        raise ValueError("some l1_weights are below 0")
    return factors(""), State(
        epoch=epoch,
        l1_weights=None if weights is None or like.tau is None else _fitting(weights, like.tau),
        history=history,
        best=Stored(factors("best_")) if has_best else None,
        best_epoch=best_epoch,
        stopped=bool(values["stopped"]),
    )


def _fitting(array: Any, like: Floats) -> Floats:
    """Return a copy in memory, refusing another shape or type and what is not a finite number."""
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(f"{array.dtype} numbers of shape {array.shape} where {like.dtype} of {like.shape} are needed")
    if not np.isfinite(array).all():
        raise ValueError("some numbers are not finite")
    return np.array(array)


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, the newest first; none where there is no folder."""
    found = [*folder.glob("epoch-*.checkpoint"), *folder.glob("epoch-*.manifest")]  # of a fit here, or on a cluster
    return sorted(found, reverse=True)
