"""A whole training run, of either solver: progress, checkpoints, early stopping, Ctrl-C at a safe point."""

import logging
import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from sadrec._progress import Bar
from sadrec._record import Arrays, locked
from sadrec.training.checkpoint import Checkpoints, State
from sadrec.training.given import Pairs
from sadrec.training.interrupt import SafeInterrupt
from sadrec.training.learners import Learners
from sadrec.training.rollback import Rollback
from sadrec.training.stored import Stored
from sadrec.training.trainer import Figures, Trainer, lasting
from sadrec.training.validation import HeldOut, validation_figures
from sadrec.training.variational import Variational

logger = logging.getLogger("sadrec")


class DivergedError(ValueError):
    """Training left the finite numbers; the parameters are back at the last good epoch."""


def check_patience(patience: int | None, validation: Pairs | HeldOut | None) -> None:
    """Refuse patience that is no whole number, or has nothing to watch."""
    if patience is not None and (validation is None or patience < 1 or patience % 1):
        raise ValueError(f"patience ({patience!r}) must be a whole number from 1 and needs a validation set to watch")


def progress(total: int, done: int, title: str, show: bool) -> Any:
    """Return a progress bar over epochs, which only a terminal shows."""
    options: Any = {"unit": "epoch", "disable": None if show else True, "file": sys.stderr}
    return Bar(total=total, initial=done, desc=title, **options)


def run(
    trainer: Trainer,
    *,
    after_epoch: Callable[[int, Figures], bool] = lambda epoch, figures: False,
    validation: Pairs | HeldOut | None = None,
    patience: int | None = None,
    monitor: str = "validation_log_likelihood",
    checkpoints: Checkpoints | None = None,
    show_progress: bool = True,
    title: str = "training",
    history: list[Figures] | None = None,
) -> list[Figures]:
    """Train to the end and return the figures of every epoch, without timings.

    Whatever ends the run - the last epoch, early stopping, a callback, Ctrl-C, divergence - the trainer's factors are
    those of a whole epoch: the best one when there is a validation set, else the last. A parameter that stops being
    finite raises a DivergedError.

    The options are those of ``SAD.fit``. ``after_epoch(epoch, figures)`` ends the run by returning True, ``title`` is
    that of the progress bar, ``history`` a list to fill with the figures as they come, those of before a resume first.
    """
    check_patience(patience, validation)
    with ExitStack() as stack:
        if checkpoints is not None:
            stack.enter_context(locked(checkpoints.folder))
        state = State() if checkpoints is None else _resume(trainer, checkpoints)
        history = [] if history is None else history
        history[:] = state.history
        rollback = Rollback(trainer.factors, state)
        bar = stack.enter_context(progress(trainer.epochs, state.epoch, title, show_progress))
        saved = state.epoch

        def save() -> None:
            nonlocal saved
            if checkpoints is not None and saved != state.epoch:
                checkpoints.save(trainer.factors, state)
                saved = state.epoch

        try:
            with SafeInterrupt() as interrupt:
                while not _over(state, trainer, patience):
                    figures = trainer.train_epoch(interrupt.check)
                    if not trainer.factors.finite():
                        raise DivergedError(
                            f"training diverged in epoch {trainer.epoch} "
                            f"(learning_rate={trainer.settings.learning_rate}, "
                            f"regularization={trainer.settings.regularization}): lower learning_rate, to a third say; "
                            f"the model is left as it was after epoch {state.epoch}"
                        )
                    if validation is not None:
                        figures |= validation_figures(trainer.factors, validation)
                    state = _after(state, trainer, figures, None if validation is None else monitor)
                    rollback.keep(trainer.factors, state)
                    history[:] = state.history
                    if after_epoch(state.epoch, figures):
                        rollback.state = state = replace(state, stopped=True)
                    if checkpoints is not None and (checkpoints.due() or state.stopped):
                        save()
                    bar.set_postfix_str(summary(figures), refresh=False)
                    bar.update()
                    interrupt.check()
                save()
        except BaseException:
            # Ctrl-C in the middle of an epoch, or divergence: back to the last whole one, and nothing is lost.
            with SafeInterrupt():
                if trainer.idle:  # else someone insisted while threads are still at work: what was saved must do
                    state = rollback.restore(trainer.factors)
                    trainer.epoch, trainer.l1_weights, history[:] = state.epoch, state.l1_weights, state.history
                    save()
            raise
        finally:
            if state.best is not None:
                state.best.put_into(trainer.factors)
    return history


