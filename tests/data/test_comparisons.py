"""Comparisons from every form, ties, weights and what is refused."""

import copy
import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sadrec.data import Comparisons, DataWarning, Interactions, as_comparisons, as_feedback, folds

STATED = pl.DataFrame({"judge": ["b", "a", "b"], "winner": [3, 1, 2], "loser": [1, 2, 3]})
SIDES = pl.DataFrame({"user": [2, 1, 1], "left": ["x", "y", "x"], "right": ["y", "x", "z"], "winner": ["y", None, "x"]})


@pytest.mark.parametrize("convert", [lambda f: f, pl.DataFrame.lazy, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_frames_of_every_kind_give_the_same(convert: object) -> None:
    pairs = Comparisons.from_frame(convert(STATED), user="judge", winner="winner", loser="loser")
    assert pairs.to_frame().rows() == [("b", 3, 1), ("a", 1, 2), ("b", 2, 3)]
    assert (pairs.users.tolist(), pairs.items.tolist()) == (["a", "b"], [1, 2, 3])
    assert pairs.user_index.dtype == pairs.winner_index.dtype == pairs.loser_index.dtype == np.int32
    assert pairs.weight is None
    assert len(pairs) == 3


def test_usual_column_names_are_found() -> None:
    assert Comparisons.from_frame(STATED).to_frame().rows() == [("b", 3, 1), ("a", 1, 2), ("b", 2, 3)]


def test_the_winner_of_two_sides_wins_and_ties_are_kept() -> None:
    pairs = Comparisons.from_frame(SIDES)
    assert pairs.to_frame().rows() == [(2, "y", "x", "y"), (1, "y", "x", None), (1, "x", "z", "x")]
    assert pairs.decided.to_frame().rows() == [(2, "y", "x"), (1, "x", "z")]
    assert pairs.ties is not None and pairs.ties.to_frame().rows() == [(1, "y", "x", None)]


@pytest.mark.parametrize(
    "winner",
    [
        ["model_b", "tie", "model_a", "tie (bothbad)"],
        ["right", "draw", "left", "both"],
        ["b", "", "a", None],
        ["z", None, "z", None],
        ["0-1", "1/2-1/2", "1-0", "½-½"],
        [0.0, 0.5, 1.0, None],
        ["0", "0.5", "1", ""],
    ],
)
def test_outcomes_are_read_as_people_have_them(winner: list[object]) -> None:
    frame = pl.DataFrame({"model_a": ["x", "y", "z", "x"], "model_b": ["z", "z", "x", "y"], "winner": winner})
    rows = Comparisons.from_frame(frame).to_frame().drop("user").rows()
    assert rows == [("z", "x", "z"), ("y", "z", None), ("z", "x", "z"), ("x", "y", None)]


def test_scores_of_games_say_who_won_and_features_are_those_of_the_winner() -> None:
    columns = {
        "team1": [1, 2, 3],
        "team2": [2, 3, 1],
        "score1": [0, 2, 4],
        "score2": [2, 2, 1],
        "home": [1.0, 1.0, 0.5],
    }
    games = Comparisons.from_frame(pl.DataFrame(columns), features=["home"])
    assert games.to_frame().rows() == [(0, 2, 1, 2, -1), (0, 2, 3, None, 1), (0, 3, 1, 3, 0.5)]


@pytest.mark.parametrize(
    "columns",
    [
        {"model_a": 0, "model_b": 1, "winner_model_a": [0, 0], "winner_model_b": [1, 0], "winner_tie": [0, 1]},
        {"HomeTeam": 0, "AwayTeam": 1, "FTHG": [0, 2], "FTAG": [1, 2], "FTR": ["A", "D"]},
        {"home": 0, "away": 1, "result": ["A", "D"]},
        {"white": 0, "black": 1, "result": ["0-1", "1/2-1/2"]},
    ],
)
def test_columns_are_known_as_public_data_names_them(columns: dict[str, object]) -> None:
    sides = ["x", "y"], ["y", "z"]
    frame = pl.DataFrame({name: sides[of] if isinstance(of, int) else of for name, of in columns.items()})
    assert as_feedback(frame).to_frame().drop("user").rows() == [("y", "x", "y"), ("y", "z", None)]


def test_a_ranking_in_one_column_is_every_item_over_every_later_one(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("judge,ranking\nann,tea > ale > gin\nbob,gin>tea\n")
    rows = [("ann", "tea", "ale"), ("ann", "tea", "gin"), ("ann", "ale", "gin"), ("bob", "gin", "tea")]
    assert as_feedback(path).to_frame().rows() == rows
    path.write_text("ranking\ntea > gin\ntea >\n")
    with pytest.raises(ValueError, match="line 3: a ranking is written 'best > second > last', not 'tea >'"):
        Comparisons.read(path, show_progress=False)
    ratings = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "ranking": [5, 3, 4]})
    assert isinstance(as_feedback(ratings), Interactions)


def test_numbers_that_are_items_are_no_scores() -> None:
    frame = pl.DataFrame({"left": [1, 7], "right": [0, 5], "winner": [0, 1]})
    with pytest.raises(ValueError, match=r"row 1: the winner 1 is neither left .7. nor right"):
        Comparisons.from_frame(frame)


def test_a_list_holds_pairs_or_rankings() -> None:
    pairs = as_feedback([("a", "b"), ("c", "a", "b")])
    assert isinstance(pairs, Comparisons)
    assert pairs.to_frame().drop("user").rows() == [("a", "b"), ("c", "a"), ("c", "b"), ("a", "b")]
    of_two = Comparisons.from_pairs([(1, 2), (2, 3)], users=["ann", "bob"])
    assert of_two.to_frame().rows() == [("ann", 1, 2), ("bob", 2, 3)]
    with pytest.raises(ValueError, match=r"a ranking has two items or more, not .1,."):
        Comparisons.from_pairs([(1,)])
    for wrong in ([("ann", 1), ("bob", 2)], [("ann", "tea", 5)]):  # users and items
        with pytest.raises(TypeError, match=r"holds \(winner, loser\), items of one type, not \('ann'"):
            Comparisons.from_pairs(wrong)


def test_a_matrix_of_wins_is_no_matrix_of_interactions() -> None:
    wins = np.array([[0, 3, 1], [2, 0, 4], [1, 2, 0]])
    for matrix in (wins, csr_matrix(wins), np.triu(np.ones((4, 4)), 1)):
        with pytest.raises(ValueError, match=r"Comparisons\.from_wins"):
            as_feedback(matrix)
    assert Comparisons.from_wins(wins, items=["a", "b", "c"]).to_frame().rows()[:2] == [
        (0, "a", "b", 3),
        (0, "a", "c", 1),
    ]
    assert isinstance(as_feedback(np.eye(3)), Interactions)


@pytest.mark.parametrize(
    "wins",
    [
        np.array([[0, 3], [1, 0]]),
        np.array([[0, 2.5, 1], [0.5, 0, 3], [1, 1, 0]]),
        np.array([[np.nan, 3, 1], [2, np.nan, 4], [1, 2, np.nan]]),
        [[0, 3, 1], [2, 0, 4], [1, 2, 0]],
        pl.DataFrame({"item": ["a", "b", "c"], "a": [0, 2, 1], "b": [3, 0, 2], "c": [1, 4, 0]}),
    ],
)
def test_wins_of_any_form_are_refused_with_the_right_call(wins: object) -> None:
    with pytest.raises(ValueError, match=r"Comparisons\.from_wins"):
        as_feedback(wins)
    assert Comparisons.from_wins(wins).weight is not None


def test_looking_for_wins_leaves_a_matrix_as_it_is() -> None:
    stored = csr_matrix((np.array([0.0, 1, 1, 1]), np.array([0, 1, 2, 0]), np.array([0, 1, 3, 4])))
    data = as_feedback(stored)
    assert stored.nnz == 4
    assert stored.indices.tolist() == [0, 1, 2, 0]
    assert isinstance(data, Interactions)


def test_a_frame_of_wins_names_its_items() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [("a", "b", 3), ("b", "a", 2)]
    frame = pandas.DataFrame([[0, 3], [2, 0]], index=["a", "b"], columns=["a", "b"])
    assert Comparisons.from_wins(frame).to_frame().drop("user").rows() == rows
    named = pl.DataFrame({"item": ["a", "b"], "a": [None, 2], "b": [3, None]})
    assert Comparisons.from_wins(named).to_frame().drop("user").rows() == rows
    with pytest.raises(ValueError, match="the same order"):
        Comparisons.from_wins(frame[["b", "a"]])


def test_wins_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="row 1 says how often an item won against itself"):
        Comparisons.from_wins([[0, 1], [1, 3]])
    with pytest.raises(ValueError, match="1 items name the 2 rows"):
        Comparisons.from_wins([[0, 1], [1, 0]], items=["a"])


