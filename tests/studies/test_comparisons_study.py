"""Stated comparisons: Bradley-Terry as a limit of SAD, other baselines, and the study that compares them."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import BPR, SAD, Comparisons
from sadrec.evaluation import evaluate_comparisons
from studies.comparisons import baselines
from studies.comparisons.__main__ import comparisons_command
from studies.comparisons.models import MODELS, USUAL, Parts, mean_loss
from studies.comparisons.study import Figures, bar_of, comparisons_study, find_sets, parts_of


def round_robin(items=6, times=20, seed=0):
    """Every item meets every other one ``times`` times; strengths from -1 to 1."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, items)
    left, right = (np.repeat(side, times) for side in np.triu_indices(items, 1))
    wins = rng.random(len(left)) < 1 / (1 + np.exp(strength[right] - strength[left]))
    winner, loser = np.where(wins, left, right), np.where(wins, right, left)
    return Comparisons.from_indices(np.zeros(len(left), int), winner, loser, users=[0], items=np.arange(items))


def scores(comparisons, alpha):
    """Bradley-Terry as choix fits it."""
    choix = pytest.importorskip("choix")
    pairs = np.column_stack([comparisons.winner_index, comparisons.loser_index]).tolist()
    return choix.opt_pairwise(len(comparisons.items), pairs, alpha=alpha)


def one_user(comparisons, l2, **settings):
    """BPR of one user whose vectors are 0, so that only its bias is learnt."""
    settings = {
        "factors": 1,
        "iterations": 600,
        "learning_rate": 0.05,
        "advanced": {"init_scale": 0.0},
        "solver": "sgd",
        **settings,
    }
    model = BPR(bias=True, regularization=l2, num_threads=1, **settings)
    return model.fit(comparisons, show_progress=False)


def centred(values):
    return np.asarray(values, np.float64) - np.mean(values)


