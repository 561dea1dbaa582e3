"""Compiled top-N selection: keep the best few of a stream of scores, without seen items."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import inlined, kernel

_STRIDE = 64
"""Scores are looked at this many at a time."""


@inlined
def _after(score: Any, item: Any, other_score: Any, other_item: Any) -> Any:
    """Whether an entry ranks after another: a lower score, or the same score and a later item."""
    return score < other_score or (score == other_score and item > other_item)


@kernel
def _sink(
    scores: NDArray[np.float32], items: NDArray[np.int64], hole: int, size: int, score: np.float32, item: int
) -> None:
    """Sift an entry down from ``hole`` in a heap of ``size`` entries, whose root ranks last."""
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and _after(scores[child + 1], items[child + 1], scores[child], items[child]):
            child += 1
        if not _after(scores[child], items[child], score, item):
            break
        scores[hole] = scores[child]
        items[hole] = items[child]
        hole = child
    scores[hole] = score
    items[hole] = item


@kernel
def _any_above(part: NDArray[np.float32], bound: np.float32) -> bool:
    """Whether any number is above a bound; compiles to vector instructions."""
    above = 0
    for c in range(part.shape[0]):
        above += part[c] > bound
    return above > 0


@kernel
def sweep(
    tile: NDArray[np.float32],
    ids: NDArray[np.int64],
    seen_start: NDArray[np.int64],
    seen_items: NDArray[np.int32],
    scores: NDArray[np.float32],
    items: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Merge a tile of scores into the best entries so far of rows first, ..., last - 1.

    A score counts only if it beats the worst one kept, which almost none does, and only then is the item looked for
    among those seen: nothing is masked beforehand. ``tile`` holds scores of the items ``ids``, which ascend;
    ``seen_start`` and ``seen_items`` are sorted CSR rows of items to leave out. Every row of ``scores`` and ``items``
    is a heap, filled with -inf and -1 before the first tile.
    """
    size = scores.shape[1]
    for row in range(first, last):
        line = tile[row]
        kept, kept_items = scores[row], items[row]
        to_beat = kept[0]
        seen, end = seen_start[row], seen_start[row + 1]
        stop = end
        while seen < stop:
            middle = (seen + stop) >> 1
            if seen_items[middle] < ids[0]:
                seen = middle + 1
            else:
                stop = middle
        for start in range(0, ids.shape[0], _STRIDE):
            part = line[start : min(start + _STRIDE, ids.shape[0])]
            if not _any_above(part, to_beat):
                continue
            for c in range(part.shape[0]):
                if part[c] > to_beat:
                    item = ids[start + c]
                    while seen < end and seen_items[seen] < item:
                        seen += 1
                    if seen == end or seen_items[seen] != item:
                        _sink(kept, kept_items, 0, size, part[c], item)
                        to_beat = kept[0]


@kernel
def settle(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    places: NDArray[np.int64],
    scores: NDArray[np.float32],
    items: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Score what :func:`sweep` kept once more, one inner product each, and sort it: best first, equal scores by item.

    A matrix product rounds differently with the size of the matrix; these do not, so a user's answer does not depend on
    who else was asked about. ``places`` gives the row of ``vectors`` for an item; it is empty where both are the same.
    """
    factors = queries.shape[1]
    size = scores.shape[1]
    mapped = places.shape[0] > 0
    for row in range(first, last):
        kept, kept_items = scores[row], items[row]
        query = queries[row]
        for entry in range(size):
            item = kept_items[entry]
            if item >= 0:
                vector = vectors[places[item] if mapped else item]
                total = np.float32(0.0)
                for h in range(factors):
                    total += query[h] * vector[h]
                kept[entry] = total
        for entry in range(size // 2 - 1, -1, -1):
            _sink(kept, kept_items, entry, size, kept[entry], kept_items[entry])
        for end in range(size - 1, 0, -1):
            score, item = kept[end], kept_items[end]
            kept[end], kept_items[end] = kept[0], kept_items[0]
            _sink(kept, kept_items, 0, end, score, item)


@kernel
def rough_scores(query: NDArray[np.float32], rows: NDArray[np.int16], scores: NDArray[np.float32]) -> None:
    """Fill ``scores`` with the inner products of a query and rows of whole numbers."""
    for item in range(rows.shape[0]):
        row, total = rows[item], np.float32(0.0)
        for h in range(query.shape[0]):
            total += query[h] * np.float32(row[h])
        scores[item] = total