def test_an_array_of_pairs_is_no_matrix_of_interactions() -> None:
    pairs = as_feedback(np.array([["a", "b"], ["b", "c"]]))
    assert isinstance(pairs, Comparisons)
    assert pairs.to_frame().drop("user").rows() == [("a", "b"), ("b", "c")]
    with pytest.raises(ValueError, match=r"Comparisons\.from_pairs"):
        as_feedback(np.array([[0, 1], [1, 2], [0, 2]]))


def test_a_split_tie_is_half_a_comparison_each_way() -> None:
    pairs = Comparisons.from_frame(SIDES, ties="split")
    assert sorted(pairs.to_frame().rows()) == [
        (1, "x", "y", 0.5),
        (1, "x", "z", 1),
        (1, "y", "x", 0.5),
        (2, "y", "x", 1),
    ]


def test_splitting_ties_keeps_the_weight_of_all() -> None:
    frame = SIDES.with_columns(weight=pl.Series([1.0, 3.0, 2.0]))
    pairs = Comparisons.from_frame(frame, ties="split")
    assert pairs.weight is not None
    assert pairs.weight.sum() == 6


def test_items_known_only_from_ties_or_losses_are_items() -> None:
    frame = pl.DataFrame({"user": [1, 1], "left": ["a", "c"], "right": ["b", "d"], "winner": ["a", None]})
    assert Comparisons.from_frame(frame, ties="drop").items.tolist() == ["a", "b", "c", "d"]


