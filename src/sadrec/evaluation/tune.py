"""Choosing settings on a validation part of the training data: by grid, at random, or with Optuna's TPE."""

import inspect
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from tqdm.auto import tqdm

from sadrec import _check
from sadrec._files import plain, write_whole
from sadrec._memory import need
from sadrec._progress import alone
from sadrec._settings import Span, declared, search_space
from sadrec.data import Comparisons, Interactions, as_feedback
from sadrec.evaluation._running import FinishedWork, data_fingerprint, failure, time_limit, worth_another_try
from sadrec.evaluation.leave_one_out import MEASURES, evaluate
from sadrec.evaluation.likelihood import log_likelihood
from sadrec.evaluation.protocol import about, copied
from sadrec.evaluation.tables import measure_of
from sadrec.evaluation.top_n import TOP_N_MEASURES, evaluate_top_n

Data = Interactions | Comparisons
Sampler = Literal["grid", "random", "tpe"]
Rule = Literal["best", "one_error"]
Point = dict[str, Any]
Space = Mapping[str, Span | Sequence[Any]]

PAPER_GRID: Mapping[str, Sequence[Any]] = {
    "learning_rate": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    "iterations": (2, 5, 10, 20, 50),
    "regularization": (0.05, 0.01, 0.005, 0.001),
    "rival_regularization": (0.01,),
}
"""The grid of the paper's appendix for SAD; without the last line, for BPR."""

_LIKELIHOODS = ("log_likelihood", "validation_log_likelihood")
_OF_COMPARISONS = ("log_loss", "accuracy", "brier", "mean_margin")
# A trial is pruned against the others only when there are so many of them.
_ENOUGH = 5


@dataclass(frozen=True)
class Trial:
    """One point of the space: its settings, its score on every fold, or why there is none.

    ``status`` is "done", "pruned", "failed" or "out of time"; ``looks`` are the scores in the course of the first fit.
    """

    settings: Mapping[str, Any]
    scores: tuple[float, ...] = ()
    error: float = math.nan
    seconds: float = 0.0
    status: str = "done"
    message: str = ""
    looks: tuple[float, ...] = ()

    @property
    def score(self) -> float:
        """Mean over folds; NaN when the trial has none."""
        return float(np.mean(self.scores)) if self.scores else math.nan


class TuneResult:
    """The outcome of tuning: ``trials``, one per point in order, and ``model`` with the chosen settings, not fitted."""

    def __init__(
        self,
        model: Any,
        trials: Sequence[Trial],
        metric: str,
        better: int,
        rule: Rule = "best",
        about: Mapping[str, str] | None = None,
    ) -> None:
        self._given, self.trials, self.metric, self._better, self.rule = model, list(trials), metric, better, rule
        self._about = dict(about or {})  # the kind of the data, and its fingerprint

    @property
    def best_trial(self) -> Trial:
        """The chosen trial: the best score, or the first within one standard error of it (see ``rule``)."""
        scored = [trial for trial in self.trials if math.isfinite(trial.score)]
        if not scored:
            reasons = sorted({trial.message for trial in self.trials if trial.message})
            raise ValueError(
                f"none of {len(self.trials)} trials could be scored by {self.metric}"
                + (f": {'; '.join(reasons)}" if reasons else "")
            )
        top = max(scored, key=lambda trial: self._better * trial.score)
        if self.rule == "best" or not math.isfinite(top.error):
            return top
        return next(trial for trial in scored if self._better * (top.score - trial.score) <= top.error)

    @property
    def settings(self) -> dict[str, Any]:
        """The chosen settings."""
        return dict(self.best_trial.settings)

    @property
    def score(self) -> float:
        """The score of the chosen settings (on the validation data that chose them, so a little too good)."""
        return self.best_trial.score

    @property
    def model(self) -> Any:
        """The model with the chosen settings, not fitted."""
        return copied(self._given, **self.settings)

    @property
    def frame(self) -> pl.DataFrame:
        """One row per trial: its settings, score, error, seconds, status and message."""
        numbers = ("score", "error", "seconds")
        rows = [
            {
                **{name: plain(value) for name, value in trial.settings.items()},
                **{name: plain(float(getattr(trial, name))) for name in numbers},
                "status": trial.status,
                "message": trial.message,
            }
            for trial in self.trials
        ]
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(numbers, pl.Float64), infer_schema_length=None)

    def save(self, path: str | Path) -> None:
        """Write the chosen model's settings as JSON, which ``sadrec fit --settings`` takes."""
        settings = {name: plain(value) for name, value in self.model.get_params().items() if value is not None}
        content: dict[str, Any] = {"model": type(self._given).__name__.lower(), "settings": settings}
        content |= {"metric": self.metric, "score": self.score, "trials": len(self.trials), **self._about}
        write_whole(path, json.dumps(content, indent=1) + "\n")

    def __repr__(self) -> str:
        return f"TuneResult({len(self.trials)} trials by {self.metric}; best {self.score:.4f} with {self.settings})"


