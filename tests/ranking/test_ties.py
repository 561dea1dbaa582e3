"""How often items tie: probabilities that add up, and widths that are learnt."""

import numpy as np
import pytest

from sadrec import SAD, Comparisons
from sadrec.evaluation import evaluate_comparisons


def arena(count: int = 6000, width: float = 0.0, seed: int = 0) -> Comparisons:
    """Return comparisons of six items by two judges, with the outcomes of Davidson's model; item 5 ties often."""
    rng = np.random.default_rng(seed)
    scores, widths = np.array([-1.5, -1, -0.5, 0, 0.5, 1]), np.array([0, 0, 0, 0, 0, 2.0])
    item, step, judge = rng.integers((0, 1, 0), (6, 6, 2), size=(count, 3)).T
    rival = (item + step) % 6
    x = scores[item] - scores[rival]
    tie = np.exp(width + widths[item] + widths[rival] + judge)
    weights = np.stack((np.exp(x / 2), np.exp(-x / 2), tie), axis=1)
    outcome = (rng.random(count)[:, None] > np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    sides = np.where(outcome == 1, rival, item), np.where(outcome == 1, item, rival)
    return Comparisons.from_indices(judge, *sides, users=["ann", "bob"], items=list("abcdef"), tied=outcome == 2)


@pytest.fixture(scope="module")
def model() -> SAD:
    return SAD(random_state=0).fit(arena(), show_progress=False)


def test_the_three_outcomes_add_up_to_one(model: SAD) -> None:
    for user in ("ann", None):
        win, loss, tie = (model.probability(user, "a", list("bcdef"), outcome) for outcome in ("win", "loss", "tie"))
        np.testing.assert_allclose(win + loss + tie, 1.0)
        np.testing.assert_allclose(win / (win + loss), model.probability(user, "a", list("bcdef")))
        for ours, turned in ((loss, "win"), (tie, "tie")):
            np.testing.assert_allclose(ours, model.probability(user, list("bcdef"), "a", turned), rtol=1e-6)


def test_an_item_ties_with_itself(model: SAD) -> None:
    assert model.probability("ann", "a", "a", "tie") == 1


def test_ties_are_learnt_by_item_by_judge_and_by_distance(model: SAD) -> None:
    ties = model.state.belief.ties
    assert ties is not None
    assert ties.item[5] - ties.item[:5].mean() == pytest.approx(2, abs=0.2)
    assert ties.user[1] - ties.user[0] == pytest.approx(1, abs=0.15)
    assert ties.slope == pytest.approx(1, abs=0.35)
    assert model.probability("bob", "d", "c", "tie") == pytest.approx(np.e / (np.e + 2 * np.cosh(0.25)), abs=0.03)


def test_ties_do_not_change_who_is_better() -> None:
    data = arena(800)
    one, other = (SAD(random_state=0).fit(part, show_progress=False) for part in (data, data.decided))
    assert np.array_equal(one.margins("ann", None, None), other.margins("ann", None, None))


def test_a_weight_is_a_count_of_ties() -> None:
    data = arena(300)
    sides = np.stack((data.user_index, data.winner_index, data.loser_index, data.tied), axis=1)
    rows, counts = np.unique(sides, axis=0, return_counts=True)
    ids = {"users": data.users, "items": data.items}
    counted = Comparisons.from_indices(*rows.T[:3], **ids, weight=counts, tied=rows[:, 3].astype(bool))
    one, other = (SAD(random_state=0).fit(part, show_progress=False).state.belief.ties for part in (data, counted))
    assert one is not None and other is not None
    np.testing.assert_allclose(one.item, other.item, atol=1e-4)


def test_a_model_without_ties_says_so() -> None:
    model = SAD(random_state=0).fit(arena(300).decided, show_progress=False)
    with pytest.raises(ValueError, match="no tie was learnt"):
        model.probability("ann", "a", "b", outcome="tie")
    with pytest.raises(ValueError, match="outcome must be 'win', 'loss' or 'tie', not 'draw'"):
        model.probability("ann", "a", "b", outcome="draw")  # type: ignore[arg-type]


def test_a_saved_model_knows_its_ties(model: SAD, tmp_path) -> None:
    model.save(tmp_path / "m.sad")
    loaded = SAD.load(tmp_path / "m.sad")
    assert loaded.probability("bob", "a", "f", "tie") == model.probability("bob", "a", "f", "tie")


def test_a_visitor_ties_as_the_average_does(model: SAD) -> None:
    comparisons = Comparisons.from_pairs([("a", "b"), ("c", "d")])
    tie = model.visitor(comparisons=comparisons).probability("visitor", "a", "f", "tie")
    ann, bob = (model.probability(user, "a", "f", "tie") for user in ("ann", "bob"))
    assert min(ann, bob) - 0.05 < tie < max(ann, bob) + 0.05


def test_ties_tell_more_than_their_share() -> None:
    """Learnt ties predict three outcomes better than one probability for all does."""
    train, test = arena(3000).split(0.5)
    model = SAD(random_state=0).fit(train, show_progress=False)
    result = evaluate_comparisons(model, test)
    assert train.tied is not None and test.tied is not None
    share, tied = train.tied.mean(), test.tied.mean()
    constant = (1 - tied) * (result["log_loss"] - np.log(1 - share)) - tied * np.log(share)
    assert result["outcome_log_loss"] < constant - 0.03
    assert result.counts["outcome_log_loss"] == len(test) > result.counts["log_loss"]


def test_other_solvers_say_that_they_leave_ties_out() -> None:
    with pytest.warns(UserWarning, match="comparisons are ties, and left out: solver='sgd'"):
        SAD(solver="sgd", iterations=2).fit(arena(300), show_progress=False)
