"""The share of pairs that the model orders as the ratings do."""

from sadrec.evaluation.metrics.pairs import Floats, Pairs


def match(pairs: Pairs) -> Floats:
    r"""Share of all pairs ordered as the user's ratings order them, per case.

    .. math:: \frac{1}{|I_u| - 1} \sum_{j \in I_u, j \ne o} 1(x_{uoj} > 0) 1(o \succ j) + 1(x_{ujo} > 0) 1(j \succ o)

    Pairs with equal ratings, and margins of exactly 0, count as no match: the ceiling is the share of unequal pairs.
    The mean over users is ``match``, the median over users ``match_per_user``. Source: the SAD paper, "Applications
    for Real Data", second evaluation equation.

    Examples
    --------
    >>> import numpy as np
    >>> match(Pairs(np.array([2.0, -1.0, -4.0, 5.0]), np.array([1, 1, -1, 0]), np.zeros(4, int), 1))
    array([0.5])
    """
    return pairs.mean(pairs.oriented > 0)
