"""Tuning with Optuna: resumable, pruned by epoch, on training data only (needs the ``tune`` extra)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from tqdm.auto import tqdm

from sadrec.data import Interactions
from sadrec.evaluation._fitting import accepted, described, fitted, plain, takes, variant
from sadrec.evaluation._store import fingerprint, key_of
from sadrec.evaluation.scoring import Scorer

log = logging.getLogger(__name__)
_ERROR = "error"


@dataclass(frozen=True)
class Range:
    """An interval of numbers to tune over, whole ones when both ends are whole.

    Attributes
    ----------
    low, high
        The ends, both included.
    log
        Whether orders of magnitude count alike.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"a range needs low < high, and low > 0 on a log scale; got {self.low} to {self.high}")

    def suggested(self, trial: Any, name: str) -> float | int:
        """Ask an Optuna trial for a value."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(trial.suggest_int(name, self.low, self.high, log=self.log))
        return float(trial.suggest_float(name, self.low, self.high, log=self.log))


Space = Mapping[str, Range | Sequence[Any]]

DEFAULT_SPACE: Space = {
    "factors": (32, 64, 128, 256),
    "iterations": Range(10, 100, log=True),
    "learning_rate": Range(0.01, 0.3, log=True),
    "regularization": Range(0.0005, 0.1, log=True),
    "rival_regularization": Range(0.0001, 0.03, log=True),
    "negative_candidates": (1, 2, 4, 8, 16),
    "bias": (False, True),
    "user_balance": (0.0, 0.15, 0.3, 0.45),
}
"""What :func:`tune` looks through by default, as far as the model has such settings."""


@dataclass(frozen=True)
class Tuned:
    """The outcome of tuning.

    Attributes
    ----------
    best
        The settings with the best score on the validation split.
    best_score
        That score (of ``metric``; on validation data, so a little flattering).
    metric
        What was tuned.
    trials
        One row per trial: number, score (null if it has none), state (complete, pruned, failed), seconds and settings.
    """

    best: Mapping[str, Any]
    best_score: float
    metric: str
    trials: pl.DataFrame

    def __repr__(self) -> str:
        return f"Tuned({self.metric} {self.best_score:.4f} after {len(self.trials)} trials with {dict(self.best)})"


def tune(
    model: Any,
    data: Interactions,
    trials: int = 50,
    metric: str = "ndcg@10",
    *,
    space: Space | None = None,
    start: Sequence[Mapping[str, Any]] = (),
    test: float = 0.1,
    seed: int = 0,
    path: str | Path | None = None,
    prune: bool = True,
    looks: int = 4,
    timeout: float | None = None,
    progress: bool = True,
) -> Tuned:
    """Tune the settings of a model on a validation split of the training data.

    Split first and hand in the training part: test data is never seen here.

    Parameters
    ----------
    model
        A class or function that makes a model from settings, or a model whose other settings stay as they are.
    data
        The training part.
    trials
        How many settings to try in all, those of an earlier run with the same ``path`` included.
    metric
        What to tune: a measure of :func:`~sadrec.evaluation.evaluate_top_n` with its length (``"ndcg@10"``), one of
        :func:`~sadrec.evaluation.evaluate` (``"m1"``), or ``"validation_log_likelihood"``.
    space
        A :class:`Range` or a list of choices by setting; :data:`DEFAULT_SPACE` by default.
    start
        Settings to try first, such as the defaults.
    test
        Share of ``data`` split off for validation when ``metric`` is one of lists.
    seed
        Of the split and of the sampler.
    path
        A journal file. Killed and run again, tuning goes on with the trials that are there; another model, other data,
        metric or space start a study of their own in the same file. (Of a function that makes models only the name is
        seen.)
    prune
        Stop a trial early when it is worse than the median of the others at the same share of its epochs; needs a model
        whose ``fit`` takes ``callbacks``.
    looks
        At how many points of a fit, evenly spread over its epochs, the metric is looked at for pruning.
    timeout
        Start no further trial after so many seconds.
    progress
        Show a progress bar.

    Raises
    ------
    ImportError
        When Optuna is not installed, with the command that installs it.
    """
    optuna = _optuna()
    scorer = Scorer(metric, test)
    if metric == "log_likelihood":
        raise ValueError("the log likelihood of the training data can only overfit; tune 'validation_log_likelihood'")
    if not isinstance(data, Interactions):
        raise TypeError(f"data must be Interactions, not {type(data).__name__}: Interactions.read(...) makes them")
    for what, count in (("trials", trials), ("looks", looks)):
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{what} must be a whole number, at least 1, not {count!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be above 0 seconds, or None for no limit, not {timeout!r}")
    chosen = _space(model, space)
    for settings in start:
        if odd := sorted(set(settings) - set(chosen)):
            raise ValueError(f"start gives {odd[0]!r}, which is not tuned over; the space has {', '.join(chosen)}")
    train, held_out = scorer.split(data, seed)
    name = key_of(_about(model, chosen), fingerprint(data), scorer.name, scorer.test, seed)
    study = _study(optuna, name, scorer, seed, path)
    finished = _settled(optuna, study)
    if not finished:
        for settings in start:
            study.enqueue_trial(dict(settings), skip_if_exists=True)
    objective = _Objective(optuna, model, chosen, scorer, train, held_out, seed, looks if prune else 0)
    with tqdm(total=trials, initial=min(finished, trials), desc="tune", disable=not progress) as bar:

        def after(study: Any, trial: Any) -> None:
            bar.update()
            if any(t.state == optuna.trial.TrialState.COMPLETE for t in study.get_trials(deepcopy=False)):
                bar.set_postfix_str(f"best {metric} {study.best_value:.4f}")

        if finished < trials:
            study.optimize(
                objective, n_trials=trials - finished, timeout=timeout, callbacks=[after], catch=(Exception,)
            )
    return _outcome(optuna, study, metric)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise ImportError("tuning needs Optuna: pip install 'sadrec[tune]'") from error
    # A failed trial is said in one line here, without Optuna's traceback.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _space(model: Any, space: Space | None) -> Space:
    known = accepted(model)
    if space is None:
        return {name: values for name, values in DEFAULT_SPACE.items() if known is None or name in known}
    if not space:
        raise ValueError("the space is empty; give a Range or a list of choices by setting")
    for name, values in space.items():
        if known is not None and name not in known:
            raise ValueError(f"the model has no setting {name!r}; it has {', '.join(sorted(known))}")
        if not isinstance(values, Range) and (
            isinstance(values, str) or not isinstance(values, Sequence) or not values
        ):
            raise ValueError(f"give a Range or a list of choices for {name!r}, not {values!r}")
    return space


def _about(model: Any, space: Space) -> dict[str, Any]:
    """Say what is tuned: the model, the settings that stay as they are, and the space of the others."""
    if isinstance(model, type) or not hasattr(model, "fit"):
        fixed: dict[str, Any] = {"class": f"{getattr(model, '__module__', '')}.{getattr(model, '__qualname__', '')}"}
    else:
        fixed = described(model)
        if isinstance(fixed["settings"], Mapping):
            moot = {"num_threads", *space}
            fixed["settings"] = {name: value for name, value in fixed["settings"].items() if name not in moot}
    return {**fixed, "space": {name: plain(values) for name, values in space.items()}}


def _journal(path: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if path.is_dir():
        raise ValueError(f"{path} is a folder; path must be a file, such as {path / 'tune.log'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return JournalStorage(JournalFileBackend(str(path)))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is not a journal of an earlier tuning; choose another path") from None


def _study(optuna: Any, name: str, scorer: Scorer, seed: int, path: str | Path | None) -> Any:
    study = optuna.create_study(
        storage=None if path is None else _journal(Path(path)),
        study_name=name,
        load_if_exists=True,
        direction="maximize" if scorer.better > 0 else "minimize",
        # Deaf to what the other half of the settings does, the plain sampler wastes trials on a space like this one.
        sampler=optuna.samplers.TPESampler(multivariate=True, seed=seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
    )
    if len(study.trials):
        study.sampler = optuna.samplers.TPESampler(multivariate=True, seed=seed + len(study.trials))
    return study


def _settled(optuna: Any, study: Any) -> int:
    """Close what a killed run left open; return the number of finished trials, those that failed by themselves too."""
    state = optuna.trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(state.RUNNING,)):
        study.tell(trial.number, state=state.FAIL)
    ended = study.get_trials(deepcopy=False, states=(state.COMPLETE, state.PRUNED, state.FAIL))
    return sum(trial.state != state.FAIL or _ERROR in trial.user_attrs for trial in ended)


@dataclass(frozen=True)
class _Objective:
    optuna: Any
    model: Any
    space: Space
    scorer: Scorer
    train: Interactions
    held_out: Interactions
    seed: int
    looks: int

    def __call__(self, trial: Any) -> float:
        try:
            return self._tried(trial)
        except self.optuna.TrialPruned:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}".partition("\n")[0]
            trial.set_user_attr(_ERROR, message)
            log.warning("trial %d with %s failed: %s", trial.number, trial.params, message)
            log.debug("where it failed", exc_info=True)
            raise

    def _tried(self, trial: Any) -> float:
        settings = {
            name: values.suggested(trial, name) if isinstance(values, Range) else _chosen(trial, name, values)
            for name, values in self.space.items()
        }
        model = variant(self.model, settings)
        pruned: list[bool] = []
        callbacks = []
        if self.looks and "callbacks" in takes(model.fit):
            callbacks.append(self._looking(trial, pruned))
        made = fitted(model, self.train, callbacks)
        if pruned:
            raise self.optuna.TrialPruned()
        score = self._score(made)
        if not math.isfinite(score):
            raise ValueError(f"{self.scorer.name} is not defined on the validation split")
        return score

    def _score(self, model: Any) -> float:
        return self.scorer.score(model, self.train, self.held_out, self.seed)[0]

    def _looking(self, trial: Any, pruned: list[bool]) -> Callable[[int, Any, Any], bool]:
        points: dict[int, int] = {}
        calls: list[int] = []

        def look(epoch: int, figures: Any, model: Any) -> bool:
            # Counted here: whether a model numbers its epochs from 0 or from 1 is its own affair.
            calls.append(epoch)
            if len(calls) == 1:
                points.update(self._points(_epochs(model)))
            step = points.get(len(calls))
            if step is None:
                return False
            trial.report(self._score(model), step)
            if trial.should_prune():
                pruned.append(True)
            return bool(pruned)

        return look

    def _points(self, epochs: int) -> dict[int, int]:
        """Epochs after which to look, evenly spread, the last one left out: it is looked at anyway."""
        places = [(round(epochs * look / (self.looks + 1)), look) for look in range(1, self.looks + 1)]
        return {epoch: look for epoch, look in places if 0 < epoch < epochs}


def _epochs(model: Any) -> int:
    given = getattr(model, "iterations", None)
    if given is None:
        given = getattr(getattr(model, "settings", None), "iterations", None)
    return int(given or 0)


def _chosen(trial: Any, name: str, values: Sequence[Any]) -> Any:
    return trial.suggest_categorical(name, list(values))


def _outcome(optuna: Any, study: Any, metric: str) -> Tuned:
    state = optuna.trial.TrialState
    names = {state.COMPLETE: "complete", state.PRUNED: "pruned", state.FAIL: "failed"}
    everything = study.get_trials(deepcopy=False)
    rows = [
        {
            "number": trial.number,
            "score": trial.value if trial.state == state.COMPLETE else None,
            "state": names.get(trial.state, "open"),
            "seconds": trial.duration.total_seconds() if trial.duration is not None else None,
            **trial.params,
        }
        for trial in everything
        if trial.state in names
    ]
    types = {"number": pl.Int64, "score": pl.Float64, "state": pl.String, "seconds": pl.Float64}
    frame = pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None) if rows else pl.DataFrame(schema=types)
    if not any(trial.state == state.COMPLETE for trial in everything):
        why = [trial.user_attrs[_ERROR] for trial in everything if _ERROR in trial.user_attrs]
        raise ValueError(
            f"none of {len(rows)} trials could be scored by {metric}{': ' if why else ''}{''.join(why[:1])}"
        )
    return Tuned(dict(study.best_params), float(study.best_value), metric, frame)
