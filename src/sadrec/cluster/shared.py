"""Data in files that workers read and share, and the parameters that stay with them: what the program holds of both."""

import logging
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from sadrec._files import fingerprint
from sadrec._types import Floats
from sadrec.cluster.actors import ActorAtHome, Actors, Lost, ray
from sadrec.cluster.conductor import Conductor
from sadrec.cluster.home import Home
from sadrec.cluster.layout import Bounds
from sadrec.cluster.run import FIRST_SECONDS, MOST_LOSSES, Places, Run, refuse_too_many
from sadrec.cluster.settle import Settled, settle
from sadrec.cluster.worker import Rows
from sadrec.data import Comparisons
from sadrec.data.ids import IdArray
from sadrec.data.parquet import ParquetFiles
from sadrec.models.shards import ShardFile
from sadrec.training.engine import Course
from sadrec.training.given import Pairs
from sadrec.training.settings import Kind, Settings

logger = logging.getLogger("sadrec")

T = TypeVar("T")
Items = tuple[IdArray, Floats, Floats | None]
Users = tuple[Floats, IdArray, Any]


class SharedData:
    """Interactions that workers have read from files, and what they learn from them.

    This process has counts and references. After :meth:`train` the workers stay, with the parameters, until
    :meth:`end`, or until nobody holds this object any more.
    """

    kind: Kind = "interactions"

    def __init__(
        self, engine: Places, files: ParquetFiles, comparisons: Comparisons | None, *, ends_cluster: bool
    ) -> None:
        self._engine, self._files = engine, files
        self._known: Settled | None = None
        self._homes: list[Any] = []  # references to what each worker is the home of
        self._settings: Settings | None = None
        self._stated: Pairs | None = None
        self._stated_there: Any = None  # a reference to them
        self._items: Items | None = None  # what came here with the end of the fit, until somebody takes it
        self._users: Users | None = None
        self._scale = 1.0
        self._held: list[Actors] = []  # the workers there are now
        self._rests = False  # whether they have nothing to do
        self._finalizer = weakref.finalize(self, _end, self._held, ends_cluster)
        try:
            self._ask(lambda workers: None)
            if comparisons is not None and len(comparisons):
                self._stated = self._placed(comparisons)
                self._stated_there = ray().put(self._stated)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Let go of the workers, and of what they hold."""
        self._homes = []
        self._finalizer()

    # -- the data -----------------------------------------------------------------------------------------------------

    @property
    def settled(self) -> Settled:
        """What is known of the data."""
        if self._known is None:
            raise ValueError("nothing has been read")
        return self._known

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return self.settled.shape

    @property
    def triples(self) -> int:
        """How many interactions and comparisons there are."""
        return self.settled.interactions + len(self._stated or ())

    @property
    def has_pairs(self) -> bool:
        """Whether there are comparisons."""
        return self._stated is not None

    @property
    def has_ratings(self) -> bool:
        """Whether the values mean something."""
        return self.settled.has_ratings

    @property
    def repeated(self) -> tuple[int, bool]:
        """How many rows repeat a pair without anybody having said what becomes of them, and whether rows have times."""
        return self.settled.repeated if self._files.duplicates is None else 0, self.settled.timed

    def fingerprint(self) -> str:
        """Return a digest of all of it, the same for any number of workers."""
        if self._stated is None:
            return self.settled.digest
        return f"{self.settled.digest}-{fingerprint(*self._stated.arrays)}"

    def _placed(self, comparisons: Comparisons) -> Pairs:
        """Return comparisons as triples of places, which the workers know."""
        comparisons = comparisons.decided
        asked = comparisons.users, comparisons.items
        found = self._ask(lambda workers: workers.get(_tell(workers, "positions", *asked)))
        users, items = (np.max([part[side] for part in found], axis=0).astype(np.int32) for side in (0, 1))
        for what, ids, places in (("user", asked[0], users), ("item", asked[1], items)):
            if (places < 0).any():
                raise ValueError(
                    f"the {what} {ids[int(places.argmin())].item()!r} of the comparisons is not in the files "
                    f"({int((places < 0).sum())} such in all): leave them out, or read the files first "
                    "(Interactions.read) and give what was read"
                )
        user, winner, loser = comparisons.user_index, comparisons.winner_index, comparisons.loser_index
        return Pairs(users[user], items[winner], items[loser], comparisons.weight)

    def lift(self) -> float:
        """Return how personal taste is; one worker finds out, from a sample of the rows."""

        def found(workers: Actors) -> float:
            chosen = workers.call(0, "choose_sample", *_tell(workers, "chosen"), returns=workers.count)
            chosen = chosen if workers.count > 1 else [chosen]
            sent = [workers.call(worker, "rows_of", users) for worker, users in enumerate(chosen)]
            return float(workers.get([workers.call(0, "lift", *sent)])[0])

        return self._ask(found)

    # -- workers ------------------------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[Actors], T]) -> T:
        """Ask workers that hold the data, before they train; again where one is lost meanwhile."""
        for attempt in range(1, MOST_LOSSES + 2):
            try:
                if not self._rests:
                    first = self._known is None and attempt == 1
                    given = (FIRST_SECONDS, self._engine.workers) if first else (self._engine.spare_seconds, 1)
                    self._start(self._engine.workers, *given)
                return question(self._held[0])
            except Lost as loss:
                self._rests = False
                if attempt > MOST_LOSSES:
                    raise RuntimeError(
                        f"{attempt} attempts at reading lost a worker ({loss}): see the logs of Ray for what ended them"
                    ) from loss
                logger.warning("%s; reading again", loss)
        raise AssertionError("an attempt ends with an answer or an error")

    def _start(self, count: int, seconds: float, at_least: int) -> None:
        """Start workers that hold the data: from Ray's store, or, where that has lost some of it, from the files."""
        while self._held:
            self._held.pop().end()
        workers = Actors(ActorAtHome, count, self._engine.threads, seconds, at_least=at_least)
        self._held.append(workers)
        homes, self._homes = self._homes, []  # where they are not whole any more, the next attempt has none
        if len(homes) != workers.count:
            found = settle(workers, self._files)
            if self._known is not None and self._known.digest != found.digest:
                raise ValueError("the files have changed since they were read: fit anew")
            self._known, homes = found, _tell(workers, "home")
        given = self.settled.bounds
        workers.get([workers.call(worker, "move_in", home, given) for worker, home in enumerate(homes)])
        self._homes, self._rests = homes, True

    def start(self, count: int, seconds: float, at_least: int) -> Actors:
        """Return workers that hold the data, for a fit: those that have read it, or new ones."""
        if not self._rests:
            self._start(count, seconds, at_least)
        self._rests = False
        workers = self._held[0]
        given = self._settings, self.settled.longest, self._scale, self._stated_there
        workers.get(_tell(workers, "begin", *given))
        return workers

    # -- training -----------------------------------------------------------------------------------------------------

    def train(self, settings: Settings, course: Course) -> None:
        """Train to the end, and fill the history; the parameters stay with the workers."""
        if settings.order_share:
            raise ValueError(
                f"order_share={settings.order_share!r} needs all interactions in one place: leave it out, or read the "
                "files first (Interactions.read) and give what was read"
            )
        refuse_too_many(self._engine.workers, settings)
        self._settings = settings
        if settings.user_balance:
            power = settings.user_balance
            self._scale = self._ask(
                lambda workers: workers.get([workers.call(0, "balance_scale", power, *_tell(workers, "chosen"))])[0]
            )
        Run(self._engine, self, settings, course).to_the_end()

    def conductor(self, workers: Actors, settings: Settings) -> Conductor:
        """Return what has them train."""
        return Conductor(workers, settings, True, len(self._stated or ()), homes=True)

    def bounds(self, count: int) -> tuple[Bounds, Bounds]:
        """Return where the users and the items of each worker start."""
        return self.settled.bounds

    def begin(self, conductor: Conductor) -> None:
        """Have workers draw the first factors."""
        conductor.workers.get(_tell(conductor.workers, "draw_first"))

    def take_over(self, conductor: Conductor) -> bool:
        """Leave the users with the workers, unless they are collected; what is brought here is part of the fit."""
        self._items = self._fetched_items()
        self._users = self._fetched_users() if self._engine.collect else None
        return True

    # -- what was learnt ----------------------------------------------------------------------------------------------

    def items(self) -> Items:
        """Bring the items here: ids, rows of eta and tau, and bias."""
        found, self._items = self._items, None
        return found or self._learnt(self._fetched_items)

    def _fetched_items(self) -> Items:
        found = self._from_each("held_items", "item_ids")
        rows: list[Rows] = [part[0] for part in found]
        bias = None if rows[0].bias is None else np.concatenate([part.bias for part in rows if part.bias is not None])
        return np.concatenate([part[1] for part in found]), np.concatenate([part.items for part in rows]), bias

    def users(self) -> Users:
        """Bring the users here: factors, ids and what was seen."""
        found, self._users = self._users, None
        return found or self._learnt(self._fetched_users)

    def _fetched_users(self) -> Users:
        found = self._from_each("held_users", "home")
        homes: list[Home] = [home for _, home in found]
        parts = [
            sp.csr_matrix((home.values, home.indices, home.indptr), (len(home.users), self.shape[1])) for home in homes
        ]
        vectors = np.concatenate([vectors for vectors, _ in found])
        return vectors, np.concatenate([home.users for home in homes]), sp.vstack(parts, "csr")

    def write_users(self, folder: Path, token: str) -> list[ShardFile]:
        """Have each worker write its users to a file."""
        count = self._held[0].count if self._held else 0
        names = [f"users-{worker:05d}-{token}.sad" for worker in range(count)]
        own = [(str(folder), name) for name in names]
        return [found[0] for found in self._learnt(lambda: self._from_each("write_users", own=own))]

    def _from_each(self, *methods: str, own: list[tuple[Any, ...]] | None = None) -> list[list[Any]]:
        """Ask each worker, one after another, for one or more things."""
        if not self._held:
            raise Lost("the workers were let go")
        workers = self._held[0]
        given = [()] * workers.count if own is None else own
        return [workers.get([workers.call(w, name, *more) for name in methods]) for w, more in enumerate(given)]

    def _learnt(self, asked: Callable[[], T]) -> T:
        """Ask for what was learnt, when the fit is over and nobody can learn it again."""
        try:
            return asked()
        except Lost as loss:
            self.end()  # the others hold CPUs that the next fit needs
            raise RuntimeError(
                f"what was learnt is gone with a worker ({loss}): fit again with the same checkpoint=, which goes on "
                "from there; without one, it begins anew"
            ) from loss


def _tell(workers: Any, method: str, *arguments: Any) -> list[Any]:
    return [workers.call(worker, method, *arguments) for worker in range(workers.count)]


def _end(held: list[Actors], ends_cluster: bool) -> None:
    """End workers and, where it was started for them, the cluster."""
    while held:
        held.pop().end()
    if ends_cluster:
        ray().shutdown()