def tune(
    model: Any,
    data: Any,
    trials: int | None = None,
    metric: str | None = None,
    *,
    sampler: Sampler = "tpe",
    space: Space | Sequence[Mapping[str, Any]] | None = None,
    start: Sequence[Mapping[str, Any]] = (),
    folds: int = 1,
    test: float = 0.1,
    rule: Rule = "best",
    seed: int = 0,
    path: str | Path | None = None,
    budget: float | None = None,
    timeout: float | None = None,
    prune: bool = True,
    looks: int = 4,
    show_progress: bool = True,
) -> TuneResult:
    """Try settings of a model and choose among them, without ever seeing test data.

    Split first and hand in the training part; what is needed for validation is split off it here, before anything is
    fitted.

    Parameters
    ----------
    model
        The model; settings that are not tuned stay as they are.
    data
        The training part: interactions in any form that ``fit`` takes, or Comparisons.
    trials
        How many settings to try in all, those of an earlier run with the same ``path`` included; by default 50, or the
        whole grid. A smaller part of a grid is drawn at random with ``seed``.
    metric
        For interactions a measure of :func:`~sadrec.evaluation.evaluate_top_n` with its length (``"ndcg@10"``, the
        default), one of :func:`~sadrec.evaluation.evaluate` (``"m1"``), ``"validation_log_likelihood"``, or, with a
        grid, ``"log_likelihood"``: goodness of fit on the training data, the paper's choice. For comparisons
        ``"log_loss"`` (the default), ``"accuracy"`` or ``"brier"``.
    sampler
        ``"grid"``: every combination, in order; ``"random"``; ``"tpe"``: Optuna's tree-structured Parzen estimator
        (needs the extra ``tune``).
    space
        By setting a list of values or, but for a grid, a :class:`Span` of numbers (whole ones when both ends are); or a
        list of settings to try in this order. By default what the settings declare that have an effect on such data
        and are not given; for comparisons the variational solver is tried first, then the settings of the other.
    start
        Settings to try first, such as the defaults: ``[{}]``.
    folds, test
        Over how many random validation splits a score is averaged (cross-validation by repeated splits), and the share
        split off by each; measures of ``evaluate`` leave one out instead.
    rule
        ``"best"``, or ``"one_error"``: the first point within one standard error of the best, so that a grid in order
        of size gives the smallest model that is as good (Breiman et al., "Classification and Regression Trees", 1984).
    seed
        Of the splits and of the sampler.
    path
        A folder for results. Killed or interrupted, the same call continues where it stopped and ends with the same
        result; another model, other data or another metric may use the same folder.
    budget, timeout
        Seconds that one trial may take, and after which no further trial is started.
    prune, looks
        Stop a trial early when it is worse than the median of the others at one of so many points, evenly spread over
        its epochs; needs a model whose ``fit`` takes ``callbacks``.
    show_progress
        Show a progress bar.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from sadrec.evaluation import EASE
    >>> data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).integers(0, 2, (30, 40))))
    >>> result = tune(EASE(), data, sampler="grid", space={"regularization": [10.0, 100.0]}, show_progress=False)
    >>> len(result.trials), result.model.is_fitted
    (2, False)
    """
    data = as_feedback(data)
    copied(model)
    _check.one_of(sampler, "sampler", ("grid", "random", "tpe"))
    _check.one_of(rule, "rule", ("best", "one_error"))
    _check.whole(folds, "folds", 1, 1_000)
    _check.whole(looks, "looks", 1, 10_000)
    if trials is not None:
        _check.whole(trials, "trials", 1, 1_000_000)
    for what, seconds in (("budget", budget), ("timeout", timeout)):
        if seconds is not None and not seconds > 0:
            raise ValueError(f"{what} must be above 0 seconds, or None for no limit, not {seconds!r}")
    scorer = Scorer(metric or ("log_loss" if isinstance(data, Comparisons) else "ndcg@10"), data, test)
    if scorer.name == "log_likelihood" and sampler != "grid":
        raise ValueError("the log likelihood of the training data can only overfit; tune 'validation_log_likelihood'")
    first = [dict(point) for point in start]
    if space is None:
        more, space = _default_space(model, "comparisons" if isinstance(data, Comparisons) else "interactions")
        first += more
    total, proposed = _proposals(model, sampler, space, first, trials, seed, scorer.better)
    parts = [scorer.split(seed + fold) for fold in range(1 if scorer.name == "log_likelihood" else folds)]
    work = _Work(model, scorer, parts, seed, budget, looks if prune else 0)
    finished = FinishedWork(path, "trial")
    known = {"kind": "comparisons" if isinstance(data, Comparisons) else "interactions", "data": data_fingerprint(data)}
    question = (known["data"], scorer.name, test, folds, seed)
    done: list[Trial] = []
    end = math.inf if timeout is None else time.perf_counter() + timeout
    with alone(tqdm)(total=total, desc="tune", disable=not show_progress) as bar:
        while len(done) < total and time.perf_counter() < end:
            done.append(work.result(proposed(done), done, finished, question))
            bar.update()
            scores = [scorer.better * trial.score for trial in done if trial.scores]
            if scores:
                bar.set_postfix_str(f"best {scorer.name} {scorer.better * max(scores):.4f}")
    return TuneResult(model, done, scorer.name, scorer.better, rule, known)


