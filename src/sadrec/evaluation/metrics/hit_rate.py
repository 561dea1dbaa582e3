"""Hit rate."""

import numpy as np

from sadrec.evaluation.metrics.hits import Floats, Hits


def hit_rate(hits: Hits) -> Floats:
    r"""Hit rate@N: whether the list holds at least one test item.

    .. math:: 1(R_u \cap T_u \ne \emptyset)

    Source: Deshpande and Karypis, ACM TOIS 22(1), 2004.

    Examples
    --------
    >>> hit_rate(Hits(np.array([[True, True], [False, False]]), np.array([4, 1]), np.zeros((2, 2), int)))
    array([1., 0.])
    """
    return np.asarray(hits.hit.any(axis=1), dtype=np.float64)
