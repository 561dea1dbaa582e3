"""Recommendations in two stages."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sadrec.ranking import Parameters
from sadrec.ranking.belief import Gaussian, Point
from sadrec.ranking.parameters import mean_margins
from sadrec.ranking.rank import METHODS, rank
from sadrec.ranking.top_n import ItemIndex, best_of, recommend, similar_items, similar_users


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_it_is_the_head_of_a_ranking_of_the_candidates(data, some_parameters):
    p = data.draw(some_parameters)
    method = data.draw(st.sampled_from(METHODS))
    N, candidates = data.draw(st.integers(0, 12)), data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    liked = csr_matrix(rng.random((p.n_users, p.n_items)) < 0.3)
    items, scores = recommend(Point(p), None, N, method=method, candidates=candidates, liked=liked)
    assert items.shape == scores.shape == (p.n_users, N)
    for user in range(p.n_users):
        met = liked[[user]].indices
        pool = np.setdiff1d(np.arange(p.n_items), met)
        wanted = N if method == "margin" else max(N, candidates)
        # As far as they can be told apart in single precision, the candidates are those of the largest margin.
        short = pool[np.argsort(-mean_margins(p, user, pool).astype(np.float32).round(4), kind="stable")][:wanted]
        way = "margin" if method == "liked" and not met.size else method
        given_up = min(N, len(short))
        assert (items[user, given_up:] == -1).all()
        assert (scores[user, given_up:] == -np.inf).all()
        result = items[user, :given_up]
        assert len(set(result)) == given_up
        assert not set(result) & set(met)
        assert (np.diff(scores[user, :given_up]) <= 0).all()
        if wanted >= len(pool):
            order = rank(Point(p), user, short, way, liked=met)
            np.testing.assert_allclose(scores[user, :given_up], order.scores[:N], atol=1e-4)


def test_a_tournament_can_change_the_order(rock_paper_scissors):
    by_margin, _ = recommend(Point(rock_paper_scissors), [0], 1)
    by_game, weights = recommend(Point(rock_paper_scissors), [0], 3, method="nash")
    assert by_margin.tolist() != by_game[:, :1].tolist() or weights[0, 0] < 1
    np.testing.assert_allclose(weights, [[3 / 6, 2 / 6, 1 / 6]], atol=1e-6)


def test_one_user_is_as_among_many():
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.standard_normal((40, 5)).astype(np.float32) for _ in range(3)))
    for method in ("margin", "wins", "markov", "nash"):
        items, scores = recommend(Point(p), None, 5, method=method, candidates=20)
        alone = recommend(Point(p), [7], 5, method=method, candidates=20)
        assert np.array_equal(alone[0][0], items[7])
        assert np.array_equal(alone[1][0], scores[7])


@pytest.mark.parametrize("method", METHODS)
def test_candidates_are_held_for_a_block_of_users_only(method, monkeypatch):
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.standard_normal((40, 5)).astype(np.float32) for _ in range(3)), np.arange(40.0))
    liked = csr_matrix(rng.random((40, 40)) < 0.2)
    whole = recommend(Point(p), None, 5, method=method, candidates=20, liked=liked)
    searches, search = [], ItemIndex.search

    def counted(index, queries, *rest, **options):
        searches.append(len(queries))
        return search(index, queries, *rest, **options)

    monkeypatch.setattr(ItemIndex, "search", counted)
    monkeypatch.setattr("sadrec.ranking.top_n._BLOCK", 16)
    for users in (None, np.arange(40), p.user_factors):
        parts = recommend(Point(p), users, 5, method=method, candidates=20, liked=liked)
        assert np.array_equal(parts[0], whole[0])
        assert np.array_equal(parts[1], whole[1])
    assert searches == [16, 16, 8] * 3


def test_a_vector_is_a_user():
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.standard_normal((40, 5)).astype(np.float32) for _ in range(3)), np.arange(40.0))
    assert np.array_equal(recommend(Point(p), p.user_factors[[3]])[0], recommend(Point(p), [3])[0])


def test_liked_items_stay_if_asked():
    p = Parameters(np.ones((1, 1)), np.arange(4.0)[:, None])
    liked = csr_matrix([[0, 0, 0, 1]])
    assert recommend(Point(p), [0], 2, liked=liked)[0].tolist() == [[2, 1]]
    assert recommend(Point(p), [0], 2, liked=liked, leave_out_liked=False)[0].tolist() == [[3, 2]]


def test_no_users_give_no_rows():
    p = Parameters(np.ones((1, 1)), np.arange(4.0)[:, None])
    assert recommend(Point(p), [], 3)[0].shape == (0, 3)


def test_progress_reports_every_user():
    p = Parameters(np.ones((5, 1)), np.arange(4.0)[:, None])
    for method in ("margin", "wins"):
        done = []
        recommend(Point(p), None, 2, method=method, progress=done.append)
        assert sum(done) == 5


def test_what_is_wrong_is_named():
    p = Parameters(np.ones((2, 1)), np.ones((3, 1)))
    with pytest.raises(ValueError, match=r"liked must have a row per user.*\(1, 3\), not \(2, 3\)"):
        recommend(Point(p), [0], liked=csr_matrix((2, 3)))
    with pytest.raises(ValueError, match="'elo'"):
        recommend(Point(Parameters(np.ones((1, 1)), np.ones((2, 1)))), method="elo")


@pytest.fixture(scope="module")
def opinionated():
    """Users with scores of their own for single items, which no index can search."""
    rng = np.random.default_rng(0)
    factors = (rng.standard_normal((5, 2)), rng.standard_normal((12, 2)), rng.random((12, 2)), rng.standard_normal(12))
    p = Parameters(*(part.astype(np.float32) for part in factors))
    own, none = np.sort(rng.permutation(60)[:20]), np.empty(0)
    certain = np.zeros((5, 3, 3), np.float32), np.zeros((12, 6, 6), np.float32)
    means, variances = (3 * rng.standard_normal(20)).astype(np.float32), np.ones(20, np.float32)
    return Gaussian(p, *certain, np.ones((4, 2)), np.empty(0, np.int64), none, none, 0.0, own, means, variances)


def test_scores_of_their_own_count_a_few_users_at_a_time(opinionated, monkeypatch):
    monkeypatch.setattr("sadrec.ranking.top_n._ROWS", 2)
    monkeypatch.setattr("sadrec.ranking.top_n._COLUMNS", 12)
    liked = csr_matrix(np.random.default_rng(1).random((3, 12)) < 0.3)
    done, users = [], np.array([4, 0, 3])
    items, scores = recommend(opinionated, users, 8, liked=liked, blocked=[5], progress=done.append)
    expected = best_of(opinionated.scores(users), 8, seen=liked, blocked=[5])
    assert np.array_equal(items, expected[0]) and np.array_equal(scores, expected[1]) and done == [2, 1]
    assert not np.array_equal(items, recommend(Point(opinionated.parameters), users, 8, liked=liked, blocked=[5])[0])
    empty = recommend(opinionated, [], 4)
    assert empty[0].shape == empty[1].shape == (0, 4)


@pytest.mark.parametrize("method", ["wins", "markov", "nash", "liked"])
def test_scores_of_their_own_count_in_every_order(opinionated, method):
    liked = csr_matrix(np.random.default_rng(1).random((5, 12)) < 0.3)
    items, scores = recommend(opinionated, None, 4, method=method, liked=liked, candidates=6)
    for user in range(5):
        best = best_of(opinionated.scores(user), 6, seen=liked[[user]])[0][0]
        order = rank(opinionated, user, best, method, liked=liked[[user]].indices)
        assert items[user].tolist() == order.items[:4].tolist()
        np.testing.assert_allclose(scores[user], order.scores[:4], rtol=1e-6)


def test_ten_of_200_candidates_are_recommended_unless_other_numbers_are_given():
    p = Parameters(np.ones((1, 1)), np.arange(300.0)[:, None])
    items, scores = recommend(Point(p), method="wins")
    assert items.tolist() == [list(range(299, 289, -1))] and scores.tolist() == [list(range(199, 189, -1))]
    assert similar_items(p, 0)[0].size == similar_users(Parameters(p.item_factors, p.item_factors), 0)[0].size == 10
    assert best_of(np.zeros((1, 20)))[0].size == ItemIndex(p.item_factors).search(np.ones((1, 1)))[0].size == 10
