"""The leaderboard: strengths, ranks, results, and whether their intervals hold the truth."""

import numpy as np
import polars as pl
import pytest

from sadrec import SAD, Comparisons
from sadrec.ranking._strengths import strength_covariance
from sadrec.ranking.leaderboard import rank_intervals
from sadrec.ranking.results import Results


def arena(items, games, cyclic, seed, near=None):
    """Simulate games of one judge; return them and the true margins. ``near``: only items so close meet."""
    rng = np.random.default_rng(seed)
    score, one, other = rng.standard_normal(items), *rng.standard_normal((2, items, 2))
    margins = score[:, None] - score + cyclic * (one @ other.T - other @ one.T) / 2
    first, second = np.triu_indices(items, 1)
    if near is not None:
        first, second = (side[second - first <= near] for side in (first, second))
    pair = rng.integers(len(first), size=games)
    i, j = first[pair], second[pair]
    won = rng.random(games) < 1 / (1 + np.exp(-margins[i, j]))
    sides = np.where(won, i, j), np.where(won, j, i)
    return Comparisons.from_indices(np.zeros(games, int), *sides, users=[0], items=np.arange(items)), margins


def fitted(data):
    return SAD(random_state=0, num_threads=1).fit(data, show_progress=False)


@pytest.fixture(scope="module")
def model():
    return fitted(arena(12, 600, 1.0, 5)[0])


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(2)
    taste, score = rng.standard_normal((6, 2)), rng.standard_normal(8)
    user, (i, j) = rng.integers(6, size=2000), np.stack([rng.permutation(8)[:2] for _ in range(2000)], 1)
    appeal = rng.standard_normal((8, 2))
    x = score[i] - score[j] + ((appeal[i] - appeal[j]) * taste[user]).sum(1)
    won = rng.random(2000) < 1 / (1 + np.exp(-x))
    return fitted(Comparisons.from_indices(
        user, np.where(won, i, j), np.where(won, j, i), users=[f"judge {u}" for u in range(6)], items=np.arange(8) * 10
    ))  # fmt: skip


def shares_inside(cyclic, near=None):
    """Return in what share of simulated arenas intervals hold the true strength and the true rank."""
    inside = []
    for seed in range(12):
        data, margins = arena(20, 600, cyclic, seed, near)
        table = fitted(data).leaderboard().sort("item")
        strength = margins.mean(axis=1)
        rank = (-strength).argsort().argsort() + 1
        inside += [
            ((table[lower].to_numpy() <= truth) & (truth <= table[upper].to_numpy())).mean()
            for lower, upper, truth in (("lower", "upper", strength), ("rank_lower", "rank_upper", rank))
        ]
    return np.mean(np.reshape(inside, (-1, 2)), axis=0)


@pytest.mark.parametrize(("cyclic", "near"), [(0.0, None), (1.0, None), (0.0, 3)])
def test_intervals_hold_the_truth_as_often_as_they_say(cyclic, near):
    shares = shares_inside(cyclic, near)
    assert (shares > 0.85).all(), shares
    assert (shares < 0.95).all(), shares


def test_a_long_chain_of_games_is_less_sure_at_its_ends():
    """Which the belief of the solver, that each item is by itself, does not say."""
    data, _ = arena(30, 6000, 0.0, 1, near=1)
    belief = fitted(data).state.belief
    every = np.arange(30)
    results = fitted(data).state.results
    together = np.diag(strength_covariance(belief, belief, every, every, results))
    apart = np.diag(strength_covariance(belief, belief, every, every, None))
    assert together[[0, 29]].mean() > 2 * together[13:17].mean()
    assert together[[0, 29]].mean() > 3 * apart[[0, 29]].mean()


def test_the_covariance_is_that_of_bradley_and_terry_where_there_is_nothing_else():
    data, _ = arena(10, 3000, 0.0, 3)
    model = fitted(data)
    state = model.state
    every, results, belief = np.arange(10), state.results, state.belief
    assert belief.pairing_scale < 0.05
    p = model.win_matrix().drop("item").to_numpy()
    games = np.zeros((10, 10))
    games[results.item, results.rival] = games[results.rival, results.item] = results.decided
    weight = games * p * (1 - p)
    centre = np.eye(10) - 0.1
    expected = centre @ np.linalg.pinv(np.diag(weight.sum(1)) - weight) @ centre
    actual = strength_covariance(belief, belief, every, every, results)
    assert np.diag(actual) == pytest.approx(np.diag(expected), rel=0.15)


