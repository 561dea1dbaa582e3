"""What to show: recommendations for the people of the model, for somebody new, and in groups."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec.data import Comparisons
from sadrec.data.ids import IdArray, is_scalar_id
from sadrec.models.fitting import balance, liked_only
from sadrec.models.verbs import Fitted, row_of
from sadrec.ranking._arguments import count
from sadrec.ranking.fold_in import FoldIn, average_user, fold_in, fold_in_comparisons
from sadrec.ranking.groups import Group, recommend_groups
from sadrec.ranking.new_items import NewItem, fold_in_item
from sadrec.ranking.rank import Method
from sadrec.ranking.recommend import recommend
from sadrec.ranking.tournament import tournament

Recommended = tuple[IdArray, NDArray[np.float32]]


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
        *,
        method: Method = "margin",
        candidates: int = 200,
        progress: Callable[[int], object] | None = None,
    ) -> Recommended:
        """Return the best N items for a user, or for many users at once.

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
        method
            "margin" orders by the mean margin over the catalogue. The others take the best ``candidates`` by margin and
            let them play each other: see :meth:`rank`.
        candidates
            How many items play each other.
        progress
            Called with the number of users answered since the last call.

        Returns
        -------
        ids, scores
            For one user two arrays of at most N, best first. For many users arrays of shape (users, N); where fewer
            than N items are left, the score is -inf and the id means nothing: -1 (0 if unsigned), NaN, NaT or "".

        Examples
        --------
        >>> from sadrec import SAD
        >>> tastes, dishes = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]
        >>> model = SAD.from_factors(tastes, dishes, items=["a", "b", "c"])
        >>> model.recommend(0, N=2)
        (array(['c', 'a'], dtype='<U1'), array([1., 0.], dtype=float32))
        >>> model.recommend([0, 1], N=1)[0]
        array([['c'],
               ['b']], dtype='<U1')
        """
        if items is not None and filter_items is not None:
            raise ValueError("give items (the only ones to consider) or filter_items (to leave out), not both")
        one = is_scalar_id(user)
        rows = self._user_rows([user] if one else user)
        known = self._known(rows, user_items)
        who: Any = rows
        if recalculate_user:
            if known is None:
                raise ValueError("recalculate_user needs user_items: the model has seen no interactions")
            liked = liked_only(known)
            who = np.array(
                [self._vector_of(liked.indices[a:b]) for a, b in zip(liked.indptr, liked.indptr[1:], strict=False)]
            )
        answer = self._recommended_to_one if one else self._recommended
        return answer(who, N, known, filter_already_liked_items, filter_items, items, method, candidates, progress)

    def recommend_for(
        self,
        liked: Any,
        N: int = 10,
        filter_items: Any = None,
        items: Any = None,
        *,
        method: Method = "margin",
        candidates: int = 200,
    ) -> Recommended:
        """Return the best N items for somebody new, from what they liked or said (:meth:`fold_in`).

        Parameters
        ----------
        liked
            Ids of the items they liked, or Comparisons of one user.
        N, filter_items, items, method, candidates
            As for :meth:`recommend`. What they liked is left out.
        """
        known = None
        if not isinstance(liked, Comparisons):
            liked = _listed(liked)
            columns = np.unique(self.item_ids.positions(liked))
            ones = np.ones(len(columns), np.float32)
            known = sp.csr_matrix((ones, columns, [0, len(columns)]), shape=(1, len(self.item_ids)))
        vector = self.fold_in(liked)
        return self._recommended_to_one(vector[None], N, known, True, filter_items, items, method, candidates)

    def recommend_popular(self, N: int = 10, filter_items: Any = None, items: Any = None) -> Recommended:
        """Return the best N items for somebody of whom nothing is known: popular by margin, over all users."""
        vector = average_user(self.parameters)
        return self._recommended_to_one(vector[None], N, None, False, filter_items, items, "margin", 1)

    def recommend_groups(
        self, user: Any, N: int = 10, *, candidates: int = 50, largest: int | None = 5, minimum: float = 0.0
    ) -> list[Group]:
        """Return slates: items that form a circle are shown together, in the place their group earned.

        Parameters
        ----------
        user
            An id.
        N
            How many items to show at least.
        candidates
            Among how many of the best new items circles are looked for.
        largest
            How many items a slate holds at most; None for no limit.
        minimum
            The margin a win needs to count.
        """
        among = max(count(N, "N"), count(candidates, "candidates", least=1))
        game = tournament(self.parameters, row_of(self.user_ids, user), *self._best(user, among))
        return recommend_groups(game, N, largest=largest, minimum=minimum)

    def fold_in(self, items: Any, return_covariance: bool = False) -> Any:
        """Return the vector of somebody new, from what they liked or from what they said they prefer.

        With the item parameters fixed the likelihood is concave and has one optimum, found by Newton's method.

        Parameters
        ----------
        items
            Ids of liked items, or Comparisons of one user.
        return_covariance
            Also return how uncertain the vector is (Laplace's approximation), (factors, factors).

        Returns
        -------
        vector, or (vector, covariance)
            The vector has length ``factors`` and goes with ``item_vectors()``.
        """
        found = self._folded(items)
        vector = found.vector.astype(np.float32)
        return (vector, found.covariance) if return_covariance else vector

    def fold_in_item(self, users: Sequence[Any]) -> NewItem:
        """Return the parameters of a new item, from the ids of the users who liked it."""
        if self.seen is None:
            raise ValueError(
                "a new item is placed by what its users liked besides, and the model has seen no interactions"
            )
        return fold_in_item(
            self.parameters,
            self._user_rows(users),
            liked_only(self.seen),
            regularization=self._regularization(),
            rival_regularization=0.001 if self.settings is None else self.settings.rival_regularization,
        )

    # -- how --------------------------------------------------------------------------------------------------------

    def _regularization(self) -> float:
        """Return the l2 penalty of the fit; a small one where there was none, or the problem has no single answer."""
        return max(0.01 if self.settings is None else self.settings.regularization, 1e-6)

    def _folded(self, items: Any) -> FoldIn:
        if isinstance(items, Comparisons):
            if len(np.unique(items.user_index)) > 1:
                raise ValueError("the comparisons are of several users, and a vector belongs to one: give those of one")
            rows = (self.item_ids.positions(items.items[side]) for side in (items.winner_index, items.loser_index))
            return fold_in_comparisons(
                self.parameters, *rows, weight=items.weight, regularization=self._regularization()
            )
        return self._fold_in_rows(self.item_ids.positions(_listed(items)))

    def _fold_in_rows(self, rows: NDArray[Any]) -> FoldIn:
        penalty = self._regularization() / self._weight_of(len(rows))
        return fold_in(self.parameters, rows, regularization=penalty, **self._rivals_met())

    def _weight_of(self, liked: int) -> float:
        """Return what an interaction of somebody with so many of them would have weighed in training."""
        if self.settings is None or not self.settings.user_balance or self.seen is None:
            return 1.0
        counts = np.append(np.diff(liked_only(self.seen).indptr), liked)
        return float(balance(counts, self.settings.user_balance)[-1])

    def _rivals_met(self) -> dict[str, Any]:
        """Return how a liked item met its rivals in training."""
        settings = self.settings
        if settings is None:
            return {}
        if settings.negative_sampling == "popular" and self.seen is not None:
            return {"popularity": np.bincount(self.seen.indices, minlength=len(self.item_ids))}
        return {"candidates": settings.negative_candidates}

    def _vector_of(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return the vector of somebody who liked these items; of nobody knows what when there are none or all."""
        if not 0 < len(rows) < len(self.item_ids):
            return np.zeros(self.parameters.n_factors, np.float32)
        return self._fold_in_rows(rows).vector.astype(np.float32)

    def _recommended(
        self,
        who: Any,
        N: int,
        liked: Any,
        leave_out: bool,
        filter_items: Any,
        items: Any,
        method: Method,
        candidates: int,
        progress: Callable[[int], object] | None = None,
    ) -> Recommended:
        found, scores = recommend(
            self.parameters,
            who,
            N,
            method=method,
            candidates=candidates,
            liked=liked,
            leave_out_liked=leave_out,
            allowed=None if items is None else self.item_ids.positions(items),
            blocked=None if filter_items is None else self.item_ids.positions(filter_items),
            index=self._index(),
            num_threads=self.num_threads,
            progress=progress,
        )
        ids = self.item_ids.array[found]
        ids[found < 0] = {"i": -1, "u": 0, "f": np.nan, "U": "", "M": np.datetime64("NaT")}[ids.dtype.kind]
        return ids, scores

    def _recommended_to_one(self, who: Any, N: int, *rest: Any) -> Recommended:
        """Return the answer for one user, without padding."""
        ids, scores = (answer[0] for answer in self._recommended(who, self._at_most(N), *rest))
        real = scores > -np.inf
        return ids[real], scores[real]

    def _known(self, rows: NDArray[np.int64], user_items: Any) -> Any:
        """Return what these users know, a CSR matrix with a row for each; None when nothing is known."""
        if user_items is None:
            return None if self.seen is None else self.seen[rows]
        liked = sp.csr_matrix(user_items)
        if liked.shape != (len(rows), len(self.item_ids)):
            raise ValueError(
                f"user_items must have a row for each of the {len(rows)} users asked about and a column for each "
                f"of the model's {len(self.item_ids)} items, not the shape {liked.shape}"
            )
        return liked if liked.has_sorted_indices else liked.sorted_indices()  # the caller's stays as it is


def _listed(items: Any) -> list[Any]:
    """Return liked items as a list."""
    if is_scalar_id(items):
        raise TypeError(f"liked items must be a sequence of ids, not {items!r}: put a single id into a list")
    return list(items)
