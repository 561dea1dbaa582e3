"""The logarithmic loss of the probabilities a model gives to the order of a user's own ratings."""

import numpy as np

from sadrec.evaluation.metrics.log_loss import FLOOR
from sadrec.evaluation.metrics.pairs import Floats, Pairs


def rated_log_loss(pairs: Pairs) -> Floats:
    r"""Mean negative log probability of what happened, over unequally rated pairs, per case.

    .. math:: -\frac{1}{|\{j: r_{uj} \ne r_{uo}\}|} \sum_{j: r_{uj} \ne r_{uo}} \log p_{uj}

    where p is the probability given to the item that was rated higher, at least 1e-15. log 2 = 0.693 is what "one
    half" always scores; lower is better. Source: Good, JRSS B 14 (1952).

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.5, 0.5])
    >>> rated_log_loss(Pairs(np.zeros(2), np.array([1, -1]), np.zeros(2, int), 1, p)).round(4)
    array([0.6931])
    """
    return pairs.mean(-np.log(np.maximum(pairs.of_winner, FLOOR)), where=pairs.unequal)
