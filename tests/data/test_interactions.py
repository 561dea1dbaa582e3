"""Any table or matrix becomes the same canonical matrix, with its ids."""

import copy
import datetime
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sadrec import SAD
from sadrec.data import Comparisons, DataWarning, Interactions, Items, _assemble, _vocabulary, as_interactions

FRAME = pl.DataFrame({"user": ["b", "a", "b"], "item": [7, 7, 9], "rating": [5.0, 0.0, 3.0], "timestamp": [3, 1, 2]})
rows_of_pairs = st.lists(
    st.tuples(st.integers(-3, 6), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60
)


def as_frame(rows: list[tuple[int, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["user", "item", "rating", "timestamp"], orient="row")


def as_dict(data: Interactions) -> dict[tuple[object, object], float]:
    return {(row[0], row[1]): row[2] for row in data.to_frame().iter_rows()}


def is_canonical(matrix: sp.csr_matrix) -> bool:
    fresh = sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return bool(fresh.has_canonical_format) and matrix.dtype == np.float32 and matrix.indices.dtype == np.int32


@pytest.mark.parametrize("convert", [lambda f: f, pl.DataFrame.lazy, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_frames_of_every_kind_give_the_same(convert: object) -> None:
    data = Interactions.from_frame(convert(FRAME))
    assert data.to_frame().rows() == [("a", 7, 0.0, 1), ("b", 7, 5.0, 3), ("b", 9, 3.0, 2)]
    assert data.users.tolist() == ["a", "b"]
    assert data.items.tolist() == [7, 9]
    assert data.has_ratings


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Series(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"], dtype="string"),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"])),
        pa.array(["b", "a", "b"]).dictionary_encode(),
    ],
)
def test_text_ids_of_every_kind_are_sorted_text(column: object) -> None:
    frame = {
        "pandas": lambda: pd.DataFrame({"user": column, "item": [1, 2, 3]}),
        "polars": lambda: pl.DataFrame({"user": column, "item": [1, 2, 3]}),
        "pyarrow": lambda: pa.table({"user": column, "item": pa.array([1, 2, 3])}),
    }[type(column).__module__.split(".")[0]]()
    data = Interactions.from_frame(frame)
    assert data.users.dtype.kind == "U"
    assert data.users.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "ids",
    [
        np.array([5, -3, 5], dtype=np.int8),
        np.array([2**63 + 5, 1, 2**63 + 5], dtype=np.uint64),
        np.array([0.5, -0.5, 0.5]),
        np.array(["2020-02-01", "2020-01-01", "2020-02-01"], dtype="datetime64[us]"),
        np.array(["é", "z", "é"]),
    ],
)
def test_ids_of_every_type_come_out_as_they_went_in(ids: np.ndarray) -> None:
    data = Interactions.from_frame(pl.DataFrame({"user": ids, "item": [1, 2, 3]}))
    assert data.users.tolist() == sorted(set(ids.tolist()))


@settings(deadline=None)
@given(rows_of_pairs, st.integers(1, 20))
def test_the_matrix_is_canonical_and_holds_the_last_by_time(rows: list[tuple[int, ...]], batch: int) -> None:
    before = _assemble.BATCH
    _assemble.BATCH = batch
    try:
        data = Interactions.from_frame(as_frame(rows), duplicates="last")
    finally:
        _assemble.BATCH = before
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for user, item, rating, time in rows:
        if (user, item) not in expected or time >= expected[user, item][0]:
            expected[user, item] = (time, rating)
    assert as_dict(data) == {pair: rating for pair, (_, rating) in expected.items()}
    assert data.timestamps is not None
    assert data.timestamps.tolist() == [expected[pair][0] for pair in sorted(expected)]
    assert is_canonical(data.matrix)
    assert (np.diff(data.users) > 0).all()
    assert (np.diff(data.items) > 0).all()


@settings(deadline=None)
@given(rows_of_pairs, st.sampled_from(["sum", "count", "max"]))
def test_repeated_pairs_can_be_summed_counted_or_maximised(rows: list[tuple[int, ...]], how: str) -> None:
    groups: dict[tuple[int, int], list[int]] = {}
    for user, item, rating, _ in rows:
        groups.setdefault((user, item), []).append(rating)
    merge = {"sum": sum, "count": len, "max": max}[how]
    data = Interactions.from_frame(as_frame(rows), duplicates=how)
    assert as_dict(data) == {pair: merge(values) for pair, values in groups.items()}


