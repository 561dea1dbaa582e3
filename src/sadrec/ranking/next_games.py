"""Active selection of the pairs to compare next for a ranking, or its top: a batch, chosen greedily.

The strengths of the items are normal, with a covariance S. A comparison of items i and j, whose margin has the
curvature c, makes it ``S - k v v'`` with ``v = S (e_i - e_j)`` and ``k = c / (1 + c v_i - c v_j)``. Two items a and b
stand in doubt by the density w_ab of their difference at 0: what a comparison is worth is how much it takes from the
variances of all differences, weighted so. The part of their margin beyond the strengths lowers the information.
"""

import numpy as np

from sadrec._core.types import Doubles, Positions
from sadrec.ranking.belief import Belief
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.rank import LONGEST
from sadrec.ranking.results import Results


def next_games(
    belief: Belief, users: Positions | None, items: Positions, N: int, top: int | None, results: Results | None
) -> tuple[Positions, Positions]:
    """Return the N pairs whose comparisons together tell most about the ranking of items, or about its top.

    ``users``: as for :meth:`Belief.strengths`. Fewer pairs are returned where fewer exist.
    """
    if not 2 <= len(items) <= LONGEST:
        raise ValueError(f"pairs are chosen among 2 to {LONGEST} items, not {len(items)}: name some")
    draws = belief.strengths(users, items, items, results)
    mean, covariance = draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))
    spread = np.maximum(_differences(covariance), 1e-12)
    doubt = np.exp(-((mean[:, None] - mean) ** 2) / (2 * spread)) / np.sqrt(spread)
    np.fill_diagonal(doubt, 0.0)
    if top is not None:
        last = np.partition(draws, -min(top, len(items)), axis=1)[:, -min(top, len(items))]
        inside = (draws >= last[:, None]).mean(axis=0)
        # Whether items are in the top, and their order there; not the order of the others.
        doubt *= 1.0 - np.outer(1.0 - inside, 1.0 - inside)
    alone, row = (belief.average if users is None else belief.of_group(users)), 0
    margin, variance = alone.distribution(row, items[:, None], items)
    flatter = 1.0 / np.sqrt(1.0 + np.pi * variance / 8.0)
    p = sigmoid(margin * flatter)
    curvature = p * (1.0 - p) * flatter
    curvature /= 1.0 + curvature * np.maximum(variance - spread, 0.0)
    return _greedy(
        covariance, np.diag(doubt.sum(axis=1)) - doubt, curvature, min(N, len(items) * (len(items) - 1) // 2)
    )


def _greedy(covariance: Doubles, doubt: Doubles, curvature: Doubles, N: int) -> tuple[Positions, Positions]:
    """Choose pairs one after the other, as if each had been compared."""
    size = len(covariance)
    covariance, worth = covariance.copy(), covariance @ doubt @ covariance
    free = np.triu(np.ones((size, size), np.bool_), 1)
    one, other = np.empty(N, np.int64), np.empty(N, np.int64)
    for step in range(N):
        gain = curvature * _differences(worth) / (1.0 + curvature * _differences(covariance))
        i, j = np.unravel_index(int(np.argmax(np.where(free, gain, -1.0))), gain.shape)
        one[step], other[step] = i, j
        free[i, j] = False
        moved = covariance[:, i] - covariance[:, j]
        less = curvature[i, j] / (1.0 + curvature[i, j] * (moved[i] - moved[j]))
        turned = doubt @ moved
        across = covariance @ turned
        worth -= less * (np.outer(moved, across) + np.outer(across, moved))
        worth += less**2 * float(moved @ turned) * np.outer(moved, moved)
        covariance -= less * np.outer(moved, moved)
    return one, other


def _differences(matrix: Doubles) -> Doubles:
    """Return ``(e_i - e_j)' M (e_i - e_j)`` for all i and j."""
    diagonal = np.diagonal(matrix)
    return np.asarray(diagonal[:, None] + diagonal - 2 * matrix)


def best_judges(belief: Belief, one: Positions, other: Positions) -> Positions:
    """Return a judge for each pair, whose answer tells most about the average judge; each judge gets as many pairs.

    What is a judge's alone is noise there: it flattens the curvature of the margin.
    """
    count = belief.parameters.n_users
    judges = np.unique(np.linspace(0, count - 1, min(count, LONGEST)).astype(np.int64))  # evenly over all
    mean, variance = belief.distribution(judges[:, None], one, other)
    common = belief.average.distribution(0, one, other)[1]
    p = sigmoid(mean / np.sqrt(1.0 + np.pi * variance / 8.0))
    tells = p * (1.0 - p)
    tells /= 1.0 + tells * np.maximum(variance - common, 0.0)
    most, given = -(-len(one) // len(judges)), np.zeros(len(judges), np.int64)
    answer = np.empty(len(one), np.int64)
    for pair in range(len(one)):
        best = int(np.argmax(np.where(given < most, tells[:, pair], -1.0)))
        given[best] += 1
        answer[pair] = judges[best]
    return answer
