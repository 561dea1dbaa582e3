"""The first verbs of a model, in terms of ids: one item against another, and what the verbs rest on."""

from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.data.ids import IdArray, Ids, is_scalar_id
from sadrec.models.fitting import liked_only
from sadrec.ranking import Parameters
from sadrec.ranking.pairs import margins, preference, sigmoid
from sadrec.ranking.top_n import ItemIndex
from sadrec.ranking.vectors import item_vectors, user_vectors
from sadrec.training.settings import Settings


class Fitted:
    """What the verbs need to know of a model; they take and return ids and are functions of its parameters."""

    num_threads: int
    parameters: Parameters
    user_ids: Ids
    item_ids: Ids
    seen: Any
    """What was seen in training, a scipy CSR matrix (users x items), or None; below 0 where it was disliked."""
    _packed: tuple[Parameters, ItemIndex] | None = None

    _settings: Settings | None

    @property
    def settings(self) -> Settings | None:
        """The settings that ``fit`` used, with everything resolved; None for given parameters."""
        return self._settings

    def _at_most(self, N: int) -> int:
        """Return N, or the number of items if that is less: one user's answer is never longer."""
        return min(N, len(self.item_ids)) if isinstance(N, (int, np.integer)) else N

    def _user_rows(self, users: Any) -> NDArray[np.int64]:
        return np.atleast_1d(self.user_ids.positions(users))

    def _index(self) -> ItemIndex:
        """Return the items packed for search, kept until the parameters are others."""
        if self._packed is None or self._packed[0] is not self.parameters:
            self._packed = (self.parameters, ItemIndex(item_vectors(self.parameters)))
        return self._packed[1]

    def _liked_by(self, user: Any) -> NDArray[Any]:
        """Return the rows of the items that a user was seen with and did not dislike."""
        row = row_of(self.user_ids, user)
        return np.empty(0, np.int64) if self.seen is None else liked_only(self.seen[[row]]).indices

    def _best(self, user: Any, N: int, new: bool = True) -> tuple[NDArray[np.int64], IdArray]:
        """Return the rows and ids of a user's best N items by mean margin, of all or of those not seen."""
        row = np.array([row_of(self.user_ids, user)])
        left_out = self.seen[row] if new and self.seen is not None else None
        found, _ = self._index().search(
            user_vectors(self.parameters, row), self._at_most(N), seen=left_out, num_threads=self.num_threads
        )
        rows = found[0][found[0] >= 0]
        return rows, self.item_ids.array[rows]


def row_of(ids: Ids, asked: Any) -> int:
    """Return the row of one id."""
    if not is_scalar_id(asked):
        raise TypeError(f"{ids.what} must be one id, not {shortened(asked)}: ask about one at a time")
    return int(ids.positions(asked))


def rows_in(ids: Ids, asked: Any, name: str) -> NDArray[np.int64]:
    """Return the rows of a sequence of ids, which ``name`` calls what it was given as."""
    if is_scalar_id(asked):
        raise TypeError(f"{name} must be a sequence of ids, not {asked!r}: put a single id into a list")
    return np.asarray(ids.positions(asked))


def rows_of(ids: Ids, asked: Any) -> Any:
    """Return the rows of one id, or of an array of ids of any shape."""
    shape = np.shape(asked)
    return ids.positions(np.ravel(asked)).reshape(shape) if len(shape) > 1 else ids.positions(asked)


class PairVerbs(Fitted):
    """One item against another."""

    def preference(self, user: Any, item: Any, rival: Any) -> Any:
        """Return how strongly a user prefers an item to a rival: ``x_uij``, the log-odds.

        Parameters
        ----------
        user, item, rival
            Ids; arrays of ids broadcast against each other.

        Returns
        -------
        float or ndarray
            Positive when the item is preferred. Exchanging item and rival changes the sign and nothing else.

        Examples
        --------
        >>> from sadrec import SAD
        >>> model = SAD.from_factors([[1.0]], [[2.0], [0.5]], users=["ann"], items=["tea", "ale"])
        >>> model.preference("ann", "tea", "ale")
        1.5
        >>> model.preference("ann", ["tea", "ale"], ["ale", "tea"])
        array([ 1.5, -1.5])
        """
        rows = [rows_of(self.user_ids, user), rows_of(self.item_ids, item), rows_of(self.item_ids, rival)]
        x = preference(self.parameters, *rows)
        return float(x) if x.ndim == 0 else x

    def probability(self, user: Any, item: Any, rival: Any) -> Any:
        """Return the probability that a user prefers an item to a rival: ``sigmoid(x_uij)``.

        Parameters
        ----------
        user, item, rival
            Ids; arrays of ids broadcast against each other.
        """
        p = sigmoid(self.preference(user, item, rival))
        return float(p) if np.ndim(p) == 0 else p

    def margins(self, user: Any, items: Any, rivals: Any) -> NDArray[Any]:
        """Return the preferences of one user for all of some items over all of some rivals.

        Parameters
        ----------
        user
            An id.
        items, rivals
            Sequences of ids; None for the whole catalogue.

        Returns
        -------
        ndarray
            (items, rivals); entry (i, j) is positive when item i is preferred to rival j.
        """
        given = {"items": items, "rivals": rivals}
        rows = [None if ids is None else rows_in(self.item_ids, ids, name) for name, ids in given.items()]
        return margins(self.parameters, row_of(self.user_ids, user), *rows)

    def scores(self, users: Any) -> NDArray[Any]:
        """Return, for some users, the mean margin of every item over the catalogue.

        Parameters
        ----------
        users
            A sequence of ids.

        Returns
        -------
        ndarray
            (users, items), the items in the order of ``model.items``. For BPR these are the usual scores, centred.
        """
        rows = self._user_rows(users)
        return np.asarray(user_vectors(self.parameters, rows) @ item_vectors(self.parameters).T)
