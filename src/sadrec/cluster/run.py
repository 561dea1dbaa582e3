"""A whole fit on a cluster: attempt after attempt, each from the last state that is still there."""

import logging
import math
import secrets
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from sadrec._record import CheckpointError
from sadrec.cluster.actors import Actors, Lost
from sadrec.cluster.checkpoint import Saved, Shards
from sadrec.cluster.scheduler import Boundary, Scheduler
from sadrec.training.engine import Course, Keep
from sadrec.training.loop import diverged, progress, summary
from sadrec.training.settings import Settings
from sadrec.training.trainer import lasting

if TYPE_CHECKING:
    from sadrec.cluster.engine import Ray
    from sadrec.cluster.shared import SharedData

logger = logging.getLogger("sadrec")

FIRST_SECONDS = 120.0  # in which all workers must find a place
MOST_LOSSES = 5  # without an epoch in between


class Run:
    """One fit: attempt after attempt, each from the last state that is still there."""

    def __init__(self, engine: "Ray", data: "SharedData", settings: Settings, course: Course, keep: Keep) -> None:
        self._engine, self._data, self._settings, self._course, self._keep_learnt = engine, data, settings, course, keep
        self._history, self._shards = course.history, None
        self._saved: Saved | None = None
        if course.checkpoint is not None:
            self._shards = Shards(str(course.checkpoint), course.identity, course.checkpoint_seconds)
        self._token = secrets.token_hex(4)  # a worker of a program that was killed may still be writing
        self._boundary: Boundary | None = None
        self._workers = engine.workers
        self._told: set[int] = set()

    def to_the_end(self) -> None:
        """Train to the end."""
        course = self._course
        with nullcontext() if self._shards is None else self._shards.held():
            if self._shards is not None:
                self._saved = self._shards.newest()
            if self._saved is not None:
                self._history[:] = self._saved.history
            with progress(self._settings.iterations, len(self._history), course.title, course.show_progress) as bar:
                self._attempts(bar)

    def _attempts(self, bar: Any) -> None:
        """Try again after a loss, unless there were many."""
        losses, attempt = 0, 0
        while True:
            attempt += 1
            reached = len(self._history)
            try:
                self._attempt(attempt, bar)
                return
            except Lost as loss:
                losses = 1 if len(self._history) > reached else losses + 1
                if losses > MOST_LOSSES:
                    raise RuntimeError(
                        f"{losses} attempts at epoch {len(self._history) + 1} lost a worker ({loss}): see the logs of "
                        "Ray for what ended them"
                    ) from loss
                logger.warning("%s, in epoch %d; trying again", loss, len(self._history) + 1)

    def _attempt(self, attempt: int, bar: Any) -> None:
        """Train from the last state there is, until the end or a loss."""
        engine, settings = self._engine, self._settings
        seconds, least = (FIRST_SECONDS, self._workers) if attempt == 1 else (engine.spare_seconds, 1)
        workers = self._data.start(self._workers, seconds, least)
        try:
            if workers.count != self._workers:
                logger.warning("no place for %d of %d workers", self._workers - workers.count, self._workers)
                self._workers, self._boundary = workers.count, None
            scheduler = self._data.scheduler(workers, settings)
            self._restore(scheduler)
            stopped = self._saved is not None and self._saved.stopped and self._saved.epoch == len(self._history)
            first = len(self._history)
            while len(self._history) < settings.iterations and not stopped:
                epoch = len(self._history)
                figures = scheduler.train_epoch(epoch, self._keep)
                if not all(map(math.isfinite, figures.values())):
                    self._go_back(scheduler)
                    raise diverged(settings, epoch + 1)
                self._history.append(lasting(figures))
                if epoch > first:  # in the first one, kernels are loaded
                    self._warn_of_the_slowest(scheduler, workers)
                stopped = self._course.after_epoch(epoch + 1, figures)
                last = stopped or len(self._history) == settings.iterations
                if self._shards is not None and (self._shards.due() or last):
                    self._save(scheduler, attempt, stopped)
                bar.set_postfix_str(summary(figures), refresh=False)
                bar.n = len(self._history)
                bar.update(0)
            scheduler.rest()
            self._keep_learnt(self._data.learnt())
        finally:
            workers.end()

    def _keep(self, boundary: Boundary) -> None:
        """Hold on to the rows with which an epoch begins."""
        self._boundary = boundary

    def _restore(self, scheduler: Scheduler) -> None:
        """Put the workers where the last state is: the beginning of an epoch, a checkpoint, or the first factors."""
        if self._boundary is not None:
            boundary, self._boundary = self._boundary, None  # where it is not whole any more, the next attempt has none
            scheduler.restore(boundary)
            self._boundary = boundary
            del self._history[boundary.epoch :]
            return
        while (saved := self._saved) is not None:
            try:
                count = range(scheduler.workers.count)
                scheduler.workers.get([scheduler.workers.call(w, "training.read_checkpoint", saved) for w in count])
            except CheckpointError as error:
                logger.warning("%s; going on from the checkpoint before, where there is one", error)
                self._saved = None if self._shards is None else self._shards.newest(before=saved.epoch)
                continue
            del self._history[saved.epoch :]
            return
        self._history.clear()
        count = range(scheduler.workers.count)
        scheduler.workers.get([scheduler.workers.call(worker, "training.draw_first") for worker in count])

    def _bounds(self, scheduler: Scheduler) -> list[list[int]]:
        """Return, for each worker, the first and the last user and item of the rest layout."""
        users, items = (edges.tolist() for edges in self._data.partitioned.bounds)
        return [[*users[w : w + 2], *items[w : w + 2]] for w in range(scheduler.workers.count)]

    def _save(self, scheduler: Scheduler, attempt: int, stopped: bool) -> None:
        """Have every worker write its rows, then say that they are there."""
        shards = self._shards
        if shards is None:
            return
        scheduler.rest()
        epoch, count = len(self._history), scheduler.workers.count
        names = [f"epoch-{epoch:06d}-{self._token}-{attempt:03d}-{worker:05d}.rows" for worker in range(count)]
        calls = [
            scheduler.workers.call(w, "training.write_checkpoint", shards.folder, name) for w, name in enumerate(names)
        ]
        sums, bounds = scheduler.workers.get(calls), self._bounds(scheduler)
        self._saved = Saved(shards.folder, epoch, tuple(self._history), stopped, names, bounds, sums)
        shards.write(self._saved)

    def _go_back(self, scheduler: Scheduler) -> None:
        """Keep what was learnt before this epoch, if anything."""
        if self._boundary is not None and self._history:
            scheduler.restore(self._boundary)
            scheduler.rest()
            self._keep_learnt(self._data.learnt())

    def _warn_of_the_slowest(self, scheduler: Scheduler, workers: Actors) -> None:
        """Name a worker that all others wait for, once."""
        slow = scheduler.slowest()
        if slow is not None and slow.worker not in self._told:
            self._told.add(slow.worker)
            node, process = workers.places[slow.worker]
            logger.warning(
                "worker %d (process %d on node %s) trains %.1f times as long as the others, who wait %.0f %% of the "
                "time: is that node busy with something else?",
                slow.worker,
                process,
                node[:8],
                slow.ratio,
                100 * slow.waiting,
            )