class Scorer:
    """What settings are chosen by: how data is validated, the score computed, and which way is better."""

    def __init__(self, name: str, data: Data, test: float = 0.1) -> None:
        self.name, self.data, self.test = name, data, test
        base, _, length = name.partition("@")
        lists = base in TOP_N_MEASURES and (not length or (length.isdecimal() and int(length) > 0))
        if isinstance(data, Comparisons):
            if name not in _OF_COMPARISONS:
                raise ValueError(f"cannot tune {name!r} on comparisons; choose one of {', '.join(_OF_COMPARISONS)}")
        elif name not in (*_LIKELIHOODS, *MEASURES) and not lists:
            raise ValueError(
                f"cannot tune {name!r}; choose {', '.join(_LIKELIHOODS)}, one of {', '.join(MEASURES)}, or one of "
                f"{', '.join(TOP_N_MEASURES)} with a length such as 'ndcg@10'"
            )
        self.better = 1 if name in _LIKELIHOODS else measure_of(name).better
        if not self.better:
            raise ValueError(f"settings cannot be chosen by {name!r}: more of it is neither better nor worse")

    def split(self, seed: int) -> tuple[Data, Data]:
        """Divide the data into what is fitted and what is looked at afterwards."""
        if self.name == "log_likelihood":
            return self.data, self.data
        if self.name in MEASURES and isinstance(self.data, Interactions):
            return self.data.leave_one_out(seed=seed)
        return self.data.split(test=self.test, seed=seed)

    def score(self, model: Any, train: Data, held_out: Data, seed: int) -> tuple[float, float]:
        """Return the score of a fitted model and its standard error (NaN where there is none)."""
        base, _, length = self.name.partition("@")
        if isinstance(held_out, Comparisons) or isinstance(train, Comparisons) or base in MEASURES:
            result = evaluate(model, train, held_out, seed)
        elif base == "log_likelihood":
            return log_likelihood(model, train, seed=seed), math.nan
        elif base == "validation_log_likelihood":
            return log_likelihood(model, held_out, train=train, seed=seed), math.nan
        else:
            result = evaluate_top_n(model, train, held_out, int(length or 10), seed=seed)
        return result[base], result.errors.get(base, math.nan)


