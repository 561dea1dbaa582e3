"""Neural collaborative filtering of Microsoft's recommenders (NeuMF: a factor part and a perceptron)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .cells import empty_cells
from .exchange import Fitted, Scores, Settings, Training

_PAIRS = 1 << 18


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``recommenders``' NCF; a score is the log odds, the number before the last sigmoid.

    The probability itself would round to 1 for many items, which makes ties.
    """
    import tensorflow as tf
    from recommenders.models.ncf.ncf_singlenode import NCF

    n, m = training.shape
    tf.config.threading.set_intra_op_parallelism_threads(settings["num_threads"])
    examples = Examples(training, int(settings["zeros"]), settings["random_state"])
    model = NCF(
        n_users=n,
        n_items=m,
        model_type="NeuMF",
        n_factors=settings["factors"],
        layer_sizes=list(settings["layers"]),
        n_epochs=settings["iterations"],
        batch_size=min(settings["batch_size"], len(examples)),
        learning_rate=settings["learning_rate"],
        seed=settings["random_state"],
    )
    model.fit(examples)
    log_odds = model.output.op.inputs[0]

    def scores(start: int, stop: int) -> Scores:
        block = np.empty((stop - start, m), dtype=np.float32)
        step = max(1, _PAIRS // m)
        for first in range(start, stop, step):
            users = np.arange(first, min(stop, first + step))
            feed = {
                model.user_input: np.repeat(users, m)[:, None],
                model.item_input: np.tile(np.arange(m), len(users))[:, None],
            }
            block[users - start] = model.sess.run(log_odds, feed).reshape(len(users), m)
        return block

    return Fitted(scores, examples.described, ("recommenders", "tensorflow-cpu"))


class Examples:
    """Interactions as 1 and, drawn anew every epoch, empty cells as 0: what NCF learns from.

    The library has a class for this that goes through a CSV file and a data frame per user, which takes most of
    the time of an epoch. This one draws the same examples from arrays.
    """

    def __init__(self, training: Training, zeros: int, seed: int) -> None:
        self.training = training
        self.zeros = zeros
        self.rng = np.random.default_rng(seed)
        self.user2id = self.id2user = {user: user for user in range(training.shape[0])}
        self.item2id = self.id2item = {item: item for item in range(training.shape[1])}
        ones = len(training.indices)
        self.described = f"{ones:,} interactions as 1 and, drawn anew every epoch, {zeros} empty cells as 0 for each"

    def __len__(self) -> int:
        return len(self.training.indices) * (1 + self.zeros)

    def train_loader(self, batch_size: int) -> Iterator[tuple[list[int], list[int], NDArray[np.float32]]]:
        """Yield the batches of one epoch: users, items and labels."""
        ones = self.training.users
        users, items = empty_cells(self.training, np.repeat(ones, self.zeros), self.rng)
        users = np.concatenate([ones, users])
        items = np.concatenate([self.training.indices, items])
        labels = (np.arange(len(users)) < len(ones)).astype(np.float32)
        order = self.rng.permutation(len(users))
        # Like the library's loader, this one leaves out a last batch that is not full.
        for start in range(0, len(users) - batch_size + 1, batch_size):
            batch = order[start : start + batch_size]
            yield users[batch].tolist(), items[batch].tolist(), labels[batch]
