"""A posterior answers the verbs of SAD from its draws, in log-odds."""

import numpy as np
import pytest

from sadrec import SAD, Comparisons
from sadrec.posterior import GibbsSAD


def test_a_cycle_has_the_probability_that_all_its_steps_hold(posterior):
    (cycle, *_) = posterior.cycles("round")
    steps = posterior.preference_draws("round", cycle.path, np.roll(cycle.path, -1))
    assert cycle.probability == (steps > 0).all(axis=1).mean()


def test_the_strengths_of_a_leaderboard_are_those_of_the_draws(posterior):
    table = posterior.leaderboard()
    scores = 1.702 * posterior.drawn.averaged().scores(0, np.arange(5))
    np.testing.assert_allclose(np.sort(table["strength"]), np.sort(scores.mean(axis=0)), atol=1e-5)
    low = dict(zip(table["item"], table["lower"], strict=True))
    np.testing.assert_allclose([low[item] for item in posterior.items], np.quantile(scores, 0.05, axis=0), atol=1e-5)
    assert table["wins"].sum() == table["losses"].sum() == len(posterior.state.belief.observed.user)


def test_an_explanation_sums_to_the_posterior_mean(posterior):
    reason = posterior.explain("up", "a", "e")
    assert reason.margin == pytest.approx(posterior.preference("up", "a", "e"))
    assert reason.contributions.sum() + reason.pair_part == pytest.approx(reason.margin)
    assert reason.probability == posterior.probability("up", "a", "e")


def test_a_visitor_is_one_of_the_mean_model(posterior):
    comparisons = Comparisons.from_pairs([("a", "e"), ("b", "d")])
    visitor, other = (one.visitor(comparisons=comparisons, name="eve") for one in (posterior, posterior.mean_model()))
    assert type(visitor) is SAD and visitor.deviation("eve", "a", "e") > 0
    np.testing.assert_array_equal(visitor.user_factors, other.user_factors)


def test_lists_by_a_tournament_are_of_mean_margins(posterior):
    ids, scores = posterior.recommend("round", N=5, method="nash")
    order = posterior.rank("round", method="nash")
    np.testing.assert_array_equal(ids, order.items)
    np.testing.assert_allclose(scores, order.scores, atol=1e-6)
    many, _ = posterior.recommend(posterior.users, N=5)
    np.testing.assert_array_equal(many[list(posterior.users).index("up")], posterior.rank("up").items)


def test_a_loaded_posterior_has_the_results_that_its_leaderboard_shows(posterior, tmp_path):
    posterior.save(tmp_path / "p.posterior")
    assert GibbsSAD.load(tmp_path / "p.posterior").leaderboard().equals(posterior.leaderboard())


def test_items_named_twice_are_refused(posterior):
    with pytest.raises(ValueError, match="the same item twice"):
        posterior.rank("up", ["a", "a"])
