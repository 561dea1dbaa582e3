"""SAD and BPR: fitting, and every question that a fitted model answers.

A verb turns ids into rows, asks a function of ``sadrec.ranking`` about ``state.belief``, and turns rows back to ids.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sadrec._core import check
from sadrec._core.settings import checked
from sadrec._core.sparse import checked_seen, enlarged
from sadrec._core.types import Floats, Method, Positions
from sadrec.data import Comparisons, as_feedback
from sadrec.data.ids import IdArray, Ids, as_id_array, is_scalar_id
from sadrec.features.predictor import explained_by_features
from sadrec.models import fitting, newcomers
from sadrec.models.base import Estimator, ModelFileError, documented
from sadrec.models.export import ListRequest, PartEngine, recommend_everybody
from sadrec.models.files import load_model, model_checksum, save_model
from sadrec.models.fitting import Callback, Options
from sadrec.models.state import NOTHING, State
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Belief, Point
from sadrec.ranking.cycles import Cycle, probable_cycles
from sadrec.ranking.explain import Explanation, explain
from sadrec.ranking.intransitivity import intransitivity, share_of_margins
from sadrec.ranking.leaderboard import leaderboard
from sadrec.ranking.next_games import best_judges, next_games
from sadrec.ranking.parameters import user_vectors
from sadrec.ranking.questions import ask_next
from sadrec.ranking.rank import LONGEST, Ranking, rank
from sadrec.ranking.ties import Outcome
from sadrec.ranking.top_n import recommend, similar_items, similar_users
from sadrec.ranking.tournament import Tournament
from sadrec.training.dataset import training_data
from sadrec.training.engine import Engine
from sadrec.training.settings import Settings, TrainingSettings

Scored = tuple[IdArray, Floats]


@documented
class SAD(TrainingSettings, Estimator):
    """Sliced Anti-symmetric Decomposition: who prefers what to what, even in cycles.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) [+ b_i - b_j]`` and ``P(i over j) = sigmoid(x_uij)``. With
    tau = 1 it is BPR.

    Settings left at None follow the data in ``fit``; :attr:`settings` has the values that were used. A user is
    an id. ``user=None`` is the only user of the model, or the average of all.

    {settings}

    Examples
    --------
    >>> from sadrec import Comparisons
    >>> import polars as pl
    >>> frame = pl.DataFrame({
    ...     "judge": ["ann"] * 3, "winner": ["rock", "scissors", "paper"], "loser": ["scissors", "paper", "rock"]
    ... })
    >>> game = Comparisons.from_frame(frame, user="judge", winner="winner", loser="loser")
    >>> model = SAD(4, solver="sgd", iterations=1000, learning_rate=0.3, rival_regularization=0.0).fit(game)
    >>> model.preference("ann", ["rock", "scissors", "paper"], ["scissors", "paper", "rock"]) > 0
    array([ True,  True,  True])
    """

    _fitted_attributes = ("state",)
    _learn_rivals: ClassVar[bool] = True
    state: State
    """The result of the last fit: belief, ids, seen items, settings, history, features."""

    # -- learning -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        data: Any,
        show_progress: bool = True,
        *,
        comparisons: Comparisons | None = None,
        weights: Any = None,
        dislikes: Any = None,
        item_features: Any = None,
        user_features: Any = None,
        warm_start: "SAD | None" = None,
        validation: Any = None,
        patience: int | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 0.0,
        engine: Engine | None = None,
    ) -> Self:
        """Fit the model to interactions or comparisons, and return it.

        Parameters
        ----------
        data
            Interactions (or a frame, a sparse or dense matrix, a path: see :meth:`sadrec.Interactions.read`), or
            Comparisons.
        show_progress
            Whether to show a progress bar on a terminal.
        comparisons
            Comparisons to learn from together with interactions.
        weights
            The weight of each interaction, in the order of ``data.matrix``; 0: not a negative, and not trained on.
            Or, where ``data`` is a table or its path, the name of a column; repeated rows are merged as ratings are.
        dislikes
            Dislikes: a number (ratings below it), or interactions of their own (skips, thumbs down). A
            disliked item loses to what the user likes and to what they do not know, and is never recommended to them.
        item_features, user_features
            Features of items and of users: a data frame with a column of ids, a mapping, a matrix,
            or :class:`sadrec.features.Features` (docs/features.md). Their factors then shrink to what the features
            predict in place of 0. Ids that only these tables have are known items and users without history.
        warm_start
            A fitted model to start from; users and items it does not know are appended to its own. Its loss and length
            stay, unless settings or data ask for another loss.
        validation
            Held-out data of the same kind, whose figures are shown; "sgd" keeps the best epoch, "variational" the last.
        patience
            After how many epochs without a rise of the held-out log likelihood to stop.
        callbacks
            Called as ``f(epoch, figures, model)`` after each epoch; True stops the fit. ``model`` is a temporary one
            that holds what is learnt so far and can be asked during the call; ``copy.deepcopy`` keeps it for longer.
            Until the fit is over, the model itself answers from the old fit.
        checkpoint, checkpoint_seconds
            A folder, and how often to write to it (0: after every epoch). Killed and run again with the same arguments,
            the fit continues from there and ends with the same bits as an undisturbed one.
        engine
            Where to train: :class:`sadrec.cluster.Ray` trains on a cluster, with the same bits (docs/cluster.md).
            ``data`` is then a path of Parquet with interactions (file, folder, pattern), which the workers read. It
            takes neither ``validation`` nor features; callbacks cannot ask the model meanwhile.

        Raises
        ------
        DivergedError
            When training diverges; the model is that of the last good epoch.
        """
        options = Options(show_progress, validation, patience, tuple(callbacks), checkpoint, checkpoint_seconds, engine)
        if engine is not None:
            here = {"dislikes": dislikes, "warm_start": warm_start}
            files = fitting.files_for(data, weights, here, (item_features, user_features))
            fitting.train_on_files(self, engine, files, comparisons, options)
            return self
        start = None if warm_start is None else warm_start.state
        new = fitting.gathered(data, comparisons, weights, dislikes, start)
        fitting.train(self, new, start, options, (item_features, user_features))
        return self

    def partial_fit(
        self,
        data: Any = None,
        show_progress: bool = True,
        *,
        item_features: Any = None,
        user_features: Any = None,
        **options: Any,
    ) -> Self:
        """Continue the fit with new interactions or comparisons, by stochastic gradient ascent.

        A fit of comparisons by ``solver="variational"`` loses its uncertainty, and few new answers
        weigh much: fit all comparisons again if possible.

        Users and items the model does not know are appended. Only the new data is trained on, but what was seen before
        is not sampled as a negative and stays out of recommendations. On a model that was never fitted this is ``fit``,
        whose options from ``validation`` on it takes.

        Parameters
        ----------
        data
            Interactions or comparisons, as for :meth:`fit`; None with features alone.
        item_features, user_features
            Tables of new items and users, with the columns that :meth:`fit` had. They are appended with the parameters
            that their features predict; with ``data=None`` nothing else changes.

        Examples
        --------
        >>> from sadrec import SAD
        >>> import numpy as np
        >>> liked = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
        >>> kinds = {0: ["hot"], 1: ["hot"], 2: ["cold"], 3: ["cold"]}
        >>> model = SAD(factors=4, iterations=30, learning_rate=0.1).fit(liked, item_features=kinds)
        >>> model.partial_fit(item_features={10: ["hot"], 11: ["cold"]}).preference([0, 3], 10, 11) > 0
        array([ True, False])
        """
        if not self.is_fitted:
            return self.fit(data, show_progress, item_features=item_features, user_features=user_features, **options)
        accepted = [entry.name for entry in fields(Options)]
        if unknown := sorted(set(options) - set(accepted)):
            raise TypeError(
                f"partial_fit does not take {unknown[0]!r} (it takes {', '.join(accepted)}): give it to "
                "fit(..., warm_start=model)"
            )
        tables = {"item": item_features, "user": user_features}
        if data is None and all(table is None for table in tables.values()):
            raise ValueError("there is nothing to learn from: give data, item_features or user_features")
        start = self.state
        for what, table in tables.items():
            if table is not None:
                start = newcomers.added(start, what, table)
        if data is None:
            self.state = start
            return self
        new = training_data(as_feedback(data), users=start.users.array, items=start.items.array)
        seen = None
        if start.seen is not None:
            seen = enlarged(start.seen, len(new.users), len(new.items))
            new = new.with_ignored(seen)
        before = {"settings_before": start.settings, "seen_before": seen}
        fitting.train(self, new, start, Options(show_progress, **options), **before)
        return self

    # -- what was learnt ----------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings | None:
        """The settings that ``fit`` used, with everything resolved; None for given parameters."""
        used: Settings | None = self.state.settings
        return used

    @property
    def users(self) -> IdArray:
        """The users' ids, in row order."""
        return self.state.users.array

    @property
    def items(self) -> IdArray:
        """The items' ids, in row order."""
        return self.state.items.array

    @property
    def user_factors(self) -> Floats:
        """Xi, (users, factors)."""
        return self.state.parameters.user_factors

    @property
    def item_factors(self) -> Floats:
        """H, (items, factors)."""
        return self.state.parameters.item_factors

    @property
    def rival_factors(self) -> Floats:
        """T, (items, factors), not negative; all ones for BPR."""
        tau = self.state.parameters.rival_factors
        return np.broadcast_to(np.float32(1), self.item_factors.shape) if tau is None else tau

    @property
    def item_bias(self) -> Floats | None:
        """b, (items,), or None for a model without."""
        return self.state.parameters.item_bias

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
        belief, *triple = self.state.triple(user, item, rival)
        return _plain(belief.mean(*triple))

    def probability(self, user: Any, item: Any, rival: Any, outcome: Outcome | None = None) -> Any:
        """Return the probability that a user prefers an item to a rival: ``sigmoid(x_uij)``.

        With ``solver="variational"``, the default for comparisons, it is averaged over the uncertainty,
        ``E[sigmoid(x_uij)]``: the larger that is, the nearer to one half. Ids, as for :meth:`preference`.

        ``outcome`` is "win", "loss" or "tie" of the item, which add up to 1, for a fit of comparisons with ties; None
        is a win, given that it is no tie.
        """
        if outcome is not None:
            check.one_of(outcome, "outcome", get_args(Outcome))
        belief, *triple = self.state.triple(user, item, rival)
        return _plain(belief.outcome(*triple, outcome=outcome))

    def deviation(self, user: Any, item: Any, rival: Any) -> Any:
        """Return the standard deviation of a margin.

        Fits with ``solver="variational"``, visitors and the sampler have it; others raise a ValueError.
        """
        belief, *triple = self.state.triple(user, item, rival)
        return _plain(np.sqrt(belief.distribution(*triple)[1]))

    def margins(self, user: Any, items: Any, rivals: Any) -> NDArray[Any]:
        """Return the preferences of one user for some items (rows) over some rivals (columns).

        Items and rivals are sequences of ids; None stands for the whole catalogue.
        """
        state, given = self.state, {"items": items, "rivals": rivals}
        (belief, row), ids = state.one(user), state.items
        return belief.margins(row, *(None if side is None else ids.several(side, name) for name, side in given.items()))

    def scores(self, users: Any) -> NDArray[Any]:
        """Return, for some users (rows), the mean margin of every item (columns) over the catalogue.

        For BPR these are the usual scores, centred.
        """
        state = self.state
        return state.belief.scores(np.atleast_1d(state.users.positions(users)))

    # -- rankings and cycles ------------------------------------------------------------------------------------------

    def leaderboard(
        self, judges: Any = None, items: Any = None, level: float = 0.9, *, reference: Any = None
    ) -> pl.DataFrame:
        """Return a table of the items by strength, with intervals, for the average judge, for one, or for several.

        Intervals come from joint draws of all strengths from the posterior. Without uncertainty
        (``solver="sgd"``), they are null.

        Parameters
        ----------
        judges
            None for the average of all, an id, or ids of several, whose margins are averaged.
        items
            Ids of the items to compare with each other; None for all.
        level
            The probability content of the intervals.
        reference
            Ids of the rivals that strengths are measured against; None for the items themselves.

        Returns
        -------
        polars.DataFrame
            Best first: ``rank``; ``item``; ``strength``, the mean margin in log-odds, with ``lower`` and ``upper``;
            ``rank_lower`` and ``rank_upper``, between which the rank is; ``best``, the probability of being first;
            ``wins``, ``ties`` and ``losses`` by these judges among the items, null for a model that learnt from no
            comparisons; ``unexplained``, the share of the item's squared margins over the others that no scores
            explain.

        Examples
        --------
        >>> from sadrec import SAD, Comparisons
        >>> import polars as pl
        >>> games = pl.DataFrame({"winner": ["a", "a", "b", "a", "b"], "loser": ["b", "b", "a", "c", "c"]})
        >>> model = SAD().fit(Comparisons.from_frame(games, user=None))
        >>> model.leaderboard().select("rank", "item", "rank_lower", "rank_upper", "wins", "losses").rows()
        [(1, 'a', 1, 2, 3.0, 1.0), (2, 'b', 1, 3, 2.0, 2.0), (3, 'c', 2, 3, 0.0, 2.0)]
        """
        state = self.state
        rows = np.arange(len(state.items)) if items is None else state.items.distinct(items)
        return leaderboard(
            state.belief,
            state.judges(judges),
            rows,
            state.items.array[rows],
            check.share(level, "level", inside=True),
            field=None if reference is None else state.items.distinct(reference, "reference"),
            results=state.results,
        )

    def win_matrix(self, items: Any = None, user: Any = None) -> pl.DataFrame:
        """Return the probabilities that items (rows) win against each other (columns), as :meth:`probability` has them.

        The first column, ``item``, has the ids; the others are named by them. Of one user, or with None of the only or
        the average one; 2,000 items at most.

        Examples
        --------
        >>> from sadrec import SAD
        >>> SAD.from_factors([[1.0]], [[2.0], [0.5]], items=["tea", "ale"]).win_matrix().rows()
        [('tea', 0.5, 0.81...), ('ale', 0.18..., 0.5)]
        """
        state = self.state
        rows = np.arange(len(state.items)) if items is None else state.items.distinct(items)
        if len(rows) > LONGEST:
            raise ValueError(f"a win matrix of {len(rows):,} items is too large to read: name {LONGEST:,} at most")
        belief, row = state.one(user)
        ids = state.items.array[rows]
        names = ids.astype(str).tolist()
        first = "item"
        while first in names:  # an item has this id
            first += "_"
        columns = belief.probability(row, rows[:, None], rows).T
        return pl.DataFrame({first: ids, **dict(zip(names, columns, strict=True))})

    def rank(self, user: Any = None, items: Any = None, method: Method = "margin", *, reference: Any = None) -> Ranking:
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
        state = self.state
        (belief, row), ids = state.one(user), state.items
        rows = None if items is None else ids.several(items)
        if reference is not None and method != "margin":
            raise ValueError(f"reference is what the method 'margin' averages over; leave it out for {method!r}")
        against_liked = isinstance(reference, str) and reference == "liked"
        liked = against = None
        if method == "liked" or against_liked:
            liked = state.liked_by(row if belief is state.belief else None)
            if not liked.size:
                raise ValueError(f"user {user!r} has no liked items to compare with: use method='margin'")
        if reference is not None:
            against = liked if against_liked else ids.several(reference, "reference")
        labels = ids.array if rows is None else ids.array[rows]
        return rank(belief, row, rows, method, liked=liked, reference=against, labels=labels)

    def tournament(self, user: Any = None, items: Any = None, N: int = 50) -> Tournament:
        """Return the tournament of items for a user: the given ids, or the user's best N, seen or not.

        The answer has ``items``, ``margins`` and the methods ``wins``, ``condorcet_winner``, ``smith_set``,
        ``components``.
        """
        state = self.state
        belief, row = state.one(user)
        rows = _players(state, belief, row, items, N, self.num_threads)
        return belief.tournament(row, rows, state.items.array[rows])

    def cycles(self, user: Any = None, N: int = 50, *, items: Any = None, minimum: float = 0.0) -> list[Cycle]:
        """Return the cycles in a user's taste among their best N items (seen or not), or among the given ones.

        A win counts from a margin of ``minimum`` on. There is a Cycle for each group of items that beat each other in
        cycles: ``members`` (ids), ``path`` (the strongest cycle, in order), ``margins`` and ``probabilities`` of its
        steps (:meth:`preference` and :meth:`probability`), ``strength`` (the weakest margin) and ``probability``, that
        all steps hold at once, if the fit has uncertainty. The largest ``probability * strength`` comes first.

        Examples
        --------
        >>> from sadrec import SAD
        >>> game = SAD.from_factors([[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        ...                         users=["ann"], items=["rock", "paper", "scissors"])
        >>> game.cycles("ann")
        [Cycle of strength 1 through 3 of 3 items
          rock      beats  scissors  by 1      (wins 73 %)
          scissors  beats  paper     by 1      (wins 73 %)
          paper     beats  rock      by 1      (wins 73 %)]
        """
        state = self.state
        (belief, row), ids = state.one(user), state.items.array
        cycles = probable_cycles(belief, row, _players(state, belief, row, items, N, self.num_threads), minimum)
        return [replace(cycle, members=ids[cycle.members], path=ids[cycle.path]) for cycle in cycles]

    def intransitivity(self, user: Any = None) -> Any:
        """Return the share of preferences that no scores can explain, 0 to 1, of one user or of several.

        It is the squared curl of a user's preferences over the whole catalogue: 0 for BPR. It can be positive
        without a single cycle in the signs: :func:`sadrec.ranking.cycles.cyclic_triads` counts those. Of several users,
        or of more than 2,000 items, it is that of the factors.
        """
        state = self.state
        if user is not None and not is_scalar_id(user):
            return intransitivity(state.parameters, state.users.positions(user))
        belief, row = state.one(user)
        if belief.has_pairs and len(state.items) <= LONGEST:
            every = np.arange(len(state.items))
            return share_of_margins(belief.tournament(row, every, every).margins)
        return float(intransitivity(belief.parameters, row))

    def explain(self, user: Any, item: Any, rival: Any) -> Explanation:
        """Explain the preference of a user for an item over a rival: contributions that sum to it.

        ``contributions`` of the answer has one number per factor, and a last one for the bias if there is one; with
        ``pair_part``, what the two items' own comparisons add, they sum to ``margin``, which is the preference;
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
        state = self.state
        (belief, row), ids = state.one(user), state.items.array
        pair = [state.items.one(one) for one in (item, rival)]
        liked = state.liked_by(row if belief is state.belief else None)
        penalty = state.visitors.regularization
        explanation = explain(
            belief.parameters, row, *pair, liked=liked if liked.size else None, regularization=penalty
        )
        named: dict[str, Any] = {"item": ids[pair[0]], "rival": ids[pair[1]], "liked": ids[explanation.liked]}
        if state.features is not None and state.features.item is not None:
            p = belief.parameters
            learns = p.rival_factors is not None, p.item_bias is not None
            total, columns = explained_by_features(state.features.item, p.user_factors[row], pair[0], pair[1], *learns)
            named |= {"by_features": total, "columns": tuple(columns)}
        pair_part, chance = float(belief.pair_part(row, *pair)[0]), float(belief.probability(row, *pair))
        return replace(
            explanation, **named, pair_part=pair_part, margin=explanation.margin + pair_part, probability=chance
        )

    def ask_next(
        self, user: Any = None, items: Any = None, N: int = 1, *, about: Literal["margins", "ranking"] | int = "margins"
    ) -> pl.DataFrame:
        """Return the next pairs to ask a user, or the judges of an arena, about: those whose answers tell most.

        An answer tells much when the model is uncertain, not when the user is indifferent. It
        takes a fit with uncertainty (``solver="variational"``), or a :meth:`visitor` of any model.

        Parameters
        ----------
        user
            An id; None for the only user, or the average of all.
        items
            Ids to choose from, 2,000 at most; None for all. Time and memory grow by the square of their number.
        N
            How many pairs.
        about
            "margins": each answer by itself tells most about the margin of its pair. "ranking": the N different pairs
            together tell most about the ranking. A whole number n: about which items are the n best, and their order.

        Returns
        -------
        polars.DataFrame
            Best first: ``item``, ``rival``, ``bits`` that the answer tells about the margin, and ``probability``, the
            chance that the item wins. For the ranking of the average of several users also ``judge``, whom to ask.
        """
        state, N = self.state, check.whole(N, "N", least=1)
        (belief, row), ids = state.one(user), state.items
        rows = np.arange(len(ids)) if items is None else np.unique(ids.several(items))
        if about == "margins":
            one, other, bits, chance = ask_next(belief, row, rows, N)
            return pl.DataFrame(
                {"item": ids.array[one], "rival": ids.array[other], "bits": bits, "probability": chance}
            )
        if isinstance(about, str) and about != "ranking":
            raise ValueError(f"about must be 'margins', 'ranking' or the number of best items, not {about!r}")
        top = None if isinstance(about, str) else check.whole(about, "about", least=1)
        one, other = (rows[side] for side in next_games(state.belief, state.judges(user), rows, N, top, state.results))
        bits, chance = belief.information(row, one, other)
        answer = {"item": ids.array[one], "rival": ids.array[other], "bits": bits, "probability": chance}
        if user is None and len(state.users) > 1:
            answer["judge"] = state.users.array[best_judges(state.belief, one, other)]
        return pl.DataFrame(answer)

    # -- lists --------------------------------------------------------------------------------------------------------

    def recommend(
        self,
        user: Any = None,
        user_items: Any = None,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
        *,
        on_unknown: Literal["raise", "popular", "skip"] = "raise",
        method: Method = "margin",
        candidates: int = 200,
        progress: Callable[[int], object] | None = None,
    ) -> Scored:
        """Return the best N items for a user, or for many users at once.

        Parameters
        ----------
        user
            An id, a sequence of ids, or None for the average user: what is popular.
        user_items, filter_already_liked_items
            What these users have liked, a sparse matrix with one row per user asked about and one column per item of
            the model (None: what was seen in training), and whether to leave it out.
        N
            How many items.
        filter_items, items
            Ids of items to leave out for all users, or of the only ones to consider.
        recalculate_user
            Compute the users' vectors from ``user_items``.
        on_unknown
            The treatment of unknown ids: "raise" an UnknownIdError, give them "popular" items, or
            "skip" them, which leaves out their rows. ``numpy.isin(ids, model.users)`` says which ids are known.
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
        state, one = self.state, user is None or is_scalar_id(user)
        options: Any = {"N": N, "filter_items": filter_items, "items": items}
        options |= {"method": method, "candidates": candidates, "progress": progress}
        if check.one_of(on_unknown, "on_unknown", ("raise", "popular", "skip")) != "raise" and user is not None:
            given = as_id_array(np.atleast_1d(user) if one else user)
            if not state.users.known(given).all():
                own = {"filter_already_liked_items": filter_already_liked_items, "recalculate_user": recalculate_user}
                answers = newcomers.recommend_known(self, given, user_items, on_unknown, own, options)
                there = np.isfinite(answers[1])
                return (answers[0][there], answers[1][there]) if one else answers
        plain = method == "margin" and not recalculate_user and user_items is items is filter_items is progress is None
        if one and plain:
            belief, row = state.one(user)
            leave_out = filter_already_liked_items and belief is state.belief
            return _best(state, belief, row, N, state.seen_by(row) if leave_out else NOTHING)
        if user is None:
            return self.visitor().recommend("visitor", **options)
        users = np.atleast_1d(state.users.positions([user] if one else user))
        met = newcomers.known_to(state.seen, users, user_items, len(state.items))
        if recalculate_user and met is None:
            raise ValueError("recalculate_user needs user_items: the model has seen no interactions")
        if items is not None and filter_items is not None:
            raise ValueError("give items (the only ones to consider) or filter_items (to leave out), not both")
        best, scores = recommend(
            state.belief,
            newcomers.vectors_from(state, met) if recalculate_user else users,
            min(check.whole(N, "N"), len(state.items)) if one else N,
            method=method,
            candidates=candidates,
            liked=met,
            leave_out_liked=filter_already_liked_items,
            allowed=None if items is None else state.items.positions(items),
            blocked=None if filter_items is None else state.items.positions(filter_items),
            index=state.index if state.belief.by_product or recalculate_user else None,
            num_threads=self.num_threads,
            progress=progress,
        )
        ids = state.items.named(best)
        return (ids[0][best[0] >= 0], scores[0][best[0] >= 0]) if one else (ids, scores)

    def recommend_for(
        self,
        liked: Any = None,
        N: int = 10,
        filter_items: Any = None,
        items: Any = None,
        *,
        comparisons: Comparisons | None = None,
        features: Any = None,
        method: Method = "margin",
        candidates: int = 200,
    ) -> Scored:
        """Return the best N items for a visitor, by their likes, comparisons or features: see :meth:`visitor`.

        Parameters
        ----------
        liked
            Ids of the items they liked. These are left out.
        comparisons
            What they said they prefer, in place of likes: Comparisons of one user.
        features
            Their features, as in ``{"age": 30, "country": "fr"}``, for a model fitted with ``user_features``.
        N, filter_items, items, method, candidates
            As for :meth:`recommend`.
        """
        state = self.state
        if method != "margin" or items is not None or filter_items is not None or not state.belief.by_product:
            return self.visitor(liked, comparisons, features=features).recommend(
                "visitor", None, N, True, filter_items, False, items, method=method, candidates=candidates
            )
        folded, columns = newcomers.place(state, liked, comparisons, features)
        return _best(state, state.belief, folded.vector.astype(np.float32), N, columns.astype(np.int32))

    def recommend_all(
        self,
        users: Any = None,
        N: int = 10,
        user_items: Any = None,
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
        user_items
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
        question = ListRequest(N, method, candidates, filter_already_liked_items)
        state = self.state
        return recommend_everybody(
            state,
            model_checksum(state, *self._named_params()),
            self.save,
            users=users,
            user_items=user_items,
            question=question,
            engine=engine,
            output=output,
            part_users=part_users,
            num_threads=self.num_threads,
            show_progress=show_progress,
        )

    # -- visitors, who is alike, and vectors --------------------------------------------------------------------------

    def visitor(
        self, liked: Any = None, comparisons: Comparisons | None = None, *, features: Any = None, name: Any = "visitor"
    ) -> "SAD":
        """Return a model of one new user, who goes by ``name``: every verb answers for them.

        With the item parameters fixed the likelihood is concave and has one optimum, which Newton's method finds;
        ``visitor.user_factors`` is that vector. The items are those of this model and are not copied. The model knows
        how sure it is of the visitor's vector (Laplace's approximation), so that :meth:`probability`,
        :meth:`deviation` and :meth:`ask_next` take it into account. Without any argument the visitor is the average
        user.

        Parameters
        ----------
        liked
            Ids of the items they liked.
        comparisons
            What they said they prefer, in place of likes: Comparisons of one user.
        features
            Their features, as in ``{"age": 30, "country": "fr"}``, for a model fitted with ``user_features``:
            the vector is held to what they predict.
        name
            Their id.

        Examples
        --------
        >>> from sadrec import SAD
        >>> model = SAD.from_factors([[1.0], [-1.0]], [[2.0], [0.5], [0.0]], items=["tea", "ale", "gin"])
        >>> ann = model.visitor(["tea"], name="ann")
        >>> ann.recommend("ann", N=1)[0], ann.preference("ann", "ale", "gin") > 0
        (array(['ale'], dtype='<U3'), True)
        """
        return self._of(newcomers.visitor_state(self.state, name, liked, comparisons, features))

    def _of(self, state: State) -> "SAD":
        """Return a model with the settings of this one and another state."""
        model = type(self)(**self.get_params())
        model.state = state
        return model

    def similar_items(self, item: Any, N: int = 10, filter_items: Any = None) -> Scored:
        """Return the N items most alike to one or several, by the cosine of their vectors; an item itself is first.

        ``filter_items`` are ids of items to leave out.
        """
        state, N = self.state, check.whole(N, "N")
        blocked = np.unique([] if filter_items is None else state.items.several(filter_items, "filter_items"))
        nearest, cosines = similar_items(
            state.parameters, state.items.positions(item), N + len(blocked), num_threads=self.num_threads
        )
        left = min(N, len(state.items) - len(blocked))
        order = np.argsort(np.isin(nearest, blocked), axis=-1, kind="stable")[..., :left]
        return state.items.array[np.take_along_axis(nearest, order, -1)], np.take_along_axis(cosines, order, -1)

    def similar_users(self, user: Any, N: int = 10) -> Scored:
        """Return the N users most alike to one or several, by the cosine of their vectors; a user comes first."""
        state = self.state
        rows, profiles = state.users.positions(user), state.belief.user_profiles
        nearest, cosines = similar_users(state.parameters, rows, N, num_threads=self.num_threads, profiles=profiles)
        return state.users.array[nearest], cosines

    def item_vectors(self) -> Floats:
        """Return one vector per item whose inner product with a user's vector is the mean margin over the catalogue.

        Any index for the largest inner product serves them; see docs/serving.md.
        """
        return self.state.belief.item_vectors

    def user_vectors(self, users: Any = None) -> Floats:
        """Return the vectors that go with :meth:`item_vectors`, for some users or all."""
        state = self.state
        return user_vectors(state.parameters, None if users is None else np.atleast_1d(state.users.positions(users)))

    # -- given parameters, and files ----------------------------------------------------------------------------------

    @classmethod
    def from_factors(
        cls,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        rival_factors: ArrayLike | None = None,
        item_bias: ArrayLike | None = None,
        users: Any = None,
        items: Any = None,
        seen: Any = None,
    ) -> Self:
        """Make a model of given parameters; every verb works on it.

        Rival factors left out are all ones; ids (``users``, ``items``) left out are 0, 1, 2, ... ``seen`` is a sparse
        matrix (users x items) of what to leave out of recommendations.
        """
        given = {"rival_factors": rival_factors, "item_bias": item_bias}
        optional = (None if value is None else _finite(name, value) for name, value in given.items())
        parameters = Parameters(_finite("user_factors", user_factors), _finite("item_factors", item_factors), *optional)
        tau, shape = parameters.rival_factors, (parameters.n_users, parameters.n_items)
        if tau is not None and not cls._learn_rivals:
            raise ValueError("BPR has no rival factors: use SAD.from_factors")
        user_ids = Ids(np.arange(shape[0]) if users is None else as_id_array(users), what="user")
        item_ids = Ids(np.arange(shape[1]) if items is None else as_id_array(items), what="item")
        for ids, count in zip((user_ids, item_ids), shape, strict=True):
            if len(ids) != count:
                raise ValueError(
                    f"{len(ids)} {ids.what}s are named, but the factors have {count} rows: a row is a user or an item, "
                    "so transpose matrices that have factors in their rows"
                )
        model = cls(factors=parameters.n_factors)
        model.state = State(Point(parameters), user_ids, item_ids, checked_seen(seen, shape))
        return model

    @classmethod
    def from_bpr(
        cls,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        users: Any = None,
        items: Any = None,
        seen: Any = None,
    ) -> Self:
        """Make a model of the factors of an existing BPR model, such as implicit's.

        A last column of ones among the user factors means that the last column of the item factors is a bias, which is
        how implicit keeps it.
        """
        xi, eta = _finite("user_factors", user_factors), _finite("item_factors", item_factors)
        bias = None
        if xi.ndim == 2 and xi.shape[1] > 1 and len(xi) and (xi[:, -1] == 1).all():
            bias = eta[:, -1]
            xi, eta = xi[:, :-1], eta[:, :-1]
        return cls.from_factors(xi, eta, None, bias, users, items, seen)

    def save(self, path: str | Path) -> None:
        """Write parameters, settings, ids and what was seen to a file; an old file stays until all is written."""
        save_model(path, self.state, *self._named_params())

    @classmethod
    def load(cls, path: str | Path, mmap: bool = False, *, verify: bool | None = None) -> Self:
        """Read a model from a file; nothing in the file is ever executed.

        Parameters
        ----------
        path
            Of a file that :meth:`save` wrote. ``SAD.load`` reads a BPR model too, and returns one. What is
            damaged, cut short, of another kind or of a newer version raises a ModelFileError.
        mmap
            Leave the arrays in the file; the operating system reads a page when it is used.
        verify
            Whether to compare the content with its checksum and to check that every number is finite, which reads all
            of it; None: unless ``mmap`` is given.
        """
        state, name, params = load_model(path, mmap, not mmap if verify is None else verify)
        kinds: list[type[SAD]] = [SAD, *SAD.__subclasses__(), cls]
        try:
            kind = {kind.__name__: kind for kind in kinds}[name]
            if not kind._learn_rivals and state.parameters.rival_factors is not None:
                raise ValueError("BPR has no rival factors")
            model = kind()
            settings = model.get_params()
            model.set_params(**{name: value for name, value in params.items() if name in settings})
            checked(model)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelFileError(f"{str(path)!r} cannot be read as a sadrec model: {error}") from error
        if not isinstance(model, cls):
            raise ModelFileError(f"{str(path)!r} holds a {name} model, not a {cls.__name__} model")
        model.state = state
        return model

    def _named_params(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the class and the settings, as a file keeps them."""
        seed = None if self.settings is None else self.settings.seed
        return type(self).__name__, {**self.get_params(), "random_state": seed}


@documented
@dataclass(eq=False, repr=False)
class BPR(SAD):
    """Bayesian Personalised Ranking: SAD with all rival factors at 1, ``x_uij = <xi_u, eta_i - eta_j> [+ b_i - b_j]``.

    Rendle, Freudenthaler, Gantner and Schmidt-Thieme, UAI 2009. The same training, verbs and files as :class:`SAD`,
    whose settings it shares but for those of the rivals.

    {settings}

    Examples
    --------
    >>> import numpy as np
    >>> liked = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    >>> model = BPR(factors=4, iterations=10).fit(liked)
    >>> model.user_factors.shape, float(model.rival_factors.min())
    ((3, 4), 1.0)
    """

    _learn_rivals: ClassVar[bool] = False
    rival_regularization: None = field(default=None, init=False)


def _finite(name: str, value: ArrayLike) -> Floats:
    """Return the array as float32, refusing what is not a finite number, and rival factors below 0."""
    array = check.numbers(value, name, 0.0 if name == "rival_factors" else -np.inf).view()
    array.flags.writeable = False  # verbs may keep what they derive from it
    return array


def _plain(values: NDArray[Any]) -> Any:
    """Return a single number as a Python float, an array as it is."""
    return float(values) if values.ndim == 0 else values


# -- ids --------------------------------------------------------------------------------------------------------------
# A verb reads ``self.state`` once: another thread may fit the model meanwhile, and no answer mixes two fits.


def _players(state: State, belief: Belief, row: int, items: Any, N: int, num_threads: int) -> Positions:
    """Return the rows of given items, or of a user's best N, seen or not."""
    if items is not None:
        return state.items.several(items)
    index = state.index if belief.by_product else None
    best, _ = recommend(belief, [row], min(check.whole(N, "N"), len(state.items)), index=index, num_threads=num_threads)
    return np.asarray(best[0][best[0] >= 0])


def _best(state: State, belief: Belief, user: Any, N: int, seen: Any) -> Scored:
    """Return the best N items of one user, a row or a vector, by mean margin, but for those seen."""
    if belief.by_product or not isinstance(user, int):
        factors = belief.parameters.user_factors[user] if isinstance(user, int) else user
        query = np.ones(state.index.factors, np.float32)  # the last entry stands for the bias, if there is one
        query[: factors.size] = factors
        best, scores = state.index.search_one(query, check.whole(N, "N"), seen)
    else:
        count, shape = min(check.whole(N, "N"), len(state.items)), (1, len(state.items))
        seen_row = sp.csr_matrix((np.ones(len(seen), np.float32), seen, [0, len(seen)]), shape=shape)
        (best,), (scores,) = recommend(belief, [user], count, liked=seen_row)
        best, scores = best[best >= 0], scores[best >= 0]
    return state.items.array[best], scores