@settings(deadline=None)
@given(rows_of_pairs)
def test_without_times_the_last_row_of_a_pair_counts(rows: list[tuple[int, ...]]) -> None:
    data = Interactions.from_frame(as_frame(rows), timestamp=None, duplicates="last")
    assert as_dict(data) == {(user, item): rating for user, item, rating, _ in rows}


@settings(deadline=None)
@given(rows_of_pairs, st.randoms())
def test_the_order_of_rows_does_not_matter_where_no_pair_repeats(rows: list[tuple[int, ...]], random: object) -> None:
    rows = list({row[:2]: row for row in rows}.values())
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = Interactions.from_frame(as_frame(rows)), Interactions.from_frame(as_frame(shuffled))
    assert one.to_frame().equals(other.to_frame())


def test_repeated_pairs_are_said_once_unless_chosen() -> None:
    frame = as_frame([(1, 1, 5, 2), (1, 1, 3, 1), (1, 1, 4, 0)])
    with pytest.warns(DataWarning, match="2 rows repeat a .user, item. pair: kept the latest of each") as warned:
        Interactions.from_frame(frame)
    assert len(warned) == 1
    with pytest.warns(DataWarning, match="kept the last row of each"):
        Interactions.from_frame(frame, timestamp=None)


def test_choosing_what_becomes_of_repeated_pairs_is_silent(recwarn: pytest.WarningsRecorder) -> None:
    Interactions.from_frame(as_frame([(1, 1, 5, 2), (1, 1, 3, 1)]), duplicates="max")
    assert not [w for w in recwarn if issubclass(w.category, DataWarning)]


def test_float_times_order_negative_and_positive() -> None:
    frame = pl.DataFrame(
        {"user": [1] * 4, "item": [1] * 4, "rating": [1, 2, 3, 4], "timestamp": [-1.5, 2.5, -2.5, 0.0]}
    )
    data = Interactions.from_frame(frame, duplicates="last")
    assert data.timestamps is not None
    assert (data.matrix.data.tolist(), data.timestamps.tolist()) == ([2.0], [2.5])


@settings(deadline=None)
@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.sampled_from([0, 1, 2.5]))
)
def test_sparse_and_dense_matrices_of_every_kind_give_the_same(dense: np.ndarray) -> None:
    if not dense.any():
        dense[0, 0] = 1
    kinds = [dense, dense.tolist(), dense.astype(np.float64)]
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        kinds += [sp.csr_matrix(dense).asformat(form), sp.csr_array(dense).asformat(form)]
    for kind in kinds:
        data = Interactions.from_csr(kind)
        assert is_canonical(data.matrix)
        assert np.array_equal(data.matrix.toarray(), dense)
        assert data.matrix.nnz >= np.count_nonzero(dense)


def test_stored_zeros_of_a_matrix_are_interactions() -> None:
    matrix = sp.csr_array((np.array([0.0, 2.0, 0.0]), np.array([1, 0, 2]), np.array([0, 2, 3])), shape=(2, 3))
    for kind in (matrix, sp.csc_array(matrix), sp.coo_matrix(matrix)):
        data = Interactions.from_csr(kind)
        assert (len(data), data.matrix.indices.tolist(), data.matrix.data.tolist()) == (3, [0, 1, 2], [2, 0, 0])


def test_repeated_entries_of_a_matrix_are_summed() -> None:
    matrix = sp.coo_array((np.array([1.0, 2.0]), (np.array([0, 0]), np.array([1, 1]))), shape=(1, 2))
    assert Interactions.from_csr(matrix).matrix.toarray().tolist() == [[0, 3]]


def test_a_matrix_of_ones_has_no_ratings() -> None:
    assert not Interactions.from_csr(np.eye(2, dtype=bool)).has_ratings
    assert not Interactions.from_csr(sp.csr_matrix(np.eye(2))).has_ratings
    assert Interactions.from_csr(2 * np.eye(2)).has_ratings


