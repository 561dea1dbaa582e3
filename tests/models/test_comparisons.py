"""SAD() and BPR() on comparisons with default settings: what is learnt, how sure it is, and files."""

import numpy as np
import pytest

from sadrec import BPR, SAD, Comparisons
from sadrec.evaluation import evaluate_comparisons
from sadrec.models import ModelFileError
from sadrec.training.variational import PRUNED, SWEEPS


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
    np.testing.assert_array_equal(model.user_factors[6], model.parameters.user_mean)
    order = np.argsort(-model.scores([6])[0][:20])
    wins = np.bincount(winner, minlength=20) / np.maximum(np.bincount(loser, minlength=20), 1)
    assert np.corrcoef(np.argsort(order), np.argsort(np.argsort(-wins)))[0, 1] > 0.9
    likes_best = model.recommend_popular(N=1)[0][0]
    assert likes_best in order[:3]


def test_less_is_known_of_less_data():
    judges, winner, loser = tournament()
    few = SAD().fit(comparisons(judges[:150], winner[:150], loser[:150], m=20), show_progress=False)
    many = SAD().fit(comparisons(judges, winner, loser, m=20), show_progress=False)
    pairs = np.array([(i, j) for i in range(20) for j in range(i)]).T
    assert many.deviation(0, *pairs).mean() < 0.6 * few.deviation(0, *pairs).mean()
    p, x = few.probability(0, *pairs), few.preference(0, *pairs)
    assert (np.abs(p - 0.5) <= np.abs(1 / (1 + np.exp(-x)) - 0.5) + 1e-3).mean() > 0.95  # nearer to one half


def test_fold_in_starts_from_the_average_user():
    judges, winner, loser = tournament(judges=30, count=6000)
    model = SAD(factors=4).fit(comparisons(judges, winner, loser), show_progress=False)
    one = comparisons([0], [winner[0]], [loser[0]], m=20)
    np.testing.assert_allclose(model.fold_in(one), model.parameters.user_mean, atol=0.75)
    assert not np.allclose(model.parameters.user_mean, 0) or not model.user_factors.any()


def test_giving_a_setting_of_sgd_switches_the_solver():
    data = comparisons(*tournament())
    learnt = SAD().settings_for(data)
    assert learnt.solver == "variational" and learnt.origins["solver"] == "data"
    for name in ("regularization", "schedule", "negative_candidates", "negative_sampling", "user_balance"):
        assert learnt.origins[name] == "not used", name
    for name, value in {"regularization": 0.0, "learning_rate": 0.1, "adaptive": True, "bias": False}.items():
        given = SAD(**{name: value}).settings_for(data)
        assert given.solver == "sgd" and given.origins[name] == "given", name
    assert SAD(solver="sgd").settings_for(data).factors == 64
    with pytest.raises(ValueError, match="comparisons alone"):
        SAD(solver="variational").settings_for(np.eye(4))
    with pytest.raises(ValueError, match="cannot continue"):
        SAD(solver="variational").fit(data, warm_start=SAD(iterations=2).fit(data))


def test_a_variational_fit_can_be_continued_by_sgd():
    judges, winner, loser = tournament(judges=3)
    model = SAD(iterations=30).fit(comparisons(judges, winner, loser), show_progress=False)
    factors = model.parameters.n_factors
    model.partial_fit(comparisons(judges[:50], winner[:50], loser[:50], n=3, m=20), show_progress=False)
    assert model.settings.solver == "sgd" and model.parameters.n_factors == factors


