"""Long studies in small pieces: every finished unit is a file, and a killed study goes on where it was."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from tqdm import tqdm

from sadrec import SAD
from sadrec.evaluation._fitting import plain
from sadrec.evaluation._store import write_atomically
from sadrec.evaluation.tables import render

Record = dict[str, Any]
RUNS = "runs"


@dataclass(frozen=True)
class Unit:
    """A piece of a study that is computed at once.

    Attributes
    ----------
    name
        Of its file, without the ending.
    identity
        Everything its result depends on, in plain values; a file with another identity is computed again.
    compute
        Computes the result: plain values by name.
    """

    name: str
    identity: Mapping[str, Any]
    compute: Callable[[], Mapping[str, Any]]


def run_units(folder: Path, units: Sequence[Unit], title: str, show_progress: bool = True) -> list[Record]:
    """Compute the units whose files are not there yet, and return the records of all, in order.

    Parameters
    ----------
    folder
        Where the study is kept; records are in ``runs``, each written whole or not at all.
    units
        What to compute.
    title
        What the progress bar is called.
    show_progress
        Whether to show a bar (on a terminal).
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the results")
    records = []
    with tqdm(total=len(units), desc=title, unit="fit", disable=None if show_progress else True) as bar:
        for unit in units:
            bar.set_postfix_str(unit.name, refresh=True)
            path = folder / RUNS / f"{unit.name}.json"
            record = _read(path, unit.identity)
            if record is None:
                record = {"identity": plain(unit.identity), **plain(unit.compute())}
                write_atomically(path, json.dumps(record, indent=1, allow_nan=False).encode())
            records.append(record)
            bar.update()
    return records


def _read(path: Path, identity: Mapping[str, Any]) -> Record | None:
    """Return a record if it is there, whole, and of the unit that is wanted."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("identity") != json.loads(json.dumps(plain(identity))):
        return None
    return record


def settings_of(model: SAD, data: Any) -> Record:
    """Return the settings that a fit of the model to the data would use, everything resolved."""
    return model.settings_for(data).as_dict()


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
    write_atomically(folder / f"{name}.csv", render(summary, models, measures, "csv").encode())
    write_atomically(folder / f"{name}.md", (text.rstrip() + "\n").encode())
    return text


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    r"""Return a Markdown table, without a line break at its end; columns in ``numbers`` are set to the right.

    >>> print(markdown_table(["a", "b"], [["x|y", "1"]], numbers=[1]))
    | a | b |
    |---|---:|
    | x\|y | 1 |
    """
    right = set(numbers)
    rules = "".join("---:|" if place in right else "---|" for place in range(len(header)))
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], f"|{rules}", *lines[1:]])
