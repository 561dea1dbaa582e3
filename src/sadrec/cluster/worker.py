"""A worker: holds the rows of some users and some blocks of items, and trains the cells in which they meet.

It knows nothing of Ray, and of other workers only their number. What it does is what one machine does for these cells:
the same kernels, the same random numbers, the same order. :mod:`sadrec.cluster.conductor` tells it what to do.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._types import Doubles, Floats
from sadrec.cluster import rows
from sadrec.cluster.layout import REST, Key, Layout, Owners, given_shards, layout
from sadrec.training import schedule, softmax, trainer
from sadrec.training.drawn import Deal, Partition, Positives, Spread, group
from sadrec.training.factors import Factors, aligned
from sadrec.training.given import Pairs, Room, Round, arrange, cells_of, read_only, rounds_of, train_given
from sadrec.training.samplers import PairSource
from sadrec.training.settings import Settings


class Rows(NamedTuple):
    """Rows of parameters on their way: of users, of items, or of both."""

    users: Floats | None
    items: Floats
    bias: Floats | None
    l1_weights: Floats | None

    @property
    def nbytes(self) -> int:
        """How many bytes of numbers there are."""
        return sum(array.nbytes for array in self if array is not None)


class Task(NamedTuple):
    """The part of a sub-epoch that one worker does."""

    key: Key
    cells: schedule.Cells  # those of this worker
    rate: float
    arriving: list[int]  # blocks that come in before,
    leaving: list[int]  # and that go out after


class Done(NamedTuple):
    """What a worker says of its part of a sub-epoch."""

    number: int
    key: Key
    cells: NDArray[np.int64]
    figures: Doubles  # (cells, 3): updates, skipped, log likelihood
    began: float
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
    """One of ``workers``; ``positives`` and ``sources`` are those of all users, in order."""

    def __init__(
        self,
        number: int,
        workers: int,
        shape: tuple[int, int],
        settings: Settings,
        positives: Positives | None,
        sources: list[PairSource],
        threads: int = 1,
    ):
        self.number, self.workers, self.shape, self.settings = number, workers, shape, settings
        self._positives, self._sources, self._threads = positives, sources, threads
        self._layouts: dict[Key, Layout] = {}
        self._dealt: tuple[Key, Deal] | None = None
        self._round: tuple[Key, Round] | None = None
        self._room = Room()
        self._slots: dict[int, int] = {}  # of each block that is here: where its rows are
        self._factors: Factors
        self._l1_weights: Floats | None = None
        self._local_rows: NDArray[np.int32]  # of each position in the order of items: the row, if it is here
        self._slot_size = 0
        self._key = REST
        self._idle_since = time.perf_counter()

    # -- what it holds ------------------------------------------------------------------------------------------------

    def pair_count(self) -> int:
        """Return how many given pairs an epoch has, all in all."""
        return sum(source.count for source in self._sources)

    def _layout(self, key: Key) -> Layout:
        if key not in self._layouts:
            stale = [old for old in self._layouts if old not in (self._key, REST) and old.epoch < key.epoch]
            stale += [old for old in self._layouts if old.kind == key.kind == "given" and old != self._key]
            for old in stale:
                self._layouts.pop(old, None)
            self._layouts[key] = self._made_layout(key)
        return self._layouts[key]

    def _made_layout(self, key: Key) -> Layout:
        return layout(key, self.shape, self.settings, self.workers)

    def scatter(self, to: Key, owners: Owners) -> Any:
        """Return, for each worker, the rows that it has in another layout; ``owners`` are those of its blocks there."""
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
            pieces.append(self._taken(self._factors.users[mine], held[own]))
        self._busy(began)
        return tuple(pieces) if self.workers > 1 else pieces[0]

    def gather(self, start: Key, start_owners: Owners, to: Key, owners: Owners, *pieces: Rows) -> int:
        """Take over the rows that are this worker's in a layout, a piece from every worker; return the bytes."""
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

    def held(self) -> Rows:
        """Return all rows that are here, in the order of the layout."""
        return self._taken(self._factors.users, self._rows_of(sorted(self._slots)))

    def hold(self, piece: Rows) -> None:
        """Take over all rows that are this worker's in the rest layout."""
        bounds = self._layout(REST).user_bounds
        self._make_room(REST, int(bounds[self.number + 1] - bounds[self.number]), [self.number], piece)
        if piece.users is not None:
            self._factors.users[:] = piece.users
        self._put(self._rows_of([self.number]), piece)
        self._key = REST

    def _make_room(self, key: Key, users: int, blocks: list[int], like: Rows) -> None:
        """Make room for so many users and for blocks of items of another layout."""
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
        """Say that a block is in a slot."""
        start, stop = self._layout(self._key).block_start[block : block + 2].tolist()
        self._slots[block] = slot
        self._local_rows[start:stop] = slot * self._slot_size + np.arange(stop - start)

    def _rows_of(self, blocks: list[int]) -> NDArray[np.int32]:
        """Return where the rows of blocks are, block after block."""
        start = self._layout(self._key).block_start
        parts = [self._local_rows[start[block] : start[block + 1]] for block in blocks]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def _taken(self, users: Floats | None, places: NDArray[np.int32]) -> Rows:
        """Return copies of rows of items."""
        bias, weights = self._factors.bias, self._l1_weights
        return Rows(
            users,
            self._factors.items[places],
            None if bias is None else bias[places],
            None if weights is None else weights[places],
        )

    def _put(self, places: NDArray[np.int32], piece: Rows) -> None:
        """Write rows of items."""
        self._factors.items[places] = piece.items
        if self._factors.bias is not None and piece.bias is not None:
            self._factors.bias[places] = piece.bias
        if self._l1_weights is not None and piece.l1_weights is not None:
            self._l1_weights[places] = piece.l1_weights

    # -- what it does -------------------------------------------------------------------------------------------------

    def begin_epoch(self, epoch: int) -> None:
        """Do what is done with all rows before an epoch."""
        settings = self.settings
        if trainer.starts_second_phase(settings, epoch):
            self._l1_weights = trainer.adaptive_weights(self._factors)
        if settings.length and (epoch == 0 or self._sources):
            softmax.put_rows_to_length(self._factors, settings.length)

    def train(self, task: Task, *arriving: Rows) -> Any:
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
                penalties = trainer.penalties_of(settings, self._l1_weights)
                cells = np.array(task.cells)  # of Ray's store, which cannot be written to: another machine code
                given = kernel, cells, work, self._factors, penalties, task.rate, figures
                trainer.run_cells(*given, spread, self._threads)
        trained = time.perf_counter()
        leaving = []
        for block in task.leaving:
            leaving.append(self._taken(None, self._rows_of([block])))
            del self._slots[block]
        self._idle_since = time.perf_counter()
        moving = ready - began + self._idle_since - trained
        moved = sum(piece.nbytes for piece in arriving)
        done = Done(self.number, task.key, numbers, figures[numbers], began, trained - ready, moving, waiting, moved)
        return (done, *leaving) if leaving else done

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
        """Return the kernel, what it works on, and how many cells there are in all."""
        if task.key.kind == "drawn":
            dealt = self._drawn(task.key, spread)._replace(block_items=self._local_rows)
            return *trainer.drawn_kernel(dealt, self.settings), self.settings.blocks**2
        return train_given, self._given(task), cells_of(given_shards(self.settings))

    def _drawn(self, key: Key, spread: Spread) -> Deal:
        """Return the positives of this worker's users, grouped into cells."""
        if self._dealt is None or self._dealt[0] != key:
            self._dealt = None
            there, first = self._layout(key), self._layout(key).user_bounds[self.number]
            positives, longest = self._own_positives(there)
            users = len(positives.indptr) - 1
            shard_start = np.clip(there.shard_start - first, 0, users)
            cells = Partition(np.arange(users, dtype=np.int32), shard_start, there.item_order, there.block_start)
            candidates, seed = trainer.candidates_of(self.settings), self.settings.seed
            dealt = group(positives, cells, candidates, seed, key.epoch, longest_row=longest, spread=spread)
            self._dealt = key, dealt
        return self._dealt[1]

    def _own_positives(self, there: Layout) -> tuple[Positives, int]:
        """Return the positives of this worker's users, in order, and how long the longest row of anybody is."""
        if self._positives is None:
            raise ValueError("there is nothing to draw negatives for")
        indptr, indices, weights, user_weights, _ = self._positives
        users = there.users_of(self.number)
        start = rows.row_starts(indptr, users)

        def taken(values: Any) -> Any:
            own = np.empty(start[-1], values.dtype)
            rows.take_rows(indptr, values, users, start, own)
            return own

        own_indices, own = taken(indices), None if weights is None else taken(weights)
        own_indices.flags.writeable = False  # as on one machine, so that the same machine code is used
        own_users = None if user_weights is None else user_weights[users]
        return Positives(start, own_indices, own, own_users), int(np.diff(indptr).max(initial=0))

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
            rounds = rounds_of(self.pair_count(), shards)
            part = int(np.random.default_rng((seed, key.epoch, 2)).permutation(rounds)[key.number])
            drawn = [source.pairs(seed, key.epoch, part, rounds) for source in self._sources]
            pairs = Pairs.concatenate(drawn, self._room)
            self._round = key, arrange(pairs, *self.shape, shards, seed, key.epoch, key.number, self._room)
        return self._round[1]

    @contextmanager
    def _pool(self) -> Iterator[Spread]:
        """Yield what maps a function over its arguments on the threads there are."""
        if self._threads == 1:
            yield map
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield pool.map

    def _busy(self, began: float) -> None:
        """Leave what took the time since then out of the waiting."""
        self._idle_since += time.perf_counter() - began


def _squares(array: Floats) -> float:
    return float(np.einsum("ij,ij->", array, array, dtype=np.float64))