def test_one_user_with_t_1_approaches_bradley_terry_as_l2_goes_to_0():
    comparisons = round_robin()
    limit = centred(scores(comparisons, 1e-9))
    distances = [np.abs(centred(one_user(comparisons, l2).item_bias) - limit).max() for l2 in (0.03, 0.01, 0.003, 0.0)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.01 < 0.3 < distances[0]


def test_the_bias_s_l2_is_bradley_terry_s_penalty_divided_by_the_comparisons_of_an_item():
    comparisons = round_robin()
    each = 2 * len(comparisons) / len(comparisons.items)
    theirs = scores(comparisons, 2.0)
    np.testing.assert_allclose(one_user(comparisons, 2.0 / each).item_bias, theirs, atol=0.01)


def test_sad_of_one_user_held_to_t_1_is_the_same_bradley_terry():
    comparisons = round_robin()
    sad = SAD(
        factors=4, iterations=600, learning_rate=0.05, regularization=0.0, rival_regularization=1.0, bias=True,
        advanced={"init_scale": 0.01}, solver="sgd", num_threads=1,
    ).fit(comparisons, show_progress=False)  # fmt: skip
    b = scores(comparisons, 1e-9)
    i, j = np.triu_indices(6, 1)
    np.testing.assert_allclose(sad.probability(0, i, j), 1 / (1 + np.exp(b[j] - b[i])), atol=0.02)


def test_scarce_comparisons_by_many_judges_are_predicted_better_than_by_a_coin():
    rng = np.random.default_rng(1)
    judge, left, right = rng.integers(0, 300, 3000), rng.integers(0, 100, 3000), rng.integers(1, 100, 3000)
    right = (left + right) % 100
    wins = rng.random(3000) < 1 / (1 + np.exp((right - left) / 25))
    winner, loser = np.where(wins, left, right), np.where(wins, right, left)
    comparisons = Comparisons.from_indices(judge, winner, loser, users=np.arange(300), items=np.arange(100))
    train, held_out = comparisons.split(test=0.2, seed=0)
    theirs = mean_loss(baselines.bradley_terry(scores(train, 0.1)), held_out)
    for kind in (SAD, BPR):
        ours = evaluate_comparisons(kind(num_threads=1).fit(train, show_progress=False), held_out)
        assert ours["log_loss"] < np.log(2)
        assert ours["log_loss"] < theirs + 0.02


def judged(rows=150, judges=3, items=5, seed=3):
    """Comparisons at random, with weights."""
    rng = np.random.default_rng(seed)
    winner = rng.integers(items, size=rows)
    loser = (winner + rng.integers(1, items, size=rows)) % items
    columns = rng.integers(judges, size=rows), winner, loser
    return Comparisons.from_indices(*columns, users=range(judges), items=range(items), weight=rng.random(rows) + 0.5)


def turned(data):
    """The same with winners and losers exchanged."""
    columns = data.user_index, data.loser_index, data.winner_index
    return Comparisons.from_indices(*columns, users=data.users, items=data.items, weight=data.weight)


@pytest.mark.parametrize("alpha", [0.03, 1.0])
def test_our_bradley_terry_is_that_of_choix(alpha):
    comparisons = round_robin()
    np.testing.assert_allclose(baselines.fit_scores(comparisons, alpha), scores(comparisons, alpha), atol=1e-3)


def losses_of_baselines(data):
    own = baselines.Own(data)
    items = len(data.items)
    return {
        "bradley-terry": (items, lambda theta: baselines.bradley_terry_loss(theta, data, 0.3)),
        "personal": (items + len(own.known), lambda theta: baselines.personal_loss(theta, data, own, 0.3, 0.2)),
        "blade-chest": (7 * items, lambda theta: baselines.blade_chest_loss(theta, data, 3, 0.3, 0.2)),
    }


@pytest.mark.parametrize("name", ["bradley-terry", "personal", "blade-chest"])
def test_gradients_are_those_of_finite_differences(name):
    size, loss = losses_of_baselines(judged())[name]
    theta = np.random.default_rng(0).standard_normal(size)
    numbers = [(loss(theta + step)[0] - loss(theta - step)[0]) / 2e-5 for step in 1e-5 * np.eye(size)]
    np.testing.assert_allclose(loss(theta)[1], numbers, rtol=1e-5, atol=1e-5)


def predictions(data):
    b = baselines.fit_scores(data, 0.1)
    below = baselines.bradley_terry(b)
    return {
        "bradley-terry": below,
        "frequencies": baselines.frequency_table(data, below, 3.0),
        "frequencies per judge": baselines.frequency_table(data, below, 3.0, per_judge=True),
        "personal": baselines.personal_bradley_terry(data, 0.1, 0.3, b),
        "blade-chest": baselines.blade_chest(data, 2, 0.1, 0.3, b),
    }


def test_the_chances_of_both_sides_add_up_to_1():
    train, held_out = judged(), judged(rows=40, seed=4)
    for name, predict in predictions(train).items():
        np.testing.assert_allclose(predict(held_out) + predict(turned(held_out)), 1.0, err_msg=name)


def test_a_table_of_frequencies_counts():
    games = Comparisons.from_indices([0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0], users=[0, 1], items=range(3))
    below = baselines.bradley_terry(np.zeros(3))
    held_out = Comparisons.from_indices([0, 1, 0], [0, 0, 2], [1, 1, 0], users=[0, 1], items=range(3))
    np.testing.assert_allclose(baselines.frequency_table(games, below, 2.0)(held_out), [3 / 6, 3 / 6, 0.5])
    np.testing.assert_allclose(baselines.frequency_table(games, below, 2.0, True)(held_out), [3 / 5, 1 / 3, 0.5])


def test_judges_who_disagree_are_told_apart_by_personal_scores_alone():
    rng = np.random.default_rng(0)
    user, winner = rng.integers(2, size=400), rng.integers(4, size=400)
    loser = (winner + rng.integers(1, 4, size=400)) % 4
    low, high = np.minimum(winner, loser), np.maximum(winner, loser)
    comparisons = Comparisons.from_indices(
        user, np.where(user, low, high), np.where(user, high, low), users=[0, 1], items=range(4)
    )
    parts = parts_of(comparisons, 0, "row")
    loss = {name: mean_loss(MODELS[name].fit(parts, 0)[0], parts.test) for name in ("coin", "bt", "personal-bt")}
    assert loss["personal-bt"] < 0.25 < 0.65 < loss["bt"] < loss["coin"] + 0.05


def test_blade_chest_learns_a_cycle_and_bradley_terry_cannot():
    winner = np.tile([0, 1, 2], 60)
    games = Comparisons.from_indices(np.zeros(180, int), winner, (winner + 1) % 3, users=[0], items=range(3))
    parts = Parts(games, games, games)
    loss = {name: mean_loss(MODELS[name].fit(parts, 0)[0], games) for name in ("bt", "blade-chest")}
    assert loss["blade-chest"] < 0.1 < 0.69 < loss["bt"]


def test_parts_are_a_half_a_fifth_and_the_rest_and_pairings_stay_together():
    comparisons = judged(rows=1000, items=40)
    for by in ("row", "pairing"):
        parts = parts_of(comparisons, 1, by)
        sizes = [part.weight.sum() / comparisons.weight.sum() for part in (parts.train, parts.validation, parts.test)]
        assert sum(sizes) == pytest.approx(1)
        np.testing.assert_allclose(sizes, [0.5, 0.2, 0.3], atol=0.04)
    groups = [set(part.pairings()) for part in (parts.train, parts.validation, parts.test)]
    assert not (groups[0] & groups[1] or groups[0] & groups[2] or groups[1] & groups[2])


def test_the_bar_is_the_lower_one_of_the_set_s_own_and_what_is_asked_everywhere():
    def at(loss):
        return Figures(loss, 0.5, 0.0, None, None, 1)

    assert bar_of("pokemon", "row", {"bt": at(0.35)}) == 0.24
    assert bar_of("pokemon", "pairing", {"bt": at(0.35)}) == pytest.approx(0.353)
    assert bar_of("chess", "row", {"bt": at(0.8), "coin": at(0.69)}) == pytest.approx(0.693)
    assert bar_of("chess", "row", {}) is None


@pytest.fixture
def small_data(tmp_path):
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 12, 400), rng.integers(1, 12, 400)
    right = (left + right) % 12
    winner = np.where(rng.random(400) < 0.8, np.maximum(left, right), np.minimum(left, right))
    frame = pl.DataFrame({"user": rng.integers(0, 8, 400), "left": left, "right": right, "winner": winner})
    folder = tmp_path / "data"
    for place in ("small", "more/other"):
        (folder / place).mkdir(parents=True)
        frame.write_parquet(folder / place / "comparisons.parquet")
    return folder


