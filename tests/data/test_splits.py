"""Parts of a split are disjoint, complete, of the parent's shape, and the same for the same seed."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sadrec.data import Interactions, Items
from sadrec.data.splits import hold_out_share

Split = Callable[[Interactions, int], tuple[Interactions, Interactions]]


@st.composite
def interactions(draw: st.DrawFn) -> Interactions:
    """Random interactions with explicit zeros, times with ties, empty rows and columns."""
    users, items = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    pairs = draw(st.lists(st.tuples(st.integers(0, users - 1), st.integers(0, items - 1)), unique=True, min_size=1))
    ratings = draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    times = draw(st.lists(st.integers(0, 4), min_size=len(pairs), max_size=len(pairs)))
    rows, columns = np.array(pairs).T
    frame = pl.DataFrame({"user": rows, "item": columns, "rating": ratings, "timestamp": times})
    return Interactions.from_frame(frame)


def by_time(data: Interactions, **cut: object) -> tuple[Interactions, Interactions]:
    """Split by time, where a cut leaves something on either side."""
    try:
        return data.split_by_time(**cut)
    except ValueError:
        reject()


SPLITS: dict[str, Split] = {
    "leave_one_out": lambda data, seed: data.leave_one_out(seed),
    "split": lambda data, seed: data.split(0.3, seed),
    "split_by_time": lambda data, seed: by_time(data, test=0.3),
    "at": lambda data, seed: by_time(data, at=2),
    "user_folds": lambda data, seed: next(iter(data.user_folds(2, seed))),
}


@pytest.mark.parametrize("name", SPLITS)
@settings(deadline=None, max_examples=50)
@given(data=interactions(), seed=st.integers(0, 5))
def test_parts_are_disjoint_complete_and_of_the_whole_shape(name: str, data: Interactions, seed: int) -> None:
    parts = SPLITS[name](data, seed)
    rows = [row for part in parts for row in part.to_frame().iter_rows()]
    assert sorted(rows) == sorted(data.to_frame().iter_rows())
    for part in parts:
        assert part.shape == data.shape
        assert part.matrix.shape == data.shape
        assert part.users is data.users or np.array_equal(part.users, data.users)
        assert np.array_equal(part.items, data.items)
        arrays = (part.matrix.data, part.matrix.indices, part.matrix.indptr)
        assert sp.csr_matrix(arrays, shape=data.shape).has_canonical_format
        assert part.has_ratings == data.has_ratings


@pytest.mark.parametrize("name", SPLITS)
@settings(deadline=None, max_examples=20)
@given(data=interactions(), seed=st.integers(0, 5))
def test_the_same_seed_gives_the_same_parts(name: str, data: Interactions, seed: int) -> None:
    for one, other in zip(SPLITS[name](data, seed), SPLITS[name](data, seed), strict=True):
        assert one.to_frame().equals(other.to_frame())


@settings(deadline=None, max_examples=50)
@given(interactions(), st.integers(0, 5))
def test_one_is_left_out_of_every_user_who_has_two(data: Interactions, seed: int) -> None:
    _, held_out = data.leave_one_out(seed)
    assert np.diff(held_out.matrix.indptr).tolist() == (np.diff(data.matrix.indptr) >= 2).astype(int).tolist()


def test_each_interaction_of_a_user_is_left_out_equally_often() -> None:
    data = Interactions.from_csr(np.ones((1, 4)))
    drawn = [data.leave_one_out(seed)[1].matrix.indices[0] for seed in range(2000)]
    counts = np.bincount(drawn, minlength=4)
    # Chi-square with 3 degrees of freedom is above 16.3 once in a thousand.
    assert ((counts - 500) ** 2 / 500).sum() < 16.3


@given(st.integers(1, 300), st.floats(0.01, 0.99), st.integers(0, 9))
def test_a_share_is_exact(count: int, share: float, seed: int) -> None:
    assert hold_out_share(count, share, seed).sum() == round(share * count)


def test_every_set_of_a_share_is_equally_likely() -> None:
    drawn = [tuple(np.flatnonzero(hold_out_share(4, 0.5, seed)).tolist()) for seed in range(3000)]
    counts = np.array([drawn.count(pair) for pair in sorted(set(drawn))])
    assert len(counts) == 6
    # Chi-square with 5 degrees of freedom is above 20.5 once in a thousand.
    assert ((counts - 500) ** 2 / 500).sum() < 20.5


def test_another_seed_gives_another_split() -> None:
    data = Interactions.from_csr(np.ones((30, 30)))
    assert not data.split(seed=0)[1].to_frame().equals(data.split(seed=1)[1].to_frame())
    assert not data.leave_one_out(0)[1].to_frame().equals(data.leave_one_out(1)[1].to_frame())


def test_seed_zero_stays_what_it_is() -> None:
    data = Interactions.from_csr(np.ones((6, 5)))
    assert data.leave_one_out(0)[1].matrix.indices.tolist() == [3, 1, 0, 0, 4, 4]
    assert data.split(0.2, 0)[1].matrix.indices.tolist() == [2, 3, 1, 3, 0, 4]


def test_a_time_cut_puts_equal_times_on_one_side() -> None:
    frame = pl.DataFrame({"user": [1] * 5, "item": range(5), "timestamp": [1, 2, 2, 2, 3]})
    train, test = Interactions.from_frame(frame).split_by_time(test=0.4)
    assert (len(train), len(test)) == (1, 4)


def test_a_time_cut_that_leaves_a_part_empty_is_refused() -> None:
    data = Interactions.from_frame(pl.DataFrame({"user": [1] * 3, "item": range(3), "timestamp": [7, 8, 9]}))
    with pytest.raises(ValueError, match=r"a cut at 0.2 leaves nothing before it: .* from 7 to 9; .*test=0.2"):
        data.split_by_time(0.2)
    with pytest.raises(ValueError, match="a cut at 10 leaves nothing after it"):
        data.split_by_time(10)
    same = Interactions.from_frame(pl.DataFrame({"user": [1] * 3, "item": range(3), "timestamp": [7] * 3}))
    with pytest.raises(ValueError, match="a cut at 7 leaves nothing before it"):
        same.split_by_time()


def test_a_time_cut_can_be_a_date() -> None:
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "date": ["2005-01-31", "2005-02-01"]})
    data = Interactions.from_frame(frame.with_columns(pl.col("date").str.to_date()))
    assert data.split_by_time("2005-02-01")[1].items[data.split_by_time("2005-02-01")[1].matrix.indices].tolist() == [2]


@settings(deadline=None, max_examples=30)
@given(interactions(), st.integers(0, 3))
def test_every_user_is_in_one_fold(data: Interactions, seed: int) -> None:
    k = min(3, max(2, data.shape[0]))
    folds = list(data.user_folds(k, seed)) if data.shape[0] >= 2 else []
    sizes = [np.diff(test.matrix.indptr) > 0 for _, test in folds]
    if folds:
        assert np.array_equal(np.sum(sizes, axis=0), (np.diff(data.matrix.indptr) > 0).astype(int))
        assert max(s.sum() for s in sizes) - min(s.sum() for s in sizes) <= 1
        for train, test in folds:
            assert not ((np.diff(train.matrix.indptr) > 0) & (np.diff(test.matrix.indptr) > 0)).any()


def test_explicit_zeros_survive_splits() -> None:
    frame = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [0, 0, 0, 0]})
    data = Interactions.from_frame(frame)
    assert [len(part) for part in data.leave_one_out()] == [2, 2]
    assert [len(part) for part in data.split(0.25)] == [3, 1]


def test_titles_go_with_the_parts() -> None:
    data = replace(Interactions.from_csr(np.ones((2, 2))), item_titles=Items({0: "zero", 1: "one"}))
    for part in data.leave_one_out():
        assert part.item_titles is not None
        assert part.item_titles.titles(part.items).tolist() == ["zero", "one"]


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, "half", True, float("nan")])
def test_a_share_outside_zero_and_one_is_refused(share: object) -> None:
    with pytest.raises(ValueError, match="test must be a share between 0 and 1"):
        Interactions.from_csr(np.eye(3)).split(share)


@pytest.mark.parametrize("seed", [-1, 1.5, None, "a", True])
def test_a_seed_that_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number"):
        Interactions.from_csr(np.eye(3)).leave_one_out(seed)


@pytest.mark.parametrize("k", [0, 1, 4, 2.5, "3"])
def test_a_number_of_folds_that_cannot_be_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="k must be a whole number, from 2 to 3"):
        list(Interactions.from_csr(np.eye(3)).user_folds(k))


def test_splits_by_time_need_times() -> None:
    with pytest.raises(ValueError, match="have no timestamps"):
        Interactions.from_csr(np.eye(3)).split_by_time()


def test_a_cut_of_another_kind_than_the_times_is_refused() -> None:
    frame = pl.DataFrame({"user": [1], "item": [1], "timestamp": [5]})
    with pytest.raises(TypeError, match="timestamps are numbers"):
        Interactions.from_frame(frame).split_by_time("2005-01-01")
    dated = Interactions.from_frame(frame.with_columns(timestamp=pl.lit("2005-01-01")))
    for wrong in (5, "soon"):
        with pytest.raises(ValueError, match="timestamps are dates, so at must be one too"):
            dated.split_by_time(wrong)
