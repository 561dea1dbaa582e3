"""From tables of features to a matrix, and what is refused on the way."""

import gzip
import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from sadrec.data import DataWarning, Ids
from sadrec.features import Encoder, Features

FRAME = pl.DataFrame(
    {
        "item": ["a", "b", "c", "d"],
        "price": [1.0, 3.0, None, 100.0],
        "hot": [True, False, True, False],
        "kind": ["x", "y", "x", "z"],
        "tags": [["p", "q"], ["p"], [], ["q", "new"]],
    }
)
TRAINED = Ids(["a", "b", "c"], "item")


def encoded(values, trained=TRAINED, minimum=1, **options):
    features = Features(values, minimum=minimum, **options)
    table = features.table(trained.array, "item")
    encoder = Encoder.fit(table, trained, minimum)
    return encoder, encoder.encode(table).toarray()


def column(values, name, **options):
    encoder, rows = encoded(values, **options)
    return rows[:, encoder.columns.index(name)]


def test_numbers_are_standardised_by_the_training_rows_and_a_missing_one_is_the_mean():
    np.testing.assert_allclose(column(FRAME, "price"), [-1.0, 1.0, 0.0, 98.0])


def test_categories_are_one_column_each_and_unknown_ones_have_none():
    encoder, rows = encoded(FRAME)
    assert [name for name in encoder.columns if name.startswith("kind")] == ["kind=x", "kind=y"]
    assert rows[3, encoder.columns.index("kind=x")] == rows[3, encoder.columns.index("kind=y")] == 0


def test_a_tag_is_the_same_number_in_every_row():
    expected = (3 / 2) ** -0.5  # a and b of the training rows have three tags
    np.testing.assert_allclose(column(FRAME, "tags=q"), [expected, 0, 0, expected])
    np.testing.assert_allclose(column(FRAME, "kind=x"), [1, 0, 1, 0])


def test_categories_that_few_rows_have_are_left_out():
    encoder, _ = encoded(FRAME, minimum=2)
    assert [name for name in encoder.columns if "=" in name] == ["kind=x", "tags=p"]


def test_text_is_split_into_tags_only_when_asked():
    frame = pl.DataFrame({"item": ["a", "b", "c"], "genres": ["p|q", "q", "r | p"]})
    assert encoded(frame)[0].columns == ["genres=p|q", "genres=q", "genres=r | p"]
    assert encoded(frame, tags="genres")[0].columns == ["genres=p", "genres=q", "genres=r"]


def test_a_constant_column_is_left_out_with_a_word_in_the_log(caplog):
    frame = FRAME.with_columns(same=pl.lit(7.0))
    with caplog.at_level(logging.INFO, "sadrec"):
        encoder, _ = encoded(frame)
    assert "same" not in encoder.columns
    assert "'same'" in caplog.text


def test_pandas_and_polars_frames_and_mappings_are_encoded_alike():
    rows = {row["item"]: {k: v for k, v in row.items() if k != "item"} for row in FRAME.to_dicts()}
    _, expected = encoded(FRAME)
    pandas = FRAME.to_pandas()
    pandas["tags"] = pandas["tags"].map(list)
    np.testing.assert_allclose(encoded(pandas)[1], expected)
    np.testing.assert_allclose(encoded(rows)[1], expected)
    assert isinstance(pandas, pd.DataFrame)


def test_a_mapping_to_tags_or_numbers():
    assert encoded({"a": ["p"], "b": ["q"], "c": ["p", "q"]})[0].columns == ["tags=p", "tags=q"]
    assert encoded({"a": [1.0, 2.0], "b": [2.0, 1.0], "c": [0.0, 5.0]})[0].columns == ["0", "1"]


def test_matrices_have_rows_in_the_order_of_the_data_or_ids_of_their_own():
    matrix = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    _, rows = encoded(matrix)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    _, turned = encoded((["c", "b", "a"], matrix[::-1]))
    np.testing.assert_allclose(turned[::-1], rows)
    assert encoded(sp.csr_matrix(matrix))[1].shape == (3, 2)


