"""The scheduler, which runs the epochs on workers, by the schedule of one machine.

It holds no rows: it says to workers which cells to train and hands them references to what others send. A worker waits
for the blocks that it needs, not for other workers.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sadrec._core.types import Doubles
from sadrec.cluster.layout import REST, Key, Owners, given_shards, owners, worker_of_shards
from sadrec.cluster.worker import Done, Size, Task
from sadrec.training.engine import Figures, Settings, cells_of, epoch_figures, rate_at, rounds_of, schedule


class Workers:
    """A group of workers that can be called: those on Ray are :class:`~sadrec.cluster.actors.Actors`."""

    count: int

    def call(self, worker: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        """Call a worker's method after its earlier calls, without waiting; return a reference to its answer.

        With ``returns`` the answer is a tuple of this length, and there is a list of references, one to each part.
        """
        raise NotImplementedError

    def get(self, references: list[Any]) -> list[Any]:
        """Wait for answers and return them."""
        raise NotImplementedError

    def end(self) -> None:
        """End all workers."""
        raise NotImplementedError

    def tell(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all workers; return references without waiting."""
        return [self.call(worker, method, *arguments) for worker in range(self.count)]

    def sent(self, method: str, *arguments: Any) -> list[list[Any]]:
        """Call a method of all workers that returns a piece for every worker; return the pieces by their receiver."""
        answers = [self.call(worker, method, *arguments, returns=self.count) for worker in range(self.count)]
        return [list(pieces) for pieces in zip(*answers, strict=True)]


class Boundary(NamedTuple):
    """All rows as they were at the beginning of an epoch: references to what workers sent each other."""

    epoch: int
    start: Key
    start_owners: Owners
    key: Key
    owners: Owners
    pieces: list[list[Any]]  # for each worker, one from each


