"""Negatives: an interaction of a user against items sampled from the user's others.

Every epoch deals the users into shards and the items into as many blocks. A *cell* is one shard and one block:
the positives of these users among these items, each against a negative drawn from the same block. Cells that run
at the same time share neither a user nor an item (:mod:`sadrec.training.sgd.schedule`), so nothing depends on
which thread runs them, or when.

What a cell needs is laid out by :func:`group` in place of the CSR: in every user's row the items are grouped by
block and, inside a block, sorted by their place in it. So a user's positives inside a block are a short sorted
run. A negative is drawn from the block until it is not in the run, or, when the run is most of the block, from the
complement directly. Triples are drawn some time before they are trained on, so that their rows can be fetched.
"""

from collections.abc import Callable, Iterable
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import claim, inlined, kernel, prefetch
from sadrec._core.random import advance, below, hashed, nth_absent, stream_key
from sadrec._core.types import Floats
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.pairwise import Penalties, add_log, bias_of, likelihood_of, margin, update, weight_of

Spread = Callable[..., Iterable[Any]]  # like map, perhaps on several threads

CHUNK = 128  # least triples that are drawn before they are trained on
AHEAD = 2  # rows are fetched this number of triples before their turn,
_FETCHED = 256  # and this number of numbers of each; the processor fetches the rest itself
_PIECES = 32  # in which the users are dealt, each by a thread that is free


