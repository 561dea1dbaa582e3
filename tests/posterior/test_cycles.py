"""Cycles in the draws."""

import itertools

import numpy as np
import pytest

from sadrec.posterior.cycles import ones
from sadrec.ranking.intransitivity import intransitivity


def all_margins(posterior, user):
    """Draws of all preferences of a user, (draws, items, items)."""
    return posterior.preference_draws(user, posterior.items[:, None], posterior.items[None, :])


def shares(x):
    """The share of margins, (..., items, items), that no scores explain."""
    scores = x.mean(axis=-1)
    rest = x - (scores[..., :, None] - scores[..., None, :])
    return (rest**2).sum(axis=(-2, -1)) / (x**2).sum(axis=(-2, -1))


def test_the_probability_of_a_cycle_is_the_share_of_draws_that_have_it(posterior):
    path = ["a", "b", "c"]
    x = np.stack([posterior.preference_draws("round", i, j) for i, j in (("a", "b"), ("b", "c"), ("c", "a"))])
    assert posterior.cycle_probability("round", path) == (x > 0).all(axis=0).mean()
    assert posterior.cycle_probability("up", path) < 0.2


def test_a_user_who_answers_in_a_cycle_has_credible_cycles_and_others_do_not(posterior):
    result = posterior.credible_cycles("round", least=0.5)
    assert result
    assert result[0].probability > 0.8
    assert [cycle.probability for cycle in result] == sorted((cycle.probability for cycle in result), reverse=True)
    assert not posterior.credible_cycles("up", least=0.5)
    for cycle in result:
        assert cycle.probability == pytest.approx(posterior.cycle_probability("round", cycle.path))
        beats = [
            posterior.probability_beats("round", i, j)
            for i, j in zip(cycle.path, (*cycle.path[1:], cycle.path[0]), strict=True)
        ]
        assert cycle.weakest == pytest.approx(min(beats))


def test_all_cycles_are_found(posterior):
    result = {tuple(sorted(c.path)): c.probability for c in posterior.credible_cycles("round", least=0.0, N=None)}
    for triple in itertools.combinations("abcde", 3):
        both = [posterior.cycle_probability("round", order) for order in (triple, triple[::-1])]
        assert result[triple] == pytest.approx(max(both))


def test_the_cycles_of_the_crowd_are_those_of_the_mean_over_users(posterior):
    result = posterior.credible_cycles(None, least=0.0, N=None)
    assert len(result) == 10
    for cycle in result:
        pairs = zip(cycle.path, (*cycle.path[1:], cycle.path[0]), strict=True)
        x = np.stack(
            [np.mean([posterior.preference_draws(u, i, j) for u in posterior.users], axis=0) for i, j in pairs]
        )
        assert cycle.probability == pytest.approx((x > 0).all(axis=0).mean(), abs=0.002)


def test_intransitivity_is_the_share_that_no_scores_explain(posterior):
    row, x = posterior.state.users.one("round"), all_margins(posterior, "round")
    result = [intransitivity(draw, row) for draw in posterior.drawn]
    np.testing.assert_allclose(result, shares(x), atol=1e-5)
    assert posterior.intransitivity("round") == pytest.approx(shares(x.mean(axis=0)), abs=1e-5)
    assert posterior.intransitivity("round") > posterior.intransitivity("up")


def test_bits_are_counted():
    for word in (0, 1, 2**64 - 1, 0b1011, 2**63):
        assert ones(np.uint64(word)) == bin(word).count("1")


def test_a_cycle_needs_three_different_items(posterior):
    with pytest.raises(ValueError, match="three"):
        posterior.cycle_probability("up", ["a", "b"])
    with pytest.raises(ValueError, match="twice"):
        posterior.cycle_probability("up", ["a", "b", "a"])
    assert posterior.credible_cycles("up", items=["a", "b"]) == []
