"""Average recommendation popularity."""

from typing import Any

from numpy.typing import NDArray

from sadrec.evaluation.metrics.hits import Floats, Hits


def mean_popularity(hits: Hits, popularity: NDArray[Any]) -> Floats:
    r"""Mean number of training interactions of the recommended items, per user (ARP).

    .. math:: \frac{1}{|R_u|} \sum_{i \in R_u} c_i

    Source: Yin et al., "Challenging the long tail recommendation", VLDB 2012.

    Examples
    --------
    >>> import numpy as np
    >>> mean_popularity(Hits(np.ones((1, 2), bool), np.array([2]), np.array([[0, 1]])), np.array([8, 2]))
    array([5.])
    """
    return hits.mean_over_list(popularity)
