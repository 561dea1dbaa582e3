"""Drawn rivals: what somebody did, against something drawn from what they did not.

Every epoch deals the users into shards and the items into as many blocks. A *cell* is one shard and one block:
the positives of these users among these items, each against a rival drawn from the same block. Cells that run
at the same time share neither a user nor an item (:mod:`sadrec.training.schedule`), so nothing depends on
which thread runs them, or when.

What a cell needs is laid out by :func:`deal` in place of the CSR: in every user's row the items are grouped by
block and, inside a block, sorted by their place in it. So a user's positives inside a block are a short sorted
run. A rival is drawn from the block until it is not in the run, or, when the run is most of the block, from the
complement directly. Triples are drawn some time before they are trained on, so that their rows can be fetched.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import claim, kernel, prefetch
from sadrec._random import advance, below, hashed, nth_absent, stream_key
from sadrec.training.step import chance, margin, move

Spread = Callable[..., Iterable[Any]]  # like map, perhaps on several threads

CHUNK = 128  # at least so many triples are drawn before they are trained on
AHEAD = 2  # rows are fetched so many triples before their turn,
_FETCHED = 256  # and of each so many numbers; the processor sees to the rest itself
_PIECES = 32  # in which the users are dealt, each by a thread that is free


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
    spread: Spread = map,
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
    spread
        What maps a function over its arguments, perhaps on several threads.
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
    group = partial(group_by_block, indptr, indices, weights, block_of, place_of, run_start, place, dealt)
    bounds = np.linspace(0, users, 1 + min(users, _PIECES)).astype(np.int64)
    longest = max(spread(group, bounds[:-1], bounds[1:]), default=0)
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
    first: int,
    last: int,
) -> int:
    """Group these users' rows by block, keeping the order of items in one; return the length of the longest run."""
    blocks = run_start.shape[1] - 1
    fill = np.empty(blocks, np.int64)
    longest = 0
    for u in range(first, last):
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
def draw(
    s: int, stop: int, block: int, shard_users: Any, row_start: Any, run_start: Any, place: Any,
    block_items: Any, start: int, size: int, weights: Any, state: Any, skipped: int,
    who: Any, what: Any, at: Any, rivals: Any, taken: Any,
) -> Any:  # fmt: skip
    """Draw the triples of users of a shard in a block: from the s-th user on, until there are ``CHUNK``.

    Written are each triple's user, item, where this lies among the positives, and the rivals to choose from; ``taken``
    is all False before and after. Returned are the next ``s``, how many triples there are, the state of the random
    numbers, and how many positives were skipped.
    """
    drawn = 0
    while s < stop and drawn < CHUNK:
        if s + 8 < stop:  # users come in random order, and what belongs to them seldom is in the cache
            soon, later = shard_users[s + 4], shard_users[s + 8]
            prefetch(row_start, later)
            prefetch(run_start[later], block)
            prefetch(place, row_start[soon] + run_start[soon, block])
        u = shard_users[s]
        s += 1
        lo = row_start[u] + run_start[u, block]
        count = run_start[u, block + 1] - run_start[u, block]
        if count == 0:
            continue
        free = size - count
        if free == 0:
            skipped += count
            continue
        run = place[lo : lo + count]
        first = drawn
        for t in range(count):
            if weights is not None:  # noqa: SIM102 (the compiler takes out a test for None that stands alone)
                if weights[lo + t] == 0:
                    continue
            state = advance(state)
            other = first + below(hashed(state), drawn - first + 1)
            at[drawn] = at[other]
            at[other] = lo + t
            drawn += 1
        crowded = 2 * free < size
        if not crowded:
            for t in range(count):
                taken[run[t]] = True
        for t in range(first, drawn):
            who[t] = u
            what[t] = block_items[start + place[at[t]]]
            for candidate in range(rivals.shape[1]):
                state = advance(state)
                if crowded:
                    rival = nth_absent(run, below(hashed(state), free))
                else:
                    rival = below(hashed(state), size)
                    while taken[rival]:
                        state = advance(state)
                        rival = below(hashed(state), size)
                rivals[t, candidate] = block_items[start + rival]
        if not crowded:
            for t in range(count):
                taken[run[t]] = False
    return s, drawn, state, skipped


@kernel
def fetch(row: Any) -> None:
    """Have the processor fetch a row while it goes on."""
    for h in range(0, min(row.shape[0], _FETCHED), 16):  # 64 bytes
        prefetch(row, h)


@kernel
def train_drawn(
    cells: Any,
    claimed: Any,
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
    who, what = np.empty(CHUNK + longest, np.int32), np.empty(CHUNK + longest, np.int32)
    at, rivals = np.empty(CHUNK + longest, np.int64), np.empty((CHUNK + longest, candidates), np.int32)
    taken = np.zeros(block_start[1], np.bool_)
    while True:
        c = claim(claimed)
        if c >= cells.shape[0]:
            break
        number, shard, block = cells[c, 0], cells[c, 1], cells[c, 2]
        state = stream_key(seed, epoch, number, 0)
        start = block_start[block]
        size = block_start[block + 1] - start
        updates, skipped, total, product = 0, 0, 0.0, 1.0
        s, stop = shard_start[shard], shard_start[shard + 1]
        while s < stop:
            s, drawn, state, skipped = draw(
                s, stop, block, shard_users, row_start, run_start, place,
                block_items, start, size, weights, state, skipped, who, what, at, rivals, taken,
            )  # fmt: skip
            updates += drawn
            for t in range(drawn):
                user, i, j = xi[who[t]], what[t], rivals[t, 0]
                if candidates > 1:
                    hardest = margin(user, items[i], items[j], l1)
                    if bias is not None:
                        hardest -= bias[j]
                    for candidate in range(1, candidates):
                        other = rivals[t, candidate]
                        x = margin(user, items[i], items[other], l1)
                        if bias is not None:
                            x -= bias[other]
                        if x < hardest:
                            hardest, j = x, other
                weight = np.float32(1.0)
                if weights is not None:
                    weight = weights[at[t]]
                likelihood, lack = chance(user, items, bias, i, j, l1)
                coming = t + AHEAD
                if coming < drawn:
                    if who[coming] != who[coming - 1]:
                        fetch(xi[who[coming]])
                    fetch(items[what[coming]])
                    for candidate in range(candidates):
                        fetch(items[rivals[coming, candidate]])
                move(user, items, bias, i, j, weight * lack, rate, l2, l1, l1_weights)
                product *= likelihood
                if product < 1e-100:
                    total += log(product)
                    product = 1.0
        figures[number, 0] = updates
        figures[number, 1] = skipped
        figures[number, 2] = total + log(product)
