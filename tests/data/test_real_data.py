"""The data at hand have the published properties."""

import os
from pathlib import Path

import numpy as np
import pytest

from sadrec.data import Comparisons, load
from studies._published import load_split
from studies.table.food_com import load_food_com
from studies.table.paper import PUBLISHED

FOLDER = Path(os.environ.get("SADREC_DATA", ""))
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("SADREC_DATA"), reason="SADREC_DATA does not name a folder of data"),
]


@pytest.mark.parametrize(
    ("name", "folder"),
    [("movielens-1m", "movielens-1m"), ("movielens-100k", "movielens-100k"), ("food-com", "food-com-loo00")],
)
def test_the_description_is_the_published_one(name: str, folder: str) -> None:
    data = load_food_com(FOLDER / folder) if name == "food-com" else load(name, FOLDER / folder)
    here, published = data.describe(), PUBLISHED[name]
    assert (here.users, here.items, here.ratings) == (published.users, published.items, published.ratings)
    assert round(here.sparsity, 4) == round(published.sparsity, 4)
    if published.per_user:
        assert here.per_user == published.per_user


def test_the_paper_s_own_split_of_food_com() -> None:
    train, held_out = load_split(FOLDER / "food-com-loo00")
    assert (len(train), len(held_out)) == (130_877, 14_554)
    assert np.diff(held_out.matrix.indptr).max() == 1


def test_leaving_one_out_of_food_com_gives_the_paper_s_counts() -> None:
    train, held_out = load_food_com(FOLDER / "food-com-loo00").leave_one_out()
    assert (len(train), len(held_out)) == (130_877, 14_554)


def test_titles_of_movielens_are_attached() -> None:
    data = load("movielens-1m", FOLDER / "movielens-1m")
    assert data.item_titles is not None
    assert data.item_titles[1] == "Toy Story (1995)"
    assert all(data.item_titles[item] for item in data.items)


@pytest.mark.parametrize(
    ("folder", "judges", "items", "comparisons"),
    [
        ("llmfao", 124, 59, 8_931 - 3_471),
        ("passage-crowdbt", 624, 472, 11_763),
        ("imdb-wiki-sbs-subset", 4_091, 9_150, 48_627),
    ],
)
def test_comparisons_have_their_counts(folder: str, judges: int, items: int, comparisons: int) -> None:
    pairs = Comparisons.read(FOLDER / folder / "comparisons.parquet", ties="drop")
    assert (len(pairs.users), len(pairs.items), len(pairs)) == (judges, items, comparisons)