def test_validation_figures_patience_and_callbacks():
    judges, winner, loser = tournament()
    data = comparisons(judges[:2000], winner[:2000], loser[:2000], m=20)
    held_out = comparisons(judges[2000:], winner[2000:], loser[2000:], m=20)
    seen = []
    model = SAD(iterations=40).fit(
        data, show_progress=False, validation=held_out, patience=3, callbacks=[lambda e, f, m: seen.append(e)]
    )
    assert seen == list(range(1, len(model.history) + 1))
    last = model.history[-1]["validation_log_likelihood"]
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
    from sadrec._files import read_arrays, write_arrays

    model = SAD().fit(comparisons(*tournament()), show_progress=False)
    model.save(tmp_path / "m.sad")
    arrays, header = read_arrays(tmp_path / "m.sad", "a model")
    for name in ("user_covariance", "item_covariance", "pairing_mean", "population"):
        write_arrays(tmp_path / "bad.sad", {**arrays, name: np.array(arrays[name])[:0]}, header)
        with pytest.raises(ModelFileError, match=name):
            SAD.load(tmp_path / "bad.sad")
    for name in ("own", "own_mean", "own_variance"):
        without = {other: array for other, array in arrays.items() if other != name}
        write_arrays(tmp_path / "bad.sad", without, header)
        with pytest.raises(ModelFileError, match=f"'{name}'"):
            SAD.load(tmp_path / "bad.sad", mmap=True)


def test_a_file_of_before_there_were_own_scores_is_read(tmp_path):
    from sadrec._files import read_arrays, write_arrays

    model = SAD(iterations=20).fit(comparisons(*tournament(judges=4)), show_progress=False)
    model.save(tmp_path / "m.sad")
    arrays, header = read_arrays(tmp_path / "m.sad", "a model")
    del header["own_scale"]
    write_arrays(
        tmp_path / "old.sad", {name: array for name, array in arrays.items() if not name.startswith("own")}, header
    )
    old = SAD.load(tmp_path / "old.sad")
    asked = model.users[0], model.items[0], model.items[1]
    assert old.probability(*asked, pairings=False) == model.probability(*asked, pairings=False)


def test_interrupted_and_resumed_it_ends_with_the_same_bits(tmp_path):
    data = comparisons(*tournament(judges=3))
    whole = SAD().fit(data, show_progress=False)

    def stop(epoch, figures, model):
        if epoch == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SAD().fit(data, show_progress=False, checkpoint=tmp_path, callbacks=[stop])
    resumed = SAD().fit(data, show_progress=False, checkpoint=tmp_path)
    assert (resumed.item_factors == whole.item_factors).all() and len(resumed.history) == SWEEPS


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
    assert model.history[-1]["learner_weight"] < 0.7 and "learner_weight" not in model.history[0]


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
    carry = model.history[-1]["carry"]
    assert carry < 0.6
    sure, by_factors = (np.abs(model.probability(0, first, second, pairings=which) - 0.5) for which in (True, False))
    assert sure.mean() < 0.7 * by_factors.mean()
    known = model.probability(0, played.winner_index, played.loser_index)
    assert np.log(known).mean() > -0.55
    model.save(tmp_path / "m.sad")
    again = SAD.load(tmp_path / "m.sad")
    assert (again.probability(0, first, second) == model.probability(0, first, second)).all()


def test_a_file_of_before_margins_were_weighed_carries_all_over(tmp_path):
    from sadrec._files import read_arrays, write_arrays

    played, (first, second) = series()
    model = SAD().fit(played, show_progress=False)
    model.save(tmp_path / "m.sad")
    arrays, header = read_arrays(tmp_path / "m.sad", "a model")
    del header["carry"]
    write_arrays(tmp_path / "old.sad", arrays, header)
    old = SAD.load(tmp_path / "old.sad")
    assert (np.abs(old.probability(0, first, second) - 0.5) >= np.abs(model.probability(0, first, second) - 0.5)).all()


def test_a_short_fit_adds_the_later_factors_too():
    rng = np.random.default_rng(0)
    eta = rng.standard_normal((2, 20, 2))
    first, second = rng.integers(20, size=(2, 3000))
    first, second = first[first != second], second[first != second]
    x = 2 * np.sum(eta[0, first] * eta[1, second] - eta[0, second] * eta[1, first], axis=1)
    wins = rng.random(len(x)) < 1 / (1 + np.exp(-x))
    data = comparisons(np.zeros(len(x), int), np.where(wins, first, second), np.where(wins, second, first))
    assert SAD(iterations=28).fit(data, show_progress=False).parameters.n_factors > 1
    impatient = SAD().fit(data, show_progress=False, validation=data, patience=1)
    assert impatient.parameters.n_factors > 1 and len(impatient.history) > PRUNED[-1]