def test_strengths_are_mean_margins_best_first(model):
    table = model.leaderboard()
    assert table["rank"].to_list() == list(range(1, 13))
    assert table["strength"].to_list() == sorted(table["strength"], reverse=True)
    expected = model.margins(None, None, None).mean(axis=1)
    assert table.sort("item")["strength"].to_numpy() == pytest.approx(expected, abs=1e-5)


def test_intervals_hold_the_strength_and_the_rank(model):
    table = model.leaderboard(level=0.5)
    assert table.filter((pl.col("lower") > pl.col("strength")) | (pl.col("strength") > pl.col("upper"))).is_empty()
    wider = model.leaderboard(level=0.99)
    width = pl.col("upper") - pl.col("lower")
    assert (wider.select(width).to_series() > 2 * table.select(width).to_series()).all()
    assert table["rank_lower"].min() >= 1
    assert table["rank_upper"].max() <= 12


def test_wins_and_losses_are_those_of_the_data():
    data, _ = arena(8, 300, 0.0, 4)
    table = fitted(data).leaderboard().sort("item")
    assert table["wins"].to_list() == np.bincount(data.winner_index, minlength=8).tolist()
    assert table["losses"].to_list() == np.bincount(data.loser_index, minlength=8).tolist()
    assert table["ties"].sum() == 0


@pytest.mark.parametrize("solver", ["variational", "sgd"])
@pytest.mark.filterwarnings("ignore::sadrec.data.DataWarning")
def test_ties_are_counted(solver):
    games = pl.DataFrame({
        "left": ["a", "a", "b", "a", "b"], "right": ["b", "b", "c", "c", "c"], "winner": ["a", None, "c", "a", None]
    })  # fmt: skip
    table = SAD(solver=solver, iterations=5).fit(games, show_progress=False).leaderboard().sort("item")
    assert table.select("wins", "ties", "losses").rows() == [(2, 1, 0), (0, 2, 2), (1, 1, 1)]


def test_a_leaderboard_of_some_items_is_among_these(model):
    table, whole = model.leaderboard(items=[7, 2, 5]), model.leaderboard()
    assert sorted(table["item"]) == [2, 5, 7]
    assert table["rank_upper"].max() <= 3
    assert (table["wins"].sum(), table["wins"].sum()) == (table["losses"].sum(), table["wins"].sum())
    assert table["wins"].sum() < whole.filter(pl.col("item").is_in([2, 5, 7]))["wins"].sum()
    margins = model.margins(None, [7, 2, 5], [7, 2, 5]).mean(axis=1)
    assert sorted(table["strength"]) == pytest.approx(sorted(margins), abs=1e-5)


def test_a_reference_has_strength_0_and_no_doubt(model):
    table = model.leaderboard(reference=[4])
    row = table.row(by_predicate=pl.col("item") == 4, named=True)
    assert (row["strength"], row["lower"], row["upper"]) == pytest.approx((0, 0, 0), abs=1e-3)
    assert table.sort("item")["strength"].to_numpy() == pytest.approx(model.margins(None, None, [4])[:, 0], abs=1e-5)


def test_one_judge_a_group_and_the_average_have_leaderboards_of_their_own(judged):
    one, two = judged.leaderboard("judge 1").sort("item"), judged.leaderboard("judge 4").sort("item")
    both = judged.leaderboard(["judge 1", "judge 4"]).sort("item")
    middle = (one["strength"] + two["strength"]) / 2
    assert both["strength"].to_numpy() == pytest.approx(middle.to_numpy(), abs=1e-4)
    assert (one["wins"] + two["wins"]).to_list() == both["wins"].to_list()
    average = judged.leaderboard()
    assert average["wins"].sum() == 2000
    width = [(table["upper"] - table["lower"]).mean() for table in (one, both, average)]
    assert width[0] > width[1] > 0


def test_a_point_has_no_intervals():
    table = SAD.from_factors([[1.0]], [[2.0], [0.5]], items=["tea", "ale"]).leaderboard()
    assert table["item"].to_list() == ["tea", "ale"]
    assert table.select("lower", "upper", "rank_lower", "rank_upper", "wins").null_count().row(0) == (2,) * 5


