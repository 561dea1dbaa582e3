"""The factorisation machine of RankFM: an item bias and factors, trained on pairs."""

import numpy as np

from .exchange import Fitted, Scores, Settings, Training


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``rankfm.rankfm.RankFM``; a score is its utility, bias plus inner product.

    RankFM knows only users and items with interactions: other users get the biases alone, and other items the
    user's lowest score. It would search for ever for an item that a user with all items has not touched, so such
    a user is left out.
    """
    from numpy.random import mtrand
    from rankfm.rankfm import RankFM

    n, m = training.shape
    counts = np.diff(training.indptr)
    kept = counts[training.users] < len(np.unique(training.indices))
    pairs = np.column_stack([training.users[kept], training.indices[kept]])
    if not len(pairs):
        raise ValueError("every user has touched every item: there is nothing to compare an item with")
    model = RankFM(
        factors=settings["factors"],
        loss=settings["loss"],
        alpha=float(settings["regularization"]),
        learning_rate=float(settings["learning_rate"]),
    )
    # RankFM draws from numpy's global generator: seed it, and leave it as it was
    before = mtrand.get_state()
    mtrand.seed(settings["random_state"])
    model.fit(pairs, epochs=settings["iterations"])
    mtrand.set_state(before)

    users = np.zeros((n, settings["factors"]), dtype=np.float32)
    users[model.user_id.to_numpy()] = model.v_u
    known = model.item_id.to_numpy()

    def scores(start: int, stop: int) -> Scores:
        utility = users[start:stop] @ model.v_i.T + model.w_i
        block = np.repeat(utility.min(axis=1, keepdims=True), m, axis=1)
        block[:, known] = utility
        return np.asarray(block, dtype=np.float32)

    negatives = "an item" if settings["loss"] == "bpr" else "the first of up to 10 items within a margin of 1"
    trained_on = f"{len(pairs):,} interactions, each against {negatives} drawn uniformly from the untouched"
    return Fitted(scores, trained_on, ("rankfm",))
