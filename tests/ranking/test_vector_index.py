"""Other people's vector indexes serve our recommendations."""

import numpy as np
import pytest

from sadrec.ranking import Parameters
from sadrec.ranking.parameters import item_vectors, user_vectors
from sadrec.ranking.top_n import ItemIndex

hnswlib = pytest.importorskip("hnswlib", reason="needs a vector index: pip install hnswlib")


@pytest.fixture(scope="module")
def model():
    """A model with tastes in a few clusters, popular and unpopular items, and T away from 1 here and there."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((12, 24))
    eta = centres[rng.integers(0, 12, 2000)] + 0.7 * rng.standard_normal((2000, 24))
    tau = np.maximum(1 + 0.5 * rng.standard_normal((2000, 24)) * (rng.random((2000, 24)) < 0.1), 0)
    xi = centres[rng.integers(0, 12, 300)] + 0.7 * rng.standard_normal((300, 24))
    return Parameters(*(a.astype(np.float32) for a in (xi, eta, tau, rng.standard_normal(2000))))


def _recall(vectors, queries):
    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(max_elements=len(vectors), ef_construction=200, M=16, random_seed=0)
    index.add_items(vectors, num_threads=1)
    index.set_ef(100)
    result, _ = index.knn_query(queries, k=10, num_threads=1)
    exact, _ = ItemIndex(vectors).search(queries, 10)
    return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(result, exact, strict=True)])


def test_recommendations_by_mean_margin(model):
    assert _recall(item_vectors(model), user_vectors(model)) >= 0.95
