"""Cornac: SAD, BPR and GibbsSAD as a ``Recommender`` whose ``rank`` respects cycles."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import SlateMethod
from sadrec.data import Interactions
from sadrec.integrations._common import CANDIDATES, checked, exchanged, ordered, require
from sadrec.models import SAD

require("Cornac", "cornac", "3.0", "4")

from cornac.exception import ScoreException  # noqa: E402
from cornac.models import Recommender  # noqa: E402

__all__ = ["SADRecommender"]


class SADRecommender(Recommender):  # type: ignore[misc]
    """A model of sadrec for Cornac's experiments, searches and evaluation.

    ``score`` gives mean margins over the catalogue, which are not ratings: use measures of ranking. Users and items
    that were not trained on raise Cornac's ``ScoreException``, so that Cornac answers as it does for its own models:
    ``default_score()`` for a rating, the lowest score for such items in ``rank``.

    Parameters
    ----------
    model
        A SAD, BPR or GibbsSAD with its settings; None: ``SAD()``. It is not changed: ``fit`` trains a copy, which is
        the attribute ``fitted``.
    method, candidates
        How ``rank``, and so every list and measure, orders the best ``candidates`` by mean margin: "margin" leaves
        them, "wins", "markov" and "nash" let them play each other. Scores of ``rank`` are those of its order.
    name
        What tables call it; None: the name of the model's class.
    trainable
        Whether ``fit`` trains. None: unless the model is fitted; it is then used as it is, and its ids are Cornac's.
    verbose
        Show a progress bar.

    Examples
    --------
    >>> from cornac.data import Dataset
    >>> rows = [(user, (user + step) % 9, 1.0) for user in range(9) for step in range(4)]
    >>> model = SADRecommender(SAD(factors=4, iterations=5), method="wins").fit(Dataset.from_uir(rows, seed=1))
    >>> len(model.recommend(0, k=3))
    3
    """

    def __init__(
        self,
        model: Any = None,
        method: SlateMethod = "margin",
        candidates: int = CANDIDATES,
        name: str | None = None,
        trainable: bool | None = None,
        verbose: bool = False,
    ) -> None:
        self.model: Any = SAD() if model is None else model
        self.method, self.candidates = checked(method, candidates)
        train = not self.model.is_fitted if trainable is None else trainable
        super().__init__(name=name or type(self.model).__name__, trainable=train, verbose=verbose)

    def clone(self, new_params: dict[str, Any] | None = None) -> Self:
        """Return a copy that is not fitted; ``new_params`` may name settings of the model, such as ``factors``."""
        new = dict(new_params or {})
        own = {name: new.pop(name, getattr(self, name)) for name in self._get_init_params()}
        if self.trainable or new:
            own.update(model=own["model"].clone(**new), trainable=True)
        return type(self)(**own)

    def fit(self, train_set: Any, val_set: Any = None) -> Self:
        """Train on a Cornac data set, or meet its users and items if the model is fitted."""
        super().fit(train_set, val_set)
        users, items = list(self.uid_map)[: self.num_users], list(self.iid_map)[: self.num_items]
        if self.trainable:
            data = Interactions.from_csr(train_set.csr_matrix, users, items)
            self.fitted = self.model.clone().fit(data, show_progress=self.verbose)
        else:
            self.fitted = self.model
        self._users, self._items = self.fitted.state.users.rows(users), self.fitted.state.items.rows(items)
        if not (self._users >= 0).any() or not (self._items >= 0).any():
            raise ValueError(
                f"the fitted model knows no user or no item of the training set: its ids are such as "
                f"{self.fitted.users[:1].tolist()} and {self.fitted.items[:1].tolist()}, here they are {users[:1]} and "
                f"{items[:1]}"
            )
        return self

    def score(self, user_idx: int, item_idx: int | None = None) -> Any:
        """Return the mean margin of an item over the catalogue, or of all items that were trained on."""
        row = self._users[user_idx] if self.knows_user(user_idx) else -1
        if row < 0:
            raise ScoreException(f"Can't make score prediction for user {user_idx}: it was not trained on")
        scores = self.fitted.scores([self.fitted.users[row]])[0]
        if item_idx is None:
            return np.where(self._items >= 0, scores[self._items], scores.min())
        place = self._items[item_idx] if self.knows_item(item_idx) else -1
        if place < 0:
            raise ScoreException(f"Can't make score prediction for item {item_idx}: it was not trained on")
        return float(scores[place])

    def rank(
        self, user_idx: int, item_indices: Any = None, k: int = -1, **kwargs: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return items in the order of the method, best first, and scores of ``item_indices`` in that order."""
        if self.method == "margin" or not self.knows_user(user_idx) or self._users[user_idx] < 0:
            answer: tuple[NDArray[Any], NDArray[Any]] = super().rank(user_idx, item_indices, k, **kwargs)
            return answer
        ranked, scores = super().rank(user_idx, item_indices, -1, **kwargs)
        trained = ranked[ranked < self.num_items]
        best = trained[self._items[trained] >= 0]
        index_of = np.full(len(self.fitted.items), -1, np.int64)
        index_of[self._items[best]] = best
        user = self.fitted.users[self._users[user_idx]]
        now = index_of[ordered(self.fitted, user, self._items[best], self.method, self.candidates)]
        wanted = np.arange(self.num_items) if item_indices is None else np.asarray(item_indices)
        where = np.full(max(self.total_items, self.num_items), -1, np.int64)
        where[wanted] = np.arange(len(wanted))
        rest = ranked[~np.isin(ranked, best)]
        return np.concatenate([now, rest]), exchanged(scores, where[best], where[now])
