"""Small data and the fits that campaigns disturb: SAD by either solver and loss, BPR, a posterior."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec._files import fingerprint
from sadrec.posterior import GibbsSAD


@cache
def clicks(users: int = 24, items: int = 18) -> Interactions:
    """Return interactions, with ids of text for the items."""
    rng = np.random.default_rng(5)
    matrix = sp.random_array((users, items), density=0.3, rng=rng, format="csr", dtype=np.float32)
    matrix.data[:] = rng.integers(1, 6, matrix.nnz)
    return Interactions.from_csr(matrix, items=[f"item {number} é" for number in range(items)])


@cache
def answers(users: int = 8, items: int = 10, count: int = 150) -> Comparisons:
    """Return comparisons, without the help of polars, which does not survive a fork."""
    rng = np.random.default_rng(6)
    winner = rng.integers(items, size=count)
    user, loser = rng.integers(users, size=count), (winner + rng.integers(1, items, count)) % items
    return Comparisons.from_indices(user, winner, loser, users=np.arange(users), items=np.arange(items))


MODELS: dict[str, tuple[Any, Any]] = {
    "sad": (lambda **more: SAD(factors=3, iterations=4, bias=True, num_threads=1, **more), clicks),
    "adaptive": (lambda **more: SAD(factors=2, iterations=3, adaptive=True, blocks=2, num_threads=1, **more), clicks),
    "softmax": (
        lambda **more: SAD(
            3, iterations=4, loss="softmax", negative_candidates=6, length=2, blocks=2, num_threads=1, **more
        ),
        clicks,
    ),
    "bpr": (lambda **more: BPR(factors=4, iterations=3, num_threads=1, **more), clicks),
    "variational": (lambda **more: SAD(factors=2, iterations=6, num_threads=1, **more), answers),
    "posterior": (lambda **more: GibbsSAD(factors=2, draws=12, warmup=4, chains=2, num_threads=1, **more), answers),
}
"""What is fitted, and to what."""


def fitted(name: str, **options: Any) -> Any:
    """Fit one of the models."""
    make, data = MODELS[name]
    return make().fit(data(), show_progress=False, **options)


def load(name: str, path: Path, **options: Any) -> Any:
    """Load one of the models."""
    return (GibbsSAD if name == "posterior" else SAD).load(path, **options)


def said(model: Any) -> str:
    """Return a digest of what a model answers to everything that is asked of it."""
    users, items = model.users, model.items
    asked = [users, items, *model.recommend(users, N=5), *model.recommend(users[0], N=5)]
    asked += [np.asarray(model.preference(users[0], items[0], items[1]))]
    asked += [np.asarray(model.probability(users[:2], items[1], items[:2]))]
    asked += [model.margins(users[-1], items[:3], None), model.rank(users[0], method="wins").scores]
    asked += [model.rank(users[0]).items]
    if not isinstance(model, GibbsSAD):
        asked += [*model.similar_items(items[0], N=3), model.fold_in(items[:2])]
        asked += [model.user_factors, model.item_factors, model.rival_factors]
        asked += [] if model.item_bias is None else [model.item_bias]
    texts = [array.astype(str).tolist() if array.dtype.kind in "UM" else array for array in map(np.asarray, asked)]
    return fingerprint(*texts, model.get_params(), None if model.settings is None else model.settings.as_dict())
