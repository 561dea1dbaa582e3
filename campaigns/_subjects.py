"""Small data and the fits that campaigns disturb: SAD by either solver and loss, with features, BPR, a posterior."""

from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec._core.files import fingerprint
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
    "sad": (lambda **options: SAD(factors=3, iterations=4, bias=True, num_threads=1, **options), clicks),
    "adaptive": (
        lambda **options: SAD(factors=2, iterations=6, advanced={"adaptive": True}, blocks=2, num_threads=1, **options),
        clicks,
    ),
    "softmax": (
        lambda **options: SAD(
            3, iterations=4, loss="softmax", advanced={"negatives": 6, "length": 2}, blocks=2, num_threads=1, **options
        ),
        clicks,
    ),
    "bpr": (lambda **options: BPR(factors=4, iterations=3, num_threads=1, **options), clicks),
    "variational": (lambda **options: SAD(factors=2, iterations=6, num_threads=1, **options), answers),
    "features": (lambda **options: SAD(factors=3, iterations=4, bias=True, num_threads=1, **options), clicks),
    "features, variational": (lambda **options: SAD(factors=2, iterations=6, num_threads=1, **options), answers),
    "posterior": (
        lambda **options: GibbsSAD(factors=2, draws=12, warmup=4, chains=2, num_threads=1, **options),
        answers,
    ),
}
"""What is fitted, and to what."""


def features(name: str) -> dict[str, Any]:
    """Return the features that a model is fitted with: numbers, categories and tags, or the columns of a matrix."""
    if not name.startswith("features"):
        return {}
    items = MODELS[name][1]().items
    if name == "features, variational":
        rng = np.random.default_rng(7)
        return {"item_features": sp.csr_matrix((rng.random((len(items), 5)) < 0.5).astype(float))}
    kinds: dict[Any, Any] = {"new": {"price": 2.5, "kind": "b", "tags": ["y"]}}
    for n, item in enumerate(items.tolist()):
        kinds[item] = {"price": float(n % 7), "kind": "ab"[n % 2], "tags": ["x", "y"][: n % 3]}
    return {"item_features": kinds, "user_features": {user: {"age": float(user % 5)} for user in range(26)}}


def fitted(name: str, **options: Any) -> Any:
    """Fit one of the models."""
    make, data = MODELS[name]
    return make().fit(data(), show_progress=False, **features(name), **options)


def load(name: str, path: Path, **options: Any) -> Any:
    """Load one of the models."""
    return (GibbsSAD if "posterior" in name else SAD).load(path, **options)


def said(model: Any) -> str:
    """Return a digest of what a model answers to everything that is asked of it."""
    users, items = model.users, model.items
    arrays = [users, items, *model.recommend(users, N=5), *model.recommend(users[0], N=5)]
    arrays += [np.asarray(model.preference(users[0], items[0], items[1]))]
    arrays += [np.asarray(model.probability(users[:2], items[1], items[:2]))]
    arrays += [model.margins(users[-1], items[:3], None), model.rank(users[0], method="wins").scores]
    arrays += [model.rank(users[0]).items]
    if not isinstance(model, GibbsSAD):
        arrays += [*model.similar_items(items[0], N=3), model.visitor(items[:2]).user_factors]
        arrays += [np.asarray(model.user_factors), model.item_factors, model.rival_factors]
        arrays += [] if model.item_bias is None else [model.item_bias]
        arrays += _said_of_newcomers(model)
    texts = [array.astype(str).tolist() if array.dtype.kind in "UM" else array for array in map(np.asarray, arrays)]
    return fingerprint(*texts, model.get_params(), None if model.settings is None else model.settings.as_dict())


def _with_item(model: Any, features: Any) -> Any:
    """Return the factors that a new item has by its features."""
    new = "newer" if model.items.dtype.kind == "U" else 10**6
    return copy(model).partial_fit(item_features={new: features}).item_factors[-1]


def _said_of_newcomers(model: Any) -> list[Any]:
    """Return what a model says of users and items that only their features are known of."""
    features = model.state.features
    values = {"price": 1.5, "kind": "a", "tags": ["y"]}
    try:
        if features is None or features.item is None:
            return []
        if features.user is None:
            return [_with_item(model, [1.0, 0.0, 0.0, 1.0, 0.0])]
        best = model.visitor(features={"age": 1.0}).recommend("visitor", N=3)
        return [_with_item(model, values), model.visitor(features={"age": 3.0}).user_factors, *best]
    except ValueError as error:  # a forged file may know other features, and say so
        if "\n" in str(error) or "features" not in str(error):
            raise
        return [np.array([str(error)])]
