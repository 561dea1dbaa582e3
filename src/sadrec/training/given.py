"""Given pairs: both items are stated, in a comparison or by the order of a user's ratings.

Every epoch deals the users into P shards and the items into 2P blocks. A pair whose items lie in two blocks belongs
to the cell in which its shard meets these two blocks (:func:`sadrec.training.schedule.given_pairs`); a pair inside
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

from sadrec._kernel import kernel
from sadrec._random import below, hashed, stream_key
from sadrec.training.drawn import AHEAD, claimed_cells, fetch
from sadrec.training.factors import Factors
from sadrec.training.schedule import matching_of, round_robin
from sadrec.training.step import Penalties, add_log, likelihood_of, update, weight_of


@dataclass(frozen=True)
class Pairs:
    """Triples to be trained on: the user prefers the winner to the loser."""

    user: NDArray[np.int32]
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    weight: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.user)

    @property
    def arrays(self) -> tuple[NDArray[Any] | None, ...]:
        """The arrays, and None where there are no weights."""
        return self.user, self.winner, self.loser, self.weight

    def every(self, first: int, step: int) -> "Pairs":
        """Return every so-many-th triple from the first on."""
        user, winner, loser = (array[first::step].copy() for array in (self.user, self.winner, self.loser))
        return Pairs(user, winner, loser, None if self.weight is None else self.weight[first::step].copy())

    @staticmethod
    def concatenate(parts: "list[Pairs]") -> "Pairs":
        """Join several sets of triples; a part without weights counts with 1."""
        if len(parts) == 1:
            return parts[0]
        weight = None
        if any(part.weight is not None for part in parts):
            ones = [np.ones(len(part), np.float32) if part.weight is None else part.weight for part in parts]
            weight = np.concatenate(ones)
        return Pairs(
            np.concatenate([part.user for part in parts]),
            np.concatenate([part.winner for part in parts]),
            np.concatenate([part.loser for part in parts]),
            weight,
        )


def drawn_pairs(draw: Callable[..., int], most: int, *arguments: Any) -> Pairs:
    """Return the triples that a kernel writes: called with ``arguments, user, winner, loser``, it returns how many."""
    user, winner, loser = (np.empty(most, np.int32) for _ in range(3))
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
"""About so many pairs are drawn, arranged and trained on at a time."""
_PER_CELL = 64  # but no fewer than so many per cell, or handing out cells takes longer than training them


def rounds_of(pairs: int, shards: int) -> int:
    """Return in how many rounds an epoch goes through so many pairs: what is held at a time does not grow with them."""
    return max(-(-pairs // max(ROUND, _PER_CELL * cells_of(shards))), 1)


def cells_of(shards: int) -> int:
    """Return how many cells there are in a round."""
    return (2 * shards - 1) * shards * shards


def arrange(pairs: Pairs, users: int, items: int, shards: int, seed: int, epoch: int, number: int = 0) -> Round:
    """Deal users and items at random and group the pairs of a round of the epoch into cells."""
    rng = np.random.default_rng((seed, epoch, 1, number) if number else (seed, epoch, 1))
    shard_of = rng.permutation(users).astype(np.int32) % np.int32(shards)
    block_of = rng.permutation(items).astype(np.int32) % np.int32(2 * shards)
    order = np.arange(len(pairs), dtype=np.int32)
    rng.shuffle(order)
    pair_in, cells = round_robin(2 * shards), cells_of(shards)
    cell = np.empty(len(pairs), np.uint16 if cells <= 2**16 else np.int32)
    cell_start = np.zeros(cells + 1, np.int64)
    triples, dealt = (pairs.user, pairs.winner, pairs.loser), (shard_of, block_of)
    place_in_cells(triples, dealt, pair_in, matching_of(pair_in), np.uint64(seed), epoch, cell, cell_start[1:])
    np.cumsum(cell_start, out=cell_start)
    order = sort_by_cell(cell, order, cell_start)
    return Round(pairs.user, pairs.winner, pairs.loser, pairs.weight, order, cell_start)


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
def sort_by_cell(cell: Any, shuffled: Any, cell_start: Any) -> Any:
    """List the pairs cell after cell, in shuffled order inside one."""
    order = np.empty_like(shuffled)
    fill = cell_start[:-1].copy()
    for t in shuffled:
        c = cell[t]
        order[fill[c]] = t
        fill[c] += 1
    return order


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
            update(xi, items, bias, i, j, weight * residual, rate, penalties)
            total, product = add_log(total, product, likelihood)
        figures[number, 0] = last - first
        figures[number, 1] = 0
        figures[number, 2] = total + log(product)
