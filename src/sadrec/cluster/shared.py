"""Interactions in files that workers read: what the process that calls ``fit`` holds of them."""

import logging
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sadrec._core.files import Pieces, fingerprint
from sadrec.cluster.actors import FIRST_SECONDS, Actors, ray, repeated
from sadrec.cluster.checkpoint import ClusterCheckpoints
from sadrec.cluster.partition import Partitioned, partition
from sadrec.cluster.run import Epochs
from sadrec.cluster.scheduler import Workers
from sadrec.data import Comparisons, ParquetFiles
from sadrec.training.engine import EngineResult, Keep, Kind, Pairs, Settings, Survey

if TYPE_CHECKING:
    from sadrec.cluster.engine import Ray

logger = logging.getLogger("sadrec")

T = TypeVar("T")
_PIECE = 2**23
"""Bytes that workers send at once of what was learnt."""


class SharedData:
    """Interactions that workers have read from files, and learn from; this process has counts and references."""

    kind: Kind = "interactions"

    def __init__(
        self, engine: "Ray", files: ParquetFiles, comparisons: Comparisons | None, *, ends_cluster: bool
    ) -> None:
        self._engine, self._files, self._ends_cluster = engine, files, ends_cluster
        self._partitioned: Partitioned | None = None
        self._parts: list[Any] = []  # references to the data of each worker
        self._comparisons: Pairs | None = None
        self._comparisons_there: Any = None  # a reference to them
        self._scale = 1.0
        self._held: list[Actors] = []  # the workers there are now
        self._rests = False  # whether they have nothing to do
        try:
            self._ask(lambda workers: None)
            if comparisons is not None and len(comparisons):
                self._comparisons = self._placed(comparisons)
                self._comparisons_there = ray().put(self._comparisons)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """End the workers and, where it was started for them, the cluster."""
        self._parts = []
        while self._held:
            self._held.pop().end()
        if self._ends_cluster:
            ray().shutdown()

    # -- the data -----------------------------------------------------------------------------------------------------

    @property
    def partitioned(self) -> Partitioned:
        """The program's view of the data."""
        if self._partitioned is None:
            raise ValueError("no file has been read")
        return self._partitioned

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return self.partitioned.shape

    @property
    def triples(self) -> int:
        """The number of interactions and comparisons; a comparison of weight k counts k times."""
        return self.partitioned.interactions + (0 if self._comparisons is None else ceil(self._comparisons.total))

    @property
    def pairs(self) -> int:
        """The number of comparisons that workers train on, each with its weight."""
        return len(self._comparisons or ())

    @property
    def has_pairs(self) -> bool:
        """Whether there are comparisons."""
        return self._comparisons is not None

    @property
    def has_ratings(self) -> bool:
        """Whether the values mean something."""
        return self.partitioned.has_ratings

    @property
    def repeated(self) -> tuple[int, bool]:
        """The number of rows that repeat a pair without a chosen rule, and whether rows have times."""
        return self.partitioned.repeated if self._files.duplicates is None else 0, self.partitioned.timed

    def fingerprint(self) -> str:
        """Return a digest of all of it, the same for any number of workers."""
        if self._comparisons is None:
            return self.partitioned.digest
        return f"{self.partitioned.digest}-{fingerprint(*self._comparisons.arrays)}"

    def _placed(self, comparisons: Comparisons) -> Pairs:
        """Return comparisons as triples of places, which the workers know."""
        comparisons = comparisons.decided
        both = comparisons.users, comparisons.items
        parts = self._ask(lambda workers: workers.get(workers.tell("data.positions", *both)))
        users, items = (np.max([part[side] for part in parts], axis=0).astype(np.int32) for side in (0, 1))
        for what, ids, places in (("user", both[0], users), ("item", both[1], items)):
            if (places < 0).any():
                raise ValueError(
                    f"the {what} {ids[int(places.argmin())].item()!r} of the comparisons is not in the files "
                    f"({int((places < 0).sum())} such in all): leave them out, or read the files first "
                    "(Interactions.read) and give what was read"
                )
        user, winner, loser = comparisons.user_index, comparisons.winner_index, comparisons.loser_index
        return Pairs(users[user], items[winner], items[loser], comparisons.weight)

    def survey(self, settings: Settings, factors: int | None, length: float | None, threads: int) -> Survey:
        """Return the settings that the interactions suggest, computed by one worker from a sample of the rows."""
        given = settings, factors, length, self._engine.threads
        return self._ask(lambda workers: Survey(*workers.get([_from_sample(workers, "data.survey", *given)])[0]))

    # -- workers ------------------------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[Actors], T]) -> T:
        """Query the workers that hold the data, before they train; retry after a loss."""

        def attempt() -> T:
            if not self._rests:
                first = self._partitioned is None and not self._held
                given = (FIRST_SECONDS, self._engine.workers) if first else (self._engine.spare_seconds, 1)
                self._start(self._engine.workers, *given)
            return question(self._held[0])

        def after_loss() -> None:
            self._rests = False

        return repeated(attempt, after_loss, lambda: "at reading")

    def _start(self, count: int, seconds: float, at_least: int) -> None:
        """Start workers that hold the data: from Ray's store, or, where that has lost some of it, from the files."""
        while self._held:
            self._held.pop().end()
        workers = Actors(count, self._engine.threads, seconds, at_least=at_least)
        self._held.append(workers)
        parts, self._parts = self._parts, []  # where they are not whole any more, the next attempt has none
        if len(parts) != workers.count:
            partitioned = partition(workers, self._files)
            if self._partitioned is not None and self._partitioned.digest != partitioned.digest:
                raise ValueError("the files have changed since they were read: fit again")
            self._partitioned, parts = partitioned, workers.tell("data.all_held")
        bounds = self.partitioned.bounds
        workers.get([workers.call(worker, "data.assign", held, bounds) for worker, held in enumerate(parts)])
        self._parts, self._rests = parts, True

    def start(self, settings: Settings, count: int, seconds: float, at_least: int) -> Actors:
        """Return the workers for a fit: those that have read the data, or new ones."""
        if not self._rests:
            self._start(count, seconds, at_least)
        self._rests = False
        workers = self._held[0]
        given = settings, self.partitioned.longest, self._scale, self._comparisons_there
        workers.get(workers.tell("begin", *given))
        return workers

    # -- training -----------------------------------------------------------------------------------------------------

    def checkpoints(self, folder: str | Path, identity: Mapping[str, Any], seconds: float) -> ClusterCheckpoints:
        """Return the checkpoints of a fit in a folder that all nodes reach."""
        return ClusterCheckpoints(str(folder), identity, seconds)

    def step(self, settings: Settings, folder: str | Path | None, keep: Keep) -> Epochs:
        """Return the step that trains on the workers, with checkpoints in a folder; ``keep`` makes a state of it."""
        if settings.order_share:
            raise ValueError(
                f"order_share={settings.order_share!r} needs all interactions in one process: leave order_share out, "
                "or leave engine out"
            )
        if self._engine.workers > settings.blocks:
            raise ValueError(
                f"workers={self._engine.workers} is more than blocks={settings.blocks}, and every worker needs a block "
                "of items: lower workers or raise blocks"
            )
        if settings.user_balance:
            power = settings.user_balance

            def scale(workers: Actors) -> float:
                counted = workers.tell("data.chosen")
                return float(workers.get([workers.call(0, "data.balance_scale", power, *counted)])[0])

            self._scale = self._ask(scale)
        return Epochs(self._engine, self, settings, str(folder), keep)

    def draw_first(self, workers: Workers, settings: Settings) -> None:
        """Have workers hold the first factors."""
        start = [_from_sample(workers, "data.spectrum", settings.factors)] if settings.loss == "softmax" else []
        workers.get(workers.tell("training.draw_first", *start))

    def result(self, settings: Settings) -> EngineResult:
        """Return the result of workers in the rest layout; large arrays come a piece at a time."""
        workers = self._held[0]
        users = np.diff(self.partitioned.bounds[0]).tolist()
        ids, rows = workers.get(workers.tell("data.ids")), workers.get(workers.tell("training.items"))
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([lengths for _, _, lengths in ids]), dtype=np.int64)])
        ends = np.cumsum(users) - 1
        interactions = np.diff(np.concatenate([[0], indptr[ends + 1]])).tolist()

        def pieces(method: str, counts: list[int], dtype: Any, *width: int) -> Pieces:
            step = max(_PIECE // (4 * int(np.prod(width))), 1)

            def fetched() -> Iterator[Any]:
                for worker, count in enumerate(counts):
                    for start in range(0, count, step):
                        yield workers.get([workers.call(worker, method, start, min(start + step, count))])[0]

            return Pieces(np.dtype(dtype), (sum(counts), *width), fetched)

        bias = None if rows[0].bias is None else np.concatenate([part.bias for part in rows])
        return EngineResult(
            np.concatenate([part[0] for part in ids]),
            np.concatenate([part[1] for part in ids]),
            pieces("training.users", users, np.float32, settings.factors),
            np.concatenate([part.items for part in rows]),
            bias,
            indptr,
            pieces("data.items_of_interactions", interactions, np.int32),
            pieces("data.values_of_interactions", interactions, np.float32),
        )


def _from_sample(workers: Workers, method: str, *arguments: Any) -> Any:
    """Have one worker compute something from the rows of sampled users; return a reference to it."""
    wanted = workers.call(0, "data.choose_sample", *workers.tell("data.chosen"), returns=workers.count)
    sent = [workers.call(worker, "data.rows_of", users) for worker, users in enumerate(wanted)]
    return workers.call(0, method, *arguments, *sent)
