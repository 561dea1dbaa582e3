"""GibbsSAD: settings, data of all kinds, and what comes back."""

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from sadrec import SAD, Comparisons, Interactions
from sadrec.models import NotFittedError
from sadrec.posterior import GibbsSAD
from sadrec.ranking.intransitivity import intransitivity


def quick(**changes):
    return GibbsSAD(**{"factors": 2, "draws": 40, "warmup": 20, "chains": 2, **changes})


def test_preferences_are_antisymmetric_in_every_draw(posterior):
    one, other = posterior.preference_draws("up", "a", "b"), posterior.preference_draws("up", "b", "a")
    assert one.shape == (800,)
    np.testing.assert_allclose(one, -other)


def test_users_prefer_what_they_stated(posterior):
    assert posterior.probability_beats("up", "a", "e") > 0.95
    assert posterior.probability_beats("down", "a", "e") < 0.05
    assert posterior.preference("up", "a", "e") > 0 > posterior.preference("down", "a", "e")


def test_preferences_broadcast(posterior):
    x = posterior.preference_draws(["up", "down"], "a", ["b", "c"])
    assert x.shape == (800, 2)
    np.testing.assert_array_equal(x[:, 1], posterior.preference_draws("down", "a", "c"))
    assert posterior.preference(["up", "down"], "a", "b").shape == (2,)


def test_a_preference_is_the_mean_of_the_draws_and_its_deviation_theirs(posterior):
    pairs = ["up", "down"], "a", ["b", "c"]
    x = posterior.preference_draws(*pairs)
    np.testing.assert_allclose(posterior.preference(*pairs), x.mean(axis=0))
    np.testing.assert_allclose(posterior.deviation(*pairs), x.std(axis=0))
    assert isinstance(posterior.preference("up", "a", "b"), float)


def test_probability_is_the_mean_of_phi_of_the_preference(posterior):
    draws = posterior.preference_draws("up", "a", "b")
    assert posterior.probability("up", "a", "b") == pytest.approx(ndtr(draws / 1.702).mean(), rel=1e-9)


def test_an_interval_holds_its_share_of_the_draws(posterior):
    draws = posterior.preference_draws("round", "a", "d")
    low, high = posterior.interval("round", "a", "d", 0.8)
    assert ((draws > low) & (draws < high)).mean() == pytest.approx(0.8, abs=0.01)


def test_without_a_user_the_answer_is_the_mean_over_users(posterior):
    everybody = np.mean([posterior.preference_draws(user, "a", "b") for user in ("up", "down", "round")], axis=0)
    np.testing.assert_allclose(posterior.preference_draws(None, "a", "b"), everybody, atol=1e-6)
    assert posterior.preference(None, "a", "b") == pytest.approx(everybody.mean())


def test_the_ranking_is_complete_and_ordered(posterior):
    table = posterior.leaderboard("up")
    assert sorted(table["item"]) == list("abcde")
    assert table["item"].to_list()[0] == "a"
    assert table["strength"].is_sorted(descending=True)
    assert (table["lower"] <= table["strength"]).all()
    assert table["best"].sum() == pytest.approx(1)
    assert table["strength"].sum() == pytest.approx(0, abs=1e-6)
    assert posterior.leaderboard("up", items=["e", "b"])["item"].to_list() == ["b", "e"]


def test_recommendations_follow_the_posterior_mean_or_one_draw(posterior):
    ids, scores = posterior.recommend("up", N=3)
    assert ids.tolist()[0] == "a"
    assert (np.diff(scores) <= 0).all()
    firsts = {posterior.draw_model(draw).recommend("round", N=1)[0][0] for draw in range(0, 800, 20)}
    assert len(firsts) > 1
    assert posterior.recommend("up", N=9, items=["a", "b"])[0].tolist() == ["a", "b"]
    assert sorted(posterior.recommend("up", N=9, filter_items=["a"])[0]) == list("bcde")


