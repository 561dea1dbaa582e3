"""The share of sampled items that the held-out one beats."""

import numpy as np

from sadrec.evaluation.metrics.contest import Contest
from sadrec.evaluation.metrics.pairs import Floats


def sampled_auc(contest: Contest) -> Floats:
    r"""Share of sampled items the held-out one is preferred to, equals counting half, per case.

    .. math:: \frac{1}{|S_u|} \sum_{j \in S_u} 1(x_{uoj} > 0) + \tfrac12 1(x_{uoj} = 0)

    The area under the ROC curve of the held-out item: M1 without a cut, so that small changes of a user's rank show.
    Source: Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009.
    """
    return contest.average((contest.margin > 0) + 0.5 * np.equal(contest.margin, 0))
