"""Sweeps of the variational solver as the step of the loop."""

import math
import time
from collections.abc import Callable
from typing import Any, Literal

from sadrec._record import Arrays
from sadrec.training.learners import Learners
from sadrec.training.loop import DivergedError
from sadrec.training.trainer import Figures
from sadrec.training.variational import Variational


class Sweeps:
    """Sweeps of a learner, or of several, as :class:`~sadrec.training.loop.Step` says; a sweep is never broken off."""

    keeps: Literal["best", "last"] = "last"
    judged = False

    def __init__(self, learners: Learners | Variational, total: int):
        self.learners, self.total = learners, total
        self.ready = True

    @property
    def done(self) -> int:
        """The number of sweeps done."""
        return self.learners.sweep

    @property
    def settled(self) -> int:
        """The sweep from which on no part of the model comes or goes."""
        return self.learners.last_stage + 1

    def advance(self, check: Callable[[], None]) -> Figures:
        """Make a sweep and return its figures."""
        start = time.perf_counter()
        self.ready = False
        likelihood = self.learners.advance()
        if not math.isfinite(likelihood):
            raise DivergedError(f"sweep {self.done} left the finite numbers: divide the weights by a number")
        self.ready = True
        updates = self.learners.total
        speed = updates / max(time.perf_counter() - start, 1e-9)
        return {"log_likelihood": likelihood, "updates": updates, "updates_per_second": speed}

    def judge(self) -> Figures:
        """Return nothing: there is no held-out data."""
        return {}

    def snapshot(self) -> None:
        """Return nothing: there is no way back, and none is needed."""

    def restore(self, snapshot: Any) -> None:
        """Stay."""

    def record(self, snapshot: Any = None) -> tuple[dict[str, Any], Arrays]:
        """Return what the next sweep depends on."""
        return self.learners.state()

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Go to where :meth:`record` was called."""
        self.learners.restore(values, arrays)

    def learnt(self, finished: bool = False) -> Any:
        """Return nothing: a model is made of what the learners believe elsewhere."""

    def close(self) -> None:
        """Do nothing: the threads are not those of this step."""
