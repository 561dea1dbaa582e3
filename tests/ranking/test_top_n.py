"""The best N by inner product."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from sadrec.ranking.top_n import ItemIndex, best_of


def top_n(queries, vectors, N, **options):
    return ItemIndex(vectors).search(queries, N, **options)


def _brute_force(queries, vectors, N, seen=None, allowed=None, blocked=()):
    """Sort all items by score, then by position."""
    items, scores = np.full((len(queries), N), -1), np.full((len(queries), N), -np.inf, np.float32)
    for row, query in enumerate(queries):
        score = vectors @ query
        pool = range(len(vectors)) if allowed is None else sorted(set(allowed))
        left_out = set(blocked) | (set() if seen is None else set(seen[[row]].indices))
        best = sorted((i for i in pool if i not in left_out), key=lambda i: (-score[i], i))[:N]
        items[row, : len(best)] = best
        scores[row, : len(best)] = score[best]
    return items, scores


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_it_is_the_head_of_a_sort(data):
    users, catalogue, factors = (data.draw(st.integers(low, high)) for low, high in ((0, 6), (0, 90), (1, 6)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    # Whole numbers: exact scores, many of them equal.
    queries = rng.integers(-2, 3, (users, factors)).astype(np.float32)
    vectors = rng.integers(-2, 3, (catalogue, factors)).astype(np.float32)
    N = data.draw(st.integers(0, 100))
    seen = csr_matrix(rng.random((users, catalogue)) < data.draw(st.sampled_from([0.0, 0.3, 1.0])))
    item = st.integers(0, max(0, catalogue - 1))
    lists = st.none() | st.lists(item, max_size=catalogue)
    allowed, blocked = data.draw(lists), data.draw(lists)
    result = top_n(queries, vectors, N, seen=seen, allowed=allowed, blocked=blocked, num_threads=2)
    expected = _brute_force(queries, vectors, N, seen, allowed, blocked or ())
    assert np.array_equal(result[0], expected[0])
    assert np.array_equal(result[1], expected[1])


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((700, 30)).astype(np.float32)
    vectors = rng.standard_normal((5000, 30)).astype(np.float32)
    return queries, vectors, random_array((700, 5000), density=0.05, rng=rng, format="csr")


def test_users_and_items_beyond_one_tile(crowd, monkeypatch):
    monkeypatch.setattr("sadrec.ranking.top_n._ROWS", 256)
    queries, vectors, seen = crowd
    items, _ = top_n(queries, vectors, 20, seen=seen)
    expected, _ = _brute_force(queries.astype(np.float64)[::50], vectors.astype(np.float64), 20, seen[::50])
    assert np.array_equal(items[::50], expected)


def test_same_bits_for_any_number_of_threads(crowd):
    queries, vectors, seen = crowd
    one, two, three = (top_n(queries, vectors, 10, seen=seen, num_threads=threads) for threads in (1, 2, 3))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])
    assert np.array_equal(one[0], three[0])
    assert np.array_equal(one[1], three[1])


def test_a_user_alone_gets_the_same_bits_as_among_many(crowd):
    queries, vectors, seen = crowd
    items, scores = top_n(queries, vectors, 10, seen=seen)
    for user in (0, 333, 699):
        alone = top_n(queries[[user]], vectors, 10, seen=seen[[user]])
        assert np.array_equal(alone[0][0], items[user])
        assert np.array_equal(alone[1][0], scores[user])


def test_an_allow_list_keeps_the_scores(crowd):
    queries, vectors, _ = crowd
    whole = top_n(queries[:5], vectors, 10)
    only = top_n(queries[:5], vectors, 10, allowed=np.unique(whole[0]))
    assert np.array_equal(whole[0], only[0])
    assert np.array_equal(whole[1], only[1])


def test_where_nothing_is_left_there_is_padding():
    items, scores = top_n(np.ones((2, 1)), np.ones((3, 1)), 5, blocked=[0, 1, 2])
    assert (items == -1).all()
    assert (scores == -np.inf).all()


def test_seen_items_in_any_order_of_storage():
    seen = csr_matrix((np.ones(3), np.array([4, 0, 2]), np.array([0, 3])), shape=(1, 5))
    items, _ = top_n(np.ones((1, 1)), np.arange(5.0)[:, None], 5, seen=seen)
    assert items.tolist() == [[3, 1, -1, -1, -1]]


def test_progress_reports_every_user(crowd, monkeypatch):
    monkeypatch.setattr("sadrec.ranking.top_n._ROWS", 256)
    queries, vectors, _ = crowd
    done = []
    top_n(queries, vectors, 3, progress=done.append)
    assert sum(done) == len(queries)
    assert len(done) > 1


def test_memory_is_one_tile_however_many_users(monkeypatch):
    sizes = []
    real = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b, out: sizes.append(out.size) or real(a, b, out=out))
    top_n(np.ones((5000, 2)), np.ones((20000, 2)), 3)
    assert max(sizes) <= 2048 * 4096


def test_scores_that_are_not_numbers_are_never_recommended():
    items, _ = top_n(np.ones((1, 1)), np.array([[1.0], [np.nan], [2.0]]), 3)
    assert items.tolist() == [[2, 0, -1]]


def test_an_index_can_be_asked_again():
    index = ItemIndex(np.arange(6.0)[:, None])
    assert repr(index) == "ItemIndex(items=6, factors=1)"
    assert index.search(np.ones((1, 1)), 1)[0].tolist() == [[5]]
    assert index.search(-np.ones((1, 1)), 1)[0].tolist() == [[0]]


def test_what_is_wrong_is_named():
    index = ItemIndex(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"queries.*users, 2"):
        index.search(np.ones((1, 3)))
    with pytest.raises(ValueError, match="N must be a whole number, at least 0"):
        index.search(np.ones((1, 2)), -1)
    with pytest.raises(ValueError, match="N must be a whole number"):
        index.search(np.ones((1, 2)), 2.5)
    with pytest.raises(ValueError, match="seen"):
        index.search(np.ones((1, 2)), seen=csr_matrix((2, 3)))
    with pytest.raises(ValueError, match="allowed holds 3"):
        index.search(np.ones((1, 2)), allowed=[3])
    with pytest.raises(ValueError, match="blocked holds -1"):
        index.search(np.ones((1, 2)), blocked=[-1])
    with pytest.raises(ValueError, match="items, factors"):
        ItemIndex(np.ones(3))


def test_the_best_of_given_scores_are_those_of_a_search(crowd):
    queries, vectors, seen = crowd
    some, blocked = slice(0, 40), [3, 5, 8]
    items, scores = best_of(queries[some] @ vectors.T, 12, seen=seen[some], blocked=blocked)
    expected = top_n(queries[some], vectors, 12, seen=seen[some], blocked=blocked)
    assert np.array_equal(items, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=1e-5)
    items, scores = best_of(np.array([[1.0, 2.0]]), 3, allowed=[0])
    assert items.tolist() == [[0, -1, -1]] and scores.tolist() == [[1.0, -np.inf, -np.inf]]


def test_a_search_for_one_finds_what_a_search_for_many_does():
    rng = np.random.default_rng(0)
    index = ItemIndex(rng.integers(-3, 4, (300, 5)))  # many equal scores
    queries = rng.integers(-3, 4, (20, 5)).astype(np.float32)
    for row, query in enumerate(queries):
        seen = np.sort(rng.choice(300, row * 15, replace=False)).astype(np.int32)
        matrix = csr_matrix((np.ones(seen.size), seen, [0, seen.size]), shape=(1, 300))
        items, scores = index.search(query[None], 40, seen=matrix)
        real = items[0] >= 0
        for one, expected in zip(index.search_one(query, 40, seen), (items[0][real], scores[0][real]), strict=True):
            np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("kind", ["normal", "few values", "one far"])
@pytest.mark.parametrize("N", [0, 1, 10, 100])
def test_rough_products_of_a_large_catalogue_lead_to_the_exact_list(monkeypatch, kind, N):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((3000, 9)).astype(np.float32)
    if kind == "few values":  # equal scores, which no rough product tells apart
        vectors = np.rint(vectors)
    if kind == "one far":
        vectors[7] = 20.0
    exact = ItemIndex(vectors)
    assert exact._rough is None
    monkeypatch.setattr("sadrec.ranking.top_n._CACHED", 0)
    index = ItemIndex(vectors)
    assert index._rough is not None
    for query in rng.standard_normal((10, 9)).astype(np.float32):
        seen = np.flatnonzero(rng.random(3000) < 0.3).astype(np.int32)
        (items, scores), (expected, exact_scores) = (one.search_one(query, N, seen) for one in (index, exact))
        assert np.array_equal(items, expected) and np.array_equal(scores, exact_scores) and len(items) == N


def test_items_too_far_apart_for_one_unit_have_no_rough_products(monkeypatch):
    monkeypatch.setattr("sadrec.ranking.top_n._CACHED", 0)
    vectors = np.ones((2000, 3), np.float32)
    assert ItemIndex(vectors)._rough is not None and ItemIndex(0 * vectors)._rough is None
    vectors[0] = 1e9
    assert ItemIndex(vectors)._rough is None


@pytest.mark.parametrize("factors", [1, 64, 65536])
def test_rough_scores_are_wrong_by_no_more_than_is_allowed_for(monkeypatch, factors):
    from sadrec.ranking._selection import rough_scores

    monkeypatch.setattr("sadrec.ranking.top_n._CACHED", 0)
    rng = np.random.default_rng(0)
    for vectors in (rng.uniform(0.97, 1, (30, factors)), np.repeat(rng.uniform(0.97, 1, (30, 1)), factors, 1)):
        index, query = ItemIndex(vectors), np.full(factors, 1.7, np.float32)
        rows, unit = index._rough
        scores = np.empty(30, np.float32)
        rough_scores(query * np.float32(unit), rows, scores)
        exact = index.search(query[None], 30)
        assert np.abs(scores[exact[0][0]] - exact[1][0].astype(np.float64)).max() <= index._rough_error(query)


def test_rough_rows_take_half_as_much_memory_as_the_vectors_on_the_way_too():
    index = ItemIndex(np.random.default_rng(0).standard_normal((40_000, 64), np.float32))
    tracemalloc.start()
    rows, _ = index._rough
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.nbytes == index.vectors.nbytes // 2 and peak < 1.5 * rows.nbytes
