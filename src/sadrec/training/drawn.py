"""Drawn rivals: what somebody did, against something drawn from what they did not.

Every epoch deals the users into shards and the items into as many blocks. A *cell* is one shard and one block:
the positives of these users among these items, each against a rival drawn from the same block. Cells that run
at the same time share neither a user nor an item (:mod:`sadrec.training.schedule`), so nothing depends on
which thread runs them, or when.

What a cell needs is laid out by :func:`deal` in place of the CSR: in every user's row the items are grouped by
block and, inside a block, sorted by their place in it. So a user's positives inside a block are a short sorted
run, and a rival is drawn from its complement directly - one random number, no rejection.
"""

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel, prefetch
from sadrec.training.random import advance, below, hashed, stream_key
from sadrec.training.step import margin, step


@dataclass(frozen=True)
class Deal:
    """The positives of one epoch, grouped into cells."""

    shard_users: NDArray[np.int32]  # users, shard after shard
    shard_start: NDArray[np.int64]  # (blocks + 1)
    block_items: NDArray[np.int32]  # items, block after block, ascending inside one
    block_start: NDArray[np.int64]  # (blocks + 1)
    row_start: NDArray[np.int64]  # (n + 1): a user's positives, as in the CSR
    run_start: NDArray[np.int32]  # (n, blocks + 1): where a block's run starts in the row
    place: NDArray[Any]  # per positive: its item's place inside the block (uint16, or int32 for huge blocks)
    longest: int  # the most positives of one user in one block
    weight: NDArray[np.float32] | None  # per positive


def deal(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    weights: NDArray[np.float32] | None,
    items: int,
    blocks: int,
    rng: np.random.Generator,
    place: NDArray[Any] | None = None,
) -> Deal:
    """Deal users into shards and items into blocks at random, and group the positives.

    Parameters
    ----------
    indptr, indices
        The positives, CSR with sorted rows.
    weights
        One per positive, or None.
    items
        How many items there are.
    blocks
        How many shards, and how many blocks.
    rng
        Where the shuffles come from.
    place
        An array to write the places to (that of the last epoch), or None for a new one.
    """
    users = len(indptr) - 1
    block_of = rng.permutation(items).astype(np.int32) % np.int32(blocks)
    order = np.argsort(block_of, kind="stable").astype(np.int32)
    block_start = np.zeros(blocks + 1, np.int64)
    np.cumsum(np.bincount(block_of, minlength=blocks), out=block_start[1:])
    place_of = np.empty(items, np.int32)
    place_of[order] = np.arange(items, dtype=np.int32) - block_start[:-1].astype(np.int32)[block_of[order]]
    if place is None:
        place = np.empty(len(indices), place_dtype(items, blocks))
    run_start = np.empty((users, blocks + 1), np.int32)
    dealt = np.empty(0 if weights is None else len(weights), np.float32)
    longest = group_by_block(indptr, indices, weights, block_of, place_of, run_start, place, dealt)
    return Deal(
        shard_users=rng.permutation(users).astype(np.int32),
        shard_start=np.linspace(0, users, blocks + 1).astype(np.int64),
        block_items=order,
        block_start=block_start,
        row_start=indptr,
        run_start=run_start,
        place=place,
        longest=longest,
        weight=None if weights is None else dealt,
    )


