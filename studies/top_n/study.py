"""Top-N over the whole catalogue: SAD and BPR beside EASE, ALS, implicit's BPR and popularity.

Every model tries the same number of settings, drawn from its declared space, on the same validation split inside the
training part of the first seed; the best of them is then fitted to the training part of every seed. Test data is seen
once by each, when its settings are chosen.
"""

import logging
import os
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
from studies.top_n.published import PublishedSplit
from studies.top_n.spaces import SPACES, START, Space

log = logging.getLogger(__name__)

TITLES = {"sad": "SAD", "bpr": "BPR (ours)"} | {
    key: BASELINES[key].title for key in ("ease", "als", "implicit-bpr", "popularity")
}
UNTUNED = {"sad": "SAD, defaults", "bpr": "BPR (ours), defaults"}
# A model whose name ends so has its default settings alone, and is not tuned.
DEFAULTS = "-defaults"
METRIC = "ndcg@10"
MEASURES = ("ndcg@10", "recall@10", "recall@50", "hit_rate@10", "coverage@10", "popularity_bias@10", "seconds")
# Those of published splits: recall and nDCG of 20, as the papers have them.
PUBLISHED_METRIC = "ndcg@20"
PUBLISHED_MEASURES = ("recall@20", "ndcg@20", "hit_rate@20", "coverage@20", "popularity_bias@20", "seconds")

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
    data: Interactions | PublishedSplit,
    name: str,
    *,
    models: Sequence[str] = tuple(TITLES),
    trials: int = 12,
    seeds: int = 3,
    spaces: Mapping[str, Space] = SPACES,
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
        What people did, to be split at random; or a split that others published, whose test part is only seen by the
        models with the settings chosen, while validation data is split off its training part.
    name
        Of the data set, for files and report.
    models
        Which ones, of :data:`SPACES`; ``"sad-defaults"`` and ``"bpr-defaults"`` are not tuned.
    trials
        Settings tried by each model, its start included; a model with fewer settings tries them all.
    seeds
        Random splits, 80 % to train on and 20 % to test; settings are chosen inside the training part of the first. For
        a published split, seeds of the models.
    spaces, start
        Values by setting of each model, and what it tries first.
    num_threads
        Threads of a fit; 0 means all cores.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    there_are = (*TITLES, *(f"{key}{DEFAULTS}" for key in UNTUNED))
    unknown = [model for model in models if model not in there_are]
    if unknown or not models:
        raise ValueError(f"models must be some of {', '.join(there_are)}, not {unknown or 'none'}")
    whole(trials, "trials", least=1)
    whole(seeds, "seeds", least=1)
    folder = Path(folder)
    published = isinstance(data, PublishedSplit)
    if isinstance(data, PublishedSplit):
        splits = [(data.train, data.test)] * seeds
    else:
        splits = [data.split(test=0.2, seed=seed) for seed in range(seeds)]
    metric, measures = (PUBLISHED_METRIC, PUBLISHED_MEASURES) if published else (METRIC, MEASURES)
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
                measures,
            )
            for seed, parts in enumerate(splits)
        ]
        records = run(folder, units, f"{name}, {title}", show_progress=show_progress)
        rows.extend((title, record["figures"]) for record in records)

    for key in dict.fromkeys(key for key in models if not key.endswith(DEFAULTS)):
        if key == "ease" and (need := _ease_bytes(splits[0][0])) > _memory() / 2:
            share = f"{need / 2**30:.0f} GiB, more than half of the memory here"
            notes[TITLES[key]] = f"left out: its matrices of items x items take {share}"
            continue
        result = tune(
            _make(key, {}, 0, num_threads),
            splits[0][0],
            metric=metric,
            sampler="grid",
            space=settings_to_try(key, spaces[key], start[key], trials),
            test=0.125,
            seed=1,
            path=folder / "runs",
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
        if key in tuned or f"{key}{DEFAULTS}" in models:
            measure(key, title, {})
    summary = summarise(rows, notes)
    table = write_tables(folder, name, summary, measures)
    report = folder / f"{name}-report.md"
    if isinstance(data, PublishedSplit):
        table = _beside_published(summary, data)
    write_whole(report, _report(data, name, table, tuned, notes, trials, seeds, metric))
    return TopNStudy(summary, tuned, report)


def settings_to_try(key: str, space: Space, start: Mapping[str, Any], trials: int) -> list[dict[str, Any]]:
    """Return the settings a model tries: its start, then points of its space drawn at random, none twice.

    Of several spaces each has as many points, or one more than others.

    Examples
    --------
    >>> settings_to_try("ease", {"regularization": (100.0, 500.0)}, {"regularization": 500.0}, 5)
    [{'regularization': 500.0}, {'regularization': 100.0}]
    >>> settings_to_try("sad", ({"factors": (4, 8)}, {"loss": ("softmax",)}), {"factors": 4}, 3)
    [{'factors': 4}, {'factors': 8}, {'loss': 'softmax'}]
    """
    spaces = (space,) if isinstance(space, Mapping) else space
    points = [dict(start)]
    for place, part in enumerate(spaces):
        share = -(-(trials - len(points)) // (len(spaces) - place))
        drawn = grid_points(part, share + 1, seed=sum(map(ord, key))) if part else []
        points += [point for point in drawn if point != points[0]][:share]
    return points[:trials]


def _ease_bytes(data: Interactions) -> int:
    """Return what EASE needs: a matrix that is inverted in place in double precision, and weights in single."""
    return (8 + 4) * data.shape[1] ** 2


def _memory() -> int:
    """Return how much memory the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _make(key: str, settings: Mapping[str, Any], seed: int, num_threads: int) -> Any:
    """Make a model that is not fitted."""
    ours = {"sad": SAD, "bpr": BPR}.get(key)
    if ours is not None:
        return ours(**settings, random_state=seed, num_threads=num_threads)
    common = {"random_state": seed, "num_threads": num_threads}
    known: dict[str, Any] = {name: value for name, value in common.items() if name in BASELINES[key].defaults}
    return make(key, **settings, **known)


def _unit(name: str, model: Any, parts: tuple[Interactions, Interactions], seed: int, measures: Sequence[str]) -> Unit:
    """Return the unit that fits a model and evaluates its lists."""
    train, held_out = parts
    lengths = sorted({int(measure.partition("@")[2]) for measure in measures if "@" in measure})
    settings = {name: value for name, value in settings_of(model, train).items() if name != "num_threads"}
    about = {"model": type(model).__name__, "settings": settings}

    def compute() -> Record:
        begin = time.perf_counter()
        model.fit(train, show_progress=False)
        seconds = getattr(model, "facts", {}).get("fit_seconds", time.perf_counter() - begin)
        figures = {**evaluate_top_n(model, train, held_out, N=lengths, seed=seed), "seconds": round(seconds, 2)}
        return {"figures": {measure: figures.get(measure) for measure in measures}}

    identity = {"format": FORMAT, "data": digest(train, held_out), **about, "seed": seed}
    return Unit(name, identity, compute)


def _report(
    data: Interactions | PublishedSplit,
    name: str,
    table: str,
    tuned: Mapping[str, TuneResult],
    notes: Mapping[str, str],
    trials: int,
    seeds: int,
    metric: str,
) -> str:
    rows = []
    for key, result in tuned.items():
        shown = ", ".join(f"{setting}={value!r}" for setting, value in result.settings.items())
        rows.append([TITLES[key], len(result.trials), f"{result.score:.4f}", shown])
    if isinstance(data, PublishedSplit):
        split = f"the published split: {data.train!r} to train on, {len(data.test):,} to test"
        drawn, inside = "seeds of the models", "training part"
        split += f"; rows marked (published) are figures of {data.source}, not run here"
    else:
        split, drawn, inside = f"{data!r}; random 80/20", "seeds", "training part of the first seed"
    parts = [
        f"# Top-N on {name}",
        f"{split}; mean and standard deviation over {seeds} {drawn}; what was seen in training is left "
        f"out of the lists, everything else competes. Each model tried up to {trials} settings on one validation split "
        f"inside the {inside}. A popularity bias of 0 means lists as popular as what people "
        "chose themselves; seconds are those of one fit, on a machine that may have been busy.",
        table.rstrip(),
        markdown_table(["Model", "trials", f"best validation {metric}", "chosen"], rows, numbers=(1, 2)),
        *(f"{title}: {note}" for title, note in notes.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _beside_published(summary: pl.DataFrame, data: PublishedSplit) -> str:
    """Return the figures measured here, with four decimals, and below them the published ones."""
    rows: dict[str, dict[str, str]] = {}
    for model, measure, mean, sd in summary.select("model", "measure", "mean", "sd").iter_rows():
        digits = 0 if measure == "seconds" else 4
        shown = f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")
        rows.setdefault(model, {})[measure] = shown
    for model, figures in data.figures.items():
        rows[f"{model} (published)"] = {measure: f"{value:.4f}" for measure, value in figures.items()}
    cells = [[model, *(row.get(measure, "") for measure in PUBLISHED_MEASURES)] for model, row in rows.items()]
    return markdown_table(["Model", *PUBLISHED_MEASURES], cells, numbers=range(1, 1 + len(PUBLISHED_MEASURES)))
