"""The training loop: progress, callbacks, patience, checkpoints, Ctrl-C at a safe point, divergence.

All random numbers are keyed by (seed, epoch, cell), so that a checkpoint holds the parameters and the number of the
epoch; no generator has to be saved.
"""

import logging
import math
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Literal, Protocol

from sadrec._core.progress import Bar
from sadrec._core.record import Arrays
from sadrec.training.checkpoint import Checkpoints
from sadrec.training.settings import Settings

logger = logging.getLogger("sadrec")

Figures = dict[str, float]

_PASSING = ("seconds", "updates_per_second", "training_share", "moving_share", "waiting_share", "moved_bytes")

_WATCHED = "validation_log_likelihood"
"""The figure that tells the best epoch, and that patience waits for."""
_BEST = "best_"
"""Prefix of the arrays of the best epoch in a checkpoint."""


class DivergedError(ValueError):
    """Training diverged; the parameters are those of the last good epoch."""


def diverged(settings: Settings, epoch: int) -> DivergedError:
    """Return the error for an epoch of gradient ascent whose parameters are no finite numbers."""
    return DivergedError(
        f"training diverged in epoch {epoch} (learning_rate={settings.learning_rate}, "
        f"regularization={settings.regularization}): lower learning_rate, to a third say; the model is left as it was "
        f"after epoch {epoch - 1}"
    )


