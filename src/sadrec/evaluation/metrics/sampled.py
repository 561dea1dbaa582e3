"""Recommendation: a held-out item among items sampled from those the user has not met."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Doubles
from sadrec.evaluation.metrics.pairs import FLOOR, mean_by


@dataclass(frozen=True)
class Contest:
    """Each held-out item o against items sampled from those its user has not met; one case is one (user, o).

    The first arrays are flat: they have one entry per (case, sampled item), the others one per case. A hit is to have
    fewer than ``cut`` of ``out_of`` sampled items ahead.
    """

    case: NDArray[Any]  # which case a sampled item belongs to, in 0 .. cases - 1
    margin: NDArray[Any]  # x_uoj of the held-out item over the sampled item j
    wins: NDArray[Any]  # how many items of the user's training set the sampled item is preferred to,
    mean: NDArray[Any]  # and its mean margin over them
    held_out_wins: NDArray[Any]  # the same for the held-out item
    held_out_mean: NDArray[Any]
    liked: NDArray[Any]  # how many items the user's training set has
    probability: NDArray[Any] | None = None  # flat: P(o preferred to j), if the model offers it
    cut: int = 20
    out_of: int = 100

    @property
    def cases(self) -> int:
        """The number of cases."""
        return len(self.liked)

    @property
    def sampled(self) -> NDArray[np.int64]:
        """Number of sampled items, per case."""
        return np.bincount(self.case, minlength=self.cases)

    def count(self, where: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count the sampled items in ``where``, per case."""
        return np.bincount(self.case[where], minlength=self.cases)

    def average(self, values: NDArray[Any]) -> Doubles:
        """Average flat ``values`` inside each case; NaN for a case without sampled items."""
        return mean_by(self.case, values, self.cases)

    @property
    def of_held_out(self) -> Doubles:
        """Flat: the probability given to the held-out item."""
        if self.probability is None:
            raise ValueError("this model offers no probability; give it probability(user, item, rival)")
        return np.asarray(self.probability, dtype=np.float64)

    def hit(self, ahead: NDArray[np.bool_], equal: NDArray[np.bool_]) -> Doubles:
        """Expected hit per case, from which sampled items are ahead of the held-out one and which equal to it."""
        return expected_hit(self.count(ahead), self.count(equal), self.sampled, self.cut, self.out_of)


def expected_hit(
    ahead: NDArray[Any], equal: NDArray[Any], sampled: NDArray[Any], cut: int = 20, out_of: int = 100
) -> Doubles:
    r"""Expected hit of the held-out item among ``sampled`` others: fewer than ``cut`` of ``out_of`` ahead of it.

    .. math:: \mathrm{clip}\left(\frac{c - \mathrm{ahead}}{\mathrm{equal} + 1}, 0, 1\right), \qquad
        c = \mathrm{cut} \cdot \mathrm{sampled} / \mathrm{out\_of}

    Among e equal items and the held-out one, random order puts each of 0..e equals before it with the same chance. A
    model that says nothing therefore scores 20/101 = 19.8 %, not 0 and not 100 %. A user with fewer than ``out_of``
    items not met has the cut scaled down in proportion, and no value (NaN) when there is none at all.

    Examples
    --------
    >>> expected_hit(np.array([19, 20, 0]), np.array([0, 0, 100]), np.array([100, 100, 100])).round(3)
    array([1.   , 0.   , 0.198])
    """
    sampled = np.asarray(sampled, dtype=np.float64)
    room = cut * sampled / out_of - ahead
    hit = np.clip(room / (np.asarray(equal) + 1.0), 0.0, 1.0)
    return np.where(sampled > 0, hit, np.nan)


def m1(contest: Contest) -> Doubles:
    r"""Hit of the held-out item when ranked by the number of sampled items preferred to it, per case.

    .. math:: \mathrm{ahead} = |\{j \in S_u : x_{uoj} < 0\}|, \quad \mathrm{equal} = |\{j \in S_u : x_{uoj} = 0\}|

    and :func:`expected_hit` of the two. Source: the SAD paper, "Applications
    for Real Data", method M1; "ranked higher than 20 (out of 100)" means fewer than 20 ahead.
    """
    return contest.hit(contest.margin < 0, contest.margin == 0)


def m2(contest: Contest) -> Doubles:
    r"""Hit of the held-out item when test items are ranked by the share of the user's items they beat, per case.

    .. math:: s_i = \frac{1}{|I_u^{train}|} |\{j \in I_u^{train} : x_{uij} > 0\}|, \quad i \in \{o\} \cup S_u

    ahead are the sampled items with a larger share, equal those with the same, and
    :func:`expected_hit` of the two counts is the value. Equals are frequent (a
    user with 4 items has 5 possible shares), so the rule for them matters; see ``m_margin`` for a ranking against the
    same items without ties. A user without training items has no value (NaN). Source: the SAD paper, "Applications
    for Real Data", method M2.
    """
    own = contest.held_out_wins[contest.case]
    return np.where(contest.liked > 0, contest.hit(contest.wins > own, contest.wins == own), np.nan)


def m_margin(contest: Contest) -> Doubles:
    r"""Hit of the held-out item when test items are ranked by their mean margin over the user's items, per case.

    .. math:: s_i = \frac{1}{|I_u^{train}|} \sum_{j \in I_u^{train}} x_{uij}, \quad i \in \{o\} \cup S_u

    The comparisons are those of :func:`m2`, but their sizes count: a real number has
    (almost) no ties, so the rule for equals does not matter.
    """
    own = contest.held_out_mean[contest.case]
    return np.where(contest.liked > 0, contest.hit(contest.mean > own, contest.mean == own), np.nan)


def sampled_auc(contest: Contest) -> Doubles:
    r"""Share of sampled items the held-out one is preferred to, equals counting half, per case.

    .. math:: \frac{1}{|S_u|} \sum_{j \in S_u} 1(x_{uoj} > 0) + \tfrac12 1(x_{uoj} = 0)

    The area under the ROC curve of the held-out item: M1 without a cut, so that small changes of a user's rank show.
    Source: Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009.
    """
    return contest.average((contest.margin > 0) + 0.5 * np.equal(contest.margin, 0))


def brier(contest: Contest) -> Doubles:
    r"""Mean squared shortfall of the probability that the held-out item is preferred to a sampled one, per case.

    .. math:: \frac{1}{|S_u|} \sum_{j \in S_u} (1 - p_{uoj})^2

    The statement is the one implicit feedback makes: what a person met is preferred to what they did not. Source:
    Brier, Monthly Weather Review 78 (1950).
    """
    return contest.average((1.0 - contest.of_held_out) ** 2)


def log_loss(contest: Contest) -> Doubles:
    r"""Mean negative log probability that the held-out item is preferred to a sampled one, per case.

    .. math:: -\frac{1}{|S_u|} \sum_{j \in S_u} \log p_{uoj}

    It is the held-out value of the likelihood that SAD and BPR maximise, with the sign turned; log 2 is what a model
    that says nothing scores. Source: the log likelihood of the SAD paper, "Inference algorithms".
    """
    return contest.average(-np.log(np.maximum(contest.of_held_out, FLOOR)))
