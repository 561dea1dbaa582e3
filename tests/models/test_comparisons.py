"""SAD() and BPR() on comparisons with default settings: what is learnt, how sure it is, and files."""

import numpy as np
import pytest

from sadrec import BPR, SAD, Comparisons
from sadrec.evaluation import evaluate_comparisons
from sadrec.models import ModelFileError, settings_for
from sadrec.training.variational.solver import OWN
from tests.rewriting import rewrite, with_array


def comparisons(users, winner, loser, n=None, m=None):
    n, m = n or max(users) + 1, m or max(*winner, *loser) + 1
    return Comparisons.from_indices(
        np.asarray(users), np.asarray(winner), np.asarray(loser), users=np.arange(n), items=np.arange(m)
    )


def tournament(seed=0, items=20, count=3000, judges=1):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=items)
    i, j = rng.integers(0, items, count), rng.integers(0, items, count)
    i, j = i[i != j], j[i != j]
    won = rng.random(len(i)) < 1 / (1 + np.exp(scores[j] - scores[i]))
    return rng.integers(0, judges, len(i)), np.where(won, i, j), np.where(won, j, i)


def test_bpr_with_one_judge_is_bradley_terry():
    choix = pytest.importorskip("choix")
    _, winner, loser = tournament(count=20_000)
    model = BPR().fit(comparisons(np.zeros_like(winner), winner, loser), show_progress=False)
    theirs = choix.opt_pairwise(20, list(zip(winner.tolist(), loser.tolist(), strict=True)), alpha=0.5)
    ours = model.scores([0])[0]
    assert model.settings.solver == "variational"
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=0.05)


def test_unknown_items_are_even_and_a_judge_without_data_is_an_average_one():
    judges, winner, loser = tournament(judges=5)
    model = SAD().fit(comparisons(judges, winner, loser, n=7, m=23), show_progress=False)
    assert model.preference(0, 21, 22) == 0 and model.probability(0, 21, 22) == 0.5
    np.testing.assert_array_equal(model.user_factors[6], model.state.parameters.user_mean)
    order = np.argsort(-model.scores([6])[0][:20])
    wins = np.bincount(winner, minlength=20) / np.maximum(np.bincount(loser, minlength=20), 1)
    assert np.corrcoef(np.argsort(order), np.argsort(np.argsort(-wins)))[0, 1] > 0.9
    likes_best = model.recommend(None, N=1)[0][0]
    assert likes_best in order[:3]


def test_less_is_known_of_less_data():
    judges, winner, loser = tournament()
    few = SAD().fit(comparisons(judges[:150], winner[:150], loser[:150], m=20), show_progress=False)
    many = SAD().fit(comparisons(judges, winner, loser, m=20), show_progress=False)
    pairs = np.array([(i, j) for i in range(20) for j in range(i)]).T
    assert many.deviation(0, *pairs).mean() < 0.6 * few.deviation(0, *pairs).mean()
    p, x = few.probability(0, *pairs), few.preference(0, *pairs)
    assert (np.abs(p - 0.5) <= np.abs(1 / (1 + np.exp(-x)) - 0.5) + 1e-3).mean() > 0.95  # nearer to one half


def test_a_visitor_starts_from_the_average_user():
    judges, winner, loser = tournament(judges=30, count=6000)
    model = SAD(factors=4).fit(comparisons(judges, winner, loser), show_progress=False)
    one = comparisons([0], [winner[0]], [loser[0]], m=20)
    np.testing.assert_allclose(
        model.visitor(comparisons=one).user_factors[0], model.state.parameters.user_mean, atol=0.75
    )
    assert not np.allclose(model.state.parameters.user_mean, 0) or not model.user_factors.any()


