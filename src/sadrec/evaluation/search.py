"""Search over a grid of settings, on training data only."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from tqdm.auto import tqdm

from sadrec.data import Interactions
from sadrec.evaluation._fitting import OutOfTimeError, accepted, described, fitted, plain, time_limit, variant
from sadrec.evaluation._store import Store, fingerprint, key_of
from sadrec.evaluation.scoring import Scorer

log = logging.getLogger(__name__)
Rule = Literal["best", "one_error"]

PAPER_GRID: Mapping[str, Sequence[Any]] = {
    "learning_rate": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    "iterations": (2, 5, 10, 20, 50),
    "regularization": (0.05, 0.01, 0.005, 0.001),
    "rival_regularization": (0.01,),
}
"""The grid of the paper's appendix for SAD; without the last line, for BPR."""


@dataclass(frozen=True)
class Trial:
    """One point of the grid: its settings, its score on every fold, or why there is none."""

    settings: Mapping[str, Any]
    scores: tuple[float, ...]
    error: float
    seconds: float
    status: str = "done"
    message: str = ""

    @property
    def score(self) -> float:
        """Mean over folds; NaN when the trial has none."""
        return float(np.mean(self.scores)) if self.scores else float("nan")


class Search:
    """The outcome of a search.

    Attributes
    ----------
    trials
        One per point of the grid that was tried, in order.
    by
        What was selected by.
    best
        The chosen settings.
    """

    def __init__(self, trials: Sequence[Trial], scorer: Scorer, rule: Rule = "best") -> None:
        self.trials = list(trials)
        self.by = scorer.name
        self._better = scorer.better
        self.rule = rule

    @property
    def best_trial(self) -> Trial:
        """The chosen trial: the best score, or the first within one standard error of it (see ``rule``).

        Raises
        ------
        ValueError
            When no trial has a score.
        """
        scored = [trial for trial in self.trials if np.isfinite(trial.score)]
        if not scored:
            reasons = {trial.message for trial in self.trials if trial.message}
            raise ValueError(f"no setting could be scored: {'; '.join(sorted(reasons)) or 'nothing was tried'}")
        top = max(scored, key=lambda trial: self._better * trial.score)
        if self.rule == "best" or not np.isfinite(top.error):
            return top
        return next(trial for trial in scored if self._better * (top.score - trial.score) <= top.error)

    @property
    def best(self) -> dict[str, Any]:
        """The chosen settings."""
        return dict(self.best_trial.settings)

    @property
    def best_score(self) -> float:
        """The score of the chosen settings."""
        return self.best_trial.score

    @property
    def frame(self) -> pl.DataFrame:
        """One row per trial: its settings, score, error, seconds, status and message."""
        rows = [
            {
                **{name: plain(value) for name, value in trial.settings.items()},
                "score": trial.score if np.isfinite(trial.score) else None,
                "error": trial.error if np.isfinite(trial.error) else None,
                "seconds": trial.seconds,
                "status": trial.status,
                "message": trial.message,
            }
            for trial in self.trials
        ]
        types = {"score": pl.Float64, "error": pl.Float64, "seconds": pl.Float64}
        return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)

    def __repr__(self) -> str:
        return f"Search({len(self.trials)} trials by {self.by}; best {self.best_score:.4f} with {self.best})"


def search(
    model: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]],
    data: Interactions,
    *,
    by: str = "log_likelihood",
    folds: int = 1,
    test: float = 0.1,
    trials: int | None = None,
    rule: Rule = "best",
    seed: int = 0,
    path: str | Path | None = None,
    budget: float | None = None,
    progress: bool = True,
) -> Search:
    """Try settings of a model and choose among them, without ever seeing test data.

    Split first and hand in the training part; what is needed for validation is split off it here.

    Parameters
    ----------
    model
        A class or function that makes a model from settings, or a model whose other settings stay as they are.
    grid
        Values to try by setting, such as :data:`PAPER_GRID`, or a list of settings to try in this order; settings the
        model does not have are an error.
    data
        The training part.
    by
        ``"log_likelihood"``: goodness of fit on the training data, the paper's choice; ``"validation_log_likelihood"``;
        a measure of :func:`~sadrec.evaluation.evaluate`; or one of lists such as ``"ndcg@10"``.
    folds
        Over how many random validation splits a score is averaged (cross-validation by repeated splits).
    test
        Share split off for validation, for measures of lists; measures of ``evaluate`` leave one out.
    trials
        Try only so many points of the grid, drawn at random with ``seed``; of a list, the first.
    rule
        ``"best"``, or ``"one_error"``: the first point of the grid that is within one standard error of the best, so
        that a grid in order of size gives the smallest model that is as good.
    path
        A folder for results, which makes a killed search go on where it was.
    budget
        Seconds that one fit and its score may take.
    progress
        Show a progress bar.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).integers(0, 2, (30, 40))))
    >>> class Power:
    ...     def __init__(self, power=1.0):
    ...         self.power = power
    ...     def fit(self, train):
    ...         self.users, self.items = train.users, train.items
    ...         self.counts = (1.0 + np.bincount(train.matrix.indices, minlength=40)) ** self.power
    ...     def scores(self, users):
    ...         return np.tile(self.counts, (len(users), 1))
    >>> len(search(Power, {"power": [1.0, -1.0]}, data, by="ndcg@10", progress=False).trials)
    2
    """
    scorer = Scorer(by, test)
    if folds < 1:
        raise ValueError(f"folds must be at least 1, got {folds}")
    if rule not in ("best", "one_error"):
        raise ValueError(f"rule must be 'best' or 'one_error', got {rule!r}")
    points = grid_points(model, grid, trials, seed)
    parts = [scorer.split(data, seed + fold) for fold in range(folds if by != "log_likelihood" else 1)]
    data_key = fingerprint(data)
    store = Store(path)
    done = []
    for settings in tqdm(points, desc="search", disable=not progress):
        try:
            about = described(variant(model, settings))
        except Exception as error:
            done.append(Trial(settings, (), float("nan"), 0.0, "failed", f"{type(error).__name__}: {error}"))
            continue
        key = key_of(about, plain(settings), data_key, by, test, folds, seed)
        found = store.load(key)
        if found is not None and not _again(found[0], budget):
            done.append(_from_record(settings, found[0]))
            continue
        trial = _tried(model, settings, scorer, parts, seed, budget)
        store.save(key, _to_record(trial))
        done.append(trial)
    return Search(done, scorer, rule)


