"""Models of comparisons that need a page each: Bradley-Terry, tables of frequencies, personal scores, blade-chest.

Each ``fit`` minimises the negative log likelihood plus ``penalty * sum(parameters ** 2)``, as choix does, and returns a
function that gives the probability of each comparison's winner. Comparisons count by their weights.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from sadrec import Comparisons

Doubles = NDArray[np.float64]
Predict = Callable[[Comparisons], Doubles]
Loss = Callable[[Doubles], tuple[float, Doubles]]


def weights_of(data: Comparisons) -> Doubles:
    """Return the weight of each comparison."""
    return np.ones(len(data)) if data.weight is None else np.asarray(data.weight, np.float64)


def log_loss(x: Doubles, weight: Doubles) -> tuple[float, Doubles]:
    """Return the negative log likelihood of winners with margins x, and its gradient in x."""
    return float(weight @ np.logaddexp(0, -x)), -weight * expit(-x)


def minimised(loss: Loss, start: Doubles, steps: int = 300) -> Doubles:
    """Return the minimum that L-BFGS finds."""
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxfun": 2 * steps})
    return np.asarray(found.x, np.float64)


# -- Bradley-Terry ----------------------------------------------------------------------------------------------------


def bradley_terry_loss(b: Doubles, data: Comparisons, penalty: float) -> tuple[float, Doubles]:
    """Return loss and gradient of ``x_ij = b_i - b_j``."""
    winner, loser = data.winner_index, data.loser_index
    value, slope = log_loss(b[winner] - b[loser], weights_of(data))
    gradient = np.bincount(winner, slope, len(b)) - np.bincount(loser, slope, len(b))
    return value + penalty * float(b @ b), gradient + 2 * penalty * b


def fit_scores(train: Comparisons, penalty: float, start: Doubles | None = None) -> Doubles:
    """Return the scores of Bradley and Terry (1952), with a ridge."""
    first = np.zeros(len(train.items)) if start is None else start
    return minimised(lambda b: bradley_terry_loss(b, train, penalty), first)


def bradley_terry(scores: Doubles) -> Predict:
    """Return the predictions of scores."""
    return lambda data: expit(scores[data.winner_index] - scores[data.loser_index])


# -- a table of frequencies -------------------------------------------------------------------------------------------


def frequency_table(train: Comparisons, below: Predict, strength: float, per_judge: bool = False) -> Predict:
    """Count who won, pairing by pairing; another model's prediction counts as so many comparisons before.

    ``per_judge`` counts for every judge alone.
    """
    keys = _keys(train, per_judge)
    known, place = np.unique(keys, return_inverse=True)
    low_won = train.winner_index < train.loser_index
    weight = weights_of(train)
    total = np.append(np.bincount(place, weight, len(known)), 0.0)
    won = np.append(np.bincount(place, weight * low_won, len(known)), 0.0)

    def predict(data: Comparisons) -> Doubles:
        asked = _keys(data, per_judge)
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        at = np.where(known[at] == asked, at, len(known))
        wins = np.where(data.winner_index < data.loser_index, won[at], total[at] - won[at])
        return np.asarray((wins + strength * below(data)) / (total[at] + strength))

    return predict


def _keys(data: Comparisons, per_judge: bool) -> NDArray[np.int64]:
    pairing = data.pairings()
    return data.user_index.astype(np.int64) * len(data.items) ** 2 + pairing if per_judge else pairing


# -- personal scores --------------------------------------------------------------------------------------------------


class Own:
    """The scores that judges have of their own: one for each item that a judge compared, 0 for the others."""

    def __init__(self, train: Comparisons) -> None:
        self._items = len(train.items)
        sides = [self._key(train, side) for side in (train.winner_index, train.loser_index)]
        self.known, place = np.unique(np.concatenate(sides), return_inverse=True)
        self.winner, self.loser = np.split(place, 2)

    def _key(self, data: Comparisons, side: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(data.user_index.astype(np.int64) * self._items + side)

    def places(self, data: Comparisons, side: NDArray[Any]) -> NDArray[np.int64]:
        """Return where the scores of one side of comparisons are; the last place is that of unknown ones."""
        asked = self._key(data, side)
        at = np.minimum(np.searchsorted(self.known, asked), len(self.known) - 1)
        return np.where(self.known[at] == asked, at, len(self.known))


def personal_loss(
    theta: Doubles, data: Comparisons, own: Own, penalty: float, own_penalty: float
) -> tuple[float, Doubles]:
    """Return loss and gradient of ``x_uij = b_i + d_ui - b_j - d_uj``; theta holds b, then d."""
    items = len(data.items)
    b, d = theta[:items], theta[items:]
    winner, loser = data.winner_index, data.loser_index
    value, slope = log_loss(b[winner] - b[loser] + d[own.winner] - d[own.loser], weights_of(data))
    common = np.bincount(winner, slope, items) - np.bincount(loser, slope, items)
    single = np.bincount(own.winner, slope, len(d)) - np.bincount(own.loser, slope, len(d))
    value += penalty * float(b @ b) + own_penalty * float(d @ d)
    return value, np.concatenate((common + 2 * penalty * b, single + 2 * own_penalty * d))


def personal_bradley_terry(train: Comparisons, penalty: float, own_penalty: float, scores: Doubles) -> Predict:
    """Fit Bradley-Terry scores for every judge, shrunk to scores that all have in common."""
    own, items = Own(train), len(train.items)
    start = np.concatenate((scores, np.zeros(len(own.known))))
    theta = minimised(lambda theta: personal_loss(theta, train, own, penalty, own_penalty), start, 200)
    b, d = theta[:items], np.append(theta[items:], 0.0)

    def predict(data: Comparisons) -> Doubles:
        winner, loser = data.winner_index, data.loser_index
        x = b[winner] - b[loser] + d[own.places(data, winner)] - d[own.places(data, loser)]
        return np.asarray(expit(x))

    return predict


# -- blade-chest ------------------------------------------------------------------------------------------------------


def blade_chest_loss(
    theta: Doubles, data: Comparisons, rank: int, penalty: float, skew_penalty: float
) -> tuple[float, Doubles]:
    """Return loss and gradient of ``x_ij = b_i - b_j + <blade_i, chest_j> - <blade_j, chest_i>``."""
    items = len(data.items)
    b, blade, chest = _parts(theta, items, rank)
    winner, loser = data.winner_index, data.loser_index
    x = b[winner] - b[loser] + _skew(blade, chest, winner, loser)
    value, slope = log_loss(x, weights_of(data))
    gradient = np.empty_like(theta)
    of_b, of_blade, of_chest = _parts(gradient, items, rank)
    of_b[:] = np.bincount(winner, slope, items) - np.bincount(loser, slope, items) + 2 * penalty * b
    for h in range(rank):
        for out, other, sign in ((of_blade, chest, 1.0), (of_chest, blade, -1.0)):
            won = np.bincount(winner, slope * other[loser, h], items)
            out[:, h] = sign * (won - np.bincount(loser, slope * other[winner, h], items))
    of_blade += 2 * skew_penalty * blade
    of_chest += 2 * skew_penalty * chest
    return value + penalty * float(b @ b) + skew_penalty * float(np.sum(blade**2) + np.sum(chest**2)), gradient


def blade_chest(train: Comparisons, rank: int, penalty: float, skew_penalty: float, scores: Doubles) -> Predict:
    """Fit blade-chest-inner (Chen and Joachims, 2016), who names no judges; mElo (Balduzzi et al., 2018) is the same.

    It starts from scores of Bradley-Terry and small random blades and chests.
    """
    items = len(train.items)
    start = np.concatenate((scores, 0.1 * np.random.default_rng(0).standard_normal(2 * items * rank)))
    theta = minimised(lambda theta: blade_chest_loss(theta, train, rank, penalty, skew_penalty), start)
    b, blade, chest = _parts(theta, items, rank)

    def predict(data: Comparisons) -> Doubles:
        winner, loser = data.winner_index, data.loser_index
        return np.asarray(expit(b[winner] - b[loser] + _skew(blade, chest, winner, loser)))

    return predict


def _parts(theta: Doubles, items: int, rank: int) -> tuple[Doubles, Doubles, Doubles]:
    """Return views of scores, blades and chests."""
    b, vectors = theta[:items], theta[items:].reshape(2, items, rank)
    return b, vectors[0], vectors[1]


def _skew(blade: Doubles, chest: Doubles, i: NDArray[Any], j: NDArray[Any]) -> Doubles:
    return np.asarray(np.sum(blade[i] * chest[j] - blade[j] * chest[i], axis=1))
