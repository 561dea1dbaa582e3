"""What the studies share: units of work that resume, tables and pictures.

Only this module takes private names of sadrec; everything else in this folder uses what a stranger would.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sadrec import SAD, Comparisons, Interactions
from sadrec._core.check import whole
from sadrec._core.files import fingerprint, plain, write_whole
from sadrec._core.picture import new_figure
from sadrec._core.progress import Bar
from sadrec._core.record import CheckpointError, Records, locked
from sadrec.cli.output import resumable
from sadrec.evaluation.comparisons import margins_and_probabilities
from sadrec.evaluation.pictures import COLOURS
from sadrec.evaluation.plan import Plan, check_held_out
from sadrec.evaluation.protocol import Source, source_of
from sadrec.evaluation.tables import render
from sadrec.models import settings_for

__all__ = [
    "COLOURS",
    "Bar",
    "Plan",
    "Record",
    "Source",
    "Unit",
    "check_held_out",
    "digest",
    "fingerprint",
    "margins_and_probabilities",
    "markdown_table",
    "new_figure",
    "paired",
    "plain",
    "png_of",
    "resumable",
    "run",
    "settings_of",
    "source_of",
    "summarise",
    "whole",
    "write_tables",
    "write_whole",
]

Record = dict[str, Any]
RUNS, KIND = "runs", "result"


@dataclass(frozen=True)
class Unit:
    """A piece of a study that is computed at once.

    Attributes
    ----------
    name
        The name of its file, without the ending.
    identity
        Everything its result depends on, in plain values; a file with another identity is computed again.
    compute
        Computes the result: plain values by name. With several processes it must be possible to pickle it.
    """

    name: str
    identity: Mapping[str, Any]
    compute: Callable[[], Mapping[str, Any]]


def run(
    folder: Path, units: Sequence[Unit], title: str, *, workers: int = 1, show_progress: bool = True
) -> list[Record]:
    """Compute the units whose files are not there yet, and return the results of all, in order.

    Parameters
    ----------
    folder
        Where the study is kept; results are in ``runs``, each written whole or not at all. Killed, the same study
        continues from there.
    units
        What to compute.
    title
        The name of the progress bar.
    workers
        How many processes; 0 means one per core. The results do not depend on it.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    workers = min(whole(workers, "workers") or os.cpu_count() or 1, max(len(units), 1))
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the results")
    results: dict[int, Record] = {}
    bar = Bar(total=len(units), desc=title, unit="fit", disable=None if show_progress else True)
    with bar, locked(folder / RUNS):
        for place, result in _results(folder / RUNS, units, workers):
            results[place] = result
            bar.set_postfix_str(units[place].name)
            bar.update()
    return [results[place] for place in range(len(units))]


def _results(folder: Path, units: Sequence[Unit], workers: int) -> Iterator[tuple[int, Record]]:
    """Yield the place of each unit and its result, as they are done."""
    if workers == 1:
        for place, unit in enumerate(units):
            yield place, _result(folder, unit)
        return
    # Spawned: a fork of a process with threads may hang.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        # Processes inherit the mask: Ctrl-C is left to the parent, which lets them finish what they are writing.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            tasks = {pool.submit(_result, folder, unit): place for place, unit in enumerate(units)}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for task in as_completed(tasks):
            yield tasks[task], task.result()
    finally:
        # After Ctrl-C the units that are being computed are finished, the others never started.
        pool.shutdown(wait=True, cancel_futures=True)


def _result(folder: Path, unit: Unit) -> Record:
    records = Records(folder, KIND, unit.identity)
    try:
        known = records.read(unit.name)
    except CheckpointError:  # of other settings or other data
        known = None
    if known is not None:
        return known[0]
    result: Record = plain(unit.compute())
    records.write(unit.name, result)
    return result


def settings_of(model: Any, data: Any) -> Record:
    """Return the settings that a fit of the model to the data would use, with everything resolved if it can be."""
    return dict(settings_for(model, data).as_dict() if isinstance(model, SAD) else model.get_params())