def test_the_next_question_is_one_whose_answer_is_open(answers):
    # Nothing is known of item e, everything of a and b: asking about e tells more.
    rows = [(0, 0, 1)] * 40 + [(0, 2, 3)]
    comparisons = Comparisons.from_indices(*np.array(rows).T, users=["u"], items=list("abcde"))
    result = quick(draws=400, warmup=100).fit(comparisons, show_progress=False)
    table = result.ask_next("u", N=10)
    assert table["bits"].is_sorted(descending=True)
    assert table["bits"].max() < 1
    pairs = list(zip(table["item"], table["rival"], strict=True))
    assert pairs[-1] == ("a", "b")


def test_the_information_of_a_question_is_what_its_answer_tells_on_average(posterior):
    # p(answer, draw) as a table: the information is the mean of log2 p(answer, draw) / (p(answer) p(draw)).
    table = posterior.ask_next("round", N=10)
    for row in table.iter_rows(named=True):
        p = ndtr(posterior.preference_draws("round", row["item"], row["rival"]) / 1.702)
        answers = np.stack((p, 1 - p))
        ratio = answers / answers.mean(axis=1, keepdims=True)
        assert row["bits"] == pytest.approx((answers * np.log2(np.maximum(ratio, 1e-300))).sum(axis=0).mean(), abs=1e-9)
        assert row["probability"] == pytest.approx(p.mean())


def test_the_mean_model_has_the_mean_preferences_in_log_odds(posterior):
    model = posterior.mean_model()
    assert isinstance(model, SAD)
    one, other = np.triu_indices(5, 1)
    ids = np.array(list("abcde"))
    for user in ("up", "down", "round"):
        wanted = posterior.preference(user, ids[one], ids[other])
        result = model.preference(user, ids[one], ids[other])
        assert np.corrcoef(wanted, result)[0, 1] > 0.9
        assert np.abs(wanted - result).mean() < 0.3 * np.abs(wanted).mean()


def test_a_mean_that_no_model_comes_close_to_is_reported(caplog):
    # Four answers about six items: draws have little in common.
    comparisons = Comparisons.from_indices(
        [0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 4, 5], users=list("uvwx"), items=list("abcdef")
    )
    result = quick(draws=60, warmup=30, factors=1, bias=False).fit(comparisons, show_progress=False)
    with caplog.at_level("WARNING", "sadrec"):
        result.mean_model()
    assert "ask the posterior itself" in caplog.text


def test_a_draw_is_a_model(posterior):
    model = posterior.draw_model(5)
    assert model.preference("up", "a", "b") == pytest.approx(posterior.preference_draws("up", "a", "b")[5], rel=1e-5)


def test_a_fixed_tau_is_bpr(answers):
    result = quick(rival_scale=0.0, draws=200, warmup=200).fit(answers, show_progress=False)
    assert (result.drawn.rival == 1).all()
    cycle = result.preference_draws("round", list("abc"), list("bca"))
    np.testing.assert_allclose(cycle.sum(axis=1), 0, atol=1e-5)
    assert result.intransitivity("round") < 1e-6
    assert max(intransitivity(one, 2) for one in result.drawn) < 1e-6


def test_learnt_scales_vary_and_given_ones_do_not(answers):
    result = quick(item_scale=1.0, rival_scale=0.5).fit(answers, show_progress=False)
    assert result.drawn.scales[..., 0].std() > 0
    assert (result.drawn.scales[..., 1:3] == (1, 0.5)).all()


def test_scores_alone_are_a_bias(answers):
    result = quick(user_scale=1e-6, user_mean=0.0, draws=100, warmup=100).fit(answers, show_progress=False)
    bias = result.drawn.bias.reshape(-1, 5)
    np.testing.assert_allclose(result.preference_draws("up", "a", "b"), 1.702 * (bias[:, 0] - bias[:, 1]), atol=2e-4)
    assert result.drawn.scales.shape == (2, 100, 4)
    plain = quick(bias=False).fit(answers, show_progress=False).drawn
    assert plain.bias is None
    assert plain.item.shape[3] == plain.rival.shape[3]
    assert plain.scales.shape[2] == 3


