"""People and items without history: known by features in the model, or brought along by a question."""

import numpy as np
import polars as pl
import pytest

from sadrec import SAD, Comparisons, Interactions
from sadrec.data import simulate

from .test_extras import ask, every_verb, get


@pytest.fixture(scope="module")
def people(folder):
    """Files of models with features: of interactions and of comparisons."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"user": rng.integers(60, size=2000), "item": rng.integers(40, size=2000)})
    data = Interactions.from_frame(frame.filter((pl.col("user") + pl.col("item")) % 2 == 0), duplicates="last")
    films = pl.DataFrame({"item": range(42), "genre": ["drama", "comedy"] * 21, "year": rng.integers(1950, 2020, 42)})
    club = pl.DataFrame({"user": range(61), "club": ["a", "b"] * 30 + ["a"], "age": rng.integers(18, 80, 61)})
    tables = {"item_features": films, "user_features": club, "show_progress": False}
    SAD(factors=4, iterations=15).fit(data, **tables).save(folder / "films.sad")
    comparisons = simulate("sim2", n=30, m=20, k=3, seed=1).comparisons
    kinds = {item: {"kind": "hot" if item % 2 else "cold", "vector": [item / 10, 1.0 - item]} for item in range(21)}
    clubs = {user: ["old" if user % 3 else "new", "all"] for user in range(31)}
    tables = {"item_features": kinds, "user_features": clubs, "show_progress": False}
    SAD(factors=3, iterations=15).fit(comparisons, **tables).save(folder / "dishes.sad")
    return folder


@pytest.fixture(scope="module")
def films(started, people):
    return started("films.sad")


@pytest.fixture(scope="module")
def dishes(started, people):
    return started("dishes.sad")


def test_people_and_items_without_history_are_answered_for_as_others(films, dishes):
    every_verb(films, 60, [40, 41, 3, 4])
    every_verb(dishes, 30, [20, 3, 4, 5])
    assert get(films, "items/40")["cold"] and not get(films, "items/3")["cold"]
    assert [row["cold"] for row in get(films, "users", N=61)["users"]] == [False] * 60 + [True]


def test_the_service_says_which_features_it_knows(films, dishes, clicks):
    answer = get(films, "describe")
    assert answer["user_features"] == {"numbers": ["age"], "categories": {"club": ["a", "b"]}, "cold": 1}
    assert answer["item_features"] == {"numbers": ["year"], "categories": {"genre": ["comedy", "drama"]}, "cold": 2}
    assert get(dishes, "describe")["item_features"]["numbers"] == ["vector[0]", "vector[1]"]
    assert get(clicks, "describe")["user_features"] is None


@pytest.mark.parametrize("given", [{}, {"likes": [3, 5]}, {"comparisons": [{"winner": 1, "loser": 2}]}])
def test_a_visitor_is_known_by_features_alone_or_beside_what_they_said(films, given):
    features = {"club": "b", "age": 30}
    answer = ask(films, "recommend", **given, features=features, N=5)
    assert answer["user"] == "visitor"
    answers = None
    if "comparisons" in given:
        answers = Comparisons.from_frame(pl.DataFrame({"user": ["v"], "winner": [1], "loser": [2]}))
    ids, scores = films.model.recommend_for(given.get("likes"), N=5, comparisons=answers, features=features)
    assert [entry["item"] for entry in answer["items"]] == ids.tolist()
    np.testing.assert_allclose([entry["score"] for entry in answer["items"]], scores, rtol=1e-5)
    other = ask(films, "recommend", **given, features={"club": "a", "age": 70}, N=5)
    assert other["items"] != answer["items"]


@pytest.mark.parametrize("features", [["old", "all"], {"tags": ["old"]}, ["nobody has this"]])
def test_features_may_be_tags(dishes, features):
    entries = ask(dishes, "recommend", features=features, N=3)["items"]
    assert [entry["item"] for entry in entries] == dishes.model.recommend_for(features=features, N=3)[0].tolist()


def test_every_verb_takes_a_visitor_by_features(films, dishes):
    for running, features in ((films, {"age": 40}), (dishes, ["new"])):
        who = {"features": features}
        ask(running, "recommend", **who, intervals=True, method="wins")
        for path in ("groups", "cycles", "visitor", "question"):
            ask(running, path, **who)
        ask(running, "rank", **who, items=[1, 2, 3])
        ask(running, "slate", **who, items=[1, 2, 3])
        ask(running, "prefer", **who, pairs=[{"item": 1, "rival": 2}])


def test_an_explanation_tells_what_came_from_features(films, dishes, clicks):
    for running, user, item, rival in ((films, 60, 40, 41), (films, 0, 3, 4), (dishes, 2, 20, 3)):
        answer = ask(running, "explain", user=user, item=item, rival=rival)
        reason = running.model.explain(user, item, rival)
        assert answer["by_features"] == pytest.approx(reason.by_features)
        assert [(part["column"], part["contribution"]) for part in answer["columns"]] == list(reason.columns)[:20]
        assert 0 < len(answer["columns"]) <= 20
    assert ask(clicks, "explain", user=0, item=1, rival=2)["by_features"] is None


# -- new items --------------------------------------------------------------------------------------------------------
NEW = [{"item": 900, "features": {"genre": "drama", "year": 2000}}, {"item": 901, "features": {"genre": "comedy"}}]


def test_a_question_may_bring_new_items(films):
    larger = SAD.load(films.service.settings.model)
    larger.partial_fit(
        item_features=pl.DataFrame({"item": [900, 901], "genre": ["drama", "comedy"], "year": [2000, None]})
    )
    (preference,) = ask(films, "prefer", user=0, pairs=[{"item": 900, "rival": 901}], new_items=NEW)["preferences"]
    assert preference["margin"] == pytest.approx(larger.preference(0, 900, 901), rel=1e-5)
    listed = ask(films, "recommend", user=0, N=44, keep_seen=True, new_items=NEW)["items"]
    assert [entry["item"] for entry in listed] == larger.recommend(0, N=44, filter_already_liked_items=False)[
        0
    ].tolist()
    for path, options in (
        ("rank", {"items": [900, 1, 2]}),
        ("margins", {"items": [900], "rivals": [901, 3]}),
        ("explain", {"item": 900, "rival": 3}),
        ("slate", {"items": [900, 901, 3]}),
        ("cycles", {"item": 900}),
        ("groups", {}),
    ):
        for who in ({"user": 0}, {"likes": [3, 900]}, {"features": {"club": "a"}}):
            ask(films, path, **who, **options, new_items=NEW)
    # Nothing is kept.
    assert "unknown item 900" in ask(films, "rank", 404, user=0, items=[900, 1])["error"]


def test_new_items_keep_what_is_known_of_how_sure_the_model_is(dishes):
    new = [{"item": 77, "features": {"kind": "hot"}}]
    (of_new,) = ask(dishes, "prefer", user=0, pairs=[{"item": 77, "rival": 3}], new_items=new)["preferences"]
    (of_old,) = ask(dishes, "prefer", user=0, pairs=[{"item": 5, "rival": 3}])["preferences"]
    assert of_new["deviation"] > of_old["deviation"]


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ([{"item": 3, "features": {"year": 1999}}], "the item 3 is known already"),
        ([{"item": "x", "features": {"year": 1999}}], "the ids of this model are such as 0"),
        ([{"item": 900, "features": {"year": 1999}}] * 2, "900"),
        ([{"item": 900, "features": {"colour": "red"}}], "features has 'colour': 'red', but the model knows"),
        ([{"item": 900, "features": {"year": "late"}}], "features has 'year': 'late', but the model knows"),
        ([{"item": 900, "features": {"spot": [1.0, 2.0]}}], "features has 'spot[0]', but the model knows"),
        ([{"item": 900, "features": ["drama"]}], "has no column"),
        ([{"item": 900, "features": [1, 2, 3]}], "has no column"),
        ([{"item": number + 900, "features": {"year": 1999}} for number in range(101)], "at most 100"),
        ([{"item": 900}], "new_items.0.features: must be given"),
        ([{"item": 900, "features": {"year": {"a": 1}}}], "new_items.0.features: give names with values"),
        ([{"item": 900, "features": {"year": [1, "a"]}}], "new_items.0.features: give names with values"),
        ([{"item": 900, "features": 7}], "new_items.0.features"),
        ([{"item": 900, "features": {"year": 1e300}}], "features of the item are too far from all"),
    ],
)
def test_new_items_that_cannot_be_placed_are_refused_in_words(films, new, words):
    refused = ask(films, "rank", 422, user=0, items=[1, 2], new_items=new)
    assert words in refused["error"], refused["error"]


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ({"user": 0, "features": {"age": 3}}, "give a user, or the features of a visitor"),
        ({"features": {}}, "features is empty. Leave it out"),
        ({"features": []}, "features is empty"),
        ({"features": {"age": "old"}}, "features has 'age': 'old'"),
        ({"features": {"age": 10**30}}, "features of the user are too far from all that the fit has seen"),
        ({"features": {"x" * 300: 1}}, "features: give names with values"),
        ({"features": {"club": "x" * 300}}, "features: give names with values"),
        ({"features": {"age": {"years": 3}}}, "features: give names with values"),
        ({"features": {f"n{number}": 1 for number in range(5000)}}, "4096"),
    ],
)
def test_features_that_cannot_be_used_are_refused_in_words(films, who, words):
    refused = ask(films, "recommend", 422, **who)
    assert words in refused["error"], refused["error"]


def test_a_model_without_features_says_so(clicks):
    words = "the model was fitted without user_features: give them to fit"
    assert ask(clicks, "recommend", 422, features={"age": 3})["error"] == words
    refused = ask(clicks, "rank", 422, user=0, items=[1, 2], new_items=[{"item": 99, "features": {"year": 3}}])
    assert refused["error"] == "the model was fitted without item_features: give them to fit"


def test_numbers_that_are_large_or_odd_are_no_fault_of_the_service(films):
    for age, status in (
        (-(2**63), 422),
        (1e300, 422),
        (1e5, 200),
        (-3000, 200),
        (5e-324, 200),
        (True, 200),
        (None, 200),
    ):
        for path in ("recommend", "visitor", "cycles", "question"):
            answer = films.client.post(f"/v1/{path}", json={"features": {"age": age}})
            assert answer.status_code == status, (age, answer.text)
