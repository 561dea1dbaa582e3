"""What a service may be given beside a model: a posterior; and models and ids of every kind."""

import numpy as np
import pytest

from sadrec import BPR, SAD, Comparisons
from sadrec.data import simulate
from sadrec.posterior import GibbsSAD

PAIRS = [{"item": 1, "rival": 2}, {"item": 5, "rival": 9}]


def ask(running, path, status=200, **question):
    answer = running.client.post(f"/v1/{path}", json=question)
    assert answer.status_code == status, answer.text
    return answer.json()


def get(running, path, status=200, **question):
    answer = running.client.get(f"/v1/{path}", params=question)
    assert answer.status_code == status, answer.text
    return answer.json()


def every_verb(running, user, items):
    """Ask every verb about a user, a visitor and the average user; all must be answered."""
    one, other, *rest = items
    some = [one, other, *rest[:2]]
    get(running, "recommend", user=user)
    get(running, "similar", item=one)
    get(running, "similar", user=user)
    get(running, "nemesis", item=one)
    get(running, "popular")
    get(running, "users")
    assert get(running, "items", query=str(one))["total"] > 0
    assert get(running, "describe")["items"] == len(running.model.items)
    visitors = {"likes": [one]}, {"comparisons": [{"winner": one, "loser": other}]}
    for who in ({"user": user}, *visitors, {}):
        listed = ask(running, "recommend", **who, N=3, intervals=True)["items"]
        assert all(np.isfinite(entry["score"]) for entry in listed)
        (preferred,) = ask(running, "prefer", **who, pairs=[{"item": one, "rival": other}])["preferences"]
        assert 0 < preferred["probability"] < 1
        ask(running, "groups", **who)
        ask(running, "margins", **who, items=[one], rivals=[other])
        ask(running, "rank", **who, items=some, method="wins")
        ask(running, "cycles", **who)
        ask(running, "cycles", **who, item=one)
        ask(running, "slate", **who, items=some)
        ask(running, "visitor", **who)
        if who:
            ask(running, "explain", **who, item=one, rival=other)
    for who in visitors:
        assert ask(running, "question", **who)["source"] == "visitor"


# -- a posterior ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def sampled(folder, started):
    """A service with a posterior of the same people."""
    model = SAD.load(folder / "model.sad")
    rng = np.random.default_rng(0)
    users, winners = rng.integers(0, 40, 1500), rng.integers(0, 30, 1500)
    losers = (winners + rng.integers(1, 30, 1500)) % 30
    comparisons = Comparisons.from_indices(users, winners, losers, users=model.users, items=model.items)
    posterior = GibbsSAD(factors=2, chains=2, draws=40, warmup=40).fit(comparisons, show_progress=False)
    posterior.save(folder / "said.posterior")
    return started(posterior="said.posterior", items="items.csv"), GibbsSAD.load(folder / "said.posterior")


def test_preferences_come_with_the_intervals_of_the_posterior(sampled):
    running, posterior = sampled
    assert get(running, "describe")["posterior"] is True
    for shown, pair in zip(ask(running, "prefer", user=7, pairs=PAIRS, level=0.8)["preferences"], PAIRS, strict=True):
        triple = 7, pair["item"], pair["rival"]
        low, high = posterior.interval(*triple, level=0.8)
        assert shown["interval"] == pytest.approx([low, high])
        assert shown["margin"] == pytest.approx(posterior.preference(*triple))
        assert shown["probability"] == pytest.approx(posterior.probability(*triple))


def test_lists_come_with_the_intervals_of_the_posterior_where_asked_for(sampled):
    running, posterior = sampled
    shown = ask(running, "recommend", user=7, N=4, intervals=True)["items"]
    margins = posterior.preference_draws(7, [[one["item"]] for one in shown], posterior.items)
    low, high = np.quantile(margins.mean(axis=2), (0.05, 0.95), axis=0)
    np.testing.assert_allclose([one["interval"] for one in shown], np.column_stack([low, high]), rtol=1e-3, atol=1e-3)
    assert all(one.get("interval") is None for one in ask(running, "recommend", user=7, N=4)["items"])


def test_the_next_question_is_that_of_the_posterior(sampled):
    running, posterior = sampled
    shown = ask(running, "question", user=7, items=[1, 2, 3, 4], N=2)
    expected = posterior.ask_next(7, [1, 2, 3, 4], N=2)
    assert shown["source"] == "posterior"
    pairs = [(one["item"]["item"], one["rival"]["item"]) for one in shown["questions"]]
    assert pairs == expected.select("item", "rival").rows()


def test_a_visitor_is_not_in_the_posterior_and_is_answered_all_the_same(sampled):
    running, _ = sampled
    every_verb(running, 7, [1, 2, 3, 4])


