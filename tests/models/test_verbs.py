"""The verbs, on SAD and BPR alike, and hand-made cycles."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Comparisons
from sadrec.data import Ids, UnknownIdError
from sadrec.ranking import cyclic_triads, recommend_groups
from sadrec.ranking.intransitivity import item_counter_effects
from tests.contract import checkerboard


@pytest.fixture(scope="module", params=[SAD, BPR])
def fitted(request):
    data, missing = checkerboard()
    settings = {"loss": "pairwise", "iterations": 60, "learning_rate": 0.2, "regularization": 0.001}
    return request.param(6, **settings).fit(data), data, missing


@pytest.fixture(scope="module")
def game():
    """Rock, paper and scissors, and air, which loses to all."""
    eta = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, -1]], float)
    tau = np.array([[0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 0, 0, 1]], float)
    items = ["rock", "paper", "scissors", "air"]
    return SAD.from_factors(np.ones((1, 4)), eta, tau, users=["ann"], items=items)


def test_the_missing_item_of_one_s_kind_comes_first(fitted):
    model, _, missing = fitted
    ids, _ = model.recommend(model.users, N=1)
    assert (ids[:, 0] == missing).all()


def test_batch_equals_single(fitted):
    model, _, _ = fitted
    ids, scores = model.recommend(model.users[:7], N=5)
    assert ids.shape == scores.shape == (7, 5)
    for row, user in enumerate(model.users[:7]):
        one_ids, one_scores = model.recommend(user, N=5)
        np.testing.assert_array_equal(one_ids, ids[row])
        np.testing.assert_array_equal(one_scores, scores[row])


@pytest.mark.parametrize("method", ["margin", "wins", "liked", "markov", "nash"])
def test_scores_never_rise_and_seen_items_are_left_out(fitted, method):
    model, data, _ = fitted
    for user in (0, 1):
        ids, scores = model.recommend(user, N=15, method=method)
        assert (np.diff(scores) <= 0).all() and len(set(ids)) == len(ids) == 15
        assert not set(ids) & set(data[user].indices)


def test_more_than_there_is(fitted):
    model, data, _ = fitted
    ids, scores = model.recommend(0, N=1000)
    assert len(ids) == 40 - data[0].nnz and np.isfinite(scores).all()
    many, padded = model.recommend([0, 1], N=50)
    assert many.shape == (2, 50) and (many[:, -1] == -1).all() and np.isneginf(padded[:, -1]).all()
    assert len(model.recommend(0, N=0)[0]) == 0


def test_allow_list_and_block_list(fitted):
    model, _, missing = fitted
    assert set(model.recommend(0, items=[3, 5, 7])[0]) == {3, 5, 7}
    assert missing[0] not in model.recommend(0, N=50, filter_items=[missing[0]])[0]
    assert len(model.recommend(0, filter_items=model.items)[0]) == 0
    with pytest.raises(ValueError, match="not both"):
        model.recommend(0, items=[1], filter_items=[2])
    with pytest.raises(ValueError, match="unknown item 99"):
        model.recommend(0, items=[99])


def test_what_was_liked_can_be_given_and_kept(fitted):
    model, data, missing = fitted
    assert len(model.recommend(0, N=100, filter_already_liked_items=False)[0]) == 40
    other = sp.csr_matrix(([1.0], ([0], [missing[0]])), shape=(1, 40))
    ids, _ = model.recommend(0, other, N=100)
    assert missing[0] not in ids and len(ids) == 39
    with pytest.raises(ValueError, match=r"must have a row for each of the 1 users.*not the shape \(60, 40\)"):
        model.recommend(0, data)


def test_users_can_be_recalculated_from_what_they_liked(fitted):
    model, data, _ = fitted
    row = data[1]  # somebody who was even now likes what user 1 likes
    ids, _ = model.recommend(0, row, N=1, recalculate_user=True)
    assert ids[0] % 2 == 1
    empty = sp.csr_matrix((1, 40))
    assert len(model.recommend(0, empty, N=3, recalculate_user=True)[0]) == 3


def test_a_new_user_is_recognised(fitted):
    model, _, _ = fitted
    state = model.visitor([0, 2, 4]).state
    covariance = state.belief.user_covariance_of(0)
    assert state.parameters.user_factors.shape == (1, 6) and covariance.shape == (6, 6)
    assert (np.linalg.eigvalsh(covariance) > 0).all()
    ids, _ = model.recommend_for([0, 2, 4], N=8)
    assert (ids % 2 == 0).all() and not set(ids) & {0, 2, 4}
    frame = pl.DataFrame({"winner": [1, 3, 5], "loser": [0, 2, 4]})
    stated = Comparisons.from_frame(frame, user=None, winner="winner", loser="loser")
    assert (model.recommend_for(comparisons=stated, N=8)[0] % 2 == 1).mean() > 0.8
    with pytest.raises(ValueError, match="empty"):
        model.recommend_for([])
    assert len(model.recommend(None, N=5)[0]) == 5


def test_ranking_the_catalogue_agrees_with_recommending(fitted):
    model, _, _ = fitted
    ids, _ = model.recommend(3, N=40, filter_already_liked_items=False)
    np.testing.assert_array_equal(model.rank(3).items, ids)


def test_similar_items_are_of_the_same_kind(fitted):
    model, _, _ = fitted
    ids, cosines = model.similar_items(4, N=6)
    assert ids[0] == 4 and (ids % 2 == 0).all() and (np.diff(cosines) <= 1e-6).all()
    users, _ = model.similar_users(5, N=6)
    assert users[0] == 5 and (users % 2 == 1).all()


def test_vectors_give_the_mean_margin(fitted):
    model, _, _ = fitted
    products = model.user_vectors() @ model.item_vectors().T
    np.testing.assert_allclose(products[7], model.margins(7, None, None).mean(axis=1), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(products, model.scores(model.users), rtol=1e-4, atol=1e-4)


def test_contributions_sum_to_the_preference_exactly(fitted):
    model, data, missing = fitted
    reason = model.explain(0, missing[0], 1)
    assert reason.contributions.sum() == model.preference(0, missing[0], 1) == reason.margin
    supporters = [item for item, _ in reason.supporters(3)]
    assert supporters and all(item in data[0].indices for item in supporters)


def test_bpr_has_no_cycles():
    data, _ = checkerboard()
    model = BPR(factors=6, iterations=30).fit(data)
    assert model.cycles(0) == [] and model.intransitivity(0) == 0 and cyclic_triads(model.tournament(0)).count == 0
    assert model.intransitivity() == 0 and (model.intransitivity(model.users) == 0).all()
    shown = recommend_groups(model.tournament(0), 5)
    assert all(len(group) == 1 for group in shown)


def test_the_cycle_of_the_game_is_found(game):
    cycles = game.cycles("ann")
    assert len(cycles) == 1
    assert set(cycles[0].members) == {"rock", "paper", "scissors"} and cycles[0].strength == 1
    path = list(cycles[0].path)
    for item, rival in zip(path, path[1:] + path[:1], strict=True):
        assert game.preference("ann", item, rival) > 0
    triads = cyclic_triads(game.tournament("ann"))
    assert triads.count == 1 and triads.total == 4
    assert 0 < game.intransitivity("ann") < 1
    assert set(item_counter_effects(game.state.parameters, 0).strongest(3)) <= {0, 1, 2, 3}


def test_groups_show_the_cycle_together_before_air(game):
    groups = recommend_groups(game.tournament("ann"), 4)
    assert [set(group.items) for group in groups] == [{"rock", "paper", "scissors"}, {"air"}]


def test_the_tournament_knows_its_winners(game):
    table = game.tournament("ann")
    assert table.condorcet_winner() is None and set(table.smith_set()) == {"rock", "paper", "scissors"}
    assert game.tournament("ann", items=["rock", "scissors", "air"]).condorcet_winner() == "rock"


def test_the_nash_average_mixes_the_cycle_evenly(game):
    lottery = game.rank("ann", method="nash", items=["air", "rock", "paper", "scissors"])
    shares = dict(zip(lottery.items, lottery.scores, strict=True))
    assert shares["air"] == pytest.approx(0, abs=1e-9)
    assert all(shares[name] == pytest.approx(1 / 3, abs=1e-6) for name in ("rock", "paper", "scissors"))


def test_one_item_and_unknown_ids():
    model = SAD.from_factors([[1.0]], [[1.0]], items=["only"])
    assert model.recommend(0)[0].tolist() == ["only"] and model.cycles(0) == []
    for ask in (
        lambda: model.recommend(9),
        lambda: model.preference(0, "only", "other"),
        lambda: model.similar_items("x"),
        lambda: model.cycles(9),
        lambda: model.rank(0, ["x"]),
        lambda: model.visitor(["x"]),
        lambda: model.recommend_for(["x"]),
    ):
        with pytest.raises(ValueError, match="unknown"):
            ask()
    with pytest.raises(ValueError, match="method must be one of"):
        model.rank(0, method="elo")


def test_what_one_was_seen_with_is_left_out_whatever_it_comes_in(game):
    for liked in (["rock"], {"rock"}, (item for item in ["rock"]), pl.Series(["rock"]), np.array(["rock"])):
        assert "rock" not in game.recommend_for(liked)[0]


def test_one_user_can_ask_for_any_number_without_memory_for_it(game):
    assert len(game.recommend("ann", N=10**15)[0]) == len(game.recommend(None, N=10**15)[0]) == 4
    assert len(game.recommend_for(["air"], N=10**15)[0]) == 3
    assert len(game.tournament("ann", N=10**15)) == 4


def test_the_matrix_given_stays_as_it_is(fitted):
    model, _, _ = fitted
    given = sp.csr_matrix((np.ones(3, np.float32), np.array([4, 0, 2]), np.array([0, 3])), shape=(1, 40))
    ids, _ = model.recommend(0, given, N=100)
    assert given.indices.tolist() == [4, 0, 2] and not set(ids) & {0, 2, 4}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.rank("ann", "rock"), "items must be a sequence of ids, not 'rock': put a single id into a list"),
        (lambda m: m.rank("ann", reference="rock"), "reference must be a sequence of ids, not 'rock'"),
        (lambda m: m.rank("ann", reference="liked"), "user 'ann' has no liked items to compare with"),
        (lambda m: m.rank("ann", method="liked"), "user 'ann' has no liked items to compare with"),
        (lambda m: m.rank("ann", method="wins", reference=["rock"]), "leave it out for 'wins'"),
        (lambda m: m.rank(["ann"]), r"user must be one id, not \['ann'\]"),
        (lambda m: m.cycles(["ann", "bob"]), r"user must be one id, not \['ann', 'bob'\]"),
        (lambda m: m.cycles("ann", items="rock"), "items must be a sequence of ids, not 'rock'"),
        (lambda m: m.cycles("ann", minimum="a lot"), "minimum must be a finite number, 0 or more, not 'a lot'"),
        (lambda m: m.margins("ann", "rock", ["air"]), "items must be a sequence of ids, not 'rock'"),
        (lambda m: m.margins("ann", None, "air"), "rivals must be a sequence of ids, not 'air'"),
        (lambda m: m.explain("ann", ["rock"], "air"), r"item must be one id, not \['rock'\]"),
        (lambda m: m.tournament(["ann"]), r"user must be one id, not \['ann'\]"),
        (lambda m: m.recommend("ann", method="wins", candidates=0), "candidates must be a whole number, at least 1"),
        (lambda m: m.tournament("ann", N="ten"), "N must be a whole number, at least 0, not 'ten'"),
        (
            lambda m: m.preference("ann", ["rock", "air"], ["rock", "air", "paper"]),
            r"shapes are \(\), \(2,\) and \(3,\)",
        ),
    ],
)
def test_what_is_wrong_is_named_in_terms_of_ids(game, ask, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ask(game)


@pytest.mark.parametrize(
    ("which", "ask"),
    [
        ("users", lambda m: m.recommend([0, 1], N=5)),
        ("users", lambda m: m.recommend(0, N=5, method="wins")),
        ("items", lambda m: m.recommend_for([1, 3], N=5)),
        ("items", lambda m: m.similar_items(3, N=5)),
        ("users", lambda m: [m.scores([0, 1])]),
        ("users", lambda m: [m.margins(0, [1, 2], None)]),
    ],
)
def test_an_answer_during_which_the_model_is_refitted_is_all_of_the_old_model(which, ask):
    model = SAD(factors=3, iterations=2).fit(checkerboard()[0])
    larger = SAD(factors=3, iterations=1).fit(np.eye(90))
    before = ask(model)

    class Refitting(Ids):
        def positions(self, ids):
            model.state = larger.state  # what another thread does when its fit begins
            return super().positions(ids)

    ids = getattr(model.state, which)
    model.state = replace(model.state, **{which: Refitting(ids.array, ids.what)})
    for one, two in zip(ask(model), before, strict=True):
        np.testing.assert_array_equal(one, two)
    assert len(model.users) == 90


def test_unknown_users_are_refused_get_what_is_popular_or_are_left_out():
    tastes, dishes = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]
    model = SAD.from_factors(tastes, dishes, users=["ann", "bob"], items=["a", "b", "c"])
    batch = ["ann", "zoe", "bob"]
    with pytest.raises(UnknownIdError, match="zoe"):
        model.recommend(batch, N=2)
    ids, scores = model.recommend(["ann", "bob"], N=2)
    known_ids, known_scores = model.recommend(batch, N=2, on_unknown="skip")
    assert known_ids.tolist() == ids.tolist() and known_scores.tolist() == scores.tolist()
    all_ids, all_scores = model.recommend(batch, N=2, on_unknown="popular")
    assert all_ids[[0, 2]].tolist() == ids.tolist()
    popular_ids, popular_scores = model.recommend(None, N=2)
    assert all_ids[1].tolist() == popular_ids.tolist()
    assert all_scores[1] == pytest.approx(popular_scores)
    assert model.recommend("zoe", N=2, on_unknown="popular")[0].tolist() == popular_ids.tolist()
    assert model.recommend("zoe", N=2, on_unknown="skip")[0].size == 0
    assert model.recommend(["zoe"], N=2, on_unknown="skip")[0].shape == (0, 2)
    with pytest.raises(ValueError, match="on_unknown must be"):
        model.recommend(batch, on_unknown="drop")


def test_what_a_user_of_the_batch_has_liked_follows_them_when_others_are_skipped():
    model = SAD.from_factors(np.eye(2), [[1, 0], [0, 1], [0.5, 0.5]], users=["ann", "bob"], items=["a", "b", "c"])
    liked = sp.csr_matrix([[1, 0, 0], [1, 0, 1], [0, 1, 0]])
    ids, _ = model.recommend(["ann", "zoe", "bob"], liked, N=1, on_unknown="skip")
    assert ids.tolist() == model.recommend(["ann", "bob"], liked[[0, 2]], N=1)[0].tolist() == [["c"], ["c"]]


def test_a_number_in_the_place_of_user_items_is_taken_for_n():
    model = SAD.from_factors(np.eye(2), np.eye(3, 2))
    with pytest.raises(TypeError, match=r"did you mean N=10\?"):
        model.recommend(0, 10)


@pytest.mark.parametrize("item", ["a", ["a", "c"]])
def test_items_are_left_out_of_the_similar_ones(item):
    model = SAD.from_factors(np.eye(2), [[1.0, 0.0], [0.9, 0.1], [0.8, 0.3], [0.0, 1.0]], items=["a", "b", "c", "d"])
    every, cosines = (np.atleast_2d(side) for side in model.similar_items(item, N=4))
    ids, left = (np.atleast_2d(side) for side in model.similar_items(item, N=2, filter_items=["b"]))
    for row in range(len(ids)):
        keep = every[row] != "b"
        assert ids[row].tolist() == every[row][keep][:2].tolist()
        assert left[row].tolist() == cosines[row][keep][:2].tolist()


def test_matrices_with_factors_in_their_rows_are_to_be_transposed():
    with pytest.raises(ValueError, match="transpose matrices"):
        SAD.from_factors(np.ones((2, 5)), np.ones((2, 7)))