@dataclass(frozen=True)
class _Work:
    """Fits and scores one trial after the other."""

    model: Any
    scorer: Scorer
    parts: Sequence[tuple[Data, Data]]
    seed: int
    budget: float | None
    looks: int

    def result(self, settings: Point, before: Sequence[Trial], finished: FinishedWork, question: Any) -> Trial:
        """Return a trial that is finished already, or do the work and keep it."""
        try:
            model = copied(self.model, **settings)
            described = about(model)
        except Exception as error:
            status, message = failure(error, f"trial with {settings}")
            return Trial(settings, status=status, message=message)
        described["settings"].pop("num_threads", None)  # the result does not depend on it
        trial = finished.load(partial(_from_record, settings), described, question)
        if trial is not None:
            again = trial.status == "pruned" and not self.looks
            if not again and not worth_another_try(trial.status, trial.seconds, self.budget, retry=False):
                return trial
        # A trial is compared with those of the same settings, not with another solver in the middle of its work.
        others = [trial for trial in before if trial.status == "done" and trial.settings.keys() == settings.keys()]
        trial = self._tried(model, settings, others)
        finished.save(described, question, values=plain(asdict(trial)))
        return trial

    def _tried(self, model: Any, settings: Point, others: Sequence[Trial]) -> Trial:
        start = time.perf_counter()
        scores, errors = [], []
        looks: list[float] = []
        status, message = "done", ""
        try:
            with time_limit(self.budget):
                for fold, (train, held_out) in enumerate(self.parts):
                    fitted = model if fold == 0 else copied(model)
                    options: dict[str, Any] = {}
                    pruned: list[bool] = []
                    if fold == 0 and self.looks and "callbacks" in inspect.signature(model.fit).parameters:
                        options["callbacks"] = [self._looking(others, looks, pruned)]
                    fitted.fit(train, show_progress=False, **options)
                    if pruned:
                        status = "pruned"
                        break
                    score, error = self.scorer.score(fitted, train, held_out, self.seed + fold)
                    if not math.isfinite(score):
                        raise ValueError(f"{self.scorer.name} is not defined on the validation split")
                    scores.append(score)
                    errors.append(error)
        except Exception as error:
            status, message = failure(error, f"trial with {settings}")
        seconds = time.perf_counter() - start
        if status != "done":
            return Trial(settings, (), math.nan, seconds, status, message, tuple(looks))
        spread = float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else errors[0]
        return Trial(settings, tuple(scores), spread, seconds, looks=tuple(looks))

    def _looking(
        self, others: Sequence[Trial], looks: list[float], pruned: list[bool]
    ) -> Callable[[int, Any, Any], bool]:
        """Return a callback that looks at the score a few times and stops a fit that is worse than the median."""
        train, held_out = self.parts[0]
        calls = 0
        points: set[int] = set()

        def look(epoch: int, figures: Any, model: Any) -> bool:
            # Epochs are counted here: some models count them from 0, others from 1.
            nonlocal calls
            calls += 1
            if calls == 1:
                given = getattr(model, "iterations", None)
                used = getattr(getattr(model, "settings", None), "iterations", None)
                epochs = int((used if given is None else given) or 0)
                points.update(round(epochs * place / (self.looks + 1)) for place in range(1, self.looks + 1))
                points.discard(epochs)
            if calls not in points:
                return False
            looks.append(self.scorer.score(model, train, held_out, self.seed)[0])
            rest = [trial.looks[len(looks) - 1] for trial in others if len(trial.looks) >= len(looks)]
            better = self.scorer.better
            if len(rest) >= _ENOUGH and len(looks) > 1 and better * looks[-1] < better * float(np.median(rest)):
                pruned.append(True)
            return bool(pruned)

        return look


def _from_record(settings: Point, record: Mapping[str, Any], _: Any = None) -> Trial:
    values = {**record, "settings": settings}
    for name in ("scores", "looks"):
        values[name] = tuple(math.nan if value is None else float(value) for value in record[name])
    values["error"] = math.nan if record["error"] is None else float(record["error"])
    values["seconds"] = float(record["seconds"])
    return Trial(**values)


# -- which settings are tried ------------------------------------------------------------------------------------------


def _proposals(
    model: Any,
    sampler: Sampler,
    space: Space | Sequence[Mapping[str, Any]],
    start: list[Point],
    trials: int | None,
    seed: int,
    better: int,
) -> tuple[int, Callable[[Sequence[Trial]], Point]]:
    """Return how many points there are, and a function that gives the next of them.

    Which one it is depends on the seed and on the scores of the trials before, and on nothing else.
    """
    known = model.get_params()
    points = [dict(point) for point in space] if isinstance(space, Sequence) else None
    chosen = dict(space) if isinstance(space, Mapping) else {}
    if not chosen and not points:
        raise ValueError("the space is empty; give values by setting, e.g. {'learning_rate': [0.01, 0.1]}")
    for name in [*chosen, *(name for point in [*start, *(points or [])] for name in point)]:
        if name not in known:
            raise ValueError(f"the model has no setting {name!r}; it has {', '.join(known)}")
    if points is None and sampler == "grid":
        points = grid_points(chosen, trials, seed)
    if points is not None:
        listed = [*start, *(point for point in points if point not in start)]
        return min(trials or len(listed), len(listed)), lambda done: listed[len(done)]
    for name, values in chosen.items():
        if not isinstance(values, Span):
            _listed(name, values)
    more = _random(chosen, seed) if sampler == "random" else _tpe(chosen, seed, better)
    return trials or 50, lambda done: start[len(done)] if len(done) < len(start) else more(done)


