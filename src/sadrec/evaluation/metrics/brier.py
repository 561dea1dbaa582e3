"""The Brier score of "the held-out item is preferred to an item never met"."""

import numpy as np

from sadrec.evaluation.metrics.contest import Contest
from sadrec.evaluation.metrics.pairs import Floats


def brier(contest: Contest) -> Floats:
    r"""Mean squared shortfall of the probability that the held-out item is preferred to a sampled one, per case.

    .. math:: \frac{1}{|S_u|} \sum_{j \in S_u} (1 - p_{uoj})^2

    The statement is the one implicit feedback makes: what a person met is preferred to what they did not. Source:
    Brier, Monthly Weather Review 78 (1950).
    """
    if contest.probability is None:
        raise ValueError("this model offers no probability; give it probability(user, item, rival)")
    return contest.average((1.0 - np.asarray(contest.probability, dtype=np.float64)) ** 2)
