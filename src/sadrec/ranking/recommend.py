"""Recommendations in two stages: the best by mean margin over the catalogue, then an exact tournament among them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._check import whole
from sadrec.ranking.parameters import Parameters
from sadrec.ranking.rank import METHODS, Method, rank
from sadrec.ranking.top_n import ItemIndex, TopN
from sadrec.ranking.vectors import item_vectors, user_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BLOCK = 16384
"""Users answered at a time, so that what is held besides the answer does not grow with their number."""


def recommend(
    parameters: Parameters,
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
    gets the order of ``"margin"`` from ``"liked"`` too. ``liked`` has a row for each user asked about; ``index`` is
    that of the item vectors, if there is one.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]))
    >>> recommend(model, [0], N=2, method="wins")
    (array([[2, 0]]), array([[2., 1.]], dtype=float32))
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {method!r}")
    N, candidates = whole(N, "N"), whole(candidates, "candidates", least=1)
    asked = parameters.user_factors if users is None else np.atleast_1d(np.asarray(users))
    if liked is not None:
        liked = liked.tocsr()
        if liked.shape != (len(asked), parameters.n_items):
            raise ValueError(
                f"liked must have a row per user asked about and a column per item, shape "
                f"{(len(asked), parameters.n_items)}, not {liked.shape}"
            )
    index = index or ItemIndex(item_vectors(parameters))
    items = np.full((len(asked), N), -1, np.int64)
    scores = np.full((len(asked), N), -np.inf, np.float32)
    for start in range(0, len(asked), _BLOCK):
        block = slice(start, start + _BLOCK)
        queries = user_vectors(parameters, asked[block])
        known = liked if liked is None or len(asked) <= _BLOCK else liked[block]
        best, margins = index.search(
            queries,
            N if method == "margin" else max(N, min(candidates, parameters.n_items)),
            seen=known if leave_out_liked else None,
            allowed=allowed,
            blocked=blocked,
            num_threads=num_threads,
            progress=progress if method == "margin" else None,
        )
        if method == "margin":
            items[block], scores[block] = best, margins
            continue
        for row, vector in enumerate(queries[:, : parameters.n_factors]):
            met = _row(known, row) if method == "liked" else np.empty(0, np.int64)
            way: Method = "margin" if method == "liked" and not met.size else method
            order = rank(parameters, vector, best[row][best[row] >= 0], way, liked=met)
            width = min(N, len(order))
            items[start + row, :width] = order.items[:width]
            scores[start + row, :width] = order.scores[:width]
            if progress is not None:
                progress(1)
    return items, scores


def _row(liked: "csr_matrix | None", row: int) -> NDArray[Any]:
    """Return the items of a row."""
    if liked is None:
        return np.empty(0, np.int64)
    start, stop = liked.indptr[row : row + 2]
    items: NDArray[Any] = liked.indices[start:stop]
    return items