def _default_space(model: Any, kind: str) -> tuple[list[Point], Space]:
    """Return points to try first, and the space that the settings of a model declare for data of a kind.

    Where a setting decides whether others are worth trying (the solver), its values without them are few points: they
    come first.
    """
    space = search_space(model, kind) if is_dataclass(model) else {}
    beside = {name: declared(model)[name].metadata["beside"] for name in space}
    first: list[Point] = []
    for deciding in dict.fromkeys(other for needed in beside.values() for other in needed):
        for value in space.pop(deciding, ()):
            common = {name: tries for name, tries in space.items() if beside[name].get(deciding, value) == value}
            first += grid_points({deciding: [value], **common})
    return first, space


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable) or not len(listed := list(values)):
        raise ValueError(f"give a Span or a list of values for {name!r}, not {values!r}")
    return listed


def grid_points(space: Mapping[str, Any], trials: int | None = None, seed: int = 0) -> list[Point]:
    """Return all combinations of values in order, or so many of them, drawn at random.

    Examples
    --------
    >>> grid_points({"a": [1, 2], "b": [3]})
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    for name, values in space.items():
        if isinstance(values, Span):
            raise ValueError(f"a grid needs a list of values for {name!r}, not {values}; sampler='random' takes spans")
    listed = {name: _listed(name, values) for name, values in space.items()}
    number = math.prod(map(len, listed.values()))
    need(number * 64 * (4 + len(listed)), f"a grid of {number:,} points", "list fewer values or take sampler='random'")
    points = [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]
    if trials is None or trials >= len(points):
        return points
    chosen = np.random.default_rng(seed).choice(len(points), trials, replace=False)
    return [points[index] for index in sorted(chosen.tolist())]


def _random(space: Mapping[str, Any], seed: int) -> Callable[[Sequence[Trial]], Point]:
    """Return a sampler whose n-th point depends on (seed, n) alone."""

    def more(done: Sequence[Trial]) -> Point:
        rng = np.random.default_rng((seed, len(done)))
        point = {}
        for name, values in space.items():
            if isinstance(values, Span):
                low, high = (math.log(end) if values.log else end for end in (values.low, values.high))
                whole = _is_whole(values)
                value = rng.uniform(low, high) if values.log or not whole else rng.integers(int(low), int(high) + 1)
                value = math.exp(value) if values.log else value
                point[name] = round(value) if whole else float(value)
            else:
                listed = _listed(name, values)
                point[name] = listed[int(rng.integers(len(listed)))]
        return point

    return more


def _is_whole(span: Span) -> bool:
    return isinstance(span.low, int) and isinstance(span.high, int)


def _tpe(space: Mapping[str, Any], seed: int, better: int) -> Callable[[Sequence[Trial]], Point]:
    """Return a sampler that asks Optuna, telling it of all trials before; the n-th point is drawn with (seed, n)."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError("TPE needs Optuna: pip install 'sadrec[tune]', or choose the sampler 'random'") from error
    kinds = optuna.distributions
    distributions: dict[str, Any] = {}
    for name, values in space.items():
        if not isinstance(values, Span):
            distributions[name] = kinds.CategoricalDistribution(list(values))
        elif _is_whole(values):
            distributions[name] = kinds.IntDistribution(int(values.low), int(values.high), log=values.log)
        else:
            distributions[name] = kinds.FloatDistribution(values.low, values.high, log=values.log)
    verbosity = optuna.logging.get_verbosity()

    def more(done: Sequence[Trial]) -> Point:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            # The plain sampler draws every setting on its own, and wastes trials where settings depend on each other.
            study = optuna.create_study(
                direction="maximize" if better > 0 else "minimize",
                sampler=optuna.samplers.TPESampler(multivariate=True, seed=seed + len(done)),
            )
            for trial in done:
                if set(trial.settings) != set(space) or trial.status not in ("done", "pruned"):
                    continue  # the sampler learns from points of its own space only
                pruned = trial.status == "pruned"
                state = optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE
                with suppress(ValueError):  # a start that lies outside the space
                    known = optuna.trial.create_trial(
                        state=state,
                        value=None if pruned else trial.score,
                        params=dict(trial.settings),
                        distributions=distributions,
                        intermediate_values=dict(enumerate(trial.looks, 1)),
                    )
                    study.add_trial(known)
            return dict(study.ask(distributions).params)
        finally:
            optuna.logging.set_verbosity(verbosity)

    return more
