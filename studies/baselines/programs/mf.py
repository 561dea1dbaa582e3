"""MF of Cornac: biases and factors by stochastic gradient descent on squared error."""

from typing import Any

import numpy as np

from .cells import Cells, choose_cells
from .exchange import Fitted, Scores, Settings, Training


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``cornac.models.MF`` on one thread (it is not reproducible on more); a score is the predicted value."""
    from cornac.models import MF

    n, m = training.shape
    cells = choose_cells(training, settings)
    model = MF(
        k=settings["factors"],
        max_iter=settings["iterations"],
        learning_rate=settings["learning_rate"],
        lambda_reg=settings["regularization"],
        seed=settings["random_state"],
    )
    model.fit(as_dataset(cells, (n, m)))
    users = model.u_factors * cells.known_users(n)[:, None]
    items = model.i_factors * cells.known_items(m)[:, None]

    def scores(start: int, stop: int) -> Scores:
        block: Scores = users[start:stop] @ items.T
        block += model.u_biases[start:stop, None]
        block += model.i_biases + model.global_mean
        return block

    return Fitted(scores, cells.described, ("cornac",))


def as_dataset(cells: Cells, shape: tuple[int, int]) -> Any:
    """Hand the cells to Cornac as they are; its own reader would go through Python tuples."""
    from cornac.data import Dataset

    n, m = shape
    triples = (cells.users.astype(np.int64), cells.items.astype(np.int64), cells.values)
    ids = ({user: user for user in range(n)}, {item: item for item in range(m)})
    return Dataset(n, m, *ids, triples, seed=0)
