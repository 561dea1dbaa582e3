"""The data sets with features: MovieLens with genres and years, Pokemon with types and stats."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec import Comparisons, Interactions
from sadrec.data import load_features
from studies._options import load_ratings

Doubles = NDArray[np.float64]
POKEMON = "pokemon"
_STATS = ("HP", "Attack", "Defense", "Sp. Atk", "Sp. Def", "Speed")


@dataclass(frozen=True)
class Featured:
    """What people did, and a frame of features, ids first, for each side that has some."""

    name: str
    data: Interactions
    items: pl.DataFrame
    users: pl.DataFrame | None = None


def movielens(name: str, data_folder: Path | None) -> Featured:
    """Load MovieLens with genres (lists), years and decades, and what is known of its users."""
    data = load_ratings(name, data_folder)
    folder = None if data_folder is None else data_folder / name
    items, users = load_features(name, folder if folder is not None and folder.is_dir() else None)
    items = items.filter(pl.col("item").is_in(data.items.tolist()))
    decade = (pl.col("year") // 10 * 10).cast(pl.String)
    return Featured(name, data, items.with_columns(decade=decade), users)


def pokemon(data_folder: Path) -> tuple[Comparisons, pl.DataFrame]:
    """Load the battles of Pokemon, and their types (lists), stats, generation and whether they are legendary."""
    (path,) = (*data_folder.glob(f"**/{POKEMON}/comparisons.parquet"), None)[:1]
    if path is None:
        raise FileNotFoundError(f"there is no {POKEMON}/comparisons.parquet in {str(data_folder)!r}")
    data, frame = Comparisons.read(path), pl.read_parquet(path.parent / "items.parquet")
    features = frame.select(
        "item",
        *_STATS,
        types=pl.concat_list("Type 1", "Type 2").list.drop_nulls(),
        generation=pl.col("Generation").cast(pl.String),
        legendary=pl.col("Legendary"),
    )
    return data, features.filter(pl.col("item").cast(pl.String).is_in(data.items.astype(str).tolist()))


def encoded(frame: pl.DataFrame, known: NDArray[np.bool_], bends: int = 0) -> Doubles:
    """Return the features of a frame as numbers, for models that know no frames: a row per id.

    Numbers are standardised over the ``known`` rows, a missing one is the mean; with ``bends``, further columns let
    their effect bend at so many quantiles. Text and lists become a column of 0 and 1 for each value of a known row.
    """
    columns: list[Doubles] = []
    for name in frame.columns[1:]:
        column = frame[name]
        if isinstance(column.dtype, pl.List):
            columns += _indicators([set(values or ()) for values in column.to_list()], known)
        elif column.dtype == pl.String:
            columns += _indicators([{value} - {None} for value in column.to_list()], known)
        else:
            values = column.cast(pl.Float64).to_numpy()
            mean, spread = np.nanmean(values[known]), np.nanstd(values[known])
            z = np.nan_to_num((values - mean) / (spread or 1.0))
            columns.append(z)
            if bends and len(np.unique(z[known])) > bends:
                at = np.quantile(z[known], np.arange(1, bends + 1) / (bends + 1))
                columns += [np.maximum(z - one, 0) for one in at]
    return np.column_stack(columns)


def _indicators(rows: list[set[Any]], known: NDArray[np.bool_]) -> list[Doubles]:
    values = sorted(set().union(*(row for row, one in zip(rows, known, strict=True) if one)))
    return [np.array([float(value in row) for row in rows]) for value in values]
