"""GibbsSAD keeps the contract of every estimator, and its verbs have the shapes of SAD's."""

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtr

from sadrec import BPR
from sadrec.evaluation import evaluate, evaluate_comparisons, evaluate_top_n
from sadrec.posterior import GibbsSAD
from sadrec.ranking import cyclic_triads
from tests.contract import EstimatorContract, named_checkerboard


class TestGibbsSAD(EstimatorContract):
    model = GibbsSAD
    settings: ClassVar = {"factors": 2, "draws": 60, "warmup": 60, "chains": 2, "negatives": 4}
    another = ("thin", 2)

    def learnt(self, model):
        return [model.drawn.user, model.drawn.item, model.drawn.rival]


@pytest.fixture(scope="module")
def seen():
    """A posterior of interactions."""
    return GibbsSAD(factors=2, draws=30, warmup=30, chains=2).fit(named_checkerboard(), show_progress=False)


def test_many_probabilities_are_each_the_mean_over_draws(posterior):
    users, items, rivals = posterior.users[:, None, None], posterior.items[:, None], posterior.items[None, :]
    together = posterior.probability(users, items, rivals)
    assert together.shape == (3, 5, 5)
    np.testing.assert_allclose(
        together, ndtr(posterior.preference_draws(users, items, rivals) / 1.702).mean(axis=0), rtol=1e-9
    )
    np.testing.assert_allclose(together + together.transpose(0, 2, 1), 1)
    assert isinstance(posterior.probability("up", "a", "b"), float)


def test_margins_scores_and_ranks_are_posterior_means(posterior):
    x = posterior.preference_draws("up", posterior.items[:, None], posterior.items[None, :]).mean(axis=0)
    np.testing.assert_allclose(posterior.preference("up", posterior.items[:, None], posterior.items[None, :]), x)
    np.testing.assert_allclose(posterior.margins("up", None, None), x, atol=1e-5)
    np.testing.assert_allclose(posterior.margins("up", ["b"], ["a", "c"]), x[1:2, [0, 2]], atol=1e-5)
    np.testing.assert_allclose(posterior.scores(["down", "up"])[1], x.mean(axis=1), atol=1e-5)
    order = posterior.items[np.argsort(-x.mean(axis=1))]
    assert posterior.rank("up").items.tolist() == order.tolist() == posterior.leaderboard("up")["item"].to_list()
    assert posterior.rank("up", ["b", "c"], reference=["e"]).scores[0] == pytest.approx(x[[1, 2], 4].max(), abs=1e-5)
    for method in ("wins", "markov", "nash"):
        assert len(posterior.rank("round", method=method)) == 5
    with pytest.raises(ValueError, match="no liked items to compare with"):
        posterior.rank("up", method="liked")


def test_a_tournament_is_of_mean_margins_in_log_odds(posterior):
    game = posterior.tournament("up", ["a", "e"])
    assert game.margins[0, 1] == pytest.approx(posterior.preference("up", "a", "e"), rel=1e-4)
    assert len(posterior.tournament("up", N=3)) == 3
    assert len(posterior.tournament(None)) == 5
    (cycle, *_) = posterior.cycles("round")
    assert cyclic_triads(posterior.tournament("round")).count >= 1
    assert cycle.strength > 0
    steps = posterior.probability("round", cycle.path, np.roll(cycle.path, -1))
    assert cycle.probabilities == pytest.approx(steps)


def test_many_users_get_the_rows_that_each_gets_alone(seen):
    users = seen.users[:4]
    ids, scores = seen.recommend(users, N=30)
    assert ids.shape == scores.shape == (4, 30)
    for row, user in enumerate(users):
        one, values = seen.recommend(user, N=30)
        assert ids[row, : len(one)].tolist() == one.tolist()
        np.testing.assert_allclose(scores[row, : len(one)], values, rtol=1e-5, atol=1e-6)
        assert (scores[row, len(one) :] == -np.inf).all()


def test_what_the_users_liked_may_be_given(seen):
    liked = sp.csr_matrix(([1.0], ([0], [5])), shape=(1, len(seen.items)))
    everything = seen.recommend("user 0", N=40, filter_already_liked_items=False)[0]
    assert len(everything) == 40
    assert set(seen.recommend("user 0", liked, 40)[0]) == set(everything) - {"item 5"}
    with pytest.raises(ValueError, match="a row for each"):
        seen.recommend(seen.users[:2], liked)
    anew = [model.recommend("user 0", liked, recalculate_user=True) for model in (seen, seen.mean_model())]
    assert anew[0][0].tolist() == anew[1][0].tolist()


def test_it_is_evaluated_as_any_model_is(answers):
    data = named_checkerboard()
    train, held_out = data.leave_one_out(seed=0)
    model = GibbsSAD(factors=2, draws=20, warmup=40, chains=2, negatives=2).fit(train, show_progress=False)
    assert evaluate(model, train, held_out)["sampled_auc"] > 0.9
    assert evaluate(model, train, held_out)["log_loss"] < 0.3
    assert evaluate_top_n(model, train, held_out)["recall"] > 0.8
    fitted = GibbsSAD(factors=2, draws=50, warmup=50, chains=2).fit(answers, show_progress=False)
    baseline = BPR(factors=2, iterations=20).fit(answers, show_progress=False)
    assert set(evaluate_comparisons(fitted, answers)) == set(evaluate_comparisons(baseline, answers))
