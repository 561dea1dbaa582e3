"""What to show: lists for users, for visitors, for groups of items, and for everybody."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from sadrec import _check
from sadrec.data import Comparisons
from sadrec.data.ids import is_scalar_id
from sadrec.models.everybody import PartEngine, Question, recommend_everybody
from sadrec.models.files import model_checksum
from sadrec.models.fitted import Scored, one_position
from sadrec.models.questions import Questions
from sadrec.ranking.cycles import Group, recommend_groups
from sadrec.ranking.fold_in import average_user
from sadrec.ranking.rank import Method


class Lists(Questions):
    """The verbs that recommend."""

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
    ) -> Scored:
        """Return the best N items for a user, or for many users at once.

        Parameters
        ----------
        user
            An id, or a sequence of ids.
        user_items, filter_already_liked_items
            What these users have liked, a sparse matrix with one row per user asked about and one column per item of
            the model (None: what was seen in training), and whether to leave it out.
        N
            How many items.
        filter_items, items
            Ids of items to leave out for everybody, or of the only ones to consider.
        recalculate_user
            Compute the users' vectors anew from ``user_items``.
        method, candidates
            "margin" orders by the mean margin over the catalogue. The others take the best ``candidates`` by margin and
            let them play each other: see :meth:`rank`.
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
        fitted = self._fitted
        one = is_scalar_id(user)
        plain = method == "margin" and not recalculate_user and user_items is items is filter_items is progress is None
        if one and plain:
            positions, scores = fitted.best_for_one(
                one_position(fitted.user_ids, user), _check.whole(N, "N"), bool(filter_already_liked_items)
            )
            return fitted.item_ids.array[positions], scores
        users = fitted.users([user] if one else user)
        known = fitted.known_to(users, user_items)
        if recalculate_user and known is None:
            raise ValueError("recalculate_user needs user_items: the model has seen no interactions")
        answer = fitted.recommend_to_one if one else fitted.recommend
        return answer(
            fitted.vectors_from(known) if recalculate_user else users,
            N,
            known,
            leave_out_liked=filter_already_liked_items,
            filter_items=filter_items,
            items=items,
            method=method,
            candidates=candidates,
            num_threads=self.num_threads,
            progress=progress,
        )

    def recommend_for(
        self,
        liked: Any = None,
        N: int = 10,
        filter_items: Any = None,
        items: Any = None,
        *,
        method: Method = "margin",
        candidates: int = 200,
        features: Any = None,
    ) -> Scored:
        """Return the best N items for a new user, from what they liked or said, or by their features (:meth:`fold_in`).

        Parameters
        ----------
        liked
            Ids of the items they liked, or Comparisons of one user; None where only features are known.
        features
            What is known of them, as in ``{"age": 30, "country": "fr"}``, for a model fitted with ``user_features``.
        N, filter_items, items, method, candidates
            As for :meth:`recommend`. What they liked is left out.
        """
        fitted = self._fitted
        if isinstance(liked, Comparisons) or (liked is None and features is not None):
            known, folded = None, fitted.fold_in(liked, features)
        elif liked is None:
            raise ValueError("nothing is known of the user: give liked or features, or use recommend_popular")
        else:
            columns, shape = np.unique(fitted.items(liked, "liked items")), (1, len(fitted.item_ids))
            if features is None:
                folded = fitted.fold_in_positions(columns)
            else:
                folded = fitted.fold_in(fitted.item_ids.array[columns], features)  # liked may be read only once
            if method == "margin" and items is filter_items is None:
                vector, seen = folded.vector.astype(np.float32), columns.astype(np.int32)
                best, scores = fitted.best_by_vector(vector, _check.whole(N, "N"), seen)
                return fitted.item_ids.array[best], scores
            known = sp.csr_matrix((np.ones(len(columns), np.float32), columns, [0, len(columns)]), shape=shape)
        return fitted.recommend_to_one(
            folded.vector.astype(np.float32)[None],
            N,
            known,
            filter_items=filter_items,
            items=items,
            method=method,
            candidates=candidates,
            num_threads=self.num_threads,
        )

    def recommend_all(
        self,
        users: Any = None,
        N: int = 10,
        exclude: Any = None,
        engine: PartEngine | None = None,
        output: str | Path = "recommendations",
        *,
        filter_already_liked_items: bool = True,
        method: Method = "margin",
        candidates: int = 200,
        part_users: int | None = None,
        show_progress: bool = True,
    ) -> pl.LazyFrame:
        """Write the best N items for everybody to a folder of Parquet, and return its rows.

        The rows (user, rank, item, score) are those of :meth:`recommend`. No more than a part of them is in memory.
        After Ctrl-C, a kill or a lost machine the same call goes on with the parts that are missing; the folder is
        finished when it has a ``_manifest.json``. A call with other arguments is refused.

        Parameters
        ----------
        users
            Ids, or the path of a Parquet file or folder with a column of users; None: all. Each is answered once, in
            the order of :attr:`users`.
        N
            How many items. A user for whom fewer are left gets these.
        exclude
            What to leave out for each user: Interactions, or the path of a Parquet file or folder with columns of users
            and items, in place of what was seen in training (None). Users and items that the model does not know do not
            matter.
        engine
            None: threads of this process. ``sadrec.cluster.Ray(...)``: workers of a cluster, who read the model from
            its file (or from a copy in the folder) and write the parts, so that both must be where all nodes reach
            them.
        output
            The folder.
        filter_already_liked_items, method, candidates
            As for :meth:`recommend`.
        part_users
            How many users a part has; None: chosen by the number of users and N.
        show_progress
            Whether to show how far it is.

        Examples
        --------
        >>> from sadrec import SAD
        >>> import tempfile
        >>> tastes, dishes = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]
        >>> model = SAD.from_factors(tastes, dishes, items=["a", "b", "c"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.recommend_all(N=2, output=folder, show_progress=False).collect().rows()
        [(0, 1, 'c', 1.0), (0, 2, 'a', 0.0), (1, 1, 'b', ...), (1, 2, 'c', ...)]
        """
        question = Question(N, method, candidates, filter_already_liked_items)
        return recommend_everybody(
            self._fitted,
            model_checksum(self._fitted, *self._named_params()),
            self.save,
            users=users,
            exclude=exclude,
            question=question,
            engine=engine,
            output=output,
            part_users=part_users,
            num_threads=self.num_threads,
            show_progress=show_progress,
        )

    def recommend_popular(self, N: int = 10, filter_items: Any = None, items: Any = None) -> Scored:
        """Return the best N items for a user of whom nothing is known: popular by margin, over all users."""
        fitted = self._fitted
        vector = average_user(fitted.parameters)[None]
        options = {"filter_items": filter_items, "items": items, "num_threads": self.num_threads}
        return fitted.recommend_to_one(vector, N, None, **options)

    def recommend_groups(
        self, user: Any, N: int = 10, *, candidates: int = 50, largest: int | None = 5, minimum: float = 0.0
    ) -> list[Group]:
        """Return slates: items that form a cycle are shown together, in the place their group earned.

        At least N items are shown. Cycles are looked for among the best ``candidates`` new items, counting wins by a
        margin of ``minimum``; a slate holds at most ``largest`` items (None for no limit).
        """
        known = self._fitted
        among = max(_check.whole(N, "N"), _check.whole(candidates, "candidates", least=1))
        row = known.user(user)
        game = known.tournament(row, *known.best(row, among, self.num_threads))
        return recommend_groups(game, N, largest=largest, minimum=minimum)