def digest(*parts: Interactions | Comparisons) -> list[str]:
    """Return a fingerprint of each part of the data: the same for the same data, whenever it is read."""

    def arrays(part: Interactions | Comparisons) -> tuple[Any, ...]:
        if isinstance(part, Comparisons):
            return part.user_index, part.winner_index, part.loser_index, part.weight
        return part.matrix.indptr.astype("int64"), part.matrix.indices.astype("int64"), part.matrix.data

    return [fingerprint(part.users, part.items, *arrays(part)) for part in parts]


def summarise(rows: Sequence[tuple[str, Mapping[str, float | None]]], notes: Mapping[str, str]) -> pl.DataFrame:
    """Return mean and standard deviation of every measure of every model, as tables are made of.

    Parameters
    ----------
    rows
        A model's name and its figures, once per split.
    notes
        A remark by model.

    Examples
    --------
    >>> summarise([("a", {"m1": 0.5}), ("a", {"m1": 0.7})], {})[["model", "mean", "splits"]].rows()
    [('a', 0.6, 2)]
    """
    long = [
        {"model": model, "measure": measure, "value": value}
        for model, figures in rows
        for measure, value in figures.items()
        if value is not None
    ]
    frame = pl.DataFrame(long, schema={"model": pl.String, "measure": pl.String, "value": pl.Float64})
    grouped = frame.group_by("model", "measure", maintain_order=True).agg(
        mean=pl.col("value").mean(), sd=pl.col("value").std(), splits=pl.len()
    )
    remarks = [notes.get(model, "") for model in grouped["model"]]
    return grouped.with_columns(pl.Series("note", remarks, dtype=pl.String))


def write_tables(folder: Path, name: str, summary: pl.DataFrame, measures: Sequence[str]) -> str:
    """Write a summary as ``name.csv`` and ``name.md`` and return the Markdown."""
    models = summary["model"].unique(maintain_order=True).to_list()
    text = render(summary, models, measures)
    write_whole(folder / f"{name}.csv", _wide(summary, measures).write_csv())
    write_whole(folder / f"{name}.md", text.rstrip() + "\n")
    return text


def paired(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the mean difference of two models on the same rows, and its standard error over the rows of a seed.

    There is a list of values for every seed; both figures are means over the seeds.
    """
    differences = [np.subtract(*rows) for rows in zip(ours, theirs, strict=True)]
    errors = [one.std() / np.sqrt(len(one)) for one in differences]
    return float(np.mean([one.mean() for one in differences])), float(np.mean(errors))


def _wide(summary: pl.DataFrame, measures: Sequence[str]) -> pl.DataFrame:
    """Return a row per model, with mean and standard deviation of every measure at full precision."""
    rows = []
    for (model,), part in summary.group_by("model", maintain_order=True):
        of = {row["measure"]: row for row in part.iter_rows(named=True)}
        figures = {f"{m}{end}": of.get(m, {}).get(key) for m in measures for end, key in (("", "mean"), ("_sd", "sd"))}
        rows.append({"model": model, **figures, "splits": part["splits"].max(), "note": part["note"][0]})
    return pl.DataFrame(rows, infer_schema_length=None)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Iterable[int] = ()) -> str:
    r"""Return a Markdown table, without a line break at its end; columns in ``numbers`` are set to the right.

    >>> print(markdown_table(["a", "b"], [["x|y", 1]], numbers=[1]))
    | a | b |
    |---|---:|
    | x\|y | 1 |
    """
    right = set(numbers)
    rules = "".join("---:|" if place in right else "---|" for place in range(len(header)))
    lines = ["| " + " | ".join(str(cell).replace("|", r"\|") for cell in row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], f"|{rules}", *lines[1:]])


def png_of(figure: Any, dpi: int = 80) -> bytes:
    """Return a figure as a PNG file of few colours, a third of the size."""
    from PIL import Image  # comes with matplotlib

    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()
