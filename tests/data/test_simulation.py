"""The simulated truth is the paper's, and the comparisons come from it."""

import numpy as np
import pytest

from sadrec.data import simulate


def test_the_second_scenario_has_the_paper_s_parameters() -> None:
    truth = simulate("sim2", seed=3)
    assert truth.shape == (20, 50, 5)
    assert truth.user_factors.shape == (20, 5)
    assert truth.item_factors.shape == truth.rival_factors.shape == (50, 5)
    for factors in (truth.user_factors, truth.item_factors):
        assert -2 <= factors.min() < -1.8
        assert 1.8 < factors.max() <= 2
    values, counts = np.unique(truth.rival_factors, return_counts=True)
    assert values.tolist() == [0.01, 1, 5]
    assert counts[1] == 215


def test_users_may_have_some_taste_in_common() -> None:
    plain, shared = simulate("sim2", seed=3), simulate("sim2", seed=3, common=1.5)
    assert np.array_equal(shared.user_factors, plain.user_factors + 1.5)
    assert np.array_equal(shared.item_factors, plain.item_factors)
    assert np.array_equal(shared.rival_factors, plain.rival_factors)
    with pytest.raises(ValueError, match="common"):
        simulate(common=-1.0)


def test_the_first_scenario_is_a_bpr_model() -> None:
    truth = simulate("sim1")
    assert (truth.rival_factors == 1).all()
    scores = truth.user_factors @ truth.item_factors.T
    assert np.allclose(truth.X, scores[:, :, None] - scores[:, None, :])


def test_x_is_the_formula() -> None:
    truth = simulate(n=3, m=6, k=2)
    xi, eta, tau = truth.user_factors, truth.item_factors, truth.rival_factors
    expected = np.einsum("uh,ih,jh->uij", xi, eta, tau) - np.einsum("uh,jh,ih->uij", xi, eta, tau)
    assert np.allclose(truth.X, expected)
    assert np.allclose(truth.margins(1), expected[1])
    assert np.allclose(truth.preference([0, 2], [1, 5], [4, 0]), expected[[0, 2], [1, 5], [4, 0]])


def test_every_pair_is_compared_once_by_every_user() -> None:
    pairs = simulate(n=4, m=7).comparisons
    seen = set(zip(pairs.user_index, np.minimum(pairs.winner_index, pairs.loser_index),
                   np.maximum(pairs.winner_index, pairs.loser_index), strict=True))  # fmt: skip
    assert len(seen) == len(pairs) == 4 * 21


def test_outcomes_follow_the_sigmoid_of_x() -> None:
    truth = simulate(n=200, m=50, seed=1)
    pairs = truth.comparisons
    low = np.minimum(pairs.winner_index, pairs.loser_index)
    high = np.maximum(pairs.winner_index, pairs.loser_index)
    x = truth.preference(pairs.user_index, low, high)
    won = pairs.winner_index == low
    for left, right in ((-3, -2), (-1, 0), (0, 1), (2, 3)):
        chosen = (x > left) & (x < right)
        expected, error = (1 / (1 + np.exp(-x[chosen]))).mean(), 0.5 / np.sqrt(chosen.sum())
        assert abs(won[chosen].mean() - expected) < 4 * error


def test_what_is_missing_is_nested_and_changes_nothing_else() -> None:
    rows = [set(simulate(missing=share, seed=2).comparisons.to_frame().iter_rows()) for share in (0, 0.1, 0.5, 0.9)]
    assert [len(part) for part in rows] == [24_500, 22_050, 12_250, 2_450]
    assert rows[3] < rows[2] < rows[1] < rows[0]
    assert np.array_equal(simulate(missing=0.9, seed=2).X, simulate(seed=2).X)


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    assert simulate(seed=5).comparisons.to_frame().equals(simulate(seed=5).comparisons.to_frame())
    assert not np.array_equal(simulate(seed=5).user_factors, simulate(seed=6).user_factors)


def test_pairs_can_be_sampled_from_many_items() -> None:
    truth = simulate(n=300, m=1000, comparisons_per_user=50)
    pairs = truth.comparisons
    low = np.minimum(pairs.winner_index, pairs.loser_index).astype(np.int64)
    high = np.maximum(pairs.winner_index, pairs.loser_index)
    assert len(pairs) == 15_000
    assert np.bincount(pairs.user_index).tolist() == [50] * 300
    assert len(np.unique((pairs.user_index.astype(np.int64) * 1000 + low) * 1000 + high)) == 15_000
    # Each item is in 2 of 1000 of the pairs: 30 on average, with standard deviation 5.5.
    counts = np.bincount(np.concatenate([low, high]), minlength=1000)
    assert np.quantile(counts, 0.05) > 20
    assert np.quantile(counts, 0.95) < 41


def test_sampling_all_pairs_takes_each_once() -> None:
    sampled, whole = simulate(n=3, m=6, comparisons_per_user=15).comparisons, simulate(n=3, m=6).comparisons
    key = [{(u, *sorted((a, b))) for u, a, b in pairs.to_frame().iter_rows()} for pairs in (sampled, whole)]
    assert key[0] == key[1]


def test_a_tensor_too_large_is_refused_with_the_remedy() -> None:
    truth = simulate(n=2000, m=1000, comparisons_per_user=1)
    with pytest.raises(ValueError, match=r"14\.9 GiB.*margins"):
        _ = truth.X
    assert truth.margins(0).shape == (1000, 1000)


def test_too_many_comparisons_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="comparisons_per_user"):
        simulate(n=10_000, m=5_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "sim3"}, "scenario must be"),
        ({"n": 0}, "n must be a whole number, at least 1"),
        ({"m": 1}, "m must be a whole number, at least 2"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"missing": 1}, "no comparison is left"),
        ({"missing": -0.1}, "missing must be a share"),
        ({"missing": 0.999999}, "no comparison is left"),
        ({"seed": -1}, "seed must be"),
        ({"comparisons_per_user": 5000}, "must be a whole number, from 1 to 1225"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(**arguments)


def test_a_simulation_is_shown_in_one_line():
    assert repr(simulate("sim2", n=4, m=5, k=2)) == "Simulation(4 users x 5 items, 2 factors, 40 comparisons)"