def test_no_other_setting_chooses_the_solver_and_one_of_sgd_is_refused():
    data = comparisons(*tournament())
    learnt = settings_for(SAD(), data)
    assert learnt.solver == "variational" and learnt.origins["solver"] == "data"
    for name in ("regularization", "schedule", "negative_candidates", "negatives", "user_balance"):
        assert learnt.origins[name] == "not used", name
    given = {
        "regularization": 0.0,
        "learning_rate": 0.1,
        "blocks": 8,
        "adaptive": True,
        "init_scale": 0.1,
        "bias": False,
    }
    for name, value in given.items():
        refusal = f"{name}={value!r} is for solver='sgd': "
        with pytest.raises(ValueError, match=f"{refusal}comparisons are learnt by solver='variational' unless you set"):
            settings_for(SAD().set_params(**{name: value}), data)
        with pytest.raises(ValueError, match=f"{refusal}leave it out with solver='variational'"):
            settings_for(SAD(solver="variational").set_params(**{name: value}), data)
        chosen = settings_for(SAD(solver="sgd").set_params(**{name: value}), data)
        assert chosen.origins[name] == "given", name
    for name, value in {"negative_candidates": 4, "order_share": 0.5, "loss": "softmax", "user_balance": 0.5}.items():
        with pytest.raises(ValueError, match=f"{name}={value!r} is for interactions: leave it out for comparisons"):
            settings_for(SAD(solver="sgd").set_params(**{name: value}), data)
    assert settings_for(SAD(solver="sgd"), data).factors == 64
    with pytest.raises(ValueError, match="comparisons alone"):
        settings_for(SAD(solver="variational"), np.eye(4))
    with pytest.raises(ValueError, match="cannot continue"):
        SAD(solver="variational").fit(data, warm_start=SAD(iterations=2).fit(data))


def test_a_variational_fit_can_be_continued_by_sgd():
    judges, winner, loser = tournament(judges=3)
    model = SAD(iterations=30).fit(comparisons(judges, winner, loser), show_progress=False)
    factors = model.state.parameters.n_factors
    model.partial_fit(comparisons(judges[:50], winner[:50], loser[:50], n=3, m=20), show_progress=False)
    assert model.settings.solver == "sgd" and model.state.parameters.n_factors == factors


def test_validation_figures_patience_and_callbacks():
    judges, winner, loser = tournament()
    data = comparisons(judges[:2000], winner[:2000], loser[:2000], m=20)
    held_out = comparisons(judges[2000:], winner[2000:], loser[2000:], m=20)
    seen = []
    model = SAD(iterations=40).fit(
        data, show_progress=False, validation=held_out, patience=3, callbacks=[lambda e, f, m: seen.append(e)]
    )
    assert seen == list(range(1, len(model.state.history) + 1))
    last = model.state.history[-1]["validation_log_likelihood"]
    assert -last == pytest.approx(evaluate_comparisons(model, held_out)["log_loss"], rel=1e-6)
    with pytest.raises(ValueError, match="patience"):
        SAD().fit(data, show_progress=False, patience=2)


def test_a_fit_comes_back_from_a_file_with_its_uncertainty(tmp_path):
    judges, winner, loser = tournament(judges=4)
    model = SAD().fit(comparisons(judges, winner, loser), show_progress=False)
    model.save(tmp_path / "m.sad")
    for options in ({}, {"mmap": True}):
        again = SAD.load(tmp_path / "m.sad", **options)
        assert (again.probability(judges, winner, loser) == model.probability(judges, winner, loser)).all()
        assert again.settings == model.settings and again.settings.origins == model.settings.origins


def test_a_file_whose_uncertainty_does_not_fit_is_refused(tmp_path):
    model = SAD().fit(comparisons(*tournament()), show_progress=False)
    model.save(tmp_path / "m.sad")
    for name in ("user_covariance", "item_covariance", "pairing_mean", "population"):
        with_array(tmp_path / "m.sad", name, lambda array: array[:0], tmp_path / "bad.sad")
        with pytest.raises(ModelFileError, match=name):
            SAD.load(tmp_path / "bad.sad")
    for name in ("own", "own_mean", "own_variance"):
        rewrite(tmp_path / "m.sad", lambda arrays, header, name=name: arrays.pop(name), tmp_path / "bad.sad")
        with pytest.raises(ModelFileError, match=f"'{name}'"):
            SAD.load(tmp_path / "bad.sad", mmap=True)