def test_no_user_means_one_judge() -> None:
    pairs = Comparisons.from_frame(STATED, user=None)
    assert pairs.users.tolist() == [0]
    assert pairs.user_index.tolist() == [0, 0, 0]


def test_missing_winners_of_pandas_are_ties() -> None:
    frame = pd.DataFrame({"user": [1, 1], "left": [1, 2], "right": [2, 3], "winner": [np.nan, 3.0]})
    assert Comparisons.from_frame(frame, ties="drop").to_frame().rows() == [(1, 3, 2)]


def test_comparing_an_item_with_itself_is_said_once_and_left_out() -> None:
    frame = pl.DataFrame({"user": [1, 1, 1], "winner": [1, 2, 3], "loser": [1, 2, 1]})
    with pytest.warns(DataWarning, match="2 rows compare an item with itself .the first is row 0.") as warned:
        pairs = Comparisons.from_frame(frame)
    assert len(warned) == 1
    assert pairs.to_frame().rows() == [(1, 3, 1)]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (
            {"user": [1], "left": [1], "right": [2], "winner": [3]},
            ValueError,
            "row 0: the winner 3 is neither left .1. nor",
        ),
        ({"user": [1], "left": ["a"], "right": ["b"], "winner": [2]}, ValueError, "a score of the left side"),
        ({"user": [1], "winner": [None], "loser": [1]}, ValueError, "row 0 has no item"),
        ({"user": [None, 1], "winner": [1, 1], "loser": [2, 2]}, ValueError, "row 0 has no user"),
        ({"user": [1], "left": [1], "right": [2], "winner": [None]}, ValueError, "no comparison is left: of 1 rows"),
        ({"user": [], "winner": [], "loser": []}, ValueError, "no rows"),
        ({"user": [1], "winner": [1]}, ValueError, "need columns winner and loser.*the columns are"),
        ({"who": [7], "winner": [1], "loser": [2]}, ValueError, "no column looks like the judge"),
        ({"user": [1], "winner": [1], "loser": [2], "weight": [-1.0]}, ValueError, "row 0 has the weight -1"),
        ({"user": [1], "winner": [1], "loser": [2], "weight": [np.nan]}, ValueError, "row 0 has the weight nan"),
    ],
)
def test_bad_frames_are_refused(columns: dict[str, list[object]], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Comparisons.from_frame(pl.DataFrame(columns), ties="drop")


def test_unknown_ways_with_ties_are_refused() -> None:
    with pytest.raises(ValueError, match="ties must be 'keep', 'drop' or 'split', not 'half'"):
        Comparisons.from_frame(SIDES, ties="half")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "user,left,right,winner\n2,x,y,y\n1,y,x,\n1,x,z,x\n"),
        ("a.tsv", "user\tleft\tright\twinner\n2\tx\ty\ty\n1\ty\tx\t\n1\tx\tz\tx\n"),
        ("a.csv", "2,x,y,y\n1,y,x,\n1,x,z,x\n"),
        ("a.dat", "2::x::y::y\n1::y::x::\n1::x::z::x\n"),
    ],
)
def test_text_files_give_the_comparisons(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert Comparisons.read(tmp_path / name, ties="drop").to_frame().rows() == [(2, "y", "x"), (1, "x", "z")]


def test_parquet_gives_the_comparisons(tmp_path: Path) -> None:
    SIDES.write_parquet(tmp_path / "a.parquet")
    assert Comparisons.read(tmp_path / "a.parquet", ties="split").to_frame().height == 4


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("alpha,beta\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.csv: comparisons need columns winner and loser"):
        Comparisons.read(tmp_path / "a.csv")


indices = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=40).map(
    lambda rows: [row for row in rows if row[1] != row[2]] or [(0, 0, 1)]
)


