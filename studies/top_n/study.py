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
from sadrec.evaluation import evaluate_top_n, grid_points
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
FORMAT = 1


@dataclass(frozen=True, eq=False)
class TopNStudy:
    """The results of the study.

    Attributes
    ----------
    summary
        Mean and spread of every measure of every model over the seeds, on test data.
    chosen
        The settings of each model, chosen on validation data.
    report
        The Markdown report; tables lie beside it.
    """

    summary: pl.DataFrame
    chosen: Mapping[str, Mapping[str, Any]]
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
        goes on from them.
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
    study = _Study(folder, name, num_threads, show_progress)
    splits = [data.split(test=0.2, seed=seed) for seed in range(seeds)]
    inner = splits[0][0].split(test=0.125, seed=1)
    chosen: dict[str, Mapping[str, Any]] = {}
    tried: dict[str, list[Record]] = {}
    notes: dict[str, str] = {}
    rows: list[tuple[str, Mapping[str, float | None]]] = []
    for key in dict.fromkeys(models):
        points = settings_to_try(key, spaces[key], start[key], trials)
        try:
            tried[key] = study.tried(key, points, inner)
            scores = [record["score"] for record in tried[key]]
            best = points[scores.index(max(scores))]
            rows += [(TITLES[key], row) for row in study.tested(f"{key}-test", key, best, splits)]
            chosen[key] = best
        except (BaselineError, DivergedError) as error:
            notes[TITLES[key]] = str(error).splitlines()[0]
            log.warning("%s is left out: %s", key, notes[TITLES[key]])
    for key, title in UNTUNED.items():
        if key in chosen:
            rows += [(title, row) for row in study.tested(f"{key}-default-test", key, {}, splits)]
    summary = summarise(rows, notes)
    table = write_tables(folder, name, summary, MEASURES)
    report = folder / f"{name}-report.md"
    write_whole(report, _report(data, name, table, chosen, tried, notes, trials, seeds))
    return TopNStudy(summary, chosen, report)


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


@dataclass(frozen=True)
class _Study:
    folder: Path
    name: str
    num_threads: int
    show_progress: bool

    def tried(
        self, key: str, points: Sequence[Mapping[str, Any]], parts: tuple[Interactions, Interactions]
    ) -> list[Record]:
        """Score settings on the validation split."""
        units = [
            self.unit(f"{key}-trial-{place:02d}", key, settings, parts, 0, final=False)
            for place, settings in enumerate(points)
        ]
        return run(self.folder, units, f"{self.name}, tuning {key}", show_progress=self.show_progress)

    def tested(
        self, name: str, key: str, settings: Mapping[str, Any], splits: Sequence[tuple[Interactions, Interactions]]
    ) -> list[dict[str, float | None]]:
        """Fit settings to the training part of every seed and measure them on test data."""
        units = [
            self.unit(f"{name}-{seed}", key, settings, parts, seed, final=True) for seed, parts in enumerate(splits)
        ]
        records = run(self.folder, units, f"{self.name}, testing {key}", show_progress=self.show_progress)
        return [
            {**{measure: record["figures"].get(measure) for measure in MEASURES}, "seconds": record["seconds"]}
            for record in records
        ]

    def unit(
        self,
        name: str,
        key: str,
        settings: Mapping[str, Any],
        parts: tuple[Interactions, Interactions],
        seed: int,
        final: bool,
    ) -> Unit:
        """Return the unit that fits a model and evaluates its lists."""
        train, held_out = parts
        model = _make(key, settings, seed, self.num_threads)
        about = settings_of(model, train)
        about.pop("num_threads", None)

        def compute() -> Record:
            begin = time.perf_counter()
            try:
                model.fit(train, show_progress=False)
            except DivergedError:
                if final:
                    raise
                return {"settings": dict(settings), "seconds": round(time.perf_counter() - begin, 2), "score": 0.0}
            seconds = getattr(model, "facts", {}).get("fit_seconds", time.perf_counter() - begin)
            result = evaluate_top_n(model, train, held_out, N=(10, 50), seed=seed)
            record = {"settings": dict(settings), "seconds": round(seconds, 2)}
            if not final:
                return {**record, "score": result[METRIC]}
            return {**record, "figures": dict(result), "error": result.errors[METRIC]}

        identity = {"format": FORMAT, "data": digest(train, held_out), "model": key, "settings": about}
        return Unit(f"{self.name}-{name}", {**identity, "seed": seed, "final": final}, compute)


def _report(
    data: Interactions,
    name: str,
    table: str,
    chosen: Mapping[str, Mapping[str, Any]],
    tried: Mapping[str, Sequence[Record]],
    notes: Mapping[str, str],
    trials: int,
    seeds: int,
) -> str:
    rows = []
    for key, settings in chosen.items():
        shown = ", ".join(f"{setting}={value!r}" for setting, value in settings.items())
        best = max(record["score"] for record in tried[key])
        rows.append([TITLES[key], len(tried[key]), f"{best:.4f}", shown])
    parts = [
        f"# Top-N on {name}",
        f"{data!r}; random 80/20, mean and standard deviation over {seeds} seeds; what was seen in training is left "
        f"out of the lists, everything else competes. Each model tried up to {trials} settings on one validation split "
        "inside the training part of the first seed. A popularity bias of 0 means lists as popular as what people "
        "chose themselves; seconds are those of one fit, on a machine that may have been busy.",
        table.rstrip(),
        markdown_table(["Model", "trials", "best validation nDCG@10", "chosen"], rows, numbers=(1, 2)),
        *(f"{title}: {note}" for title, note in notes.items()),
    ]
    return "\n\n".join(parts) + "\n"
