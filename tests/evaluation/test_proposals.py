"""Which settings are tried: points of a grid, and points drawn at random."""

import numpy as np
import pytest

from sadrec.evaluation import Span, grid_points
from sadrec.evaluation.proposals import _random

GRID = {"rate": [0.001, 0.01, 0.1, 1.0, 2.0, 5.0, 9.0], "iterations": [2, 5, 10, 20, 50], "factors": [2, 4, 8, 16]}


def test_a_part_of_the_grid_is_drawn_by_seed():
    points = grid_points(GRID)
    assert len(points) == 7 * 5 * 4
    part = grid_points(GRID, 10, 1)
    assert len(part) == 10
    assert all(point in points for point in part)
    assert part == grid_points(GRID, 10, 1) != grid_points(GRID, 10, 2)


def test_random_points_lie_in_their_spans():
    spans = {"a": Span(1, 4), "b": Span(0.001, 1.0, log=True), "c": Span(1, 100, log=True)}
    draw = _random({**spans, "d": ["x", "y"]}, 0)
    points = [draw([None] * n) for n in range(300)]
    assert {point["a"] for point in points} == {1, 2, 3, 4}
    assert {type(point["c"]) for point in points} == {int} and {point["d"] for point in points} == {"x", "y"}
    assert all(0.001 <= point["b"] <= 1.0 and 1 <= point["c"] <= 100 for point in points)
    assert np.median([point["b"] for point in points]) == pytest.approx(0.0316, rel=0.5)
    assert points == [draw([None] * n) for n in range(300)]