def test_ids_of_a_matrix_keep_their_order() -> None:
    data = Interactions.from_csr(np.eye(2), users=["z", "a"], items=[9, 3])
    assert (data.users.tolist(), data.items.tolist()) == (["z", "a"], [9, 3])
    assert data.user_ids.positions("a") == 1


def test_a_matrix_is_copied() -> None:
    matrix = sp.csr_matrix(np.eye(2, dtype=np.float32))
    data = Interactions.from_csr(matrix)
    matrix.data[:] = 7
    assert data.matrix.data.tolist() == [1, 1]


def test_nothing_can_be_changed() -> None:
    data = Interactions.from_frame(FRAME)
    with pytest.raises(AttributeError, match="cannot assign"):
        data.matrix = None
    with pytest.raises(ValueError, match="read-only"):
        data.matrix.data[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        data.users[0] = "z"


def test_copies_and_pickles_hold_the_same() -> None:
    data = replace(Interactions.from_frame(FRAME), item_titles=Items({7: "seven"}))
    for other in (copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
        assert other.to_frame().equals(data.to_frame())
        assert dict(other.item_titles) == {"7": "seven"}
        assert not other.users.flags.writeable
        assert not other.matrix.data.flags.writeable


def test_as_interactions_takes_every_form(tmp_path: object) -> None:
    data = Interactions.from_frame(FRAME)
    path = tmp_path / "a.parquet"
    FRAME.write_parquet(path)
    assert as_interactions(data) is data
    assert as_interactions(FRAME).to_frame().equals(data.to_frame())
    assert as_interactions(path).to_frame().equals(data.to_frame())
    assert as_interactions(str(path)).to_frame().equals(data.to_frame())
    assert np.array_equal(as_interactions(data.matrix).matrix.toarray(), data.matrix.toarray())
    assert np.array_equal(as_interactions(data.matrix.toarray()).matrix.toarray(), data.matrix.toarray())
    for wrong in (None, 3, {"user": [1]}, object()):
        with pytest.raises(TypeError, match="cannot take interactions from"):
            as_interactions(wrong)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"user": [1], "item": [1], "rating": [None]}, ValueError, "row 0 has no rating"),
        (
            {"user": [1, 2], "item": [1, 1], "rating": [1.0, np.nan]},
            ValueError,
            "row 1 has the rating nan.*rating=None",
        ),
        ({"user": [1, 2], "item": [1, 1], "rating": [1.0, np.inf]}, ValueError, "row 1 has the rating inf"),
        ({"user": [1, 2], "item": [1, 1], "rating": [1.0, -2.0]}, ValueError, "row 1 .* -2.*allow_negative=True"),
        ({"user": [1], "item": [1], "rating": ["good"]}, TypeError, "ratings are of type String"),
        ({"user": [1, None], "item": [1, 1]}, ValueError, "row 1 has no user"),
        ({"user": [1, 2], "item": [None, 1.5]}, ValueError, "row 0 has no item"),
        ({"user": [1.0, np.nan], "item": [1, 1]}, ValueError, "row 1 has NaN for its user"),
        ({"user": [True], "item": [1]}, TypeError, "ids must be whole numbers, numbers, text or dates"),
        ({"user": [[1]], "item": [1]}, TypeError, "ids must be"),
        ({"user": [1], "item": [1], "timestamp": [None]}, ValueError, "row 0 has no timestamp"),
        ({"user": [1], "item": [1], "timestamp": ["noon"]}, ValueError, "row 0 has the timestamp .noon."),
        ({"user": [1], "item": [1], "timestamp": [[1]]}, TypeError, "timestamps are of type List"),
        ({"user": [1], "item": [1], "timestamp": [float("inf")]}, ValueError, "row 0 has the timestamp inf"),
        ({"user": [1], "item": [1], "timestamp": [2**63]}, ValueError, "row 0 has the timestamp 9223372036854775808"),
        ({"user": [2**70], "item": [1]}, TypeError, "row 0: the user 1180591620717411303424 does not fit 64 bits"),
        ({"user": [], "item": []}, ValueError, "no rows"),
        ({"who": [1], "item": [1]}, ValueError, "no column looks like the user; the columns are 'who', 'item'"),
    ],
)
def test_bad_frames_are_refused_with_row_and_remedy(
    columns: dict[str, list[object]], error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        Interactions.from_frame(pl.DataFrame(columns))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"user": "nobody"}, "no column 'nobody' for the user: the columns are"),
        ({"duplicates": "first"}, "duplicates must be 'last', 'sum', 'count' or 'max', not 'first'"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interactions.from_frame(FRAME, **arguments)


def test_a_pandas_column_of_mixed_types_is_refused() -> None:
    with pytest.raises(TypeError, match="mixes int, str"):
        Interactions.from_frame(pd.DataFrame({"user": [1, "a"], "item": [1, 2]}))


def test_missing_values_of_pandas_are_missing() -> None:
    frame = pd.DataFrame({"user": pd.Series([1, pd.NA], dtype="Int64"), "item": [1, 2]})
    with pytest.raises(ValueError, match="row 1 has"):
        Interactions.from_frame(frame)


def test_negative_ratings_are_kept_when_allowed() -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1.0, -2.0]})
    assert Interactions.from_frame(frame, allow_negative=True).matrix.data.tolist() == [1, -2]
    assert Interactions.from_csr(np.array([[1, -2]]), allow_negative=True).matrix.data.tolist() == [1, -2]


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.array([[1.0, np.nan]]), ValueError, "holds nan at row 0, column 1"),
        (np.array([[0, 0], [0, -1]]), ValueError, "holds -1 at row 1, column 1.*allow_negative"),
        (np.zeros((2, 2)), ValueError, "has no entries"),
        (np.zeros((0, 3)), ValueError, "has no entries"),
        (np.ones(3), ValueError, "must be a matrix with two axes"),
        (np.array([["a"]]), TypeError, "must hold numbers"),
        (np.array([[1j]]), TypeError, "must hold numbers"),
    ],
)
def test_bad_matrices_are_refused(matrix: np.ndarray, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Interactions.from_csr(matrix)


def test_ids_that_do_not_fit_the_matrix_are_refused() -> None:
    with pytest.raises(ValueError, match="3 user ids are given for 2 users"):
        Interactions.from_csr(np.eye(2), users=[1, 2, 3])
    with pytest.raises(ValueError, match="given twice"):
        Interactions.from_csr(np.eye(2), items=[1, 1])


def test_one_user_with_one_item_is_enough() -> None:
    data = Interactions.from_frame(pl.DataFrame({"user": ["u"], "item": ["i"]}))
    assert (data.shape, len(data)) == ((1, 1), 1)


def test_making_one_of_other_things_says_how() -> None:
    with pytest.raises(TypeError, match=r"Interactions.read, .from_frame or .from_csr"):
        Interactions(np.eye(2), [1, 2], [1, 2])


def test_indices_of_64_bits_become_32() -> None:
    matrix = sp.csr_array(np.eye(3))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    data = Interactions.from_csr(matrix)
    assert data.matrix.indices.dtype == data.matrix.indptr.dtype == np.int32


def test_dates_as_text_are_times_in_frames_too() -> None:
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "date": ["2005-02-01", "2005-01-31 12:30:00"]})
    times = Interactions.from_frame(frame).timestamps
    assert times is not None
    assert times.tolist() == [datetime.datetime(2005, 2, 1), datetime.datetime(2005, 1, 31, 12, 30)]