def from_rows(rows: list[tuple[int, int, int]]) -> Comparisons:
    user, winner, loser = np.array(rows).T
    return Comparisons.from_indices(
        user, winner, loser, users=np.arange(5), items=np.arange(6), weight=np.arange(len(rows))
    )


@settings(deadline=None)
@given(indices, st.integers(0, 3))
def test_parts_of_a_split_are_complete_and_keep_the_ids(rows: list[tuple[int, int, int]], seed: int) -> None:
    weighted = from_rows(rows)
    whole = Comparisons(weighted.user_ids, weighted.item_ids, *weighted._arrays()[:3])
    parts = whole.split(0.4, seed)
    assert len(parts[1]) == round(0.4 * len(whole))
    assert sorted(row for part in parts for row in part.to_frame().rows()) == sorted(whole.to_frame().rows())
    counts = Counter()
    for part in weighted.split(0.4, seed):
        for *triple, weight in part.to_frame().rows():
            counts[tuple(triple)] += weight
    expected = Counter()
    for *triple, weight in weighted.to_frame().rows():
        expected[tuple(triple)] += weight
    assert +counts == +expected
    for part in parts:
        assert np.array_equal(part.users, whole.users)
        assert np.array_equal(part.items, whole.items)


@settings(deadline=None)
@given(indices, st.integers(0, 3), st.integers(0, 3))
def test_a_filter_keeps_frequent_items_then_busy_users(
    rows: list[tuple[int, int, int]], users: int, items: int
) -> None:
    whole = from_rows(rows)
    often = np.bincount(np.array(rows)[:, 1:].ravel(), minlength=6) >= items
    left = [row for row in rows if often[row[1]] and often[row[2]]]
    counts = np.bincount([row[0] for row in left], minlength=5)
    left = [row for row in left if counts[row[0]] >= users]
    if not left:
        with pytest.raises(ValueError, match="nothing is left"):
            whole.filter(users, items)
        return
    kept = whole.filter(users, items)
    assert [row[:3] for row in kept.to_frame().rows()] == left
    assert kept.users.tolist() == sorted({row[0] for row in left})
    assert kept.items.tolist() == sorted({item for row in left for item in row[1:]})


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        (([0], [5], [1]), ValueError, "winner_index holds 5 at position 0, but there are 3: .* start at 1"),
        (([-1], [0], [1]), ValueError, "user_index holds -1 at position 0, but there are 2"),
        (([0, 0], [0, 5], [1, 1]), ValueError, "winner_index holds 5 at position 1"),
        (([0], [1], [1]), ValueError, "comparison 0 compares an item with itself"),
        (([0, 0], [1], [0]), ValueError, "differ in length"),
        (([0.0], [1], [0]), TypeError, "user_index must be a one-dimensional array of whole numbers"),
    ],
)
def test_bad_indices_are_refused(arrays: tuple[list[int], ...], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Comparisons.from_indices(*arrays, users=["a", "b"], items=["x", "y", "z"])


def test_nothing_can_be_changed() -> None:
    pairs = Comparisons.from_frame(STATED)
    with pytest.raises(AttributeError, match="cannot assign"):
        pairs.weight = None
    with pytest.raises(ValueError, match="read-only"):
        pairs.user_index[0] = 1


def test_copies_and_pickles_hold_the_same() -> None:
    pairs = Comparisons.from_frame(SIDES, ties="split")
    for other in (copy.deepcopy(pairs), pickle.loads(pickle.dumps(pairs))):
        assert other.to_frame().equals(pairs.to_frame())


def test_as_comparisons_takes_every_form(tmp_path: Path) -> None:
    pairs = Comparisons.from_frame(STATED)
    STATED.write_csv(tmp_path / "a.csv")
    assert as_comparisons(pairs) is pairs
    assert as_comparisons(STATED).to_frame().equals(pairs.to_frame())
    assert as_comparisons(tmp_path / "a.csv").to_frame().equals(pairs.to_frame())
    with pytest.raises(TypeError, match="cannot take comparisons from ndarray"):
        as_comparisons(np.eye(2))


def test_where_no_column_looks_like_the_judge_the_argument_is_named() -> None:
    remedy = r"name it: Comparisons\.from_frame\(frame, user=COLUMN\).*where one judge made all comparisons: user=None"
    with pytest.raises(ValueError, match=remedy):
        Comparisons.from_frame(STATED.rename({"judge": "who"}))


def test_where_no_column_is_left_for_judges_there_is_one() -> None:
    assert Comparisons.from_frame(pl.DataFrame({"winner": ["x", "y"], "loser": ["y", "z"]})).users.tolist() == [0]


def test_the_description_counts_comparisons_and_pairs_of_items() -> None:
    frame = pl.DataFrame({"user": [1, 1, 2], "winner": ["x", "y", "z"], "loser": ["y", "x", "x"]})
    result = Comparisons.from_frame(frame).describe()
    assert (result.users, result.items, result.comparisons, result.pairs) == (2, 3, 3, 2)
    assert result.per_user == pytest.approx((1, 1.05, 1.5, 1.95, 2))
    assert result.per_item[0] == 1 and result.per_item[-1] == 3
    assert "comparisons 3\nties        0\npairs       2" in str(result)


@settings(deadline=None)
@given(indices, st.integers(0, 3))
def test_a_split_by_pairing_keeps_all_comparisons_of_two_items_together(
    rows: list[tuple[int, int, int]], seed: int
) -> None:
    whole = from_rows(rows)
    train, test = whole.split(0.4, seed, by="pairing")
    assert sorted(row for part in (train, test) for row in part.to_frame().rows()) == sorted(whole.to_frame().rows())
    assert not set(train.pairings().tolist()) & set(test.pairings().tolist())
    assert len(np.unique(test.pairings())) == round(0.4 * len(np.unique(whole.pairings())))
    again = whole.split(0.4, seed, by="pairing")[1]
    assert again.to_frame().equals(test.to_frame())


def test_a_pairing_is_the_same_whichever_item_won() -> None:
    pairs = Comparisons.from_indices([0, 0, 1], [0, 1, 2], [1, 0, 1], users=[1, 2], items=["a", "b", "c"])
    one, two, three = pairs.pairings().tolist()
    assert one == two != three
    with pytest.raises(ValueError, match="by must be 'row' or 'pairing', not 'game'"):
        pairs.split(by="game")


def test_comparisons_that_a_weight_counts_are_held_out_one_by_one():
    rng = np.random.default_rng(0)
    winner = rng.integers(6, size=40)
    weight = rng.integers(1, 200, size=40) + np.where(winner < 2, 0.5, 0.0)
    data = Comparisons.from_indices(0 * winner, winner, (winner + 1) % 6, users=[0], items=range(6), weight=weight)
    _, test = data.split(test=0.25, seed=0)
    assert test.weight.sum() == pytest.approx(0.25 * weight.sum(), rel=0.1)
    assert len(np.unique(test.pairings())) == len(np.unique(data.pairings()))  # no pairing is held out as a whole
    parts = folds(data, 5, seed=1)
    assert sum(held_out.weight.sum() for _, held_out in parts) == pytest.approx(weight.sum())
    for rest, held_out in parts:
        assert rest.weight.sum() + held_out.weight.sum() == pytest.approx(weight.sum())
