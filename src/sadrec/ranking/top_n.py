"""The best N items by inner product, for any number of users, without ever holding users x items.

Items are packed once into tiles that stay in a core's cache. A compiled kernel scores a tile for two users at a time and
sweeps the scores at once, keeping each user's best so far; threads take users in blocks. What is needed besides the
answer is a few kilobytes per thread, whatever the number of users or items, and a user's answer has the same bits alone,
in a crowd, and on any number of threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec.ranking._arguments import Indices, count, positions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TopN = tuple[Indices, NDArray[np.float32]]
"""Positions (users, N), best first, and their scores. Where nothing is left to recommend: -1 and -inf."""

_BLOCK = 128
"""Users that a thread takes at a time."""

_TILE = 1 << 16
"""Numbers in a tile: 256 kB, half of the second-level cache of most cores."""

_WIDEST = 1024
"""Items in a tile at most: their scores for two users stay in the first-level cache."""


class ItemIndex:
    """Items packed for :meth:`search`: the exact nearest ones by inner product.

    Parameters
    ----------
    vectors
        (items, factors), as from :func:`~sadrec.ranking.vectors.item_vectors`.

    Examples
    --------
    >>> index = ItemIndex(np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]))
    >>> index
    ItemIndex(items=3, factors=2)
    >>> items, scores = index.search(np.eye(2), N=2)
    >>> items
    array([[2, 0],
           [1, 2]])
    >>> scores
    array([[2., 1.],
           [3., 1.]], dtype=float32)
    """

    def __init__(self, vectors: NDArray[Any]) -> None:
        vectors = np.asarray(vectors)
        if vectors.ndim != 2:
            raise ValueError(f"vectors must be a matrix (items, factors), not of shape {vectors.shape}")
        self.items, self.factors = vectors.shape
        self._vectors = vectors
        self._tiles = _pack(vectors)

    def __repr__(self) -> str:
        return f"ItemIndex(items={self.items}, factors={self.factors})"

    def search(
        self,
        queries: NDArray[Any],
        N: int = 10,
        *,
        seen: "csr_matrix | None" = None,
        allowed: ArrayLike | None = None,
        blocked: ArrayLike | None = None,
        num_threads: int = 0,
        progress: Callable[[int], object] | None = None,
    ) -> TopN:
        """Find the N items with the largest inner product, for every query.

        Parameters
        ----------
        queries
            (users, factors), as from :func:`~sadrec.ranking.vectors.user_vectors`.
        N
            How many.
        seen
            Items to leave out, user by user: row r belongs to query r.
        allowed
            Positions of the only items to consider; ``None`` for all.
        blocked
            Positions of items to leave out for everybody.
        num_threads
            0 for all cores. The answer does not depend on it.
        progress
            Called with the number of users answered since the last call.

        Returns
        -------
        items, scores
            (users, N) each, best first, equal scores in order of position. Where fewer than N items are left, the rest
            of the row is -1 with the score -inf.
        """
        N = count(N, "N")
        threads = count(num_threads, "num_threads") or (os.cpu_count() or 1)
        asked = np.asarray(queries)
        if asked.ndim != 2 or asked.shape[1] != self.factors:
            raise ValueError(f"queries must be a matrix (users, {self.factors}), not of shape {asked.shape}")
        users = len(asked)
        seen_start, seen_items = _seen(seen, users, self.items)
        candidates = _candidates(self.items, allowed, blocked)
        items = np.full((users, N), -1, np.int64)
        scores = np.full((users, N), -np.inf, np.float32)
        kept = min(N, candidates.size)
        if not kept or not users:
            return items, scores
        tiles = self._tiles if candidates.size == self.items else _pack(self._vectors[candidates])
        from sadrec.ranking._selection import best_of_tiles  # numba is worth loading only now

        def answer(first: int) -> int:
            block = slice(first, min(first + _BLOCK, users))
            # Room of its own, exactly as wide as can be filled: padding must not take part in the heap.
            height = block.stop - first
            best_scores = np.full((height, kept), -np.inf, np.float32)
            best_items = np.full((height, kept), -1, np.int64)
            padded = np.zeros((height, tiles.shape[1]), np.float32)
            padded[:, : self.factors] = asked[block]
            starts = seen_start[first : block.stop + 1]
            best_of_tiles(padded, tiles, candidates, starts, seen_items, best_scores, best_items)
            items[block, :kept] = best_items
            scores[block, :kept] = best_scores
            return height

        blocks = range(0, users, _BLOCK)
        if len(blocks) == 1 or threads == 1:
            for first in blocks:
                done = answer(first)
                if progress is not None:
                    progress(done)
        else:
            with ThreadPoolExecutor(threads) as pool:
                for done in pool.map(answer, blocks):
                    if progress is not None:
                        progress(done)
        return items, scores


def top_n(
    queries: NDArray[Any],
    vectors: NDArray[Any],
    N: int = 10,
    *,
    seen: "csr_matrix | None" = None,
    allowed: ArrayLike | None = None,
    blocked: ArrayLike | None = None,
    num_threads: int = 0,
    progress: Callable[[int], object] | None = None,
) -> TopN:
    """Find the N items with the largest inner product: :meth:`ItemIndex.search` without keeping the index.

    Examples
    --------
    >>> top_n(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]), N=2, blocked=[1])[0]
    array([[2, 0],
           [2, 0]])
    """
    return ItemIndex(vectors).search(
        queries,
        N,
        seen=seen,
        allowed=allowed,
        blocked=blocked,
        num_threads=num_threads,
        progress=progress,
    )


def _pack(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Pack (items, factors) into (tiles, factors, items of a tile), padded with zeros."""
    from sadrec.ranking._selection import GROUP

    items, factors = vectors.shape
    height = max(GROUP, -(-factors // GROUP) * GROUP)
    width = int(np.clip(_TILE // height // 32 * 32, 32, _WIDEST))
    tiles = np.zeros((-(-items // width), height, width), np.float32)
    whole = items // width
    tiles[:whole, :factors] = vectors[: whole * width].reshape(whole, width, factors).transpose(0, 2, 1)
    if whole < len(tiles):
        tiles[whole, :factors, : items - whole * width] = vectors[whole * width :].T
    return tiles


def _candidates(catalogue: int, allowed: ArrayLike | None, blocked: ArrayLike | None) -> Indices:
    """Return the items to consider, ascending."""
    if allowed is None and blocked is None:
        return np.arange(catalogue)
    wanted = np.full(catalogue, allowed is None)
    if allowed is not None:
        wanted[positions(allowed, catalogue, "allowed")] = True
    if blocked is not None:
        wanted[positions(blocked, catalogue, "blocked")] = False
    return np.flatnonzero(wanted)


def _seen(
    seen: "csr_matrix | None", users: int, catalogue: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return row starts and sorted items of ``seen``."""
    if seen is None:
        return np.zeros(users + 1, np.int64), np.empty(0, np.int32)
    if seen.shape != (users, catalogue):
        raise ValueError(
            f"seen must have a row per query and a column per item, shape {(users, catalogue)}, not {seen.shape}"
        )
    rows = seen.tocsr()
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    return rows.indptr.astype(np.int64, copy=False), rows.indices.astype(np.int32, copy=False)
