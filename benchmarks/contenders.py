"""What several benchmarks fit and fit it with: MovieLens 1M, or interactions of a size, and models of implicit."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sadrec import Interactions

SIZES = {"movielens-1m": (6_040, 3_706, 1_000_209), "synthetic-20m": (138_493, 26_744, 20_000_000)}


def interactions(name="movielens-1m"):
    """Return a CSR matrix: MovieLens where it is at hand, else one of the same size with skewed popularity."""
    folder = os.environ.get("SADREC_DATA")
    if name == "movielens-1m" and folder:
        return Interactions.read(Path(folder) / name / "ratings.parquet").matrix
    users, items, count = SIZES[name]
    rng = np.random.default_rng(0)
    active = rng.lognormal(0.0, 1.2, users)
    user = rng.choice(users, size=int(count * 1.35), p=active / active.sum()).astype(np.int64)
    item = np.minimum((items * rng.random(len(user)) ** 2.5).astype(np.int64), items - 1)
    keys = rng.permutation(np.unique(user * items + item))[:count]
    matrix = sp.csr_matrix(
        (np.ones(len(keys), np.float32), (keys // items, keys % items)), shape=(users, items), dtype=np.float32
    )
    matrix.sort_indices()
    return matrix


def implicit_model(kind, **settings):
    """Return a model of implicit, "ALS" or "BPR", without a fit; an ImportError without the ``bench`` extra."""
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    with threadpool_limits(1, "blas"):  # implicit has threads of its own
        return {"ALS": AlternatingLeastSquares, "BPR": BayesianPersonalizedRanking}[kind](random_state=0, **settings)


def fit_implicit(model, matrix, after_epoch):
    """Fit a model of implicit to which items users chose; ``after_epoch`` gets the epoch, from 0, and its figures."""
    matrix = matrix.astype(np.float32)  # a copy: implicit wants arrays it may write to
    matrix.data[:] = 1
    with threadpool_limits(1, "blas"):
        model.fit(matrix, show_progress=False, callback=after_epoch)
