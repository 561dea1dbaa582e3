"""Models with features: items and users nobody has seen, and what stays as it was."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec.features import Features
from sadrec.models import ModelFileError
from tests.rewriting import with_array

USERS, ITEMS = 60, 40
SETTINGS = {"factors": 4, "iterations": 12, "learning_rate": 0.1, "regularization": 0.02, "blocks": 2}


def taste():
    """Half of the users like red things, the others blue ones; items 36 to 39 have no history, 39 is in no table."""
    rng = np.random.default_rng(0)
    liked = np.zeros((USERS, ITEMS - 4))
    for user in range(USERS):
        mine = np.flatnonzero(np.arange(ITEMS - 4) % 2 == user % 2)
        liked[user, rng.choice(mine, 8, replace=False)] = 1
    row, column = np.nonzero(liked)
    frame = pl.DataFrame({"user": [f"u{u:02}" for u in row], "item": [f"i{i:02}" for i in column]})
    return Interactions.from_frame(frame)


COLOURS = pl.DataFrame(
    {
        "item": [f"i{i:02}" for i in range(ITEMS - 1)],
        "colour": ["red" if i % 2 == 0 else "blue" for i in range(ITEMS - 1)],
    }
)
PEOPLE = pl.DataFrame(
    {"user": [f"u{u:02}" for u in range(USERS + 2)], "club": ["r" if u % 2 == 0 else "b" for u in range(USERS + 2)]}
)


@pytest.fixture(scope="module")
def model():
    return SAD(**SETTINGS).fit(taste(), show_progress=False, item_features=COLOURS, user_features=PEOPLE)


def bits(model):
    return [np.asarray(array).tobytes() for array in (model.user_factors, model.item_factors, model.rival_factors)]


def test_items_that_only_the_features_know_are_known_without_history(model):
    assert len(model.items) == ITEMS - 1
    assert model.items[model.state.features.item.cold].tolist() == ["i36", "i37", "i38"]
    assert model.users[model.state.features.user.cold].tolist() == ["u60", "u61"]


def test_new_items_are_preferred_by_those_who_like_their_kind(model):
    assert model.preference("u00", "i36", "i37") > 0.3
    assert model.preference("u01", "i36", "i37") < -0.3
    ids, _ = model.recommend("u00", N=1, items=["i36", "i37"])
    assert ids.tolist() == ["i36"]


def test_new_users_get_what_people_like_them_like(model):
    best, _ = model.recommend("u60", N=10)
    assert sum(int(item[1:]) % 2 == 0 for item in best) >= 9
    best, _ = model.recommend("u61", N=10)
    assert sum(int(item[1:]) % 2 == 1 for item in best) >= 9


@pytest.mark.parametrize(("kind", "loss"), [(SAD, "pairwise"), (BPR, "pairwise"), (SAD, "softmax")])
def test_the_same_bits_on_any_number_of_threads(kind, loss):
    settings = {**SETTINGS, "iterations": 3, "loss": loss, "num_threads": 1}
    given = {"show_progress": False, "item_features": COLOURS, "user_features": PEOPLE}
    one, two = (kind(**{**settings, "num_threads": threads}).fit(taste(), **given) for threads in (1, 2))
    assert bits(one) == bits(two)


def test_a_killed_fit_with_features_ends_with_the_same_bits(model, tmp_path):
    class Killed(Exception):
        pass

    def kill(epoch, figures, model):
        if epoch == 5:
            raise Killed

    given = {"show_progress": False, "item_features": COLOURS, "user_features": PEOPLE, "checkpoint": tmp_path}
    with pytest.raises(Killed):
        SAD(**SETTINGS).fit(taste(), callbacks=[kill], **given)
    assert bits(SAD(**SETTINGS).fit(taste(), **given)) == bits(model)
    with pytest.raises(ValueError, match="checkpoint"):
        SAD(**SETTINGS).fit(taste(), **{**given, "user_features": None})


def test_callbacks_can_ask_about_new_items():
    preferences = []

    def ask(epoch, figures, model):
        preferences.append(model.preference("u00", "i36", "i37"))

    SAD(**SETTINGS).fit(taste(), show_progress=False, item_features=COLOURS, callbacks=[ask])
    assert len(preferences) == SETTINGS["iterations"]
    assert preferences[-1] > preferences[0]


def test_an_item_of_the_data_that_nobody_touched_is_no_negative():
    data = taste()
    wider = Interactions.from_csr(
        sp.csr_matrix((data.matrix.data, data.matrix.indices, data.matrix.indptr), shape=(USERS, ITEMS - 2)),
        users=data.users,
        items=[f"i{i:02}" for i in range(ITEMS - 2)],
    )
    one = SAD(**SETTINGS).fit(data, show_progress=False, item_features=COLOURS[: ITEMS - 2])
    other = SAD(**SETTINGS).fit(wider, show_progress=False, item_features=COLOURS[: ITEMS - 2])
    assert bits(one) == bits(other)


def test_saved_is_loaded(model, tmp_path):
    model.save(tmp_path / "m.sad")
    for mmap in (False, True):
        again = SAD.load(tmp_path / "m.sad", mmap=mmap)
        assert bits(again) == bits(model)
        assert again.state.features.item.encoder.columns == model.state.features.item.encoder.columns
        np.testing.assert_array_equal(
            again.state.features.item.rows.toarray(), model.state.features.item.rows.toarray()
        )
        np.testing.assert_array_equal(
            again.state.features.user.linear.coefficients, model.state.features.user.linear.coefficients
        )
    assert SAD(**SETTINGS).fit(taste(), show_progress=False).state.features is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("item_features_coefficients", lambda a: a[:-1]),
        ("item_features_intercept", lambda a: np.full_like(a, np.nan)),
        ("item_features_indices", lambda a: a + 1000),
        ("user_features_indptr", lambda a: a[::-1]),
        ("user_features_cold", lambda a: a.astype(np.float64)),
    ],
)
def test_a_file_whose_features_do_not_fit_is_refused(model, tmp_path, name, change):
    model.save(tmp_path / "m.sad")
    with_array(tmp_path / "m.sad", name, change, tmp_path / "n.sad")
    with pytest.raises(ModelFileError, match="features"):
        SAD.load(tmp_path / "n.sad")


def test_partial_fit_goes_on_with_the_same_features(model, tmp_path):
    model.save(tmp_path / "m.sad")
    again = SAD.load(tmp_path / "m.sad")
    new = Interactions.from_frame(pl.DataFrame({"user": ["u60", "u99"], "item": ["i36", "i01"]}))
    again.partial_fit(new, show_progress=False)
    assert again.items[again.state.features.item.cold].tolist() == ["i37", "i38"]
    assert again.users[again.state.features.user.cold].tolist() == ["u61"]
    assert len(again.users) == USERS + 3
    assert np.isfinite(again.preference("u99", "i37", "i38"))


def test_ids_of_another_kind_are_refused():
    numbered = pl.DataFrame({"item": list(range(36)), "colour": ["red", "blue"] * 18})
    with pytest.raises(TypeError, match="ids of two kinds meet"):
        SAD(**SETTINGS).fit(taste(), item_features=numbered)


def test_comparisons_with_sgd_know_new_items_by_features():
    rng = np.random.default_rng(0)
    strength = np.arange(30) / 3
    pairs = rng.integers(0, 28, (600, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    wins = rng.random(len(pairs)) < 1 / (1 + np.exp(strength[pairs[:, 1]] - strength[pairs[:, 0]]))
    winner, loser = np.where(wins, pairs.T[0], pairs.T[1]), np.where(wins, pairs.T[1], pairs.T[0])
    comparisons = Comparisons.from_frame(
        pl.DataFrame({"user": ["ann"] * len(winner), "winner": winner, "loser": loser})
    )
    speed = pl.DataFrame({"item": np.arange(30), "speed": np.arange(30.0)})
    model = SAD(4, solver="sgd", bias=True).fit(comparisons, show_progress=False, item_features=speed)
    assert model.preference("ann", 29, 0) > 1
    assert model.preference("ann", 29, 15) > 0


def battles(judges=1, items=40, shown=36, count=1500):
    """Comparisons of fighters whose strength is their speed; the last four never fight."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, shown, (count, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    speed = rng.permutation(items) / 4
    wins = rng.random(len(pairs)) < 1 / (1 + np.exp(speed[pairs[:, 1]] - speed[pairs[:, 0]]))
    winner, loser = np.where(wins, pairs.T[0], pairs.T[1]), np.where(wins, pairs.T[1], pairs.T[0])
    frame = pl.DataFrame({"user": rng.integers(0, judges, len(winner)), "winner": winner, "loser": loser})
    return Comparisons.from_frame(frame), pl.DataFrame({"item": np.arange(items), "speed": speed}), speed


