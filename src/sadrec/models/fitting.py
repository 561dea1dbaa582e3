"""How a model is fitted: data, settings, training here or by an engine, and what is taken over."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sadrec import _check
from sadrec._files import fingerprint
from sadrec._memory import give_back
from sadrec._types import Positions
from sadrec.data import Comparisons, DataWarning, Interactions, as_feedback, as_interactions
from sadrec.data._matrix import enlarged
from sadrec.data.ids import Ids
from sadrec.data.interactions import warn_of_repeated, weights_in
from sadrec.data.parquet import ParquetFiles, holds_interactions
from sadrec.models.features import Prepared, prepare
from sadrec.models.fitted import Fitted
from sadrec.models.lists import Lists
from sadrec.models.newcomers import Newcomers
from sadrec.models.shards import fitted_away
from sadrec.models.variational import fit_comparisons
from sadrec.ranking import Parameters
from sadrec.training.checkpoint import Checkpoints
from sadrec.training.dataset import TrainingData, training_data
from sadrec.training.defaults import Described, as_before, resolve
from sadrec.training.engine import Course, Engine, refuse_elsewhere, refuse_features
from sadrec.training.factors import Factors, initial_factors
from sadrec.training.run import DivergedError, run
from sadrec.training.settings import Settings, TrainingSettings
from sadrec.training.size import check_size
from sadrec.training.trainer import Figures, Trainer

if TYPE_CHECKING:
    from sadrec.models.sad import SAD

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


class Fitting(TrainingSettings, Lists, Newcomers):
    """Learning, for a model that can be asked."""

    _learn_rivals: ClassVar[bool] = True

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
            Or, where ``data`` is a table or its path, the name of a column; repeated rows are merged as ratings are.
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
            Called as ``f(epoch, figures, model)`` after each epoch; True stops the fit. ``model`` is a temporary one
            that holds what is learnt so far and can be asked during the call; ``copy.deepcopy`` keeps it for longer.
            Whoever asks the model itself is answered as before the fit until that is over.
        checkpoint, checkpoint_seconds
            A folder, and how often to write to it (0: after every epoch). Killed and run again with the same arguments,
            the fit continues from there and ends with the same bits as an undisturbed one.
        engine
            Where to train: :class:`sadrec.cluster.Ray` trains on a cluster, with the same bits (docs/cluster.md). It
            takes neither ``validation`` nor ``solver="variational"``; callbacks cannot ask the model meanwhile.
            Interactions in a path of Parquet (file, folder, pattern) are then read by the workers, and the users stay
            with them: see :meth:`collect`.

        Raises
        ------
        DivergedError
            When the parameters leave the finite numbers; the model is left at the last good epoch.
        """
        if engine is not None and (isinstance(data, ParquetFiles) or holds_interactions(data)):
            files = data if isinstance(data, ParquetFiles) else ParquetFiles([data])
            if isinstance(weights, str):
                files, weights = replace(files, weight=weights), None
            if item_features is not None or user_features is not None:
                refuse_features()
            more = {"weights": weights, "dislikes": dislikes, "warm_start": warm_start}
            if odd := [name for name, value in more.items() if value is not None]:
                raise ValueError(
                    f"{odd[0]} needs the data in this process: read the files first (Interactions.read) and give what "
                    f"was read, or leave {odd[0]} out"
                )
            calls = tuple(callbacks)
            options = _Options(show_progress, validation, patience, monitor, calls, checkpoint, checkpoint_seconds)
            return self._train_on_files(engine, files, comparisons, options)
        start = None if warm_start is None else warm_start._fitted
        ids = () if start is None else (start.user_ids.array, start.item_ids.array)
        if dislikes is not None and not isinstance(dislikes, int | float):
            dislikes = as_interactions(dislikes)
        calls = tuple(callbacks)
        options = _Options(show_progress, validation, patience, monitor, calls, checkpoint, checkpoint_seconds, engine)
        feedback = as_feedback(data)
        if isinstance(weights, str) and isinstance(feedback, Interactions):
            weights = weights_in(data, weights).matrix.data
        new = training_data(feedback, comparisons, weights, dislikes, *ids)
        before = None if start is None else start.features
        prepared = prepare(new, item_features, user_features, before)
        return self._train(new, start, options, features=prepared)

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
        elif options.checkpoint is None:
            data.let_go()
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

        if factors is None:
            latest: list[Fitted] = []

            def keep(fitted: Fitted) -> None:
                latest[:] = [fitted]

            def watch(epoch: int, figures: Figures) -> bool:
                return self._call_back(options.callbacks, epoch, figures, latest[0])

            watching = watch if options.callbacks else None
            try:
                fit_comparisons(data, settings, threads, keep, watching, features=features, **run_options)
            finally:
                if latest:
                    self._fitted = latest[0]
            return self
        centres = None if features is None else features.centres()
        trainer = Trainer(factors, settings, data.positives(settings), data.pair_sources(settings), threads, centres)
        data.let_go()
        seen = seen_before if data.matrix is None else whole.seen  # a function: it may take a copy, at the end
        fitted = Fitted(_parameters(factors), whole.users, whole.items, seen, settings)

        def learnt(finished: bool = False) -> Fitted:
            for array in factors.arrays:
                array.flags.writeable = not finished
            # A new object for every epoch: what was derived from the factors of the last one is not kept.
            seen = fitted.seen if finished else fitted.stored_seen
            parameters, predicted = _parameters(factors), None
            if features is not None and centres is not None:
                parameters, predicted = features.complete(factors, centres)
            return replace(fitted, parameters=parameters, stored_seen=seen, features=predicted)

        def after_epoch(epoch: int, figures: Figures) -> bool:
            return bool(options.callbacks) and self._call_back(options.callbacks, epoch, figures, learnt())

        give_back()  # what preparing took: some numbers for every user
        try:
            run(trainer, after_epoch=after_epoch, history=fitted.history, **run_options)
        except BaseException:
            if trainer.epoch and trainer.idle:  # else nothing was learnt, and the model is what it was before
                trainer.free()
                self._fitted = learnt(finished=True)
            raise
        trainer.free()
        give_back()
        self._fitted = learnt(finished=True)
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
        data = data.joined()
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

    def _train_on_files(
        self, engine: Engine, files: ParquetFiles, comparisons: Comparisons | None, options: _Options
    ) -> Self:
        """Have an engine read files and train; take over the items, and the users where the engine collects."""
        shared = engine.read(files, comparisons)
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

    def _call_back(
        self, callbacks: Iterable[Callback], epoch: int, figures: Figures, fitted: Fitted | None = None
    ) -> bool:
        """Call all of them with a model of what is learnt so far, and return whether one stops the fit."""
        model = self.clone()
        if fitted is not None:
            model._fitted = fitted
        try:
            answers = [callback(epoch, figures, model) for callback in callbacks]
        finally:
            model.__dict__.pop("_fitted", None)  # training goes on in the same arrays
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
