"""The compiled part of a top-N: score items for users a tile at a time, and keep the best few of each user."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import inlined, kernel

GROUP = 4
"""Factors are taken this many at a time: with two users that is what the registers of a core can hold."""

_STRIDE = 32


@inlined
def _worse(score: Any, item: Any, other_score: Any, other_item: Any) -> Any:
    """Say whether an entry comes after another: a lower score, or the same score and a later item."""
    return score < other_score or (score == other_score and item > other_item)


@inlined
def _sink(scores: Any, items: Any, hole: Any, size: Any, score: Any, item: Any) -> None:
    """Put an entry at ``hole`` of a heap of ``size`` entries, worst at the root, letting better ones sink."""
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and _worse(scores[child + 1], items[child + 1], scores[child], items[child]):
            child += 1
        if not _worse(scores[child], items[child], score, item):
            break
        scores[hole] = scores[child]
        items[hole] = items[child]
        hole = child
    scores[hole] = score
    items[hole] = item


@kernel
def score_two(
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    tile: NDArray[np.float32],
    first_scores: NDArray[np.float32],
    second_scores: NDArray[np.float32],
) -> None:
    """Score the items of one tile, (factors, items), for two users.

    The loop over items is the inner one and runs in vector registers; each score is summed in the same order whatever
    the tile or the other user, so that its bits depend on nothing else.
    """
    factors, items = tile.shape
    first_scores[:] = np.float32(0.0)
    second_scores[:] = np.float32(0.0)
    for h in range(0, factors, 4):
        a0, a1, a2, a3 = first[h], first[h + 1], first[h + 2], first[h + 3]
        b0, b1, b2, b3 = second[h], second[h + 1], second[h + 2], second[h + 3]
        v0, v1, v2, v3 = tile[h], tile[h + 1], tile[h + 2], tile[h + 3]
        for i in range(items):
            w0, w1, w2, w3 = v0[i], v1[i], v2[i], v3[i]
            first_scores[i] += a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
            second_scores[i] += b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3


@kernel
def keep_best(
    line: NDArray[np.float32],
    ids: NDArray[np.int64],
    seen: NDArray[np.int32],
    scores: NDArray[np.float32],
    items: NDArray[np.int64],
) -> None:
    """Sweep the scores of some items once, and keep the best met so far in a heap.

    A score is looked at only if it beats the worst one kept, which almost none does, and only then is the item
    looked for among those seen: nothing is masked beforehand.

    Parameters
    ----------
    line
        Scores of the items ``ids``, which ascend.
    seen
        Items to leave out, sorted.
    scores, items
        The heap, worst entry first; empty places hold -inf and -1.
    """
    size = scores.shape[0]
    threshold = scores[0]
    for start in range(0, ids.shape[0], _STRIDE):
        part = line[start : min(start + _STRIDE, ids.shape[0])]
        better = 0
        for c in range(part.shape[0]):
            better += part[c] > threshold
        if better == 0:
            continue
        for c in range(part.shape[0]):
            score = part[c]
            if not score > threshold:
                continue
            item = ids[start + c]
            left, right = 0, seen.shape[0]
            while left < right:
                middle = (left + right) >> 1
                if seen[middle] < item:
                    left = middle + 1
                else:
                    right = middle
            if left < seen.shape[0] and seen[left] == item:
                continue
            _sink(scores, items, 0, size, score, item)
            threshold = scores[0]


@kernel
def best_of_tiles(
    queries: NDArray[np.float32],
    tiles: NDArray[np.float32],
    ids: NDArray[np.int64],
    seen_start: NDArray[np.int64],
    seen_items: NDArray[np.int32],
    scores: NDArray[np.float32],
    items: NDArray[np.int64],
) -> None:
    """Find the best items of some users: every tile in turn, for every pair of users.

    Parameters
    ----------
    queries
        (users, factors).
    tiles
        (tiles, factors, items of a tile).
    ids
        Of the items in the tiles, ascending; columns past the last are padding.
    seen_start, seen_items
        CSR rows of items to leave out, sorted.
    scores, items
        (users, N), filled with -inf and -1; afterwards best first, equal scores by item.
    """
    users = queries.shape[0]
    width = tiles.shape[2]
    room = np.empty((2, width), np.float32)
    for t in range(tiles.shape[0]):
        known = ids[t * width : min((t + 1) * width, ids.shape[0])]
        for u in range(0, users, 2):
            # The last of an odd number is scored beside itself.
            v = min(u + 1, users - 1)
            score_two(queries[u], queries[v], tiles[t], room[0], room[1])
            for row in range(u, v + 1):
                seen = seen_items[seen_start[row] : seen_start[row + 1]]
                keep_best(room[row - u], known, seen, scores[row], items[row])
    size = scores.shape[1]
    for row in range(users):
        # The worst of the heap goes to the end, again and again.
        for end in range(size - 1, 0, -1):
            score, item = scores[row, end], items[row, end]
            scores[row, end] = scores[row, 0]
            items[row, end] = items[row, 0]
            _sink(scores[row], items[row], 0, end, score, item)
