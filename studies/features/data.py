"""The data sets with features: MovieLens with genres and years, Pokemon with types and stats."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec import Comparisons, Interactions
from studies._options import load_ratings
from studies.features.movielens import load_features

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
    truth: Mapping[str, Doubles] | None = None  # users x items, of new "users" and "items": simulated data


def movielens(name: str, data_folder: Path | None) -> Featured:
    """Load MovieLens with genres (lists), years and decades, and what is known of its users."""
    data = load_ratings(name, data_folder)
    folder = None if data_folder is None else data_folder / name
    items, users = load_features(name, folder if folder is not None and folder.is_dir() else None)
    items = items.filter(pl.col("item").is_in(data.items.tolist()))
    decade = (pl.col("year") // 10 * 10).cast(pl.String)
    return Featured(name, data, items.with_columns(decade=decade), users)


def simulated(users: int = 800, items: int = 400, k: int = 4, seed: int = 0) -> Featured:
    """Simulate people and things with factors that their features tell in part.

    Of the variance of xi and eta, features tell two thirds, and of the popularity of a thing half. A person does 20 to
    60 things, chosen with the odds that the scores give.
    """
    rng = np.random.default_rng([19, seed])
    people = pl.DataFrame(
        {
            "user": np.arange(users),
            "age": rng.integers(18, 80, users),
            "country": rng.choice(list("abcdefgh"), users),
            "hobbies": [sorted(rng.choice(list("stuvwxyz"), 2, replace=False).tolist()) for _ in range(users)],
        }
    )
    things = pl.DataFrame(
        {
            "item": np.arange(items),
            "price": np.round(rng.lognormal(2, 1, items), 2),
            "kind": rng.choice(list("ABCDEFGHIJ"), items),
            "tags": [sorted(rng.choice(list("klmnopqr"), 3, replace=False).tolist()) for _ in range(items)],
        }
    )

    def told(frame: pl.DataFrame, width: int) -> Doubles:
        columns = encoded(frame, np.ones(len(frame), np.bool_))
        values = columns @ rng.standard_normal((columns.shape[1], width))
        return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))

    xi, eta, popularity = told(people, k), told(things, k), told(things, 1).ravel()
    own_xi, own_eta = (rng.standard_normal(side.shape) for side in (xi, eta))
    own = np.sqrt(2 / 3) * xi + np.sqrt(1 / 3) * own_xi, np.sqrt(2 / 3) * eta + np.sqrt(1 / 3) * own_eta
    liked = np.sqrt(0.5) * (popularity + rng.standard_normal(items))
    scores = own[0] @ own[1].T + liked
    truth = {
        "users": np.sqrt(2 / 3) * xi @ own[1].T + liked,  # everything of the items, and the features of the user
        "items": np.sqrt(2 / 3) * own[0] @ eta.T + np.sqrt(0.5) * popularity,
    }
    chosen = np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)
    counts = rng.integers(20, 61, users)
    touched = np.zeros((users, items), np.float32)
    for user, count in enumerate(counts.tolist()):
        touched[user, chosen[user, :count]] = 1.0
    return Featured("simulated", Interactions.from_csr(touched), things, people, truth)


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
