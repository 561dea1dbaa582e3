"""scikit-learn: SAD, BPR and GibbsSAD as an estimator with ``score``, and a splitter; GridSearchCV works.

Rows are interactions, (user, item) or (user, item, rating), and there are no features: ``check_estimator``, which feeds
random numbers, does not apply.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.check import one_of, seed, whole
from sadrec._core.types import SlateMethod
from sadrec.data import Interactions, as_id_array
from sadrec.evaluation import evaluate_top_n
from sadrec.integrations._common import CANDIDATES, checked, exchanged, ordered, require
from sadrec.models import SAD, NotFittedError

require("scikit-learn", "scikit-learn", "1.5", "2")

from sklearn.base import BaseEstimator  # noqa: E402

__all__ = ["SADEstimator", "WithinUserKFold"]

_MEASURES = ("ndcg", "recall", "precision", "hit_rate", "mrr", "map")


class SADEstimator(BaseEstimator):  # type: ignore[misc]
    """A model of sadrec that scikit-learn can copy, search over and cross-validate.

    ``X`` has a row for each interaction and two or three columns, user, item and, if there is one, rating: an array, a
    list of rows or a frame of pandas or polars. Settings of the model are parameters too: ``model__factors``.

    Parameters
    ----------
    model
        A SAD, BPR or GibbsSAD with its settings; None: ``SAD()``. ``fit`` trains a copy, the attribute ``model_``.
    measure, N
        What ``score`` returns, of lists of N: "ndcg", "recall", "precision", "hit_rate", "mrr" or "map".
    method, candidates
        The order of lists: by mean margin ("margin"), or the best ``candidates`` by "wins", "markov" or "nash".

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> liked = np.argwhere(np.random.default_rng(0).random((30, 20)) < 0.3)
    >>> search = GridSearchCV(SADEstimator(SAD(iterations=5)), {"model__factors": [2, 4]}, cv=WithinUserKFold(2))
    >>> search.fit(liked).best_params_["model__factors"] in (2, 4)
    True
    """

    def __init__(
        self,
        model: Any = None,
        measure: str = "ndcg",
        N: int = 10,
        method: SlateMethod = "margin",
        candidates: int = CANDIDATES,
    ) -> None:
        self.model = model
        self.measure = measure
        self.N = N
        self.method = method
        self.candidates = candidates

    @classmethod
    def of(cls, model: Any, **parameters: Any) -> Self:
        """Return a fitted estimator of a model that is fitted on interactions."""
        estimator = cls(model, **parameters)
        estimator.model_ = model
        return estimator

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on interactions; ``y``, if given, are their ratings."""
        users, items, ratings = _columns(X, y)
        frame = {"user": users, "item": items, **({} if ratings is None else {"rating": ratings})}
        rated = None if ratings is None else "rating"
        data = Interactions.from_frame(pl.DataFrame(frame), "user", "item", rated, None)
        self.model_ = (SAD() if self.model is None else self.model.clone()).fit(data, show_progress=False)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the mean margin over the catalogue for each row's user and item; NaN where one was not trained on."""
        users, items, _ = _columns(X)
        model = self._fitted()
        rows, columns = model.state.users.rows(users), model.state.items.rows(items)
        scores = np.full(len(users), np.nan)
        present = (rows >= 0) & (columns >= 0)
        for row in np.unique(rows[present]):
            of_user = present & (rows == row)
            scores[of_user] = model.scores([model.users[row]])[0][columns[of_user]]
        return scores

    def recommend(self, user: Any, N: int | None = None) -> NDArray[Any]:
        """Return the ids of the best N items for a user, what was trained on left out, in the order of the method."""
        model = self._fitted()
        row = int(model.state.users.positions(user))
        best, _ = _lists(model, row, *checked(self.method, self.candidates))
        return np.asarray(model.items[best[: self.N if N is None else N]])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the measure of lists of N for held-out interactions, as ``sadrec.evaluation.evaluate_top_n`` does.

        Rows of users or items that were not trained on, and rows that were trained on, are left out.
        """
        one_of(self.measure, "measure", _MEASURES)
        users, items, _ = _columns(X)
        model = self._fitted()
        if model.state.seen is None:
            raise ValueError("score needs a model of interactions: this one was fitted on comparisons")
        train = Interactions(model.state.seen, model.state.users, model.state.items, None, False)
        rows, columns = model.state.users.rows(users), model.state.items.rows(items)
        present = (rows >= 0) & (columns >= 0)
        held_out = sp.csr_matrix((np.ones(present.sum()), (rows[present], columns[present])), shape=train.matrix.shape)
        new = (held_out - held_out.multiply(train.matrix != 0)).tocsr()
        new.eliminate_zeros()
        if not new.nnz:
            raise ValueError("no row is of a user and an item that were trained on: split with WithinUserKFold")
        new.data[:] = 1.0
        test = Interactions.from_csr(new, model.users, model.items)
        ordered_model = _InOrder(model, *checked(self.method, self.candidates))
        return float(evaluate_top_n(ordered_model, train, test, N=whole(self.N, "N", least=1))[self.measure])

    def _fitted(self) -> Any:
        if not hasattr(self, "model_"):
            raise NotFittedError("this SADEstimator is not fitted yet: call fit first")
        return self.model_


class WithinUserKFold:
    """A splitter that deals the rows of each user out over the folds, so that every user is trained on.

    A user with fewer rows than folds is in the test part of as many folds as they have rows; the row of a user who has
    only one is never held out. ``cross_val_score``, ``GridSearchCV`` and the like take it as ``cv``.

    Parameters
    ----------
    n_splits
        How many folds, two or more.
    random_state
        The seed of the dealing.

    Examples
    --------
    >>> rows = [("ann", "tea"), ("ann", "ale"), ("ann", "gin"), ("ann", "rum"), ("bob", "tea")]
    >>> [len(test) for train, test in WithinUserKFold(2).split(rows)]
    [2, 2]
    """

    def __init__(self, n_splits: int = 5, random_state: int = 0) -> None:
        self.n_splits = whole(n_splits, "n_splits", least=2)
        self.random_state = seed(random_state)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many folds there are."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield the rows to train on and the rows to test on, for each fold."""
        users = np.unique(_columns(X)[0], return_inverse=True)[1]
        counts = np.bincount(users)
        generator = np.random.default_rng(self.random_state)
        shuffled = generator.permutation(len(users))
        dealt = shuffled[np.argsort(users[shuffled], kind="stable")]  # by user, shuffled within
        turn = np.arange(len(users)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = generator.integers(self.n_splits, size=len(counts))
        fold = np.empty(len(users), np.int64)
        fold[dealt] = (turn + np.repeat(first, counts)) % self.n_splits
        fold[counts[users] == 1] = -1
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


class _InOrder:
    """A model whose scores put the items that a user has not seen in the order of a method."""

    def __init__(self, model: Any, method: SlateMethod, candidates: int) -> None:
        self.model, self.users, self.items = model, model.users, model.items
        self.method, self.candidates = method, candidates

    def scores(self, users: Any) -> NDArray[Any]:
        """Return the scores of all items, users x items."""
        scores = np.array(self.model.scores(users))
        if self.method != "margin":
            for place, row in enumerate(self.model.state.users.positions(users)):
                now, best = _lists(self.model, int(row), self.method, self.candidates)
                scores[place] = exchanged(scores[place], best, now)
        return scores


def _lists(model: Any, row: int, method: SlateMethod, candidates: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the item rows that a user has not seen in the order of a method, and by mean margin."""
    user = model.users[row]
    scores = np.array(model.scores([user])[0], np.float64)
    seen = np.empty(0, np.int64) if model.state.seen is None else model.state.seen[[row]].indices
    scores[seen] = -np.inf
    best = np.argsort(-scores, kind="stable")[: len(scores) - len(seen)]
    return ordered(model, user, best, method, candidates), best


def _columns(X: Any, y: Any = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Return the users, the items and, if there are any, the ratings of rows."""
    if hasattr(X, "columns"):
        columns = [X[name] for name in list(X.columns)]
    else:
        array = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
        if array.ndim != 2:
            raise ValueError(
                f"X must have a row for each interaction: user, item and perhaps rating, not {array.shape}"
            )
        columns = list(array.T)
    if len(columns) not in (2, 3):
        raise ValueError(f"X must have the columns user, item and perhaps rating, not {len(columns)} columns")
    ratings = y if y is not None else columns[2] if len(columns) == 3 else None
    users, items = as_id_array(columns[0]), as_id_array(columns[1])
    return users, items, None if ratings is None else np.asarray(ratings, np.float64)
