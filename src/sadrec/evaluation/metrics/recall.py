"""Recall."""

import numpy as np

from sadrec.evaluation.metrics.hits import Floats, Hits


def recall(hits: Hits) -> Floats:
    r"""Recall@N: the share of a user's test items that are in the list.

    .. math:: |R_u \cap T_u| / |T_u|

    A user with more than N test items cannot reach 1 (some authors divide by min(N, |T_u|) instead). Source: Herlocker
    et al., ACM TOIS 22(1), 2004.

    Examples
    --------
    >>> recall(Hits(np.array([[True, False]]), np.array([4]), np.zeros((1, 2), int)))
    array([0.25])
    """
    return np.asarray(hits.hit.sum(axis=1) / hits.relevant)
