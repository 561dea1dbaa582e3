"""Given pairs: both items are stated, in a comparison or by the order of a user's ratings.

Every epoch deals the users into P shards and the items into 2P blocks. A pair whose items lie in two blocks belongs
to the cell in which its shard meets these two blocks (:func:`sadrec.training.sgd.schedule.given_pairs`); a pair inside
one block joins a random cell that holds it.

An epoch of many pairs has several rounds, each with a part of the pairs and a deal of its own, so that only a part is
held at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.random import below, hashed, stream_key
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.negatives import AHEAD, claimed_cells, fetch
from sadrec.training.sgd.pairwise import Penalties, add_log, likelihood_of, update, weight_of
from sadrec.training.sgd.schedule import matching_of, round_robin


@dataclass(frozen=True)
class Pairs:
    """Given pairs, one user each: the user prefers the winner to the loser."""

    user: NDArray[np.int32]
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    weight: NDArray[np.float32] | None = None
    features: NDArray[np.float32] | None = None  # in favour of the winner, (triples, features): see Comparisons

    def __len__(self) -> int:
        return len(self.user)

    @property
    def total(self) -> float:
        """The number of comparisons, by weight: a comparison of weight k is k comparisons."""
        return float(len(self) if self.weight is None else self.weight.sum(dtype=np.float64))

    @property
    def arrays(self) -> tuple[NDArray[Any] | None, ...]:
        """The arrays, and None where there are no weights."""
        arrays: tuple[NDArray[Any] | None, ...] = self.user, self.winner, self.loser, self.weight
        return arrays if self.features is None else (*arrays, self.features)

    def every(self, first: int, step: int, room: "Buffers") -> "Pairs":
        """Return every n-th triple, beginning with the first."""
        size = len(range(first, len(self), step))
        user, winner, loser = room.triples(size)
        for side, array in zip((user, winner, loser), (self.user, self.winner, self.loser), strict=True):
            side[:] = array[first::step]
        weight = None if self.weight is None else room.array("weight", size, np.float32)
        if weight is not None and self.weight is not None:
            weight[:] = self.weight[first::step]
        return Pairs(user, winner, loser, weight)

    @staticmethod
    def concatenate(parts: "list[Pairs]", room: "Buffers | None" = None) -> "Pairs":
        """Join several sets of triples; a part without weights counts with 1."""
        if len(parts) == 1:
            return parts[0]
        room, size = room or Buffers(), sum(map(len, parts))
        weight = None
        if any(part.weight is not None for part in parts):
            ones = [np.broadcast_to(np.float32(1), len(part)) if part.weight is None else part.weight for part in parts]
            weight = np.concatenate(ones, out=room.array("weight", size, np.float32))
        sides = ([getattr(part, name) for part in parts] for name in ("user", "winner", "loser"))
        user, winner, loser = room.triples(size)
        for side, arrays in zip((user, winner, loser), sides, strict=True):
            np.concatenate(arrays, out=side)
        return Pairs(user, winner, loser, weight)


class Buffers:
    """Reusable arrays: a request for a name overwrites the earlier array of that name.

    Memory that is freed and allocated again in every round is not all returned to the system.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, size: int, dtype: Any) -> NDArray[Any]:
        """Return an uninitialised array."""
        if name not in self._arrays or len(self._arrays[name]) < size or self._arrays[name].dtype != dtype:
            self._arrays.pop(name, None)  # before the new one is made
            self._arrays[name] = np.empty(size + size // 16, dtype)
        return self._arrays[name][:size]

    def triples(self, size: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return arrays of users, winners and losers."""
        user, winner, loser = (self.array(name, size, np.int32) for name in ("user", "winner", "loser"))
        return user, winner, loser


def drawn_pairs(draw: Callable[..., int], most: int, *arguments: Any, room: Buffers | None = None) -> Pairs:
    """Return the triples that a kernel of ``arguments, user, winner, loser`` writes; it returns their number."""
    user, winner, loser = (room or Buffers()).triples(most)
    count = draw(*arguments, user, winner, loser)
    return Pairs(user[:count], winner[:count], loser[:count])


class Round(NamedTuple):
    """The pairs of one round, grouped into cells."""

    user: NDArray[np.int32]
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    weight: NDArray[np.float32] | None
    order: NDArray[np.int32]  # pairs, cell after cell, shuffled inside one
    cell_start: NDArray[np.int64]  # (cells + 1)


ROUND = 2**20
"""Pairs that are drawn, arranged and trained on at once; of more pairs, about half as many at a time."""
_PER_CELL = 64  # least pairs per cell; with fewer, handing out cells takes longer than training them


def rounds_of(pairs: int, shards: int) -> int:
    """Return the number of rounds of an epoch: the memory of one does not grow with the number of pairs."""
    most = max(ROUND, _PER_CELL * cells_of(shards))
    return 1 if pairs <= most else -(-2 * pairs // most)


def cells_of(shards: int) -> int:
    """Return the number of cells in a round."""
    return (2 * shards - 1) * shards * shards


def arrange(
    pairs: Pairs,
    users: int,
    items: int,
    shards: int,
    seed: int,
    epoch: int,
    number: int = 0,
    room: Buffers | None = None,
) -> Round:
    """Deal users and items at random and group the pairs of a round of the epoch into cells."""
    room = room or Buffers()
    rng, shard_of, block_of = deal_round(users, items, shards, seed, epoch, number)
    shuffled = room.array("shuffled", len(pairs), np.int32)
    shuffled[:1], shuffled[1:] = 0, 1
    np.cumsum(shuffled, dtype=np.int32, out=shuffled)
    rng.shuffle(shuffled)
    pair_in, cells = round_robin(2 * shards), cells_of(shards)
    cell = room.array("cell", len(pairs), np.uint16 if cells <= 2**16 else np.int32)
    cell_start = np.zeros(cells + 1, np.int64)
    triples = read_only(pairs.user), read_only(pairs.winner), read_only(pairs.loser)
    dealt = shard_of, block_of
    place_in_cells(triples, dealt, pair_in, matching_of(pair_in), np.uint64(seed), epoch, cell, cell_start[1:])
    np.cumsum(cell_start, out=cell_start)
    order = room.array("order", len(pairs), np.int32)
    sort_by_cell(cell, shuffled, cell_start, order)
    return Round(*triples, None if pairs.weight is None else read_only(pairs.weight), order, cell_start)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to; for arrays that can, kernels would be compiled once more."""
    view = array.view()
    view.flags.writeable = False
    return view


def deal_round(
    users: int, items: int, shards: int, seed: int, epoch: int, number: int = 0
) -> tuple[np.random.Generator, NDArray[np.int32], NDArray[np.int32]]:
    """Deal users into shards and items into twice as many blocks; return the random numbers that follow, and both."""
    rng = np.random.default_rng((seed, epoch, 1, number) if number else (seed, epoch, 1))
    shard_of = rng.permutation(users).astype(np.int32) % np.int32(shards)
    block_of = rng.permutation(items).astype(np.int32) % np.int32(2 * shards)
    return rng, shard_of, block_of


@kernel
def place_in_cells(
    triples: Any, dealt: Any, pair_in: Any, met_in: Any, seed: Any, epoch: int, cell: Any, counts: Any
) -> None:
    """Write the number of each pair's cell, and how many pairs each cell has."""
    (user, winner, loser), (shard_of, block_of) = triples, dealt
    matchings, blocks = pair_in.shape
    shards = blocks // 2
    for t in range(user.shape[0]):
        a, b = block_of[winner[t]], block_of[loser[t]]
        r = met_in[a, b]
        if a == b:
            r = below(hashed(stream_key(seed, epoch, t, 2)), matchings)
        p = pair_in[r, a]
        s = (shard_of[user[t]] - p + shards) % shards
        number = (r * shards + s) * shards + p
        cell[t] = number
        counts[number] += 1


@kernel
def sort_by_cell(cell: Any, shuffled: Any, cell_start: Any, order: Any) -> None:
    """List the pairs cell after cell, in shuffled order inside one."""
    fill = cell_start[:-1].copy()
    for t in shuffled:
        c = cell[t]
        order[fill[c]] = t
        fill[c] += 1


@kernel
def train_given(
    cells: Any, claimed: Any, given: Round, factors: Factors, penalties: Penalties, rate: float, figures: Any
) -> None:
    """Train cells on given pairs; write (updates, skipped, log likelihood) of each."""
    (rows, items, bias), l1 = factors, penalties.l1
    user, winner, loser, weights, order, cell_start = given
    for number, _, _ in claimed_cells(cells, claimed):
        total, product = 0.0, 1.0
        first, last = cell_start[number], cell_start[number + 1]
        for position in range(first, last):
            t = order[position]
            xi, i, j = rows[user[t]], winner[t], loser[t]
            weight = weight_of(weights, t)
            likelihood, residual = likelihood_of(xi, items, bias, i, j, l1)
            if position + AHEAD < last:
                coming = order[position + AHEAD]
                fetch(rows[user[coming]])
                fetch(items[winner[coming]])
                fetch(items[loser[coming]])
            update(user[t], xi, items, bias, i, j, weight * residual, rate, penalties)
            total, product = add_log(total, product, likelihood)
        figures[number, 0] = last - first
        figures[number, 1] = 0
        figures[number, 2] = total + log(product)
