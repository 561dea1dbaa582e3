"""Every verb over HTTP says what the verb in Python says."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from sadrec import SAD, Comparisons
from sadrec.ranking import contradictions, cycle_through, cyclic_triads, nemeses, recommend_groups, spoilers

SAID = [(1, 2), (2, 3), (4, 1), (5, 9)]


def ask(running, path, **question):
    answer = running.client.post(f"/v1/{path}", json=question)
    assert answer.status_code == 200, answer.text
    content = answer.json()
    assert content["model"] == running.served.digest == answer.headers["x-model"]
    return content


def get(running, path, **question):
    answer = running.client.get(f"/v1/{path}", params=question)
    assert answer.status_code == 200, answer.text
    return answer.json()


def said(model, pairs=SAID):
    winners, losers = zip(*pairs, strict=True)
    index = np.zeros(len(pairs), int), np.array(winners), np.array(losers)
    return Comparisons.from_indices(*index, users=["visitor"], items=model.items)


def stated(pairs=SAID):
    return [{"winner": winner, "loser": loser} for winner, loser in pairs]


@pytest.mark.parametrize("which", ["running", "clicks"])
def test_a_known_user_gets_what_recommend_says(which, request):
    service = request.getfixturevalue(which)
    ids, scores = service.model.recommend(7, N=5)
    for content in (get(service, "recommend", user=7, N=5), ask(service, "recommend", user=7, N=5)):
        assert [one["item"] for one in content["items"]] == ids.tolist()
        np.testing.assert_array_equal(np.array([one["score"] for one in content["items"]], np.float32), scores)
        assert content["fallback"] is None and content["user"] == 7


def test_the_direct_path_and_the_route_give_the_same_answer(running):
    direct = get(running, "recommend", user=7, N=4)
    through_the_route = running.client.get("/v1/recommend?N=4&user=7").json()
    for one, other in zip(direct["items"], through_the_route["items"], strict=True):
        assert np.float32(one.pop("score")) == np.float32(other.pop("score")) and one == other
    direct.pop("items"), through_the_route.pop("items")
    assert direct == through_the_route


@pytest.mark.parametrize("method", ["wins", "markov", "nash"])
def test_methods_and_lists_of_items_are_passed_on(running, method):
    content = get(running, "recommend", user=3, N=4, method=method, filter_items=[5, 6])
    ids, _ = running.model.recommend(3, N=4, method=method, filter_items=[5, 6])
    assert [one["item"] for one in content["items"]] == ids.tolist()
    content = ask(running, "recommend", user=3, items=[4, 5, 6], method=method)
    ids, _ = running.model.recommend(3, items=[4, 5, 6], method=method)
    assert [one["item"] for one in content["items"]] == ids.tolist()


def test_visitors_by_likes_and_by_comparisons(clicks, running):
    ids, scores = clicks.model.recommend_for([1, 2, 3], N=5)
    content = ask(clicks, "recommend", likes=[1, 2, 3], N=5)
    assert [one["item"] for one in content["items"]] == ids.tolist()
    np.testing.assert_allclose([one["score"] for one in content["items"]], scores, rtol=1e-5)
    ids, _ = running.model.recommend_for(comparisons=said(running.model), N=5)
    content = ask(running, "recommend", comparisons=stated(), N=5, intervals=True)
    assert [one["item"] for one in content["items"]] == ids.tolist()
    assert all(one["interval"][0] < one["score"] < one["interval"][1] for one in content["items"])


def test_preferences_with_how_sure_they_are(running):
    (one,) = ask(running, "prefer", user=7, pairs=[{"item": 1, "rival": 2}])["preferences"]
    triple = (7, 1, 2)
    assert one["margin"] == running.model.preference(*triple)
    assert one["probability"] == running.model.probability(*triple)
    assert one["deviation"] == running.model.deviation(*triple)
    visitor = running.model.visitor(comparisons=said(running.model))
    (one,) = ask(running, "prefer", comparisons=stated(), pairs=[{"item": 1, "rival": 2}])["preferences"]
    assert one["probability"] == pytest.approx(visitor.probability("visitor", 1, 2))
    assert one["deviation"] == pytest.approx(visitor.deviation("visitor", 1, 2))


def test_margins_ranks_and_groups(running):
    content = ask(running, "margins", user=7, items=[1, 2], rivals=[3, 4, 5])
    np.testing.assert_allclose(content["margins"], running.model.margins(7, [1, 2], [3, 4, 5]))
    content = ask(running, "rank", user=7, items=[1, 2, 3, 4], method="markov")
    assert [one["item"] for one in content["items"]] == list(running.model.rank(7, [1, 2, 3, 4], "markov"))
    content = ask(running, "groups", user=7, N=6)
    best, _ = running.model.recommend(7, N=50)
    expected = recommend_groups(running.model.tournament(7, best), 6)
    assert [[one["item"] for one in group["items"]] for group in content["groups"]] == [
        group.items.tolist() for group in expected
    ]


def test_cycles_with_the_factors_that_carry_them(running):
    content = ask(running, "cycles", user=7, N=25, factors=20)
    expected = running.model.cycles(7, 25)
    assert len(content["cycles"]) == len(expected) > 0
    shown, cycle = content["cycles"][0], expected[0]
    assert [one["item"] for one in shown["path"]] == cycle.path.tolist()
    assert content["intransitivity"] == running.model.intransitivity(7)
    assert content["cyclic_triads"] == cyclic_triads(running.model.tournament(7, N=25)).count
    for step, margin in zip(shown["steps"], cycle.margins, strict=True):
        assert step["margin"] == margin
        assert step["probability"] == running.model.probability(7, step["item"], step["rival"])
        assert sum(part["contribution"] for part in step["factors"]) == pytest.approx(margin)
    assert sum(step["weakest"] for step in shown["steps"]) == 1


def test_the_weakest_step_is_the_one_that_is_answered_so_least_often(running):
    """Of a visitor margins are not known exactly: the smallest one need not be the least probable."""
    model, seen = running.model, 0
    for user in model.users[:20]:
        best = model.recommend(user, N=9, filter_already_liked_items=False)[0].tolist()
        answers = [{"winner": one, "loser": other} for one, other in pairwise(best)]
        for cycle in ask(running, "cycles", comparisons=answers, N=30)["cycles"]:
            chances = [step["probability"] for step in cycle["steps"]]
            margins = [step["margin"] for step in cycle["steps"]]
            seen += chances.index(min(chances)) != margins.index(min(margins))
            assert next(place for place, step in enumerate(cycle["steps"]) if step["weakest"]) == np.argmin(chances)
    assert seen


def test_the_cycle_through_an_item_holds_the_item(running):
    content = ask(running, "cycles", user=7, item=3, N=20)
    among = running.model.similar_items(3, 20)[0]
    expected = cycle_through(running.model.tournament(7, among), 3)
    assert expected is not None
    assert [one["item"] for one in content["cycles"][0]["path"]] == expected.path.tolist() and 3 in expected.path


def test_explanations(clicks):
    content = ask(clicks, "explain", user=7, item=1, rival=2)
    reason = clicks.model.explain(7, 1, 2)
    assert content["contributions"] == reason.contributions.tolist() and content["margin"] == reason.margin
    assert [(one["item"], one["influence"]) for one in content["for_item"]] == reason.supporters()
    assert content["probability"] == clicks.model.probability(7, 1, 2)


def test_what_is_alike(running):
    ids, cosines = running.model.similar_items(3, 4)
    content = get(running, "similar", item=3, N=4)
    assert [one["id"] for one in content["neighbours"]] == ids.tolist()
    np.testing.assert_allclose([one["cosine"] for one in content["neighbours"]], cosines)
    ids, _ = running.model.similar_users(3, 4)
    assert [one["id"] for one in get(running, "similar", user=3, N=4)["neighbours"]] == ids.tolist()


def test_the_next_question(running, clicks):
    items = list(range(12))
    best = running.model.ask_next(7, items).row(0, named=True)
    (one,) = ask(running, "question", user=7, items=items)["questions"]
    assert (one["item"]["item"], one["rival"]["item"], one["bits"]) == (best["item"], best["rival"], best["bits"])
    content = ask(clicks, "question", likes=[1, 2], items=items, N=3)
    assert content["source"] == "visitor" and len(content["questions"]) == 3
    refused = clicks.client.post("/v1/question", json={"user": 7})
    assert refused.status_code == 422 and "no uncertainty about its users" in refused.json()["error"]


def test_all_about_a_visitor(running):
    pairs = [(1, 2), (2, 3), (3, 1), (5, 9)]
    content = ask(running, "visitor", comparisons=stated(pairs), N=5)
    model = running.model.visitor(comparisons=said(running.model, pairs))
    ids, _ = model.recommend("visitor", N=5)
    assert [one["item"] for one in content["items"]] == ids.tolist()
    winners, losers = (model.state.items.positions(list(side)) for side in zip(*pairs, strict=True))
    (contradiction,) = contradictions(model.state.belief, winners, losers)
    (shown,) = content["contradictions"]
    assert [one["item"] for one in shown["path"]] == model.items[contradiction.path].tolist()
    assert shown["verdict"] == contradiction.verdict and shown["probability"] == contradiction.probability
    assert [one["probability"] for one in content["stated"]] == pytest.approx(
        [model.probability("visitor", *pair) for pair in pairs]
    )
    answered = {frozenset(pair) for pair in pairs}
    assert frozenset((content["question"]["item"]["item"], content["question"]["rival"]["item"])) not in answered
    assert content["strongest_cycle"]["strength"] == model.cycles("visitor")[0].strength
    assert 0.5 <= content["sure"] <= 1 and content["answers"] == 4


def test_a_visitor_who_has_said_nothing_is_the_average_user(running):
    content = ask(running, "visitor", N=5)
    ids, _ = running.model.recommend(None, N=5)
    assert [one["item"] for one in content["items"]] == ids.tolist() and content["question"] is not None


def test_a_slate(running):
    items = [1, 2, 3, 4, 5]
    content = ask(running, "slate", user=7, items=items, others=[8, 9, 10, 11])
    game = running.model.tournament(7, items)
    np.testing.assert_array_equal(content["margins"], game.margins)
    by_method = {one["method"]: one for one in content["rankings"]}
    for method in ("wins", "markov", "nash"):
        assert by_method[method]["items"] == list(running.model.rank(7, items, method))
    assert by_method["margin"]["items"] == list(running.model.rank(7, items, reference=items))
    expected = [
        (method, one.item, one.winner_without, one.winner_with)
        for method in ("margin", "wins", "markov", "nash")
        for one in spoilers(running.model.tournament(7, [*items, 8, 9, 10, 11]), len(items), method)
    ]
    shown = [
        (one["method"], one["item"]["item"], one["winner_without"], one["winner_with"]) for one in content["spoilers"]
    ]
    assert shown == expected


def test_the_arena_has_the_leaderboard_of_the_average_judge(running):
    content = get(running, "arena")
    expected = running.model.leaderboard()
    assert [row["strength"] for row in content["leaderboard"]] == pytest.approx(expected["strength"].to_list())
    best = [content["item_names"][row["item"]] for row in content["leaderboard"]]
    assert len(set(best)) == len(expected)
    assert len(content["probability"]) == len(content["items"])


def test_what_beats_an_item(running):
    content = get(running, "nemesis", item=3, N=4)
    expected = nemeses(running.model.state.parameters, 3, 4)
    assert [one["item"] for one in content["nemeses"]] == expected.items.tolist()
    assert [one["share"] for one in content["nemeses"]] == expected.shares.tolist()
    share = np.mean(running.model.preference(running.model.users, expected.items[0], 3) > 0)
    assert content["nemeses"][0]["share"] == pytest.approx(share) and content["users"] == 40


def test_items_are_found_by_title_and_by_id(running):
    content = get(running, "items", query="dish 2", N=30)
    assert {one["item"] for one in content["items"]} == {2, *range(20, 30)} and content["total"] == 11
    assert get(running, "items", query="DISH 17")["items"][0] == {"item": 17, "title": "Dish 17", "picture": None}
    assert get(running, "items/17")["title"] == "Dish 17"
    assert get(running, "items")["total"] == 30


def test_a_search_minds_neither_case_nor_accents(started, folder):
    names = ["Les Étoiles", "Les E\u0301toiles", "STRASSE", "Straße", "Łódź"]
    pl.DataFrame({"item": np.arange(5), "title": names}).write_csv(folder / "accents.csv")
    service = started(items="accents.csv")
    for query, expected in (("etoiles", {0, 1}), ("ÉTOILES", {0, 1}), ("strasse", {2, 3}), ("łodz", {4})):
        assert {one["item"] for one in get(service, "items", query=query)["items"]} == expected
    factors = [np.ones((rows, 2)) for rows in (2, 2, 2)]
    SAD.from_factors(*factors, users=["Zoë", "bob"], items=[1, 2]).save(folder / "named.sad")
    assert [one["user"] for one in get(started("named.sad"), "users", query="zoe")["users"]] == ["Zoë"]


def test_users_and_popular_items(running):
    content = get(running, "users", order="intransitivity", N=3)
    shares = running.model.intransitivity(running.model.users)
    assert [one["user"] for one in content["users"]] == np.argsort(-shares, kind="stable")[:3].tolist()
    ids, _ = running.model.recommend(None, N=3)
    assert [one["item"] for one in get(running, "popular", N=3)["items"]] == ids.tolist()


def test_what_is_served(running, clicks):
    content = get(running, "describe")
    assert content["users"] == 40 and content["rivals"] and content["titles"] and content["log"]
    assert not get(clicks, "describe")["titles"]


def test_who_likes_everything_leaves_nothing_to_compare_with(clicks):
    answer = clicks.client.post("/v1/recommend", json={"likes": list(range(30))})
    assert answer.status_code == 422 and "no other item" in answer.json()["error"]
