"""Precision."""

import numpy as np

from sadrec.evaluation.metrics.hits import Floats, Hits


def precision(hits: Hits) -> Floats:
    r"""Precision@N: the share of the N places that hold a test item.

    .. math:: |R_u \cap T_u| / N

    Places that could not be filled count as misses. Source: Herlocker et al., ACM TOIS 22(1), 2004.

    Examples
    --------
    >>> precision(Hits(np.array([[True, False]]), np.array([4]), np.zeros((1, 2), int)))
    array([0.5])
    """
    return np.asarray(hits.hit.mean(axis=1))
