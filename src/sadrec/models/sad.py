"""SAD and BPR: fitting, and the verbs. A verb turns ids into positions, asks ``ranking``, and turns back."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sadrec import _check
from sadrec._files import fingerprint
from sadrec._memory import give_back
from sadrec._settings import checked
from sadrec._types import Doubles, Floats, Positions
from sadrec.data import Comparisons, DataWarning, as_feedback, as_interactions
from sadrec.data._matrix import checked_seen, enlarged
from sadrec.data.ids import IdArray, Ids, as_id_array, is_scalar_id
from sadrec.data.interactions import warn_of_repeated
from sadrec.data.parquet import ParquetFiles, is_parquet
from sadrec.models.base import Estimator, ModelFileError, documented
from sadrec.models.everybody import PartEngine, Question, recommend_everybody
from sadrec.models.features import ModelFeatures, Prepared, explained_by_features, prepare
from sadrec.models.files import model_checksum, save_model
from sadrec.models.fitted import Fitted, Scored, one_position
from sadrec.models.shards import fitted_away, read_model, save_shards
from sadrec.models.variational import fit_comparisons
from sadrec.ranking import Parameters
from sadrec.ranking.cycles import Cycle, CyclicTriads, Group, cycles, cyclic_triads, recommend_groups
from sadrec.ranking.explain import Explanation, explain
from sadrec.ranking.fold_in import average_user
from sadrec.ranking.intransitivity import intransitivity, item_counter_effects
from sadrec.ranking.new_items import NewItem, fold_in_item
from sadrec.ranking.pairs import margins, preference, sigmoid
from sadrec.ranking.questions import Contradiction, contradictions, information
from sadrec.ranking.rank import LONGEST, Method, Ranking, SlateMethod, rank
from sadrec.ranking.slates import Nemeses, Spoiler, nemeses, spoilers
from sadrec.ranking.top_n import similar_items, similar_users
from sadrec.ranking.tournament import Tournament, tournament
from sadrec.ranking.vectors import item_vectors, user_vectors
from sadrec.training.checkpoint import Checkpoints
from sadrec.training.dataset import TrainingData, training_data
from sadrec.training.defaults import Described, as_before, resolve
from sadrec.training.engine import Course, Engine, refuse_elsewhere
from sadrec.training.factors import Factors, initial_factors
from sadrec.training.run import DivergedError, run
from sadrec.training.settings import Settings, TrainingSettings
from sadrec.training.size import check_size
from sadrec.training.trainer import Figures, Trainer

Callback = Callable[[int, Figures, Any], bool | None]


@dataclass(frozen=True)
class _Options:
    """What ``fit`` and ``partial_fit`` take besides data."""

    show_progress: bool = True
    validation: Any = None
    patience: int | None = None
    monitor: str = "validation_log_likelihood"
    callbacks: Iterable[Callback] = ()
    checkpoint: str | Path | None = None
    checkpoint_seconds: float = 0.0
    engine: Engine | None = None


@documented
class SAD(TrainingSettings, Estimator):
    """Sliced Anti-symmetric Decomposition: who prefers what to what, even in cycles.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) [+ b_i - b_j]`` and ``P(i over j) = sigmoid(x_uij)``. With
    tau = 1 it is BPR.

    Settings left at None are resolved by the kind of data in ``fit``; :attr:`settings` holds what was used.

    {settings}

    Examples
    --------
    >>> from sadrec import Comparisons
    >>> import polars as pl
    >>> frame = pl.DataFrame({
    ...     "judge": ["ann"] * 3, "winner": ["rock", "scissors", "paper"], "loser": ["scissors", "paper", "rock"]
    ... })
    >>> game = Comparisons.from_frame(frame, user="judge", winner="winner", loser="loser")
    >>> model = SAD(factors=4, iterations=1000, learning_rate=0.3, rival_regularization=0.0).fit(game)
    >>> model.preference("ann", ["rock", "scissors", "paper"], ["scissors", "paper", "rock"]) > 0
    array([ True,  True,  True])
    """

    _learnt = ("_fitted",)
    _learn_rivals: ClassVar[bool] = True
    _fitted: Fitted

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
        monitor: str = "validation_log_likelihood",
        callbacks: Iterable[Callback] = (),
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 0.0,
        engine: Engine | None = None,
    ) -> Self:
        """Learn from what people did or said, and return the model.

        Parameters
        ----------
        data
            Interactions (or a frame, a sparse or dense matrix, a path: see :meth:`sadrec.Interactions.read`), or
            Comparisons.
        show_progress
            Whether to show a progress bar on a terminal.
        comparisons
            Comparisons to learn from beside interactions.
        weights
            How much each interaction counts, in the order of ``data.matrix``; 0: known, so no negative, but not learnt.
        dislikes
            What people disliked: a number (ratings below it), or interactions of their own (skips, thumbs down). A
            disliked item loses to what the user likes and to what they do not know, and is never recommended to them.
        item_features, user_features
            What is known of items and of users beside the data: a data frame with a column of ids, a mapping, a matrix,
            or :class:`sadrec.features.Features` (docs/features.md). Their factors are then held to what the features
            predict in place of 0. Ids that only these tables have are known items and users without history.
        warm_start
            A fitted model to start from; users and items it does not know are appended to its own. Its loss and length
            stay, unless settings or data ask for another loss.
        validation
            Held-out data of the same kind, whose figures are shown; "sgd" keeps the best epoch, "variational" the last.
        patience, monitor
            After how many epochs without a rise of "validation_log_likelihood" or "validation_accuracy" to stop.
        callbacks
            Called as ``f(epoch, figures, model)`` after each epoch, the model being usable meanwhile; True stops the
            fit. Other threads that ask a model while it is fitted are answered as before the fit until it is over.
        checkpoint, checkpoint_seconds
            A folder, and how often to write to it (0: after every epoch). Killed and run again with the same arguments,
            the fit continues from there and ends with the same bits as an undisturbed one.
        engine
            Where to train: :class:`sadrec.cluster.Ray` trains on a cluster, with the same bits (docs/cluster.md). It
            takes neither ``validation`` nor ``solver="variational"``; callbacks cannot ask the model meanwhile. A path
            of Parquet (file, folder, pattern) is then read by the workers, and the users stay with them: see
            :meth:`collect`.

        Raises
        ------
        DivergedError
            When the parameters leave the finite numbers; the model is left at the last good epoch.
        """
        if engine is not None and (isinstance(data, ParquetFiles) or is_parquet(data)):
            files = data if isinstance(data, ParquetFiles) else ParquetFiles([data])
            more = {"comparisons": comparisons, "weights": weights, "dislikes": dislikes, "warm_start": warm_start}
            more |= {"item_features": item_features, "user_features": user_features}
            if odd := [name for name, value in more.items() if value is not None]:
                raise ValueError(
                    f"{odd[0]} needs the data in this process: read the files first (Interactions.read), or leave "
                    f"{odd[0]} out"
                )
            calls = tuple(callbacks)
            options = _Options(show_progress, validation, patience, monitor, calls, checkpoint, checkpoint_seconds)
            return self._train_on_files(engine, files, options)
        start = None if warm_start is None else warm_start._fitted
        ids = () if start is None else (start.user_ids.array, start.item_ids.array)
        if dislikes is not None and not isinstance(dislikes, int | float):
            dislikes = as_interactions(dislikes)
        calls = tuple(callbacks)
        options = _Options(show_progress, validation, patience, monitor, calls, checkpoint, checkpoint_seconds, engine)
        new = training_data(as_feedback(data), comparisons, weights, dislikes, *ids)
        before = None if start is None else start.features
        return self._train(new, start, options, features=prepare(new, item_features, user_features, before))

    def partial_fit(self, data: Any, show_progress: bool = True, **options: Any) -> Self:
        """Continue from what the model has learnt, with new interactions or comparisons, by stochastic gradient ascent.

        A fit of comparisons by ``solver="variational"`` no longer knows afterwards how sure it is, and few new answers
        weigh much: fit all comparisons anew where that is possible.

        Users and items the model does not know are appended. Only the new data is trained on, but what was seen before
        is not sampled as a negative and stays out of recommendations. On a model that was never fitted this is ``fit``,
        whose options from ``validation`` on it takes.
        """
        if not self.is_fitted:
            return self.fit(data, show_progress, **options)
        taken = [entry.name for entry in fields(_Options)]
        if odd := sorted(set(options) - set(taken)):
            raise TypeError(
                f"partial_fit does not take {odd[0]!r} (it takes {', '.join(taken)}): give it to "
                "fit(..., warm_start=model)"
            )
        start = self._fitted
        new = training_data(as_feedback(data), users=start.user_ids.array, items=start.item_ids.array)
        seen = None
        if start.seen is not None:
            seen = enlarged(start.seen, len(new.users), len(new.items))
            new = new.with_known(seen)
        features = prepare(new, None, None, start.features)
        return self._train(new, start, _Options(show_progress, **options), start.settings, seen, features)

    def settings_for(self, data: Any) -> Settings:
        """Return the settings that ``fit`` would use for this data, with everything resolved."""
        return self._resolved(training_data(as_feedback(data)), self.get_params())

    def _resolved(self, data: Described, given: dict[str, Any], start: Fitted | None = None) -> Settings:
        before = None if start is None else start.settings
        return resolve(given, data, self._learn_rivals, _check.seed(self.random_state), start is not None, before)

    def _train(
        self,
        data: TrainingData,
        start: Fitted | None,
        options: _Options,
        settings_before: Settings | None = None,
        seen_before: Any = None,
        features: Prepared | None = None,
    ) -> Self:
        given = self.get_params()
        whole = data
        if features is not None:
            data, whole = features.data, features.whole
        if start is not None:
            continued = start.parameters
            variational = start.settings is not None and start.settings.solver == "variational"
            has_bias = continued.item_bias is not None
            given = as_before(given, settings_before, continued.n_factors, has_bias, variational)
        settings = self._resolved(data, given, start)
        threads, held_out = _check.threads(self.num_threads), None
        if options.validation is not None:
            validation = as_feedback(options.validation)
            validation = validation if features is None else features.of_trained(validation)
            held_out = data.validation_pairs(validation, settings.seed)
        if options.engine is not None:
            refuse_elsewhere(settings, options.validation, options.patience, features is not None)
        check_size(data, settings, threads)
        kept = None if features is None else features.kept
        factors = None if settings.solver == "variational" else _first_factors(data, settings, start, kept)
        if options.engine is not None and factors is not None:
            return self._train_elsewhere(options.engine, data, settings, factors, options, seen_before)
        run_options: dict[str, Any] = {
            **{name: getattr(options, name) for name in ("patience", "monitor", "show_progress")},
            "validation": held_out,
            "checkpoints": self._checkpoints(data, settings, factors, held_out, options, features),
            "title": type(self).__name__,
        }

        call_back = partial(self._call_back, options.callbacks)
        if factors is None:

            def keep(fitted: Fitted) -> None:
                self._fitted = fitted

            watching = call_back if options.callbacks else None
            fit_comparisons(data, settings, threads, keep, watching, features=features, **run_options)
            return self
        centres = None if features is None else features.centres()
        trainer = Trainer(factors, settings, data.positives(settings), data.pair_sources(settings), threads, centres)
        seen = seen_before if data.matrix is None else whole.seen  # a function: it may take a copy, at the end
        fitted = Fitted(_parameters(factors), whole.users, whole.items, seen, settings)

        def take_over(finished: bool = False) -> None:
            for array in factors.arrays:
                array.flags.writeable = not finished
            # A new object for every epoch: what was derived from the factors of the last one is not kept.
            seen = fitted.seen if finished else fitted.stored_seen
            parameters, predicted = _parameters(factors), None
            if features is not None and centres is not None:
                parameters, predicted = features.complete(factors, centres)
            self._fitted = replace(fitted, parameters=parameters, stored_seen=seen, features=predicted)

        def after_epoch(epoch: int, figures: Figures) -> bool:
            if not options.callbacks:
                return False
            # Between callbacks training changes the factors: whoever asks then is answered as before the fit.
            before = self.__dict__.get("_fitted")
            take_over()
            try:
                return call_back(epoch, figures)
            finally:
                if before is None:
                    self.__dict__.pop("_fitted", None)
                else:
                    self._fitted = before

        give_back()  # what preparing took: some numbers for every user
        try:
            run(trainer, after_epoch=after_epoch, history=fitted.history, **run_options)
        except BaseException:
            if trainer.epoch and trainer.idle:  # else nothing was learnt, and the model is what it was before
                trainer.free()
                take_over(finished=True)
            raise
        trainer.free()
        take_over(finished=True)
        self._warn_of_nothing()
        return self

    def _train_elsewhere(
        self,
        engine: Engine,
        data: TrainingData,
        settings: Settings,
        factors: Factors,
        options: _Options,
        seen_before: Any,
    ) -> Self:
        """Have an engine train, and take over what it brings back."""
        seen = seen_before if data.matrix is None else data.seen
        fitted = Fitted(_parameters(factors), data.users, data.items, seen, settings)

        def take_over() -> None:
            for array in factors.arrays:
                array.flags.writeable = False
            self._fitted = replace(fitted, parameters=_parameters(factors), stored_seen=fitted.seen)

        try:
            identity = self._identity(data, settings, factors, None, options)
            engine.run(data, settings, factors, self._course(identity, options, fitted.history))
        except DivergedError:
            if fitted.history:
                take_over()
            raise
        take_over()
        self._warn_of_nothing()
        return self

    def _train_on_files(self, engine: Engine, files: ParquetFiles, options: _Options) -> Self:
        """Have an engine read files and train; take over the items, and the users where the engine collects."""
        shared = engine.read(files)
        try:
            if shared.shape[1] < 2:
                raise ValueError("a preference needs two items, and there is only 1: give data on more items")
            settings = self._resolved(shared, self.get_params())
            refuse_elsewhere(settings, options.validation, options.patience)
            history: list[Figures] = []
            try:
                known = {"class": type(self).__name__, "files": shared.fingerprint(), "settings": settings.identity()}
                shared.train(settings, self._course(known, options, history))
            except DivergedError:
                if history:
                    self._fitted = fitted_away(shared, settings, history)
                raise
            self._fitted = fitted_away(shared, settings, history)
            if engine.collect:
                self.collect()
        except BaseException:
            if not self.is_fitted or self._fitted.away is not shared:
                shared.end()
            raise
        rows, timed = shared.repeated
        if rows:
            warn_of_repeated(rows, timed=timed)
        self._warn_of_nothing()
        return self

    def _course(self, identity: Mapping[str, Any], options: _Options, history: list[Figures]) -> Course:
        """Return how a fit elsewhere goes."""
        return Course(
            identity,
            options.checkpoint,
            options.checkpoint_seconds,
            partial(self._call_back, options.callbacks),
            options.show_progress,
            type(self).__name__,
            history,
        )

    def _call_back(self, callbacks: Iterable[Callback], epoch: int, figures: Figures) -> bool:
        """Tell all of them, and return whether one stops the fit."""
        answers = [callback(epoch, figures, self) for callback in callbacks]
        return any(answers)

    def collect(self) -> Self:
        """Bring the users to this process, where they are with the workers of a cluster that learnt them.

        After a fit on files with an engine (docs/cluster.md), the model knows the items and can be saved to a folder;
        questions about users need this, or the saved folder. For any other model nothing is done.
        """
        away = self._fitted.away
        if away is not None:
            vectors, ids, seen = away.users()
            vectors.flags.writeable = False
            parameters = replace(self.parameters, user_factors=vectors)
            self._fitted = replace(
                self._fitted, parameters=parameters, user_ids=Ids(ids, "user"), stored_seen=seen, away=None
            )
            away.end()
        return self

    def _warn_of_nothing(self) -> None:
        if self.history and not any(figures["updates"] for figures in self.history):
            warnings.warn(
                "nothing was learnt: no user has both an item (of a weight above 0) and one that they did not touch",
                DataWarning,
                stacklevel=4,
            )

    def _checkpoints(
        self,
        data: TrainingData,
        settings: Settings,
        factors: Factors | None,
        held_out: Any,
        options: _Options,
        features: Prepared | None,
    ) -> Checkpoints | None:
        """Return where checkpoints are kept, with all that the result depends on."""
        if options.checkpoint is None:
            return None
        identity = self._identity(data, settings, factors, held_out, options)
        if features is not None:
            identity["features"] = fingerprint(*features.arrays())
        return Checkpoints(options.checkpoint, identity, options.checkpoint_seconds)

    def _identity(
        self, data: TrainingData, settings: Settings, factors: Factors | None, held_out: Any, options: _Options
    ) -> dict[str, Any]:
        """Return all that the result depends on."""
        return {
            "class": type(self).__name__,
            "data": data.fingerprint(),
            "settings": settings.identity(),
            "start": None if factors is None else fingerprint(*factors),
            "validation": None if held_out is None else fingerprint(*held_out.arrays),
            "stopping": [options.patience, options.monitor],
        }

    # -- one item against another -------------------------------------------------------------------------------------

    def preference(self, user: Any, item: Any, rival: Any) -> Any:
        """Return how strongly a user prefers an item to a rival: ``x_uij``, the log-odds.

        It is positive when the item is preferred; exchanging item and rival changes the sign and nothing else. Arrays
        of ids broadcast against each other.

        Examples
        --------
        >>> model = SAD.from_factors([[1.0]], [[2.0], [0.5]], users=["ann"], items=["tea", "ale"])
        >>> model.preference("ann", "tea", "ale")
        1.5
        >>> model.preference("ann", ["tea", "ale"], ["ale", "tea"])
        array([ 1.5, -1.5])
        """
        known = self._fitted
        x = preference(known.parameters, *known.triples(user, item, rival))
        return float(x) if x.ndim == 0 else x

    def probability(self, user: Any, item: Any, rival: Any, *, pairings: bool = True) -> Any:
        """Return the probability that a user prefers an item to a rival: ``sigmoid(x_uij)``.

        Where the fit knows how sure it is (``solver="variational"``, the default for comparisons), it is
        ``E[sigmoid(x_uij)]``: nearer to one half the less is known, and with what the two items' own comparisons, and
        those of the user, say beside the factors, unless ``pairings=False``. Ids, as for :meth:`preference`.
        """
        known = self._fitted
        if known.uncertainty is None:
            p = sigmoid(self.preference(user, item, rival))
        else:
            p = known.uncertainty.probability(known.parameters, *known.triples(user, item, rival), pairings)
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
        return margins(known.parameters, known.user(user), *sides)

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
        return rank(known.parameters, row, asked, method, liked=liked, reference=against, labels=labels)

    def tournament(self, user: Any, items: Any = None, N: int = 50) -> Tournament:
        """Let items play each other for a user: the given ids, or the user's best N, seen or not.

        The answer has ``items``, ``margins`` and the methods ``wins``, ``condorcet_winner``, ``smith_set``,
        ``components``.
        """
        known = self._fitted
        row = known.user(user)
        if items is None:
            return tournament(known.parameters, row, *known.best(row, N, self.num_threads, new=False))
        asked = known.items(items)
        return tournament(known.parameters, row, asked, known.item_ids.array[asked])

    def cycles(self, user: Any, N: int = 50, *, items: Any = None, minimum: float = 0.0) -> list[Cycle]:
        """Find where a user's taste runs in a cycle among their best N items (seen or not), or among the given ones.

        A win counts from a margin of ``minimum`` on. There is a Cycle for each group of items that beat each other in
        cycles, strongest first: ``members`` (ids), ``path`` (the strongest cycle, in order), ``margins`` and
        ``probabilities`` of its steps (:meth:`preference` and :meth:`probability`), ``strength`` (the weakest margin).

        Examples
        --------
        >>> game = SAD.from_factors([[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        ...                         users=["ann"], items=["rock", "paper", "scissors"])
        >>> game.cycles("ann")
        [Cycle of strength 1 through 3 of 3 items
          rock      beats  scissors  by 1      (73 %)
          scissors  beats  paper     by 1      (73 %)
          paper     beats  rock      by 1      (73 %)]
        """
        return [
            replace(cycle, probabilities=self.probability(user, cycle.path, np.roll(cycle.path, -1)))
            for cycle in cycles(self.tournament(user, items, N), minimum)
        ]

    def cyclic_triads(self, user: Any, N: int = 50, *, items: Any = None, strongest: int = 10) -> CyclicTriads:
        """Count the triples among a user's best N items, or the given ones, that form a cycle; list the strongest.

        The answer has ``count``, ``total``, ``share``, ``strongest`` and ``strengths``.
        """
        return cyclic_triads(self.tournament(user, items, N), strongest)

    def intransitivity(self, user: Any = None) -> Any:
        """Return the share of preferences that no scores can explain, 0 to 1, of one user, several or (None) all.

        It is the curl of a user's preferences over the whole catalogue, in squares: 0 for BPR. It can be positive
        without a single cycle in the signs: :meth:`cyclic_triads` counts those.
        """
        known = self._fitted
        if user is None:
            return intransitivity(known.parameters)
        share = intransitivity(known.parameters, known.user_ids.positions(user))
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
        return spoilers(tournament(known.parameters, row, places, known.item_ids.array[places]), len(slate), method)

    def nemeses(self, item: Any, N: int = 10, *, items: Any = None, users: Any = None) -> Nemeses:
        """Return the N items that most users prefer to an item, head to head, with the shares of the users who do.

        ``items`` are the ids to look among and ``users`` those to ask; None for all.

        Examples
        --------
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

    # -- what to show -------------------------------------------------------------------------------------------------

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
            known = sp.csr_matrix((np.ones(len(columns), np.float32), columns, [0, len(columns)]), shape=shape)
            folded = fitted.fold_in(fitted.item_ids.array[columns], features)  # liked may be read only once
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
        game = tournament(known.parameters, row, *known.best(row, among, self.num_threads))
        return recommend_groups(game, N, largest=largest, minimum=minimum)

    # -- a new user or a new item --------------------------------------------------------------------------------------

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

    def visitor(self, said: Any = None, name: Any = "visitor", *, features: Any = None) -> "SAD":
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
        folded, ids = known.fold_in(comparisons), comparisons.items
        sides = (known.item_ids.positions(ids[side]) for side in (comparisons.winner_index, comparisons.loser_index))
        found = contradictions(known.parameters, folded.vector, folded.covariance, *sides)
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

    # -- why, who is alike, and vectors -------------------------------------------------------------------------------

    def explain(self, user: Any, item: Any, rival: Any) -> Explanation:
        """Explain why a user prefers an item to a rival, or does not.

        ``contributions`` of the answer has one number per factor, and a last one for the bias if there is one; they sum
        to ``margin``, which is the preference, exactly; ``probability`` is :meth:`probability`. ``supporters()`` and
        ``opponents()`` are the items the user was seen with that speak most for either side. For a model fitted with
        ``item_features``, ``by_features`` is what the margin would be by these alone, and ``columns`` what each adds.

        Examples
        --------
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
        return replace(explanation, **named, probability=self.probability(user, item, rival))

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

    def nearest_bpr(self) -> "BPR":
        """Return the BPR model (T = 1) whose margins are nearest to this one's: the part that scores explain.

        Of each user's margins it keeps what mean margins account for; :meth:`intransitivity` is the share of the rest.
        It is not what fitting a BPR model to the same data gives: see :func:`sadrec.evaluation.compare_with_bpr`.
        """
        users = self.user_vectors()
        if self.item_bias is not None:
            return BPR.from_bpr(users, self.item_vectors(), self.users, self.items, self.seen)
        return BPR.from_factors(users, self.item_vectors(), None, None, self.users, self.items, self.seen)

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
        if tau is not None and tau.min(initial=0) < 0:
            raise ValueError(f"rival_factors must not be negative, and one is {tau.min()}")
        if tau is not None and not cls._learn_rivals:
            raise ValueError("BPR has no rival factors: use SAD.from_factors")
        user_ids = Ids(np.arange(shape[0]) if users is None else as_id_array(users), what="user")
        item_ids = Ids(np.arange(shape[1]) if items is None else as_id_array(items), what="item")
        for ids, count in zip((user_ids, item_ids), shape, strict=True):
            if len(ids) != count:
                raise ValueError(f"{len(ids)} {ids.what}s are named, but the factors have {count} rows")
        model = cls(factors=parameters.n_factors)
        model._fitted = Fitted(parameters, user_ids, item_ids, checked_seen(seen, shape))
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
        """Write parameters, settings, ids and what was seen to a file; an old file stays until all is written.

        Where the users are with the workers of a cluster (see :meth:`collect`), ``path`` is a folder that all nodes
        share: each worker writes its users, and from then on the model is the one in the folder.
        """
        if self._fitted.away is None:
            save_model(path, self._fitted, *self._named_params())
            return
        away = self._fitted.away
        save_shards(path, self._fitted, *self._named_params())
        self._fitted = read_model(path, mmap=True, verify=False)[0]
        away.end()

    def _named_params(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the class and the settings, as a file keeps them."""
        seed = None if self.settings is None else self.settings.seed
        return type(self).__name__, {**self.get_params(), "random_state": seed}

    @classmethod
    def load(cls, path: str | Path, mmap: bool = False, *, verify: bool | None = None) -> Self:
        """Read a model from a file; nothing in the file is ever executed.

        Parameters
        ----------
        path
            Of a file or folder that :meth:`save` wrote. ``SAD.load`` reads a BPR model too, and returns one. What is
            damaged, cut short, of another kind or of a newer version raises a ModelFileError.
        mmap
            Leave the arrays in the file; the operating system reads a page when it is asked for.
        verify
            Whether to compare the content with its checksum and to check that every number is finite, which reads all
            of it; None: unless ``mmap`` is given.
        """
        fitted, name, params = read_model(path, mmap, not mmap if verify is None else verify)
        kinds: list[type[SAD]] = [SAD, *SAD.__subclasses__(), cls]
        try:
            kind = {kind.__name__: kind for kind in kinds}[name]
            if not kind._learn_rivals and fitted.parameters.rival_factors is not None:
                raise ValueError("BPR has no rival factors")
            model = kind()
            known = model.get_params()
            model.set_params(**{name: value for name, value in params.items() if name in known})
            model.factors = fitted.parameters.n_factors
            checked(model)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelFileError(f"{str(path)!r} cannot be read as a sadrec model: {error}") from error
        if not isinstance(model, cls):
            raise ModelFileError(f"{str(path)!r} holds a {name} model, not a {cls.__name__} model")
        model._fitted = fitted
        return model


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
    adaptive: Literal[False] = field(default=False, init=False)


def _parameters(factors: Factors) -> Parameters:
    """Return the factors of training as parameters, as views."""
    return Parameters(factors.users, factors.eta, factors.tau, factors.bias)


def _first_factors(
    data: TrainingData, settings: Settings, start: Fitted | None, kept: Positions | None = None
) -> Factors:
    """Return the factors to start from: small random ones, behind those of the model to start from.

    ``kept`` are the items of the data among those of the model, in order, where some are left out.
    """
    factors = initial_factors(
        len(data.users),
        len(data.items),
        settings.factors,
        settings.init_scale,
        settings.learn_rivals,
        settings.bias,
        settings.seed,
    )
    if start is None:
        factors.users[~data.users_with_data()] = 0  # nothing is known of them
        return factors
    given = start.parameters
    if given.n_factors != settings.factors:
        raise ValueError(
            f"a model with {given.n_factors} factors cannot start one with {settings.factors}: set factors to "
            f"{given.n_factors}"
        )
    rows: Any = slice(None) if kept is None else kept[kept < given.n_items]
    count = given.n_items if kept is None else len(rows)
    if given.rival_factors is not None:
        if factors.tau is None:
            raise ValueError("a SAD model cannot start a BPR model: its rival factors would be lost")
        factors.tau[:count] = given.rival_factors[rows]
    if given.item_bias is not None:
        if factors.bias is None:
            raise ValueError("the model to start from has a bias: set bias=True")
        factors.bias[:count] = given.item_bias[rows]
    factors.users[: given.n_users] = given.user_factors
    factors.eta[:count] = given.item_factors[rows]
    return factors


def _finite(name: str, value: ArrayLike) -> Floats:
    """Return the array as float32, refusing what is not a finite number."""
    array = np.asarray(value, np.float32).view()
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    array.flags.writeable = False  # verbs may keep what they derive from it
    return array
