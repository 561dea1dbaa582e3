"""Top-N over the whole catalogue: SAD and BPR beside EASE, ALS, implicit's BPR and popularity.

Every model tries the same number of settings, drawn from its declared space, on the same validation split inside the
training part of the first seed; the best of them is then fitted to the training part of every seed. Test data is seen
once by each, when its settings are chosen.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sadrec import BPR, SAD, Interactions
from sadrec.evaluation import TuneResult, evaluate_top_n, grid_points, tune
from sadrec.models import DivergedError
from studies._tools import (
    Record,
    Unit,
    digest,
    markdown_table,
    run,
    settings_of,
    summarise,
    whole,
    write_tables,
    write_whole,
)
from studies.baselines import BASELINES, BaselineError, make

log = logging.getLogger(__name__)

SGD_SPACE: Mapping[str, Sequence[Any]] = {
    "factors": (64, 128, 256),
    "iterations": (40, 60),
    "learning_rate": (0.05, 0.08),
    "regularization": (0.008, 0.01, 0.012, 0.014, 0.018, 0.025),
    "negative_candidates": (4, 6, 8, 12),
    "bias": (False, True),
    "user_balance": (0.0, 0.2, 0.3),
}
SPACES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "sad": {**SGD_SPACE, "rival_regularization": (0.0003, 0.001, 0.003)},
    "bpr": SGD_SPACE,
    "ease": {"regularization": (500.0, 25.0, 50.0, 100.0, 150.0, 200.0, 300.0, 400.0, 650.0, 800.0, 1000.0, 2000.0)},
    "als": {
        "factors": (32, 64, 128, 256),
        "regularization": (0.1, 1.0, 5.0, 10.0, 20.0, 40.0),
        "alpha": (1.0, 2.0, 5.0, 10.0),
    },
    "implicit-bpr": {
        "factors": (32, 64, 128),
        "iterations": (50, 100, 200),
        "learning_rate": (0.01, 0.03, 0.05, 0.1),
        "regularization": (0.001, 0.005, 0.01, 0.02, 0.05),
    },
    "popularity": {},
}
"""What each model is tuned over; all values of a setting are equally likely."""

START: Mapping[str, Mapping[str, Any]] = {
    "sad": {
        "factors": 128,
        "iterations": 40,
        "learning_rate": 0.05,
        "regularization": 0.012,
        "negative_candidates": 8,
        "bias": False,
        "user_balance": 0.3,
        "rival_regularization": 0.001,
    },
    "bpr": {
        "factors": 128,
        "iterations": 40,
        "learning_rate": 0.05,
        "regularization": 0.012,
        "negative_candidates": 8,
        "bias": False,
        "user_balance": 0.3,
    },
    "ease": {"regularization": 500.0},
    "als": {"factors": 64, "regularization": 5.0, "alpha": 2.0},
    "implicit-bpr": {"factors": 64, "iterations": 100, "learning_rate": 0.05, "regularization": 0.01},
    "popularity": {},
}
"""The first trial of each model."""

TITLES = {"sad": "SAD", "bpr": "BPR (ours)"} | {
    key: BASELINES[key].title for key in ("ease", "als", "implicit-bpr", "popularity")
}
UNTUNED = {"sad": "SAD, defaults", "bpr": "BPR (ours), defaults"}
METRIC = "ndcg@10"
MEASURES = ("ndcg@10", "recall@10", "recall@50", "hit_rate@10", "coverage@10", "popularity_bias@10", "seconds")

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 2


@dataclass(frozen=True, eq=False)
class TopNStudy:
    """The results of the study.

    Attributes
    ----------
    summary
        Mean and spread of every measure of every model over the seeds, on test data.
    tuned
        The trials of each model on validation data, and the settings chosen.
    report
        The Markdown report; tables are in the same folder.
    """

    summary: pl.DataFrame
    tuned: Mapping[str, TuneResult]
    report: Path


def top_n_study(
    folder: str | Path,
    data: Interactions,
    name: str,
    *,
    models: Sequence[str] = tuple(TITLES),
    trials: int = 12,
    seeds: int = 3,
    spaces: Mapping[str, Mapping[str, Sequence[Any]]] = SPACES,
    start: Mapping[str, Mapping[str, Any]] = START,
    num_threads: int = 0,
    show_progress: bool = True,
) -> TopNStudy:
    """Tune every model on a validation split, then compare them on test data over several seeds.

    Parameters
    ----------
    folder
        Where tables and report are written; records of finished fits are kept in ``runs``, and a study that was killed
        continues from them.
    data
        What people did.
    name
        Of the data set, for files and report.
    models
        Which ones, of :data:`SPACES`.
    trials
        Settings tried by each model, its start included; a model with fewer settings tries them all.
    seeds
        Random splits, 80 % to train on and 20 % to test; settings are chosen inside the training part of the first.
    spaces, start
        Values by setting of each model, and what it tries first.
    num_threads
        Threads of a fit; 0 means all cores.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    unknown = [model for model in models if model not in TITLES]
    if unknown or not models:
        raise ValueError(f"models must be some of {', '.join(TITLES)}, not {unknown or 'none'}")
    whole(trials, "trials", least=1)
    whole(seeds, "seeds", least=1)
    folder = Path(folder)
    splits = [data.split(test=0.2, seed=seed) for seed in range(seeds)]
    tuned: dict[str, TuneResult] = {}
    notes: dict[str, str] = {}
    rows: list[tuple[str, Mapping[str, float | None]]] = []

    def measure(key: str, title: str, settings: Mapping[str, Any]) -> None:
        """Fit a model to the training part of every seed and measure it on test data."""
        units = [
            _unit(
                f"{name}-{key}-{'chosen' if settings else 'default'}-{seed}",
                _make(key, settings, seed, num_threads),
                parts,
                seed,
            )
            for seed, parts in enumerate(splits)
        ]
        records = run(folder, units, f"{name}, {title}", show_progress=show_progress)
        rows.extend((title, record["figures"]) for record in records)

    for key in dict.fromkeys(models):
        result = tune(
            _make(key, {}, 0, num_threads),
            splits[0][0],
            metric=METRIC,
            sampler="grid",
            space=settings_to_try(key, spaces[key], start[key], trials),
            test=0.125,
            seed=1,
            path=folder / "runs",
            prune=False,
            show_progress=show_progress,
        )
        try:
            if not any(trial.scores for trial in result.trials):
                raise BaselineError(result.trials[0].message)
            measure(key, TITLES[key], result.settings)
        except (BaselineError, DivergedError) as error:
            notes[TITLES[key]] = str(error).splitlines()[0]
            log.warning("%s is left out: %s", key, notes[TITLES[key]])
        else:
            tuned[key] = result
    for key, title in UNTUNED.items():
        if key in tuned:
            measure(key, title, {})
    summary = summarise(rows, notes)
    table = write_tables(folder, name, summary, MEASURES)
    report = folder / f"{name}-report.md"
    write_whole(report, _report(data, name, table, tuned, notes, trials, seeds))
    return TopNStudy(summary, tuned, report)


