"""A worker: holds the rows of some users and some blocks of items, and trains the cells in which they meet.

It knows nothing of Ray, and of other workers only their number. What it does is what one machine does for these cells:
the same kernels, the same random numbers, the same order. :mod:`sadrec.cluster.scheduler` calls it.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Doubles, Floats
from sadrec.cluster import checkpoint
from sadrec.cluster.checkpoint import ParameterRows
from sadrec.cluster.layout import REST, Key, Owners, WorkerLayout, given_shards, layout, rest_layout
from sadrec.cluster.shuffle import Piece, Shuffle, chosen, together
from sadrec.training.engine import (
    Buffers,
    Deal,
    Factors,
    Pairs,
    PairSource,
    Partition,
    Positives,
    Round,
    Settings,
    Spectrum,
    Spread,
    Stated,
    aligned,
    arrange,
    cells_of,
    group,
    initial_rows,
    read_only,
    rounds_of,
    schedule,
    softmax,
    start_items,
    start_users,
    train_given,
    trainer,
)


class Task(NamedTuple):
    """The part of a sub-epoch that one worker does."""

    key: Key
    cells: schedule.Cells  # those of this worker
    rate: float
    arriving: list[int]  # blocks that come in before,
    leaving: list[int]  # and that go out after


class Done(NamedTuple):
    """A worker's report on its part of a sub-epoch."""

    key: Key
    cells: NDArray[np.int64]
    figures: Doubles  # (cells, 3): updates, skipped, log likelihood
    training: float  # seconds
    moving: float
    waiting: float
    moved: int  # bytes that came in


class Size(NamedTuple):
    """Sums over the rows that a worker has, from which the figures of an epoch are made."""

    user_squares: float
    item_squares: float
    bias_squares: float
    at_one: int
    away_squares: float
    user_entries: int
    item_entries: int


