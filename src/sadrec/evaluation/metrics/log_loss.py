"""The log loss of "the held-out item is preferred to an item never met"."""

import numpy as np

from sadrec.evaluation.metrics.contest import Contest
from sadrec.evaluation.metrics.pairs import Floats

# A probability of exactly 0 for what happened would make one pair decide the average of all.
FLOOR = 1e-15


def log_loss(contest: Contest) -> Floats:
    r"""Mean negative log probability that the held-out item is preferred to a sampled one, per case.

    .. math:: -\frac{1}{|S_u|} \sum_{j \in S_u} \log p_{uoj}

    It is the held-out value of the likelihood that SAD and BPR maximise, with the sign turned; log 2 is what a model
    that says nothing scores. Source: the log likelihood of the SAD paper, "Inference algorithms".
    """
    if contest.probability is None:
        raise ValueError("this model offers no probability; give it probability(user, item, rival)")
    return contest.average(-np.log(np.maximum(np.asarray(contest.probability, dtype=np.float64), FLOOR)))