def test_a_hundred_thousand_tags():
    rng = np.random.default_rng(0)
    tags = {f"i{i}": [f"t{t}" for t in rng.integers(0, 100_000, 50)] for i in range(5000)}
    encoder, rows = (lambda f: (f, f.encode(Features(tags).table([], "item"))))(
        Encoder.fit(Features(tags).table([], "item"), Ids(list(tags), "item"), 2)
    )
    assert len(encoder.columns) > 50_000
    assert rows.nnz < 5000 * 51


def test_the_encoding_survives_being_packed():
    for values in (FRAME, sp.csr_matrix(np.eye(3)), np.arange(6.0).reshape(3, 2) ** 2):
        encoder, rows = encoded(values)
        again = Encoder.unpack(*encoder.pack())
        assert again.columns == encoder.columns
        np.testing.assert_array_equal(again.encode(Features(values).table(TRAINED.array, "item")).toarray(), rows)


def test_one_row_by_names_leaves_out_what_is_not_known():
    encoder, _ = encoded(FRAME)
    row = encoder.encode_one({"kind": "y", "price": 3.0}).toarray()[0]
    expected = {"price": 1.0, "kind=y": 1.0}
    np.testing.assert_allclose(row, [expected.get(name, 0.0) for name in encoder.columns])


@pytest.mark.parametrize("row", [{"colour": "red"}, {"price": "much"}, {"kind": 3}])
def test_one_row_with_a_name_or_a_type_that_is_not_known_is_refused(row):
    encoder, _ = encoded(FRAME)
    with pytest.raises(ValueError, match=f"features has '{next(iter(row))}'"):
        encoder.encode_one(row)


def test_a_table_that_lacks_a_column_is_refused():
    encoder, _ = encoded(FRAME)
    with pytest.raises(ValueError, match="no column 'price'"):
        encoder.encode(Features(FRAME.drop("price")).table([], "item"))


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        (FRAME.with_columns(price=pl.Series([1.0, np.inf, 2.0, 3.0])), ValueError, "'price' holds inf in row 1"),
        (pl.concat([FRAME, FRAME[:1]]), ValueError, "'a' is given twice"),
        (FRAME.with_columns(item=pl.Series(["a", None, "c", "d"])), ValueError, "missing"),
        (FRAME[:0], ValueError, "item_features has no rows"),
        (FRAME.select("item"), ValueError, "no other: give some features"),
        (pl.DataFrame(), ValueError, "no columns"),
        (np.ones((2, 3)), ValueError, "has 2 rows, and there are 3 items of the data"),
        (np.ones(3), ValueError, "must have the shape"),
        (np.array([["x"]] * 3), TypeError, "must hold numbers"),
        (sp.csr_matrix(np.full((3, 1), np.nan)), ValueError, "must be finite"),
        ((["a", "b"], np.ones((3, 1))), ValueError, "has 3 rows, and there are 2 ids"),
        (FRAME.with_columns(day=pl.date(2020, 1, 1)), TypeError, "'day' holds Date"),
        (FRAME.with_columns(codes=pl.Series([[1], [1, 2], [3], []])), TypeError, "turn codes into text"),
        (7, TypeError, "not int"),
        ({"a": ["p"], "b": [1.0], "c": ["p"]}, ValueError, "list of tags"),
        (FRAME.select("item", pl.lit(1.0).alias("same")), ValueError, "tells two items of the data apart"),
        (FRAME.with_columns(item=pl.Series(["e", "f", "g", "h"])), ValueError, "names none of the 3 items"),
        ("nowhere.csv", FileNotFoundError, "nowhere.csv"),
        ({"item": ["a", "b"], "price": [1.0, 2.0]}, ValueError, "for several columns give a data frame"),
        (FRAME.select("kind", "price", pl.col("item").alias("name")), ValueError, "'x' is given twice"),
        (FRAME.select("price", "kind"), ValueError, "missing"),
        (FRAME.rename({"item": "user"}), ValueError, "its first, 'user', looks like the user"),
        (pd.DataFrame([["a", 1.0]], columns=["item", 7]), TypeError, "names of columns must be text, not 7"),
        (pd.DataFrame([["a", 1, 2]], columns=["item", "x", "x"]), ValueError, "two columns .* are named 'x'"),
    ],
)
def test_bad_features_are_refused_with_a_word(values, error, words):
    with pytest.raises(error, match=words):
        encoded(values)


