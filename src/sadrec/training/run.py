"""A whole training run: epochs with progress, checkpoints, early stopping, and a way back from divergence."""

import logging
import sys
from collections.abc import Callable

from tqdm import tqdm

from sadrec.training.checkpoint import Checkpoints, State
from sadrec.training.fallback import Fallback
from sadrec.training.given import Pairs
from sadrec.training.interrupt import SafeInterrupt
from sadrec.training.trainer import Figures, Trainer
from sadrec.training.validation import validation_figures

logger = logging.getLogger("sadrec")


class DivergedError(ValueError):
    """Training left the finite numbers; the parameters are back at the last good epoch."""


def run(
    trainer: Trainer,
    *,
    after_epoch: Callable[[int, Figures], bool] = lambda epoch, figures: False,
    validation: Pairs | None = None,
    patience: int | None = None,
    monitor: str = "validation_log_likelihood",
    checkpoints: Checkpoints | None = None,
    show_progress: bool = True,
    title: str = "training",
    history: list[Figures] | None = None,
) -> list[Figures]:
    """Train to the end and return the figures of every epoch.

    Whatever ends the run - the last epoch, early stopping, a callback, Ctrl-C, divergence - the trainer's factors are
    those of a whole epoch: the best one when there is a validation set, else the last.

    Parameters
    ----------
    trainer
        What to run; its factors change in place.
    after_epoch
        Called with (epoch, figures) after each epoch; returning True ends the run.
    validation
        Triples that are not trained on; their figures join those of the epoch, and the best epoch is kept.
    patience
        End the run when ``monitor`` has not risen for so many epochs.
    monitor
        The figure to watch.
    checkpoints
        Where to resume from and to write to.
    show_progress
        Whether to show a bar (on a terminal).
    title
        What the bar is called.
    history
        An empty list to fill with the figures as they come, those of before a resume first.

    Raises
    ------
    DivergedError
        When a parameter stops being finite.
    """
    if patience is not None and (validation is None or patience < 1 or patience % 1):
        raise ValueError(f"patience ({patience!r}) must be a whole number from 1 and needs a validation set to watch")
    state = State(trainer.factors)
    if checkpoints is not None and (found := checkpoints.load()) is not None:
        trainer.factors.assign(found.factors)
        trainer.epoch, trainer.l1_weights = found.epoch, found.l1_weights
        state = found
        state.factors = trainer.factors
        logger.info("resumed after epoch %d of %d", found.epoch, trainer.epochs)
    if history is not None:
        history[:] = state.history
        state.history = history
    saved = state.epoch
    good = Fallback(trainer.factors)
    bar = tqdm(
        total=trainer.epochs,
        initial=state.epoch,
        desc=title,
        unit="epoch",
        disable=None if show_progress else True,
        file=sys.stderr,
    )

    def save() -> None:
        nonlocal saved
        if checkpoints is not None and saved != state.epoch:
            checkpoints.save(state)
            saved = state.epoch

    interrupt = SafeInterrupt()
    try:
        with interrupt:
            while trainer.epoch < trainer.epochs and not state.stopped:
                figures = trainer.train_epoch(interrupt.check)
                if not trainer.factors.finite():
                    raise DivergedError(
                        f"training diverged in epoch {trainer.epoch} (learning_rate={trainer.settings.learning_rate}, "
                        f"regularization={trainer.settings.regularization}): lower learning_rate, to a third say; the "
                        f"model is left as it was after epoch {state.epoch}"
                    )
                if validation is not None:
                    figures |= validation_figures(trainer.factors, validation)
                good.keep(trainer.factors)
                state.epoch, state.l1_weights = trainer.epoch, trainer.l1_weights
                state.history.append(figures)
                _keep_best(state, trainer, figures, validation, monitor)
                if patience is not None and state.epoch - state.best_epoch >= patience:
                    state.stopped = True
                if after_epoch(state.epoch, figures):
                    state.stopped = True
                if checkpoints is not None and (checkpoints.due() or state.stopped):
                    save()
                bar.set_postfix_str(_summary(figures), refresh=False)
                bar.update()
                interrupt.check()
            save()
    except BaseException:
        # Ctrl-C in the middle of an epoch, or divergence: back to the last whole one, and nothing is lost.
        good.restore(trainer.factors)
        trainer.epoch = state.epoch
        save()
        raise
    finally:
        good.close()
        bar.close()
        if state.best is not None:
            trainer.factors.assign(state.best)
    return state.history


def _keep_best(state: State, trainer: Trainer, figures: Figures, validation: Pairs | None, monitor: str) -> None:
    """Copy the factors when the figure watched is the best so far."""
    if validation is None:
        return
    if monitor not in figures:
        raise ValueError(f"monitor must be one of {sorted(figures)}, not {monitor!r}")
    if state.best is None or figures[monitor] > state.history[state.best_epoch - 1][monitor]:
        state.best = trainer.factors.copy()
        state.best_epoch = state.epoch


def _summary(figures: Figures) -> str:
    """Return the figures worth a place beside the bar."""
    parts = [f"log likelihood {figures['log_likelihood']:.4f}"]
    if "validation_accuracy" in figures:
        parts.append(f"held out {figures['validation_accuracy']:.1%}")
    if "sparsity" in figures:
        parts.append(f"T at 1 {figures['sparsity']:.1%}")
    parts.append(f"{figures['updates_per_second'] / 1e6:.1f} M/s")
    return ", ".join(parts)
