"""What can be asked about known users and items: a verb turns ids into positions, asks ``ranking``, and turns back."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._types import Doubles, Floats
from sadrec.data.ids import IdArray, Ids, is_scalar_id
from sadrec.models.base import Estimator
from sadrec.models.features import ModelFeatures, explained_by_features
from sadrec.models.fitted import Fitted, Scored, one_position
from sadrec.ranking import Parameters
from sadrec.ranking.cycles import Cycle, CyclicTriads, cycles, cyclic_triads
from sadrec.ranking.explain import Explanation, explain
from sadrec.ranking.intransitivity import intransitivity, item_counter_effects, share_of_margins
from sadrec.ranking.pairs import margins, preference, sigmoid
from sadrec.ranking.rank import LONGEST, Method, Ranking, SlateMethod, rank, rank_margins, rank_tournament
from sadrec.ranking.slates import Nemeses, Spoiler, nemeses, spoilers
from sadrec.ranking.top_n import similar_items, similar_users
from sadrec.ranking.tournament import Tournament
from sadrec.ranking.vectors import item_vectors, user_vectors
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures


class Questions(Estimator):
    """A model of fitted parameters, and what it says of users and items: preferences, rankings, cycles, reasons."""

    _learnt = ("_fitted",)
    _fitted: Fitted
    num_threads: int

    # -- what was learnt ----------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """Factors and bias, as the functions of ``sadrec.ranking`` take them."""
        return self._fitted.parameters

    @property
    def user_ids(self) -> Ids:
        """The users' ids, and the way from an id to its row."""
        return self._fitted.user_ids

    @property
    def item_ids(self) -> Ids:
        """The items' ids, and the way from an id to its row."""
        return self._fitted.item_ids

    @property
    def seen(self) -> Any:
        """What was seen in training, a scipy CSR matrix (users x items), or None; below 0 where it was disliked."""
        return self._fitted.seen

    @property
    def settings(self) -> Settings | None:
        """The settings that ``fit`` used, with everything resolved; None for given parameters."""
        return self._fitted.settings

    def _named_params(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the class and the settings, as a file keeps them."""
        seed = None if self.settings is None else self.settings.seed
        return type(self).__name__, {**self.get_params(), "random_state": seed}

    @property
    def history(self) -> list[Figures]:
        """The figures of every epoch of the last fit; how long each took is told to callbacks only."""
        return self._fitted.history

    @property
    def user_factors(self) -> Floats:
        """Xi, (users, factors)."""
        return self.parameters.user_factors

    @property
    def item_factors(self) -> Floats:
        """H, (items, factors)."""
        return self.parameters.item_factors

    @property
    def rival_factors(self) -> Floats:
        """T, (items, factors), not negative; all ones for BPR."""
        tau = self.parameters.rival_factors
        return np.broadcast_to(np.float32(1), self.item_factors.shape) if tau is None else tau

    @property
    def item_bias(self) -> Floats | None:
        """b, (items,), or None for a model without."""
        return self.parameters.item_bias

    @property
    def features(self) -> ModelFeatures | None:
        """What the features of users and items predict, and who has no history; None for a fit without features."""
        return self._fitted.features

    # -- one item against another -------------------------------------------------------------------------------------

    def preference(self, user: Any, item: Any, rival: Any) -> Any:
        """Return how strongly a user prefers an item to a rival: ``x_uij``, the log-odds.

        It is positive when the item is preferred; exchanging item and rival changes the sign and nothing else. Arrays
        of ids broadcast against each other.

        Examples
        --------
        >>> from sadrec import SAD
        >>> model = SAD.from_factors([[1.0]], [[2.0], [0.5]], users=["ann"], items=["tea", "ale"])
        >>> model.preference("ann", "tea", "ale")
        1.5
        >>> model.preference("ann", ["tea", "ale"], ["ale", "tea"])
        array([ 1.5, -1.5])
        """
        known = self._fitted
        places = known.triples(user, item, rival)
        x = preference(known.parameters, *places) + known.beside_factors(*places)
        return float(x) if x.ndim == 0 else x

    def probability(self, user: Any, item: Any, rival: Any) -> Any:
        """Return the probability that a user prefers an item to a rival: ``sigmoid(x_uij)``.

        Where the fit knows how sure it is (``solver="variational"``, the default for comparisons), it is
        ``E[sigmoid(x_uij)]``: nearer to one half the less is known. Ids, as for :meth:`preference`.
        """
        known = self._fitted
        if known.uncertainty is None:
            p = sigmoid(self.preference(user, item, rival))
        else:
            p = known.uncertainty.probability(known.parameters, *known.triples(user, item, rival))
        return float(p) if np.ndim(p) == 0 else p

    def deviation(self, user: Any, item: Any, rival: Any) -> Any:
        """Return the standard deviation of a margin: how little is known of it, with what is beside the factors.

        Only fits with ``solver="variational"`` know it; others raise a ValueError.
        """
        known = self._fitted
        if known.uncertainty is None:
            raise ValueError(
                "this fit does not know how sure it is: fit comparisons with solver='variational', or a GibbsSAD"
            )
        _, variance = known.uncertainty.distribution(known.parameters, *known.triples(user, item, rival))
        return float(np.sqrt(variance)) if variance.ndim == 0 else np.sqrt(variance)

    def margins(self, user: Any, items: Any, rivals: Any) -> NDArray[Any]:
        """Return the preferences of one user for some items (rows) over some rivals (columns).

        Items and rivals are sequences of ids; None stands for the whole catalogue.
        """
        known = self._fitted
        asked = {"items": items, "rivals": rivals}
        sides = [None if ids is None else known.items(ids, name) for name, ids in asked.items()]
        row = known.user(user)
        x = margins(known.parameters, row, *sides)
        if known.knows_pairings:
            one, other = (np.arange(len(known.item_ids)) if side is None else side for side in sides)
            x += known.beside_factors(row, one[:, None], other)
        return x

    def scores(self, users: Any) -> NDArray[Any]:
        """Return, for some users (rows), the mean margin of every item (columns) over the catalogue.

        For BPR these are the usual scores, centred.
        """
        known = self._fitted
        return np.asarray(user_vectors(known.parameters, known.users(users)) @ item_vectors(known.parameters).T)

    # -- rankings and cycles ------------------------------------------------------------------------------------------

    def rank(self, user: Any, items: Any = None, method: Method = "margin", *, reference: Any = None) -> Ranking:
        """Order items for a user; the Ranking has ``items`` (ids, best first) and ``scores``, and iterates over ids.

        Parameters
        ----------
        user, items
            An id, and ids, each once; None for the whole catalogue ("markov" and "nash" take 2000 items at most).
        method
            "margin": mean margin over the catalogue. "wins": how many of ``items`` it beats (Copeland; the paper's M1).
            "liked": the share of the items the user was seen with that it beats (M2). "markov": rank centrality.
            "nash": the maximal lottery. The last two respect cycles. For BPR all agree with the order of the scores.
            A tie counts half.
        reference
            Ids of the rivals that "margin" averages over; None for all, "liked" for what the user was seen with.

        Examples
        --------
        >>> from sadrec import SAD
        >>> game = SAD.from_factors([[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        ...                         users=["ann"], items=["rock", "paper", "scissors"])
        >>> game.rank("ann", method="wins").scores
        array([1., 1., 1.])
        """
        known = self._fitted
        row = known.user(user)
        asked = None if items is None else known.items(items)
        labels = known.item_ids.array if asked is None else known.item_ids.array[asked]
        if reference is not None and method != "margin":
            raise ValueError(f"reference is what the method 'margin' averages over; leave it out for {method!r}")
        against_liked = isinstance(reference, str) and reference == "liked"
        liked = against = None
        if method == "liked" or against_liked:
            liked = known.liked_by(row)
            if not liked.size:
                raise ValueError(f"user {user!r} was seen with nothing to compare with: use method='margin' alone")
        if reference is not None:
            against = liked if against_liked else known.items(reference, "reference")
        if known.knows_pairings and method in ("wins", "markov", "nash") and len(labels) <= LONGEST:
            return rank_tournament(self.tournament(user, labels), method)
        if known.knows_pairings and against is not None:
            x = self.preference(user, labels[:, None], known.item_ids.array[against])
            return rank_margins(x, method, labels)
        return rank(known.parameters, row, asked, method, liked=liked, reference=against, labels=labels)

    def tournament(self, user: Any, items: Any = None, N: int = 50) -> Tournament:
        """Let items play each other for a user: the given ids, or the user's best N, seen or not.

        The answer has ``items``, ``margins`` and the methods ``wins``, ``condorcet_winner``, ``smith_set``,
        ``components``.
        """
        known = self._fitted
        row = known.user(user)
        if items is None:
            places, ids = known.best(row, N, self.num_threads, new=False)
        else:
            places = known.items(items)
            ids = known.item_ids.array[places]
        return known.tournament(row, places, ids)

    def cycles(self, user: Any, N: int = 50, *, items: Any = None, minimum: float = 0.0) -> list[Cycle]:
        """Find where a user's taste runs in a cycle among their best N items (seen or not), or among the given ones.

        A win counts from a margin of ``minimum`` on. There is a Cycle for each group of items that beat each other in
        cycles: ``members`` (ids), ``path`` (the strongest cycle, in order), ``margins`` and ``probabilities`` of its
        steps (:meth:`preference` and :meth:`probability`), ``strength`` (the weakest margin) and ``probability``, that
        all steps hold at once, where the fit knows how sure it is. The largest ``probability * strength`` comes first.

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
        found = [self._judged(user, cycle) for cycle in cycles(self.tournament(user, items, N), minimum)]
        return sorted(
            found, key=lambda cycle: -cycle.strength * (1.0 if cycle.probability is None else cycle.probability)
        )

    def _judged(self, user: Any, cycle: Cycle) -> Cycle:
        """Return a cycle with the probabilities of its steps, and of all of them at once."""
        known, after = self._fitted, np.roll(cycle.path, -1)
        steps = known.triples(user, cycle.path, after)
        sure = None if known.uncertainty is None else known.uncertainty.together(known.parameters, *steps)
        return replace(cycle, probabilities=self.probability(user, cycle.path, after), probability=sure)

    def cyclic_triads(self, user: Any, N: int = 50, *, items: Any = None, strongest: int = 10) -> CyclicTriads:
        """Count the triples among a user's best N items, or the given ones, that form a cycle; list the strongest.

        The answer has ``count``, ``total``, ``share``, ``strongest`` and ``strengths``.
        """
        return cyclic_triads(self.tournament(user, items, N), strongest)

    def intransitivity(self, user: Any = None) -> Any:
        """Return the share of preferences that no scores can explain, 0 to 1, of one user, several or (None) all.

        It is the curl of a user's preferences over the whole catalogue, in squares: 0 for BPR. It can be positive
        without a single cycle in the signs: :meth:`cyclic_triads` counts those. Of several users, or of more than 2,000
        items, it is that of the factors.
        """
        known = self._fitted
        if user is None:
            return intransitivity(known.parameters)
        rows = known.user_ids.positions(user)
        if known.knows_pairings and is_scalar_id(user) and len(known.item_ids) <= LONGEST:
            game = known.tournament(int(rows), np.arange(len(known.item_ids)), known.item_ids.array)
            return share_of_margins(game.margins)
        share = intransitivity(known.parameters, rows)
        return float(share) if is_scalar_id(user) else share

    def counter_effects(self, user: Any = None, N: int = 10) -> tuple[IdArray, Doubles]:
        """Return the N items whose margins scores explain least, for one user, several or (None) all, and by how much.

        The size is the root mean square of what scores leave unexplained of the item's margins; largest first.
        """
        known = self._fitted
        effects = item_counter_effects(known.parameters, None if user is None else known.user_ids.positions(user))
        first = effects.strongest(N)
        return known.item_ids.array[first], effects.size[first]

    def spoilers(self, user: Any, items: Any, others: Any = (), method: SlateMethod = "wins") -> list[Spoiler]:
        """Find the items that dethrone the winner of a slate which they do not themselves outrank.

        With such an item on the slate a third one wins; it may be one of ``items``, which are the slate, or one of
        ``others`` that is put there. Scores allow no such thing: for BPR the list is empty.

        Parameters
        ----------
        user, items, others
            An id; the ids on the slate, two or more; ids that could be put there.
        method
            Who wins: by mean margin among the items of the slate, by wins, "markov" or "nash", see :meth:`rank`.

        Examples
        --------
        >>> from sadrec import SAD
        >>> eta, tau = [[1, 0, 0], [0, 2, 0], [0, 0, 3]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
        >>> game = SAD.from_factors([[1, 1, 1]], eta, tau, users=["ann"], items=["rock", "paper", "scissors"])
        >>> game.spoilers("ann", ["rock", "scissors"], ["paper"], method="margin")
        [paper lets scissors win instead of rock]
        """
        known = self._fitted
        slate, more = known.items(items), known.items(others, "others")
        if len(slate) < 2:
            raise ValueError(f"a slate needs two items, and {len(slate)} are given")
        row, places = known.user(user), np.concatenate([slate, more[~np.isin(more, slate)]])
        return spoilers(known.tournament(row, places, known.item_ids.array[places]), len(slate), method)

    def nemeses(self, item: Any, N: int = 10, *, items: Any = None, users: Any = None) -> Nemeses:
        """Return the N items that most users prefer to an item, head to head, with the shares of the users who do.

        ``items`` are the ids to look among and ``users`` those to ask; None for all.

        Examples
        --------
        >>> from sadrec import SAD
        >>> model = SAD.from_factors([[1.0], [2.0], [-1.0]], [[0.0], [1.0], [-1.0]], items=["tea", "ale", "gin"])
        >>> model.nemeses("tea", N=1)
        what beats tea, of 3 users
          ale  for 67 %
        """
        known = self._fitted
        among = None if items is None else known.items(items)
        asked = None if users is None else known.users(users)
        found = nemeses(known.parameters, one_position(known.item_ids, item), N, items=among, users=asked)
        ids = known.item_ids.array
        return replace(found, item=ids[found.item], items=ids[found.items])

    # -- why, who is alike, and vectors -------------------------------------------------------------------------------

    def explain(self, user: Any, item: Any, rival: Any) -> Explanation:
        """Explain why a user prefers an item to a rival, or does not.

        ``contributions`` of the answer has one number per factor, and a last one for the bias if there is one; with
        ``beside``, what the two items' own comparisons add, they sum to ``margin``, which is the preference;
        ``probability`` is :meth:`probability`. ``supporters()`` and
        ``opponents()`` are the items the user was seen with that speak most for either side. For a model fitted with
        ``item_features``, ``by_features`` is what the margin would be by these alone, and ``columns`` what each adds.

        Examples
        --------
        >>> from sadrec import SAD
        >>> model = SAD.from_factors([[1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], users=["ann"], items=["tea", "ale"])
        >>> model.explain("ann", "ale", "tea")
        ale over tea: margin 1 (73 %)
          factors  1: +2, 0: -1
        """
        known = self._fitted
        pair = [one_position(known.item_ids, asked) for asked in (item, rival)]
        row = known.user(user)
        liked = known.liked_by(row)
        explanation = explain(
            known.parameters,
            row,
            *pair,
            liked=liked if liked.size else None,
            regularization=known.regularization,
            **known.sampling,
        )
        ids = known.item_ids.array
        named: dict[str, Any] = {"item": ids[pair[0]], "rival": ids[pair[1]], "liked": ids[explanation.liked]}
        if known.features is not None and known.features.item is not None:
            total, columns = explained_by_features(known.features, known.parameters, row, *pair)
            named |= {"by_features": total, "columns": tuple(columns)}
        named["beside"] = float(known.beside_factors(row, *pair))
        margin = explanation.margin + named["beside"]
        return replace(explanation, **named, margin=margin, probability=self.probability(user, item, rival))

    def similar_items(self, item: Any, N: int = 10) -> Scored:
        """Return the N items most alike to one or several, by the cosine of their vectors; an item itself is first."""
        known = self._fitted
        asked = known.item_ids.positions(item)
        nearest, cosines = similar_items(known.parameters, asked, N, num_threads=self.num_threads)
        return known.item_ids.array[nearest], cosines

    def similar_users(self, user: Any, N: int = 10) -> Scored:
        """Return the N users most alike to one or several, by the cosine of their vectors; a user comes first."""
        known = self._fitted
        asked = known.user_ids.positions(user)
        nearest, cosines = similar_users(known.parameters, asked, N, num_threads=self.num_threads)
        return known.user_ids.array[nearest], cosines

    def item_vectors(self) -> Floats:
        """Return one vector per item whose inner product with a user's vector is the mean margin over the catalogue.

        Any index for the largest inner product serves them; see docs/serving.md.
        """
        return item_vectors(self.parameters)

    def user_vectors(self, users: Any = None) -> Floats:
        """Return the vectors that go with :meth:`item_vectors`, for some users or all."""
        known = self._fitted
        return user_vectors(known.parameters, None if users is None else known.users(users))
