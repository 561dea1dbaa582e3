"""A whole fit on a cluster: attempt after attempt, each from the last state that is still there."""

import logging
import math
import secrets
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Protocol

from sadrec._record import CheckpointError
from sadrec.cluster.actors import Actor, Actors, Lost, ray
from sadrec.cluster.checkpoint import Saved, Shards
from sadrec.cluster.conductor import Boundary, Conductor
from sadrec.cluster.layout import Bounds, rest_bounds
from sadrec.cluster.worker import Rows
from sadrec.training.dataset import TrainingData
from sadrec.training.engine import Course
from sadrec.training.factors import Factors
from sadrec.training.run import DivergedError, progress, summary
from sadrec.training.settings import Settings
from sadrec.training.trainer import lasting

logger = logging.getLogger("sadrec")

FIRST_SECONDS = 120.0  # in which all workers must find a place
MOST_LOSSES = 5  # without an epoch in between


class Places(Protocol):
    """How many workers there are to be: the engine ``Ray`` says it."""

    @property
    def workers(self) -> int: ...  # noqa: D102
    @property
    def threads(self) -> int: ...  # noqa: D102
    @property
    def spare_seconds(self) -> float: ...  # noqa: D102
    @property
    def collect(self) -> bool: ...  # noqa: D102


class Source(Protocol):
    """What workers train on, and where their parameters come from and go to."""

    def start(self, count: int, seconds: float, at_least: int) -> Actors:
        """Start workers and give them the data."""
        ...

    def conductor(self, workers: Actors, settings: Settings) -> Conductor:
        """Return what has them train."""
        ...

    def bounds(self, count: int) -> tuple[Bounds, Bounds]:
        """Return where the users and the items of each of so many workers start in the rest layout."""
        ...

    def begin(self, conductor: Conductor) -> None:
        """Have workers hold the first factors."""
        ...

    def take_over(self, conductor: Conductor) -> bool:
        """Take over the parameters, which are in the rest layout; tell whether the workers are kept."""
        ...


def refuse_too_many(workers: int, settings: Settings) -> None:
    """Refuse more workers than there are blocks, where negatives are drawn."""
    if workers > settings.blocks:
        raise ValueError(
            f"workers={workers} is more than blocks={settings.blocks}, and every worker needs a block of items: lower "
            "workers or raise blocks"
        )


class DataHere:
    """Data and parameters of this process: workers get copies, and the parameters come back."""

    def __init__(self, engine: Places, data: TrainingData, settings: Settings, factors: Factors) -> None:
        self._engine, self._settings, self._factors, self._shape = engine, settings, factors, data.shape
        positives, sources = data.positives(settings), data.pair_sources(settings)
        stripped = replace(data, users=range(self._shape[0]), items=range(self._shape[1]))  # type: ignore[arg-type]
        self._drawn, self._pairs = positives is not None, sum(source.count for source in sources)
        self._feedback = ray().put((positives, stripped if sources else None))

    def start(self, count: int, seconds: float, at_least: int) -> Actors:
        """Start workers with a reference to the data."""
        given = self._shape, self._settings, self._feedback
        return Actors(Actor, count, self._engine.threads, seconds, *given, at_least=at_least)

    def conductor(self, workers: Actors, settings: Settings) -> Conductor:
        """Return what has them train."""
        return Conductor(workers, settings, self._drawn, self._pairs)

    def bounds(self, count: int) -> tuple[Bounds, Bounds]:
        """Return where the rows of each worker start, about as many each."""
        return rest_bounds(self._shape, count)

    def begin(self, conductor: Conductor) -> None:
        """Send the first factors to the workers."""
        answers = []
        for worker, (users, items) in enumerate(self._slices(conductor)):
            bias = None if self._factors.bias is None else self._factors.bias[items]
            rows = Rows(self._factors.users[users], self._factors.items[items], bias, None)
            answers.append(conductor.workers.call(worker, "hold", rows))
        conductor.workers.get(answers)

    def take_over(self, conductor: Conductor) -> bool:
        """Bring the factors here, once all of them have come: where one is lost, the first ones are needed again."""
        count = range(conductor.workers.count)
        held: list[Rows] = [conductor.workers.get([conductor.workers.call(worker, "held")])[0] for worker in count]
        for rows, (users, items) in zip(held, self._slices(conductor), strict=True):
            self._factors.users[users] = rows.users
            self._factors.items[items] = rows.items
            if self._factors.bias is not None and rows.bias is not None:
                self._factors.bias[items] = rows.bias
        return False

    def _slices(self, conductor: Conductor) -> list[tuple[slice, slice]]:
        """Return the users and the items of each worker."""
        users, items = self.bounds(conductor.workers.count)
        return [(slice(*users[w : w + 2]), slice(*items[w : w + 2])) for w in range(conductor.workers.count)]


