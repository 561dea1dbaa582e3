"""Popularity on the paper's data: the floor every table shows, as measured independently of this code."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import coo_matrix

from sadrec.data import Interactions
from sadrec.evaluation import evaluate

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("SADREC_DATA" not in os.environ, reason="SADREC_DATA does not name the data folder"),
]


class Popularity:
    def __init__(self, train):
        self.users, self.items = train.users, train.items
        self.counts = np.bincount(train.matrix.indices, minlength=len(train.items)).astype(float)

    def scores(self, users):
        return np.tile(self.counts, (len(users), 1))


def read(name):
    return pl.read_parquet(Path(os.environ["SADREC_DATA"]) / name / "ratings.parquet")


def test_popularity_on_the_papers_food_com_set():
    frame = read("food-com-loo00")
    data = Interactions.from_frame(frame.select("user", "item", "rating"))

    def part(name):
        rows = frame.filter(split=name)
        at = data.user_ids.positions(rows["user"].to_numpy()), data.item_ids.positions(rows["item"].to_numpy())
        matrix = coo_matrix((rows["rating"].to_numpy().astype(np.float32), at), shape=data.shape)
        return Interactions.from_csr(matrix, users=data.users, items=data.items)

    train, held_out = part("train"), part("test")
    result = evaluate(Popularity(train), train, held_out)
    assert result.counts["m1"] == 14_554
    assert result["match"] == pytest.approx(0.161, abs=0.002)
    assert result["match_per_user"] == 0
    assert result["m1"] == pytest.approx(0.451, abs=0.01)
    assert result["m2"] == pytest.approx(0.401, abs=0.01)


def test_popularity_on_movielens_1m():
    data = Interactions.from_frame(read("movielens-1m").select("user", "item", "rating"))
    train, held_out = data.leave_one_out(seed=0)
    result = evaluate(Popularity(train), train, held_out)
    assert result["match"] == pytest.approx(0.422, abs=0.01)
    assert result["match_per_user"] == pytest.approx(0.404, abs=0.01)
    assert result["unequal_accuracy"] == pytest.approx(0.605, abs=0.01)
    assert result["m1"] == pytest.approx(0.743, abs=0.015)