def test_those_who_meet_more_are_expected_to_be_better():
    # Ten items meet everybody and are better than thirty that meet only two of the ten; the last was never met.
    rng = np.random.default_rng(0)
    often = np.array([(i, j) for i in range(10) for j in range(10) if i < j])
    seldom = np.array([(rng.integers(10), j) for j in range(10, 40) for _ in range(2)])
    pairs = np.concatenate((often, seldom))
    lost = rng.random(len(pairs)) < np.append(np.full(len(often), 0.5), np.full(len(seldom), 0.1))
    pairs[lost] = pairs[lost, ::-1]
    comparisons = Comparisons.from_indices(np.zeros(len(pairs), int), *pairs.T, users=["u"], items=range(41))
    few = {"draws": 300, "warmup": 200, "factors": 1}
    assert quick(**few).fit(comparisons, show_progress=False).probability("u", 0, 40) > 0.8
    assert quick(**few, bias=False).fit(comparisons, show_progress=False).probability("u", 0, 40) < 0.8


def test_interactions_are_preferred_to_untouched_items():
    # Two groups, each with its own half of the items.
    frame = pl.DataFrame([{"user": u, "item": i} for u in range(8) for i in range(12) if i % 2 == u % 2 and i != u])
    data = Interactions.from_frame(frame)
    result = quick(negatives=4, draws=150, warmup=150).fit(data, show_progress=False)
    matrix = data.matrix.toarray() > 0
    assert len(result.state.belief.observed.user) == 4 * data.matrix.nnz
    assert matrix[result.state.belief.observed.user, result.state.belief.observed.winner].all()
    assert not matrix[result.state.belief.observed.user, result.state.belief.observed.loser].any()
    ids, _ = result.recommend(2, N=1)
    assert ids.tolist() == [2]
    assert len(result.recommend(2, N=50)[0]) == 12 - matrix[2].sum()


def test_untouched_items_are_drawn_uniformly():
    data = Interactions.from_frame(pl.DataFrame({"user": [0, 0, 1], "item": [1, 3, 5]}))
    result = quick(negatives=3000, draws=1, warmup=0, chains=1).fit(data, show_progress=False)
    losers = result.state.belief.observed.loser[result.state.belief.observed.user == 0]
    assert np.bincount(losers, minlength=3).tolist() == [0, 0, 6000]
    wide = Interactions.from_frame(pl.DataFrame({"user": [0, 0, *range(1, 9)], "item": [2, 5, *range(8)]}))
    result = quick(negatives=3000, draws=1, warmup=0, chains=1).fit(wide, show_progress=False)
    counts = np.bincount(result.state.belief.observed.loser[result.state.belief.observed.user == 0], minlength=8)
    assert counts[[2, 5]].sum() == 0
    assert np.abs(counts[[0, 1, 3, 4, 6, 7]] - 1000).max() < 150


def test_a_whole_weight_is_that_many_copies():
    one = Comparisons.from_indices([0, 0], [0, 1], [1, 2], users=["u"], items=list("abc"), weight=[3.0, 1.0])
    many = Comparisons.from_indices([0] * 4, [0, 1, 0, 0], [1, 2, 1, 1], users=["u"], items=list("abc"))
    fits = [quick().fit(data, show_progress=False).drawn.user for data in (one, many)]
    np.testing.assert_array_equal(*fits)


def test_a_tie_in_halves_pulls_towards_indifference():
    frame = pl.DataFrame(
        {"user": ["u"] * 60, "left": ["a"] * 60, "right": ["b"] * 60, "winner": [None] * 58 + ["a", "b"]}
    )
    comparisons = Comparisons.from_frame(frame, ties="split")
    result = quick(draws=400, warmup=100).fit(comparisons, show_progress=False)
    assert abs(result.preference("u", "a", "b")) < 1.702 * 0.2
    low, high = result.interval("u", "a", "b")
    assert low < 0 < high < 1.702 * 0.6


def test_two_halves_are_one_comparison():
    ids = {"users": ["u"], "items": list("abc")}
    one = Comparisons.from_indices([0, 0], [0, 1], [1, 2], weight=[1.0, 2.5], **ids)
    halves = Comparisons.from_indices([0] * 4, [0, 1, 0, 1], [1, 2, 1, 2], weight=[0.5, 2.0, 0.5, 0.5], **ids)
    models = [GibbsSAD(2, warmup=5, draws=5).fit(data, show_progress=False) for data in (one, halves)]
    assert models[0].preference("u", "a", "b") == models[1].preference("u", "a", "b")