class Worker:
    """Trains its part of a model on its part of the data."""

    def __init__(
        self,
        data: Shuffle,
        settings: Settings,
        longest: int,
        scale: float,
        comparisons: Pairs | None,
        threads: int = 1,
    ) -> None:
        """Take the data of one worker; the longest row, the scale of weights and the comparisons are of all workers."""
        self.data, self.settings, self._threads = data, settings, threads
        self.number, self.workers = data.number, data.workers
        self.shape = int(data.bounds[0][-1]), int(data.bounds[1][-1])
        self._longest, self._scale = longest, scale
        self._arrived: tuple[Key, Positives] | None = None
        self._sources: list[PairSource] = []
        if comparisons is not None:  # kernels are compiled for arrays that can be written to
            arrays: Any = (None if array is None else np.array(array) for array in comparisons.arrays)
            self._sources.append(Stated(Pairs(*arrays)))
        self._layouts: dict[Key, WorkerLayout] = {}
        self._dealt: tuple[Key, Deal] | None = None
        self._round: tuple[Key, Round] | None = None
        self._room = Buffers()
        self._slots: dict[int, int] = {}  # of each block that is here: where its rows are
        self._factors: Factors
        self._l1_weights: Floats | None = None
        self._local_rows: NDArray[np.int32]  # of each position in the order of items: the row, if it is here
        self._slot_size = 0
        self._key = REST
        self._idle_since = time.perf_counter()

    # -- what it holds ------------------------------------------------------------------------------------------------

    def draw_first(self, spectrum: Spectrum | None = None) -> None:
        """Hold the first factors of the users and items of this worker: small random ones, or from the spectrum."""
        one, held = self.settings, self.data.held
        users, items = (slice(*own[self.number : self.number + 2].tolist()) for own in self.data.bounds)
        scale = one.init_scale if spectrum is None else 0.0
        factors = initial_rows(self.shape, one.factors, scale, one.learn_rivals, one.bias, one.seed, users, items)
        if spectrum is not None:
            start_items(factors, spectrum, items, one.length)
            start_users(factors.users, spectrum, (held.indptr, held.indices, held.weights), one.length)
        self.hold(ParameterRows(factors.users, factors.items, factors.bias, None))

    def users(self, start: int, stop: int) -> Floats:
        """Return the rows of some users of this worker, when all rows are in the rest layout."""
        return self._factors.users[start:stop]

    def items(self) -> ParameterRows:
        """Return the rows of the items of this worker, when all rows are in the rest layout."""
        return self._copies(None, self._rows_of(sorted(self._slots)))

    def write_checkpoint(self, folder: str, name: str) -> str:
        """Write all rows that are here to a file of a checkpoint, and return its checksum."""
        return checkpoint.write_rows(folder, name, self.held())

    def read_checkpoint(self, saved: checkpoint.Saved) -> None:
        """Read the rows of the rest layout from a checkpoint."""
        users, items = (own[self.number : self.number + 2].tolist() for own in self.data.bounds)
        self.hold(checkpoint.read_rows(saved, (*users, *items), self.settings))

    def _layout(self, key: Key) -> WorkerLayout:
        if key not in self._layouts:
            stale = [old for old in self._layouts if old not in (self._key, REST) and old.epoch < key.epoch]
            stale += [old for old in self._layouts if old.kind == key.kind == "given" and old != self._key]
            for old in stale:
                self._layouts.pop(old, None)
            rest = key == REST
            made = rest_layout(*self.data.bounds) if rest else layout(key, self.shape, self.settings, self.workers)
            self._layouts[key] = made
        return self._layouts[key]

    def scatter(self, to: Key, owners: Owners) -> Any:
        """Return, for each worker, the rows here that it has in another layout; ``owners`` are those of its blocks."""
        began, goal = time.perf_counter(), self._layout(to)
        here = self._layout(self._key)
        users = here.users_of(self.number)
        position, worker = goal.user_position[users], goal.worker_of_users(users)
        blocks = sorted(self._slots)
        items = np.concatenate([here.items_of(block) for block in blocks] or [np.empty(0, np.int32)])
        held = self._rows_of(blocks)
        item_position, item_worker = goal.item_position[items], owners[goal.block_of_items(items)]
        pieces = []
        for other in range(self.workers):
            mine, own = np.flatnonzero(worker == other), np.flatnonzero(item_worker == other)
            mine, own = mine[np.argsort(position[mine])], own[np.argsort(item_position[own])]
            pieces.append(self._copies(self._factors.users[mine], held[own]))
        self._busy(began)
        return tuple(pieces)

    def gather(self, start: Key, start_owners: Owners, to: Key, owners: Owners, *pieces: ParameterRows) -> int:
        """Receive this worker's rows of a layout, a piece from every worker; return the number of bytes."""
        began, here, goal = time.perf_counter(), self._layout(start), self._layout(to)
        users = goal.users_of(self.number)
        sender = here.worker_of_users(users)
        blocks = np.flatnonzero(owners == self.number).tolist()
        self._make_room(to, len(users), blocks, pieces[0])
        items = np.concatenate([goal.items_of(block) for block in blocks] or [np.empty(0, np.int32)])
        places = self._rows_of(blocks)
        item_sender = start_owners[here.block_of_items(items)]
        for other, piece in enumerate(pieces):
            if piece.users is not None:
                self._factors.users[sender == other] = piece.users
            self._put(places[item_sender == other], piece)
        self._key = to
        self._busy(began)
        return sum(piece.nbytes for other, piece in enumerate(pieces) if other != self.number)

    def held(self) -> ParameterRows:
        """Return all rows that are here, in the order of the layout."""
        return self._copies(self._factors.users, self._rows_of(sorted(self._slots)))

    def hold(self, piece: ParameterRows) -> None:
        """Receive all rows of this worker in the rest layout."""
        bounds = self._layout(REST).user_bounds
        self._make_room(REST, int(bounds[self.number + 1] - bounds[self.number]), [self.number], piece)
        if piece.users is not None:
            self._factors.users[:] = piece.users
        self._put(self._rows_of([self.number]), piece)
        self._key = REST

    def _make_room(self, key: Key, users: int, blocks: list[int], like: ParameterRows) -> None:
        """Make room for this number of users and for blocks of items of another layout."""
        there = self._layout(key)
        self._slot_size = int(np.diff(there.block_start).max(initial=0))
        count = self._slot_size * len(blocks)
        xi, items = aligned(users, self.settings.factors), aligned(count, like.items.shape[1])
        items[:] = 0
        bias = None if like.bias is None else np.zeros(count, np.float32)
        self._factors = Factors(xi, items, bias)
        self._l1_weights = None if like.l1_weights is None else aligned(count, like.l1_weights.shape[1])
        self._slots, self._local_rows, self._key = {}, np.zeros(self.shape[1], np.int32), key
        for slot, block in enumerate(blocks):
            self._place(block, slot)

    def _place(self, block: int, slot: int) -> None:
        """Record that a block is in a slot."""
        start, stop = self._layout(self._key).block_start[block : block + 2].tolist()
        self._slots[block] = slot
        self._local_rows[start:stop] = slot * self._slot_size + np.arange(stop - start)

    def _rows_of(self, blocks: list[int]) -> NDArray[np.int32]:
        """Return where the rows of blocks are, block after block."""
        start = self._layout(self._key).block_start
        parts = [self._local_rows[start[block] : start[block + 1]] for block in blocks]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def _copies(self, users: Floats | None, places: NDArray[np.int32]) -> ParameterRows:
        """Return copies of rows of items."""
        bias, weights = self._factors.bias, self._l1_weights
        return ParameterRows(
            users,
            self._factors.items[places],
            None if bias is None else bias[places],
            None if weights is None else weights[places],
        )

    def _put(self, places: NDArray[np.int32], piece: ParameterRows) -> None:
        """Write rows of items."""
        self._factors.items[places] = piece.items
        if self._factors.bias is not None and piece.bias is not None:
            self._factors.bias[places] = piece.bias
        if self._l1_weights is not None and piece.l1_weights is not None:
            self._l1_weights[places] = piece.l1_weights

    # -- what it does -------------------------------------------------------------------------------------------------

    def begin_epoch(self, epoch: int) -> None:
        """Apply to all rows what precedes an epoch."""
        settings = self.settings
        if trainer.starts_second_phase(settings, epoch):
            self._l1_weights = trainer.adaptive_weights(self._factors)
        if settings.length and (epoch == 0 or self._sources):
            softmax.put_rows_to_length(self._factors, settings.length)

    def train(self, task: Task, *arriving: ParameterRows) -> Any:
        """Train the cells of a sub-epoch; return what was done, and the blocks that leave."""
        began = time.perf_counter()
        waiting = began - self._idle_since
        free = sorted(set(range(len(self._slots) + len(arriving))) - set(self._slots.values()))
        for block, slot, piece in zip(task.arriving, free, arriving, strict=False):
            self._place(block, slot)
            self._put(self._rows_of([block]), piece)
        settings, ready = self.settings, time.perf_counter()
        numbers = task.cells[:, 0]
        with self._pool() as spread:
            kernel, work, count = self._work(task, spread)
            figures = np.zeros((count, 3))
            if len(task.cells):
                rests = trainer.rivals_rest(settings, task.key.epoch)
                penalties = trainer.penalties_of(settings, self._l1_weights, rests=rests)
                cells = np.array(task.cells)  # of Ray's store, which cannot be written to: another machine code
                given = kernel, cells, work, self._factors, penalties, task.rate, figures
                trainer.run_cells(*given, spread, self._threads)
        trained = time.perf_counter()
        leaving = []
        for block in task.leaving:
            leaving.append(self._copies(None, self._rows_of([block])))
            del self._slots[block]
        self._idle_since = time.perf_counter()
        moving = ready - began + self._idle_since - trained
        moved = sum(piece.nbytes for piece in arriving)
        done = Done(task.key, numbers, figures[numbers], trained - ready, moving, waiting, moved)
        return done, *leaving

    def size(self) -> Size:
        """Return sums over the rows that are here."""
        k = self._factors.k
        at_one, away_squares, items = 0, 0.0, self._factors.items[self._rows_of(sorted(self._slots))]
        if self._factors.tau is not None:
            away = np.abs(items[:, k:] - 1)
            at_one, away_squares = int(np.count_nonzero(away < trainer.SPARSE)), _squares(away)
        users, bias = self._factors.users, 0.0
        if self._factors.bias is not None:
            bias = _squares(self._factors.bias[None])
        entries = users.size, items.shape[0] * k
        return Size(_squares(users), _squares(items[:, :k]), bias, at_one, away_squares, *entries)

    def _work(self, task: Task, spread: Spread) -> tuple[Any, Any, int]:
        """Return the kernel, its arrays, and the number of cells."""
        if task.key.kind == "drawn":
            dealt = self._drawn(task.key, spread)._replace(block_items=self._local_rows)
            return *trainer.kernel_for_negatives(dealt, self.settings), self.settings.blocks**2
        return train_given, self._given(task), cells_of(given_shards(self.settings))

    def _drawn(self, key: Key, spread: Spread) -> Deal:
        """Return the positives of this worker's users, grouped into cells."""
        if self._dealt is None or self._dealt[0] != key:
            self._dealt = None
            there, first = self._layout(key), self._layout(key).user_bounds[self.number]
            if self._arrived is None:
                raise ValueError("no worker has sent the interactions of the users")
            (_, positives), self._arrived = self._arrived, None
            users = len(positives.indptr) - 1
            shard_start = np.clip(there.shard_start - first, 0, users)
            cells = Partition(np.arange(users, dtype=np.int32), shard_start, there.item_order, there.block_start)
            candidates, seed = trainer.candidates_of(self.settings), self.settings.seed
            dealt = group(positives, cells, candidates, seed, key.epoch, longest_row=self._longest, spread=spread)
            self._dealt = key, dealt
        return self._dealt[1]

    def send_positives(self, key: Key) -> Any:
        """Return, for each worker, the interactions of those users of this one that it trains in a deal."""
        goal, (first, last) = self._layout(key), self.data.bounds[0][self.number : self.number + 2].tolist()
        users = np.arange(first, last, dtype=np.int32)
        position, worker = goal.user_position[users], goal.worker_of_users(users)
        pieces = []
        for other in range(self.workers):
            mine = np.flatnonzero(worker == other)
            pieces.append(self.data.piece(mine[np.argsort(position[mine])].astype(np.int32)))
        return tuple(pieces)

    def take_positives(self, key: Key, *pieces: Piece) -> int:
        """Receive the interactions of this worker's users in a deal; return the bytes that others have sent."""
        users = self._layout(key).users_of(self.number)
        indptr, indices, weights = together(self.data.worker_of(users), pieces)
        of_users, power = None, self.settings.user_balance
        if power:
            of_users = (np.maximum(chosen(indptr, weights), 1.0) ** -power * self._scale).astype(np.float32)
        indices.flags.writeable = False  # as on one machine, so that the same machine code is used
        self._arrived = key, Positives(indptr, indices, weights, of_users)
        return sum(piece.nbytes for other, piece in enumerate(pieces) if other != self.number)

    def _given(self, task: Task) -> Round:
        """Return the pairs of this worker's cells, with rows in place of users and items."""
        key, there = task.key, self._layout(task.key)
        whole = self._whole_round(key)
        start = np.zeros_like(whole.cell_start)
        parts: list[Any] = []
        for number in np.sort(task.cells[:, 0]).tolist():
            part = whole.order[whole.cell_start[number] : whole.cell_start[number + 1]]
            start[number] = sum(map(len, parts))
            start[number + 1] = start[number] + len(part)
            parts.append(part)
        chosen = np.concatenate(parts) if parts else np.empty(0, np.int32)
        first = there.user_bounds[self.number]
        return Round(
            read_only((there.user_position[whole.user[chosen]] - first).astype(np.int32)),
            read_only(self._local_rows[there.item_position[whole.winner[chosen]]]),
            read_only(self._local_rows[there.item_position[whole.loser[chosen]]]),
            None if whole.weight is None else read_only(whole.weight[chosen]),
            np.arange(len(chosen), dtype=np.int32),
            start,
        )

    def _whole_round(self, key: Key) -> Round:
        """Draw and arrange the pairs of a round as one machine does."""
        if self._round is None or self._round[0] != key:
            seed, shards = self.settings.seed, given_shards(self.settings)
            rounds = rounds_of(sum(source.count for source in self._sources), shards)
            part = int(np.random.default_rng((seed, key.epoch, 2)).permutation(rounds)[key.number])
            drawn = [source.pairs(seed, key.epoch, part, rounds) for source in self._sources]
            pairs = Pairs.concatenate(drawn, self._room)
            self._round = key, arrange(pairs, *self.shape, shards, seed, key.epoch, key.number, self._room)
        return self._round[1]

    @contextmanager
    def _pool(self) -> Iterator[Spread]:
        """Yield a ``map`` that runs on the threads of this worker."""
        if self._threads == 1:
            yield map
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield pool.map

    def _busy(self, began: float) -> None:
        """Count the time since ``began`` as work, not as waiting."""
        self._idle_since += time.perf_counter() - began


def _squares(array: Floats) -> float:
    return float(np.einsum("ij,ij->", array, array, dtype=np.float64))
