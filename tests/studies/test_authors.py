"""The authors' simulation: read as it was written, or refused in words."""

from pathlib import Path

import numpy as np
import pytest

from sadrec.data import simulate
from studies.simulation.authors import read_simulation


def write(path: Path, **changes: object) -> Path:
    truth = simulate(n=3, m=4, k=2)
    observed = np.zeros((3, 4, 4))
    pairs = truth.comparisons
    observed[pairs.user_index, pairs.winner_index, pairs.loser_index] = 1
    observed[pairs.user_index, pairs.loser_index, pairs.winner_index] = -1
    arrays = {"XI0": truth.user_factors.T, "H0": truth.item_factors.T, "T0": truth.rival_factors.T, "Obs0": observed}
    np.savez(path, **{name: array for name, array in {**arrays, **changes}.items() if array is not None})
    return path


def test_a_file_of_the_authors_kind_comes_back_as_it_was(tmp_path: Path) -> None:
    loaded, truth = read_simulation(write(tmp_path / "raw.npz")), simulate(n=3, m=4, k=2)
    assert np.array_equal(loaded.X, truth.X)
    assert sorted(loaded.comparisons.to_frame().rows()) == sorted(truth.comparisons.to_frame().rows())
    assert len(read_simulation(tmp_path / "raw.npz", missing=0.5, seed=1).comparisons) == 9


def test_observations_of_zero_are_missing(tmp_path: Path) -> None:
    observed = np.zeros((3, 4, 4))
    observed[2, 3, 1], observed[2, 1, 3] = 1, -1
    loaded = read_simulation(write(tmp_path / "raw.npz", Obs0=observed))
    assert loaded.comparisons.to_frame().rows() == [(2, 3, 1)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"T0": None}, "it has no arrays T0; it has XI0, H0, Obs0"),
        ({"T0": np.ones((2, 5))}, "do not fit each other"),
        ({"Obs0": np.ones((3, 4, 4))}, "must hold -1, 0 and 1"),
        ({"Obs0": np.array([object()])}, "is not a simulation"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_simulation(write(tmp_path / "raw.npz", **changes))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "raw.npz")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ValueError, match="is not a simulation"):
        read_simulation(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_simulation_is_refused_in_words(tmp_path, compressed):
    stated = np.broadcast_to(np.triu(np.ones((6, 6)), 1) - np.tril(np.ones((6, 6)), -1), (4, 6, 6))
    arrays = {"XI0": np.ones((2, 4)), "H0": np.ones((2, 6)), "T0": np.ones((2, 6)), "Obs0": stated}
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "whole.npz", **arrays)
    whole = (tmp_path / "whole.npz").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        start = int(rng.integers(len(damaged)))
        damaged[start : start + int(rng.integers(12))] = rng.bytes(int(rng.integers(8)))
        (tmp_path / "a.npz").write_bytes(damaged)
        try:
            read_simulation(tmp_path / "a.npz")
        except ValueError as error:
            assert "a.npz" in str(error)


@pytest.mark.data
def test_the_authors_simulation_is_their_truth_and_their_observations(data_folder: Path) -> None:
    path = data_folder / "authors-sim2" / "raw.npz"
    truth = read_simulation(path)
    with np.load(path) as arrays:
        assert np.allclose(truth.X, arrays["X0"])
        pairs = truth.comparisons
        assert (arrays["Obs0"][pairs.user_index, pairs.winner_index, pairs.loser_index] == 1).all()
    assert len(pairs) == 24_500
    assert (truth.rival_factors == 1).mean() == 0.86
    assert round(float(truth.X.var()), 1) == 28.8