def test_bpr_explains_everything_by_scores():
    winner = np.tile([0, 1, 2], 100)
    model = BPR().fit(comparisons(np.zeros(300, int), winner, (winner + 1) % 3), show_progress=False)
    assert model.probability(0, [0, 1, 2], [1, 2, 0]) == pytest.approx([0.5] * 3, abs=0.01)


def test_comparisons_of_weight_0_say_nothing():
    judges, winner, loser = tournament(judges=3)
    more = np.concatenate((judges, np.arange(3, 40))), np.append(winner, [0] * 37), np.append(loser, [1] * 37)
    weight = np.append(np.ones(len(judges)), np.zeros(37)).astype(np.float32)
    ids = {"users": np.arange(40), "items": np.arange(20)}
    plain = SAD().fit(Comparisons.from_indices(judges, winner, loser, **ids), show_progress=False)
    weighted = SAD().fit(Comparisons.from_indices(*more, weight=weight, **ids), show_progress=False)
    np.testing.assert_array_equal(plain.item_factors, weighted.item_factors)
    with pytest.raises(ValueError, match="nothing to learn from"):
        SAD().fit(Comparisons.from_indices(judges, winner, loser, weight=np.zeros(len(judges)), **ids))


def test_who_asks_while_comparisons_are_fitted_anew_is_answered_as_before():
    judges, winner, loser = tournament()
    data = comparisons(judges, winner, loser, m=20)
    model = SAD(iterations=3).fit(data, show_progress=False)
    before, asked = model.preference(0, 0, 1), []

    def ask(epoch, figures, fitted):
        asked.append((model.preference(0, 0, 1), fitted.preference(0, 0, 1), len(fitted.history)))
        return epoch == 4

    model.set_params(random_state=1, iterations=6).fit(data, show_progress=False, callbacks=[ask])
    assert [old for old, _, _ in asked] == [before] * 4 and [sweeps for *_, sweeps in asked] == [1, 2, 3, 4]
    assert model.preference(0, 0, 1) == asked[-1][1] != before


def test_a_fit_that_a_callback_stopped_stays_stopped(tmp_path):
    data = comparisons(*tournament())
    for _ in range(2):
        model = SAD().fit(
            data, show_progress=False, checkpoint=tmp_path, callbacks=iter([lambda epoch, figures, model: epoch == 5])
        )
        assert len(model.history) == 5


def test_positions_out_of_range_never_reach_a_kernel():
    model = SAD().fit(comparisons(*tournament()), show_progress=False)
    with pytest.raises(IndexError, match="item"):
        model._fitted.uncertainty.distribution(model.parameters, [0], [10**9], [0])


def test_settings_of_sgd_are_refused_by_the_variational_solver():
    with pytest.raises(ValueError, match=r"learning_rate=.* is for solver='sgd'"):
        SAD(solver="variational", learning_rate=0.1).settings_for(comparisons(*tournament()))


def test_a_file_with_negative_variances_is_refused(tmp_path):
    from sadrec._files import read_arrays, write_arrays

    model = SAD().fit(comparisons(*tournament()), show_progress=False)
    model.save(tmp_path / "m.sad")
    assert (tmp_path / "m.sad").stat().st_mode & 0o777 == 0o666 & ~_umask()
    arrays, header = read_arrays(tmp_path / "m.sad", "a model")
    write_arrays(
        tmp_path / "bad.sad", {**arrays, "pairing_variance": -1 - np.array(arrays["pairing_variance"])}, header
    )
    with pytest.raises(ModelFileError, match="negative"):
        SAD.load(tmp_path / "bad.sad")


def _umask():
    import os

    now = os.umask(0)
    os.umask(now)
    return now
