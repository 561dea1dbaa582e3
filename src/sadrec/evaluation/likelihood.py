"""The log likelihood of the model's events: an interaction is preferred to a non-interaction of the same user."""

import numpy as np
from numpy.typing import NDArray

from sadrec._core import check
from sadrec._core.types import Doubles
from sadrec.data import Interactions
from sadrec.evaluation.metrics.pairs import FLOOR
from sadrec.evaluation.plan import in_ids_of, over_users, pattern, row_of
from sadrec.evaluation.protocol import HasProbability, source_of
from sadrec.evaluation.sampling import subset, uniforms, unmet_items


def log_likelihood(
    model: object,
    data: Interactions,
    *,
    train: Interactions | None = None,
    seed: int = 0,
    items: int = 10,
    negatives: int = 10,
    num_threads: int = 0,
) -> float:
    r"""Mean log probability of an interaction being preferred to a non-interaction of the same user.

    .. math:: \frac{1}{|D|} \sum_{(u, i) \in D} E_j \log p_{uij}, \qquad j \text{ never met by } u

    estimated from up to ``items`` interactions and ``negatives`` items never met for every user, drawn by (seed, user)
    and the same for every model; a user counts by the number of interactions. On the training data it is the goodness
    of fit by which the paper chooses models; on held-out data, with ``train`` given, it says how well that carries
    over.

    Parameters
    ----------
    model
        A model with ``probability(user, item, rival)``.
    data
        The interactions D.
    train
        When ``data`` is held out: the training part, whose items are not drawn as never met.
    seed, items, negatives
        What is drawn.
    num_threads
        0 means all cores. The result does not depend on it.

    Examples
    --------
    >>> from sadrec import SAD
    >>> model = SAD.from_factors([[1.0]], [[2.0], [0.0], [0.0]])
    >>> round(log_likelihood(model, Interactions.from_csr(np.array([[1, 0, 0]]))), 4)
    -0.1269
    """
    if not isinstance(model, HasProbability):
        raise ValueError(
            f"{type(model).__name__} offers no probability(user, item, rival), so it has no likelihood; select by a "
            "measure such as 'm1' instead"
        )
    if items < 1 or negatives < 1:
        raise ValueError(f"items and negatives must be at least 1, got {items} and {negatives}")
    if train is not None:
        data = in_ids_of(train, data)
    source = source_of(model, data)
    met = pattern(data) if train is None else pattern(data, train)

    def sums(rows: NDArray[np.int64]) -> Doubles:
        """Return the weighted sum of log probabilities and the sum of weights."""
        block = source.block(rows)
        numbers = uniforms(seed, rows, items + negatives)
        total = np.zeros(2)
        for position, row in enumerate(rows.tolist()):
            own, _ = row_of(data.matrix, row)
            drawn = own if len(own) <= items else own[subset(len(own), numbers[position, :items])]
            others = unmet_items(row_of(met, row)[0], met.shape[1], numbers[position, items:])
            if not len(others):
                continue
            p = source.probability(row, drawn, others, block(position, drawn, others))
            total += len(own) * np.array([np.log(np.maximum(np.asarray(p), FLOOR)).mean(), 1.0])
        return total

    rows = np.flatnonzero(np.diff(data.matrix.indptr))
    parts = list(over_users(sums, rows, check.threads(num_threads) if source.concurrent else 1))
    total, weight = np.sum(parts, axis=0) if parts else (np.nan, np.nan)
    return float(total / weight)