@pytest.mark.parametrize("place", [-(10**9), 10**15])
@pytest.mark.parametrize("mmap", [False, True])
def test_pairings_of_items_that_a_file_does_not_have_are_refused(tmp_path, place, mmap):
    """They made an array of their size at the first question: terabytes."""
    SAD().fit(comparisons(*tournament()), show_progress=False).save(tmp_path / "m.sad")
    with_array(tmp_path / "m.sad", "pairings", lambda one: np.sort(np.append(one[1:], place)), tmp_path / "bad.sad")
    with pytest.raises(ModelFileError, match="the pairings are out of order, or of items that it does not have"):
        SAD.load(tmp_path / "bad.sad", mmap=mmap)


def test_interrupted_and_resumed_it_ends_with_the_same_bits(tmp_path):
    data = comparisons(*tournament(judges=3))
    whole = SAD().fit(data, show_progress=False)

    def stop(epoch, figures, model):
        if epoch == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SAD().fit(data, show_progress=False, checkpoint=tmp_path, callbacks=[stop])
    resumed = SAD().fit(data, show_progress=False, checkpoint=tmp_path)
    assert (resumed.item_factors == whole.item_factors).all() and len(resumed.state.history) == len(whole.state.history)


@pytest.mark.parametrize("length", [3, 5, 9])
def test_a_ring_stated_often_survives_being_weighed(length):
    winner = np.repeat(np.arange(length), 200)
    data = comparisons(np.zeros(len(winner), int), winner, (winner + 1) % length)
    for seed in range(3):
        model = SAD(random_state=seed).fit(data, show_progress=False)
        item = np.arange(length)
        assert model.probability(0, item, (item + 1) % length).min() > 0.7


def test_coin_flips_about_items_that_nobody_knows_stay_coin_flips():
    rng = np.random.default_rng(0)
    winner, step = rng.integers(800, size=1200), rng.integers(1, 800, size=1200)
    model = SAD().fit(comparisons(np.zeros(1200, int), winner, (winner + step) % 800, m=800), show_progress=False)
    first, step = rng.integers(800, size=3000), rng.integers(1, 800, size=3000)
    assert np.log(model.probability(0, first, (first + step) % 800)).mean() > -0.70