def test_a_posterior_of_other_items_is_refused(folder, started):
    comparisons = Comparisons.from_indices([0, 0, 1], [0, 1, 2], [1, 2, 0], users=[1, 2], items=["a", "b", "c"])
    GibbsSAD(factors=1, chains=1, draws=4, warmup=2).fit(comparisons, show_progress=False).save(
        folder / "other.posterior"
    )
    with pytest.raises(ValueError, match="knows other items than the model"):
        started(posterior="other.posterior")


# -- models of every kind ---------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def liked():
    rng = np.random.default_rng(3)
    taste = rng.random((60, 3)) @ rng.random((3, 40))
    return (taste + 0.3 * rng.random((60, 40)) > np.quantile(taste, 0.85)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (SAD, {"loss": "softmax"}),
        (SAD, {"loss": "softmax", "bias": False}),
        (SAD, {"loss": "pairwise", "negative_candidates": 8}),
        (BPR, {}),
    ],
    ids=["softmax", "softmax without bias", "hard negatives", "T = 1"],
)
def test_models_of_interactions_answer_every_verb(folder, started, liked, kind, given):
    kind(factors=6, iterations=4, **given).fit(liked, show_progress=False).save(folder / "liked.sad")
    running = started("liked.sad")
    every_verb(running, 7, [1, 2, 3, 4])
    ids, _ = running.model.recommend_for([1, 2], N=5)
    assert [one["item"] for one in ask(running, "recommend", likes=[1, 2], N=5)["items"]] == ids.tolist()


@pytest.mark.parametrize("kind", [SAD, BPR])
def test_models_of_comparisons_with_default_settings_answer_every_verb(folder, started, kind):
    """The variational solver: it knows how sure it is of users and items."""
    comparisons = simulate("sim2", n=30, m=20, k=3, comparisons_per_user=40, seed=5).comparisons
    kind().fit(comparisons, show_progress=False).save(folder / "stated.sad")
    running = started("stated.sad")
    assert get(running, "describe")["knows_how_sure"] is True
    every_verb(running, 7, [1, 2, 3, 4])
    (shown,) = ask(running, "prefer", user=7, pairs=[{"item": 1, "rival": 2}])["preferences"]
    assert shown["deviation"] == running.model.deviation(7, 1, 2)
    assert ask(running, "question", user=7)["source"] == "fit"


@pytest.mark.parametrize("items", [1, 2])
def test_a_catalogue_of_one_or_two_items(folder, started, items):
    rng = np.random.default_rng(0)
    SAD.from_factors(*(rng.random((rows, 2)) for rows in (3, items, items))).save(folder / "few.sad")
    running = started("few.sad")
    assert len(get(running, "recommend", user=0)["items"]) == items
    if items > 1:
        every_verb(running, 0, [0, 1])
    else:
        refused = ask(running, "recommend", 422, likes=[0])
        assert "no other item" in refused["error"]
        assert ask(running, "visitor", user=0)["question"] is None


ODD = ["a/b", "../c", 'say "x"', "naïve café", "a b&c=d", "%2F", "#1", "名前", "7", " x "]


def test_odd_ids_are_asked_about_as_they_are(folder, started):
    rng = np.random.default_rng(0)
    users = [f"u/{one}" for one in ODD]
    SAD.from_factors(*(rng.random((10, 2)) for _ in range(3)), users=users, items=ODD).save(folder / "odd.sad")
    running = started("odd.sad")
    for user, item in zip(users, ODD, strict=True):
        ids, _ = running.model.recommend(user, N=3)
        assert [one["item"] for one in get(running, "recommend", user=user, N=3)["items"]] == ids.tolist()
        assert get(running, "similar", item=item)["id"] == item
        assert get(running, "nemesis", item=item)["item"] == item
    every_verb(running, users[0], ODD[:4])


@pytest.mark.parametrize("item", ["a/b", "naïve café", "a b&c=d", 'say "x"', "#1", "7"])
def test_an_item_is_found_by_its_address_whatever_is_in_its_id(folder, started, item):
    from urllib.parse import quote

    rng = np.random.default_rng(0)
    SAD.from_factors(*(rng.random((10, 2)) for _ in range(3)), items=ODD).save(folder / "odd.sad")
    answer = started("odd.sad").client.get(f"/v1/items/{quote(item, safe='')}")
    assert answer.status_code == 200 and answer.json()["item"] == item


def test_ids_that_are_text_may_look_like_numbers(folder, started):
    rng = np.random.default_rng(0)
    factors = [rng.random((3, 2)) for _ in range(3)]
    SAD.from_factors(*factors, users=["1", "2", "03"], items=["7", "8", "x"]).save(folder / "text.sad")
    running = started("text.sad")
    assert get(running, "recommend", user="1")["user"] == "1"
    assert ask(running, "recommend", user=1)["user"] == "1"
    assert get(running, "recommend", 404, user="3")["error"].startswith("unknown user '3'")
