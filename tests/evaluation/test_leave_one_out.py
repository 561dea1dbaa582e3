"""The paper's measures against a plain loop over users and pairs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sadrec import BPR, SAD
from sadrec.data import Interactions
from sadrec.evaluation import evaluate, evaluate_top_n
from sadrec.evaluation.leave_one_out import MEASURES
from sadrec.evaluation.sampling import uniforms, unmet_items
from studies.baselines import Popularity

VERBS = ("users", "items", "margins", "scores", "probability")
PAPER = ("mean_margin", "match", "match_per_user", "unequal_accuracy", "m1", "m2")


def stored(data, row):
    matrix = data.matrix
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return dict(zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True))


def hit(ahead, equal, sampled, cut, out_of):
    return min(max((cut * sampled / out_of - ahead) / (equal + 1), 0), 1)


def by_hand(tensor, train, held_out, seed, sampled=100, cut=20):
    """Every measure, one user and one pair at a time, straight from the definitions."""
    rows = []
    for row in range(train.matrix.shape[0]):
        liked, held = stored(train, row), stored(held_out, row)
        if not held:
            continue
        (o, rating), x = next(iter(held.items())), tensor(row)
        numbers = uniforms(seed, np.array([row]), sampled)[0]
        others = unmet_items(np.array(sorted({*liked, *held})), train.matrix.shape[1], numbers).tolist()
        margin = match = right = unequal = brier = loss = 0.0
        for j, other in liked.items():
            if rating == other:
                continue
            toward = x[o, j] if rating > other else x[j, o]
            p = 1 / (1 + math.exp(-toward))
            unequal += 1
            margin += toward
            match += toward > 0
            right += 1 if toward > 0 else 0.5 if toward == 0 else 0
            brier += (1 - p) ** 2
            loss -= math.log(max(p, 1e-15))
        share = {i: sum(x[i, j] > 0 for j in liked) for i in [o, *others]}
        mean = {i: sum(x[i, j] for j in liked) for i in [o, *others]}
        p_others = [1 / (1 + math.exp(-x[o, j])) for j in others]
        rows.append(
            {
                "mean_margin": margin / len(liked),
                "match": match / len(liked),
                "match_per_user": match / len(liked),
                "unequal_accuracy": right / unequal if unequal else math.nan,
                "rated_brier": brier / unequal if unequal else math.nan,
                "rated_log_loss": loss / unequal if unequal else math.nan,
                "m1": hit(
                    sum(x[o, j] < 0 for j in others), sum(x[o, j] == 0 for j in others), len(others), cut, sampled
                ),
                "m2": hit(
                    sum(share[j] > share[o] for j in others),
                    sum(share[j] == share[o] for j in others),
                    len(others),
                    cut,
                    sampled,
                ),
                "m_margin": hit(sum(mean[j] > mean[o] for j in others), 0, len(others), cut, sampled),
                "sampled_auc": float(np.mean([x[o, j] > 0 for j in others])),
                "brier": float(np.mean([(1 - p) ** 2 for p in p_others])),
                "log_loss": float(np.mean([-math.log(max(p, 1e-15)) for p in p_others])),
            }
        )
    return {
        name: np.nanmedian([r[name] for r in rows]) if name == "match_per_user" else np.nanmean([r[name] for r in rows])
        for name in MEASURES
    }


@pytest.mark.parametrize(("rivals", "bias"), [(True, False), (True, True), (False, True), (False, False)])
def test_every_measure_is_what_a_plain_loop_gives(make_ratings, factor_model, rivals, bias):
    data = make_ratings(users=40, items=150)
    train, held_out = data.leave_one_out(seed=1)
    model = factor_model(data, rivals=rivals, bias=bias)
    result = evaluate(model, train, held_out, seed=5)
    expected = by_hand(model.tensor, train, held_out, seed=5)
    assert set(result) == set(MEASURES)
    for name, value in expected.items():
        assert result[name] == pytest.approx(value, abs=1e-5), name


def test_scaled_cut_when_fewer_than_a_hundred_items_are_left(make_ratings, factor_model):
    data = make_ratings(users=30, items=70)
    train, held_out = data.leave_one_out(seed=1)
    model = factor_model(data)
    result = evaluate(model, train, held_out)
    assert result["m1"] == pytest.approx(by_hand(model.tensor, train, held_out, seed=0)["m1"], abs=1e-6)


@pytest.mark.parametrize("kind", [SAD, BPR])
def test_the_protocol_gives_the_numbers_of_the_factors(make_ratings, kind, monkeypatch):
    data = make_ratings(users=70, items=130)
    train, held_out = data.leave_one_out(seed=2)
    model = kind(factors=3, iterations=3).fit(train, show_progress=False)
    plain = evaluate(SimpleNamespace(**{name: getattr(model, name) for name in VERBS}), train, held_out)
    for verb in VERBS[2:]:  # the factors of a point are asked at once, without them
        monkeypatch.setattr(kind, verb, lambda *question: pytest.fail("a verb was asked"))
    fast = evaluate(model, train, held_out)
    for name in MEASURES:
        assert fast[name] == pytest.approx(plain[name], abs=1e-5), name
        assert fast.counts[name] == plain.counts[name]


def test_scores_only_margins_only_and_factors_agree(make_ratings, factor_model, scores_model, margins_model):
    data = make_ratings(users=70, items=130)
    train, held_out = data.leave_one_out(seed=2)
    model = factor_model(data, rivals=False)
    scored = scores_model(data, model.scores(data.users))
    results = [evaluate(m, train, held_out) for m in (model, scored, margins_model(model))]
    for name in ("mean_margin", "match", "unequal_accuracy", "m1", "m2", "m_margin", "sampled_auc"):
        assert [r[name] for r in results] == pytest.approx([results[0][name]] * 3, abs=1e-5), name


def test_a_model_whose_ids_are_in_another_order_scores_the_same(make_ratings, scores_model):
    data = make_ratings(users=30, items=130)
    train, held_out = data.leave_one_out(seed=0)
    table = np.random.default_rng(0).normal(size=data.matrix.shape)
    model, turned = scores_model(data, table), scores_model(data, table)
    turned.items, turned.table = data.items[::-1], table[:, ::-1]
    assert dict(evaluate(model, train, held_out)) == pytest.approx(dict(evaluate(turned, train, held_out)), nan_ok=True)


def test_same_bits_for_any_number_of_threads(make_ratings, factor_model):
    data = make_ratings(users=300, items=130)
    train, held_out = data.leave_one_out(seed=0)
    model = factor_model(data, factors=16)
    one, two, three = (evaluate(model, train, held_out, num_threads=n) for n in (1, 2, 3))
    assert dict(one) == dict(two) == dict(three)


def test_a_model_that_says_nothing_scores_20_of_101(make_ratings, scores_model):
    data = make_ratings(users=50, items=200)
    train, held_out = data.leave_one_out(seed=0)
    result = evaluate(scores_model(data, np.zeros(data.matrix.shape)), train, held_out)
    assert result["m1"] == result["m2"] == result["m_margin"] == pytest.approx(20 / 101)
    assert result["match"] == result["mean_margin"] == 0
    assert result["unequal_accuracy"] == 0.5


def test_ties_are_the_average_over_random_orders(make_ratings, scores_model):
    """Breaking the ties of a coarse model at random gives, on average, the expected hit."""
    data = make_ratings(users=60, items=200)
    train, held_out = data.leave_one_out(seed=0)
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 4, data.matrix.shape).astype(float)
    expected = evaluate(scores_model(data, coarse), train, held_out)["m1"]
    broken = [
        evaluate(scores_model(data, coarse + 1e-6 * rng.random(coarse.shape)), train, held_out)["m1"] for _ in range(25)
    ]
    assert expected == pytest.approx(np.mean(broken), abs=4 * np.std(broken) / np.sqrt(25))


def test_figures_of_consistency_need_ratings_and_of_probability_a_probability(make_ratings, scores_model):
    data = make_ratings(ratings=False, items=200)
    train, held_out = data.leave_one_out(seed=0)
    result = evaluate(scores_model(data, np.random.default_rng(0).normal(size=data.matrix.shape)), train, held_out)
    for name in (
        "mean_margin",
        "match",
        "match_per_user",
        "unequal_accuracy",
        "rated_brier",
        "rated_log_loss",
        "brier",
    ):
        assert math.isnan(result[name])
        assert result.counts[name] == 0
    assert 0 <= result["m1"] <= 1


def test_several_held_out_items_are_averaged_inside_the_user(make_ratings, scores_model):
    data = make_ratings(users=40, items=200)
    train, test = data.split(test=0.2, seed=0)
    model = scores_model(data, np.random.default_rng(0).normal(size=data.matrix.shape))
    result = evaluate(model, train, test)
    per_user = []
    for row in range(data.matrix.shape[0]):
        held, liked = stored(test, row), stored(train, row)
        if held:
            others = unmet_items(np.array(sorted({*held, *liked})), 200, uniforms(0, np.array([row]), 100)[0])
            score = model.table[row]
            per_user.append(np.mean([np.count_nonzero(score[others] > score[o]) < 20 for o in held]))
    assert result["m1"] == pytest.approx(np.mean(per_user))
    assert len(result.users) == len(per_user)


def test_a_user_without_training_items_has_m1_and_no_consistency(scores_model):
    train = Interactions.from_csr(csr_matrix(np.array([[0, 0, 0, 0], [5, 0, 3, 0]], dtype=float)))
    held_out = Interactions.from_csr(csr_matrix(np.array([[4, 0, 0, 0], [0, 2, 0, 0]], dtype=float)))
    model = scores_model(train, np.array([[3.0, 2, 1, 0], [0, 3, 2, 1]]))
    result = evaluate(model, train, held_out)
    assert result.counts["m1"] == 2
    assert result.counts["m2"] == result.counts["match"] == 1
    # the second user's held-out item was rated below both others and is predicted above both
    assert result["match"] == 0
    assert result["mean_margin"] == -2.0


def test_standard_errors_are_those_over_users(make_ratings, factor_model):
    data = make_ratings(users=50, items=130)
    train, held_out = data.leave_one_out(seed=0)
    result = evaluate(factor_model(data), train, held_out)
    values = result.per_user["m2"]
    assert result.errors["m2"] == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)))
    assert result.to_frame().filter(measure="m2")["error"].item() == result.errors["m2"]
    assert "m2" in str(result)


def test_diverged_models_and_foreign_ids_are_refused(make_ratings, scores_model):
    data = make_ratings(users=20)
    train, held_out = data.leave_one_out(seed=0)
    with pytest.raises(ValueError, match="not finite"):
        evaluate(scores_model(data, np.full(data.matrix.shape, np.nan)), train, held_out)
    stranger = scores_model(data, np.zeros(data.matrix.shape))
    stranger.items = np.array([f"other {i}" for i in range(len(data.items))])
    with pytest.raises(ValueError, match="every item of the data"):
        evaluate(stranger, train, held_out)
    with pytest.raises(TypeError, match=r"train and test must be Interactions, not str: Interactions.read\(path\)"):
        evaluate(stranger, train, "held-out.csv")
    with pytest.raises(ValueError, match="cut"):
        evaluate(stranger, train, held_out, sampled=10, cut=20)
    with pytest.raises(TypeError, match="margins"):
        evaluate(object(), train, held_out)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), coarse=st.booleans())
def test_shares_stay_between_0_and_1_and_respect_the_ceiling(seed, coarse):
    rng = np.random.default_rng(seed)
    matrix = csr_matrix(rng.integers(0, 4, (12, 30)))
    data = Interactions.from_csr(matrix)
    train, held_out = data.leave_one_out(seed=seed)
    table = rng.integers(0, 3, (12, 30)) if coarse else rng.normal(size=(12, 30))

    class Model:
        users, items = data.users, data.items

        def scores(self, users):
            return table[users].astype(float)

    result = evaluate(Model(), train, held_out, seed=seed)
    for name in ("match", "match_per_user", "unequal_accuracy", "m1", "m2", "m_margin", "sampled_auc"):
        assert 0 <= result[name] <= 1 or math.isnan(result[name])
    unequal = result.per_user["unequal_accuracy"]
    assert (result.per_user["match"][~np.isnan(unequal)] <= unequal[~np.isnan(unequal)] + 1e-12).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), factor=st.floats(0.1, 10), shift=st.floats(-5, 5))
def test_only_the_order_of_scores_matters_for_shares(seed, factor, shift):
    rng = np.random.default_rng(seed)
    data = Interactions.from_csr(csr_matrix(rng.integers(0, 4, (12, 30))))
    train, held_out = data.leave_one_out(seed=seed)
    table = rng.integers(0, 8, (12, 30)).astype(float)

    def model(values):
        class Model:
            users, items = data.users, data.items

            def scores(self, users):
                return values[users]

        return Model()

    plain, moved = (evaluate(model(t), train, held_out) for t in (table, np.exp(table * factor / 8) + shift))
    for name in ("match", "unequal_accuracy", "m1", "m2", "sampled_auc"):
        assert plain[name] == pytest.approx(moved[name], nan_ok=True)


def test_parts_and_scores_of_another_kind_are_refused():
    train, held_out = Interactions.from_csr(csr_matrix([[1, 2, 3], [3, 2, 0]])).leave_one_out(seed=0)
    model = Popularity().fit(train)
    with pytest.raises(TypeError, match="must be Interactions, not DataFrame"):
        evaluate(model, train.to_frame(), held_out)
    model.scores = lambda users: np.zeros((len(users), 2))
    with pytest.raises(ValueError, match=r"have shape \(2, 2\); users x items is \(2, 3\)"):
        evaluate(model, train, held_out)


@pytest.mark.parametrize("measure", [evaluate, evaluate_top_n])
def test_what_was_trained_on_cannot_be_held_out(measure):
    rated = np.array([[0, 5, 3, 0], [0, 0, 0, 0], [4, 0, 2, 1]])
    held = np.array([[0, 0, 3, 0], [0, 0, 0, 0], [0, 3, 2, 0]])
    users, items = ["a", "b", "c"], ["w", "x", "y", "z"]
    train, held_out = (Interactions.from_csr(csr_matrix(part), users, items) for part in (rated, held))
    model = Popularity().fit(train)
    with pytest.raises(ValueError, match=r"2 of 3 held-out .* training part too \(user 'a' with item 'y', for one\)"):
        measure(model, train, held_out)