def series(seed=0):
    """Series between 100 players: who wins one is mostly about these two."""
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(100 * 99 // 2)
    first, second = (side[mixed] for side in np.triu_indices(100, 1))
    score, own = 0.7 * rng.standard_normal(100), 1.5 * rng.standard_normal(400)
    played = np.repeat(np.arange(400), np.minimum(rng.geometric(0.25, size=400), 30))
    wins = rng.random(len(played)) < 1 / (1 + np.exp(score[second[played]] - score[first[played]] - own[played]))
    winner, loser = (np.where(won, first[played], second[played]) for won in (wins, ~wins))
    return comparisons(np.zeros(len(played), int), winner, loser, m=100), (first[400:900], second[400:900])


def test_what_is_about_two_items_alone_does_not_carry_over_to_others(tmp_path):
    played, (first, second) = series()
    model = SAD().fit(played, show_progress=False)
    met = model.deviation(0, played.winner_index, played.loser_index)
    assert model.deviation(0, first, second).min() > np.median(met)
    probability = model.probability(0, played.winner_index, played.loser_index)
    assert np.log(probability).mean() > -0.55
    model.save(tmp_path / "m.sad")
    again = SAD.load(tmp_path / "m.sad")
    assert (again.probability(0, first, second) == model.probability(0, first, second)).all()


# -- a weight is a count ----------------------------------------------------------------------------------------------


def counted(judges, winner, loser, seed, scale=1.0):
    """The same comparisons, each different one once, with a weight, in another order."""
    triples, times = np.unique(np.stack([judges, winner, loser]), axis=1, return_counts=True)
    mixed = np.random.default_rng(seed).permutation(triples.shape[1])
    judges, winner, loser = triples[:, mixed]
    ids = {"users": np.arange(judges.max() + 1), "items": np.arange(20)}
    return Comparisons.from_indices(judges, winner, loser, weight=scale * times[mixed], **ids)


@pytest.mark.parametrize("kind", [SAD, BPR])
@pytest.mark.parametrize("judges", [1, 3])
def test_a_weight_of_k_is_k_rows(kind, judges):
    rows = tournament(judges=judges)
    one = kind().fit(comparisons(*rows, m=20), show_progress=False)
    other = kind().fit(counted(*rows, seed=judges), show_progress=False)
    np.testing.assert_array_equal(one.item_bias, other.item_bias)
    pairs = rows[0], rows[1], (rows[1] + 1) % 20
    np.testing.assert_array_equal(one.deviation(*pairs), other.deviation(*pairs))
    assert one.deviation(*pairs)[pairs[1] != pairs[2]].min() > 0.01


@pytest.mark.parametrize("judges", [1, 3])
def test_half_the_weight_of_twice_the_rows_is_the_same(judges):
    rows = tournament(judges=judges)
    twice = [np.concatenate([side, side]) for side in rows]
    one = SAD().fit(comparisons(*rows, m=20), show_progress=False)
    half = SAD().fit(counted(*twice, seed=0, scale=0.5), show_progress=False)
    np.testing.assert_allclose(one.item_bias, half.item_bias, atol=1e-6)


def test_a_weight_of_k_is_k_rows_for_sgd_in_expectation():
    rows = tournament(count=2000)
    settings = {"solver": "sgd", "factors": 2, "bias": True, "iterations": 40}
    pairs = np.zeros(190, int), *np.triu_indices(20, 1)
    fits = [
        np.mean(
            [SAD(**settings, random_state=seed).fit(data, show_progress=False).preference(*pairs) for seed in range(4)],
            0,
        )
        for data in (comparisons(*rows, m=20), counted(*rows, seed=1), counted(*rows, seed=2, scale=1.0))
    ]
    assert np.abs(fits[1] - fits[0]).mean() < 0.05 * np.abs(fits[0]).mean()
    assert np.corrcoef(fits[0], fits[1])[0, 1] > 0.999


def test_heavy_weights_do_not_make_heavy_steps():
    judges, winner, loser = tournament(count=300)
    data = counted(judges, winner, loser, seed=0, scale=50.0)
    model = SAD(solver="sgd", factors=2, iterations=5).fit(data, show_progress=False)
    assert np.abs(model.preference(0, 0, np.arange(1, 20))).max() < 30


# -- what nobody has seen ---------------------------------------------------------------------------------------------


def every_pair(items):
    return np.triu_indices(items, 1)


def world(seed, items, count, cycles):
    """Margins of all pairs, and comparisons of half of them."""
    rng = np.random.default_rng(seed)
    scores, (a, b) = rng.standard_normal(items), rng.standard_normal((2, items))
    x = scores[:, None] - scores + cycles * (np.outer(a, b) - np.outer(b, a))
    pairs = rng.permutation(np.stack(every_pair(items)), axis=1)[:, : items * (items - 1) // 4]
    first, second = pairs[:, rng.integers(pairs.shape[1], size=count)]
    won = rng.random(count) < 1 / (1 + np.exp(-x[first, second]))
    return x, np.where(won, first, second), np.where(won, second, first)


@pytest.mark.parametrize("cycles", [0.0, 0.5])
def test_intervals_of_pairs_that_met_and_of_others_cover_the_truth(cycles):
    inside, met = [], []
    for seed, (items, count) in enumerate([(40, 600), (60, 2000), (40, 2000), (60, 6000), (40, 6000), (60, 600)] * 2):
        x, winner, loser = world(seed, items, count, cycles)
        model = SAD().fit(comparisons(np.zeros(count, int), winner, loser, m=items), show_progress=False)
        pairs = every_pair(items)
        mean, deviation = model.preference(0, *pairs), model.deviation(0, *pairs)
        inside.append(np.abs(x[pairs] - mean) <= 1.645 * deviation)
        seen = np.zeros((items, items), bool)
        seen[winner, loser] = seen[loser, winner] = True
        met.append(seen[pairs])
    inside, met = np.concatenate(inside), np.concatenate(met)
    assert 0.86 <= inside[met].mean() <= 0.94
    assert 0.86 <= inside[~met].mean() <= 0.94


def check_pairs_agree(model, data):
    """Preference, probability and deviation of a pair say the same, and what nobody has seen is less certain."""
    items = np.unique(np.concatenate([data.winner_index, data.loser_index]))[:80]
    first, second = (items[side] for side in every_pair(len(items)))
    user = np.bincount(data.user_index).argmax()
    ids, judge = data.items, data.users[user]
    x, p, sd = (verb(judge, ids[first], ids[second]) for verb in (model.preference, model.probability, model.deviation))
    assert sd.min() > 0
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-x / np.sqrt(1 + np.pi * sd**2 / 8))), atol=1e-6)
    np.testing.assert_allclose(
        model.margins(judge, ids[items[:5]], ids[items[5:9]]).ravel()[0],
        model.preference(judge, ids[items[0]], ids[items[5]]),
        atol=1e-4,
    )
    game = model.tournament(judge, ids[items])
    np.testing.assert_allclose(game.margins[every_pair(len(items))], x, atol=1e-5)
    met = np.isin(np.minimum(first, second) * len(ids) + np.maximum(first, second), data.pairings())
    times = np.bincount(np.searchsorted(np.unique(data.pairings()), data.pairings()))
    often = np.isin(
        np.minimum(first, second) * len(ids) + np.maximum(first, second),
        np.unique(data.pairings())[times >= max(np.quantile(times, 0.75), 4)],
    )
    if often.any() and (~met).any():
        assert sd[~met].mean() > sd[often].mean()


