"""A small network beside the regression of factors on features."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD, Comparisons
from sadrec.features.network import Network, Perceptron
from sadrec.features.ridge import Linear, Ridge


def crossed(rows=400, seed=0):
    """A target that is the product of two features, which no line describes, and one that is a feature."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((rows, 3))
    targets = np.column_stack((features[:, 0] * features[:, 1], features[:, 2])) + 0.05 * rng.standard_normal((rows, 2))
    return sp.csr_matrix(features), targets


def test_a_prediction_is_the_line_and_what_the_units_add():
    linear = Linear(np.array([[1.0], [0.0]]), np.array([0.5]))
    network = Network(
        linear, np.array([[1.0, -1.0], [0.0, 1.0]]), np.array([0.0, 0.5]), np.array([[2.0], [3.0]]), np.ones(1)
    )
    rows = sp.csr_matrix(np.array([[1.0, 0.0], [-2.0, 1.0]]))
    # 0.5 + 1 and 2 * relu(1) + 3 * relu(-0.5) + 1; 0.5 - 2 and 2 * relu(-2) + 3 * relu(3.5) + 1
    np.testing.assert_allclose(network.predict(rows), [[4.5], [10.0]])


def test_without_pytorch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    liked = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    kinds = {0: ["hot"], 1: ["hot"], 2: ["cold"], 3: ["cold"]}
    with pytest.raises(ImportError, match=r"sadrec\[neural\]"):
        SAD(factors=2, iterations=1).fit(liked, show_progress=False, item_features=kinds, features="mlp")


@pytest.mark.parametrize(
    ("given", "match"), [({"features": "deep"}, "'ridge' or 'mlp'"), ({}, "item_features or user")]
)
def test_what_cannot_be_meant_is_refused(given, match, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)  # whether it is there does not matter here
    with pytest.raises(ValueError, match=match):
        SAD(factors=2, iterations=1).fit(np.eye(3), show_progress=False, **{"features": "mlp", **given})


def test_it_finds_what_no_line_describes():
    pytest.importorskip("torch", reason="PyTorch trains the network: pip install 'sadrec[neural]'")
    rows, targets = crossed()
    new, wanted = crossed(seed=1)
    line = Ridge(rows, np.ones(400)).fit(targets, (1, 1)).predict(new)
    network = Perceptron(rows, np.ones(400), 0).fit(targets, (1, 1))
    left = ((network.predict(new) - wanted) ** 2).mean(axis=0)
    assert left[0] < 0.5 * ((line - wanted) ** 2).mean(axis=0)[0]
    assert left[1] < 0.05
    again = Perceptron(rows, np.ones(400), 0).fit(targets, (1, 1))
    np.testing.assert_array_equal(network.out, again.out)


def test_where_there_is_nothing_to_find_it_is_the_line():
    pytest.importorskip("torch", reason="PyTorch trains the network: pip install 'sadrec[neural]'")
    rows, _ = crossed(rows=30)
    targets = np.random.default_rng(0).standard_normal((30, 2))
    network = Perceptron(rows, np.ones(30), 0).fit(targets, (2,))  # too few rows for a network
    np.testing.assert_array_equal(network.predict(rows), network.linear.predict(rows))


def battles(items=60, answers=2500, seed=0):
    """What counts is the product of two features."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((items + 10, 2))
    strength = 1.5 * features.prod(axis=1)
    one = rng.integers(items, size=answers)
    other = (one + rng.integers(1, items, size=answers)) % items
    won = rng.random(answers) < 1 / (1 + np.exp(strength[other] - strength[one]))
    winner, loser = np.where(won, one, other), np.where(won, other, one)
    said = Comparisons.from_indices(np.zeros(answers, int), winner, loser, users=["all"], items=range(items))
    return said, (np.arange(items + 10), features), strength


def test_a_model_with_a_network_is_saved_without_pytorch(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch trains the network: pip install 'sadrec[neural]'")
    said, features, strength = battles()
    model, line = (SAD(iterations=20).fit(said, False, item_features=features, features=by) for by in ("mlp", "ridge"))
    new = np.arange(60, 70)
    found, plain = (one.preference("all", new, 0) for one in (model, line))
    assert np.corrcoef(found, strength[60:])[0, 1] > 0.6 > np.corrcoef(plain, strength[60:])[0, 1]
    told = model.explain("all", 60, 61)
    assert sum(value for _, value in told.columns) == pytest.approx(told.by_features)
    assert "(network)" in dict(told.columns)
    model.save(tmp_path / "m.sad")
    monkeypatch.setitem(sys.modules, "torch", None)
    again = SAD.load(tmp_path / "m.sad").add_items((np.array([100]), np.array([[2.0, 2.0]])))
    np.testing.assert_array_equal(again.preference("all", new, 0), found)
    model.add_items((np.array([100]), np.array([[2.0, 2.0]])))
    assert again.preference("all", 100, 0) == model.preference("all", 100, 0)