class Positives(NamedTuple):
    """Interactions to train on, in CSR with sorted rows, and their weights."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: Any = None  # of each; what has none above 0 is known, and not trained on; None: all count as 1
    user_weights: Floats | None = None  # of those of each user


class Deal(NamedTuple):
    """The positives of one epoch, grouped into cells, and how negatives are drawn for them."""

    shard_users: NDArray[np.int32]  # users, shard after shard
    shard_start: NDArray[np.int64]  # (blocks + 1)
    block_items: NDArray[np.int32]  # items, block after block, ascending inside one
    block_start: NDArray[np.int64]  # (blocks + 1)
    row_start: NDArray[np.int64]  # (n + 1): a user's positives, as in the CSR
    run_start: NDArray[Any]  # (n, blocks + 1): where a block's run starts in the row (uint16, or int32 for long rows)
    place: NDArray[Any]  # per positive: its item's place inside the block (uint16, or int32 for huge blocks)
    weight: Any  # per positive: a number, a flag, or None for all of them
    user_weight: Floats | None
    longest: int  # the most positives of one user in one block
    candidates: int  # negatives drawn for each positive, of which the hardest is trained against
    seed: np.uint64
    epoch: int


class Triples(NamedTuple):
    """Triples that are drawn before they are trained on."""

    user: NDArray[np.int32]
    item: NDArray[np.int32]
    at: NDArray[np.int64]  # where the item lies among the positives
    negatives: NDArray[np.int32]  # (triples, candidates)
    own: NDArray[np.bool_]  # by place in the block; all False before and after drawing


class Partition(NamedTuple):
    """The random part of a deal: the shard of each user and the block of each item."""

    shard_users: NDArray[np.int32]
    shard_start: NDArray[np.int64]
    block_items: NDArray[np.int32]
    block_start: NDArray[np.int64]


def partition(users: int, items: int, blocks: int, seed: int, epoch: int) -> Partition:
    """Deal users into as many shards and items into as many blocks at random."""
    rng = np.random.default_rng((seed, epoch, 0))
    block_of = rng.permutation(items).astype(np.int32) % np.int32(blocks)
    block_start = np.zeros(blocks + 1, np.int64)
    np.cumsum(np.bincount(block_of, minlength=blocks), out=block_start[1:])
    return Partition(
        shard_users=rng.permutation(users).astype(np.int32),
        shard_start=np.linspace(0, users, blocks + 1).astype(np.int64),
        block_items=np.argsort(block_of, kind="stable").astype(np.int32),
        block_start=block_start,
    )


def deal(
    positives: tuple[Any, ...],
    items: int,
    blocks: int,
    candidates: int,
    seed: int,
    epoch: int,
    place: NDArray[Any] | None = None,
    spread: Spread = map,
) -> Deal:
    """Deal users and items at random, and group the positives.

    ``place`` is an array to write the places to: that of the last epoch. ``spread`` maps a function over its arguments,
    perhaps on several threads.
    """
    cells = partition(len(positives[0]) - 1, items, blocks, seed, epoch)
    return group(positives, cells, candidates, seed, epoch, place=place, spread=spread)


def group(
    positives: tuple[Any, ...],
    cells: Partition,
    candidates: int,
    seed: int,
    epoch: int,
    *,
    longest_row: int | None = None,
    place: NDArray[Any] | None = None,
    spread: Spread = map,
) -> Deal:
    """Group positives by the blocks of a partition.

    ``longest_row`` is the length of the longest row of all, where these are only some; see :func:`deal`.
    """
    data = Positives(*positives)
    start, weights = data.indptr, data.weights
    users, items, blocks = len(start) - 1, len(cells.block_items), len(cells.block_start) - 1
    block_of, place_of = np.empty(items, np.int32), np.empty(items, np.int32)
    block_of[cells.block_items] = np.repeat(np.arange(blocks, dtype=np.int32), np.diff(cells.block_start))
    starts = cells.block_start[:-1].astype(np.int32)
    place_of[cells.block_items] = np.arange(items, dtype=np.int32) - starts[block_of[cells.block_items]]
    if place is None:
        place = np.empty(int(start[-1]), place_dtype(items, blocks))
    if longest_row is None:
        longest_row = int(np.diff(start).max(initial=0))
    run_start = np.empty((users, blocks + 1), np.uint16 if longest_row < 2**16 else np.int32)
    dealt = None if weights is None else np.empty_like(weights)
    rows = start, data.indices, weights
    write = partial(group_by_block, rows, block_of, place_of, run_start, place, dealt)
    bounds = np.linspace(0, users, 1 + min(users, _PIECES)).astype(np.int64)
    longest = max(spread(write, bounds[:-1], bounds[1:]), default=0)
    return Deal(
        *cells,
        row_start=start,
        run_start=run_start,
        place=place,
        weight=dealt,
        user_weight=data.user_weights,
        longest=longest,
        candidates=candidates,
        seed=np.uint64(seed),
        epoch=epoch,
    )


def place_dtype(items: int, blocks: int) -> type[np.uint16] | type[np.int32]:
    """Return the smallest type that holds a place inside a block."""
    return np.uint16 if -(-items // blocks) <= 2**16 else np.int32


@kernel
def group_by_block(
    rows: Any, block_of: Any, place_of: Any, run_start: Any, place: Any, dealt: Any, first: int, last: int
) -> int:
    """Group these users' rows by block, keeping the order of items in one; return the length of the longest run."""
    indptr, indices, weights = rows
    blocks = run_start.shape[1] - 1
    fill = np.empty(blocks, np.int64)
    longest = 0
    for u in range(first, last):
        lo = indptr[u]
        row = indices[lo : indptr[u + 1]]
        fill[:] = 0
        for i in row:
            fill[block_of[i]] += 1
        total = 0
        for b in range(blocks):
            run_start[u, b] = total
            count = fill[b]
            longest = max(longest, count)
            fill[b] = lo + total
            total += count
        run_start[u, blocks] = total
        for t in range(row.shape[0]):
            b = block_of[row[t]]
            place[fill[b]] = place_of[row[t]]
            if dealt is not None:
                dealt[fill[b]] = weights[lo + t]
            fill[b] += 1
    return longest


@kernel
def room_for_triples(dealt: Deal) -> Triples:
    """Return arrays for all triples that :func:`draw` draws at a time."""
    most = CHUNK + dealt.longest
    return Triples(
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int64),
        np.empty((most, dealt.candidates), np.int32),
        np.zeros(dealt.block_start[1], np.bool_),
    )


