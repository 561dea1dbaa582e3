"""A whole run of the variational solver: sweeps with progress, checkpoints, and a way out that keeps what there is."""

import logging
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from tqdm import tqdm

from sadrec._record import Records, locked
from sadrec.training.interrupt import SafeInterrupt
from sadrec.training.trainer import Figures
from sadrec.training.variational import Variational

logger = logging.getLogger("sadrec")


def learn(
    learner: Variational,
    sweeps: int,
    after_sweep: Callable[[Figures], bool],
    *,
    history: list[Figures],
    records: Records | None = None,
    seconds: float = 0.0,
    show_progress: bool = True,
    title: str = "learning",
) -> None:
    """Make sweeps up to a number, or until ``after_sweep``, which is called with the figures of each, returns True.

    Ctrl-C is heard between sweeps.

    Parameters
    ----------
    learner
        What to run.
    sweeps
        How many in all.
    after_sweep
        Called after every sweep; also once after a resume, with the last figures of before.
    history
        The figures of all sweeps, which ``after_sweep`` adds to; those of before a resume are put in.
    records
        Where to resume from and to write to.
    seconds
        Write a checkpoint at most so often.
    show_progress
        Whether to show a bar (on a terminal).
    title
        What the bar is called.
    """
    with ExitStack() as stack:
        if records is not None:
            stack.enter_context(locked(records.folder))
            if _resume(learner, records, history) and after_sweep(history.pop()):
                return
        bar = stack.enter_context(
            tqdm(
                total=sweeps,
                initial=learner.sweep,
                desc=title,
                unit="sweep",
                disable=None if show_progress else True,
                file=sys.stderr,
            )
        )
        interrupt = stack.enter_context(SafeInterrupt())
        written = time.monotonic()
        saved = learner.sweep

        def save() -> None:
            nonlocal saved, written
            if records is not None and saved != learner.sweep:
                values, arrays = learner.state()
                records.write(f"epoch-{learner.sweep:06d}", {**values, "history": history}, arrays)
                for old in records.names()[:-2]:
                    records.remove(old)
                saved, written = learner.sweep, time.monotonic()

        stopped = False
        while learner.sweep < sweeps and not stopped:
            start = time.perf_counter()
            likelihood = learner.advance()
            took = max(time.perf_counter() - start, 1e-9)
            rows = len(learner.rows.user)
            stopped = after_sweep({"log_likelihood": likelihood, "updates": rows, "updates_per_second": rows / took})
            bar.set_postfix_str(f"log likelihood {likelihood:.4f}", refresh=False)
            bar.update()
            if time.monotonic() - written >= seconds:
                save()
            try:
                interrupt.check()
            except KeyboardInterrupt:  # at the end of a sweep: nothing is lost
                save()
                raise
        save()


def _resume(learner: Variational, records: Records, history: list[Figures]) -> bool:
    """Go to where the newest usable checkpoint is; return whether there is one."""
    for name in reversed(records.names()):
        record = records.read(name)
        if record is None:
            continue
        values, arrays = record
        try:
            figures = [{str(key): float(value) for key, value in entry.items()} for entry in values["history"]]
            if len(figures) != values["sweep"] or not figures:
                raise ValueError(f"there are figures of {len(figures)} sweeps")
            learner.restore(values, arrays)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            logger.warning("%r cannot be used, so that an older one is: %s", str(records.path(name)), error)
            continue
        logger.info("resumed after sweep %d", learner.sweep)
        history[:] = figures
        return True
    return False
