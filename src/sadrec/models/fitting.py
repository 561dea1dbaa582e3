"""Fit a model: resolve the settings, train here or by an engine, and keep the new state."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sadrec._core import check
from sadrec._core.files import fingerprint
from sadrec._core.memory import give_back
from sadrec._core.settings import checked
from sadrec._core.sparse import make
from sadrec._core.types import Positions
from sadrec.data import Comparisons, DataWarning, NothingLearnt, as_feedback, as_interactions
from sadrec.data.ids import Ids
from sadrec.data.interactions import warn_of_repeated, with_weights
from sadrec.data.parquet import ParquetFiles, holds_interactions
from sadrec.models.files import load_model, write_result
from sadrec.models.state import State
from sadrec.models.variational import ModelSweeps
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Point
from sadrec.ranking.results import Results
from sadrec.training.checkpoint import Checkpoints, LocalCheckpoints
from sadrec.training.dataset import TrainingData, check_size, training_data
from sadrec.training.engine import Engine, EngineResult, refuse_elsewhere, refuse_features
from sadrec.training.features import Prepared, prepare
from sadrec.training.loop import Figures, Step, run
from sadrec.training.resolve import DataFacts, as_before, resolve
from sadrec.training.settings import Settings
from sadrec.training.sgd.factors import Factors, initial_factors
from sadrec.training.sgd.trainer import Trainer
from sadrec.training.variational.counts import count

if TYPE_CHECKING:
    from sadrec.models.sad import SAD

Callback = Callable[[int, Figures, Any], bool | None]


@dataclass(frozen=True)
class Options:
    """Options of a fit: the arguments of ``fit`` that are neither data nor settings."""

    show_progress: bool = True
    validation: Any = None
    patience: int | None = None
    callbacks: Iterable[Callback] = ()
    checkpoint: str | Path | None = None
    checkpoint_seconds: float = 0.0
    engine: Engine | None = None


def settings_for(model: "SAD", data: Any) -> Settings:
    """Return the settings that ``model.fit(data)`` would use, with everything resolved."""
    return _resolved(model, training_data(as_feedback(data)), checked(model))


def _resolved(
    model: "SAD", data: DataFacts, given: dict[str, Any], start: State | None = None, kept: dict[str, Any] | None = None
) -> Settings:
    before = None if start is None else start.settings
    seed = check.seed(model.random_state)
    return resolve(given, data, model._learn_rivals, seed, start is not None, before, kept)


def gathered(
    data: Any, comparisons: Comparisons | None, weights: Any, dislikes: Any, start: State | None
) -> TrainingData:
    """Return the training data; its users and items follow those of the state to start from."""
    ids = () if start is None else (start.users.array, start.items.array)
    if dislikes is not None and not isinstance(dislikes, int | float):
        dislikes = as_interactions(dislikes)
    if isinstance(weights, str):
        data, weighted = with_weights(data, weights)
        weights = weighted.matrix.data
    return training_data(as_feedback(data), comparisons, weights, dislikes, *ids)


def files_for(data: Any, weights: Any, here: Mapping[str, Any], tables: tuple[Any, Any]) -> ParquetFiles:
    """Return the files that an engine trains on; raise on data, features and options that only this process can use."""
    if not (isinstance(data, ParquetFiles) or holds_interactions(data)):
        raise ValueError(
            "an engine trains on interactions in Parquet, which its workers read: write the data to a folder "
            "that all nodes see (frame.write_parquet) and give its path, or leave engine out"
        )
    files = data if isinstance(data, ParquetFiles) else ParquetFiles([data])
    if isinstance(weights, str):
        files, weights = replace(files, weight=weights), None
    if any(table is not None for table in tables):
        refuse_features()
    if refused := [name for name, value in {"weights": weights, **here}.items() if value is not None]:
        column = " (weights may be the name of a column)" if refused[0] == "weights" else ""
        raise ValueError(
            f"{refused[0]} needs all data in one process: leave {refused[0]} out{column}, or leave engine out"
        )
    return files


def train(
    model: "SAD",
    data: TrainingData,
    start: State | None,
    options: Options,
    tables: tuple[Any, Any] = (None, None),
    settings_before: Settings | None = None,
    seen_before: Any = None,
) -> None:
    """Train a model on data, from the state ``start`` where one is given, and put the result into ``model.state``.

    ``tables`` are the features of items and of users.
    """
    given, filled = checked(model), None
    features, whole, earlier = None, data, None if start is None else start.features
    if earlier is not None or any(table is not None for table in tables):
        features = prepare(data, *tables, earlier)
        data, whole = features.data, features.whole
    if start is not None:
        continued = start.parameters
        variational = start.settings is not None and start.settings.solver == "variational"
        has_bias = continued.item_bias is not None
        filled = as_before(given, settings_before, continued.n_factors, has_bias, variational)
        if settings_before is not None:
            given = {}  # they were for the data of the fit before
    settings = _resolved(model, data, given, start, filled)
    threads, held_out = check.threads(model.num_threads), None
    if options.validation is not None:
        validation = as_feedback(options.validation)
        validation = validation if features is None else features.of_trained(validation)
        held_out = data.validation_pairs(validation, settings.seed)
    if settings.solver != "variational" and data.feature_names:
        raise ValueError(
            f"solver={settings.solver!r} takes no features of comparisons: read them without features=, or leave "
            "solver and penalties to the rules"
        )
    if settings.solver != "variational" and data.ties is not None:
        warnings.warn(
            f"{len(data.ties):,} comparisons are ties, and left out: solver={settings.solver!r} learns from decided "
            "ones alone; ties='drop' leaves them out and hides this warning",
            DataWarning,
            stacklevel=3,
        )
    check_size(data, settings, threads)
    kept = None if features is None else features.kept
    factors = None if settings.solver == "variational" else _first_factors(data, settings, start, kept)
    checkpoints = _checkpoints(model, data, settings, factors, held_out, options, features)
    history: list[Figures] = []
    step: Step
    if factors is None:
        step = ModelSweeps(data, settings, threads, held_out, history, features)
    else:
        seen = seen_before if data.matrix is None else whole.seen  # a function: it may take a copy, at the end
        results = None if features is not None else _results(data, None if settings_before is None else start)
        first = State(Point(_parameters(factors)), whole.users, whole.items, None, settings, history, results=results)
        step = _epochs(data, first, seen, factors, threads, held_out, features)

    give_back()  # what preparing took: some numbers for every user
    _run_and_keep(model, step, options, checkpoints, history, step.learnt)
    _warn_of_nothing(history)


def _run_and_keep(
    model: "SAD",
    step: Step,
    options: Options,
    checkpoints: Checkpoints | None,
    history: list[Figures],
    learnt: Callable[[], State] | None = None,
) -> None:
    """Run a step to the end, and put what it has learnt into the model.

    ``learnt`` gives callbacks a state; None on a cluster, where they cannot ask the model.
    """

    def after_epoch(epoch: int, figures: Figures) -> bool:
        return bool(options.callbacks) and _call_back(model, options.callbacks, epoch, figures, learnt)

    try:
        run(
            step,
            after_epoch=after_epoch,
            patience=options.patience,
            checkpoints=checkpoints,
            show_progress=options.show_progress,
            title=type(model).__name__,
            history=history,
        )
        give_back()
        model.state = step.learnt(finished=True)
    except BaseException:
        if step.done and step.ready:  # else nothing was learnt, and the model is what it was before
            model.state = step.learnt(finished=True)
        raise
    finally:
        step.close()


def _epochs(
    data: TrainingData,
    first: State,
    seen: Any,
    factors: Factors,
    threads: int,
    held_out: Any,
    features: Prepared | None,
) -> Trainer:
    """Return epochs of gradient ascent that start at ``factors``, and change them in place."""
    settings = first.settings
    assert settings is not None

    def make_state(finished: bool) -> State:
        for array in factors.arrays:
            array.flags.writeable = not finished
        # A new object for every epoch: what was derived from the factors of the last one is not kept.
        stored = seen() if finished and callable(seen) else seen
        full, predicted = (factors, None) if features is None else features.complete(factors)
        return replace(first, belief=Point(_parameters(full)), stored_seen=stored, features=predicted)

    centre = None if features is None else features.centre
    given = data.positives(settings), data.pair_sources(settings)
    return Trainer(factors, settings, *given, threads, centre, held_out, make_state)


def train_on_files(
    model: "SAD", engine: Engine, files: ParquetFiles, comparisons: Comparisons | None, options: Options
) -> None:
    """Have an engine read files and train a model."""
    shared = engine.read(files, comparisons)
    try:
        if shared.shape[1] < 2:
            raise ValueError("a preference needs two items, and there is only 1: give data on more items")
        settings = _resolved(model, shared, checked(model))
        refuse_elsewhere(settings, options.validation, options.patience)
        history: list[Figures] = []

        def keep(result: EngineResult) -> State:
            _warn_of_nothing(history)
            if engine.output is None:
                return _brought_here(result, settings, history)
            params = {**model.get_params(), "random_state": settings.seed}
            write_result(engine.output, result, settings, history, type(model).__name__, params)
            return load_model(engine.output, mmap=True, verify=False)[0]

        identity = {"class": type(model).__name__, "files": shared.fingerprint(), "settings": settings.identity()}
        checkpoints = None
        if options.checkpoint is not None:
            checkpoints = shared.checkpoints(options.checkpoint, identity, options.checkpoint_seconds)
        _run_and_keep(model, shared.step(settings, options.checkpoint, keep), options, checkpoints, history)
    finally:
        shared.end()
    rows, timed = shared.repeated
    if rows:
        warn_of_repeated(rows, timed=timed)


def _brought_here(result: EngineResult, settings: Settings, history: list[Figures]) -> State:
    """Return the state that an engine has learnt."""
    k, rows = settings.factors, result.item_rows
    tau = rows[:, k:] if settings.learn_rivals else None
    parameters = Parameters(result.user_factors.whole(), rows[:, :k], tau, result.item_bias)
    for array in (parameters.user_factors, parameters.item_factors, tau, result.item_bias):
        if array is not None:
            array.flags.writeable = False
    shape = len(result.users), len(result.items)
    seen = make(result.seen_data.whole(), result.seen_indices.whole(), result.seen_indptr, shape)
    return State(Point(parameters), Ids(result.users, "user"), Ids(result.items, "item"), seen, settings, history)


def _call_back(
    model: "SAD",
    callbacks: Iterable[Callback],
    epoch: int,
    figures: Figures,
    learnt: Callable[[], State] | None = None,
) -> bool:
    """Call all callbacks with a model of the present state, and return whether one stops the fit.

    Its state is made when a callback asks for it, and is not there afterwards: training goes on in the same arrays.
    """
    temporary = model.clone()
    if learnt is not None:
        temporary._make_later(learnt)
    try:
        answers = [callback(epoch, figures, temporary) for callback in callbacks]
    finally:
        temporary._forget()
    return any(answers)


def _warn_of_nothing(history: list[Figures]) -> None:
    if history and not any(figures["updates"] for figures in history):
        warnings.warn(
            "nothing was learnt: no user has both an item (of a weight above 0) and one that they did not touch",
            NothingLearnt,
            stacklevel=4,
        )


def _checkpoints(
    model: "SAD",
    data: TrainingData,
    settings: Settings,
    factors: Factors | None,
    held_out: Any,
    options: Options,
    features: Prepared | None,
) -> LocalCheckpoints | None:
    """Return the folder of checkpoints, with the identity of the fit."""
    if options.checkpoint is None:
        return None
    identity = {
        "class": type(model).__name__,
        "data": data.fingerprint(),
        "settings": settings.identity(),
        "start": None if factors is None else fingerprint(*factors),
        "validation": None if held_out is None else fingerprint(*held_out.arrays),
        "patience": options.patience,
    }
    if features is not None:
        identity["features"] = fingerprint(*features.arrays())
    return LocalCheckpoints(options.checkpoint, identity, options.checkpoint_seconds)


def _results(data: TrainingData, before: State | None) -> Results | None:
    """Return the results of the comparisons, with those of earlier fits."""
    earlier = None if before is None else before.results
    if data.comparisons is None:
        return earlier
    ties = None if data.ties is None else count(data.ties, len(data.items))
    results = Results.of(count(data.comparisons, len(data.items)), ties, len(data.items))
    return results if earlier is None else earlier.and_more(results, len(data.items))


def _parameters(factors: Factors) -> Parameters:
    """Return the factors of training as parameters, as views."""
    return Parameters(factors.users, factors.eta, factors.tau, factors.bias)


def _first_factors(
    data: TrainingData, settings: Settings, start: State | None, kept: Positions | None = None
) -> Factors:
    """Return the factors that training starts from: those of the state ``start``.

    Without one, they are the spectrum (softmax) or small random numbers. ``kept`` are the positions of the trained
    items among those of the model; None: all.
    """
    from_spectrum = start is None and settings.loss == "softmax"
    factors = initial_factors(
        len(data.users),
        len(data.items),
        settings.factors,
        0.0 if from_spectrum else settings.init_scale,
        settings.learn_rivals,
        settings.bias,
        settings.seed,
    )
    if from_spectrum:
        data.start(factors, settings.length)
        return factors
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