@pytest.mark.parametrize("judges", [1, 5])
def test_the_variational_solver_knows_fighters_who_never_fought(judges):
    results, table, speed = battles(judges)
    model = SAD(iterations=30).fit(results, show_progress=False, item_features=table)
    assert model.settings.solver == "variational"
    new = np.repeat(np.arange(36, 40), 36)
    rivals = np.tile(np.arange(36), 4)
    judge = results.users[0]
    truth = speed[new] - speed[rivals]
    margins = model.preference(judge, new, rivals)
    assert np.corrcoef(truth, margins)[0, 1] > 0.9
    assert model.items[model.state.features.item.cold].tolist() == [36, 37, 38, 39]
    sure = model.deviation(judge, rivals[:36], np.roll(rivals[:36], 1)).mean()
    assert model.deviation(judge, new, rivals).mean() > sure


def test_the_variational_solver_resumes_with_features(tmp_path):
    class Killed(Exception):
        pass

    def kill(sweep, figures, model):
        if sweep == 14:
            raise Killed

    results, table, _ = battles(3)
    judges = pl.DataFrame({"user": results.users, "club": ["x", "x", "y"]})
    given = {"show_progress": False, "item_features": table, "user_features": Features(judges, minimum=1)}
    whole = SAD(iterations=20, num_threads=1).fit(results, **given)
    with pytest.raises(Killed):
        SAD(iterations=20).fit(results, callbacks=[kill], checkpoint=tmp_path, **given)
    assert bits(SAD(iterations=20).fit(results, checkpoint=tmp_path, **given)) == bits(whole)