def test_exchanging_item_and_rival_changes_the_sign_and_nothing_else():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((4, 15))
    judges, winner, step = rng.integers((0, 0, 1), (4, 15, 15), size=(3000, 3)).T
    loser = (winner + step) % 15
    won = rng.random(3000) < 1 / (1 + np.exp(scores[judges, loser] - scores[judges, winner]))
    data = comparisons(judges, np.where(won, winner, loser), np.where(won, loser, winner))
    model = SAD().fit(data, show_progress=False)
    assert model.state.belief.own_scale > 0
    for judge in range(4):
        margins = model.tournament(judge).margins
        np.testing.assert_array_equal(margins, -margins.T)


def test_preference_probability_and_deviation_agree():
    played, _ = series()
    check_pairs_agree(SAD().fit(played, show_progress=False), played)


@pytest.mark.data
@pytest.mark.parametrize("name", ["ptcg-2026", "corewar", "nfl-season", "gambles-2012", "bc-tennis", "llmfao"])
def test_what_nobody_has_seen_is_less_certain_on_real_data(data_folder, name):
    path = next(data_folder.glob(f"**/{name}/comparisons.parquet"))
    data = Comparisons.read(path, ties="drop", show_progress=False)
    check_pairs_agree(SAD().fit(data, show_progress=False), data)


# -- few comparisons --------------------------------------------------------------------------------------------------