def test_a_group_of_no_judges_is_refused(judged):
    with pytest.raises(ValueError, match="judges holds no id"):
        judged.leaderboard([])


def test_a_visitor_has_a_leaderboard_with_intervals(judged):
    few = Comparisons.from_frame(pl.DataFrame({"winner": [70, 60], "loser": [0, 10]}), user=None)
    visitor = judged.visitor(comparisons=few)
    table = visitor.leaderboard()
    assert (table["upper"] > table["lower"]).all()
    point = SAD.from_factors([[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [0.5, 3.0], [1.0, 1.0]])
    assert (point.visitor([0]).leaderboard()["upper"] > point.visitor([0]).leaderboard()["lower"]).all()


def test_nothing_is_unexplained_of_scores_and_all_of_rock_paper_scissors():
    scores = SAD.from_factors([[1.0]], [[2.0], [0.5], [1.0]])
    assert scores.leaderboard()["unexplained"].to_numpy() == pytest.approx(np.zeros(3), abs=1e-9)
    cycle = SAD.from_factors([[1, 1, 1]], np.eye(3), np.roll(np.eye(3), -1, axis=0))
    assert cycle.leaderboard()["unexplained"].to_numpy() == pytest.approx(np.ones(3))


def test_a_saved_model_gives_the_same_leaderboard(model, tmp_path):
    model.save(tmp_path / "m.sad")
    for mmap in (False, True):
        assert SAD.load(tmp_path / "m.sad", mmap=mmap).leaderboard().equals(model.leaderboard())


def test_sgd_counts_results_and_adds_those_of_later_fits():
    data, _ = arena(6, 50, 0.0, 4)
    model = SAD(solver="sgd", iterations=2).fit(data, show_progress=False)
    model.partial_fit(data, show_progress=False)
    table = model.leaderboard().sort("item")
    assert table["wins"].to_list() == (2 * np.bincount(data.winner_index, minlength=6)).tolist()
    assert table["lower"].null_count() == 6


def test_rank_intervals_are_the_shortest_that_hold_enough():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((2000, 5)) + np.array([10.0, 2.0, 2.0, 0.0, 0.0])
    lower, upper = rank_intervals(draws, 0.9)
    places = (-draws).argsort(1).argsort(1) + 1
    for item in range(5):
        held = ((places[:, item] >= lower[item]) & (places[:, item] <= upper[item])).mean()
        assert held >= 0.9
        for shorter in range(1, 6):
            inside = (places[:, item] >= shorter) & (places[:, item] <= shorter + upper[item] - lower[item] - 1)
            assert inside.mean() < 0.9
    assert (lower[0], upper[0]) == (1, 1)


def test_results_of_two_fits_are_added_by_judge_and_pair():
    first = Results.of([*map(np.array, ([0, 1], [0, 0], [1, 2], [3.0, 1.0], [2.0, 0.0]))], None, items=5)
    ties = [*map(np.array, ([1], [0], [2], [4.0], [0.0]))]
    second = Results.of([*map(np.array, ([0, 2], [0, 3], [1, 4], [1.0, 1.0], [0.0, 1.0]))], ties, items=5)
    assert [side.tolist() for side in first.and_more(second, items=5)] == [
        [0, 1, 2], [0, 0, 3], [1, 2, 4], [2.0, 0.0, 1.0], [2.0, 1.0, 0.0], [0.0, 4.0, 0.0]
    ]  # fmt: skip


def test_the_win_matrix_has_the_probabilities(model):
    table = model.win_matrix(items=[3, 1])
    assert table.columns == ["item", "3", "1"]
    assert table["1"][0] == pytest.approx(model.probability(None, 3, 1))
    assert table["1"][0] + table["3"][1] == pytest.approx(1)
    assert SAD.from_factors([[1.0]], [[1.0], [2.0]], items=["item", "b"]).win_matrix().columns == ["item_", "item", "b"]


@pytest.mark.parametrize("call", [
    lambda model: model.leaderboard(items=[]), lambda model: model.leaderboard(items=[1, 1]),
    lambda model: model.leaderboard(level=1.0), lambda model: model.win_matrix(items=[2, 2]),
])  # fmt: skip
def test_bad_arguments_are_refused(model, call):
    with pytest.raises(ValueError, match=r"distinct|level"):
        call(model)