def test_tags_that_name_no_column_of_text_are_refused():
    with pytest.raises(ValueError, match="tags names 'genre'"):
        encoded(FRAME, tags="genre")
    with pytest.raises(TypeError, match="tags names 'price', a column of item_features that holds Float64"):
        encoded(FRAME, tags="price")


def test_a_column_without_any_value_is_not_known_whatever_its_type():
    encoder, _ = encoded(FRAME)
    empty = pl.DataFrame({"item": ["n"], "price": [None], "hot": [None], "kind": [None], "tags": [None]})
    for kind in (pl.Null, pl.Float64, pl.String):
        table = Features(empty.with_columns(pl.col("price", "kind").cast(kind))).table([], "item")
        assert not encoder.encode(table).nnz


def test_ids_in_the_index_of_a_pandas_frame_are_found():
    frame = FRAME.drop("tags").to_pandas()
    np.testing.assert_array_equal(encoded(frame.set_index("item"))[1], encoded(frame)[1])


def test_arrays_in_a_column_of_pandas_are_embeddings():
    frame = pd.DataFrame({"item": ["a", "b", "c"], "e": [np.array([1.0, 2.0]), None, np.array([3.0, 1.0])]})
    encoder, rows = encoded(frame)
    assert encoder.columns == ["e[0]", "e[1]"]
    np.testing.assert_allclose(rows, [[-1, 1], [0, 0], [1, -1]])


def test_the_column_that_is_taken_for_ids_is_named():
    frame = pl.DataFrame({"title": ["x", "y", "z"], "item_number": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="taken from the column 'title'"):
        encoded(frame)


def test_a_column_of_many_numbers_may_bend_and_its_mean_is_still_zero():
    ids = Ids(np.arange(50), "item")
    frame = pl.DataFrame({"item": np.arange(51), "x": [float(x) ** 2 for x in range(50)] + [None]})
    encoder, rows = encoded(frame, ids)
    assert encoder.columns[:2] == ["x", "x>24.1"]
    assert len(encoder.columns) == 10
    assert not rows[50].any()
    hinge = rows[:, 1] - rows[0, 1]
    assert (hinge[:5] == 0).all()
    assert (np.diff(hinge[5:50]) > 0).all()
    assert len(encoded(frame.with_columns(x=pl.col("x") % 5), ids)[0].columns) == 1


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_a_unit_however_large_or_small_changes_nothing(unit):
    values = np.array([1.0, 3.0, 2.5])
    _, plain = encoded(pl.DataFrame({"item": ["a", "b", "c"], "price": values}))
    _, other = encoded(pl.DataFrame({"item": ["a", "b", "c"], "price": values * unit}))
    np.testing.assert_allclose(other, plain)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["7", "12"], [7, 12]),
        (["007", "7"], ["007", "7"]),
        (["1.0", "1"], ["1.0", "1"]),
        (["18446744073709551617", "18446744073709551616"], ["18446744073709551617", "18446744073709551616"]),
    ],
)
def test_ids_of_a_file_are_as_they_are_written(tmp_path, written, read):
    (tmp_path / "f.csv").write_text("item,price\n" + "".join(f"{item},{n}.5\n" for n, item in enumerate(written)))
    table = Features(tmp_path / "f.csv").table([], "item")
    assert table.ids.array.tolist() == read
    assert table.parts[0].values.tolist() == [[0.5], [1.5]]


def test_a_number_beyond_64_bits_is_refused_with_a_word():
    with pytest.raises(ValueError, match="'price' holds a number of more than 64 bits"):
        encoded({"a": {"price": 10**400}, "b": {"price": 1}})


def test_a_file_of_features_that_unpacks_to_gigabytes_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("sadrec.data._text.expansion_limit", lambda size: 1000)
    with gzip.open(tmp_path / "f.csv.gz", "wb") as file:
        file.write(b"item,price\n" + b"0" * 5000)
    with pytest.raises(ValueError, match=r"f\.csv\.gz.*unpacks to more than"):
        Features(tmp_path / "f.csv.gz").table([], "item")


def test_one_word_among_numbers_is_said():
    ids = [f"item {number}" for number in range(20)]
    years = [str(1980 + number) for number in range(19)]
    with pytest.warns(DataWarning, match="column 'year' are numbers, and 'n/a' is not"):
        encoded(pl.DataFrame({"item": ids, "year": [*years, "n/a"]}), Ids(ids, "item"))