def test_log_odds_of_few_comparisons_can_be_read():
    one = SAD().fit(comparisons([0], [0], [1]), show_progress=False)
    assert 0.3 < one.preference(0, 0, 1) < 2 and 0.5 < one.deviation(0, 0, 1) < 2.5
    undefeated = SAD().fit(comparisons([0] * 30, [0] * 30, list(range(1, 31))), show_progress=False)
    assert 2 < undefeated.preference(0, 0, 5) < 8 and undefeated.deviation(0, 0, 5) < 4
    rematch = SAD().fit(comparisons([0] * 30, [0] * 30, [1] * 30), show_progress=False)
    assert 3 < rematch.preference(0, 0, 1) < 9


@pytest.mark.parametrize("length", [3, 5, 9])
@pytest.mark.parametrize("times", [1, 8])
def test_a_ring_that_was_stated_is_found(length, times):
    winner = np.repeat(np.arange(length), times)
    model = SAD().fit(comparisons(0 * winner, winner, (winner + 1) % length), show_progress=False)
    (ring,) = model.cycles(0)
    assert len(ring) == length and 0.1 < ring.strength < 10
    assert (ring.probability > 0.75) == (times == 8)


def test_two_people_who_go_round_in_opposite_directions():
    winner = np.repeat([0, 1, 2], 8)
    loser = (winner + 1) % 3
    judges = np.repeat([0, 1], 24)
    data = comparisons(judges, np.append(winner, loser), np.append(loser, winner))
    model = SAD().fit(data, show_progress=False)
    assert (
        model.preference(0, [0, 1, 2], [1, 2, 0]).min() > 0.5 and model.preference(1, [0, 1, 2], [1, 2, 0]).max() < -0.5
    )


def test_the_probability_of_a_cycle_counts_what_is_not_known_of_the_items():
    rng = np.random.default_rng(0)
    winner = rng.integers(12, size=400)  # coin flips: whatever cycle there is, is noise
    data = comparisons(np.zeros(400, int), winner, (winner + rng.integers(1, 12, size=400)) % 12)
    model = SAD().fit(data, show_progress=False)
    for ring in model.cycles(0):
        steps = 1 / (1 + np.exp(-1.7 * ring.margins / model.deviation(0, ring.path, np.roll(ring.path, -1))))
        assert ring.probability <= steps.min() + 0.05
        assert ring.probability < 0.8


def test_a_short_fit_keeps_several_factors():
    rng = np.random.default_rng(0)
    eta = rng.standard_normal((2, 20, 2))
    first, second = rng.integers(20, size=(2, 3000))
    first, second = first[first != second], second[first != second]
    x = 2 * np.sum(eta[0, first] * eta[1, second] - eta[0, second] * eta[1, first], axis=1)
    wins = rng.random(len(x)) < 1 / (1 + np.exp(-x))
    data = comparisons(np.zeros(len(x), int), np.where(wins, first, second), np.where(wins, second, first))
    assert SAD(iterations=28).fit(data, show_progress=False).state.parameters.n_factors > 1
    impatient = SAD().fit(data, show_progress=False, validation=data, patience=1)
    assert impatient.state.parameters.n_factors > 1 and len(impatient.state.history) > OWN


def test_bpr_explains_everything_by_scores():
    winner = np.tile([0, 1, 2], 100)
    model = BPR().fit(comparisons(np.zeros(300, int), winner, (winner + 1) % 3), show_progress=False)
    assert model.probability(0, [0, 1, 2], [1, 2, 0]) == pytest.approx([0.5] * 3, abs=0.01)


def test_comparisons_of_weight_0_say_nothing():
    judges, winner, loser = tournament(judges=3)
    enlarged = np.concatenate((judges, np.arange(3, 40))), np.append(winner, [0] * 37), np.append(loser, [1] * 37)
    weight = np.append(np.ones(len(judges)), np.zeros(37)).astype(np.float32)
    ids = {"users": np.arange(40), "items": np.arange(20)}
    plain = SAD().fit(Comparisons.from_indices(judges, winner, loser, **ids), show_progress=False)
    weighted = SAD().fit(Comparisons.from_indices(*enlarged, weight=weight, **ids), show_progress=False)
    np.testing.assert_array_equal(plain.item_factors, weighted.item_factors)
    with pytest.raises(ValueError, match="nothing to learn from"):
        SAD().fit(Comparisons.from_indices(judges, winner, loser, weight=np.zeros(len(judges)), **ids))


