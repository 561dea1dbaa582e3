"""Normalised discounted cumulative gain."""

import numpy as np

from sadrec.evaluation.metrics.hits import Floats, Hits


def ndcg(hits: Hits) -> Floats:
    r"""nDCG@N with gain 1 for a test item, per user.

    .. math:: \frac{\sum_{p=1}^N 1(\text{hit at } p) / \log_2(p + 1)}{\sum_{p=1}^{\min(N, |T_u|)} 1 / \log_2(p + 1)}

    Source: Järvelin and Kekäläinen, ACM TOIS 20(4), 2002, with binary gain.

    Examples
    --------
    >>> ndcg(Hits(np.array([[True, False], [False, True]]), np.array([1, 1]), np.zeros((2, 2), int))).round(4)
    array([1.    , 0.6309])
    """
    discount = 1.0 / np.log2(np.arange(2, hits.length + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discount)])
    return np.asarray(hits.hit @ discount / ideal[np.minimum(hits.relevant, hits.length)])
