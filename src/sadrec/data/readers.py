"""Reading tables from files: csv, tsv, ``::``-separated, parquet; text also compressed."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from sadrec.data._columns import find_column

Batch = tuple[pl.Series, pl.Series, pl.Series | None, pl.Series | None]


def read_table(path: str | Path) -> pl.DataFrame:
    """Read a whole file into a frame."""
    path = Path(path)
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    return pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",")


def read_batches(
    path: str | Path, names: dict[str, str | None], *, text_ids: bool = False
) -> Iterator[Batch]:
    """Read a file of interactions a batch of rows at a time."""
    frame = read_table(path)
    user = find_column(frame.columns, names["user"], "user")
    item = find_column(frame.columns, names["item"], "item")
    rating = find_column(frame.columns, names["rating"], "rating", required=False)
    timestamp = find_column(frame.columns, names["timestamp"], "timestamp", required=False)
    if user is None or item is None:
        raise ValueError("interactions need a column of users and one of items")
    yield (
        frame[user],
        frame[item],
        None if rating is None else frame[rating],
        None if timestamp is None else frame[timestamp],
    )
