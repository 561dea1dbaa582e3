"""Novelty: how surprising the recommended items are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.evaluation.metrics.hits import Floats, Hits


def novelty(hits: Hits, popularity: NDArray[Any], users: int) -> Floats:
    r"""Mean self-information of the recommended items in bits, per user.

    .. math:: \frac{1}{|R_u|} \sum_{i \in R_u} -\log_2 \frac{\max(c_i, 1)}{n}

    where c_i of the n users met item i in training; an item nobody met counts as met by one. Higher is less popular.
    Source: Zhou et al., PNAS 107(10), 2010.

    Examples
    --------
    >>> novelty(Hits(np.ones((1, 2), bool), np.array([2]), np.array([[0, 1]])), np.array([8, 2]), users=8)
    array([1.])
    """
    return hits.mean_over_list(-np.log2(np.maximum(popularity, 1) / users))