class Step(Protocol):
    """A step of training: an epoch of gradient ascent, a sweep of the variational solver, or sweeps of the sampler."""

    @property
    def done(self) -> int:
        """The number of epochs done."""
        ...

    @property
    def total(self) -> int:
        """The number of epochs in all."""
        ...

    @property
    def keeps(self) -> Literal["best", "last", "draws"]:
        """Which parameters stay at the end: of the best epoch on held-out data, of the last, or draws of all sweeps."""
        ...

    @property
    def judged(self) -> bool:
        """Whether there is held-out data."""
        ...

    @property
    def settled(self) -> int:
        """The epoch from which on patience counts."""
        ...

    @property
    def ready(self) -> bool:
        """Whether the parameters are those of a whole epoch or can be restored: no thread is at work on them."""
        ...

    def advance(self, check: Callable[[], None]) -> Figures:
        """Learn one epoch and return its figures; ``check`` is called where Ctrl-C may end it.

        It raises a DivergedError when the parameters leave the finite numbers.
        """
        ...

    def judge(self) -> Figures:
        """Return the figures of the held-out data."""
        ...

    def snapshot(self) -> Any:
        """Return what :meth:`restore` takes; None where an epoch is never broken off."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Go back to a snapshot."""
        ...

    def record(self, snapshot: Any = None) -> tuple[dict[str, Any], Arrays]:
        """Return the state that the next epoch depends on, now or at a snapshot: plain values and arrays."""
        ...

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Restore what :meth:`record` returned; raise a ValueError for values that compiled code cannot take."""
        ...

    def learnt(self, finished: bool = False) -> Any:
        """Return the state of a model; ``finished`` says that no epoch follows."""
        ...

    def close(self) -> None:
        """Release threads and data; no epoch can follow."""
        ...


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


class SafeInterrupt:
    """Ctrl-C at a safe point: not while threads are at work on the parameters or a file is half written.

    While this is active, Ctrl-C is noted, and :meth:`check` raises KeyboardInterrupt where nothing can break.

    A second Ctrl-C raises at once. Outside the main thread, or where the program has a handler of its own, nothing
    is changed.
    """

    def __init__(self) -> None:
        self._noted = False
        self._active = False

    def __enter__(self) -> "SafeInterrupt":
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._active = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._active = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted:
            raise KeyboardInterrupt
        self._noted = True

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._noted:
            raise KeyboardInterrupt


# -- the loop ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reached:
    """The progress of a run, with a snapshot of its step; replaced as a whole, so that an interrupt is safe."""

    snapshot: Any
    history: tuple[Figures, ...] = ()
    best: Any = None  # the snapshot of the best epoch,
    best_epoch: int = 0  # and its number
    stopped: bool = False  # whether a callback ended the run


def run(
    step: Step,
    *,
    after_epoch: Callable[[int, Figures], bool | None] | None = None,
    patience: int | None = None,
    checkpoints: Checkpoints | None = None,
    show_progress: bool = True,
    title: str = "training",
    history: list[Figures] | None = None,
) -> list[Figures]:
    """Run a step to the end, and return the figures of every epoch, without timings.

    Whatever ends the run - the last epoch, early stopping, a callback, Ctrl-C, divergence - the parameters are those of
    a whole epoch: the best one where the step keeps it and there is held-out data, else the last.

    The options are those of ``SAD.fit``. ``after_epoch(epoch, figures)`` ends the run by returning True, ``title`` is
    that of the progress bar, ``history`` a list to fill with the figures as they come, those of before a resume first.
    """
    if patience is not None and (not step.judged or patience < 1 or patience % 1):
        raise ValueError(f"patience ({patience!r}) must be a whole number from 1 and needs a validation set to watch")
    with ExitStack() as stack:
        if checkpoints is not None:
            stack.enter_context(checkpoints.held())
        reached = _resumed(step, checkpoints)
        history = [] if history is None else history
        history[:] = reached.history
        unit = "sweep" if step.keeps == "draws" else "epoch"
        bar = stack.enter_context(progress(step.total, step.done, title, show_progress, unit))
        saved = step.done

        def save() -> None:
            nonlocal saved
            if checkpoints is not None and saved != step.done:
                checkpoints.write(step.done, *_packed(step, reached))
                saved = step.done

        def over() -> bool:
            if reached.stopped or step.done >= step.total:
                return True
            return patience is not None and step.done - max(reached.best_epoch, step.settled) >= patience

        try:
            with SafeInterrupt() as interrupt:
                while not over():
                    figures = step.advance(interrupt.check)
                    if step.judged:
                        figures |= step.judge()
                    reached = _after(step, reached, figures)
                    history[:] = reached.history
                    if after_epoch is not None and after_epoch(step.done, figures):
                        reached = replace(reached, stopped=True)
                    if checkpoints is not None and (checkpoints.due() or reached.stopped):
                        save()
                    bar.set_postfix_str(summary(figures), refresh=False)
                    bar.update(step.done - bar.n)
                    interrupt.check()
                save()
        except BaseException:
            # Ctrl-C in the middle of an epoch, or divergence: back to the last whole one, and nothing is lost.
            with SafeInterrupt():
                if step.ready:  # else Ctrl-C came twice while threads were at work: the last checkpoint has to do
                    step.restore(reached.snapshot)
                    history[:] = reached.history
                    if step.keeps == "draws" or step.done == len(history):
                        save()
            raise
        finally:
            if reached.best is not None and step.ready:
                step.restore(reached.best)
    return history


def _after(step: Step, before: Reached, figures: Figures) -> Reached:
    """Return the progress after an epoch."""
    best, best_epoch = before.best, before.best_epoch
    better = False
    if step.judged:
        better = not best_epoch or figures[_WATCHED] > before.history[best_epoch - 1][_WATCHED]
    snapshot = step.snapshot()
    if better:
        best, best_epoch = snapshot if step.keeps == "best" else None, step.done
    history = () if step.keeps == "draws" else (*before.history, lasting(figures))
    return Reached(snapshot, history, best, best_epoch)


def _packed(step: Step, reached: Reached) -> tuple[dict[str, Any], Arrays]:
    """Return values and arrays of a checkpoint."""
    values, arrays = step.record()
    if reached.best is not None:
        arrays |= {f"{_BEST}{name}": array for name, array in step.record(reached.best)[1].items()}
    names = ("history", "best_epoch", "stopped")
    return {**values, "epoch": step.done, **{name: getattr(reached, name) for name in names}}, arrays


def _resumed(step: Step, checkpoints: Checkpoints | None) -> Reached:
    """Restore the newest usable checkpoint, if there is one, and return its progress."""
    first = step.snapshot()

    def unpack(values: dict[str, Any], arrays: Arrays) -> Reached:
        epoch, best_epoch, stopped = int(values["epoch"]), int(values["best_epoch"]), bool(values["stopped"])
        history = tuple(
            {str(name): math.nan if value is None else float(value) for name, value in figures.items()}
            for figures in values["history"]
        )
        best = {name.removeprefix(_BEST): array for name, array in arrays.items() if name.startswith(_BEST)}
        if not epoch or len(history) != (0 if step.keeps == "draws" else epoch):
            raise ValueError(f"{len(history)} epochs of figures do not belong to epoch {epoch}")
        if not 0 <= best_epoch <= epoch or bool(best) != (best_epoch > 0 and step.keeps == "best"):
            raise ValueError(f"the best epoch is {best_epoch} of {epoch}")
        try:
            of_best = None
            if best:
                step.load({**values, "epoch": best_epoch}, best)
                of_best = step.snapshot()
            step.load(values, {name: array for name, array in arrays.items() if not name.startswith(_BEST)})
        except BaseException:
            step.restore(first)
            raise
        return Reached(step.snapshot(), history, of_best, best_epoch, stopped)

    reached = None if checkpoints is None else checkpoints.newest(unpack)
    if reached is None:
        return Reached(first)
    logger.info("resumed after epoch %d of %d", step.done, step.total)
    return reached


def progress(total: int, done: int, title: str, show: bool, unit: str = "epoch") -> Any:
    """Return a progress bar over epochs, which only a terminal shows."""
    options: Any = {"unit": unit, "disable": None if show else True, "file": sys.stderr}
    return Bar(total=total, initial=done, desc=title, **options)


def lasting(figures: Figures) -> Figures:
    """Return the figures that are the same on any machine: those that are not timings."""
    return {name: value for name, value in figures.items() if name not in _PASSING}


def summary(figures: Figures) -> str:
    """Return the figures shown next to the progress bar."""
    if "draws_per_chain" in figures:
        return f"{figures['draws_per_chain']} draws per chain" if figures["draws_per_chain"] else "warming up"
    parts = [f"log likelihood {figures['log_likelihood']:.4f}"]
    if "validation_accuracy" in figures:
        parts.append(f"held out {figures['validation_accuracy']:.1%}")
    if "sparsity" in figures:
        parts.append(f"T at 1 {figures['sparsity']:.1%}")
    parts.append(f"{figures['updates_per_second'] / 1e6:.1f} M/s")
    if "waiting_share" in figures:
        spent = (f"{name} {figures[f'{name}_share']:.0%}" for name in ("training", "moving", "waiting"))
        parts.append("workers " + ", ".join(spent))
    return ", ".join(parts)
