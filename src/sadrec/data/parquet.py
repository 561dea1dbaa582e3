"""Parquet: one file, a folder or a pattern of them, read a batch at a time, as a whole or a run of rows at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from glob import has_magic
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from sadrec.data._assemble import Assembler, Duplicates
from sadrec.data._columns import AUTO, find_column, find_interactions, holds_comparisons
from sadrec.data.ids import IdArray, as_id_array
from sadrec.data.tables import PARQUET, naming, parquet_batches, parquet_errors, parquet_length


def parquet_files(path: str | Path) -> list[Path]:
    """Return the files of a path: itself, those of a folder in order, or those that a pattern (``*``, ``?``) names.

    Hidden files of a folder (``.name``, ``_name``) are left out.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        if path.is_file():
            return [path]
        matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if has_magic(str(path)) else []
        if not matches:
            raise FileNotFoundError(f"there is no file or folder {str(path)!r}")
        return [file for entry in matches for file in parquet_files(entry)]
    inside = (file for ending in PARQUET for file in path.rglob(f"*{ending}"))
    files = sorted(file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts))
    if not files:
        raise ValueError(f"there are no .parquet files in the folder {str(path)!r}")
    return files


def is_several(path: Any) -> bool:
    """Whether a path is a folder with Parquet, or a pattern that is not itself a file."""
    path = Path(path).expanduser()
    if path.is_dir():
        return any(next(path.rglob(f"*{ending}"), None) is not None for ending in PARQUET)
    return has_magic(str(path)) and not path.exists()


def is_parquet(path: Any) -> bool:
    """Whether a path is Parquet by its name: a folder, or a file or pattern with such an ending."""
    return isinstance(path, str | Path) and (is_several(path) or Path(path).suffix in PARQUET)


def holds_interactions(path: Any) -> bool:
    """Whether a path is Parquet with interactions: not a file with winners and losers."""
    if not is_parquet(path) or not Path(path).is_file():
        return is_parquet(path)
    with naming(Path(path)), parquet_errors():
        return not holds_comparisons(list(pl.read_parquet_schema(path)))


class RowRange(NamedTuple):
    """Neighbouring rows of a file."""

    file: Path
    start: int
    stop: int


@dataclass(frozen=True)
class ParquetFiles:
    """Interactions in Parquet, and how to read them: see :meth:`sadrec.Interactions.read`. Nothing is read before."""

    paths: Sequence[str | Path]
    user: str = AUTO
    item: str = AUTO
    rating: str | None = AUTO
    timestamp: str | None = AUTO
    duplicates: Duplicates | None = None
    allow_negative: bool = False
    text_ids: bool = False
    weight: str | None = None  # how much each row counts; several rows of a pair are merged as their ratings are

    @cached_property
    def files(self) -> list[Path]:
        """All files, in the order in which rows count as earlier or later."""
        return [file.absolute() for path in self.paths for file in parquet_files(path)]

    @cached_property
    def columns(self) -> dict[str, str]:
        """The name of the column for each role; all files must have them."""
        chosen: dict[str, str] = {}
        for file in self.files:
            with naming(file):
                with parquet_errors():
                    names = list(pl.read_parquet_schema(file))
                if not chosen:
                    chosen = find_interactions(names, self.user, self.item, self.rating, self.timestamp, self.weight)
                elif missing := [name for name in chosen.values() if name not in names]:
                    raise ValueError(f"it has no column {missing[0]!r}, as {self.files[0]} has: files must be alike")
        return chosen

    @cached_property
    def runs(self) -> list[RowRange]:
        """All rows, a run for each file that has any."""
        runs = []
        for file in self.files:
            with naming(file):
                rows = parquet_length(file)
            runs += [RowRange(file, 0, rows)] if rows else []
        if not runs:
            raise ValueError(f"there are no rows in {', '.join(map(str, self.paths))}")
        return runs

    def divided(self, parts: int) -> list[list[RowRange]]:
        """Split the rows into this number of parts of consecutive rows, as equal as possible."""
        total = sum(run.stop - run.start for run in self.runs)
        if total < parts:
            raise ValueError(f"{total} rows cannot be shared by {parts} workers: lower workers")
        edges = [total * part // parts for part in range(parts + 1)]
        answer: list[list[RowRange]] = []
        for low, high in pairwise(edges):
            own, before = [], 0
            for file, start, stop in self.runs:
                first, last = max(low - before, start), min(high - before, stop)
                own += [RowRange(file, first, last)] if first < last else []
                before += stop
            answer.append(own)
        return answer

    def read(self, runs: Sequence[RowRange] | None = None, show_progress: bool = False) -> Assembler:
        """Read all rows, or some runs of them."""
        from sadrec._core.progress import Bar

        rows = Assembler(duplicates=self.duplicates or "last", allow_negative=self.allow_negative)
        as_text = ("user", "item") if self.text_ids else ()
        runs = self.runs if runs is None else runs
        shown = partial(Bar, desc="reading", delay=2, leave=False, unit="rows", unit_scale=True)
        total = sum(run.stop - run.start for run in runs)
        with shown(total=total, disable=None if show_progress else True) as bar:
            for run in runs:
                with naming(run.file):
                    for columns, where in parquet_batches(run.file, self.columns, run.start, run.stop, as_text):
                        rows.add(columns, where)
                        bar.update(len(columns["user"]))
        return rows


def id_batches(path: str | Path, roles: Sequence[str]) -> Iterator[list[IdArray]]:
    """Yield the ids of some roles ("user", "item"), a batch of rows at a time."""
    for file in parquet_files(path):
        with naming(file):
            with parquet_errors():
                names = list(pl.read_parquet_schema(file))
            columns = {role: str(find_column(names, AUTO, role)) for role in roles}
            for batch, _ in parquet_batches(file, columns, 0, parquet_length(file)):
                yield [as_id_array(batch[role]) for role in roles]
