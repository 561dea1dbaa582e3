"""Evaluation of lists: the best N of the whole catalogue, what was seen in training left out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Doubles
from sadrec.data import Interactions
from sadrec.evaluation.metrics import lists
from sadrec.evaluation.metrics.lists import Hits
from sadrec.evaluation.plan import check_held_out, in_ids_of, over_users, pattern
from sadrec.evaluation.protocol import EvaluatedModel, as_evaluated, positions, scores_of
from sadrec.evaluation.result import Evaluation, mean_and_error

# Scores held at a time, in numbers.
_BLOCK = 1 << 22
_LIST_MEASURES: Mapping[str, Callable[[Hits], Doubles]] = {
    "ndcg": lists.ndcg,
    "recall": lists.recall,
    "precision": lists.precision,
    "hit_rate": lists.hit_rate,
    "mrr": lists.mrr,
    "map": lists.average_precision,
}
TOP_N_MEASURES = (*_LIST_MEASURES, "coverage", "popularity_bias")


def evaluate_top_n(
    model: object,
    train: Interactions,
    test: Interactions,
    N: int | Sequence[int] = 10,
    *,
    seed: int = 0,
    show_progress: bool = False,
) -> Evaluation:
    """Evaluate the best N items of the whole catalogue for every user who has test items.

    Items the user met in training are left out; everything else competes. Only one block of users x items is in memory
    at a time.

    Parameters
    ----------
    model
        A model with ``scores(users)`` or ``margins(user, items, rivals)``; see :mod:`sadrec.evaluation.protocol`.
    train, test
        The two parts of a split, or two published files. What has a user or an item that only the test part has is left
        out, with a warning. A model that has seen the test part in training is refused.
    N
        Length of the lists, or several.
    seed
        Items with equal scores are put in an order drawn by this seed, never in the order they happen to be stored in.
    show_progress
        Show a progress bar.

    Returns
    -------
    Evaluation
        ``ndcg``, ``recall``, ``precision``, ``hit_rate``, ``mrr``, ``map``, ``coverage`` and ``popularity_bias``; with
        several N each key ends in ``@N``. Standard errors
        over users are in ``.errors``.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).integers(0, 2, (30, 40))))
    >>> train, test = data.split(test=0.2, seed=0)
    >>> class Oracle:
    ...     users, items = data.users, data.items
    ...     def scores(self, users):
    ...         return test.matrix[users].toarray()
    >>> evaluate_top_n(Oracle(), train, test, N=5)["ndcg"]
    1.0
    """
    test = in_ids_of(train, test)
    check_held_out(train, test, model)
    lengths = [N] if isinstance(N, int | np.integer) else list(N)
    if not lengths or min(lengths) < 1:
        raise ValueError(f"N must be at least 1, or several such numbers, got {N!r}")
    plan = _Lists(as_evaluated(model), train, test, max(lengths), seed)
    rows = np.flatnonzero(np.diff(test.matrix.indptr))
    step = max(1, _BLOCK // max(1, train.matrix.shape[1]))
    parts = list(over_users(plan.hits, rows, size=step, show_progress=show_progress))
    everything = Hits(
        np.concatenate([part.hit for part in parts]) if parts else np.empty((0, max(lengths)), dtype=bool),
        np.diff(test.matrix.indptr)[rows],
        np.concatenate([part.items for part in parts]) if parts else np.empty((0, max(lengths)), dtype=np.int64),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        own = (pattern(train) @ plan.popularity)[rows] / np.diff(train.matrix.indptr)[rows]
    figures, errors, counts, per_user = {}, {}, {}, {}
    for n in lengths:
        suffix = "" if isinstance(N, int | np.integer) else f"@{n}"
        hits = everything.first(n)
        values = {name: measure(hits) for name, measure in _LIST_MEASURES.items()}
        values["popularity_bias"] = lists.popularity_bias(hits, plan.popularity, own)
        for name in TOP_N_MEASURES:
            key = name + suffix
            if name in values:
                per_user[key] = values[name]
                figures[key], errors[key], counts[key] = mean_and_error(values[name])
            else:
                figures[key], counts[key] = lists.coverage(hits.exposure(train.matrix.shape[1])), len(rows)
    return Evaluation(figures, errors, counts, train.users[rows], per_user)


class _Lists:
    """The lists of a model, a block of users at a time."""

    def __init__(self, model: EvaluatedModel, train: Interactions, test: Interactions, length: int, seed: int) -> None:
        self.model, self.train, self.test, self.length = model, train, test, length
        _, self.columns = positions(model, train)
        self.order = np.random.default_rng(seed).permutation(train.matrix.shape[1])
        self.popularity = np.bincount(train.matrix.indices, minlength=train.matrix.shape[1])

    def hits(self, rows: NDArray[Any]) -> Hits:
        """Return the lists of the users in ``rows`` and which of their items are among the test items."""
        scores = scores_of(self.model, self.train.users[rows], self.columns)
        if np.isnan(scores).any():
            raise ValueError("the model gives scores that are NaN: its training has diverged; lower its learning rate")
        scores = scores.astype(np.float64 if scores.dtype == np.float64 else np.float32)
        seen, which = _entries(self.train, rows)
        scores[seen, which] = -np.inf
        items = best(scores, self.length, self.order)
        wanted = np.zeros(scores.shape, dtype=bool)
        wanted[_entries(self.test, rows)] = True
        hit = np.take_along_axis(wanted, np.maximum(items, 0), axis=1) & (items >= 0)
        return Hits(hit, wanted.sum(axis=1), items)


def _entries(data: Interactions, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    part = data.matrix[rows]
    return np.repeat(np.arange(len(rows)), np.diff(part.indptr)), part.indices


def best(scores: NDArray[Any], length: int, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the columns of the ``length`` largest scores of each row, best first; -1 where none is left but -inf.

    ``order`` is a permutation of the columns: of equal scores the one that comes earlier in it goes first.

    Examples
    --------
    >>> best(np.array([[1.0, 3.0, -np.inf, 3.0]]), 4, np.array([3, 2, 1, 0]))
    array([[ 3,  1,  0, -1]])
    """
    users, items = scores.shape
    mixed = scores[:, order]
    out = np.full((users, length), -1, dtype=np.int64)
    kept = min(length, items)
    if kept == 0:
        return out
    chosen = _largest(mixed, kept)
    values = np.take_along_axis(mixed, chosen, axis=1)
    sorting = np.argsort(-values, axis=1, kind="stable")
    chosen = np.take_along_axis(chosen, sorting, axis=1)
    possible = np.take_along_axis(values, sorting, axis=1) > -np.inf
    out[:, :kept] = np.where(possible, order[chosen], -1)
    return out


def _largest(mixed: NDArray[Any], kept: int) -> NDArray[np.int64]:
    """Columns of the ``kept`` largest, in column order; of those equal to the smallest kept, the first."""
    users, items = mixed.shape
    if kept == items:
        return np.broadcast_to(np.arange(items), (users, items))
    chosen = np.sort(np.argpartition(mixed, items - kept, axis=1)[:, items - kept :], axis=1)
    least = np.take_along_axis(mixed, chosen, axis=1).min(axis=1)
    above = mixed >= least[:, None]
    for row in np.flatnonzero(above.sum(axis=1) > kept):
        strictly = np.flatnonzero(mixed[row] > least[row])
        equal = np.flatnonzero(mixed[row] == least[row])[: kept - len(strictly)]
        chosen[row] = np.sort(np.concatenate([strictly, equal]))
    return np.asarray(chosen, dtype=np.int64)
