"""Lists against a plain loop, and scikit-learn's nDCG."""

import math

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.metrics import ndcg_score

from sadrec import SAD
from sadrec.data import DataWarning, Interactions
from sadrec.evaluation import EASE, evaluate, evaluate_top_n, top_n
from sadrec.evaluation.top_n import TOP_N_MEASURES, best


def by_hand(table, train, test, n):
    """Every measure, one user and one place at a time."""
    seen, wanted = train.matrix.toarray() > 0, test.matrix.toarray() > 0
    users, items = seen.shape
    popularity = seen.sum(axis=0)
    shown = np.zeros(items)
    rows = []
    for u in range(users):
        if not wanted[u].any():
            continue
        ranked = [i for i in np.argsort(-table[u]).tolist() if not seen[u, i]][:n]
        hits = [wanted[u, i] for i in ranked]
        shown[ranked] += 1
        relevant = wanted[u].sum()
        dcg = sum(h / math.log2(p + 2) for p, h in enumerate(hits))
        ideal = sum(1 / math.log2(p + 2) for p in range(min(n, relevant)))
        ap = sum(sum(hits[: p + 1]) / (p + 1) for p, h in enumerate(hits) if h) / min(n, relevant)
        own = popularity[seen[u]].mean() if seen[u].any() else math.nan
        rows.append(
            {
                "ndcg": dcg / ideal,
                "recall": sum(hits) / relevant,
                "precision": sum(hits) / n,
                "hit_rate": float(any(hits)),
                "mrr": 1 / (hits.index(True) + 1) if any(hits) else 0.0,
                "map": ap,
                "popularity_bias": (popularity[ranked].mean() - own) / own,
            }
        )
    figures = {name: np.nanmean([r[name] for r in rows]) for name in rows[0]}
    figures["coverage"] = np.count_nonzero(shown) / items
    return figures


@pytest.mark.parametrize("n", [1, 5, 20])
def test_every_measure_is_what_a_plain_loop_gives(make_ratings, scores_model, n):
    data = make_ratings(users=40, items=90, ratings=False)
    train, test = data.split(test=0.3, seed=1)
    table = np.random.default_rng(0).normal(size=data.matrix.shape)
    result = evaluate_top_n(scores_model(data, table), train, test, N=n)
    expected = by_hand(table, train, test, n)
    assert set(result) == set(TOP_N_MEASURES)
    for name, value in expected.items():
        assert result[name] == pytest.approx(value), name


def test_ndcg_is_that_of_scikit_learn(make_ratings, scores_model):
    data = make_ratings(users=30, items=50, ratings=False)
    train, test = data.split(test=0.3, seed=1)
    table = np.random.default_rng(0).normal(size=data.matrix.shape)
    table[train.matrix.toarray() > 0] = -100
    wanted = test.matrix.toarray() > 0
    rows = wanted.any(axis=1)
    expected = ndcg_score(wanted[rows], table[rows], k=10)
    assert evaluate_top_n(scores_model(data, table), train, test, N=10)["ndcg"] == pytest.approx(expected)


def test_several_lengths_at_once_are_each_alone(make_ratings, scores_model):
    data = make_ratings(users=40, items=90)
    train, test = data.split(test=0.3, seed=1)
    model = scores_model(data, np.random.default_rng(0).normal(size=data.matrix.shape))
    both = evaluate_top_n(model, train, test, N=(5, 12))
    for n in (5, 12):
        alone = evaluate_top_n(model, train, test, N=n)
        for name in TOP_N_MEASURES:
            assert both[f"{name}@{n}"] == alone[name]


def test_blocks_do_not_change_the_result(make_ratings, scores_model, monkeypatch):
    data = make_ratings(users=40, items=90)
    train, test = data.split(test=0.3, seed=1)
    model = scores_model(data, np.random.default_rng(0).normal(size=data.matrix.shape))
    whole = dict(evaluate_top_n(model, train, test))
    monkeypatch.setattr(top_n, "_BLOCK", 200)
    assert dict(evaluate_top_n(model, train, test)) == whole


def test_margins_only_models_are_ranked_by_mean_margin(make_ratings, factor_model, margins_model):
    data = make_ratings(users=20, items=60)
    train, test = data.split(test=0.3, seed=1)
    model = factor_model(data)
    assert dict(evaluate_top_n(margins_model(model), train, test)) == pytest.approx(
        dict(evaluate_top_n(model, train, test))
    )


def test_a_model_whose_ids_are_in_another_order_scores_the_same(make_ratings, scores_model):
    data = make_ratings(users=30, items=60)
    train, test = data.split(test=0.3, seed=0)
    table = np.random.default_rng(0).normal(size=data.matrix.shape)
    model, turned = scores_model(data, table), scores_model(data, table)
    turned.items, turned.table = data.items[::-1], table[:, ::-1]
    assert dict(evaluate_top_n(model, train, test)) == dict(evaluate_top_n(turned, train, test))


