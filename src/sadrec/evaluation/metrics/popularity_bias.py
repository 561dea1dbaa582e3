"""Popularity bias: whether people are shown more popular things than they choose themselves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.evaluation.metrics.hits import Floats, Hits
from sadrec.evaluation.metrics.mean_popularity import mean_popularity


def popularity_bias(hits: Hits, popularity: NDArray[Any], own: NDArray[Any]) -> Floats:
    r"""Relative difference in popularity of what is recommended and what the user met in training, per user.

    .. math:: \frac{\bar c(R_u) - \bar c(I_u)}{\bar c(I_u)}

    0 means lists as popular as the user's own history, 1 twice as popular, below 0 less popular. Source: Abdollahpouri
    et al., "The unfairness of popularity bias in recommendation", RMSE workshop, RecSys 2019 (their GAP, per user).

    Parameters
    ----------
    popularity
        Training interactions of each item.
    own
        Mean popularity of the items each user met in training; NaN for a user who met none.

    Examples
    --------
    >>> hits = Hits(np.ones((1, 2), bool), np.array([2]), np.array([[0, 1]]))
    >>> popularity_bias(hits, popularity=np.array([8, 2]), own=np.array([4.0]))
    array([0.25])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(mean_popularity(hits, popularity) / own - 1.0)
