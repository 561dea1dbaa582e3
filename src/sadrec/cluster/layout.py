"""The layout: for every deal of users and items, the worker of each row.

Users are dealt into shards and items into blocks exactly as on one machine (:mod:`sadrec.training.sgd.negatives`,
:mod:`sadrec.training.sgd.given`). Each worker has neighbouring shards, and of these users all rows. In a sub-epoch, a
block lies with the worker whose shard it meets. A layout is a function of the settings, the epoch and the number of
workers, so every worker computes it, and rows travel without their numbers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec.training.engine import Settings, deal_round, partition, schedule

Owners = NDArray[np.int64]  # of each block: the worker that holds it


Bounds = NDArray[np.int64]  # (workers + 1): where the rows of each worker start


class Key(NamedTuple):
    """Which deal: ``"rest"`` (rows in order), ``"drawn"`` (of an epoch), ``"given"`` (of a round of an epoch)."""

    kind: str
    epoch: int = 0
    number: int = 0


REST = Key("rest")


@dataclass(frozen=True)
class WorkerLayout:
    """Users and items in the order of a deal, and the starts of shards and blocks in it."""

    user_order: NDArray[np.int32]
    user_bounds: NDArray[np.int64]  # (workers + 1)
    item_order: NDArray[np.int32]
    block_start: NDArray[np.int64]  # (blocks + 1)
    shard_start: NDArray[np.int64]  # (shards + 1)

    @cached_property
    def user_position(self) -> NDArray[np.int32]:
        """Position of each user in the order."""
        return _inverse(self.user_order)

    @cached_property
    def item_position(self) -> NDArray[np.int32]:
        """Position of each item in the order."""
        return _inverse(self.item_order)

    def worker_of_users(self, users: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the workers that hold users."""
        return np.searchsorted(self.user_bounds, self.user_position[users], side="right") - 1

    def block_of_items(self, items: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the blocks that items are in."""
        return np.searchsorted(self.block_start, self.item_position[items], side="right") - 1

    def users_of(self, worker: int) -> NDArray[np.int32]:
        """Return the users of a worker, in order."""
        return self.user_order[self.user_bounds[worker] : self.user_bounds[worker + 1]]

    def items_of(self, block: int) -> NDArray[np.int32]:
        """Return the items of a block, in order."""
        return self.item_order[self.block_start[block] : self.block_start[block + 1]]


def _inverse(order: NDArray[np.int32]) -> NDArray[np.int32]:
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=np.int32)
    return position


def layout(key: Key, shape: tuple[int, int], settings: Settings, workers: int) -> WorkerLayout:
    """Return the layout of a deal, other than the rest layout."""
    users, items = shape
    if key.kind == "drawn":
        cells = partition(users, items, settings.blocks, settings.seed, key.epoch)
        bounds = cells.shard_start[shard_bounds(settings.blocks, workers)]
        return WorkerLayout(cells.shard_users, bounds, cells.block_items, cells.block_start, cells.shard_start)
    shards = given_shards(settings)
    _, shard_of, block_of = deal_round(users, items, shards, settings.seed, key.epoch, key.number)
    shard_start, block_start = _starts(shard_of, shards), _starts(block_of, 2 * shards)
    bounds = shard_start[shard_bounds(shards, workers)]
    orders = (np.argsort(part, kind="stable").astype(np.int32) for part in (shard_of, block_of))
    return WorkerLayout(next(orders), bounds, next(orders), block_start, shard_start)


def rest_layout(users: Bounds, items: Bounds) -> WorkerLayout:
    """Return the layout in which rows are in order: each worker has neighbouring users, and a block of items."""
    everyone, everything = (np.arange(bounds[-1], dtype=np.int32) for bounds in (users, items))
    return WorkerLayout(everyone, users, everything, items, users)


def _starts(part_of: NDArray[Any], parts: int) -> NDArray[np.int64]:
    start = np.zeros(parts + 1, np.int64)
    np.cumsum(np.bincount(part_of, minlength=parts), out=start[1:])
    return start


def given_shards(settings: Settings) -> int:
    """Return into how many shards given pairs deal the users."""
    return max(int(settings.blocks) // 2, 1)


def shard_bounds(shards: int, workers: int) -> NDArray[np.int64]:
    """Return where the shards of each worker start."""
    return np.linspace(0, shards, workers + 1).astype(np.int64)


def worker_of_shards(shards: int, workers: int) -> Owners:
    """Return the worker that has each shard."""
    return np.repeat(np.arange(workers), np.diff(shard_bounds(shards, workers)))


def owners(key: Key, cells: schedule.Cells, settings: Settings, workers: int) -> Owners:
    """Return the owner of each block in a sub-epoch: the worker of the shard that meets it."""
    if key.kind == "drawn":
        of_block = np.empty(settings.blocks, np.int64)
        of_block[cells[:, 2]] = worker_of_shards(settings.blocks, workers)[cells[:, 1]]
        return of_block
    shards = given_shards(settings)
    of_pair = np.empty(shards, np.int64)
    of_pair[cells[:, 2]] = worker_of_shards(shards, workers)[cells[:, 1]]
    matching = int(cells[0, 0]) // shards**2
    of_blocks: Owners = of_pair[schedule.round_robin(2 * shards)[matching]]
    return of_blocks
