"""SVD of scikit-surprise: biases and factors by stochastic gradient descent on squared error."""

from collections.abc import Iterator

import numpy as np

from .cells import Cells, choose_cells
from .exchange import Fitted, Scores, Settings, Training

_CHUNK = 1 << 16


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``surprise.SVD``; a score is the predicted value of the cell, not clipped to [0, 1]."""
    import surprise

    n, m = training.shape
    cells = choose_cells(training, settings)
    model = surprise.SVD(
        n_factors=settings["factors"],
        n_epochs=settings["iterations"],
        lr_all=settings["learning_rate"],
        reg_all=settings["regularization"],
        random_state=settings["random_state"],
    )
    examples = Examples(cells, (n, m))
    model.fit(examples)
    users = (model.pu * cells.known_users(n)[:, None]).astype(np.float32)
    items = (model.qi * cells.known_items(m)[:, None]).astype(np.float32)
    item_bias = (model.bi + examples.global_mean).astype(np.float32)
    user_bias = model.bu.astype(np.float32)

    def scores(start: int, stop: int) -> Scores:
        block: Scores = users[start:stop] @ items.T
        block += user_bias[start:stop, None]
        block += item_bias
        return block

    return Fitted(scores, cells.described, ("scikit-surprise",))


class Examples:
    """What the solver asks of a training set.

    Surprise's own holds every example twice as a Python tuple: gigabytes for the cells of MovieLens 1M.
    """

    def __init__(self, cells: Cells, shape: tuple[int, int]) -> None:
        self.cells = cells
        self.n_users, self.n_items = shape
        self.global_mean = float(cells.values.mean(dtype=np.float64))

    def all_ratings(self) -> Iterator[tuple[int, int, float]]:
        """Yield the examples one by one, in their order."""
        cells = self.cells
        for start in range(0, len(cells.values), _CHUNK):
            part = slice(start, start + _CHUNK)
            columns = (cells.users[part].tolist(), cells.items[part].tolist(), cells.values[part].tolist())
            yield from zip(*columns, strict=True)
