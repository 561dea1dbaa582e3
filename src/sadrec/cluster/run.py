"""A fit on a cluster as a step of the training loop; epochs that a loss costs are trained again, with the same bits."""

import logging
import math
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sadrec._core.record import Arrays, CheckpointError
from sadrec.cluster.actors import FIRST_SECONDS, repeated
from sadrec.cluster.checkpoint import Saved
from sadrec.cluster.scheduler import Boundary, Scheduler
from sadrec.training.engine import Figures, Keep, Settings, diverged

if TYPE_CHECKING:
    from sadrec.cluster.engine import Ray
    from sadrec.cluster.shared import SharedData

logger = logging.getLogger("sadrec")

T = TypeVar("T")


class Epochs:
    """The epochs of a fit on workers.

    A lost worker is replaced. Training then goes on from the rows of the last epoch, from a checkpoint, or from the
    beginning.
    """

    keeps: Literal["best", "last", "draws"] = "last"
    judged = False
    settled = 0

    def __init__(self, engine: "Ray", data: "SharedData", settings: Settings, folder: str, keep: Keep) -> None:
        self._engine, self._data, self._settings, self._folder, self._keep = engine, data, settings, folder, keep
        self.done, self.total = 0, settings.iterations
        self.ready = False  # only after divergence: all else ends the fit without a model
        self._scheduler: Scheduler | None = None
        self._trained: int | None = None  # epochs that the rows of the workers have seen; None: the rows are to come
        self._boundary: Boundary | None = None
        self._saved: list[Saved] = []  # the last two
        self._workers = engine.workers
        self._starts = 0
        self._token = secrets.token_hex(4)  # a worker of a program that was killed may still be writing

    # -- the step -----------------------------------------------------------------------------------------------------

    def advance(self, check: Callable[[], None]) -> Figures:
        """Train one epoch and return its figures."""
        figures = self._on_workers(lambda scheduler: scheduler.train_epoch(self.done, self._hold))
        if not all(map(math.isfinite, figures.values())):
            self.ready = True
            raise diverged(self._settings, self.done + 1)
        self.done += 1
        self._trained = self.done
        return figures

    def judge(self) -> Figures:
        """Return no figures: there is no held-out data."""
        return {}

    def snapshot(self) -> int:
        """Return the number of epochs done."""
        return self.done

    def restore(self, snapshot: int) -> None:
        """Go back to a number of epochs; the rows come when they are needed."""
        self.done, self._trained = snapshot, None
        self._saved = [saved for saved in self._saved if saved.epoch <= snapshot]

    def record(self, snapshot: Any = None) -> tuple[dict[str, Any], Arrays]:
        """Have every worker write its rows; return the names, bounds and checksums of the files."""

        def write(scheduler: Scheduler) -> Saved:
            scheduler.rest()
            workers, users, items = scheduler.workers, *(edges.tolist() for edges in self._data.partitioned.bounds)
            bounds = [[*users[w : w + 2], *items[w : w + 2]] for w in range(workers.count)]
            start = f"epoch-{self.done:06d}-{self._token}-{self._starts:03d}"
            names = [f"{start}-{worker:05d}.rows" for worker in range(workers.count)]
            calls = [workers.call(w, "training.write_checkpoint", self._folder, name) for w, name in enumerate(names)]
            return Saved(self._folder, self.done, names, bounds, workers.get(calls))

        saved = self._on_workers(write)
        self._saved = [*self._saved[-1:], saved]
        return {"names": saved.names, "bounds": saved.bounds, "checksums": saved.checksums}, {}

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Have the workers read the rows of a checkpoint."""
        self.done, self._trained = int(values["epoch"]), None
        self._saved = [Saved(self._folder, self.done, values["names"], values["bounds"], values["checksums"])]
        self._on_workers(lambda scheduler: None)

    def learnt(self, finished: bool = False) -> Any:
        """Return the state that ``keep`` makes of the rows of all workers."""

        def bring(scheduler: Scheduler) -> Any:
            scheduler.rest()
            return self._keep(self._data.result(self._settings))

        return self._on_workers(bring)

    def close(self) -> None:
        """End the workers."""
        if self._scheduler is not None:
            self._scheduler.workers.end()
            self._scheduler = None

    # -- the workers --------------------------------------------------------------------------------------------------

    def _on_workers(self, work: Callable[[Scheduler], T]) -> T:
        """Call ``work`` with a scheduler at the last epoch done; after a loss call it again, a few times at most."""
        return repeated(lambda: work(self._brought()), self.close, lambda: f"in epoch {self.done + 1}")

    def _brought(self) -> Scheduler:
        """Return the scheduler, with its workers at the last epoch done; epochs that were lost are trained again."""
        if self._scheduler is None:
            given = (FIRST_SECONDS, self._workers) if not self._starts else (self._engine.spare_seconds, 1)
            self._starts += 1
            workers = self._data.start(self._settings, self._workers, *given)
            if workers.count != self._workers:
                logger.warning("no place for %d of %d workers", self._workers - workers.count, self._workers)
                self._workers, self._boundary = workers.count, None
            self._scheduler, self._trained = Scheduler(workers, self._settings, self._data.pairs), None
        if self._trained is None:
            self._trained = self._restored(self._scheduler)
        while self._trained < self.done:
            self._scheduler.train_epoch(self._trained, self._hold)
            self._trained += 1
        return self._scheduler

    def _restored(self, scheduler: Scheduler) -> int:
        """Give the workers the newest rows that still exist; return after which epoch they are."""
        if self._boundary is not None:
            boundary, self._boundary = self._boundary, None  # where it is not whole any more, the next attempt has none
            scheduler.restore(boundary)
            self._boundary = boundary
            return boundary.epoch
        while self._saved:
            try:
                scheduler.workers.get(scheduler.workers.tell("training.read_checkpoint", self._saved[-1]))
                return self._saved[-1].epoch
            except CheckpointError as error:
                if self._starts == 1:  # of a run before: the loop has an older one
                    raise
                logger.warning("%s; going on from the checkpoint before, where there is one", error)
                self._saved.pop()
        self._data.draw_first(scheduler.workers, self._settings)
        return 0

    def _hold(self, boundary: Boundary) -> None:
        """Keep references to the rows with which an epoch begins."""
        self._boundary = boundary
