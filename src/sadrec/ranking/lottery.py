"""Two ways to weigh the items of a tournament that respect its cycles: a random walk, and a game.

Both give weights that add up to one. Rank centrality spreads them over all items; the maximal lottery puts them on the
few that nothing beats on average.
"""

import numpy as np

from sadrec._types import Doubles
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.tournament import dominance_components

_STEPS, _GAP = 200, 1e-13
"""Newton steps at most, and what a game may be lost by, relative to the largest margin."""


def rank_centrality(margins: Doubles) -> Doubles:
    """Compute the stationary distribution of a walk that moves from an item to a rival as often as the rival wins.

    From item i the walk picks one of the other n - 1 items at random and moves there with the probability
    ``sigmoid(x_ji)`` that it is preferred. Where the margins are differences of scores (BPR) the distribution is the
    softmax of the scores (Negahban, Oh and Shah, 2017). Each weight has full relative precision: nothing is subtracted.

    >>> scores = np.log([1.0, 2.0, 5.0])
    >>> rank_centrality(scores[:, None] - scores[None, :])
    array([0.125, 0.25 , 0.625])
    """
    size = len(margins)
    if not size:
        return np.zeros(0)
    # rate[i, j]: how readily the walk goes from i to j. The diagonal plays no part.
    rate = sigmoid(margins.T)
    # Elimination of Grassmann, Taksar and Heyman: items leave the chain one after the other.
    for last in range(size - 1, 0, -1):
        out = rate[last, :last].sum()
        rate[:last, last] /= max(out, np.finfo(np.float64).tiny)
        rate[:last, :last] += np.outer(rate[:last, last], rate[last, :last])
    weights = np.zeros(size)
    weights[0] = 1.0
    for last in range(1, size):
        weights[last] = weights[:last] @ rate[:last, last]
        weights[: last + 1] /= weights[: last + 1].sum()
    return weights


def maximal_lottery(margins: Doubles) -> Doubles:
    """Compute how often to choose each item so that no item beats the choice on average: the Nash average.

    Weights p >= 0 with ``sum p = 1`` and ``X p <= 0`` always exist: they are the optimal strategy of the symmetric game
    X. Nearly always they are unique; otherwise the centre of all such weights is returned, so that copies of an item
    share alike. An item that beats all others gets 1. Items that each of the Smith set beats have no weight, so the
    game is solved for the Smith set alone.

    >>> maximal_lottery(np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [-2.0, 3.0, 0.0]])).round(4)
    array([0.5   , 0.3333, 0.1667])
    """
    weights = np.zeros(len(margins))
    for best in dominance_components(margins)[:1]:
        weights[best] = _centre(margins[np.ix_(best, best)]) if best.size > 1 else 1.0
    return weights


def _centre(margins: Doubles) -> Doubles:
    """Return the analytic centre of the optimal strategies of a game of some items.

    The linear program ``min theta`` subject to ``s = theta - X p >= 0`` is its own dual. Newton's method follows the
    central path ``p_i s_i = mu`` down to ``mu = 0`` (Goldman and Tucker: of p_i and s_i exactly one is positive there).
    """
    size = len(margins)
    x = margins / max(float(np.abs(margins).max()), np.finfo(np.float64).tiny)
    p = np.full(size, 1.0 / size)
    theta = 1.0 + float((x @ p).max())
    # Towards the end the path is only centred: the last steps aim at where they are.
    aims = [0.0] * _STEPS + [1.0] * 2
    for aim in aims:
        if aim == 0.0 and theta < _GAP:
            continue
        slack = theta - x @ p
        mu = theta / size
        # Away from the path, first return to it.
        aim = max(aim, 0.1 if (p * slack).min() > 0.1 * mu else 0.8)
        system = -x
        system[np.diag_indices(size)] += slack / p
        # (slack / p) dp - X dp + dtheta = (aim mu - p slack) / p,  sum dp = 0
        solved = np.linalg.solve(system, np.stack([aim * mu / p - slack, np.ones(size)], axis=1))
        d_theta = float(solved[:, 0].sum() / solved[:, 1].sum())
        d_p = solved[:, 0] - solved[:, 1] * d_theta
        d_slack = d_theta - x @ d_p
        shrinking = max(float((-d_p / p).max()), float((-d_slack / slack).max()))
        step = min(1.0, 0.95 / shrinking) if shrinking > 0 else 1.0
        p = p + step * d_p
        p /= p.sum()
        theta = theta + step * d_theta
    p[p < theta - x @ p] = 0.0
    return np.asarray(p / p.sum())
