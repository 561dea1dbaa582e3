"""The verb ``recommend``: the best items for one user or many."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec.data.ids import IdArray, is_scalar_id
from sadrec.models.verbs import Fitted
from sadrec.ranking.top_n import ItemIndex
from sadrec.ranking.vectors import item_vectors, user_vectors


class RecommendVerbs(Fitted):
    """What to show to somebody."""

    def recommend(
        self,
        user: Any,
        user_items: Any = None,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
    ) -> tuple[IdArray, NDArray[np.float32]]:
        """Return the best N items for a user, or for many users at once, by their mean margin over the catalogue.

        Parameters
        ----------
        user
            An id, or a sequence of ids.
        user_items
            What these users have liked, a sparse matrix with one row per user asked about and one column per item of
            the model; None takes what was seen in training.
        N
            How many items.
        filter_already_liked_items
            Leave out what is in ``user_items``.
        filter_items
            Ids of items to leave out for everybody.
        recalculate_user
            Compute the users' vectors anew from ``user_items``.
        items
            Ids of the only items to consider.

        Returns
        -------
        ids, scores
            For one user two arrays of at most N, best first. For many users arrays of shape (users, N); where fewer
            than N items are left, the score is -inf and the id means nothing: -1, NaN, NaT or "".
        """
        one = is_scalar_id(user)
        rows = self._user_rows([user] if one else user)
        liked = self._liked(rows, user_items, filter_already_liked_items or recalculate_user)
        allowed, blocked = (None if ids is None else self.item_ids.positions(ids) for ids in (items, filter_items))
        found, scores = ItemIndex(item_vectors(self.parameters)).search(
            user_vectors(self.parameters, rows),
            N,
            seen=liked if filter_already_liked_items else None,
            allowed=allowed,
            blocked=blocked,
            num_threads=self.num_threads,
        )
        ids = self.item_ids.array[found]
        if not one:
            ids[found < 0] = {"i": -1, "u": 0, "f": np.nan, "U": "", "M": np.datetime64("NaT")}[ids.dtype.kind]
            return ids, scores
        real = found[0] >= 0
        return ids[0][real], scores[0][real]

    def _liked(self, rows: NDArray[np.int64], user_items: Any, needed: bool) -> Any:
        """Return what these users liked, a CSR matrix with a row for each; None when nothing is known."""
        if not needed:
            return None
        if user_items is None:
            return None if self.seen is None else self.seen[rows]
        liked = sp.csr_matrix(user_items)
        if liked.shape != (len(rows), len(self.item_ids)):
            raise ValueError(
                f"user_items must have a row for each of the {len(rows)} users asked about and a column for each "
                f"of the model's {len(self.item_ids)} items, not the shape {liked.shape}"
            )
        return liked
