"""Epochs of stochastic gradient ascent as the step of the loop: snapshots out of memory, checkpoints, held-out data."""

import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from sadrec._record import Arrays
from sadrec._types import Floats
from sadrec.training.factors import Factors
from sadrec.training.given import Pairs
from sadrec.training.loop import diverged
from sadrec.training.trainer import Figures, Trainer
from sadrec.training.validation import HeldOut, validation_figures


class Snapshot:
    """A copy of factors in a nameless temporary file, which vanishes with the process; and the state of the trainer.

    In memory it would double what the parameters take. Where nothing can be written it is held in memory after all.
    """

    def __init__(self, factors: Factors, epoch: int = 0, l1_weights: Floats | None = None):
        self.epoch, self.l1_weights = epoch, l1_weights
        self._copy: Factors | None = None
        try:
            self._file = tempfile.TemporaryFile(prefix="sadrec-")  # noqa: SIM115
            weakref.finalize(self, _close, self._file)  # with the object, and without Python's warning that it was open
            for array in factors.arrays:
                self._file.write(array.data.cast("B"))
            self._file.flush()
        except OSError:
            self._copy = factors.copy()

    def put_into(self, factors: Factors) -> Factors:
        """Write the copy into factors of the same shapes, in place, and return them."""
        if self._copy is not None:
            factors.assign(self._copy)
            return factors
        self._file.seek(0)
        for array in factors.arrays:
            self._file.readinto(array.data.cast("B"))
        return factors


def _close(file: Any) -> None:
    """Close a file that is not needed any more, whatever could not be written to it."""
    with suppress(OSError):
        file.close()


class Epochs:
    """Epochs of a trainer, as :class:`~sadrec.training.loop.Step` says; ``make`` returns the state of a model."""

    keeps: Literal["best", "last"] = "best"
    settled = 0

    def __init__(
        self,
        trainer: Trainer,
        validation: Pairs | HeldOut | None = None,
        make: Callable[[bool], Any] = lambda finished: None,
    ):
        self.trainer = trainer
        self._validation, self._make = validation, make

    @property
    def done(self) -> int:
        """The number of epochs done."""
        return self.trainer.epoch

    @property
    def total(self) -> int:
        """The number of epochs in all."""
        return self.trainer.epochs

    @property
    def judged(self) -> bool:
        """Whether there is held-out data."""
        return self._validation is not None

    @property
    def ready(self) -> bool:
        """Whether no thread is at work on the factors."""
        return self.trainer.idle

    def advance(self, check: Callable[[], None]) -> Figures:
        """Train one epoch and return its figures."""
        figures = self.trainer.train_epoch(check)
        if not self.trainer.factors.finite():
            raise diverged(self.trainer.settings, self.trainer.epoch)
        return figures

    def judge(self) -> Figures:
        """Return mean log likelihood and accuracy on the held-out data."""
        return {} if self._validation is None else validation_figures(self.trainer.factors, self._validation)

    def snapshot(self) -> Snapshot:
        """Return a copy of the factors, out of memory."""
        return Snapshot(self.trainer.factors, self.trainer.epoch, self.trainer.l1_weights)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        snapshot.put_into(self.trainer.factors)
        self.trainer.epoch, self.trainer.l1_weights = snapshot.epoch, snapshot.l1_weights

    def record(self, snapshot: Snapshot | None = None) -> tuple[dict[str, Any], Arrays]:
        """Return the factors now, with the weights of adaptive training, or those of a snapshot alone."""
        factors = self.trainer.factors
        if snapshot is not None:
            factors = snapshot.put_into(factors.copy())
        weights = self.trainer.l1_weights if snapshot is None else None
        arrays = {"users": factors.users, "items": factors.items, "bias": factors.bias, "l1_weights": weights}
        return {}, {name: array for name, array in arrays.items() if array is not None}

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Go to where :meth:`record` was called, refusing what compiled code must not meet."""
        trainer, weights = self.trainer, arrays.get("l1_weights")
        like = trainer.factors
        if weights is not None and weights.min(initial=0) < 0:
            raise ValueError("some l1_weights are below 0")
        bias = None if like.bias is None else _fitting(arrays["bias"], like.bias)
        factors = Factors(_fitting(arrays["users"], like.users), _fitting(arrays["items"], like.items), bias)
        weights = None if weights is None or like.tau is None else _fitting(weights, like.tau)
        like.assign(factors)
        trainer.epoch, trainer.l1_weights = int(values["epoch"]), weights

    def learnt(self, finished: bool = False) -> Any:
        """Return the state of a model; when it is finished, the trainer keeps nothing but the factors."""
        if finished:
            self.trainer.free()
        return self._make(finished)

    def close(self) -> None:
        """Let go of everything but the factors."""
        self.trainer.free()


def _fitting(array: Any, like: Floats) -> Floats:
    """Return a copy in memory, refusing another shape or type and what is not a finite number."""
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(f"{array.dtype} numbers of shape {array.shape} where {like.dtype} of {like.shape} are needed")
    if not np.isfinite(array).all():
        raise ValueError("some numbers are not finite")
    return np.array(array)
