"""Users and items that the fit has not seen: by what they say or like, who likes them, or their features."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import polars as pl

from sadrec import _check
from sadrec.data import Comparisons
from sadrec.models.questions import Questions
from sadrec.ranking.new_items import NewItem, fold_in_item
from sadrec.ranking.questions import Contradiction, contradictions, information
from sadrec.ranking.rank import LONGEST
from sadrec.ranking.uncertainty import Distributed


class Newcomers(Questions):
    """The verbs that place a new user or a new item, and find out more about them."""

    def fold_in(self, items: Any = None, return_covariance: bool = False, *, features: Any = None) -> Any:
        """Return the vector of a new user, from what they liked or from what they said they prefer.

        With the item parameters fixed the likelihood is concave and has one optimum, which Newton's method finds.

        Parameters
        ----------
        items
            Ids of liked items, or Comparisons of one user; None where only features are known.
        return_covariance
            Also return how uncertain the vector is (Laplace's approximation), (factors, factors).
        features
            What is known of the user, as in ``{"age": 30, "country": "fr"}``, for a model fitted with
            ``user_features``: the vector is held to what they predict.
        """
        if items is None and features is None:
            raise ValueError("nothing is known of the user: give items or features")
        folded = self._fitted.fold_in(items, features)
        vector = folded.vector.astype(np.float32)
        return (vector, folded.covariance) if return_covariance else vector

    def visitor(self, said: Any = None, name: Any = "visitor", *, features: Any = None) -> Self:
        """Return a model of one new user, who goes by ``name``: every verb can then be asked about them.

        The items are those of this model and are not copied. The model knows how sure it is of the visitor's vector
        (Laplace's approximation), so that :meth:`probability`, :meth:`deviation` and :meth:`ask_next` take it into
        account.

        Parameters
        ----------
        said
            Ids of the items they liked, or Comparisons of one user: see :meth:`fold_in`. None: nothing is known, and
            the visitor is the average user.
        name
            Their id.
        features
            What is known of them beside: see :meth:`fold_in`.

        Examples
        --------
        >>> from sadrec import SAD
        >>> model = SAD.from_factors([[1.0], [-1.0]], [[2.0], [0.5], [0.0]], items=["tea", "ale", "gin"])
        >>> ann = model.visitor(["tea"], "ann")
        >>> ann.recommend("ann", N=1)[0], ann.preference("ann", "ale", "gin") > 0
        (array(['ale'], dtype='<U3'), True)
        """
        visitor = type(self)(**self.get_params())
        visitor._fitted = self._fitted.visitor(said, name, features)
        return visitor

    def ask_next(self, user: Any, items: Any = None, N: int = 1) -> pl.DataFrame:
        """Return the pairs to ask a user about next: those whose answer is expected to tell the most.

        An answer tells much when the model is unsure because it does not know, not because the user is indifferent. It
        takes a fit that knows how sure it is (``solver="variational"``), or a :meth:`visitor` of any model.

        Parameters
        ----------
        user
            An id.
        items
            Ids to choose from, 2,000 at most; None for all. Time and memory grow by the square of their number.
        N
            How many pairs.

        Returns
        -------
        polars.DataFrame
            Most informative first: ``item``, ``rival``, ``bits``, and ``probability``, the chance that the item wins.
        """
        known = self._fitted
        if known.uncertainty is None:
            raise ValueError(
                "this fit does not know how sure it is: fit comparisons with solver='variational', or ask about a "
                "model.visitor(...)"
            )
        rows = np.arange(len(known.item_ids)) if items is None else np.unique(known.items(items))
        if not 2 <= len(rows) <= LONGEST:
            raise ValueError(f"a question is chosen among 2 to {LONGEST} items, not {len(rows)}: name some")
        one, other = (rows[side] for side in np.triu_indices(len(rows), 1))
        bits, chance = information(*known.uncertainty.distribution(known.parameters, known.user(user), one, other))
        best = np.argsort(-bits, kind="stable")[: _check.whole(N, "N", least=1)]
        ids = known.item_ids.array
        named = {"item": ids[one[best]], "rival": ids[other[best]]}
        return pl.DataFrame({**named, "bits": bits[best], "probability": chance[best]})

    def contradictions(self, comparisons: Comparisons) -> list[Contradiction]:
        """Tell where a new user's answers contradict each other, and whether that is noise or a cycle in their taste.

        Each Contradiction has ``path`` (ids), ``probabilities`` of its steps given all answers, ``probability`` that
        the cycle is real, ``verdict`` ("cycle" or "noise") and ``ask_again``, the least probable step.
        """
        known = self._fitted
        visitor, ids = known.visitor(comparisons, "visitor"), comparisons.items
        sides = (known.item_ids.positions(ids[side]) for side in (comparisons.winner_index, comparisons.loser_index))
        found = contradictions(visitor.parameters, cast(Distributed, visitor.uncertainty), *sides)
        return [replace(one, path=known.item_ids.array[one.path]) for one in found]

    def fold_in_item(self, users: Sequence[Any] = (), *, features: Any = None) -> NewItem:
        """Return the parameters of a new item, from the ids of the users who liked it, from its features or from both.

        ``features`` are as in ``{"price": 3.0, "tags": ["new"]}``, for a model fitted with ``item_features``. To ask
        questions about new items, see :meth:`add_items`.
        """
        known = self._fitted
        centre = None if features is None else known.predicted_item(features)
        if centre is not None and not len(users):
            return NewItem(*centre, known.own_spread(), 0)
        if known.seen is None:
            raise ValueError(
                "a new item is placed by what its users liked besides, and the model has seen no interactions"
            )
        return fold_in_item(
            known.parameters,
            known.users(users),
            known.liked,
            regularization=known.regularization,
            rival_regularization=0.001 if known.settings is None else known.settings.rival_regularization,
            centre=centre,
        )

    def add_items(self, features: Any) -> Self:
        """Add new items that are known by their features alone, and return the model; every verb then knows them.

        ``features`` is a table as ``item_features`` of :meth:`fit` were, with the same columns and new ids. Nothing is
        learnt: their parameters are what the features predict, until ``partial_fit`` or ``fit`` sees them.

        Examples
        --------
        >>> from sadrec import SAD
        >>> import numpy as np
        >>> liked = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
        >>> kinds = {0: ["hot"], 1: ["hot"], 2: ["cold"], 3: ["cold"]}
        >>> model = SAD(factors=4, iterations=30, learning_rate=0.1).fit(liked, item_features=kinds)
        >>> model.add_items({10: ["hot"], 11: ["cold"]}).preference([0, 3], 10, 11) > 0
        array([ True, False])
        """
        self._fitted = self._fitted.added("item", features)
        return self

    def add_users(self, features: Any) -> Self:
        """Add new users who are known by their features alone, and return the model: see :meth:`add_items`."""
        self._fitted = self._fitted.added("user", features)
        return self
