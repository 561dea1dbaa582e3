"""Rankings and circles: how a user's items stand when they play each other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.data.ids import IdArray, is_scalar_id
from sadrec.models.verbs import Fitted, row_of, rows_in
from sadrec.ranking.cycles import Cycle, cycles
from sadrec.ranking.intransitivity import intransitivity, item_counter_effects
from sadrec.ranking.rank import Method, Ranking, rank
from sadrec.ranking.tournament import Tournament, tournament
from sadrec.ranking.triads import CyclicTriads, cyclic_triads


class CircleVerbs(Fitted):
    """Ranking in spite of circles, and finding them."""

    def rank(self, user: Any, items: Any = None, method: Method = "margin", *, reference: Any = None) -> Ranking:
        """Order items for a user.

        Parameters
        ----------
        user
            An id.
        items
            Ids, each once; None for the whole catalogue ("markov" and "nash" take 2000 items at most).
        method
            "margin": mean margin over the catalogue. "wins": how many of ``items`` it beats (Copeland; the paper's M1).
            "liked": the share of the items the user was seen with that it beats (M2). "markov": rank centrality.
            "nash": the maximal lottery. The last two respect circles. For BPR all agree with the order of the scores.
            A tie counts half.
        reference
            Ids of the rivals that "margin" averages over; None for the whole catalogue, "liked" for what the user was
            seen with.

        Returns
        -------
        Ranking
            With ``items`` (ids, best first) and ``scores``; iterating over it gives the ids.

        Examples
        --------
        >>> from sadrec import SAD
        >>> game = SAD.from_factors([[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        ...                         users=["ann"], items=["rock", "paper", "scissors"])
        >>> game.rank("ann", method="wins").scores
        array([1., 1., 1.])
        """
        row = row_of(self.user_ids, user)
        rows = None if items is None else rows_in(self.item_ids, items, "items")
        labels = self.item_ids.array if rows is None else self.item_ids.array[rows]
        if reference is not None and method != "margin":
            raise ValueError(f"reference is what the method 'margin' averages over; leave it out for {method!r}")
        liked = against = None
        if method == "liked" or _is(reference, "liked"):
            liked = self._liked_by(user)
            if not liked.size:
                raise ValueError(f"user {user!r} was seen with nothing to compare with: use method='margin' alone")
        if reference is not None:
            against = liked if _is(reference, "liked") else rows_in(self.item_ids, reference, "reference")
        return rank(self.parameters, row, rows, method, liked=liked, reference=against, labels=labels)

    def tournament(self, user: Any, items: Any = None, N: int = 50) -> Tournament:
        """Let items play each other for a user.

        Parameters
        ----------
        user
            An id.
        items
            Ids; None for the user's best N, seen or not.
        N
            How many.

        Returns
        -------
        Tournament
            With ``items``, ``margins``, and the methods ``wins``, ``condorcet_winner``, ``smith_set``, ``components``.
        """
        row = row_of(self.user_ids, user)
        if items is None:
            return tournament(self.parameters, row, *self._best(user, N, new=False))
        rows = rows_in(self.item_ids, items, "items")
        return tournament(self.parameters, row, rows, self.item_ids.array[rows])

    def cycles(self, user: Any, N: int = 50, *, items: Any = None, minimum: float = 0.0) -> list[Cycle]:
        """Find where a user's taste runs in a circle among their best N items.

        Parameters
        ----------
        user
            An id.
        N
            Among how many of the best items, seen or not.
        items
            Ids of the items to look at instead.
        minimum
            The margin a win needs to count.

        Returns
        -------
        list of Cycle
            One for each group of items that beat each other in circles, strongest first: ``members`` (ids), ``path``
            (the firmest circle, in order), ``margins`` and ``probabilities`` of its steps, ``strength`` (the weakest).

        Examples
        --------
        >>> from sadrec import SAD
        >>> game = SAD.from_factors([[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        ...                         users=["ann"], items=["rock", "paper", "scissors"])
        >>> game.cycles("ann")
        [Cycle of strength 1 through 3 of 3 items
          rock      beats  scissors  by 1      (73 %)
          scissors  beats  paper     by 1      (73 %)
          paper     beats  rock      by 1      (73 %)]
        """
        return cycles(self.tournament(user, items, N), minimum)

    def cyclic_triads(self, user: Any, N: int = 50, *, items: Any = None, strongest: int = 10) -> CyclicTriads:
        """Count the triples among a user's best N items that run in a circle; list the strongest.

        Parameters
        ----------
        user
            An id.
        N, items
            As for :meth:`cycles`.
        strongest
            How many to list.

        Returns
        -------
        CyclicTriads
            With ``count``, ``total``, ``share``, ``strongest`` and ``strengths``.
        """
        return cyclic_triads(self.tournament(user, items, N), strongest)

    def intransitivity(self, user: Any = None) -> Any:
        """Return the share of preferences that no scores can explain, 0 to 1; 0 for BPR.

        It is the curl of a user's preferences over the whole catalogue, in squares. It can be positive without a single
        circle in the signs: :meth:`cyclic_triads` counts those.

        Parameters
        ----------
        user
            An id, a sequence of ids, or None for all users.

        Returns
        -------
        float or ndarray
            A number for one user, else an array.
        """
        if user is None:
            return intransitivity(self.parameters)
        share = intransitivity(self.parameters, self.user_ids.positions(user))
        return float(share) if is_scalar_id(user) else share

    def counter_effects(self, user: Any = None, N: int = 10) -> tuple[IdArray, NDArray[np.float64]]:
        """Return the N items whose margins scores explain least, for a user or for all, and by how much.

        Parameters
        ----------
        user
            An id, a sequence of ids, or None for all users together.
        N
            How many.

        Returns
        -------
        ids, sizes
            Largest first; the size is the root mean square of what scores leave unexplained of the item's margins.
        """
        row = None if user is None else self.user_ids.positions(user)
        effects = item_counter_effects(self.parameters, row)
        first = effects.strongest(N)
        return self.item_ids.array[first], effects.size[first]


def _is(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word
