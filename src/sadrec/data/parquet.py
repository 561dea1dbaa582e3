"""Parquet: one file, a folder or a pattern of them, read a batch at a time, as a whole or a run of rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import has_magic
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from sadrec import _check
from sadrec.data._assemble import Assembler, Duplicates
from sadrec.data._columns import AUTO, Where, after, find_column, find_interactions, holds_comparisons, row_of_frame
from sadrec.data.ids import IdArray, as_id_array
from sadrec.data.tables import parquet_errors

_ROWS = 2**22
"""Rows of ids read at once."""
_SLICE = 2**19
"""Rows of interactions read at once."""
_ENDINGS = (".parquet", ".pq")


def parquet_files(path: str | Path) -> list[Path]:
    """Return the files of a path: itself, those of a folder in order, or those that a pattern (``*``, ``?``) names.

    Hidden files of a folder (``.name``, ``_name``) are left out.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        if path.is_file():
            return [path]
        found = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if has_magic(str(path)) else []
        if not found:
            raise FileNotFoundError(f"there is no file or folder {str(path)!r}")
        return [file for entry in found for file in parquet_files(entry)]
    inside = (file for ending in _ENDINGS for file in path.rglob(f"*{ending}"))
    files = sorted(file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts))
    if not files:
        raise ValueError(f"there are no .parquet files in the folder {str(path)!r}")
    return files


def is_several(path: Any) -> bool:
    """Tell whether a path means a folder with Parquet in it, or a pattern and no file of that very name."""
    path = Path(path).expanduser()
    if path.is_dir():
        return any(next(path.rglob(f"*{ending}"), None) is not None for ending in _ENDINGS)
    return has_magic(str(path)) and not path.exists()


def is_parquet(path: Any) -> bool:
    """Tell by its name whether a path means Parquet: a folder, or a file or a pattern with such an ending."""
    return isinstance(path, str | Path) and (is_several(path) or Path(path).suffix in _ENDINGS)


def holds_interactions(path: Any) -> bool:
    """Tell whether a path means Parquet with interactions: anything but a file with winners and losers."""
    if not is_parquet(path) or not Path(path).is_file():
        return is_parquet(path)
    with naming(Path(path)), parquet_errors():
        return not holds_comparisons(list(pl.read_parquet_schema(path)))


class Run(NamedTuple):
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
                    chosen = find_interactions(names, self.user, self.item, self.rating, self.timestamp)
                    weight = find_column(names, self.weight, "weight")
                    chosen |= {} if weight is None else {"weight": weight}
                elif missing := [name for name in chosen.values() if name not in names]:
                    raise ValueError(f"it has no column {missing[0]!r}, as {self.files[0]} has: files must be alike")
        return chosen

    @cached_property
    def runs(self) -> list[Run]:
        """All rows, a run for each file that has any."""
        runs = []
        for file in self.files:
            with naming(file), parquet_errors():
                rows = int(pl.scan_parquet(file).select(pl.len()).collect().item())
            runs += [Run(file, 0, rows)] if rows else []
        if not runs:
            raise ValueError(f"there are no rows in {', '.join(map(str, self.paths))}")
        return runs

    def divided(self, parts: int) -> list[list[Run]]:
        """Cut all rows into this number of parts of neighbours, as equal as can be."""
        total = sum(run.stop - run.start for run in self.runs)
        if total < parts:
            raise ValueError(f"{total} rows cannot be shared by {parts} workers: lower workers")
        edges = [total * part // parts for part in range(parts + 1)]
        answer: list[list[Run]] = []
        for low, high in pairwise(edges):
            own, before = [], 0
            for file, start, stop in self.runs:
                first, last = max(low - before, start), min(high - before, stop)
                own += [Run(file, first, last)] if first < last else []
                before += stop
            answer.append(own)
        return answer

    def read(self, runs: Sequence[Run] | None = None, progress: Callable[[int], object] | None = None) -> Assembler:
        """Read all rows, or some runs of them; ``progress`` is called with the number of rows read since."""
        rows = Assembler(duplicates=self.duplicates or "last", allow_negative=self.allow_negative)
        for run in self.runs if runs is None else runs:
            with naming(run.file):
                for columns, where in self._batches(run):
                    rows.add(columns, where)
                    if progress is not None:
                        progress(len(columns["user"]))
        return rows

    def _batches(self, run: Run) -> Iterator[tuple[dict[str, pl.Series], Where]]:
        names = self.columns
        scan = pl.scan_parquet(run.file).select(list(dict.fromkeys(names.values())))
        for start in range(run.start, run.stop, _SLICE):
            _check.room(_check.START)
            with parquet_errors():
                frame = scan.slice(start, min(_SLICE, run.stop - start)).collect()
            columns = {role: frame[name] for role, name in names.items()}
            if self.text_ids:
                columns |= {role: columns[role].cast(pl.String) for role in ("user", "item")}
            yield columns, after(row_of_frame, start)


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Put the name of a file before what is wrong with its content."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{file}: {error}") from None


def id_batches(path: str | Path, roles: Sequence[str]) -> Iterator[list[IdArray]]:
    """Yield the ids of some roles ("user", "item"), a batch of rows at a time."""
    for file in parquet_files(path):
        with naming(file):
            with parquet_errors():
                scan = pl.scan_parquet(file)
                names = scan.collect_schema().names()
                rows = int(scan.select(pl.len()).collect().item())
            columns = [str(find_column(names, AUTO, role)) for role in roles]
            for start in range(0, rows, _ROWS):
                with parquet_errors():
                    frame = scan.select(columns).slice(start, _ROWS).collect()
                yield [as_id_array(frame[column]) for column in columns]
