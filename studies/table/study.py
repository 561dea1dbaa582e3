"""The paper's evaluation from end to end: settings chosen, every model on every leave-one-out set, examples."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sadrec import Interactions
from sadrec.evaluation import CompareResult, TuneResult, compare, tune
from studies.baselines import BASELINES
from studies.table.calibration import Calibration, calibration
from studies.table.consistency import Consistency, consistency_report
from studies.table.data import StudyData
from studies.table.models import OURS, StudyModel, study_models

log = logging.getLogger(__name__)
CHOSEN_BY = "m1"


@dataclass(frozen=True)
class Limits:
    """A number for all models, and for some of them another: by name, or by name and factors.

    >>> limits = Limits(20, {"ncf": 1, "sad@500": 2})
    >>> [limits.of(model) for model in study_models(["ncf"], [64, 500])[:2]]
    [20, 2]
    """

    usual: int
    by_name: Mapping[str, int] = field(default_factory=dict)

    def of(self, model: StudyModel) -> int:
        """Return the number of one model."""
        return self.by_name.get(f"{model.name}@{model.factors}", self.by_name.get(model.name, self.usual))

    def check(self, factors: Sequence[int]) -> None:
        """Refuse names that no model has, which would pass unseen."""
        known = [*OURS, *BASELINES, *(f"{name}@{k}" for name in OURS for k in factors)]
        for name in self.by_name:
            if name not in known:
                raise ValueError(
                    f"there is no model {name!r} to give a number of its own: there are {', '.join(known)}"
                )


SPLITS, TRIALS, BUDGETS = Limits(20), Limits(6), Limits(1800)


@dataclass(frozen=True)
class TableStudy:
    """The results of the study.

    Attributes
    ----------
    data
        What it was made on.
    train
        The training part of the first leave-one-out set.
    models
        The rows of the table.
    settings
        The settings of every row, chosen or given.
    searches
        The trials, by the name of the model; a model without a choice has none.
    comparison
        Every row on every leave-one-out set.
    splits, trials
        How many were asked for.
    consistency
        SAD against BPR on the first set, pair by pair; None without ratings, or when one of the two did not run.
    calibrations
        Of SAD and BPR on the first set, as far as they ran: held-out against sampled items.
    """

    data: StudyData
    train: Interactions
    models: list[StudyModel]
    settings: Mapping[str, Mapping[str, Any]]
    searches: Mapping[str, TuneResult]
    comparison: CompareResult
    splits: Limits
    trials: Limits
    consistency: Consistency | None
    calibrations: Mapping[str, Calibration]


def table_study(
    data: StudyData,
    folder: str | Path,
    *,
    baselines: Sequence[str],
    factors: Sequence[int] = (64, 500),
    splits: Limits = SPLITS,
    trials: Limits = TRIALS,
    budgets: Limits = BUDGETS,
    given: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    show_progress: bool = True,
) -> TableStudy:
    """Choose settings and evaluate every model on every leave-one-out set.

    Settings are chosen by m1 on a validation set held out of the training part of the first leave-one-out set: the
    held-out items themselves have no say.

    Parameters
    ----------
    data
        See :func:`~studies.table.data.load_study_data`.
    folder
        Finished pieces of work are kept in ``runs`` below it, so that a killed study continues.
    baselines, factors, given
        See :func:`~studies.table.models.study_models`.
    splits, trials, budgets
        Leave-one-out sets, settings to try, and seconds for one fit and its evaluation.
    seed
        Set s is drawn with ``seed + s``.
    progress
        Show progress bars.
    """
    models = study_models(baselines, factors, given)
    runs = Path(folder) / "runs"
    count = max(splits.of(model) for model in models)
    sets = data.splits(count, seed)
    train, held_out = sets[0]()
    for limits in (splits, trials, budgets):
        limits.check(factors)
    for model in models:
        model.check(model.points(1, seed)[0], train)
    searches: dict[str, TuneResult] = {}
    settings: dict[str, Mapping[str, Any]] = {}
    for model in models:
        points = model.points(trials.of(model), seed)
        if len(points) > 1 and model.name not in searches:
            log.info("%s: trying %d settings", model.name, len(points))
            searches[model.name] = tune(
                model.make({}), train, metric=CHOSEN_BY, sampler="grid", space=points, rule="one_error", seed=seed,
                path=runs, budget=budgets.of(model), show_progress=show_progress,
            )  # fmt: skip
        settings[model.title] = _chosen(searches.get(model.name), points)
    found: list[Any] = []
    for number in sorted({splits.of(model) for model in models}, reverse=True):
        chosen = [model for model in models if splits.of(model) == number]
        found += compare(
            {model.title: model.make(settings[model.title]) for model in chosen},
            splits=sets[:number],
            seed=seed,
            path=runs,
            budget={model.title: budgets.of(model) for model in chosen},
            show_progress=show_progress,
        ).runs
    order = [model.title for model in models]
    comparison = CompareResult(sorted(found, key=lambda run: (run.split, order.index(run.model))))
    first = {model.name: model for model in reversed(models) if model.name in OURS}
    # one that failed or ran out of time has a row that says so, and is not tried once more
    ran = {run.model for run in comparison.runs if run.split == 0 and run.status == "done"}
    fitted = {
        first[name].title: first[name].make(settings[first[name].title]).fit(train, show_progress=False)
        for name in OURS
        if first[name].title in ran
    }
    pairs = None
    if len(fitted) == len(OURS) and train.has_ratings:
        sad, bpr = fitted.values()
        pairs = consistency_report(sad, bpr, train, held_out, names=("SAD", "BPR"))
    curves = {title: calibration(model, train, held_out, pairs="sampled", seed=seed) for title, model in fitted.items()}
    return TableStudy(data, train, models, settings, searches, comparison, splits, trials, pairs, curves)


def _chosen(search: TuneResult | None, points: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
    if search is None or not any(trial.scores for trial in search.trials):
        return points[0] if points else {}
    return search.settings
