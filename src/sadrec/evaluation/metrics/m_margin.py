"""The mean margin over the user's own items: M2 without ties."""

import numpy as np

from sadrec.evaluation.metrics.contest import Contest
from sadrec.evaluation.metrics.pairs import Floats


def m_margin(contest: Contest) -> Floats:
    r"""Hit of the held-out item when test items are ranked by their mean margin over the user's items, per case.

    .. math:: s_i = \frac{1}{|I_u^{train}|} \sum_{j \in I_u^{train}} x_{uij}, \quad i \in \{o\} \cup S_u

    The comparisons are those of :func:`~sadrec.evaluation.metrics.m2.m2`, but their sizes count: a real number has
    (almost) no ties, so no rule for equals colours the result.
    """
    own = contest.held_out_mean[contest.case]
    return np.where(contest.liked > 0, contest.hit(contest.mean > own, contest.mean == own), np.nan)
