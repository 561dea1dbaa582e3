"""M2: which share of the user's own items an item beats."""

import numpy as np

from sadrec.evaluation.metrics.contest import Contest
from sadrec.evaluation.metrics.pairs import Floats


def m2(contest: Contest) -> Floats:
    r"""Hit of the held-out item when test items are ranked by the share of the user's items they beat, per case.

    .. math:: s_i = \frac{1}{|I_u^{train}|} |\{j \in I_u^{train} : x_{uij} > 0\}|, \quad i \in \{o\} \cup S_u

    ahead are the sampled items with a larger share, equal those with the same, and
    :func:`~sadrec.evaluation.metrics.expected_hit.expected_hit` of the two counts is the value. Equals are frequent (a
    user with 4 items has 5 possible shares), so the rule for them matters; see ``m_margin`` for a ranking against the
    same items without ties. A user without training items has no value (NaN). Source: the SAD paper, "Applications
    for Real Data", method M2.
    """
    own = contest.held_out_wins[contest.case]
    return np.where(contest.liked > 0, contest.hit(contest.wins > own, contest.wins == own), np.nan)
