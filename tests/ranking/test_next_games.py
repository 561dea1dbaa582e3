"""What to compare next in an arena: a batch of pairs that tells about the ranking, or about its top."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

from sadrec import SAD, Comparisons
from sadrec.ranking.next_games import _greedy


def games(pairs, margins, rng):
    one, other = pairs
    won = rng.random(len(one)) < 1 / (1 + np.exp(-margins[one, other]))
    return np.where(won, one, other), np.where(won, other, one)


def played(sides, items):
    return Comparisons.from_indices(np.zeros(len(sides[0]), int), *sides, users=[0], items=np.arange(items))


def correlations(seed, chosen, items=24, batch=30, rounds=10):
    """Return the rank correlation with the truth after every batch, of pairs chosen or at random."""
    rng = np.random.default_rng(seed)
    score = 2.5 * rng.standard_normal(items)
    margins, pairs = score[:, None] - score, np.stack(np.triu_indices(items, 1))
    sides = games(pairs[:, rng.integers(pairs.shape[1], size=2 * batch)], margins, rng)
    answer = []
    for _ in range(rounds):
        model = SAD(random_state=0, num_threads=1).fit(played(sides, items), show_progress=False)
        answer.append(kendalltau(model.margins(None, None, None).mean(1), score)[0])
        if chosen:
            table = model.ask_next(N=batch, about="ranking")
            pair = table["item"].to_numpy(), table["rival"].to_numpy()
        else:
            pair = pairs[:, rng.integers(pairs.shape[1], size=batch)]
        sides = np.concatenate((sides, games(pair, margins, rng)), axis=1)
    return answer


def test_chosen_pairs_rank_as_well_with_three_quarters_of_the_comparisons_of_random_ones():
    random, chosen = (np.mean([correlations(seed, kind) for seed in range(3)], axis=0) for kind in (False, True))
    assert chosen[6] > random[9], (random, chosen)  # after 240 comparisons, and after 330


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    score = np.linspace(4, -4, 20)
    pairs = np.stack(np.triu_indices(20, 1))
    return SAD(random_state=0).fit(
        played(games(pairs[:, rng.integers(190, size=400)], score[:, None] - score, rng), 20), show_progress=False
    )


def test_a_batch_is_of_different_pairs_and_of_near_ones(model):
    table = model.ask_next(N=40, about="ranking")
    assert len(table.select("item", "rival").unique()) == 40
    assert (table["item"] - table["rival"]).abs().mean() < 5  # of all pairs it is 7


def test_a_batch_about_the_top_is_of_the_top(model):
    table = model.ask_next(N=10, about=3)
    assert (pl.concat([table["item"], table["rival"]]) < 8).mean() > 0.9
    assert (
        (pl.concat([table["item"], table["rival"]]) < 8).mean()
        > 0.9
        > (model.ask_next(N=10, about="ranking")["item"] < 8).mean()
    )


def test_no_more_pairs_come_than_there_are(model):
    assert len(model.ask_next(items=[1, 2, 3], N=10, about="ranking")) == 3


def test_every_judge_of_an_arena_is_asked_as_often():
    rng = np.random.default_rng(1)
    user, (one, other) = rng.integers(5, size=800), np.stack([rng.permutation(10)[:2] for _ in range(800)], 1)
    score = rng.standard_normal((5, 10)) / 2 + np.arange(10) / 3
    won = rng.random(800) < 1 / (1 + np.exp(score[user, other] - score[user, one]))
    data = Comparisons.from_indices(
        user, np.where(won, one, other), np.where(won, other, one), users=list("abcde"), items=np.arange(10)
    )
    model = SAD(random_state=0).fit(data, show_progress=False)
    table = model.ask_next(N=10, about="ranking")
    assert sorted(table["judge"]) == sorted("abcde" * 2)
    assert "judge" not in model.ask_next("a", N=3, about="ranking").columns
    assert "judge" not in model.ask_next(N=3).columns


@pytest.mark.parametrize("about", ["all", 0, -1, 2.5])
def test_what_a_batch_is_about_is_checked(model, about):
    with pytest.raises((ValueError, TypeError), match="about"):
        model.ask_next(N=3, about=about)


def test_pairs_are_chosen_one_after_the_other_as_if_each_had_been_compared():
    rng = np.random.default_rng(0)
    root, other = rng.standard_normal((2, 5, 5))
    covariance, doubt, chosen = root @ root.T, other @ other.T, []
    curvature = rng.uniform(0.05, 0.25, (5, 5))
    curvature = (curvature + curvature.T) / 2
    left = covariance
    for _ in range(6):
        after = {}
        for i, j in zip(*np.triu_indices(5, 1), strict=True):
            between = np.eye(5)[i] - np.eye(5)[j]
            after[i, j] = np.linalg.inv(np.linalg.inv(left) + curvature[i, j] * np.outer(between, between))
        best = min(after.keys() - set(chosen), key=lambda pair: np.trace(doubt @ after[pair]))
        chosen.append(best)
        left = after[best]
    assert list(zip(*_greedy(covariance, doubt, curvature, 6), strict=True)) == chosen