class Run:
    """One fit: attempt after attempt, each from the last state that is still there."""

    def __init__(self, engine: Places, source: Source, settings: Settings, course: Course) -> None:
        self._engine, self._source, self._settings, self._course = engine, source, settings, course
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
        workers = self._source.start(self._workers, seconds, least)
        kept = False
        try:
            if workers.count != self._workers:
                logger.warning("no place for %d of %d workers", self._workers - workers.count, self._workers)
                self._workers, self._boundary = workers.count, None
            conductor = self._source.conductor(workers, settings)
            self._restore(conductor)
            stopped = self._saved is not None and self._saved.stopped and self._saved.epoch == len(self._history)
            first = len(self._history)
            while len(self._history) < settings.iterations and not stopped:
                epoch = len(self._history)
                figures = conductor.train_epoch(epoch, self._keep)
                if not all(map(math.isfinite, figures.values())):
                    kept = self._go_back(conductor)
                    raise DivergedError(
                        f"training diverged in epoch {epoch + 1} (learning_rate={settings.learning_rate}, "
                        f"regularization={settings.regularization}): lower learning_rate, to a third say; the model is "
                        f"left as it was after epoch {epoch}"
                    )
                self._history.append(lasting(figures))
                if epoch > first:  # in the first one, kernels are loaded
                    self._warn_of_the_slowest(conductor, workers)
                stopped = self._course.after_epoch(epoch + 1, figures)
                last = stopped or len(self._history) == settings.iterations
                if self._shards is not None and (self._shards.due() or last):
                    self._save(conductor, attempt, stopped)
                bar.set_postfix_str(summary(figures), refresh=False)
                bar.n = len(self._history)
                bar.update(0)
            conductor.rest()
            kept = self._source.take_over(conductor)
        finally:
            if not kept:
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
        while (saved := self._saved) is not None:
            try:
                bounds = enumerate(self._bounds(conductor))
                conductor.workers.get([conductor.workers.call(w, "read_shards", saved, own) for w, own in bounds])
            except CheckpointError as error:
                logger.warning("%s; going on from the checkpoint before, where there is one", error)
                self._saved = None if self._shards is None else self._shards.newest(before=saved.epoch)
                continue
            del self._history[saved.epoch :]
            return
        self._history.clear()
        self._source.begin(conductor)

    def _bounds(self, conductor: Conductor) -> list[list[int]]:
        """Return, for each worker, the first and the last user and item of the rest layout."""
        users, items = (edges.tolist() for edges in self._source.bounds(conductor.workers.count))
        return [[*users[w : w + 2], *items[w : w + 2]] for w in range(conductor.workers.count)]

    def _save(self, conductor: Conductor, attempt: int, stopped: bool) -> None:
        """Have every worker write its rows, then say that they are there."""
        shards = self._shards
        if shards is None:
            return
        conductor.rest()
        epoch, count = len(self._history), conductor.workers.count
        names = [f"epoch-{epoch:06d}-{self._token}-{attempt:03d}-{worker:05d}.rows" for worker in range(count)]
        calls = [conductor.workers.call(w, "write_shard", shards.folder, name) for w, name in enumerate(names)]
        sums, bounds = conductor.workers.get(calls), self._bounds(conductor)
        self._saved = Saved(shards.folder, epoch, tuple(self._history), stopped, names, bounds, sums)
        shards.write(self._saved)

    def _go_back(self, conductor: Conductor) -> bool:
        """Take over the parameters from before the epoch; tell whether the workers are kept."""
        if self._boundary is None:
            return False
        conductor.restore(self._boundary)
        conductor.rest()
        return self._source.take_over(conductor)

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
