"""The best N items by inner product, for any number of users in bounded memory; similar items and users.

Scores are made a tile at a time by a matrix product and swept at once by a compiled kernel that keeps each user's best
so far. What is needed besides the answer is one tile, whatever the number of users or items.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.check import positions, threads, whole
from sadrec._core.memory import need
from sadrec._core.sparse import as_csr
from sadrec._core.types import METHODS, Method, Positions
from sadrec.ranking.belief import Belief
from sadrec.ranking.parameters import Parameters, User, is_vector, item_vectors, user_vector, user_vectors
from sadrec.ranking.rank import rank

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TopN = tuple[Positions, NDArray[np.float32]]
"""Positions (users, N), best first, and their scores. Where nothing is left to recommend: -1 and -inf."""

_ROWS, _COLUMNS = 512, 4096
"""Size of a tile: 8 MB of scores. Every matrix product waits for all its threads, and smaller ones wait too often."""

_NO_PLACES = np.empty(0, np.int64)
_SPARE = 2
"""Entries kept in addition to N until exact scores are computed, so that rounding loses none."""
_MORE = 16
"""Entries kept by rough scores in addition to N and an eighth of it."""
_CACHED, _FINE = 8 << 20, 1e-3
"""Bytes of vectors that are read fast; how large a unit may be, relative to the usual size of an entry."""


class ItemIndex:
    """Items ready for :meth:`search`, the exact best by inner product.

    >>> index = ItemIndex(np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]))
    >>> items, scores = index.search(np.eye(2), N=2)
    >>> items
    array([[2, 0],
           [1, 2]])
    """

    def __init__(self, vectors: NDArray[Any]) -> None:
        self.vectors: NDArray[np.float32] = np.ascontiguousarray(vectors, np.float32)
        if self.vectors.ndim != 2:
            raise ValueError(f"vectors must be a matrix (items, factors), not of shape {self.vectors.shape}")
        self.items, self.factors = self.vectors.shape

    def __repr__(self) -> str:
        return f"ItemIndex(items={self.items}, factors={self.factors})"

    def search_one(self, query: NDArray[np.float32], N: int, seen: NDArray[np.int32]) -> TopN:
        """Return what :meth:`search` does for one query, without padding; ``seen`` are positions in order, or none.

        One product and one look at it: what a search for many prepares would take longer than the search. Of a large
        catalogue, whose rows take longer to read than to multiply, the product is a rough one of half as many bytes.
        Some more than N are kept of it, and the exact product is made only where these may lack one of the best.
        """
        from sadrec.ranking._selection import rough_scores  # numba is worth loading only now

        if self._rough is not None and self.items // 16 > N:
            rows, unit = self._rough
            scores = np.empty(self.items, np.float32)
            rough_scores(query * np.float32(unit), rows, scores)
            left_out, best = self._best_by(scores, query, N + N // 8 + _MORE, seen)
            if left_out + self._rough_error(query) < best[1][N - 1 : N].min(initial=np.inf):
                return best[0][:N], best[1][:N]
        _, (items, scores) = self._best_by(np.dot(self.vectors, query), query, N + _SPARE, seen)
        return items[:N], scores[:N]

    def _best_by(
        self, scores: NDArray[np.float32], query: NDArray[np.float32], kept: int, seen: NDArray[np.int32]
    ) -> tuple[float, TopN]:
        """Return the best few by given scores but those seen, with exact scores and in their order.

        Also returns the highest that a given score of one left out may be: -inf where none is.
        """
        from sadrec.ranking._selection import settle, sweep  # numba is worth loading only now

        kept = min(kept, self.items)
        best, items = np.full((1, kept), -np.inf, np.float32), np.full((1, kept), -1, np.int64)
        every, mark = self._all
        mark = mark if not seen.size else np.array([0, seen.size])
        sweep(scores[None], every, mark, seen, best, items, 0, 1)
        left_out = float(best[0, 0]) if kept else np.inf  # the first of the heap is the lowest
        settle(query[None], self.vectors, _NO_PLACES, best, items, 0, 1)
        width = int((items[0] >= 0).sum())
        return left_out, (items[0, :width], best[0, :width])

    @cached_property
    def _rough(self) -> tuple[NDArray[np.int16], float] | None:
        """The rows in whole numbers of a unit, and the unit; None where there are few, or no unit is fine enough."""
        if self.vectors.nbytes <= _CACHED:
            return None
        unit = float(max(self.vectors.max(), -self.vectors.min())) / np.iinfo(np.int16).max
        if not 0 < unit <= _FINE * float(np.linalg.norm(self.vectors)) / self.vectors.size**0.5:
            return None
        rows = np.empty(self.vectors.shape, np.int16)
        for start in range(0, self.items, _COLUMNS):  # without holding all of them in between
            rows[start : start + _COLUMNS] = np.rint(self.vectors[start : start + _COLUMNS] / np.float32(unit))
        return rows, unit

    def _rough_error(self, query: NDArray[np.float32]) -> float:
        """Return a bound on the difference of a rough score and the exact one.

        Rounding a row takes half a unit of each entry. Single precision is 2^-24, and an entry has up to 2^15 units:
        each of the two sums of products is wrong by up to 1/512 of a unit for each factor.
        """
        unit = 0.0 if self._rough is None else self._rough[1]
        return float(unit * (0.5 + (self.factors + 2) / 256) * np.abs(query).sum(dtype=np.float64))

    @cached_property
    def _all(self) -> tuple[Positions, Positions]:
        return np.arange(self.items), np.zeros(2, np.int64)

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
        """Return the N items with the largest inner product, for every query, and these products.

        Row r of ``seen`` holds items to leave out for query r; ``allowed`` are the only items to consider, ``blocked``
        those to leave out for all. Best first, equal scores in order of position. Where fewer than N items are
        left, the rest of the row is -1 with the score -inf.
        """
        N = whole(N, "N")
        num_threads = threads(num_threads)
        queries = np.ascontiguousarray(queries, np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.factors:
            raise ValueError(f"queries must be a matrix (users, {self.factors}), not of shape {queries.shape}")
        users, catalogue = len(queries), self.items
        candidates, places = _candidates(catalogue, allowed, blocked)
        seen_start, seen_items = _seen(seen, users, catalogue)
        _check_answer(users, N)
        items = np.full((users, N), -1, np.int64)
        scores = np.full((users, N), -np.inf, np.float32)
        if not N or not users or not candidates.size:
            return items, scores
        vectors = self.vectors[candidates] if places.size else self.vectors
        from sadrec.ranking._selection import settle, sweep  # numba is worth loading only now

        kept = min(N + _SPARE, candidates.size)
        width = min(N, kept)
        rows = min(_ROWS, users)
        columns = min(_ROWS * _COLUMNS // rows, candidates.size)
        tile = np.empty((rows, columns), np.float32)
        best_scores = np.empty((rows, kept), np.float32)
        best_items = np.empty((rows, kept), np.int64)
        with ThreadPoolExecutor(num_threads) as pool:
            for start in range(0, users, rows):
                batch = queries[start : start + rows]
                block = slice(start, start + len(batch))
                marks = seen_start[start : block.stop + 1]
                best_scores[:] = -np.inf
                best_items[:] = -1
                for left in range(0, candidates.size, columns):
                    ids = candidates[left : left + columns]
                    np.matmul(batch, vectors[left : left + columns].T, out=tile[: len(batch), : ids.size])
                    look = partial(sweep, tile, ids, marks, seen_items, best_scores, best_items)
                    _share(pool, look, len(batch), num_threads)
                finish = partial(settle, batch, vectors, places, best_scores, best_items)
                _share(pool, finish, len(batch), num_threads)
                items[block, :width] = best_items[: len(batch), :width]
                scores[block, :width] = best_scores[: len(batch), :width]
                if progress is not None:
                    progress(len(batch))
        return items, scores


def best_of(
    scores: NDArray[Any],
    N: int = 10,
    *,
    seen: "csr_matrix | None" = None,
    allowed: ArrayLike | None = None,
    blocked: ArrayLike | None = None,
) -> TopN:
    """Return the N items with the largest of given scores, (users, items); the rest as for :meth:`ItemIndex.search`."""
    N, (users, catalogue) = whole(N, "N"), scores.shape
    hidden = np.ones(scores.shape, np.bool_)
    hidden[:, _candidates(catalogue, allowed, blocked)[0]] = False
    start, items = _seen(seen, users, catalogue)
    hidden[np.repeat(np.arange(users), np.diff(start)), items] = True
    open_scores = np.where(hidden, -np.inf, scores).astype(np.float32)
    order = np.argsort(-open_scores, axis=1, kind="stable")[:, :N]
    answer = np.full((users, N), -1, np.int64), np.full((users, N), -np.inf, np.float32)
    best = np.take_along_axis(open_scores, order, axis=1)
    answer[0][:, : order.shape[1]], answer[1][:, : order.shape[1]] = np.where(best > -np.inf, order, -1), best
    return answer


def _share(pool: ThreadPoolExecutor, work: Callable[[int, int], object], rows: int, num_threads: int) -> None:
    """Run ``work(first, last)`` on as many runs of rows as there are threads, one of them in this thread."""
    if min(rows, num_threads) == 1:
        work(0, rows)
        return
    bounds = np.linspace(0, rows, min(num_threads, rows) + 1).astype(int).tolist()
    others = [pool.submit(work, first, last) for first, last in pairwise(bounds[1:])]
    work(bounds[0], bounds[1])
    for other in others:
        other.result()


def _candidates(catalogue: int, allowed: ArrayLike | None, blocked: ArrayLike | None) -> tuple[Positions, Positions]:
    """Return the allowed items, ascending, and the place of each item among them (empty for all items)."""
    if allowed is None and blocked is None:
        return np.arange(catalogue), np.empty(0, np.int64)
    wanted = np.full(catalogue, allowed is None)
    if allowed is not None:
        wanted[positions(allowed, catalogue, "allowed")] = True
    if blocked is not None:
        wanted[positions(blocked, catalogue, "blocked")] = False
    return np.flatnonzero(wanted), np.cumsum(wanted) - 1


def _seen(seen: "csr_matrix | None", users: int, catalogue: int) -> tuple[Positions, NDArray[np.int32]]:
    """Return row starts and sorted items of ``seen``."""
    if seen is None:
        return np.zeros(users + 1, np.int64), np.empty(0, np.int32)
    if seen.shape != (users, catalogue):
        raise ValueError(
            f"seen must have a row per query and a column per item, shape {(users, catalogue)}, not {seen.shape}"
        )
    rows = as_csr(seen, "seen")
    return rows.indptr.astype(np.int64, copy=False), rows.indices.astype(np.int32, copy=False)


_BLOCK = 16384
"""Users answered at a time, so that what is held besides the answer does not grow with their number."""


def recommend(
    belief: Belief,
    users: ArrayLike | None = None,
    N: int = 10,
    *,
    method: Method = "margin",
    candidates: int = 200,
    liked: "csr_matrix | None" = None,
    leave_out_liked: bool = True,
    allowed: ArrayLike | None = None,
    blocked: ArrayLike | None = None,
    index: ItemIndex | None = None,
    num_threads: int = 0,
    progress: Callable[[int], object] | None = None,
) -> TopN:
    """Recommend N items to each of some users: items and scores of the method, (users, N), padded with -1 and -inf.

    The best ``candidates`` by mean margin, N at least, are ordered by ``method``, see
    :func:`~sadrec.ranking.rank.rank`. With ``"margin"`` the first stage is all there is. A user with no liked items
    gets the order of ``"margin"`` from ``"liked"`` too. ``liked`` has a row for each of ``users``; ``index`` holds the
    item vectors of the belief, packed once for many calls.

    >>> from sadrec.ranking.belief import Point
    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]))
    >>> recommend(Point(model), [0], N=2, method="wins")
    (array([[2, 0]]), array([[2., 1.]], dtype=float32))
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {method!r}")
    N, candidates = whole(N, "N"), whole(candidates, "candidates", least=1)
    wanted = np.arange(belief.n_users) if users is None else np.atleast_1d(np.asarray(users))
    if liked is not None:
        liked = as_csr(liked, "liked")
        if liked.shape != (len(wanted), belief.n_items):
            raise ValueError(
                f"liked must have a row per user asked about and a column per item, shape "
                f"{(len(wanted), belief.n_items)}, not {liked.shape}"
            )
    by_vectors = belief.by_product or is_vector(wanted)
    if by_vectors:
        index = index or ItemIndex(belief.item_vectors)
    _check_answer(len(wanted), N)
    items = np.full((len(wanted), N), -1, np.int64)
    scores = np.full((len(wanted), N), -np.inf, np.float32)
    for start in range(0, len(wanted), _BLOCK):
        block = slice(start, start + _BLOCK)
        seen_rows = liked if liked is None or len(wanted) <= _BLOCK else liked[block]
        count = N if method == "margin" else max(N, min(candidates, belief.n_items))
        choice: Any = {"seen": seen_rows if leave_out_liked else None, "allowed": allowed, "blocked": blocked}
        report = progress if method == "margin" else None
        if by_vectors and index is not None:
            queries = user_vectors(belief.parameters, wanted[block])
            best, margins = index.search(queries, count, **choice, num_threads=num_threads, progress=report)
        else:
            best, margins = _best_of_many(belief, wanted[block], count, choice, report)
        if method == "margin":
            items[block], scores[block] = best, margins
            continue
        for row, user in enumerate(wanted[block]):
            met = _row(seen_rows, row) if method == "liked" else np.empty(0, np.int64)
            way: Method = "margin" if method == "liked" and not met.size else method
            who, place = (belief.of_user(user), 0) if is_vector(wanted) else (belief, user)
            order = rank(who, place, best[row][best[row] >= 0], way, liked=met)
            width = min(N, len(order))
            items[start + row, :width] = order.items[:width]
            scores[start + row, :width] = order.scores[:width]
            if progress is not None:
                progress(1)
    return items, scores