def test_the_matrix_works_with_scipy_although_it_cannot_be_written() -> None:
    matrix = Interactions.from_frame(FRAME).matrix
    dense = matrix.toarray()
    assert np.array_equal(matrix.T.tocsr().toarray(), dense.T)
    assert np.array_equal(matrix.tocsc().toarray(), dense)
    assert np.array_equal(matrix[[1, 0]].toarray(), dense[[1, 0]])
    assert np.array_equal((matrix @ matrix.T).toarray(), dense @ dense.T)
    assert np.array_equal(matrix.copy().multiply(2).toarray(), 2 * dense)
    assert matrix.sum() == dense.sum()


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text("ab\u00e9", max_size=3), min_size=1, max_size=60),
    st.integers(1, 20),
    st.sampled_from([0, 1, 3, -1]),
)
def test_text_ids_with_equal_hashes_are_distinguished(names: list[str], batch: int, bits: int) -> None:
    hashes = _vocabulary.hash_text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_vocabulary, "hash_text", lambda ids: hashes(ids) & bits)
        patch.setattr(_assemble, "BATCH", batch)
        frame = pl.DataFrame({"user": names, "item": np.arange(len(names))})
        data = Interactions.from_frame(frame)
    assert data.to_frame().rows() == sorted(frame.rows())


