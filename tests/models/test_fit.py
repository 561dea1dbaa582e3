"""Fitting: what is taken, what is refused, what comes out."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec.data import DataWarning
from sadrec.models import DivergedError, NotFittedError
from sadrec.training.sgd.trainer import Trainer


def clicks(n=40, m=30, seed=0):
    """Two kinds of people, two kinds of items."""
    rng = np.random.default_rng(seed)
    own = (np.arange(n)[:, None] % 2) == (np.arange(m)[None, :] % 2)
    return sp.csr_matrix((rng.random((n, m)) < np.where(own, 0.6, 0.05)).astype(np.float32))


@pytest.mark.parametrize("model", [SAD, BPR])
def test_it_learns_who_likes_what(model):
    data = clicks(200, 60)
    fitted = model(factors=8, iterations=60).fit(data)
    ids, scores = fitted.recommend(0, N=5)
    assert (ids % 2 == 0).all() and (np.diff(scores) <= 0).all()
    assert not set(ids) & set(data[0].indices)
    assert fitted.probability(1, 1, 0) > 0.5 > fitted.probability(0, 1, 0)


def test_fit_takes_every_kind_of_input(tmp_path):
    matrix = clicks()
    coo = matrix.tocoo()
    frame = pl.DataFrame({"user": coo.row, "item": coo.col})
    frame.write_csv(tmp_path / "clicks.csv")
    inputs = [
        matrix,
        sp.csr_array(matrix),
        matrix.tocsc(),
        coo,
        matrix.toarray(),
        Interactions.from_csr(matrix),
        frame,
        frame.to_pandas(),
        frame.to_arrow(),
        tmp_path / "clicks.csv",
        str(tmp_path / "clicks.csv"),
    ]
    fitted = [BPR(factors=3, iterations=2).fit(data) for data in inputs]
    for model in fitted[1:]:
        np.testing.assert_array_equal(model.item_factors, fitted[0].item_factors)


def test_settings_are_kept_as_given_and_resolved_beside():
    model = SAD(factors=3).fit(clicks())
    assert model.iterations is None and model.settings.iterations > 0
    assert model.blocks is None and model.settings.blocks == 1
    stated = Comparisons.from_frame(pl.DataFrame({"user": [1, 2], "winner": [1, 2], "loser": [2, 3]}))
    assert SAD(factors=3).fit(stated).settings.iterations != model.settings.iterations


def test_the_same_seed_gives_the_same_model_and_another_another():
    one, two, other = (SAD(factors=4, iterations=3, random_state=seed).fit(clicks()) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.user_factors, two.user_factors)
    assert (one.user_factors != other.user_factors).any()
    drawn = SAD(factors=4, iterations=3, random_state=None).fit(clicks())
    again = SAD(factors=4, iterations=3, random_state=drawn.settings.seed).fit(clicks())
    np.testing.assert_array_equal(drawn.user_factors, again.user_factors)
    SAD(factors=4, iterations=1, random_state=np.random.default_rng(3)).fit(clicks())


def test_bpr_has_no_settings_of_rival_factors():
    assert set(SAD().get_params()) - set(BPR().get_params()) == {"rival_regularization"}
    with pytest.raises(ValueError, match="adaptive=True is for SAD: BPR has no rival factors"):
        BPR(advanced={"adaptive": True}).fit(clicks())
    with pytest.raises(TypeError, match="rival_regularization"):
        BPR(rival_regularization=0.1)


def test_questions_before_fit_are_refused_with_a_remedy():
    for ask in (
        lambda m: m.user_factors,
        lambda m: m.preference(0, 1, 2),
        lambda m: m.recommend(0),
        lambda m: m.save("x"),
        lambda m: m.users,
        lambda m: m.settings,
    ):
        with pytest.raises(NotFittedError, match="call fit first"):
            ask(SAD())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (sp.csr_matrix((3, 4)), "no entries"),
        (np.ones((3, 1)), "two items"),
        (np.array([[1.0, np.nan]]), "(?i)nan"),
        (np.array([[1.0, -2.0]]), "(?i)negative"),
    ],
)
def test_data_with_nothing_to_learn_from_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        SAD(iterations=1).fit(data)


def test_one_user_and_users_who_liked_everything_are_fine():
    one = SAD(factors=2, iterations=3).fit(np.array([[1, 0, 1]]))
    assert np.isfinite(one.user_factors).all()
    everything = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]])
    model = SAD(factors=2, iterations=3).fit(everything)
    assert model.state.history[-1]["skipped"] == 3 and model.state.history[-1]["updates"] == 1
    assert (model.user_factors[2] == 0).all()  # nothing is known of the last user, and no noise is made up
    assert len(model.recommend(0)[0]) == 0


def test_a_fit_that_could_learn_nothing_says_so():
    with pytest.warns(DataWarning, match="nothing was learnt"):
        SAD(factors=2, iterations=2).fit(np.ones((3, 4)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"factors": -1}, "factors"),
        ({"blocks": 16}, "blocks must be at most 15 for 30 items, not 16"),
        ({"iterations": 10**400}, "iterations must be a whole number, from 0 to 9007199254740992, not 1000"),
        ({"factors": 10**400}, "factors must be a whole number"),
        ({"factors": 1e308}, "factors must be a whole number"),
        ({"factors": 2 * 10**9, "loss": "softmax"}, r"factors=2000000000 takes .* lower factors"),
        ({"num_threads": 10**400}, r"num_threads must be 0 \(all cores\) or a number of threads, 4096 at most"),
        ({"advanced": {"length": 1e-100}}, "length must be 0, or 0.1 to 100, not 1e-100"),
        ({"advanced": {"length": 1e30}}, r"length must be 0, or 0.1 to 100, not 1e\+30"),
        ({"advanced": {"init_scale": 1e38}}, r"init_scale must be a finite number, from 0 to 100, not 1e\+38"),
        ({"bias": "no"}, "bias must be True or False, not 'no'"),
        ({"advanced": {"adaptive": "yes"}}, "adaptive must be True or False, not 'yes'"),
        ({"advanced": {"adaptiv": True}}, "unknown setting 'adaptiv' in advanced: it must be a mapping of adaptive, "),
        ({"advanced": "adaptive"}, "advanced must be a mapping of adaptive, .* not 'adaptive'"),
        ({"order_share": 0.5}, "order inside ratings, but the data has none"),
    ],
)
def test_bad_settings_are_refused_in_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        SAD(**settings).fit(clicks())


def test_settings_may_be_numbers_of_numpy(tmp_path):
    given = {"factors": np.int64(4), "iterations": np.int32(2), "num_threads": np.int64(1), "bias": np.bool_(False)}
    model = SAD(**given, learning_rate=np.float32(0.05)).fit(clicks())
    model.save(tmp_path / "m.sad")
    assert SAD.load(tmp_path / "m.sad").settings == model.settings


def test_order_inside_ratings_teaches_the_order():
    rng = np.random.default_rng(0)
    quality = rng.permutation(30)
    ratings = np.where(rng.random((60, 30)) < 0.4, 1 + quality // 6, 0)
    model = SAD(factors=4, iterations=60, order_share=0.7).fit(ratings)
    best, worst = np.argmax(quality), np.argmin(quality)
    without = SAD(factors=4, iterations=60).fit(ratings)
    only = SAD(factors=4, iterations=60, order_share=1.0).fit(ratings)
    means = [fitted.probability(fitted.users, best, worst).mean() for fitted in (without, model, only)]
    assert means[0] < means[1] < means[2] and means[2] > 0.95


def test_interactions_and_comparisons_in_one_fit():
    frame = pl.DataFrame({"user": [0, 0, 99], "winner": [1, 40, 3], "loser": [0, 1, 40]})
    model = SAD(factors=4, iterations=80, learning_rate=0.2).fit(clicks(), comparisons=Comparisons.from_frame(frame))
    assert len(model.users) == 41 and len(model.items) == 31  # user 99 and item 40 are new
    assert model.probability(0, 40, 1) > 0.5


def test_weights_say_how_much_an_interaction_counts():
    data = Interactions.from_csr(clicks())
    heavy = BPR(factors=4, iterations=3).fit(data, weights=np.full(data.matrix.nnz, 2.0))
    plain = BPR(factors=4, iterations=3).fit(data)
    ones = BPR(factors=4, iterations=3).fit(data, weights=np.ones(data.matrix.nnz))
    assert (heavy.user_factors != plain.user_factors).any()
    np.testing.assert_array_equal(ones.user_factors, plain.user_factors)
    as_matrix = data.matrix.copy()
    as_matrix.data = np.full(data.matrix.nnz, 2.0)
    np.testing.assert_array_equal(
        BPR(factors=4, iterations=3).fit(data, weights=as_matrix).user_factors, heavy.user_factors
    )
    with pytest.raises(ValueError, match="one per interaction"):
        BPR().fit(data, weights=np.ones(3))
    broken = np.ones(data.matrix.nnz)
    broken[[2, 5]] = -1.0, np.nan
    with pytest.raises(ValueError, match=r"weights\[2\] is -1.0: weights must be finite and not negative"):
        BPR().fit(data, weights=broken)


def test_early_stopping_keeps_the_best_epoch():
    train, held_out = Interactions.from_csr(clicks(80, 40)).split(test=0.2, seed=1)
    model = SAD(factors=16, iterations=200, learning_rate=0.3, regularization=0.0, advanced={"schedule": "constant"})
    model.fit(train, validation=held_out, patience=5)
    with pytest.raises(ValueError, match=r"patience \(2.5\) must be a whole number"):
        SAD().fit(train, validation=held_out, patience=2.5)
    values = [figures["validation_log_likelihood"] for figures in model.state.history]
    assert len(values) < 200 and int(np.argmax(values)) == len(values) - 6


def test_callbacks_see_a_usable_model_and_can_stop():
    seen = []

    def watch(epoch, figures, model):
        seen.append((epoch, model.preference(0, 0, 1)))
        return epoch == 3

    model = SAD(factors=4, iterations=10).fit(clicks(), callbacks=[watch])
    assert [epoch for epoch, _ in seen] == [1, 2, 3] and len(model.state.history) == 3
    assert seen[-1][1] == model.preference(0, 0, 1)


@pytest.mark.filterwarnings("error")
def test_divergence_leaves_the_last_good_epoch_or_the_model_as_it_was():
    model = SAD(factors=4, iterations=5).fit(clicks())
    before = model.user_factors.copy()
    model.set_params(learning_rate=1e30, regularization=0.0, rival_regularization=0.0)
    with pytest.raises(DivergedError, match="lower learning_rate"):
        model.fit(clicks())
    assert np.isfinite(model.user_factors).all()
    if not model.state.history or len(model.state.history) == 5:
        np.testing.assert_array_equal(model.user_factors, before)


def test_partial_fit_appends_users_and_items_and_keeps_what_was_learnt():
    model = SAD(factors=4, iterations=30).fit(clicks())
    old_users, old_items = model.users.copy(), model.items.copy()
    frame = pl.DataFrame({"user": [0, 100, 100, 100], "item": [77, 0, 2, 4]})
    model.set_params(iterations=40)
    model.partial_fit(frame)
    np.testing.assert_array_equal(model.users[:40], old_users)
    np.testing.assert_array_equal(model.items[:30], old_items)
    assert set(model.users[40:]) == {100} and set(model.items[30:]) == {77}
    ids, _ = model.recommend(100, N=4)
    assert (ids % 2 == 0).mean() >= 0.75 or 77 in ids  # somebody who likes even things
    assert not set(model.recommend(0, N=31)[0]) & (set(clicks()[0].indices) | {77})  # old and new are both seen


def test_partial_fit_with_comparisons_still_leaves_out_what_was_seen():
    model = SAD(factors=4, iterations=3).fit(clicks())
    frame = pl.DataFrame({"user": [0, 100], "winner": [3, 77], "loser": [77, 5]})
    model.partial_fit(Comparisons.from_frame(frame))
    assert model.state.seen.shape == (41, 31) and model.state.seen.nnz == clicks().nnz
    assert not set(model.recommend(0, N=31)[0]) & set(clicks()[0].indices)
    assert len(model.recommend(100, N=31)[0]) == 31


def test_what_partial_fit_does_not_take_is_named_with_the_remedy():
    model = SAD(factors=4, iterations=1).fit(clicks())
    with pytest.raises(TypeError, match=r"does not take 'weights' .*warm_start=model"):
        model.partial_fit(clicks(), weights=np.ones(clicks().nnz))


def test_partial_fit_on_a_new_model_is_fit():
    one, two = SAD(factors=4, iterations=3).partial_fit(clicks()), SAD(factors=4, iterations=3).fit(clicks())
    np.testing.assert_array_equal(one.item_factors, two.item_factors)


def test_a_warm_start_goes_on_from_the_other_model():
    first = SAD(factors=4, iterations=20).fit(clicks())
    same = SAD(factors=4, iterations=0).fit(clicks(), warm_start=first)
    np.testing.assert_array_equal(same.rival_factors, first.rival_factors)
    continued = SAD(factors=4, iterations=5).fit(clicks(60, 40), warm_start=first)
    assert len(continued.users) == 60 and len(continued.items) == 40
    assert (
        SAD(factors=4, iterations=1).fit(clicks(), warm_start=BPR(factors=4, iterations=1).fit(clicks())).factors == 4
    )
    with pytest.raises(ValueError, match="set factors to 4"):
        SAD(factors=5).fit(clicks(), warm_start=first)
    with pytest.raises(ValueError, match="rival factors would be lost"):
        BPR(factors=4).fit(clicks(), warm_start=first)


def test_given_factors_answer_like_fitted_ones():
    model = SAD(factors=4, iterations=3).fit(clicks())
    given = SAD.from_factors(
        model.user_factors, model.item_factors, model.rival_factors, model.item_bias, users=model.users
    )
    assert given.preference(3, 1, 2) == model.preference(3, 1, 2)
    with pytest.raises(ValueError, match=r"rival_factors\[0, 0\] is -.*finite and not negative"):
        SAD.from_factors(np.ones((2, 3)), np.ones((4, 3)), -np.ones((4, 3)))
    with pytest.raises(ValueError, match="finite"):
        SAD.from_factors([[np.nan]], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="3 users are named, but the factors have 2 rows"):
        SAD.from_factors(np.ones((2, 3)), np.ones((4, 3)), users=["a", "b", "c"])


def test_factors_of_implicit_s_bpr_bring_their_bias():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(5, 4)).astype(np.float32), rng.normal(size=(7, 4)).astype(np.float32)
    users[:, -1] = 1.0  # implicit keeps the bias as a last column
    model = SAD.from_bpr(users, items)
    np.testing.assert_array_equal(model.item_bias, items[:, -1])
    assert model.preference(2, 3, 4) == pytest.approx(float(users[2] @ (items[3] - items[4])), rel=1e-5)
    plain = BPR.from_bpr(users[:, :3], items[:, :3])
    assert plain.item_bias is None and plain.factors == 3


def test_ids_are_what_they_were():
    frame = pl.DataFrame({"user": ["zoë", "bob", "bob"], "item": ["tea", "ale", "tea"], "stars": [1, 2, 3]})
    model = SAD(factors=2, iterations=2).fit(Interactions.from_frame(frame, user="user", item="item", rating="stars"))
    assert list(model.users) == ["bob", "zoë"]
    assert model.recommend("zoë")[0].tolist() == ["ale"]
    with pytest.raises(ValueError, match="unknown user 'eve'"):
        model.recommend("eve")


def test_dislikes_lose_without_unseen_items_being_disliked():
    rng = np.random.default_rng(3)
    liked = rng.random((80, 40)) < 0.2
    liked[:, :2] = False
    disliked = np.zeros_like(liked)
    disliked[:, 0] = rng.random(80) < 0.6  # many dislike item 0, nobody knows item 1
    settings = {"factors": 4, "iterations": 60, "regularization": 0.01, "bias": True, "loss": "pairwise"}
    as_pairs = SAD(**settings).fit(liked.astype(float), dislikes=disliked.astype(float))
    assert as_pairs.probability(as_pairs.users, 1, 0).mean() > 0.65
    by_rating = SAD(**settings).fit(liked * 5.0 + disliked * 1.0, dislikes=2)
    assert by_rating.probability(by_rating.users, 1, 0).mean() > 0.65
    somebody = int(np.flatnonzero(disliked[:, 0])[0])
    assert 0 not in by_rating.recommend(somebody, N=40)[0] and 0 not in as_pairs.recommend(somebody, N=40)[0]
    without = SAD(**settings).fit(liked.astype(float))
    assert without.probability(without.users, 1, 0).mean() < 0.6
    with pytest.raises(ValueError, match=r"no rating lies below 0.5"):
        SAD().fit(liked * 5.0, dislikes=0.5)
    with pytest.raises(ValueError, match="the data has no ratings"):
        SAD().fit(liked, dislikes=3)
    with pytest.raises(ValueError, match="everything is disliked"):
        SAD().fit(liked * 5.0, dislikes=100)
    for wrong in (True, float("nan")):
        with pytest.raises(ValueError, match=f"not {wrong}"):
            SAD().fit(liked * 5.0, dislikes=wrong)


def test_disliked_items_lose_by_default_settings():
    rng = np.random.default_rng(0)
    own = (np.arange(200) % 2)[:, None] == np.arange(60) % 2
    liked = rng.random((200, 60)) < 0.3 * own
    disliked = (rng.random((200, 60)) < 0.3) & ~liked & (np.arange(60) < 20)  # of both groups: the first 20 items

    def score(**given):
        model = SAD().fit(liked.astype(float), **given)
        assert model.settings.loss == "softmax"
        margins = model.preference(model.users[:, None], model.items[None, :], 59)
        unseen = own & ~liked & ~disliked
        return margins[unseen & (np.arange(60) < 20)].mean() - margins[unseen & (np.arange(60) >= 20)].mean()

    assert score(dislikes=disliked.astype(float)) < score() - 0.5


def test_an_interrupted_model_knows_the_epochs_of_before_a_resume(tmp_path):
    model, lengths = SAD(factors=2, iterations=9), []

    def leave(epoch, figures, fitted):
        lengths.append(len(fitted.state.history))
        if epoch % 3 == 0:
            raise KeyboardInterrupt

    for epochs in (3, 6):
        with pytest.raises(KeyboardInterrupt):
            model.fit(clicks(), checkpoint=tmp_path, callbacks=[leave])
        assert len(model.state.history) == epochs
    assert lengths == [1, 2, 3, 4, 5, 6]


def test_what_a_callback_is_told_is_of_this_epoch():
    lists = []
    SAD(factors=4, iterations=3, learning_rate=0.5).fit(
        clicks(), callbacks=[lambda epoch, figures, model: lists.append(model.recommend(0, N=30)[1])]
    )
    assert not np.array_equal(lists[0], lists[1]) and not np.array_equal(lists[1], lists[2])


def interrupt(epoch, figures, model):
    raise KeyboardInterrupt


def test_an_interrupted_fit_that_learnt_nothing_leaves_the_model_as_it_was(monkeypatch):
    model = SAD(factors=4, iterations=2).fit(clicks())
    before = model.state
    monkeypatch.setattr("sadrec.training.sgd.trainer.Trainer.train_epoch", lambda *given: interrupt(*given, None))
    with pytest.raises(KeyboardInterrupt):
        model.fit(clicks(60, 20))
    assert model.state is before
    with pytest.raises(KeyboardInterrupt):
        SAD(factors=4).fit(clicks())


def test_fitted_parameters_cannot_be_written_to():
    model, interrupted = SAD(factors=4, iterations=1).fit(clicks()), SAD(factors=4, iterations=3)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(clicks(), callbacks=[interrupt])
    with pytest.raises(ValueError, match="read-only"):
        interrupted.user_factors[0, 0] = 1
    for array in (model.user_factors, model.item_factors, model.rival_factors):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    model.partial_fit(clicks())  # which works on a copy


def test_partial_fit_keeps_the_settings_of_the_first_fit_whatever_the_new_size():
    rng = np.random.default_rng(0)
    users, winner, loser = rng.integers(0, 50, 500), rng.integers(0, 30, 500), rng.integers(30, 60, 500)
    ids = {"users": np.arange(50), "items": np.arange(60)}
    model = SAD(factors=3, iterations=2, solver="sgd").fit(Comparisons.from_indices(users, winner, loser, **ids))
    before = model.settings
    assert before.bias
    model.partial_fit(Comparisons.from_indices(users[:5], winner[:5], loser[:5], **ids))
    assert model.settings == before
    again = SAD(factors=3, iterations=2, solver="sgd").fit(
        Comparisons.from_indices(users[:5], winner[:5], loser[:5], **ids), warm_start=model
    )
    assert again.item_bias is not None


def test_who_asks_while_a_model_is_fitted_anew_is_answered_as_before():
    model = SAD(factors=4, iterations=2).fit(clicks())
    before = model.user_factors.tobytes()
    seen, kept = [], []

    def meanwhile(epoch, figures, fitted):
        assert fitted.user_factors.tobytes() != before and len(fitted.state.history) == epoch
        seen.append(fitted is not model and model.user_factors.tobytes() == before)
        kept.append(fitted)

    original = Trainer.train_epoch

    def train_epoch(self, between):
        def look():
            between()
            seen.append(model.user_factors.tobytes() == before)

        return original(self, look)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", train_epoch)
        model.set_params(random_state=5).fit(clicks(), callbacks=[meanwhile])
    assert len(seen) >= 4 and all(seen)
    assert model.user_factors.tobytes() != before
    assert not any(fitted.is_fitted for fitted in kept)  # their arrays went on changing
    fresh = SAD(factors=4, iterations=2)
    fresh.fit(clicks(), callbacks=[lambda epoch, figures, fitted: seen.append(fitted.is_fitted)])
    assert all(seen) and fresh.is_fitted
