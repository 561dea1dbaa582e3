"""The one loop that learns: progress, callbacks, patience, checkpoints, Ctrl-C at a safe point, divergence."""

import logging
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from sadrec._progress import Bar
from sadrec._record import Arrays, locked
from sadrec.training.checkpoint import Checkpoints
from sadrec.training.interrupt import SafeInterrupt
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures, lasting

logger = logging.getLogger("sadrec")

_BEST = "best_"
"""What the names of the arrays of the best epoch begin with, in a checkpoint."""


class DivergedError(ValueError):
    """Training left the finite numbers; the parameters are back at the last good epoch."""


def diverged(settings: Settings, epoch: int) -> DivergedError:
    """Return the error for an epoch of gradient ascent whose parameters are no finite numbers."""
    return DivergedError(
        f"training diverged in epoch {epoch} (learning_rate={settings.learning_rate}, "
        f"regularization={settings.regularization}): lower learning_rate, to a third say; the model is left as it was "
        f"after epoch {epoch - 1}"
    )


class Step(Protocol):
    """What learns: an epoch of gradient ascent, or a sweep of the variational solver, at a time."""

    @property
    def done(self) -> int:
        """The number of epochs done."""
        ...

    @property
    def total(self) -> int:
        """The number of epochs in all."""
        ...

    @property
    def keeps(self) -> Literal["best", "last"]:
        """Which epoch's parameters stay at the end, where held-out data tells the best."""
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
        """Return what the next epoch depends on, now or at a snapshot: plain values and arrays."""
        ...

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Go to where :meth:`record` was called; raise a ValueError for what compiled code must not meet."""
        ...

    def learnt(self, finished: bool = False) -> Any:
        """Return the state of a model; ``finished`` says that no epoch follows."""
        ...

    def close(self) -> None:
        """Let go of threads and data, when no epoch follows."""
        ...


@dataclass(frozen=True)
class Reached:
    """What a run has reached, with a snapshot of its step; replaced as a whole, so that an interrupt breaks nothing."""

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
    monitor: str = "validation_log_likelihood",
    checkpoints: Checkpoints | None = None,
    show_progress: bool = True,
    title: str = "training",
    history: list[Figures] | None = None,
) -> list[Figures]:
    """Learn to the end and return the figures of every epoch, without timings.

    Whatever ends the run - the last epoch, early stopping, a callback, Ctrl-C, divergence - the parameters are those of
    a whole epoch: the best one where the step keeps it and there is held-out data, else the last.

    The options are those of ``SAD.fit``. ``after_epoch(epoch, figures)`` ends the run by returning True, ``title`` is
    that of the progress bar, ``history`` a list to fill with the figures as they come, those of before a resume first.
    """
    if patience is not None and (not step.judged or patience < 1 or patience % 1):
        raise ValueError(f"patience ({patience!r}) must be a whole number from 1 and needs a validation set to watch")
    with ExitStack() as stack:
        if checkpoints is not None:
            stack.enter_context(locked(checkpoints.folder))
        reached = _resumed(step, checkpoints)
        history = [] if history is None else history
        history[:] = reached.history
        bar = stack.enter_context(progress(step.total, step.done, title, show_progress))
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
                    reached = _after(step, reached, figures, monitor)
                    history[:] = reached.history
                    if after_epoch is not None and after_epoch(step.done, figures):
                        reached = replace(reached, stopped=True)
                    if checkpoints is not None and (checkpoints.due() or reached.stopped):
                        save()
                    bar.set_postfix_str(summary(figures), refresh=False)
                    bar.update()
                    interrupt.check()
                save()
        except BaseException:
            # Ctrl-C in the middle of an epoch, or divergence: back to the last whole one, and nothing is lost.
            with SafeInterrupt():
                if step.ready:  # else someone insisted while threads are still at work: what was saved must do
                    step.restore(reached.snapshot)
                    history[:] = reached.history
                    if step.done == len(history):
                        save()
            raise
        finally:
            if reached.best is not None and step.ready:
                step.restore(reached.best)
    return history


def _after(step: Step, before: Reached, figures: Figures, monitor: str) -> Reached:
    """Return what is reached after an epoch."""
    best, best_epoch = before.best, before.best_epoch
    better = False
    if step.judged:
        if monitor not in figures:
            raise ValueError(f"monitor must be one of {sorted(figures)}, not {monitor!r}")
        better = not best_epoch or figures[monitor] > before.history[best_epoch - 1][monitor]
    snapshot = step.snapshot()
    if better:
        best, best_epoch = snapshot if step.keeps == "best" else None, step.done
    return Reached(snapshot, (*before.history, lasting(figures)), best, best_epoch)


def _packed(step: Step, reached: Reached) -> tuple[dict[str, Any], Arrays]:
    """Return values and arrays of a checkpoint."""
    values, arrays = step.record()
    if reached.best is not None:
        arrays |= {f"{_BEST}{name}": array for name, array in step.record(reached.best)[1].items()}
    names = ("history", "best_epoch", "stopped")
    return {**values, "epoch": step.done, **{name: getattr(reached, name) for name in names}}, arrays


def _resumed(step: Step, checkpoints: Checkpoints | None) -> Reached:
    """Put the step where the newest usable checkpoint is, if there is one, and return what was reached there."""
    first = step.snapshot()

    def unpack(values: dict[str, Any], arrays: Arrays) -> Reached:
        epoch, best_epoch, stopped = int(values["epoch"]), int(values["best_epoch"]), bool(values["stopped"])
        history = tuple(
            {str(name): math.nan if value is None else float(value) for name, value in figures.items()}
            for figures in values["history"]
        )
        best = {name.removeprefix(_BEST): array for name, array in arrays.items() if name.startswith(_BEST)}
        if epoch != len(history) or not epoch:
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


def progress(total: int, done: int, title: str, show: bool) -> Any:
    """Return a progress bar over epochs, which only a terminal shows."""
    options: Any = {"unit": "epoch", "disable": None if show else True, "file": sys.stderr}
    return Bar(total=total, initial=done, desc=title, **options)


def summary(figures: Figures) -> str:
    """Return the figures worth a place beside the bar."""
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
