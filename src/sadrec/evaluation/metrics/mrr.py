"""Mean reciprocal rank."""

import numpy as np

from sadrec.evaluation.metrics.hits import Floats, Hits


def mrr(hits: Hits) -> Floats:
    r"""Reciprocal rank of the first test item in the list, 0 if there is none; its mean over users is MRR@N.

    .. math:: 1 / \min\{p \le N : \text{hit at } p\}

    Source: Voorhees, TREC-8, 1999.

    Examples
    --------
    >>> mrr(Hits(np.array([[False, True], [False, False]]), np.array([4, 1]), np.zeros((2, 2), int)))
    array([0.5, 0. ])
    """
    first = hits.hit.argmax(axis=1)
    return np.where(hits.hit.any(axis=1), 1.0 / (first + 1.0), 0.0)
