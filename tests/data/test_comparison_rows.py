"""Rows of comparisons that arrive in batches, with ties, weights and features."""

import logging

import numpy as np
import polars as pl
import pytest

from sadrec.data import DataWarning
from sadrec.data._comparison_rows import ComparisonRows

GAMES = {
    "left": ["a", "b", "c", "b"],
    "right": ["b", "c", "a", "b"],
    "outcome": ["right", "tie", "left", "left"],
    "weight": [1.0, 3.0, 2.0, 5.0],
    "feature home": [4.0, 6.0, 8.0, 9.0],
}


def taken(ties, columns=GAMES, batch=2):
    rows = ComparisonRows(ties)
    for start in range(0, len(columns["left"]), batch):
        part = {name: pl.Series(name, values[start : start + batch]) for name, values in columns.items()}
        rows.add(part, lambda row, start=start: f"row {start + row}")
    with pytest.warns(DataWarning, match=r"^1 rows compare an item with itself \(the first is row 3\): left out$"):
        return rows, rows.finish()


def triples(fields):
    names = fields["item_ids"].array
    return list(zip(names[fields["winner_index"]], names[fields["loser_index"]], strict=True))


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_kept_ties_are_marked_and_features_are_those_of_the_winner(batch):
    rows, fields = taken("keep", batch=batch)
    assert rows.rows == 4 and triples(fields) == [("b", "a"), ("b", "c"), ("c", "a")]
    assert fields["tied"].tolist() == [False, True, False] and fields["weight"].tolist() == [1, 3, 2]
    assert fields["features"].tolist() == [[-4], [6], [8]]


def test_a_split_tie_is_one_half_each_way_with_the_features_of_either(caplog):
    with caplog.at_level(logging.INFO):
        _, fields = taken("split")
    assert triples(fields) == [("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")] and fields["tied"] is None
    assert fields["weight"].tolist() == [1, 1.5, 2, 1.5] and fields["features"].tolist() == [[-4], [6], [8], [-6]]
    assert "1 of 4 comparisons are ties: ties='split'" in caplog.text


def test_dropped_ties_are_said_in_the_log_alone(caplog):
    with caplog.at_level(logging.INFO):
        _, fields = taken("drop")
    assert triples(fields) == [("b", "a"), ("c", "a")] and fields["tied"] is None
    assert fields["weight"].tolist() == [1, 2] and "1 of 4 comparisons are ties: ties='drop'" in caplog.text


def test_without_weights_or_features_there_are_none():
    plain = {name: GAMES[name] for name in ("left", "right", "outcome")}
    _, fields = taken("keep", plain)
    assert fields["weight"] is None and fields["features"] is None and fields["user_ids"].array.tolist() == [0]
    assert taken("split", plain)[1]["weight"].tolist() == [1, 0.5, 1, 0.5]


def test_rows_that_compare_items_with_themselves_are_counted_over_all_batches():
    rows = ComparisonRows()
    for names in (["a", "b", "c"], ["c", "d"]):
        rows.add({"winner": pl.Series(names), "loser": pl.Series(["a", "x", "c"][: len(names)])})
    rows.add({"winner": pl.Series(["d"]), "loser": pl.Series(["d"])})
    with pytest.warns(DataWarning, match=r"^3 rows compare an item with itself \(the first is row 0\)"):
        assert triples(rows.finish()) == [("b", "x"), ("c", "a"), ("d", "x")]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([1.0, None], ValueError, "row 1 has the feature home None: drop such rows, or fill in a number"),
        ([float("inf"), 1.0], ValueError, "row 0 has the feature home inf"),
        (["1", "2"], TypeError, "the feature home is of type String, not numbers"),
    ],
)
def test_features_are_finite_numbers(values, error, message):
    columns = {"winner": pl.Series(["a", "b"]), "loser": pl.Series(["b", "c"]), "feature home": pl.Series(values)}
    with pytest.raises(error, match=message):
        ComparisonRows().add(columns)


def test_what_is_true_or_false_is_a_feature():
    columns = {"left": ["a", "b"], "right": ["b", "a"], "outcome": ["left", "right"], "feature home": [True, True]}
    rows = ComparisonRows()
    rows.add({name: pl.Series(name, values) for name, values in columns.items()})
    assert rows.finish()["features"].tolist() == [[1], [-1]]
    assert np.float32 == rows.finish()["features"].dtype


def test_where_nothing_is_left_the_reasons_are_counted():
    rows = ComparisonRows("drop")
    columns = {"left": ["a", "b"], "right": ["b", "b"], "outcome": ["tie", "left"]}
    rows.add({name: pl.Series(name, values) for name, values in columns.items()})
    left = r"no comparison is left: of 2 rows 1 are ties \(ties='drop'\), and 1 compare an item with itself"
    with pytest.warns(DataWarning), pytest.raises(ValueError, match=left):
        rows.finish()
