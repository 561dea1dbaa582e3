"""Average precision, whose mean over users is MAP."""

import numpy as np

from sadrec.evaluation.metrics.hits import Floats, Hits


def average_precision(hits: Hits) -> Floats:
    r"""Average precision@N; its mean over users is MAP@N.

    .. math:: \frac{1}{\min(N, |T_u|)} \sum_{p=1}^N 1(\text{hit at } p) \cdot \mathrm{precision@}p

    Source: Buckley and Voorhees, SIGIR 2000; cut at N and divided by the
    largest value that N places allow, so that 1 is possible.

    Examples
    --------
    >>> average_precision(Hits(np.array([[True, False, True]]), np.array([2]), np.zeros((1, 3), int))).round(4)
    array([0.8333])
    """
    precision_at = np.cumsum(hits.hit, axis=1) / np.arange(1, hits.length + 1)
    return np.asarray((hits.hit * precision_at).sum(axis=1) / np.minimum(hits.relevant, hits.length))
