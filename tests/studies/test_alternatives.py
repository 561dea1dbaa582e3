"""Other ways to write the model of comparisons."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import Comparisons
from studies.comparisons.alternatives import VARIANTS, Problem, alternatives_command, fit_variant


def judged(rows=120, judges=3, items=5, seed=3):
    """Comparisons at random, with weights."""
    rng = np.random.default_rng(seed)
    winner = rng.integers(items, size=rows)
    loser = (winner + rng.integers(1, items, size=rows)) % items
    columns = rng.integers(judges, size=rows), winner, loser
    return Comparisons.from_indices(*columns, users=range(judges), items=range(items), weight=rng.random(rows) + 0.5)


@pytest.mark.parametrize("title", VARIANTS)
@pytest.mark.parametrize("judges", [1, 3])
def test_gradients_are_those_of_finite_differences(title, judges):
    problem = Problem(judged(judges=judges), VARIANTS[title], 0.3, 0.2)
    theta = problem.start(seed=1)
    at = np.random.default_rng(0).permutation(len(theta))[:40]
    steps = 1e-6 * np.eye(len(theta))[at]
    numbers = [(problem(theta + step)[0] - problem(theta - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(problem(theta)[1][at], numbers, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("title", VARIANTS)
def test_the_chances_of_both_sides_add_up_to_1(title):
    data = judged()
    predict = fit_variant(data, VARIANTS[title], 0.3, 0.3)
    columns = data.user_index, data.loser_index, data.winner_index
    turned = Comparisons.from_indices(*columns, users=data.users, items=data.items)
    np.testing.assert_allclose(predict(data) + predict(turned), 1.0)


def test_the_command_prints_the_table(tmp_path):
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    data = judged(rows=300)
    pl.DataFrame({
        "user": data.user_index, "winner": data.winner_index, "loser": data.loser_index
    }).write_parquet(folder / "comparisons.parquet")  # fmt: skip
    arguments = ["--data", str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--sets", "small", "--quiet"]
    result = CliRunner().invoke(alternatives_command, arguments)
    assert result.exit_code == 0, result.output
    assert "| set | l2 on tau - 1 | T = 1 | l1 on tau - 1 | free sign | rank 2 | shared skew |" in result.output