def _resume(trainer: Trainer, checkpoints: Checkpoints) -> State:
    """Put the trainer where the newest checkpoint is, if there is one, and return its state."""
    checkpoint = checkpoints.load(trainer.factors)
    if checkpoint is None:
        return State()
    factors, state = checkpoint
    trainer.factors.assign(factors)
    trainer.epoch, trainer.l1_weights = state.epoch, state.l1_weights
    logger.info("resumed after epoch %d of %d", state.epoch, trainer.epochs)
    return state


def _over(state: State, trainer: Trainer, patience: int | None) -> bool:
    """Tell whether a callback stopped the run, the last epoch is done, or patience is at its end."""
    if state.stopped or trainer.epoch >= trainer.epochs:
        return True
    return patience is not None and state.epoch - state.best_epoch >= patience


def _after(state: State, trainer: Trainer, figures: Figures, monitor: str | None) -> State:
    """Return the state after an epoch; the factors are copied when the figure to watch is the best so far."""
    best, best_epoch = state.best, state.best_epoch
    if monitor is not None:
        if monitor not in figures:
            raise ValueError(f"monitor must be one of {sorted(figures)}, not {monitor!r}")
        if best is None or figures[monitor] > state.history[best_epoch - 1][monitor]:
            best, best_epoch = Stored(trainer.factors), trainer.epoch
    return State(
        epoch=trainer.epoch,
        l1_weights=trainer.l1_weights,
        history=(*state.history, lasting(figures)),
        best=best,
        best_epoch=best_epoch,
    )


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


def run_sweeps(
    learner: Variational | Learners,
    sweeps: int,
    after_sweep: Callable[[Figures], bool],
    *,
    history: list[Figures],
    checkpoints: Checkpoints | None = None,
    show_progress: bool = True,
    title: str = "training",
) -> None:
    """Make sweeps of the variational solver up to a number, or until ``after_sweep`` returns True.

    ``after_sweep`` is called with the figures of each sweep, which it adds to ``history``; also once after a resume,
    with the last figures of before. Ctrl-C takes effect between sweeps.
    """
    stopped = False

    def resume(values: dict[str, Any], arrays: Arrays) -> bool:
        figures = [
            {str(name): math.nan if value is None else float(value) for name, value in entry.items()}
            for entry in values["history"]
        ]
        if len(figures) != values["sweep"] or not figures:
            raise ValueError(f"there are figures of {len(figures)} sweeps")
        nonlocal stopped
        ended = bool(values["stopped"])
        learner.restore(values, arrays)
        history[:], stopped = figures, ended
        logger.info("resumed after sweep %d of %d", learner.sweep, sweeps)
        return True

    with ExitStack() as stack:
        if checkpoints is not None:
            stack.enter_context(locked(checkpoints.folder))
            if checkpoints.newest(resume):
                stopped = after_sweep(history.pop()) or stopped
        bar = stack.enter_context(progress(sweeps, learner.sweep, title, show_progress))
        interrupt = stack.enter_context(SafeInterrupt())
        saved = learner.sweep

        def save() -> None:
            nonlocal saved
            if checkpoints is not None and saved != learner.sweep:
                values, arrays = learner.state()
                checkpoints.write(learner.sweep, {**values, "history": history, "stopped": stopped}, arrays)
                saved = learner.sweep

        while learner.sweep < sweeps and not stopped:
            start = time.perf_counter()
            likelihood = learner.advance()
            if not math.isfinite(likelihood):
                raise DivergedError(f"sweep {learner.sweep} left the finite numbers: divide the weights by a number")
            updates = learner.total
            speed = updates / max(time.perf_counter() - start, 1e-9)
            figures = {"log_likelihood": likelihood, "updates": updates, "updates_per_second": speed}
            try:
                stopped = after_sweep(figures)
            except BaseException:  # a callback's: the sweep is whole, and nothing is lost
                if len(history) == learner.sweep:
                    save()
                raise
            if checkpoints is not None and checkpoints.due():
                save()
            bar.set_postfix_str(summary(figures), refresh=False)
            bar.update()
            try:
                interrupt.check()
            except KeyboardInterrupt:  # at the end of a sweep: nothing is lost
                save()
                raise
        save()
