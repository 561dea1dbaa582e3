"""Cycles of three items."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.ranking import cyclic_triads
from sadrec.ranking.cycles import CyclicTriads
from sadrec.ranking.tournament import Tournament, tournament


def _triads(x):
    for a, b, c in combinations(range(len(x)), 3):
        for path in ((a, b, c), (a, c, b)):
            steps = [x[path[0], path[1]], x[path[1], path[2]], x[path[2], path[0]]]
            if min(steps) > 0:
                yield path, min(steps)


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_count_and_listing_are_those_of_all_triples(data, games):
    game = data.draw(games)
    wanted = data.draw(st.integers(0, 12))
    expected = dict(_triads(game.margins))
    result = cyclic_triads(game, wanted)
    assert result.count == len(expected)
    assert result.total == comb(len(game), 3)
    assert result.strongest.shape == (min(wanted, len(expected)), 3)
    assert list(result.strengths) == sorted(expected.values(), reverse=True)[:wanted]
    assert [expected[tuple(triad - 100)] for triad in result.strongest] == list(result.strengths)


@settings(deadline=None, max_examples=60)
@given(size=st.integers(0, 12), seed=st.integers(0, 2**32 - 1))
def test_without_ties_win_counts_are_enough(size, seed):
    x = np.triu(np.random.default_rng(seed).standard_normal((size, size)), 1)
    game = Tournament(np.arange(size), x - x.T)
    assert cyclic_triads(game).count == comb(size, 3) - sum(comb(int(d), 2) for d in game.wins())


def test_rock_paper_scissors(rock_paper_scissors):
    result = cyclic_triads(tournament(rock_paper_scissors, 0, None, ["rock", "paper", "scissors", "air"]))
    assert result.count == 1
    assert result.share == 0.25
    assert result.strongest.tolist() == [["rock", "scissors", "paper"]]
    assert "rock > scissors > paper > rock   strength 1" in repr(result)


def test_fewer_than_three_items_have_a_share_of_none():
    assert cyclic_triads(Tournament(np.arange(2), np.zeros((2, 2)))).share == 0.0


def test_how_many_to_list_must_be_a_number():
    with pytest.raises(ValueError, match="strongest"):
        cyclic_triads(Tournament(np.arange(2), np.zeros((2, 2))), -1)


def test_ten_triads_are_printed():
    many = CyclicTriads(12, 48, np.arange(36).reshape(12, 3), np.arange(12.0, 0.0, -1.0))
    lines = repr(many).splitlines()
    assert lines[0] == "12 of 48 triples are cycles (25 %)" and len(lines) == 11
    assert lines[1] == "  0 > 1 > 2 > 0   strength 12"
