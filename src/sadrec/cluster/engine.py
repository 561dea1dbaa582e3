"""The engine ``Ray``: a whole fit on a cluster, through losses of workers and nodes, with the bits of one machine."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sadrec import _check
from sadrec.cluster.actors import Actors, Lost, ray
from sadrec.cluster.checkpoint import Saved, Shards
from sadrec.cluster.conductor import Boundary, Conductor
from sadrec.cluster.layout import REST, layout
from sadrec.cluster.parts import write_parts
from sadrec.cluster.worker import Rows
from sadrec.models.everybody import Part, Work, Written
from sadrec.training.dataset import TrainingData
from sadrec.training.factors import Factors
from sadrec.training.run import DivergedError, progress, summary
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures, epochs_of, lasting

logger = logging.getLogger("sadrec")

_FIRST_SECONDS = 120.0  # in which all workers must find a place
_MOST_LOSSES = 5  # without an epoch in between


@dataclass(frozen=True)
class Ray:
    """Train on a cluster of Ray: ``SAD(...).fit(data, engine=Ray(workers=4))``; ``recommend_all`` takes it too.

    The model has the bits that ``fit`` on one machine gives it. A worker that is lost is replaced, or, where no node
    has room for another, the rest goes on without it; the bits stay.

    Parameters
    ----------
    workers
        How many, each a process that holds a part of the users; at most as many as the setting ``blocks``.
    address
        Of the cluster, as ``ray.init`` takes it ("auto", "ray://..."). None: the one this process is connected to, that
        of the environment variable RAY_ADDRESS, or, where there is none, one that is started on this machine.
    threads
        How many threads each worker has, and how many CPUs Ray sets aside for it.
    spare_seconds
        How long to wait for a place for a lost worker before going on without it.
    """

    workers: int = 2
    address: str | None = None
    threads: int = 1
    spare_seconds: float = 30.0

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("workers", "threads"):
            value = getattr(self, name)
            if not _check.is_whole(value) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
        if not 0 <= self.spare_seconds < math.inf:
            raise ValueError(f"spare_seconds must be a finite number from 0, not {self.spare_seconds!r}")

    def run(
        self,
        data: TrainingData,
        settings: Settings,
        factors: Factors,
        *,
        identity: Mapping[str, Any],
        checkpoint: str | Path | None,
        checkpoint_seconds: float,
        after_epoch: Callable[[int, Figures], bool],
        show_progress: bool,
        title: str,
        history: list[Figures],
    ) -> None:
        """Train to the end, from ``factors`` and into them, and fill ``history``."""
        self._check(data, settings)
        shards = None if checkpoint is None else Shards(str(checkpoint), identity, checkpoint_seconds)
        started = self._connect()
        try:
            run = _Run(self, data, settings, factors, shards, history)
            with progress(epochs_of(settings), len(history), title, show_progress) as bar:
                run.to_the_end(after_epoch, bar)
        finally:
            if started:
                ray().shutdown()

    def write_parts(self, work: Work, parts: Iterable[Part], done: Callable[[Written], object]) -> None:
        """Have workers write the parts of ``SAD.recommend_all``, and call ``done`` for each that is there."""
        started = self._connect()
        try:
            write_parts(work, parts, done, self.workers, self.threads)
        finally:
            if started:
                ray().shutdown()

    def _check(self, data: TrainingData, settings: Settings) -> None:
        """Refuse what cannot be done on a cluster."""
        if data.positives(settings) is not None and self.workers > settings.blocks:
            raise ValueError(
                f"workers={self.workers} is more than blocks={settings.blocks}, and every worker needs a block of "
                "items: lower workers or raise blocks"
            )

    def _connect(self) -> bool:
        """Connect to the cluster; return whether it was started here, and is to be ended here."""
        if ray().is_initialized():
            return False
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            ray().init(address=self.address or "auto", **options)
        except ConnectionError:
            if self.address is not None:
                raise
            ray().init(num_cpus=self.workers * self.threads, include_dashboard=False, **options)
            return True
        return False


class _Run:
    """One fit: attempt after attempt, each from the last state that is still there."""

    def __init__(
        self,
        engine: Ray,
        data: TrainingData,
        settings: Settings,
        factors: Factors,
        shards: Shards | None,
        history: list[Figures],
    ):
        self._engine, self._settings, self._factors = engine, settings, factors
        self._shards, self._history = shards, history
        self._shape = len(data.users), len(data.items)
        positives = data.positives(settings)
        self._drawn = positives is not None
        stripped = replace(data, users=range(self._shape[0]), items=range(self._shape[1]))  # type: ignore[arg-type]
        sources = data.pair_sources(settings)
        self._pairs = sum(source.count for source in sources)
        self._feedback = ray().put((positives, stripped if sources else None))
        self._saved = None if shards is None else shards.newest()
        if self._saved is not None:
            history[:] = self._saved.history
        self._boundary: Boundary | None = None
        self._workers = engine.workers
        self._told: set[int] = set()

    def to_the_end(self, after_epoch: Callable[[int, Figures], bool], bar: Any) -> None:
        """Train to the end."""
        losses, attempt = 0, 0
        while True:
            attempt += 1
            reached = len(self._history)
            try:
                self._attempt(attempt, after_epoch, bar)
                return
            except Lost as loss:
                losses = 1 if len(self._history) > reached else losses + 1
                if losses > _MOST_LOSSES:
                    raise RuntimeError(
                        f"{losses} attempts at epoch {len(self._history) + 1} lost a worker ({loss}): see the logs of "
                        "Ray for what ended them"
                    ) from loss
                logger.warning("%s; trying again from epoch %d", loss, len(self._history) + 1)

    def _attempt(self, attempt: int, after_epoch: Callable[[int, Figures], bool], bar: Any) -> None:
        """Train from the last state there is, until the end or a loss."""
        engine, settings = self._engine, self._settings
        seconds, least = (_FIRST_SECONDS, self._workers) if attempt == 1 else (engine.spare_seconds, 1)
        given = self._shape, settings, self._feedback
        workers = Actors(self._workers, engine.threads, seconds, *given, at_least=least)
        try:
            if workers.count != self._workers:
                logger.warning("no place for %d of %d workers", self._workers - workers.count, self._workers)
                self._workers, self._boundary = workers.count, None
            conductor = Conductor(workers, settings, self._drawn, self._pairs)
            self._restore(conductor)
            stopped = self._saved is not None and self._saved.stopped and self._saved.epoch == len(self._history)
            first = len(self._history)
            while len(self._history) < epochs_of(settings) and not stopped:
                epoch = len(self._history)
                figures = conductor.train_epoch(epoch, self._keep)
                if not all(map(math.isfinite, figures.values())):
                    self._diverged(conductor, epoch)
                self._history.append(lasting(figures))
                if epoch > first:  # in the first one, kernels are loaded
                    self._warn_of_the_slowest(conductor, workers)
                stopped = after_epoch(epoch + 1, figures)
                last = stopped or len(self._history) == epochs_of(settings)
                if self._shards is not None and (self._shards.due() or last):
                    self._save(conductor, attempt, stopped)
                bar.set_postfix_str(summary(figures), refresh=False)
                bar.n = len(self._history)
                bar.update(0)
            self._collect(conductor)
        finally:
            workers.end()

    def _keep(self, boundary: Boundary) -> None:
        """Hold on to the rows with which an epoch begins."""
        self._boundary = boundary

    def _restore(self, conductor: Conductor) -> None:
        """Put the workers where the last state is: the beginning of an epoch, a checkpoint, or the first factors."""
        if self._boundary is not None:
            boundary, self._boundary = self._boundary, None  # where it is not whole any more, the next attempt has none
            conductor.restore(boundary)
            self._boundary = boundary
            del self._history[boundary.epoch :]
            return
        saved = self._saved
        del self._history[0 if saved is None else saved.epoch :]
        count, rest = conductor.workers.count, layout(REST, self._shape, self._settings, conductor.workers.count)
        answers = []
        for worker in range(count):
            users, items = (slice(*bounds[worker : worker + 2]) for bounds in (rest.user_bounds, rest.block_start))
            if saved is None:
                bias = None if self._factors.bias is None else self._factors.bias[items]
                rows = Rows(self._factors.users[users], self._factors.items[items], bias, None)
                answers.append(conductor.workers.call(worker, "hold", rows))
            else:
                bounds = users.start, users.stop, items.start, items.stop
                answers.append(conductor.workers.call(worker, "read_shards", saved, bounds))
        conductor.workers.get(answers)

    def _save(self, conductor: Conductor, attempt: int, stopped: bool) -> None:
        """Have every worker write its rows, then say that they are there."""
        shards = self._shards
        if shards is None:
            return
        conductor.rest()
        epoch, count = len(self._history), conductor.workers.count
        names = [f"epoch-{epoch:06d}-{attempt:03d}-{worker:05d}.rows" for worker in range(count)]
        calls = [conductor.workers.call(w, "write_shard", shards.folder, name) for w, name in enumerate(names)]
        rest = layout(REST, self._shape, self._settings, count)
        bounds = [[*rest.user_bounds[w : w + 2].tolist(), *rest.block_start[w : w + 2].tolist()] for w in range(count)]
        sums = conductor.workers.get(calls)
        self._saved = Saved(shards.folder, epoch, tuple(self._history), stopped, names, bounds, sums)
        shards.write(self._saved)

    def _collect(self, conductor: Conductor) -> None:
        """Bring the factors here."""
        conductor.rest()
        rest = layout(REST, self._shape, self._settings, conductor.workers.count)
        for worker in range(conductor.workers.count):
            rows: Rows = conductor.workers.get([conductor.workers.call(worker, "held")])[0]
            items = slice(*rest.block_start[worker : worker + 2])
            self._factors.users[slice(*rest.user_bounds[worker : worker + 2])] = rows.users
            self._factors.items[items] = rows.items
            if self._factors.bias is not None and rows.bias is not None:
                self._factors.bias[items] = rows.bias

    def _diverged(self, conductor: Conductor, epoch: int) -> None:
        """Go back to the beginning of the epoch, and say so."""
        if self._boundary is not None:
            conductor.restore(self._boundary)
            self._collect(conductor)
        raise DivergedError(
            f"training diverged in epoch {epoch + 1} (learning_rate={self._settings.learning_rate}, "
            f"regularization={self._settings.regularization}): lower learning_rate, to a third say; the model is left "
            f"as it was after epoch {epoch}"
        )

    def _warn_of_the_slowest(self, conductor: Conductor, workers: Actors) -> None:
        """Name a worker that all others wait for, once."""
        slow = conductor.slowest()
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
