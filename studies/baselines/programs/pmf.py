"""Probabilistic matrix factorisation of Cornac: factors through a sigmoid, by RMSProp on squared error."""

import numpy as np

from .cells import choose_cells
from .exchange import Fitted, Scores, Settings, Training
from .mf import as_dataset


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``cornac.models.PMF``; a score is the inner product, the log odds of the predicted value."""
    from cornac.models import PMF

    n, m = training.shape
    cells = choose_cells(training, settings)
    model = PMF(
        k=settings["factors"],
        max_iter=settings["iterations"],
        learning_rate=settings["learning_rate"],
        lambda_reg=settings["regularization"],
        seed=settings["random_state"],
    )
    model.fit(as_dataset(cells, (n, m)))
    users = (model.U * cells.known_users(n)[:, None]).astype(np.float32)
    items = (model.V * cells.known_items(m)[:, None]).astype(np.float32)

    def scores(start: int, stop: int) -> Scores:
        block: Scores = users[start:stop] @ items.T
        return block

    return Fitted(scores, cells.described, ("cornac",))