def choose_factors(
    model: Any,
    data: Interactions,
    factors: Sequence[int] = (16, 32, 64, 128, 256),
    *,
    by: str = "m1",
    folds: int = 5,
    rule: Rule = "one_error",
    **options: Any,
) -> Search:
    """Choose the number of factors by cross-validation on the training data.

    By default the smallest number whose score is within one standard error of the best (Breiman et al.,
    "Classification and Regression Trees", 1984).

    Parameters
    ----------
    model, data, by, folds, rule
        As in :func:`search`.
    factors
        Numbers to try; they are put in ascending order.
    **options
        Passed on to :func:`search`.
    """
    return search(model, {"factors": sorted(factors)}, data, by=by, folds=folds, rule=rule, **options)


def grid_points(
    model: Any, grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]], trials: int | None, seed: int
) -> list[dict[str, Any]]:
    """Return the points of a grid in order, or a random part of them; of a list of points, the first.

    Examples
    --------
    >>> grid_points(dict, {"a": [1, 2], "b": [3]}, None, 0)
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    if not grid:
        raise ValueError("the grid is empty; give values by setting, e.g. {'learning_rate': [0.01, 0.1]}")
    known = accepted(model)
    names = list(grid) if isinstance(grid, Mapping) else sorted({name for point in grid for name in point})
    for name in names:
        if known is not None and name not in known:
            raise ValueError(f"the model has no setting {name!r}; it has {', '.join(sorted(known))}")
    if trials is not None and trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    if not isinstance(grid, Mapping):
        return [dict(point) for point in grid[:trials]]
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Iterable) or not len(list(values)):
            raise ValueError(f"give a list of values for {name!r}, got {values!r}")
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if trials is None or trials >= len(points):
        return points
    chosen = np.random.default_rng(seed).choice(len(points), trials, replace=False)
    return [points[index] for index in sorted(chosen.tolist())]


def _again(record: Mapping[str, Any], budget: float | None) -> bool:
    """Whether a stored trial is worth another try: it failed, or there is more time now."""
    if record["status"] == "out of time":
        return budget is None or budget > record["seconds"]
    return bool(record["status"] == "failed")


def _tried(
    model: Any,
    settings: Mapping[str, Any],
    scorer: Scorer,
    parts: Sequence[tuple[Interactions, Interactions]],
    seed: int,
    budget: float | None,
) -> Trial:
    start = time.perf_counter()
    scores, errors = [], []
    nan = float("nan")
    try:
        for fold, (train, held_out) in enumerate(parts):
            with time_limit(budget):
                made = fitted(variant(model, settings), train)
                score, error = scorer.score(made, train, held_out, seed + fold)
            scores.append(score)
            errors.append(error)
    except OutOfTimeError as error:
        return Trial(settings, (), nan, time.perf_counter() - start, "out of time", str(error))
    except Exception as error:
        log.warning("settings %s failed: %s", settings, error)
        return Trial(settings, (), nan, time.perf_counter() - start, "failed", f"{type(error).__name__}: {error}")
    spread = float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else errors[0]
    return Trial(settings, tuple(scores), spread, time.perf_counter() - start)


def _to_record(trial: Trial) -> dict[str, Any]:
    return dict(
        plain(
            {
                "settings": trial.settings,
                "scores": trial.scores,
                "error": trial.error,
                "seconds": trial.seconds,
                "status": trial.status,
                "message": trial.message,
            }
        )
    )


def _from_record(settings: Mapping[str, Any], record: Mapping[str, Any]) -> Trial:
    scores = tuple(float("nan") if score is None else score for score in record["scores"])
    error = float("nan") if record["error"] is None else record["error"]
    return Trial(settings, scores, error, record["seconds"], record["status"], record["message"])
