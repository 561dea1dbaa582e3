"""What is new is never trained on, and models that know features find what is new."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import Comparisons, Interactions
from sadrec.evaluation import evaluate_top_n
from studies._tools import paired
from studies.features import splits
from studies.features.__main__ import features_command
from studies.features.battles import BATTLE_MODELS, logistic_loss
from studies.features.data import Featured, encoded, movielens, pokemon, simulated
from studies.features.models import MODELS, ridge
from studies.features.study import _Answers, battles_study, lists_study, report


def two_tastes(users=40, items=60, seed=0):
    """Half of the people like comedies, the other half horror; age tells which."""
    rng = np.random.default_rng(seed)
    liked = (np.arange(users) % 2)[:, None] == (np.arange(items) % 2)[None, :]
    touched = liked & (rng.random(liked.shape) < 0.6)
    names = [["Comedy"] if item % 2 else ["Horror"] for item in range(items)]
    films = pl.DataFrame({"item": np.arange(items), "genres": names, "year": np.arange(items) % 7 + 1990})
    people = pl.DataFrame({"user": np.arange(users), "age": [20 + 40 * (user % 2) for user in range(users)]})
    return Featured("tastes", Interactions.from_csr(touched.astype(np.float32)), films, people)


def by_strength(items=40, battles=1500, seed=0):
    """The stronger of two usually wins; strength is a feature."""
    rng = np.random.default_rng(seed)
    strength = rng.permutation(np.linspace(-3, 3, items))
    left = rng.integers(items, size=battles)
    right = (left + rng.integers(1, items, size=battles)) % items
    won = rng.random(battles) < 1 / (1 + np.exp(strength[right] - strength[left]))
    winner, loser = np.where(won, left, right), np.where(won, right, left)
    data = Comparisons.from_indices(np.zeros(battles, int), winner, loser, users=[0], items=np.arange(items))
    return data, pl.DataFrame({"item": np.arange(items), "strength": strength, "kind": ["a", "b"] * (items // 2)})


@pytest.mark.parametrize("seed", [0, 1])
def test_new_items_and_users_are_not_in_the_training_part(seed):
    data = two_tastes().data
    items, users = splits.cold_items(data, seed), splits.cold_users(data, seed)
    assert not set(items.train.items) & set(items.test.items)
    assert not set(users.train.users) & set(users.test.users)
    assert (len(items.test.items), len(users.test.users)) == (6, 4)
    for split in (items, users):
        assert len(split.train) + len(split.test) == len(data)
        assert len(split.met) == 0
        assert split.met.shape == split.test.shape


def test_training_battles_have_no_unseen_item_and_every_battle_is_in_one_part():
    data, _ = by_strength()
    battles = splits.unseen_items(data, 0)
    seen = set(battles.train.winner_index) | set(battles.train.loser_index)
    for part, unseen in ((battles.seen, 0), (battles.one, 1), (battles.both, 2)):
        sides = np.column_stack([part.winner_index, part.loser_index])
        assert (np.isin(sides, list(seen)).sum(axis=1) == 2 - unseen).all()
    assert sum(map(len, (battles.train, battles.seen, battles.one, battles.both))) == len(data)


def test_features_become_numbers_by_what_the_known_rows_have():
    frame = pl.DataFrame(
        {
            "item": [1, 2, 3, 4],
            "size": [1.0, 3.0, None, 100.0],
            "tags": [["x"], ["y", "x"], [], ["z"]],
            "kind": ["a", None, "b", "c"],
            "new": [True, False, False, True],
        }
    )
    matrix = encoded(frame, np.array([True, True, True, False]))
    # size, tags x and y, kinds a and b, new: what only the last row has is no column
    np.testing.assert_allclose(matrix[:, 0], [-1, 1, 0, 98])
    np.testing.assert_array_equal(matrix[:, 1:5], [[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    assert (matrix[[0, 3], 5] > 0).all()
    assert (matrix[[1, 2], 5] < 0).all()


def test_the_effect_of_a_number_may_bend_at_quantiles_of_the_known_rows():
    frame = pl.DataFrame({"item": range(12), "size": [*map(float, range(11)), 1000.0]})
    matrix = encoded(frame, np.arange(12) < 11, bends=1)
    assert matrix.shape == (12, 2)
    np.testing.assert_allclose(matrix[:11, 1], np.maximum(matrix[:11, 0], 0))


def test_ridge_shrinks_to_the_weighted_mean():
    features, values = np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]])
    np.testing.assert_allclose(ridge(features, values, np.array([[5.0]]), 1e12), [[2.0]])
    np.testing.assert_allclose(ridge(features, values, np.array([[5.0]]), 1e12, np.array([3.0, 1.0])), [[1.5]])


def test_the_gradient_of_the_logistic_loss_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    w, rows = rng.standard_normal(3), rng.standard_normal((20, 3))
    _, gradient = logistic_loss(w, rows, 0.3)
    for place, step in enumerate(1e-6 * np.eye(3)):
        change = logistic_loss(w + step, rows, 0.3)[0] - logistic_loss(w - step, rows, 0.3)[0]
        assert gradient[place] == pytest.approx(change / 2e-6, rel=1e-5)


def test_models_of_features_find_what_is_new_and_popularity_cannot(tmp_path):
    models = ["popularity", "genres", "feature-only", "bpr-ridge"]
    table, missing = lists_study(tmp_path, two_tastes(), models=models, seeds=[0], show_progress=False)
    assert not missing
    for task in ("items", "users"):
        for model in ("feature-only", "bpr-ridge"):
            assert table[model, task].value > table["popularity", task].value + 0.1
        assert table["feature-only", "items"].value > 0.85
    assert ("feature-only", "warm") not in table
    again, _ = lists_study(tmp_path, two_tastes(), models=models, seeds=[0], show_progress=False)
    assert again == table


def test_battles_of_the_unseen_are_predicted_by_features_and_not_by_scores(tmp_path):
    models = ["coin", "bt", "logistic", "bent", "products", "sad"]
    table, _ = battles_study(tmp_path, *by_strength(), models=models, seeds=[0], show_progress=False)
    assert table["bt", "seen"].value < 0.6
    for model in ("bt", "sad"):
        assert table[model, "both"].value == pytest.approx(np.log(2), abs=0.01)
    for model in ("logistic", "bent", "products"):
        assert table[model, "unseen"].value < table["bt", "unseen"].value - 0.05
    difference, error = paired(table["logistic", "one"].rows, table["coin", "one"].rows)
    assert difference == pytest.approx(table["logistic", "one"].value - table["coin", "one"].value, abs=1e-4)
    assert error > 0
    titles = {name: model.title for name, model in BATTLE_MODELS.items()}
    page = report("battles", table, {}, titles, {"both": "both unseen"}, "log loss", 1)
    assert "| coin | 0.6931 | 0.0 |" in page
    assert "features alone: logistic (both unseen): chose {'penalty'" in page


def test_what_is_not_there_is_said_instead_of_a_figure(tmp_path):
    featured = two_tastes()
    without = Featured("tastes", featured.data, featured.items)
    _, missing = lists_study(tmp_path, without, models=["popularity"], tasks=["users"], seeds=[0], show_progress=False)
    assert missing == {"new users": "the data set here has no features of users"}


def test_the_command_refuses_what_it_does_not_know(tmp_path):
    shown = CliRunner().invoke(features_command, ["--models", "bpr", "-o", str(tmp_path)])
    assert shown.exit_code == 2
    assert "'bpr' is none of popularity, genres" in shown.output


@pytest.mark.data
def test_the_data_sets_have_features_of_everything(data_folder):
    films = movielens("movielens-100k", data_folder)
    assert set(films.items["item"]) == set(films.data.items.tolist())
    assert films.items.columns == ["item", "genres", "year", "decade"]
    battles, features = pokemon(data_folder)
    assert set(features["item"].cast(pl.String)) == set(battles.items.astype(str))
    assert set(MODELS) & set(BATTLE_MODELS) == {"sad", "sad-features"}


def test_features_tell_simulated_people_apart():
    featured = simulated(users=120, items=80)
    split = splits.cold_users(featured.data, 0)
    scores = {name: MODELS[name].fit(split, featured, {}, 0)() for name in ("truth", "popularity")}
    figures = {
        name: evaluate_top_n(_Answers(split.test.users, split.test.items, one), split.met, split.test, N=10)["ndcg"]
        for name, one in scores.items()
    }
    assert figures["truth"] > figures["popularity"] + 0.05
