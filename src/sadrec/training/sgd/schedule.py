"""Which cells may run at the same time: two schedules whose sub-epochs never share a row.

A schedule is a list of sub-epochs; a sub-epoch is an array with one row ``(number, shard, block)`` per cell. The
cells of a sub-epoch touch different users and different items, so they may run in any order, on any number of
threads or machines, with the same result. Sub-epochs run one after another.
"""

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.int64]


def drawn_negatives(blocks: int) -> list[Cells]:
    """Return the sub-epochs in which shard p meets block ``(p + s) mod blocks``, s = 0, 1, ...

    Every (shard, block) is met exactly once.

    >>> [cells.tolist() for cells in drawn_negatives(2)]
    [[[0, 0, 0], [1, 1, 1]], [[2, 0, 1], [3, 1, 0]]]
    """
    p = np.arange(blocks)
    return [np.column_stack((s * blocks + p, p, (p + s) % blocks)) for s in range(blocks)]


def given_pairs(shards: int) -> list[Cells]:
    """Return the sub-epochs in which every shard meets every pair of two of ``2 * shards`` item blocks.

    In sub-epoch (r, s) the shard ``(p + s) mod shards`` works on the p-th pair of matching r; the last column is p.
    """
    p = np.arange(shards)
    return [
        np.column_stack(((r * shards + s) * shards + p, (p + s) % shards, p))
        for r in range(2 * shards - 1)
        for s in range(shards)
    ]


def round_robin(teams: int) -> NDArray[np.int64]:
    """Return ``teams - 1`` perfect matchings in which every two teams meet once (the circle method).

    In matching r, team t belongs to pair ``result[r, t]`` of ``0 .. teams / 2 - 1``.

    >>> round_robin(4)
    array([[0, 1, 1, 0],
           [1, 0, 1, 0],
           [1, 1, 0, 0]])
    """
    if teams < 2 or teams % 2:
        raise ValueError(f"a round robin needs an even number of teams, at least 2, not {teams}")
    circle = teams - 1
    ahead = (np.arange(teams) - np.arange(circle)[:, None]) % circle
    pair: NDArray[np.int64] = np.minimum(ahead, circle - ahead)
    pair[:, -1] = 0
    return pair


def matching_of(pair: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for two teams, the matching in which they meet (-1 on the diagonal)."""
    met = np.empty((pair.shape[1], pair.shape[1]), np.int64)
    matching, first, second = np.nonzero(pair[:, :, None] == pair[:, None, :])
    met[first, second] = matching
    np.fill_diagonal(met, -1)
    return met


def interleave(*schedules: list[Cells]) -> list[tuple[int, Cells]]:
    """Mix schedules evenly into one list of sub-epochs, each with the number of the schedule it comes from."""
    at = [
        ((position + 0.5) / len(cells), which, sub_epoch)
        for which, cells in enumerate(schedules)
        for position, sub_epoch in enumerate(cells)
    ]
    return [(which, sub_epoch) for _, which, sub_epoch in sorted(at, key=lambda entry: entry[:2])]