def test_negatives_are_refused_for_comparisons(answers):
    with pytest.raises(ValueError, match="negatives=2 is for interactions: leave it out for comparisons"):
        quick(negatives=2).fit(answers, show_progress=False)


def test_weights_without_meaning_are_refused():
    comparisons = Comparisons.from_indices([0], [0], [1], users=["u"], items=list("ab"), weight=[1e12])
    with pytest.raises(ValueError, match="divide all weights"):
        quick().fit(comparisons, show_progress=False)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("factors", value) for value in (0, 2.5)),
        *((name, 0) for name in ("draws", "chains", "thin", "negatives")),
        *((name, -1) for name in ("warmup", "random_state", "num_threads", "item_scale")),
        *(("user_scale", value) for value in (0.0, "big")),
        ("rival_scale", float("nan")),
        ("rival_mean", -0.5),
        ("user_mean", float("inf")),
    ],
)
def test_settings_out_of_range_are_named(answers, setting, value):
    with pytest.raises(ValueError, match=setting):
        quick(**{setting: value}).fit(answers, show_progress=False)


def test_questions_before_fit_say_what_to_do():
    empty = GibbsSAD()
    for ask in (lambda: empty.preference("u", "a", "b"), lambda: empty.mean_model(), lambda: empty.users):
        with pytest.raises(NotFittedError, match="call fit"):
            ask()
    assert "not fitted" in repr(empty)


def test_unknown_ids_and_odd_questions_are_refused(posterior):
    with pytest.raises(ValueError, match="unknown item"):
        posterior.preference("up", "a", "zebra")
    with pytest.raises(ValueError, match="level"):
        posterior.interval("up", "a", "b", 90)
    with pytest.raises(ValueError, match="N must"):
        posterior.recommend("up", N=-1)
    with pytest.raises(ValueError, match="2 to 2000 items, not 1"):
        posterior.ask_next("up", items=["a"])
    for draw in (800, 1.5):
        with pytest.raises(ValueError, match="draw must"):
            posterior.draw_model(draw)


@pytest.mark.parametrize(
    ("message", "ask"),
    [
        ("N must", lambda p: p.ask_next("up", N=-1)),
        ("N must", lambda p: p.credible_cycles("up", N=-1)),
        ("least must", lambda p: p.credible_cycles("up", least=50)),
        ("level must", lambda p: p.predictive_check(level=90)),
        ("number must", lambda p: p.predictive_check(number=0)),
        ("number must", lambda p: p.diagnose(0)),
        ("one id", lambda p: p.ask_next(["up", "down"])),
        ("draws are of all the data", lambda p: p.partial_fit([[1]])),
        ("SAD.from_factors", lambda p: p.from_factors([[1.0]], [[1.0]])),
    ],
)
def test_numbers_and_lists_that_make_no_sense_are_named(posterior, message, ask):
    with pytest.raises((ValueError, TypeError), match=message):
        ask(posterior)


def test_a_generator_or_none_as_random_state_makes_a_seed(answers):
    first = quick(random_state=np.random.default_rng(1)).fit(answers, show_progress=False)
    second = quick(random_state=np.random.default_rng(1)).fit(answers, show_progress=False)
    np.testing.assert_array_equal(first.drawn.user, second.drawn.user)
    third = quick(random_state=None).fit(answers, show_progress=False)
    assert not np.array_equal(first.drawn.user, third.drawn.user)


def test_a_weight_of_k_is_k_rows_in_any_order():
    rng = np.random.default_rng(0)
    users, winner, step = rng.integers((0, 0, 1), (3, 8, 8), size=(300, 3)).T
    rows = np.stack([users, winner, (winner + step) % 8])
    triples, times = np.unique(rows, axis=1, return_counts=True)
    order = rng.permutation(triples.shape[1])
    ids = {"users": np.arange(3), "items": np.arange(8)}
    one, other = (
        GibbsSAD(factors=2, draws=5, warmup=5, chains=1).fit(data, show_progress=False)
        for data in (
            Comparisons.from_indices(*rows, **ids),
            Comparisons.from_indices(*triples[:, order], weight=times[order], **ids),
        )
    )
    np.testing.assert_array_equal(one.preference_draws(0, 1, 2), other.preference_draws(0, 1, 2))