class Scheduler:
    """Trains epochs on workers; between epochs the rows are wherever the last one left them."""

    def __init__(self, workers: Workers, settings: Settings, pairs: int = 0) -> None:
        """Take workers that have the data, and the number of comparisons that they train on besides."""
        self.workers, self.settings = workers, settings
        self._pairs = pairs
        self._key = REST
        self._shared = REST  # the last deal for which workers have sent each other interactions
        self._owners: Owners = np.arange(workers.count)
        self.times: list[Done] = []
        """The workers' reports on the sub-epochs of the last epoch."""
        self.moved = 0
        """Bytes that workers got from others in the last epoch."""

    def train_epoch(self, epoch: int, keep: Callable[[Boundary], None] = lambda boundary: None) -> Figures:
        """Train one epoch and return its figures; those of size are sums of the workers' parts, in another order.

        ``keep`` is called with what :meth:`restore` needs to begin the epoch again.
        """
        began = time.perf_counter()
        answers, plan = [], self._plan(epoch)
        first = True
        received: list[Any] = []
        coming: dict[int, Any] = {}
        for position, (key, cells) in enumerate(plan):
            place = owners(key, cells, self.settings, self.workers.count)
            if key != self._key:
                arrived, boundary = self._relocate(key, place, epoch)
                received += arrived
                if first:
                    self.workers.get(arrived)  # now all of it is there
                    keep(boundary)
                del boundary  # its references keep rows in Ray's store
            if first:
                self.workers.tell("training.begin_epoch", epoch)
                first = False
            following = plan[position + 1] if position + 1 < len(plan) else None
            after = place
            if following is not None and following[0] == key:
                after = owners(*following, self.settings, self.workers.count)
            answers += self._sub_epoch(key, cells, place, after, position / len(plan), epoch, coming)
            self._owners = place if following is None or following[0] != key else after
        done: list[Done] = self.workers.get(answers)
        sizes: list[Size] = self.workers.get(self.workers.tell("training.size"))
        self.times = done
        self.moved = sum(self.workers.get(received)) + sum(part.moved for part in done)
        figures = epoch_figures(self._cell_figures(epoch, done), rate_at(self.settings, epoch, 0.0), 1.0)
        seconds = time.perf_counter() - began
        figures |= {"seconds": seconds, "updates_per_second": figures["updates"] / seconds}
        figures |= {**self._shares(), "moved_bytes": float(self.moved)}
        return {**figures, **_figures_of(sizes, self.settings.learn_rivals)}

    def rest(self) -> None:
        """Move all rows into the rest layout, and wait for them.

        Without waiting, a worker that missed a piece would go on with its old rows as if they were in order.
        """
        if self._key != REST:
            self.workers.get(self._relocate(REST, np.arange(self.workers.count), 0)[0])

    def restore(self, boundary: Boundary) -> None:
        """Put all rows where they were at the beginning of an epoch."""
        self._key, self._owners = boundary.start, boundary.start_owners
        self.workers.get(self._gather(boundary))
        self.workers.get(self._share_positives(boundary.key))

    def _plan(self, epoch: int) -> list[tuple[Key, schedule.Cells]]:
        """Return the sub-epochs with the deals that they belong to."""
        shards = given_shards(self.settings)
        sub_epochs = schedule.given_pairs(shards)
        parts = [[(Key("drawn", epoch), cells) for cells in schedule.drawn_negatives(self.settings.blocks)]]
        if self._pairs:
            rounds = range(rounds_of(self._pairs, shards))
            parts.append([(Key("given", epoch, number), cells) for number in rounds for cells in sub_epochs])
        streams = [iter(part) for part in parts]
        mixed = schedule.interleave(*([cells for _, cells in part] for part in parts))
        return [next(streams[which]) for which, _ in mixed]

    def _sub_epoch(
        self,
        key: Key,
        cells: schedule.Cells,
        place: Owners,
        after: Owners,
        through: float,
        epoch: int,
        coming: dict[int, Any],
    ) -> list[Any]:
        """Send each worker its task; ``coming``, the references to blocks in transit, is updated."""
        rate, answers = rate_at(self.settings, epoch, through), []
        shards = self.settings.blocks if key.kind == "drawn" else given_shards(self.settings)
        doing = worker_of_shards(shards, self.workers.count)[cells[:, 1]]
        arriving = [[block for block in coming if place[block] == worker] for worker in range(self.workers.count)]
        incoming = [[coming[block] for block in blocks] for blocks in arriving]
        coming.clear()
        for worker in range(self.workers.count):
            leaving = np.flatnonzero((place == worker) & (after != worker)).tolist()
            task = Task(key, cells[doing == worker], rate, arriving[worker], leaving)
            returns = 1 + len(leaving)
            answer, *sent = self.workers.call(worker, "training.train", task, *incoming[worker], returns=returns)
            coming |= dict(zip(leaving, sent, strict=True))
            answers.append(answer)
        return answers

    def _relocate(self, key: Key, place: Owners, epoch: int) -> tuple[list[Any], Boundary]:
        """Have all workers send each other the rows that another layout gives them."""
        pieces = self.workers.sent("training.scatter", key, place)
        boundary = Boundary(epoch, self._key, self._owners, key, place, pieces)
        return self._gather(boundary) + self._share_positives(key), boundary

    def _share_positives(self, key: Key) -> list[Any]:
        """Have workers send interactions to those that train the users in a deal."""
        if key.kind != "drawn" or key == self._shared:
            return []
        self._shared = key
        sent = self.workers.sent("training.send_positives", key)
        return [self.workers.call(worker, "training.take_positives", key, *sent[worker]) for worker in range(len(sent))]

    def _gather(self, boundary: Boundary) -> list[Any]:
        """Have all workers receive what was sent to them."""
        start, to = (boundary.start, boundary.start_owners), (boundary.key, boundary.owners)
        received = [
            self.workers.call(worker, "training.gather", *start, *to, *pieces)
            for worker, pieces in enumerate(boundary.pieces)
        ]
        self._key, self._owners = to
        return received

    def _shares(self) -> Figures:
        """Return how workers spent the last epoch."""
        spent = {name: sum(getattr(part, name) for part in self.times) for name in ("training", "moving", "waiting")}
        total = max(sum(spent.values()), 1e-9)
        return {f"{name}_share": seconds / total for name, seconds in spent.items()}

    def _cell_figures(self, epoch: int, done: list[Done]) -> Doubles:
        """Return the figures of all cells in the order of one machine, so that sums come out the same."""
        figures: dict[Key, Doubles] = {Key("drawn", epoch): np.zeros((self.settings.blocks**2, 3))}
        for part in done:
            if part.key not in figures:
                figures[part.key] = np.zeros((cells_of(given_shards(self.settings)), 3))
            figures[part.key][part.cells] = part.figures
        return np.concatenate(list(figures.values()))


def _figures_of(sizes: list[Size], learn_rivals: bool) -> Figures:
    """Return the figures of size from the sums of workers."""
    total = Size(*(sum(column) for column in zip(*sizes, strict=True)))
    users, items = max(total.user_entries, 1), max(total.item_entries, 1)
    figures = {
        "user_norm": float(np.sqrt(total.user_squares / users)),
        "item_norm": float(np.sqrt(total.item_squares / items)),
    }
    if not np.isfinite(total.bias_squares):
        figures["item_norm"] = float("nan")
    if learn_rivals:
        figures["sparsity"] = total.at_one / items
        figures["rival_spread"] = float(np.sqrt(total.away_squares / items))
    return figures
