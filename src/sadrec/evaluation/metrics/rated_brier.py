"""The Brier score of the probabilities a model gives to the order of a user's own ratings."""

from sadrec.evaluation.metrics.pairs import Floats, Pairs


def rated_brier(pairs: Pairs) -> Floats:
    r"""Mean squared error of the probability given to what happened, over unequally rated pairs, per case.

    .. math:: \frac{1}{|\{j: r_{uj} \ne r_{uo}\}|} \sum_{j: r_{uj} \ne r_{uo}} (1 - p_{uj})^2

    where p is the probability given to the item that was rated higher. 0.25 is what "one half" always scores; lower
    is better. Source: Brier, Monthly Weather Review 78 (1950), in the two-class form.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.5, 0.9])
    >>> rated_brier(Pairs(np.array([0.0, 2.2]), np.array([1, 1]), np.zeros(2, int), 1, p)).round(3)
    array([0.13])
    """
    return pairs.mean((1.0 - pairs.of_winner) ** 2, where=pairs.unequal)