def test_sets_are_found_wherever_comparisons_are(small_data):
    assert set(find_sets(small_data)) == {"small", "other"}
    assert set(find_sets(small_data / "small")) == {"small"}
    with pytest.raises(FileNotFoundError, match=r"no llmfao.*there are.*small"):
        find_sets(small_data, ["llmfao"])


def test_the_study_tells_every_model_and_computes_nothing_twice(tmp_path, small_data):
    out = tmp_path / "out"
    options = {"sets": ["small"], "seeds": [0], "show_progress": False}
    table = comparisons_study(out, small_data, **options)
    assert set(table) == {("small", "row"), ("small", "pairing")}
    for (_, by), figures in table.items():
        assert set(figures) == set(USUAL)
        assert figures["sad"].difference == 0.0
        assert all(entry.seeds == 1 for entry in figures.values())
        others = [entry for name, entry in figures.items() if name != "coin"]
        assert min(entry.accuracy for entry in others) > (0.65 if by == "row" else 0.5)
        assert max(entry.loss for entry in others) < figures["coin"].loss + (0 if by == "row" else 0.1)
    records = {path: path.stat().st_mtime_ns for path in out.glob("runs/*.result")}
    cut, before = next(path for path in records if path.name.endswith("-bt.result")), (out / "report.md").read_text()
    cut.write_bytes(cut.read_bytes()[:40])
    comparisons_study(out, small_data, **options)
    changed = [path for path, written in records.items() if path.stat().st_mtime_ns != written]
    assert changed == [cut]
    assert len((out / "report.md").read_text().splitlines()) == len(before.splitlines())


def test_the_command_prints_the_table_and_what_is_finished(tmp_path, small_data):
    arguments = ["--data", str(small_data), "-o", str(tmp_path / "out"), "--sets", "small", "--quiet"]
    runner = CliRunner()
    result = runner.invoke(comparisons_command, [*arguments, "--quick", "--models", "bt,sad", "--by", "row"])
    assert result.exit_code == 0, result.output
    assert "| set | BT | SAD() | bar | SAD() meets it |" in result.output
    again = runner.invoke(comparisons_command, [*arguments, "--finished"])
    assert again.exit_code == 0 and again.output == result.output
    wrong = runner.invoke(comparisons_command, [*arguments, "--models", "elo"])
    assert wrong.exit_code == 2 and "'elo' is none of coin" in wrong.output


def test_the_command_prints_verdicts(tmp_path, small_data):
    arguments = ["--data", str(small_data), "-o", str(tmp_path / "out"), "--sets", "small", "--quiet", "--verdicts"]
    result = CliRunner().invoke(comparisons_command, arguments)
    assert result.exit_code == 0, result.output
    assert "| small | 400 | keep at 1 |" in result.output
