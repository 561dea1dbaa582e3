"""LightFM: factors and biases of users and items are sums over their features, trained on pairs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .als import as_csr
from .exchange import Fitted, Scores, Settings, Training


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``lightfm.LightFM``; a score is the inner product plus the item's bias.

    Rows of features are divided by their sums, as ``lightfm.data.Dataset`` does. Users and items without history have
    nothing but their features.
    """
    from lightfm import LightFM

    n, m = training.shape
    own = settings["own_factors"]
    users, items = (_rows(*side, own) for side in ((training.user_features, n), (training.item_features, m)))
    model = LightFM(
        no_components=settings["factors"],
        loss=settings["loss"],
        learning_rate=settings["learning_rate"],
        user_alpha=settings["regularization"],
        item_alpha=settings["regularization"],
        random_state=settings["random_state"],
    )
    model.fit(
        as_csr(training).tocoo(),
        user_features=users[:n],
        item_features=items[:m],
        epochs=settings["iterations"],
        num_threads=settings["num_threads"] or 1,
    )
    _, people = model.get_user_representations(users)
    biases, factors = model.get_item_representations(items)

    def scores(start: int, stop: int) -> Scores:
        return np.asarray(people[start:stop] @ factors.T + biases, dtype=np.float32)

    columns = users.shape[1] - n * bool(own), items.shape[1] - m * bool(own)
    trained_on = (
        f"{len(training.indices):,} interactions, each against an item drawn from the untouched ({settings['loss']}); "
        f"{columns[0]} features of users and {columns[1]} of items{', beside factors of their own' if own else ''}"
    )
    return Fitted(scores, trained_on, ("lightfm-next",))


def _rows(features: NDArray[np.float32] | None, known: int, own: bool) -> Any:
    """Return the features LightFM learns: a column for each user or item with history, then those given."""
    from scipy import sparse

    given = np.zeros((known, 0), np.float32) if features is None else features
    parts = [sparse.csr_matrix(given)]
    if own or not given.shape[1]:
        parts.insert(0, sparse.eye(len(given), known, dtype=np.float32))
    rows = sparse.hstack(parts).tocsr()
    total = np.asarray(abs(rows).sum(axis=1)).ravel()
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return (sparse.diags(scale) @ rows).tocsr().astype(np.float32)
