"""The figures of a page about an arena."""

import numpy as np
import pytest

from sadrec import SAD
from sadrec.ranking import arena_report


@pytest.fixture(scope="module")
def belief():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 6, 300), rng.integers(1, 6, 300)
    other = (one + other) % 6
    first = rng.random(300) < 1 / (1 + np.exp((one - other) / 2))  # the lower the number, the better
    games = list(zip(np.where(first, one, other).tolist(), np.where(first, other, one).tolist(), strict=True))
    return SAD().fit(games, show_progress=False).state.belief


def figures(belief, level):
    return arena_report(belief, None, np.arange(6).astype(str), level, None)[1]


def test_intervals_hold_the_probability_and_grow_with_the_level(belief):
    narrow, wide = (figures(belief, level) for level in (0.5, 0.95))
    pairs = ~np.eye(6, dtype=bool)
    low, lower, middle, upper, high = (
        np.array(report[name])[pairs]
        for report, name in [
            (wide, "lower"),
            (narrow, "lower"),
            (narrow, "probability"),
            (narrow, "upper"),
            (wide, "upper"),
        ]
    )
    assert (low < lower).all() and (lower < middle).all() and (middle < upper).all() and (upper < high).all()


def test_both_sides_of_a_match_up_agree(belief):
    report = figures(belief, 0.9)
    assert np.allclose(np.array(report["lower"]) + np.array(report["upper"]).T, 1, atol=2e-4)
    assert np.allclose(np.array(report["probability"]) + np.array(report["probability"]).T, 1, atol=2e-4)


def test_games_are_those_that_two_items_played_with_each_other():
    played = [(3, 1)] * 4 + [(0, 2)] * 2 + [(2, 0)] + [(3, 0)] * 5 + [(1, 2)] * 6
    model = SAD().fit(played, show_progress=False)
    state = model.state
    report = arena_report(state.belief, None, np.arange(4).astype(str), 0.9, state.results)[1]
    by_item = np.argsort(model.items[report["items"]])
    games = np.array(report["games"])[np.ix_(by_item, by_item)]
    assert games.tolist() == [[0, 0, 3, 5], [0, 0, 6, 4], [3, 6, 0, 0], [5, 4, 0, 0]]


def test_rings_are_shown_that_are_more_probable_than_not():
    ring = [("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")]
    for games, shown in ((12 * ring, True), (ring + [(b, a) for a, b in ring], False)):
        state = SAD().fit(games, show_progress=False).state
        report = arena_report(state.belief, None, state.items.array, 0.9, state.results)[1]
        assert [cycle["probability"] >= 0.5 for cycle in report["cycles"]] == [True] * shown


def test_rings_of_given_factors_have_no_probability():
    ring = SAD.from_factors([[1, 1]], [[1, -2], [2, -1], [1, 0]], [[0, 2], [1, 0], [2, 2]]).state.belief
    (cycle,) = arena_report(ring, None, np.arange(3), 0.9, None)[1]["cycles"]
    assert cycle["probability"] is None
