"""A network whose linear part is SAD: anti-symmetric, SAD to begin with, and able to learn what SAD can."""

import numpy as np
import pytest
from click.testing import CliRunner

from sadrec import Comparisons, Interactions
from studies.baselines import BaselineError
from studies.comparisons.study import parts_of
from studies.neural import study
from studies.neural.__main__ import neural_command
from studies.neural.study import comparisons_unit, fitted, interactions_unit, neural_study, torch_python

QUICK = {"factors": 4, "regularization": 0.001, "learning_rate": 0.02, "epochs": 15, "patience": 5}


@pytest.fixture(scope="module")
def torch_there():
    """PyTorch, in the environment of the study or in this one; tests that need it are skipped without."""
    try:
        return torch_python()
    except BaselineError as error:
        pytest.skip(f"needs PyTorch: {error}")


def cycles(rows=1200, seed=0):
    """Item i beats the next one of three groups, in a cycle, nine times of ten."""
    rng = np.random.default_rng(seed)
    left = rng.integers(12, size=rows)
    right = (left + 1 + 3 * rng.integers(4, size=rows)) % 12
    won = rng.random(rows) < 0.9
    sides = np.where(won, left, right), np.where(won, right, left)
    return Comparisons.from_indices(np.zeros(rows, int), *sides, users=[0], items=np.arange(12))


def arrays_of(data, **arguments):
    """The rows of the data to learn from and to stop on, and other rows to answer."""
    parts = {"train": data, "validation": data}
    out = {"shape": np.array([len(data.users), len(data.items)])}
    for part, rows in parts.items():
        for side in ("user", "winner", "loser"):
            out[f"{part}_{side}"] = getattr(rows, f"{side}_index")
    return out | {f"test_{side}": np.asarray(values) for side, values in arguments.items()}


def test_margins_are_anti_symmetric_whatever_was_learnt(torch_there):
    i, j = np.array([0, 3, 5]), np.array([1, 7, 11])
    pairs = {"user": np.zeros(6, int), "winner": np.concatenate([i, j]), "loser": np.concatenate([j, i])}
    settings = {**QUICK, "hidden": 8, "seed": 0, "num_threads": 1, "decay": 0.01, "epochs": 2}
    forth, back = np.split(fitted(arrays_of(cycles(), **pairs), settings)["test"], 2)
    np.testing.assert_allclose(forth, -back, atol=1e-6)
    assert np.abs(forth).max() > 0


def test_the_network_starts_from_its_linear_part(torch_there):
    pairs = {"user": np.zeros(3, int), "winner": np.array([0, 3, 5]), "loser": np.array([1, 7, 11])}
    begun = [
        fitted(
            arrays_of(cycles(), **pairs),
            {**QUICK, "hidden": hidden, "seed": 0, "num_threads": 1, "decay": 0.0, "epochs": 0},
        )["test"]
        for hidden in (0, 8)
    ]
    np.testing.assert_array_equal(*begun)


def test_the_network_learns_cycles_as_sad_does(torch_there):
    parts = parts_of(cycles(), 0, "row")
    for model in ("sad", "network"):
        record = comparisons_unit("cycles", parts, model, {} if model == "sad" else QUICK, 0).compute()
        assert np.mean(record["rows"]) < 0.6


def test_lists_of_two_groups_are_learnt(torch_there):
    rng = np.random.default_rng(0)
    liked = ((np.arange(30) % 2)[:, None] == (np.arange(24) % 2)[None, :]) & (rng.random((30, 24)) < 0.8)
    data = Interactions.from_csr(liked.astype(np.float32))
    settings = {**QUICK, "patience": 0, "candidates": 2, "epochs": 60}
    record = interactions_unit("groups", data, "network", settings, 0).compute()
    # items of the other group never come before the two or three of one's own that are left
    assert np.mean(record["rows"]) > 0.6
    assert record["validation"] < -0.3


def test_the_report_names_every_model_and_what_was_chosen(tmp_path, monkeypatch, torch_there):
    folder = tmp_path / "data" / "round"
    folder.mkdir(parents=True)
    cycles(400).to_frame().write_parquet(folder / "comparisons.parquet")
    options = {"sets": ["round"], "seeds": [0], "tried": [{**QUICK, "epochs": 2}], "show_progress": False}
    page = neural_study(tmp_path / "out", tmp_path / "data", **options)
    assert "| set | SAD() | linear part alone | network |" in page
    assert "- round, network: {'factors': 4, 'regularization': 0.001}" in page
    monkeypatch.setattr(study, "fitted", None)  # nothing is fitted again
    assert neural_study(tmp_path / "out", tmp_path / "data", **options) == page


def test_without_pytorch_the_command_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "installed", lambda environment: None)
    monkeypatch.setattr(study, "find_spec", lambda name: None)
    shown = CliRunner().invoke(neural_command, ["--sets", "pokemon", "-o", str(tmp_path)])
    assert shown.exit_code == 1
    assert "there is no PyTorch: run `python -m studies.baselines install neural`" in shown.output
