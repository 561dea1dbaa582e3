"""One table over all comparison sets: what each model predicts of comparisons it has not seen, and in what time."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sadrec import Comparisons
from studies._tools import Record, Unit, digest, markdown_table, paired, run, write_whole
from studies.comparisons.baselines import weights_of
from studies.comparisons.models import MODELS, USUAL, Parts, losses, titles, warm_up

By = Literal["row", "pairing"]
FILE = "comparisons.parquet"

# The log loss that SAD() should reach where rows are held out; BT's or a coin's plus SLACK is asked for everywhere.
BARS = {
    "pokemon": 0.240,
    "ptcg-2026": 0.668,
    "corewar": 0.470,
    "gambles-2012": 0.334,
    "bc-hots": 0.52,
    "bc-tennis": 0.552,
    "nfl-season": 0.658,
    "sushi-users": 0.446,
    "llmfao": 0.503,
}
SLACK = 0.003
OURS = "sad"
WITHIN: dict[By, str] = {"row": "Comparisons held out", "pairing": "Pairings held out"}

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 3


@dataclass(frozen=True)
class Figures:
    """What a model came to on one set: means over the seeds.

    Attributes
    ----------
    loss, accuracy, seconds
        Log loss and accuracy on the test part; what fitting took, with the choice of settings.
    difference, error
        Log loss less that of ``SAD()`` on the same rows, and its standard error over those rows (the mean over seeds:
        the seeds share rows, so that more of them do not make it smaller); None without ``SAD()``.
    seeds
        How many.
    """

    loss: float
    accuracy: float
    seconds: float
    difference: float | None
    error: float | None
    seeds: int


Table = Mapping[tuple[str, By], Mapping[str, Figures]]


def find_sets(folder: Path, sets: Sequence[str] = ()) -> dict[str, Path]:
    """Return the comparison sets in a folder, or in a folder of it, by name.

    Examples
    --------
    >>> find_sets(Path("nowhere"), ["chess"])
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no chess/comparisons.parquet in 'nowhere': there are no sets
    """
    here = [folder / FILE] if (folder / FILE).is_file() else []
    paths = sorted([*here, *folder.glob(f"*/{FILE}"), *folder.glob(f"*/*/{FILE}")])
    known = {path.parent.name: path for path in paths}
    for name in sets:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there are no sets"
            raise FileNotFoundError(f"there is no {name}/{FILE} in {str(folder)!r}: {there}")
    return {name: known[name] for name in sets or known}


def parts_of(data: Comparisons, seed: int, by: By) -> Parts:
    """Split comparisons: half to learn from, a fifth to choose settings on, the rest to test."""
    train, rest = data.split(test=0.5, seed=seed, by=by)
    test, validation = rest.split(test=0.4, seed=seed, by=by)
    return Parts(train, validation, test)


def comparisons_study(
    folder: Path,
    data_folder: Path,
    *,
    sets: Sequence[str] = (),
    models: Sequence[str] = USUAL,
    seeds: Sequence[int] = (0, 1, 2),
    by: Sequence[By] = ("row", "pairing"),
    most: int | None = None,
    finished: bool = False,
    show_progress: bool = True,
) -> Table:
    """Fit every model to every split of every set, and write ``report.md``.

    Parameters
    ----------
    folder
        Where the report is written; records of finished fits are kept in ``runs``, and a study that was killed
        continues from them.
    data_folder
        Has ``NAME/comparisons.parquet`` for each data set, itself or in a folder of it.
    sets
        Names of data sets; by default all that are there.
    models
        Names of models.
    seeds
        Of the splits and of the models.
    by
        What is held out: single comparisons ("row") or all comparisons of two items ("pairing").
    most
        Take at most so many comparisons of each set.
    finished
        Fit nothing: report what is done.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    units, places = [], []
    for name, path in find_sets(data_folder, sets).items():
        data = Comparisons.read(path, ties="drop")
        if most is not None and len(data) > most:
            data, _ = data.split(test=1 - most / len(data), seed=0)
        for seed in seeds:
            for way in by:
                parts = parts_of(data, seed, way)
                units += [_unit(name, parts, model, seed, way) for model in models]
                places += [(name, way, seed, model) for model in models]
    if finished:
        there = [(folder / "runs" / f"{unit.name}.result").is_file() for unit in units]
        units = [unit for unit, done in zip(units, there, strict=True) if done]
        places = [place for place, done in zip(places, there, strict=True) if done]
    records = run(folder, units, "comparisons", show_progress=show_progress)
    table = summary(places, records)
    write_whole(folder / "report.md", report(table, models))
    return table


