"""Data with the split that was published with it."""

from pathlib import Path

import numpy as np
import polars as pl

from sadrec.data import Interactions
from sadrec.data._columns import AUTO, Where, find_interactions
from sadrec.data.datasets import parquet_folder
from sadrec.data.tables import Table


def load_split(path: str | Path, *, column: str = "split", train: str = "train") -> tuple[Interactions, Interactions]:
    """Read interactions together with the split that was published with them.

    Parameters
    ----------
    path
        A file with columns user, item, rating and ``column``, or a folder with such a ``ratings.parquet``.
    column
        Name of the column that tells the part of each row.
    train
        Its value in rows to train on; all others are held out.

    Returns
    -------
    train, held_out
        Both with the users, items and shape of the whole.
    """
    path = Path(path).expanduser()
    folder = path.is_dir()
    data = parquet_folder(path) if folder else Interactions.read(path)

    def choose(columns: list[str]) -> dict[str, str]:
        if column not in columns:
            raise ValueError(f"it has no column {column!r} to tell its parts; it has {', '.join(columns)}")
        return {**find_interactions(columns, AUTO, AUTO, None, None), "part": column}

    with Table(path / "ratings.parquet" if folder else path) as table:
        rows = pl.concat(table.read(choose, (), _Rows).frames)
    parts = rows["part"].unique().to_list()
    if train not in parts:
        raise ValueError(f"no row of {path} has {column} = {train!r}; there are {', '.join(map(repr, parts))}")
    held = rows.filter(pl.col("part") != train)
    width = data.shape[1]
    starts = np.repeat(np.arange(data.shape[0]), np.diff(data.matrix.indptr)) * width
    cells = data.user_ids.positions(held["user"]) * width + data.item_ids.positions(held["item"])
    mask = np.zeros(len(data), dtype=np.bool_)
    mask[np.searchsorted(starts + data.matrix.indices, cells)] = True
    return data._divide(mask)


class _Rows:
    """Takes the rows as they are."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.rows = 0

    def add(self, columns: dict[str, pl.Series], where: Where) -> None:
        self.frames.append(pl.DataFrame(columns).with_columns(pl.col("part").cast(pl.String)))
        self.rows += len(columns["part"])