def test_lists_longer_than_what_is_left_have_empty_places(scores_model):
    train = Interactions.from_csr(csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 0, 1]], dtype=float)))
    test = Interactions.from_csr(csr_matrix(np.array([[0, 0, 1, 0], [1, 0, 0, 0]], dtype=float)))
    result = evaluate_top_n(scores_model(train, np.tile([0.0, 1, 2, 3], (2, 1))), train, test, N=10)
    assert result["precision"] == pytest.approx(0.1)
    assert result["recall"] == 1.0
    assert result["mrr"] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_among_equals_the_stored_order_has_no_say(make_ratings, scores_model):
    """A model that says nothing finds about as much as chance, wherever the wanted items are stored."""
    matrix = np.zeros((20, 100))
    matrix[:, 0] = 1
    matrix[:, 50] = 1
    data = Interactions.from_csr(csr_matrix(matrix))
    train = Interactions.from_csr(csr_matrix(matrix * (np.arange(100) == 50)))
    test = Interactions.from_csr(csr_matrix(matrix * (np.arange(100) == 0)))
    recalls = [evaluate_top_n(scores_model(data, matrix * 0), train, test, N=10, seed=s)["recall"] for s in range(60)]
    assert np.mean(recalls) == pytest.approx(10 / 99, abs=0.13)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    users=st.integers(1, 5),
    items=st.integers(1, 30),
    length=st.integers(1, 35),
    levels=st.integers(1, 6),
)
def test_best_orders_by_score_then_by_the_given_order(seed, users, items, length, levels):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (users, items)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    order = rng.permutation(items)
    place = np.argsort(order)
    chosen = best(scores, length, order)
    for row in range(users):
        expected = sorted(np.flatnonzero(scores[row] > -np.inf), key=lambda i: (-scores[row, i], place[i]))[:length]
        assert chosen[row].tolist() == expected + [-1] * (length - len(expected))


def test_bad_input_is_refused(make_ratings, scores_model):
    data = make_ratings(users=20)
    train, test = data.split(test=0.3, seed=0)
    model = scores_model(data, np.zeros(data.matrix.shape))
    for bad in (0, (), (10, 0)):
        with pytest.raises(ValueError, match="N must be"):
            evaluate_top_n(model, train, test, N=bad)
    with pytest.raises(ValueError, match="NaN"):
        evaluate_top_n(scores_model(data, np.full(data.matrix.shape, np.nan)), train, test)
    with pytest.raises(ValueError, match="shape"):
        evaluate_top_n(scores_model(data, np.zeros((20, 3))), train, test)


@pytest.mark.parametrize("judge", [evaluate_top_n, evaluate])
def test_a_model_is_not_judged_by_what_it_was_fitted_on(judge):
    matrix = sp.random_array((30, 20), density=0.4, rng=np.random.default_rng(0), format="csr")
    data = Interactions.from_csr(matrix, items=[f"i{n}" for n in range(20)])
    train, test = data.split(0.2)
    shuffled = Interactions.from_csr(matrix[::-1], users=np.arange(30)[::-1], items=data.items)  # rows elsewhere
    for model in (SAD(2, iterations=1), EASE()):
        judge(model.fit(train, show_progress=False), train, test)
        for fitted_on in (data, shuffled):
            with pytest.raises(ValueError, match="held-out interactions are what the model was fitted on"):
                judge(model.fit(fitted_on, show_progress=False), train, test)


def test_two_published_files_are_judged_by_their_ids(make_ratings, scores_model):
    """The test file's own ids and order are those of the training file; what is new in it is left out, and said."""
    whole, held_out = make_ratings(users=40, items=30).split(test=0.3, seed=1)
    table = np.random.default_rng(0).normal(size=whole.matrix.shape)
    model = scores_model(whole, table)
    rows = held_out.to_frame().sample(fraction=1.0, shuffle=True, seed=0)
    alone = Interactions.from_frame(rows)
    assert alone.shape != whole.shape or not np.array_equal(alone.items, whole.items)
    assert dict(evaluate_top_n(model, whole, alone)) == dict(evaluate_top_n(model, whole, held_out))
    assert dict(evaluate(model, whole, alone)) == pytest.approx(dict(evaluate(model, whole, held_out)), nan_ok=True)
    stranger = pl.DataFrame(
        {"user": [whole.users[0].item(), -7], "item": ["new", whole.items[0].item()], "rating": [1.0, 1.0]}
    )
    new = Interactions.from_frame(pl.concat([rows, stranger], how="vertical_relaxed"))
    with pytest.warns(
        DataWarning, match=f"2 of {len(new)} test interactions are left out: the training part does not"
    ) as warned:
        assert dict(evaluate_top_n(model, whole, new)) == dict(evaluate_top_n(model, whole, held_out))
        evaluate(model, whole, new)
    assert {warning.filename for warning in warned} == {__file__}
    with pytest.raises(ValueError, match="no test interaction has a user and an item of the training part"):
        evaluate_top_n(model, whole, Interactions.from_frame(rows.with_columns(pl.col("user").cast(pl.String))))
