"""Filters keep what they say; the description is the paper's table."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sadrec.data import Interactions, Items

matrices = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.sampled_from([0, 1, 2])
)


def per_user(data: Interactions) -> np.ndarray:
    return np.diff(data.matrix.indptr)


def per_item(data: Interactions) -> np.ndarray:
    return np.bincount(data.matrix.indices, minlength=data.shape[1])


@settings(deadline=None)
@given(matrices, st.integers(0, 3), st.integers(0, 3))
def test_until_stable_both_minima_hold_and_nothing_more_is_lost(dense: np.ndarray, users: int, items: int) -> None:
    dense[0, 0] = 1
    data = Interactions.from_csr(dense)
    keep_rows, keep_columns = np.ones(dense.shape[0], bool), np.ones(dense.shape[1], bool)
    for _ in range(20):
        rest = (dense != 0) & keep_rows[:, None] & keep_columns
        keep_columns &= rest.sum(0) >= items
        rest &= keep_columns
        keep_rows &= rest.sum(1) >= users
    expected = ((dense != 0) & keep_rows[:, None] & keep_columns).sum()
    if expected == 0:
        with pytest.raises(ValueError, match="nothing is left"):
            data.filter(users, items, until_stable=True)
        return
    kept = data.filter(users, items, until_stable=True)
    assert len(kept) == expected
    assert per_user(kept).min() >= max(users, 1)
    assert per_item(kept).min() >= max(items, 1)


def test_users_are_chosen_first_then_items_then_emptied_users_go() -> None:
    #              items  a  b  c
    dense = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 1]])
    data = Interactions.from_csr(dense, users=["u", "v", "w", "x"], items=["a", "b", "c"])
    kept = data.filter(top_users=3, min_per_item=2)
    # c has two of the three chosen users (u and w, who comes before x), so all three items stay
    assert kept.users.tolist() == ["u", "v", "w"]
    kept = data.filter(top_users=2, min_per_item=2)
    assert (kept.users.tolist(), kept.items.tolist(), len(kept)) == (["u", "v"], ["a", "b"], 4)


def test_a_filter_keeps_ratings_times_and_titles_in_place() -> None:
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 6], "rating": [0, 2, 3], "timestamp": [7, 8, 9]})
    data = replace(Interactions.from_frame(frame), item_titles=Items({5: "five", 6: "six"}))
    kept = data.filter(min_per_item=2)
    assert kept.to_frame().rows() == [(1, 6, 2.0, 8), (2, 6, 3.0, 9)]
    assert kept.item_titles is not None
    assert kept.item_titles.titles(kept.items).tolist() == ["six"]


@pytest.mark.parametrize(
    "arguments", [{"min_per_user": -1}, {"top_users": 0}, {"min_per_item": 1.5}, {"top_users": True}]
)
def test_bad_limits_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        Interactions.from_csr(np.eye(2)).filter(**arguments)


@pytest.mark.parametrize("wrong", [{"min_per_user": "x"}, {"min_per_item": 2.5}, {"top_users": 0}])
def test_limits_that_are_no_counts_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        Interactions.from_csr(np.eye(3)).filter(**wrong)


def test_the_description_counts() -> None:
    described = Interactions.from_csr(np.array([[1, 1, 0, 1], [0, 0, 0, 1]])).describe()
    assert (described.users, described.items, described.ratings, described.sparsity) == (2, 4, 4, 0.5)
    assert described.per_user == (1.0, 1.1, 2.0, 2.9, 3.0)
    assert described.per_item[0] == 0
    assert "sparsity  50.00%" in str(described)
    assert json.loads(json.dumps(described.as_dict()))["ratings"] == 4