def _unit(name: str, parts: Parts, model: str, seed: int, by: By) -> Unit:
    """Return the unit that fits a model and keeps the log loss of every test row."""

    def compute() -> Record:
        warm_up()
        start = time.perf_counter()
        predict, chosen = MODELS[model].fit(parts, seed)
        seconds = time.perf_counter() - start
        p, weight = predict(parts.test), weights_of(parts.test)
        right = (p > 0.5) + 0.5 * (p == 0.5)
        loss = losses(p)
        return {
            "loss": float(np.average(loss, weights=weight)),
            "accuracy": float(np.average(right, weights=weight)),
            "seconds": seconds,
            "chosen": dict(chosen),
            "weighted": [float(f"{value:.5g}") for value in loss * weight / weight.mean()],
        }

    identity = {
        "format": FORMAT,
        "data": digest(parts.train, parts.validation, parts.test),
        "model": model,
        "tried": MODELS[model].tried,
        "seed": seed,
    }
    return Unit(f"{name}-{by}-{seed}-{model}", identity, compute)


def summary(places: Sequence[tuple[str, By, int, str]], records: Sequence[Record]) -> Table:
    """Average over seeds, model by model, and compare with ``SAD()`` row by row."""
    by_place = dict(zip(places, records, strict=True))
    gathered: dict[tuple[str, By], dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for (name, way, seed, model), record in by_place.items():
        ours = by_place.get((name, way, seed, OURS))
        difference, error = (np.nan, np.nan) if ours is None else paired([record["weighted"]], [ours["weighted"]])
        entry = (record["loss"], record["accuracy"], record["seconds"], difference, error)
        gathered[name, way][model].append(entry)
    return {
        key: {model: _figures(np.array(entries, np.float64)) for model, entries in of_set.items()}
        for key, of_set in gathered.items()
    }


def _figures(entries: Any) -> Figures:
    means = [float(value) for value in entries.mean(axis=0)]
    compared = [None if np.isnan(value) else value for value in means[3:]]
    return Figures(means[0], means[1], means[2], compared[0], compared[1], len(entries))


def bar_of(name: str, by: By, figures: Mapping[str, Figures]) -> float | None:
    """Return the log loss that ``SAD()`` should stay at or below; None when neither a bar nor BT is known.

    It is the lower one of the set's own bar (``BARS``, where rows are held out) and what is asked on every set: the
    better one of Bradley-Terry and a coin, plus ``SLACK``.
    """
    simple = [figures[model].loss + SLACK for model in ("bt", "coin") if model in figures]
    own = [BARS[name]] if by == "row" and name in BARS else []
    return min(simple + own, default=None)


def report(table: Table, models: Sequence[str]) -> str:
    """Return the tables in Markdown: log loss of all models, set by set; then everything."""
    pieces = []
    for way, heading in WITHIN.items():
        of_way = {name: figures for (name, by), figures in table.items() if by == way}
        if of_way:
            shown = [model for model in models if any(model in figures for figures in of_way.values())]
            rows = [_short(name, way, figures, shown) for name, figures in of_way.items()]
            header = ["set", *titles(shown), "bar", "SAD() meets it"]
            numbers = range(1, len(header) - 1)
            pieces.append(f"## {heading}: log loss\n\n{markdown_table(header, rows, numbers)}\n")
    header = ["set", "held out", "model", "log loss", "less that of SAD()", "accuracy", "seconds", "seeds"]
    rows = [
        [name, way, MODELS[model].title, *_long(figures[model])]
        for (name, way), figures in table.items()
        for model in models
        if model in figures
    ]
    pieces.append(f"## Everything\n\n{markdown_table(header, rows, range(3, len(header)))}\n")
    return "\n".join(pieces)


def _short(name: str, by: By, figures: Mapping[str, Figures], models: Sequence[str]) -> list[str]:
    least = min(entry.loss for entry in figures.values())
    cells = []
    for model in models:
        text = f"{figures[model].loss:.4f}" if model in figures else ""
        cells.append(f"**{text}**" if text and figures[model].loss < least + 0.0005 else text)
    bar = bar_of(name, by, figures)
    if bar is None or OURS not in figures:
        return [name, *cells, "", ""]
    over = figures[OURS].loss - bar
    return [name, *cells, f"{bar:.4f}", "yes" if over <= 0 else f"no, by {over:.4f}"]


def _long(figures: Figures) -> list[str]:
    known = figures.difference is not None and figures.error is not None
    difference = f"{figures.difference:+.4f} ± {figures.error:.4f}" if known else ""
    shown = f"{100 * figures.accuracy:.1f} %"
    return [f"{figures.loss:.4f}", difference, shown, f"{figures.seconds:.1f}", str(figures.seeds)]
