"""Columns of ids in Parquet, of one file or of a folder of them, a batch at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from sadrec.data._columns import AUTO, find_column
from sadrec.data.ids import IdArray, as_id_array
from sadrec.data.tables import parquet_errors

_ROWS = 2**22
"""Rows read at once."""


def parquet_files(path: str | Path) -> list[Path]:
    """Return the files of a path: itself, or those of a folder in order, without hidden ones (``.name``, ``_name``)."""
    path = Path(path).expanduser()
    if not path.is_dir():
        if not path.is_file():
            raise FileNotFoundError(f"there is no file or folder {str(path)!r}")
        return [path]
    inside = (file for pattern in ("*.parquet", "*.pq") for file in path.rglob(pattern))
    files = sorted(file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts))
    if not files:
        raise ValueError(f"there are no .parquet files in the folder {str(path)!r}")
    return files


def id_batches(path: str | Path, roles: Sequence[str]) -> Iterator[list[IdArray]]:
    """Yield the ids of some roles ("user", "item"), a batch of rows at a time."""
    for file in parquet_files(path):
        try:
            with parquet_errors():
                scan = pl.scan_parquet(file)
                names = scan.collect_schema().names()
                rows = int(scan.select(pl.len()).collect().item())
            columns = [str(find_column(names, AUTO, role)) for role in roles]
            for start in range(0, rows, _ROWS):
                with parquet_errors():
                    frame = scan.select(columns).slice(start, _ROWS).collect()
                yield [as_id_array(frame[column]) for column in columns]
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{file}: {error}") from None
