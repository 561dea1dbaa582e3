"""M1: how many sampled items are preferred to the held-out one."""

from sadrec.evaluation.metrics.contest import Contest
from sadrec.evaluation.metrics.pairs import Floats


def m1(contest: Contest) -> Floats:
    r"""Hit of the held-out item when ranked by the number of sampled items preferred to it, per case.

    .. math:: \mathrm{ahead} = |\{j \in S_u : x_{uoj} < 0\}|, \quad \mathrm{equal} = |\{j \in S_u : x_{uoj} = 0\}|

    and :func:`~sadrec.evaluation.metrics.expected_hit.expected_hit` of the two. Source: the SAD paper, "Applications
    for Real Data", method M1; "ranked higher than 20 (out of 100)" means fewer than 20 ahead.
    """
    return contest.hit(contest.margin < 0, contest.margin == 0)
