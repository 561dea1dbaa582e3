"""Ids of every kind find their rows; anything else is refused with a remedy."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sadrec.data import Ids, UnknownIdError, as_id_array
from sadrec.data.ids import MAX_ID_LENGTH, _refuse_wide, join_ids


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, 1], "int64"),
        (np.array([3, 1], dtype=np.int8), "int64"),
        (np.array([3, 1], dtype=np.uint64), "int64"),
        (np.array([2**63 + 1, 1], dtype=np.uint64), "uint64"),
        ([2**63 + 1, 1], "uint64"),
        ([0.5, 1.0], "float64"),
        (["a", "bcd"], "<U3"),
        (np.array(["a", "bcd"], dtype=object), "<U3"),
        (np.array([1, 2], dtype=object), "int64"),
        (pl.Series(["a", "b"]), "<U1"),
        (pd.Series(["a", "b"]), "<U1"),
        (pd.Series(["a", "b"], dtype="category"), "<U1"),
        (pa.array(["a", "b"]), "<U1"),
        (pa.chunked_array([[1], [2]]), "int64"),
        ([datetime.date(2020, 1, 2)], "datetime64[D]"),
        ([], "int64"),
    ],
)
def test_ids_of_each_kind_become_one_array(values: object, kind: str) -> None:
    assert as_id_array(values).dtype == np.dtype(kind)


@pytest.mark.parametrize("values", [["a", 1], [1, None], [True, False], [b"a"], [[1], [2]], "abc", 5, [(1, 2)]])
def test_what_cannot_be_ids_is_refused(values: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        as_id_array(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, float("nan")], "position 1 is missing"),
        (["a", None], "position 1 is missing"),
        (np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), "position 1 is missing"),
        (["x" * (MAX_ID_LENGTH + 1)], "more than 256"),
        (["a\0"], "NUL"),
    ],
)
def test_missing_and_unkeepable_ids_are_refused_with_the_reason(values: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_id_array(values)


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1)), unique=True, min_size=1))
def test_each_whole_number_finds_its_own_row(values: list[int]) -> None:
    assert Ids(values).positions(values).tolist() == list(range(len(values)))


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), unique=True, min_size=1
    )
)
def test_each_text_finds_its_own_row(values: list[str]) -> None:
    ids = Ids(values)
    assert [ids.positions(value) for value in values] == list(range(len(values)))


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, min_size=1), st.integers(-(2**63), 2**64 - 1))
def test_large_numbers_are_not_confused_with_their_neighbours(values: list[int], wanted: int) -> None:
    ids = Ids(np.array(values, dtype=np.uint64))
    assert (wanted in ids) == (wanted in values)


def test_a_scalar_gives_a_row_and_a_sequence_an_array() -> None:
    ids = Ids([30, 10, 20])
    assert ids.positions(10) == 1
    assert isinstance(ids.positions(np.int32(10)), int)
    assert ids.positions([20, 30]).tolist() == [2, 0]
    assert ids.positions([20, 30]).dtype == np.int64
    assert ids.positions([]).tolist() == []


def test_whole_numbers_and_equal_floats_are_the_same_id() -> None:
    assert Ids([1, 2]).positions(2.0) == 1
    assert Ids([1.0, 2.5]).positions(1) == 0
    assert (
        Ids([1, 0]).positions([0.0, 1.0]).tolist()
        == Ids([1, 0]).positions(np.array([0, 1], np.uint8)).tolist()
        == [1, 0]
    )
    assert 2.5 not in Ids([1, 2])


def test_dates_are_found_by_date_and_by_text_of_none() -> None:
    ids = Ids(np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]"))
    assert ids.positions(np.datetime64("2020-01-01")) == 1
    assert ids.positions([datetime.date(2020, 1, 2)]).tolist() == [0]
    with pytest.raises(UnknownIdError):
        ids.positions("2020-01-01")


@pytest.mark.parametrize(
    ("values", "wanted", "message"),
    [
        ([1, 2], 5, "unknown item 5: the 2 known ones are 1, 2"),
        ([1, 2], [1, 7], "unknown item 7"),
        ([1, 2], "1", "ids here are whole numbers, this is text"),
        (["1", "2"], 1, "ids here are text, this is whole numbers"),
        (["a"], None, "unknown|cannot look up"),
        (["a"], ["a", 3], "cannot look up"),
        ([], 3, "none is known"),
        (["ab"], "abc", "unknown item 'abc': did you mean 'ab'. the 1 known ones"),
        (["ab", "cd"], "xyz", "unknown item 'xyz': the 2 known ones"),
    ],
)
def test_an_unknown_id_is_named_with_some_known_ones(values: list[object], wanted: object, message: str) -> None:
    with pytest.raises(UnknownIdError, match=message):
        Ids(values, "item").positions(wanted)


def test_an_id_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="the user 'b' is given twice"):
        Ids(["b", "a", "b"], "user")


def test_known_marks_the_known_ones() -> None:
    assert Ids([5, 3]).known([3, 4, 5]).tolist() == [True, False, True]


def test_what_cannot_be_looked_up_is_shown_in_sixty_characters() -> None:
    for length, shown in ((50, "x" * 50 + "']:"), (51, "x" * 49 + "...:")):
        with pytest.raises(UnknownIdError) as refused:
            Ids(["a"]).positions([True, "x" * length])
        assert f"[True, '{shown}" in str(refused.value)


def test_text_ids_may_take_eight_gibibytes() -> None:
    _refuse_wide(256, 2**23)
    with pytest.raises(ValueError, match="8388609 text ids of up to 256 characters take 8 GiB"):
        _refuse_wide(256, 2**23 + 1)


@pytest.mark.parametrize(
    ("values", "nothing"),
    [
        ([7, 8], -1),
        (np.array([2**63 + 7, 8], np.uint64), 0),
        ([7.5, 8.0], float("nan")),
        (["seven", "eight"], ""),
        (np.array(["2020-01-07", "2020-01-08"], "datetime64[D]"), np.datetime64("NaT", "D")),
    ],
)
def test_rows_are_named_and_no_row_by_what_means_nothing(values: object, nothing: object) -> None:
    ids = Ids(values)
    named = ids.named(np.array([1, -1, 0]))
    np.testing.assert_array_equal(named, np.array([ids.array[1], nothing, ids.array[0]], ids.array.dtype))


def test_ids_of_another_kind_have_no_row():
    assert Ids(["a", "b"]).rows([1, 2]).tolist() == [-1, -1]
    assert Ids(["a", "b"]).rows(np.array(["b", "c"])).tolist() == [1, -1]


def test_whole_numbers_of_more_than_64_bits_are_refused():
    with pytest.raises(TypeError, match="ids from 1 to 1180591620717411303424 do not fit 64 bits"):
        as_id_array([1, 2**70])


def test_new_ids_follow_the_known_ones_in_their_order():
    join = join_ids
    assert join(np.array([5, 3]), np.array([3, 9, 1]), np.array([1, 4])).tolist() == [5, 3, 9, 1, 4]
    assert join(None, np.array(["b", "a"]), np.array(["a", "long"])).tolist() == ["b", "a", "long"]
    ids = np.array([5, 3])
    assert join(ids, np.array([5, 3]), np.array([3])) is ids
    assert join(np.array([5, 3]), np.array([], "<U1")).tolist() == [5, 3]
    assert join(np.array([], np.int64), np.array(["a"])).tolist() == ["a"]


def test_ids_of_two_kinds_do_not_join():
    with pytest.raises(TypeError, match="ids of two kinds meet, 5 and 'a': convert one side first"):
        join_ids(np.array([5, 3]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="no data to learn from"):
        join_ids(None)