@kernel
def draw(s: int, stop: int, block: int, dealt: Deal, state: Any, triples: Triples) -> Any:
    """Draw the triples of users of a shard in a block: from the s-th user on, until there are ``CHUNK``.

    Returned are the next ``s``, the number of triples, the state of the random numbers, and the number of positives
    that were skipped.
    """
    shard_users, row_start, run_start, place = dealt.shard_users, dealt.row_start, dealt.run_start, dealt.place
    users, items, at, negatives, own = triples
    block_items, weights, candidates = dealt.block_items, dealt.weight, dealt.candidates
    start = dealt.block_start[block]
    size = dealt.block_start[block + 1] - start
    drawn, skipped = 0, 0
    while s < stop and drawn < CHUNK:
        if s + 8 < stop:  # users come in random order, and what belongs to them seldom is in the cache
            soon, later = shard_users[s + 4], shard_users[s + 8]
            prefetch(row_start, later)
            prefetch(run_start[later], block)
            prefetch(place, row_start[soon] + run_start[soon, block])
        u = shard_users[s]
        s += 1
        lo = row_start[u] + run_start[u, block]
        count = np.int64(run_start[u, block + 1]) - np.int64(run_start[u, block])
        if count == 0:
            continue
        free = size - count
        if free == 0:
            skipped += int(count)
            continue
        run = place[lo : lo + count]
        first = drawn
        for t in range(count):
            if weight_of(weights, lo + t) <= 0:
                continue
            state = advance(state)
            other = first + below(hashed(state), drawn - first + 1)
            at[drawn] = at[other]
            at[other] = lo + t
            drawn += 1
        crowded = 2 * free < size
        if not crowded:
            for t in range(count):
                own[run[t]] = True
        for t in range(first, drawn):
            users[t] = u
            items[t] = block_items[start + place[at[t]]]
            for candidate in range(candidates):
                state = advance(state)
                if crowded:
                    negative = nth_absent(run, below(hashed(state), free))
                else:
                    negative = below(hashed(state), size)
                    while own[negative]:
                        state = advance(state)
                        negative = below(hashed(state), size)
                negatives[t, candidate] = block_items[start + negative]
        if not crowded:
            for t in range(count):
                own[run[t]] = False
    return s, drawn, state, skipped


@kernel
def hardest(xi: Any, items: Any, bias: Any, i: int, negatives: Any, l1: Any) -> Any:
    """Return the negative that the user likes best."""
    j = negatives[0]
    least = margin(xi, items[i], items[j], l1) - bias_of(bias, j)
    for candidate in range(1, negatives.shape[0]):
        other = negatives[candidate]
        x = margin(xi, items[i], items[other], l1) - bias_of(bias, other)
        if x < least:
            least, j = x, other
    return j


@kernel
def fetch(row: Any) -> None:
    """Prefetch a row."""
    for h in range(0, min(row.shape[0], _FETCHED), 16):  # 64 bytes
        prefetch(row, h)


@inlined  # the machine code of a generator cannot be kept on disk
def claimed_cells(cells: Any, claimed: Any) -> Any:
    """Yield the cells of a sub-epoch that no other thread has taken, as rows (number, shard, block)."""
    while True:
        c = claim(claimed)
        if c >= cells.shape[0]:
            break
        yield cells[c]


@kernel
def train_pairwise(
    cells: Any, claimed: Any, dealt: Deal, factors: Factors, penalties: Penalties, rate: float, figures: Any
) -> None:
    """Train cells against drawn negatives; write (updates, skipped, log likelihood) of each."""
    (rows, items, bias), l1 = factors, penalties.l1
    triples = room_for_triples(dealt)
    drawn_users, drawn_items, at, negatives, _ = triples
    weights, user_weights, candidates = dealt.weight, dealt.user_weight, dealt.candidates
    for number, shard, block in claimed_cells(cells, claimed):
        state = stream_key(dealt.seed, dealt.epoch, number, 0)
        updates, skipped, total, product = 0, 0, 0.0, 1.0
        s, stop = dealt.shard_start[shard], dealt.shard_start[shard + 1]
        while s < stop:
            s, drawn, state, without = draw(s, stop, block, dealt, state, triples)
            updates += drawn
            skipped += without
            for t in range(drawn):
                xi, i, j = rows[drawn_users[t]], drawn_items[t], negatives[t, 0]
                if candidates > 1:  # a test of its own: making the slice takes time
                    j = hardest(xi, items, bias, i, negatives[t], l1)
                weight = weight_of(weights, at[t]) * weight_of(user_weights, drawn_users[t])
                likelihood, residual = likelihood_of(xi, items, bias, i, j, l1)
                coming = t + AHEAD
                if coming < drawn:
                    if drawn_users[coming] != drawn_users[coming - 1]:
                        fetch(rows[drawn_users[coming]])
                    fetch(items[drawn_items[coming]])
                    for candidate in range(candidates):
                        fetch(items[negatives[coming, candidate]])
                update(drawn_users[t], xi, items, bias, i, j, weight * residual, rate, penalties)
                total, product = add_log(total, product, likelihood)
        figures[number, 0] = updates
        figures[number, 1] = skipped
        figures[number, 2] = total + log(product)