def test_added_items_and_users_are_like_those_that_fit_knew(model, tmp_path):
    model.save(tmp_path / "m.sad")
    again = SAD.load(tmp_path / "m.sad")
    again.partial_fit(
        item_features={"new": {"colour": "red"}}, user_features=pl.DataFrame({"user": ["eve"], "club": ["r"]})
    )
    assert again.preference("u00", "new", "i36") == 0
    assert again.preference("eve", "new", "i37") == pytest.approx(model.preference("u60", "i36", "i37"))
    assert again.recommend("eve", N=5, items=["new", "i37"])[0].tolist() == ["new", "i37"]
    again.save(tmp_path / "n.sad")
    assert bits(SAD.load(tmp_path / "n.sad")) == bits(again)
    with pytest.raises(ValueError, match="'i01' is known already"):
        again.partial_fit(item_features={"i01": {"colour": "red"}})
    with pytest.raises(ValueError, match="no column 'colour'"):
        again.partial_fit(item_features={"other": {"size": 3.0}})


def test_added_items_keep_what_a_variational_fit_knows():
    results, table, _ = battles(3)
    model = SAD(iterations=20).fit(results, show_progress=False, item_features=table)
    judge = results.users[0]
    before = model.probability(judge, np.arange(10), np.arange(1, 11))
    sure = model.deviation(judge, 0, 1)
    model.partial_fit(item_features=pl.DataFrame({"item": [100, 101], "speed": [9.0, 1.0]}))
    np.testing.assert_array_equal(model.probability(judge, np.arange(10), np.arange(1, 11)), before)
    assert model.probability(judge, 100, 101) > 0.8
    assert model.deviation(judge, 100, 101) > sure


def test_new_users_by_features_by_likes_and_by_both(model):
    state = model.visitor(features={"club": "r"}).state
    predicted = state.parameters.user_factors[0]
    np.testing.assert_allclose(predicted, model.user_factors[60], atol=1e-6)
    assert state.belief.user_covariance_of(0).shape == (4, 4)
    ids, _ = model.recommend_for(features={"club": "b"}, N=5)
    assert all(int(item[1:]) % 2 == 1 for item in ids)
    plain, both = (model.visitor(["i01"], features=club).user_factors[0] for club in (None, {"club": "r"}))
    assert np.linalg.norm(both - predicted) < np.linalg.norm(plain - predicted)
    visitor = model.visitor(["i00"], name="eve", features={"club": "r"})
    assert visitor.preference("eve", "i36", "i37") > 0
    assert visitor.explain("eve", "i36", "i37").by_features > 0
    with pytest.raises(ValueError, match="give liked, comparisons or features"):
        model.recommend_for()


def test_a_new_item_is_placed_by_its_features(model, tmp_path):
    model.save(tmp_path / "m.sad")
    again = SAD.load(tmp_path / "m.sad").partial_fit(item_features={"new": {"colour": "red"}})
    alone = [side[-1] for side in (again.item_factors, again.rival_factors, again.item_bias)]
    np.testing.assert_allclose(alone[0], model.item_factors[36], atol=1e-6)


def test_an_explanation_says_what_came_from_features(model):
    why = model.explain("u00", "i36", "i37")
    assert why.by_features == pytest.approx(why.margin, abs=1e-4)
    assert sum(value for _, value in why.columns) == pytest.approx(why.by_features)
    assert {name for name, _ in why.columns} == {"colour=red", "colour=blue"}
    assert "features +" in repr(why)
    warm = model.explain("u00", "i00", "i02")
    assert warm.by_features == pytest.approx(0, abs=1e-6)
    assert SAD.from_factors(np.ones((1, 2)), np.ones((2, 2))).explain(0, 0, 1).by_features is None


def test_questions_by_features_to_a_model_without_are_refused():
    plain = SAD.from_factors(np.ones((1, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="fitted without item_features"):
        plain.partial_fit(item_features={5: ["x"]})
    with pytest.raises(ValueError, match="fitted without user_features"):
        plain.visitor(features={"age": 3})


def test_validation_data_may_hold_items_that_training_lacks():
    train, held_out = taste().split(test=0.5, seed=0)
    model = SAD(**SETTINGS).fit(train, show_progress=False, item_features=COLOURS, validation=held_out)
    assert "validation_accuracy" in model.state.history[-1]
    assert len(model.items) == ITEMS - 1


def test_ids_of_another_kind_name_the_table():
    with pytest.raises(TypeError, match="item_features: ids of two kinds"):
        SAD(**SETTINGS).fit(taste(), show_progress=False, item_features={1: ["red"], 2: ["blue"]})