def settings_to_try(
    key: str, space: Mapping[str, Sequence[Any]], start: Mapping[str, Any], trials: int
) -> list[dict[str, Any]]:
    """Return the settings a model tries: its start, then points of its space drawn at random, none twice.

    Examples
    --------
    >>> settings_to_try("ease", {"regularization": (100.0, 500.0)}, {"regularization": 500.0}, 5)
    [{'regularization': 500.0}, {'regularization': 100.0}]
    """
    points = [dict(start)]
    if space:
        drawn = grid_points(space, trials, seed=sum(map(ord, key)))
        points += [point for point in drawn if point != points[0]]
    return points[:trials]


def _make(key: str, settings: Mapping[str, Any], seed: int, num_threads: int) -> Any:
    """Make a model that is not fitted."""
    ours = {"sad": SAD, "bpr": BPR}.get(key)
    if ours is not None:
        return ours(**settings, random_state=seed, num_threads=num_threads)
    common = {"random_state": seed, "num_threads": num_threads}
    known: dict[str, Any] = {name: value for name, value in common.items() if name in BASELINES[key].defaults}
    return make(key, **settings, **known)


def _unit(name: str, model: Any, parts: tuple[Interactions, Interactions], seed: int) -> Unit:
    """Return the unit that fits a model and evaluates its lists."""
    train, held_out = parts
    settings = {name: value for name, value in settings_of(model, train).items() if name != "num_threads"}
    about = {"model": type(model).__name__, "settings": settings}

    def compute() -> Record:
        begin = time.perf_counter()
        model.fit(train, show_progress=False)
        seconds = getattr(model, "facts", {}).get("fit_seconds", time.perf_counter() - begin)
        figures = {**evaluate_top_n(model, train, held_out, N=(10, 50), seed=seed), "seconds": round(seconds, 2)}
        return {"figures": {measure: figures.get(measure) for measure in MEASURES}}

    identity = {"format": FORMAT, "data": digest(train, held_out), **about, "seed": seed}
    return Unit(name, identity, compute)


def _report(
    data: Interactions,
    name: str,
    table: str,
    tuned: Mapping[str, TuneResult],
    notes: Mapping[str, str],
    trials: int,
    seeds: int,
) -> str:
    rows = []
    for key, result in tuned.items():
        shown = ", ".join(f"{setting}={value!r}" for setting, value in result.settings.items())
        rows.append([TITLES[key], len(result.trials), f"{result.score:.4f}", shown])
    parts = [
        f"# Top-N on {name}",
        f"{data!r}; random 80/20, mean and standard deviation over {seeds} seeds; what was seen in training is left "
        f"out of the lists, everything else competes. Each model tried up to {trials} settings on one validation split "
        "inside the training part of the first seed. A popularity bias of 0 means lists as popular as what people "
        "chose themselves; seconds are those of one fit, on a machine that may have been busy.",
        table.rstrip(),
        markdown_table(["Model", "trials", "best validation ndcg@10", "chosen"], rows, numbers=(1, 2)),
        *(f"{title}: {note}" for title, note in notes.items()),
    ]
    return "\n\n".join(parts) + "\n"
