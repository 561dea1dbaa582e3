"""Choosing settings on a validation part of the training data: by grid, at random, or with Optuna's TPE."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sadrec._core import check
from sadrec._core.files import plain
from sadrec._core.progress import Bar
from sadrec.data import Comparisons, Interactions, as_feedback
from sadrec.evaluation._running import Data, FinishedWork, data_fingerprint, failure, time_limit, worth_another_try
from sadrec.evaluation.leave_one_out import MEASURES, evaluate
from sadrec.evaluation.proposals import Sampler, Space, default_space, proposals
from sadrec.evaluation.protocol import about, copied
from sadrec.evaluation.tables import measure_of
from sadrec.evaluation.top_n import TOP_N_MEASURES, evaluate_top_n
from sadrec.evaluation.tune_result import ChoiceRule, SettingsPoint, Trial, TuneResult, from_record

_OF_COMPARISONS = ("log_loss", "accuracy", "brier", "mean_margin")


def tune(
    model: Any,
    data: Any,
    trials: int | None = None,
    metric: str | None = None,
    *,
    sampler: Sampler = "tpe",
    space: Space | Sequence[Mapping[str, Any]] | None = None,
    folds: int = 1,
    test: float = 0.1,
    rule: ChoiceRule = "best",
    seed: int = 0,
    path: str | Path | None = None,
    budget: float | None = None,
    timeout: float | None = None,
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
        default), or one of :func:`~sadrec.evaluation.evaluate` (``"m1"``, ``"log_loss"``). For comparisons
        ``"log_loss"`` (the default), ``"accuracy"`` or ``"brier"``.
    sampler
        ``"grid"``: every combination, in order; ``"random"``; ``"tpe"``: Optuna's tree-structured Parzen estimator
        (needs the extra ``tune``).
    space
        By setting a list of values or, but for a grid, a :class:`Span` of numbers (whole ones when both ends are); or a
        list of settings to try in this order. By default what the settings declare that have an effect on such data
        and are not given; for comparisons the variational solver is tried first, then the settings of the other.
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
    check.one_of(sampler, "sampler", ("grid", "random", "tpe"))
    check.one_of(rule, "rule", ("best", "one_error"))
    check.whole(folds, "folds", 1, 1_000)
    if trials is not None:
        check.whole(trials, "trials", 1, 1_000_000)
    for what, seconds in (("budget", budget), ("timeout", timeout)):
        if seconds is not None and not seconds > 0:
            raise ValueError(f"{what} must be above 0 seconds, or None for no limit, not {seconds!r}")
    scorer = Scorer(metric or ("log_loss" if isinstance(data, Comparisons) else "ndcg@10"), data, test)
    first: list[SettingsPoint] = []
    if space is None:
        first, space = default_space(model, "comparisons" if isinstance(data, Comparisons) else "interactions")
    total, proposed = proposals(model, sampler, space, first, trials, seed, scorer.better)
    parts = [scorer.split(seed + fold) for fold in range(folds)]
    work = _TrialWork(model, scorer, parts, seed, budget)
    finished = FinishedWork(path, "trial")
    about_data = {
        "kind": "comparisons" if isinstance(data, Comparisons) else "interactions",
        "data": data_fingerprint(data),
    }
    question = (about_data["data"], scorer.name, test, folds, seed)
    done: list[Trial] = []
    end = math.inf if timeout is None else time.perf_counter() + timeout
    with Bar(total=total, desc="tune", disable=None if show_progress else True) as bar:
        while len(done) < total and time.perf_counter() < end:
            done.append(work.result(proposed(done), finished, question))
            bar.update()
            scores = [scorer.better * trial.score for trial in done if trial.scores]
            if scores:
                bar.set_postfix_str(f"best {scorer.name} {scorer.better * max(scores):.4f}")
    return TuneResult(model, done, scorer.name, scorer.better, rule, about_data)


class Scorer:
    """The criterion of ``tune``: how data is split, the score, and which direction is better."""

    def __init__(self, name: str, data: Data, test: float = 0.1) -> None:
        self.name, self.data, self.test = name, data, test
        base, _, length = name.partition("@")
        lists = base in TOP_N_MEASURES and (not length or (length.isdecimal() and int(length) > 0))
        if isinstance(data, Comparisons):
            if name not in _OF_COMPARISONS:
                raise ValueError(f"cannot tune {name!r} on comparisons; choose one of {', '.join(_OF_COMPARISONS)}")
        elif name not in MEASURES and not lists:
            raise ValueError(
                f"cannot tune {name!r}; choose one of {', '.join(MEASURES)}, or one of {', '.join(TOP_N_MEASURES)}, "
                "with a length such as 'ndcg@10'"
            )
        self.better = measure_of(name).better
        if not self.better:
            raise ValueError(f"settings cannot be chosen by {name!r}: more of it is neither better nor worse")

    def split(self, seed: int) -> tuple[Data, Data]:
        """Split the data into a training and a validation part."""
        if self.name in MEASURES and isinstance(self.data, Interactions):
            return self.data.leave_one_out(seed=seed)
        return self.data.split(test=self.test, seed=seed)

    def score(self, model: Any, train: Data, held_out: Data, seed: int) -> tuple[float, float]:
        """Return the score of a fitted model and its standard error (NaN where there is none)."""
        base, _, length = self.name.partition("@")
        if isinstance(held_out, Comparisons) or isinstance(train, Comparisons) or base in MEASURES:
            result = evaluate(model, train, held_out, seed)
        else:
            result = evaluate_top_n(model, train, held_out, int(length or 10), seed=seed)
        return result[base], result.errors.get(base, math.nan)


@dataclass(frozen=True)
class _TrialWork:
    """Fits and scores one trial after the other."""

    model: Any
    scorer: Scorer
    parts: Sequence[tuple[Data, Data]]
    seed: int
    budget: float | None

    def result(self, settings: SettingsPoint, finished: FinishedWork, question: Any) -> Trial:
        """Return the stored trial, or run and store it."""
        try:
            model = copied(self.model, **settings)
            described = about(model)
        except Exception as error:
            status, message = failure(error, f"trial with {settings}")
            return Trial(settings, status=status, message=message)
        described["settings"].pop("num_threads", None)  # the result does not depend on it
        trial = finished.load(partial(from_record, settings), described, question)
        if trial is not None and not worth_another_try(trial.status, trial.seconds, self.budget, retry=False):
            return trial
        trial = self._tried(model, settings)
        finished.save(described, question, values=plain(asdict(trial)))
        return trial

    def _tried(self, model: Any, settings: SettingsPoint) -> Trial:
        start = time.perf_counter()
        scores, errors = [], []
        status, message = "done", ""
        try:
            with time_limit(self.budget):
                for fold, (train, held_out) in enumerate(self.parts):
                    fitted = model if fold == 0 else copied(model)
                    fitted.fit(train, show_progress=False)
                    score, error = self.scorer.score(fitted, train, held_out, self.seed + fold)
                    if not math.isfinite(score):
                        raise ValueError(f"{self.scorer.name} is not defined on the validation split")
                    scores.append(score)
                    errors.append(error)
        except Exception as error:
            status, message = failure(error, f"trial with {settings}")
        seconds = time.perf_counter() - start
        if status != "done":
            return Trial(settings, (), math.nan, seconds, status, message)
        spread = float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else errors[0]
        return Trial(settings, tuple(scores), spread, seconds)