@pytest.mark.parametrize(
    "times",
    [
        [-(2**63), 2**63 - 1, 0, 5],
        [2**63 - 1, 2**63 - 2, 2**63 - 3, 2**63 - 4],
        [86_400 * day - 7 for day in (9, 70_000, -3, 0)],
        [1_700_000_000, 1_700_000_001, 1_700_000_060, 3],
        [0.5, -1e300, 1e-300, 2.0**60],
    ],
)
def test_times_and_ratings_are_what_was_given(times):
    ratings = np.array([4.5, 300.0, 2.0, 1e-30], np.float32)
    frame = pl.DataFrame({"user": [3, 2, 1, 0], "item": [70_000, 2, 3, 4], "rating": ratings, "timestamp": times})
    data = Interactions.from_frame(frame)
    assert data.timestamps.tolist() == times[::-1]
    assert data.matrix.data.tolist() == ratings.tolist()[::-1]


def test_ids_in_the_index_of_a_frame_are_columns():
    frame = pd.DataFrame({"item": ["a", "b"], "rating": [3, 4]}, index=pd.Index(["x", "y"], name="user_id"))
    assert Interactions.from_frame(frame).users.tolist() == ["x", "y"]
    both = frame.set_index("item", append=True)
    assert Interactions.from_frame(both).items.tolist() == ["a", "b"]


def test_an_index_of_no_role_is_left_alone():
    frame = pd.DataFrame({"winner": ["a"], "loser": ["b"]}, index=pd.Index([7], name="game"))
    assert Comparisons.from_frame(frame).items.tolist() == ["a", "b"]


def test_the_remedy_for_a_column_that_is_not_found_works(tmp_path):
    frame = pl.DataFrame({"Who": [1, 2], "sku": ["a", "b"]})
    with pytest.raises(ValueError, match=r"name them: Interactions\.from_frame\(frame, user=COLUMN, item=COLUMN\)$"):
        SAD().fit(frame)
    assert Interactions.from_frame(frame, user="Who", item="sku").items.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"there is no column 'who' for the user: did you mean 'Who'\?"):
        Interactions.from_frame(frame, user="who", item="sku")
    frame.write_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"name it: Interactions\.read\(path, item=COLUMN\)"):
        Interactions.read(tmp_path / "a.csv", user="Who")
    assert Interactions.read(tmp_path / "a.csv", user="Who", item="sku").users.tolist() == [1, 2]


def test_the_remedy_for_a_pivot_table_works_and_its_columns_are_not_all_listed():
    remedy = r"from_csr\(matrix, users, items\), with 0 where there is no rating$"
    pivot = pd.DataFrame(np.diag(range(1, 51)), index=pd.Index(range(50), name="user"))
    with pytest.raises(TypeError, match=rf"names of columns must be text, not 0: .*{remedy}"):
        Interactions.from_frame(pivot)
    assert Interactions.from_csr(pivot, pivot.index, pivot.columns).shape == (50, 50)
    films = pl.DataFrame({"user": ["x", "y"], **{f"film {number}": [0, 1] for number in range(50)}})
    with pytest.raises(ValueError, match=rf"no column looks like the item; .* and 41 others; .*{remedy}"):
        Interactions.from_frame(films)
    read = Interactions.from_csr(films.drop("user").to_numpy(), films["user"], films.columns[1:])
    assert read.users.tolist() == ["x", "y"] and read.items[49] == "film 49"


def test_titles_that_are_a_plain_mapping_are_refused():
    with pytest.raises(TypeError, match=r"item_titles must be sadrec.Items or None, not dict"):
        replace(Interactions.from_csr(np.eye(2)), item_titles={0: "Kolya"})
