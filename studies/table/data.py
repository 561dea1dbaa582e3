"""The data of the study and the leave-one-out sets made from it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from sadrec.data import Interactions, load
from sadrec.data.datasets import is_parquet_folder, parquet_folder
from studies._published import load_split
from studies._tools import write_whole
from studies.table.food_com import load_food_com
from studies.table.netflix import load_netflix

Split = tuple[Interactions, Interactions]
TITLES = {
    "movielens-1m": "MovieLens 1M",
    "movielens-100k": "MovieLens 100K",
    "food-com": "Food.com",
    "netflix": "Netflix",
}
SELECTIONS = {
    "netflix": "10,000 of the users who rated at least one of the movies 1 to 8,921, drawn at random with seed 0, and "
    "their ratings of these movies. The paper drew 10,000 of 478,533 users of 8,921 movies and does not say which, so "
    "its users are others",
    "food-com": "the 20,000 users with most reviews, then the recipes that 50 or more of them reviewed, as in the "
    "paper",
}
"""What is selected from the original files, in words."""
# Where a folder with prepared copies of the data, the one SADREC_DATA names, keeps each of them.
_FOLDERS = {name: name for name in TITLES} | {"food-com": "food-com-loo00"}


@dataclass(frozen=True)
class StudyData:
    """What a study is made on.

    Attributes
    ----------
    name
        Name of the data set, or the path it was read from.
    title
        What the report calls it.
    interactions
        All of it.
    published
        The paper's own first leave-one-out set, where the files have it.
    selection
        What part of the original data it is, in words; nothing where it is all of it.
    """

    name: str
    title: str
    interactions: Interactions
    published: Split | None = None
    selection: str = ""

    def splits(self, count: int, seed: int = 0) -> list[Callable[[], Split]]:
        """Return functions that make leave-one-out sets: the published one first, if there is one.

        Set s is drawn with ``seed + s``.
        """
        if count < 1:
            raise ValueError(f"the number of leave-one-out sets must be at least 1, got {count}")
        drawn: list[Callable[[], Split]] = [
            partial(self.interactions.leave_one_out, seed=seed + number) for number in range(count)
        ]
        if self.published is not None:
            drawn[0] = partial(_given, self.published)
        return drawn


def _given(split: Split) -> Split:
    return split


def load_study_data(dataset: str, path: str | Path | None = None, keep: str | Path | None = None) -> StudyData:
    """Load a named data set, or the interactions in a file or folder.

    Parameters
    ----------
    dataset
        "movielens-1m", "movielens-100k", "food-com", "netflix", or a path.
    path
        The original files of a named data set. Without it the folder that SADREC_DATA names is searched, then the
        cache; MovieLens is fetched where it is not found.
    keep
        A folder for what was selected from files that take long to read (Netflix): the next call reads it from there.

    Raises
    ------
    FileNotFoundError
        When there is no such data set and no such path.
    """
    if dataset not in TITLES:
        if path is not None:
            raise ValueError(f"{dataset!r} is no named data set ({', '.join(TITLES)}): leave out --path")
        return _from_path(dataset)
    place = _prepared(dataset) if path is None else Path(path).expanduser()
    prepared = place is not None and is_parquet_folder(place)
    if dataset == "netflix":
        data = _kept(dataset, place, Path(keep)) if place and keep and not prepared else load_netflix(place)
    else:
        data = load_food_com(place) if dataset == "food-com" else load(dataset, place)
    published = None
    if dataset == "food-com" and place is not None and _has_split(place):
        published = load_split(place)
        same = all(
            np.array_equal(*pair) for pair in ((published[0].users, data.users), (published[0].items, data.items))
        )
        if not same:
            raise ValueError(f"the split in {place} is of other users or recipes than the paper's selection from it")
    selection = "" if prepared and dataset == "netflix" else SELECTIONS.get(dataset, "")
    return StudyData(dataset, TITLES[dataset], data, published, selection)


def _kept(dataset: str, place: Path, folder: Path) -> Interactions:
    """Load a data set, from what was kept of it where that is of the same files."""
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]
    source = json.dumps({"files": facts, "selection": SELECTIONS[dataset]})
    note = folder / "source.json"
    if is_parquet_folder(folder) and note.is_file() and note.read_text() == source:
        return parquet_folder(folder)
    data = load_netflix(place)
    note.unlink(missing_ok=True)  # written last: without it nothing here is used
    titles = [(data.item_titles or {}).get(item) for item in data.items.tolist()]
    tables = {"items": pl.DataFrame({"item": data.items, "title": titles}), "ratings": data.to_frame()}
    for name, table in tables.items():
        content = BytesIO()
        table.write_parquet(content)
        write_whole(folder / f"{name}.parquet", content.getvalue())
    write_whole(note, source)
    return data


def _prepared(dataset: str) -> Path | None:
    folder = os.environ.get("SADREC_DATA")
    place = None if not folder else Path(folder) / _FOLDERS[dataset]
    return place if place is not None and place.is_dir() else None


def _has_split(place: Path) -> bool:
    return is_parquet_folder(place) and "split" in pl.read_parquet_schema(place / "ratings.parquet")


def _from_path(dataset: str) -> StudyData:
    place = Path(dataset).expanduser()
    if not place.exists():
        raise FileNotFoundError(f"{dataset!r} is neither a named data set ({', '.join(TITLES)}) nor a file or folder")
    data = parquet_folder(place) if place.is_dir() and is_parquet_folder(place) else Interactions.read(place)
    return StudyData(place.name, place.stem, data)