def place_dtype(items: int, blocks: int) -> type[np.uint16] | type[np.int32]:
    """Return the smallest type that holds a place inside a block."""
    return np.uint16 if -(-items // blocks) <= 2**16 else np.int32


@kernel
def group_by_block(
    indptr: Any,
    indices: Any,
    weights: Any,
    block_of: Any,
    place_of: Any,
    run_start: Any,
    place: Any,
    dealt: Any,
) -> int:
    """Group every row by block, keeping the order of items inside one; return the length of the longest run."""
    blocks = run_start.shape[1] - 1
    fill = np.empty(blocks, np.int64)
    longest = 0
    for u in range(run_start.shape[0]):
        lo, hi = indptr[u], indptr[u + 1]
        fill[:] = 0
        for t in range(lo, hi):
            fill[block_of[indices[t]]] += 1
        total = 0
        for b in range(blocks):
            run_start[u, b] = total
            count = fill[b]
            longest = max(longest, count)
            fill[b] = lo + total
            total += count
        run_start[u, blocks] = total
        for t in range(lo, hi):
            i = indices[t]
            b = block_of[i]
            place[fill[b]] = place_of[i]
            if weights is not None:
                dealt[fill[b]] = weights[t]
            fill[b] += 1
    return longest


@kernel
def nth_absent(run: Any, r: int) -> int:
    """Return the r-th (from 0) whole number that is not in the sorted run."""
    lo, hi = 0, run.shape[0]
    while lo < hi:
        mid = (lo + hi) >> 1
        if np.int64(run[mid]) - mid <= r:
            lo = mid + 1
        else:
            hi = mid
    return r + lo


@kernel
def look_ahead(soon: int, later: int, block: int, row_start: Any, run_start: Any, place: Any, xi: Any) -> None:
    """Have the rows of coming users fetched: users come in random order, and their rows seldom are in the cache.

    Where a user's run is must be known before it can be fetched itself, so that is fetched earlier still.
    """
    prefetch(row_start, later)
    prefetch(run_start[later], block)
    first = run_start[soon, block]
    if run_start[soon, block + 1] > first:
        prefetch(place, row_start[soon] + first)
        user = xi[soon]
        for h in range(0, user.shape[0], 16):  # 64 bytes
            prefetch(user, h)


@kernel
def train_drawn(
    cells: Any,
    shard_users: Any,
    shard_start: Any,
    block_items: Any,
    block_start: Any,
    row_start: Any,
    run_start: Any,
    place: Any,
    longest: int,
    weights: Any,
    xi: Any,
    items: Any,
    bias: Any,
    rate: Any,
    l2: Any,
    l1: Any,
    l1_weights: Any,
    candidates: int,
    seed: Any,
    epoch: int,
    figures: Any,
) -> None:
    """Train the cells given as rows (number, shard, block); write (updates, skipped, log likelihood) of each."""
    turn = np.empty(longest, np.int32)
    for c in range(cells.shape[0]):
        number, shard, block = cells[c, 0], cells[c, 1], cells[c, 2]
        state = stream_key(seed, epoch, number, 0)
        start = block_start[block]
        size = block_start[block + 1] - start
        updates, skipped, total, product = 0, 0, 0.0, 1.0
        for s in range(shard_start[shard], shard_start[shard + 1]):
            u = shard_users[s]
            if s + 4 < shard_start[shard + 1]:
                look_ahead(shard_users[s + 2], shard_users[s + 4], block, row_start, run_start, place, xi)
            lo = row_start[u] + run_start[u, block]
            count = run_start[u, block + 1] - run_start[u, block]
            if count == 0:
                continue
            free = size - count
            if free == 0:
                skipped += count
                continue
            run = place[lo : lo + count]
            user = xi[u]
            for t in range(count):
                state = advance(state)
                other = below(hashed(state), t + 1)
                turn[t] = turn[other]
                turn[other] = t
            for t in range(count):
                at = turn[t]
                weight = np.float32(1.0)
                if weights is not None:
                    weight = weights[lo + at]
                    if weight == 0:
                        continue
                i = block_items[start + run[at]]
                state = advance(state)
                j = block_items[start + nth_absent(run, below(hashed(state), free))]
                if candidates > 1:
                    hardest = margin(user, items[i], items[j], l1)
                    if bias is not None:
                        hardest -= bias[j]
                    for _ in range(candidates - 1):
                        state = advance(state)
                        other = block_items[start + nth_absent(run, below(hashed(state), free))]
                        x = margin(user, items[i], items[other], l1)
                        if bias is not None:
                            x -= bias[other]
                        if x < hardest:
                            hardest, j = x, other
                product *= step(user, items, bias, i, j, weight, rate, l2, l1, l1_weights)
                if product < 1e-100:
                    total += log(product)
                    product = 1.0
                updates += 1
        figures[number, 0] = updates
        figures[number, 1] = skipped
        figures[number, 2] = total + log(product)