def _best_of_many(
    belief: Belief, users: Positions, N: int, choice: Any, progress: Callable[[int], object] | None
) -> TopN:
    """Return the best items of some users by scores that no index can search, a few users at a time."""
    answers, step = [], max(1, _ROWS * _COLUMNS // max(1, belief.n_items))
    for start in range(0, len(users), step):
        part = slice(start, start + step)
        seen = None if choice["seen"] is None else choice["seen"][part]
        answers.append(best_of(belief.scores(users[part]), N, **{**choice, "seen": seen}))
        if progress is not None:
            progress(len(answers[-1][0]))
    items, scores = zip(*answers, strict=True) if answers else ((), ())
    return (
        np.concatenate([np.empty((0, N), np.int64), *items]),
        np.concatenate([np.empty((0, N), np.float32), *scores]),
    )


def _check_answer(users: int, N: int) -> None:
    """Raise if an answer (positions, scores, ids) does not fit into memory."""
    need(24 * users * N, f"N={N} for {users:,} users", "lower N or ask about fewer users at a time")


def _row(liked: "csr_matrix | None", row: int) -> NDArray[Any]:
    """Return the items of a row."""
    if liked is None:
        return np.empty(0, np.int64)
    start, stop = liked.indptr[row : row + 2]
    items: NDArray[Any] = liked.indices[start:stop]
    return items


def similar_items(parameters: Parameters, item: ArrayLike, N: int = 10, *, num_threads: int = 0) -> TopN:
    """Return the N items nearest to an item, or to each of several, and their cosines; the item itself is among them.

    The vectors are those of :func:`~sadrec.ranking.parameters.item_vectors`, whose inner product with a user's vector
    is the mean margin: items are alike if the same users prefer them to the catalogue. Equals come in order of
    position. A vector of zeros has the cosine 0 with everything.

    >>> similar_items(Parameters(np.zeros((0, 1)), np.array([[3.0], [2.0], [-5.0]])), 1)
    (array([0, 1, 2]), array([ 1.,  1., -1.], dtype=float32))
    """
    return _nearest(item_vectors(parameters), positions(item, parameters.n_items, "item"), N, num_threads)


def similar_users(
    parameters: Parameters,
    user: User | ArrayLike,
    N: int = 10,
    *,
    num_threads: int = 0,
    profiles: NDArray[Any] | None = None,
) -> TopN:
    """Return the users nearest to a user, to each of several, or to the vector of a new user, and their cosines.

    ``profiles`` are what positions of users are compared by; None: their factors.
    """
    if is_vector(user):
        given: NDArray[Any] = user_vector(parameters, np.asarray(user))
        return _search(parameters.user_factors, given[None, :], N, num_threads, single=True)
    vectors = parameters.user_factors if profiles is None else profiles
    return _nearest(vectors, positions(np.asarray(user), parameters.n_users, "user"), N, num_threads)


def _nearest(vectors: NDArray[Any], rows: Positions, N: int, num_threads: int) -> TopN:
    """Return the nearest rows to some rows."""
    return _search(vectors, vectors[np.atleast_1d(rows)], N, num_threads, single=rows.ndim == 0)


def _search(vectors: NDArray[Any], queries: NDArray[Any], N: int, num_threads: int, single: bool) -> TopN:
    """Return the nearest rows to some vectors."""
    N = min(whole(N, "N"), len(vectors))
    nearest, cosines = ItemIndex(_unit(vectors)).search(_unit(queries), N, num_threads=num_threads)
    cosines = np.clip(cosines, -1.0, 1.0)
    return (nearest[0], cosines[0]) if single else (nearest, cosines)


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Scale rows to length 1; rows of zeros stay."""
    wide = vectors.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(length > 0, length, 1.0), np.float32)
