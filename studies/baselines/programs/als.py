"""Alternating least squares of implicit: weighted squared error over every cell."""

from typing import Any

import numpy as np

from .exchange import Fitted, Scores, Settings, Training


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``implicit``'s ALS; a score is the inner product."""
    from implicit.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    # implicit has threads of its own, which those of the linear algebra would only disturb
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(
            factors=settings["factors"],
            iterations=settings["iterations"],
            regularization=settings["regularization"],
            alpha=settings["alpha"],
            num_threads=settings["num_threads"],
            random_state=settings["random_state"],
        )
        model.fit(as_csr(training), show_progress=False)

    def scores(start: int, stop: int) -> Scores:
        block: Scores = model.user_factors[start:stop] @ model.item_factors.T
        return block

    n, m = training.shape
    ones = len(training.indices)
    alpha = settings["alpha"]
    trained_on = f"{ones:,} interactions as 1, weighing {alpha:g}; the other {n * m - ones:,} cells as 0, weighing 1"
    return Fitted(scores, trained_on, ("implicit",))


def as_csr(training: Training) -> Any:
    """Give the interactions as implicit takes them: a sparse matrix of ones."""
    import scipy.sparse

    ones = np.ones(len(training.indices), dtype=np.float32)
    return scipy.sparse.csr_matrix((ones, training.indices, training.indptr), shape=training.shape)
