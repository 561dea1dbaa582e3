"""Fits without factors, where every judge has scores of their own: each verb knows the person."""

import numpy as np
import pytest

from sadrec import SAD, Comparisons

JUDGES, ITEMS = 12, 12


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    scores = 1.5 * rng.standard_normal((JUDGES, ITEMS))  # every judge has other scores: no factor explains them
    scores[1] = scores[0]  # but for two who agree
    return scores


def answers(scores, judges, count, seed):
    rng = np.random.default_rng(seed)
    judge, winner, step = rng.choice(judges, count), rng.integers(ITEMS, size=count), rng.integers(1, ITEMS, count)
    loser = (winner + step) % ITEMS
    won = rng.random(count) < 1 / (1 + np.exp(scores[judge, loser] - scores[judge, winner]))
    return judge, np.where(won, winner, loser), np.where(won, loser, winner)


@pytest.fixture(scope="module")
def league(scores):
    comparisons = answers(scores, np.arange(JUDGES), 3000, 1)
    data = Comparisons.from_indices(*comparisons, users=np.arange(JUDGES), items=np.arange(ITEMS))
    model = SAD(num_threads=1).fit(data, show_progress=False)
    assert not model.state.belief.by_product and not model.user_factors.any()
    return model


@pytest.fixture(scope="module")
def visitor(league, scores):
    """Somebody with the scores of judge 3, known by 250 answers."""
    _, winner, loser = answers(scores, [3], 250, 2)
    comparisons = Comparisons.from_indices(0 * winner, winner, loser, users=["eve"], items=np.arange(ITEMS))
    return league.visitor(comparisons=comparisons, name="eve")


def test_lists_and_rankings_are_of_what_the_judge_thinks(league, scores):
    for judge in range(JUDGES):
        own = league.margins(judge, None, None).mean(axis=1)
        assert np.corrcoef(own, scores[judge])[0, 1] > 0.9
        ids, values = league.recommend(judge, N=ITEMS)
        assert ids.tolist() == np.argsort(-own, kind="stable").tolist() == league.rank(judge).items.tolist()
        np.testing.assert_allclose(values, np.sort(own)[::-1], atol=1e-4)
    many, _ = league.recommend(league.users, N=3)
    assert [row.tolist() for row in many] == [league.recommend(judge, N=3)[0].tolist() for judge in league.users]


def test_the_nash_average_is_of_what_the_judge_thinks(league):
    for judge in (0, 5):
        ids, _ = league.recommend(judge, N=1, method="nash")
        game = league.tournament(judge, league.items)
        assert ids[0] == game.condorcet_winner() == league.rank(judge, method="nash").items[0]


def test_judges_who_agree_are_alike(league):
    ids, cosines = league.similar_users(0, N=3)
    assert ids[:2].tolist() == [0, 1] and cosines[1] > 0.9 > cosines[2]


def test_a_visitor_by_comparisons_has_scores_of_their_own(league, visitor, scores):
    own = visitor.margins("eve", None, None).mean(axis=1)
    assert np.corrcoef(own, scores[3])[0, 1] > 0.9
    assert np.corrcoef(own, league.margins(3, None, None).mean(axis=1))[0, 1] > 0.9
    ids, _ = visitor.recommend("eve", N=3)
    assert ids.tolist() == visitor.rank("eve").items[:3].tolist()
    assert ids.tolist() == visitor.recommend("eve", N=ITEMS, method="margin", filter_items=[])[0][:3].tolist()


def test_a_list_for_a_visitor_is_that_of_the_visitor(league, visitor, scores):
    _, winner, loser = answers(scores, [3], 250, 2)
    comparisons = Comparisons.from_indices(0 * winner, winner, loser, users=["eve"], items=np.arange(ITEMS))
    for one, other in zip(
        league.recommend_for(comparisons=comparisons, N=5), visitor.recommend("eve", N=5), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_answers_make_a_visitor_surer(league, visitor):
    nobody = league.visitor()
    one, other = np.triu_indices(ITEMS, 1)
    assert (visitor.deviation("eve", one, other) < nobody.deviation("visitor", one, other)).all()
    fit = league.deviation(3, one, other).mean()
    assert visitor.deviation("eve", one, other).mean() == pytest.approx(fit, rel=0.25)