def test_who_asks_while_comparisons_are_fitted_anew_is_answered_as_before():
    judges, winner, loser = tournament()
    data = comparisons(judges, winner, loser, m=20)
    model = SAD(iterations=3).fit(data, show_progress=False)
    before, preferences = model.preference(0, 0, 1), []

    def ask(epoch, figures, fitted):
        preferences.append((model.preference(0, 0, 1), fitted.preference(0, 0, 1), len(fitted.state.history)))
        return epoch == 4

    model.set_params(random_state=1, iterations=6).fit(data, show_progress=False, callbacks=[ask])
    assert [old for old, _, _ in preferences] == [before] * 4 and [sweeps for *_, sweeps in preferences] == [1, 2, 3, 4]
    assert model.preference(0, 0, 1) == preferences[-1][1] != before


def test_a_fit_that_a_callback_stopped_stays_stopped(tmp_path):
    data = comparisons(*tournament())
    for _ in range(2):
        model = SAD().fit(
            data, show_progress=False, checkpoint=tmp_path, callbacks=iter([lambda epoch, figures, model: epoch == 5])
        )
        assert len(model.state.history) == 5


def test_positions_out_of_range_never_reach_a_kernel():
    model = SAD().fit(comparisons(*tournament()), show_progress=False)
    with pytest.raises(IndexError, match="item"):
        model.state.belief.distribution([0], [10**9], [0])


def test_settings_of_sgd_are_refused_by_the_variational_solver():
    with pytest.raises(ValueError, match=r"learning_rate=.* is for solver='sgd'"):
        settings_for(SAD(solver="variational", learning_rate=0.1), comparisons(*tournament()))


def test_a_file_with_negative_variances_is_refused(tmp_path):
    model = SAD().fit(comparisons(*tournament()), show_progress=False)
    model.save(tmp_path / "m.sad")
    assert (tmp_path / "m.sad").stat().st_mode & 0o777 == 0o666 & ~_umask()
    with_array(tmp_path / "m.sad", "pairing_variance", lambda variance: -1 - variance, tmp_path / "bad.sad")
    with pytest.raises(ModelFileError, match="negative"):
        SAD.load(tmp_path / "bad.sad")


def _umask():
    import os

    now = os.umask(0)
    os.umask(now)
    return now


def test_what_a_user_thinks_of_items_makes_no_cycle():
    rng = np.random.default_rng(0)
    scores = 1.5 * rng.standard_normal((12, 12))  # every user has other scores: no factor explains them
    judges, winner, step = rng.integers((0, 0, 1), (12, 12, 12), size=(1700, 3)).T
    loser = (winner + step) % 12
    won = rng.random(1700) < 1 / (1 + np.exp(scores[judges, loser] - scores[judges, winner]))
    data = comparisons(judges, np.where(won, winner, loser), np.where(won, loser, winner))
    belief = SAD().fit(data, show_progress=False).state.belief
    assert belief.own_scale > 0.5
    triples = [rng.permutation(12)[:3] for _ in range(60)]
    sure = [belief.together(0, path, np.roll(path, -1)) for path in triples]
    assert np.mean(sure) < 0.01


def test_intransitivity_counts_what_single_pairs_have_on_their_own():
    winner = np.repeat([0, 1, 2], 8)
    ring = SAD().fit(comparisons(0 * winner, winner, (winner + 1) % 3), show_progress=False)
    assert ring.intransitivity(0) > 0.9
    assert np.ptp(ring.rank(0, method="nash").scores) < 0.1
