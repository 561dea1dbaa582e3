"""Why, who is alike, and vectors for other people's indexes."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.data.ids import IdArray
from sadrec.models.recommending import RecommendVerbs
from sadrec.models.verbs import row_of
from sadrec.ranking.explain import Explanation, explain
from sadrec.ranking.neighbours import similar_items, similar_users
from sadrec.ranking.vectors import item_vectors, user_vectors

Neighbours = tuple[IdArray, NDArray[np.float32]]


class ReasonVerbs(RecommendVerbs):
    """Why, who is alike, and vectors out."""

    def explain(self, user: Any, item: Any, rival: Any) -> Explanation:
        """Explain why a user prefers an item to a rival, or does not.

        Parameters
        ----------
        user, item, rival
            Ids.

        Returns
        -------
        Explanation
            ``contributions`` has one number per factor, and a last one for the bias if there is one; they sum to
            ``margin``, which is the preference, exactly. ``supporters()`` and ``opponents()`` are the items the user
            was seen with that speak most for either side.

        Examples
        --------
        >>> from sadrec import SAD
        >>> model = SAD.from_factors([[1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], users=["ann"], items=["tea", "ale"])
        >>> model.explain("ann", "ale", "tea")
        ale over tea: margin 1 (73 %)
          factors  1: +2, 0: -1
        """
        rows = [row_of(self.item_ids, asked) for asked in (item, rival)]
        liked = self._liked_by(user)
        found = explain(
            self.parameters,
            row_of(self.user_ids, user),
            *rows,
            liked=liked if liked.size else None,
            regularization=self._regularization(),
            **self._rivals_met(),
        )
        ids = self.item_ids.array
        return replace(found, item=ids[rows[0]], rival=ids[rows[1]], liked=ids[found.liked])

    def similar_items(self, item: Any, N: int = 10) -> Neighbours:
        """Return the N items most alike, by the cosine of their :meth:`item_vectors`, and the cosines.

        Parameters
        ----------
        item
            An id, or a sequence of ids. The item itself comes first.
        N
            How many.
        """
        found, cosines = similar_items(self.parameters, self.item_ids.positions(item), N, num_threads=self.num_threads)
        return self.item_ids.array[found], cosines

    def similar_users(self, user: Any, N: int = 10) -> Neighbours:
        """Return the N users most alike, by the cosine of their vectors, and the cosines.

        Parameters
        ----------
        user
            An id, or a sequence of ids. The user comes first.
        N
            How many.
        """
        found, cosines = similar_users(self.parameters, self.user_ids.positions(user), N, num_threads=self.num_threads)
        return self.user_ids.array[found], cosines

    def item_vectors(self) -> NDArray[np.float32]:
        """Return one vector per item whose inner product with a user's vector is the mean margin over the catalogue.

        Any index for the largest inner product serves them; see docs/serving.md.
        """
        return item_vectors(self.parameters)

    def user_vectors(self, users: Any = None) -> NDArray[np.float32]:
        """Return the vectors that go with :meth:`item_vectors`, for some users or all."""
        return user_vectors(self.parameters, None if users is None else self._user_rows(users))
