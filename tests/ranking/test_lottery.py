"""Weights from a random walk and from a game."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sadrec.ranking import sigmoid
from sadrec.ranking.rank import maximal_lottery, rank_centrality


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_rank_centrality_is_stationary(data, games):
    x = data.draw(games).margins
    n = len(x)
    weights = rank_centrality(x)
    walk = sigmoid(x.T) / max(1, n - 1)
    np.fill_diagonal(walk, 0.0)
    walk[np.diag_indices(n)] = 1 - walk.sum(1)
    np.testing.assert_allclose(weights @ walk, weights, atol=1e-14)
    np.testing.assert_allclose(weights.sum(), float(n > 0))


def test_rank_centrality_of_scores_is_their_softmax_to_full_relative_precision():
    scores = np.linspace(-40, 300, 25)
    softmax = np.exp(scores - scores.max())
    np.testing.assert_allclose(rank_centrality(scores[:, None] - scores), softmax / softmax.sum(), rtol=1e-10)


def test_rank_centrality_survives_margins_beyond_exp():
    scores = np.array([0.0, 5000.0, -9000.0])
    np.testing.assert_allclose(rank_centrality(scores[:, None] - scores), [0.0, 1.0, 0.0], atol=1e-300)


def test_nothing_beats_the_lottery_where_an_item_without_weight_is_hardly_worse():
    """The fifth item loses by 4e-6 alone: the way to the weights ended 1.5e-9 before them."""
    above = [-1.80499297, 1.84079198, 0.43508401, -0.30714955, 0.82687859, -0.60798451, 0.05833297, 0.36286886]
    above += [-1.55715459, 0.38328643, -1.14270604, -1.27867227, -0.18285042, 0.84145321, -1.12728343]
    x = np.zeros((6, 6))
    x[np.triu_indices(6, 1)] = above
    x -= x.T
    p = maximal_lottery(x)
    assert p[4] == 0 and (p[[0, 1, 2, 3, 5]] > 0.05).all()
    assert (x @ p <= 1e-15).all()


def test_almost_nothing_beats_the_lottery_where_a_weight_is_too_small_to_be_told_from_none():
    """The second item has 1e-8; without it no weights even out, and the least squares gave the first item a half."""
    x = np.array([[0, -8.4e-1, 8.7e-9], [8.4e-1, 0, -1.1e-6], [-8.7e-9, 1.1e-6, 0]])
    p = maximal_lottery(x)
    assert p[2] > 1 - 1e-5 and (x @ p).max() < 1e-7


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_nothing_beats_the_maximal_lottery(data, games):
    x = data.draw(games).margins
    p = maximal_lottery(x)
    assert (p >= 0).all()
    assert (x @ p <= 1e-9).all()
    np.testing.assert_allclose(p.sum(), float(len(x) > 0))


def test_a_unique_lottery_is_that_of_a_linear_program():
    rng = np.random.default_rng(0)
    for size in (5, 20, 60):
        x = np.triu(rng.standard_normal((size, size)), 1)
        x = x - x.T
        answer = linprog(np.zeros(size), A_ub=x, b_ub=np.zeros(size), A_eq=np.ones((1, size)), b_eq=[1.0])
        np.testing.assert_allclose(maximal_lottery(x), answer.x, atol=1e-8)


def test_rock_paper_scissors_share_by_the_margin_they_do_not_play_in():
    # Rock's share is the margin between the two others, and so on.
    x = np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [-2.0, 3.0, 0.0]])
    np.testing.assert_allclose(maximal_lottery(x), np.array([3.0, 2.0, 1.0]) / 6, atol=1e-12)


def test_an_item_that_beats_all_others_gets_everything():
    scores = np.array([0.3, 2.0, -1.0, 1.9])
    assert np.array_equal(maximal_lottery(scores[:, None] - scores), [0, 1, 0, 0])


def test_copies_share_what_the_item_would_have_had():
    x = np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [-2.0, 3.0, 0.0]])
    twice = np.array([0, 1, 2, 2, 2])
    np.testing.assert_allclose(
        maximal_lottery(x[np.ix_(twice, twice)]), [3 / 6, 2 / 6, 1 / 18, 1 / 18, 1 / 18], atol=1e-9
    )


def test_when_all_tie_all_share():
    np.testing.assert_allclose(maximal_lottery(np.zeros((4, 4))), 0.25)


def test_no_items():
    assert maximal_lottery(np.zeros((0, 0))).shape == rank_centrality(np.zeros((0, 0))).shape == (0,)


def test_only_the_smith_set_has_to_be_solved_for(monkeypatch):
    scores = np.arange(300.0)
    x = scores[:, None] - scores
    x[np.ix_([0, 1, 2], [0, 1, 2])] = [[0, 1, -1], [-1, 0, 1], [1, -1, 0]]
    ring = -x  # 0, 1 and 2 are a cycle and beat all others
    sizes, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: sizes.append(len(a)) or solve(a, b))
    weights = maximal_lottery(ring)
    np.testing.assert_allclose(weights[:3], 1 / 3)
    assert not weights[3:].any() and set(sizes) == {3}
    sizes.clear()
    assert maximal_lottery(scores[:, None] - scores).tolist() == [0.0] * 299 + [1.0]
    assert not sizes
