"""The mean predicted preference for the item that was rated higher."""

from sadrec.evaluation.metrics.pairs import Floats, Pairs


def mean_margin(pairs: Pairs) -> Floats:
    r"""Mean margin in the direction of the user's ratings, per case.

    .. math:: \frac{1}{|I_u| - 1} \sum_{j \in I_u, j \ne o} x_{uoj} 1(o \succ j) + x_{ujo} 1(j \succ o)

    The average is taken inside the user first, then over users. Pairs with equal ratings contribute 0 and stay in the
    denominator, as printed. Source: the SAD paper, "Applications for Real Data", first evaluation equation (with the
    user as the index of x, and the factor inside the sum over users).

    Examples
    --------
    >>> import numpy as np
    >>> mean_margin(Pairs(np.array([2.0, -1.0, 5.0]), np.array([1, 1, 0]), np.zeros(3, int), 1))
    array([0.33333333])
    """
    return pairs.mean(pairs.oriented)
