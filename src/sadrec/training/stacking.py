"""Guard a fit of comparisons: weigh it against plain scores and a coin, by comparisons that a copy has not seen.

How much is to be learnt is hard to tell from few comparisons: where every item has one, any scale of the scores
explains them equally well. So the learner is fitted again, up to five times where that is cheap, with a part held out
(:class:`Fold`): single comparisons, and all comparisons of some pairings. What it says of them, what Bradley-Terry
scores say, and a coin are weighed so that they predict the held-out part best (stacking; Wolpert, 1992). Two weights
and a ridge are all that is chosen, so that the result is hardly ever worse than the best of the three.

Where there are several users and not too many comparisons, a learner without factors runs along: everybody has scores
of their own around those of all. Where people differ item by item and not along a few directions, as the seasons of a
league do, it is the better one, and takes the learner's place.

A third number, ``carry``, says how much of the margins is left for two items that nobody compared: what decides
between two decks of cards may be about these two alone.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._memory import give_back
from sadrec._moments import pairing_keys
from sadrec._types import Doubles
from sadrec.features.ridge import on_one_thread
from sadrec.training.beliefs import Rows
from sadrec.training.given import Pairs
from sadrec.training.own_scores import slices
from sadrec.training.variational import STATEMENT, SWEEPS, Variational

SHARE = 0.1  # of the comparisons, and once more of the pairings, that a fold holds out
FOLDS = 5  # at most
COST = 100_000  # of all folds together, in comparisons of one user
OF_SEVERAL = 3  # comparisons of one user that one of several users' costs as much as
OF_VECTOR = 10 / 9**3  # the same of a user or item, times the cube of the length of its vector
MOST = 25_000  # comparisons in a fold, where there are several users: of more, some users are left out
RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # of the scores; strongest first
DOUBT = 6.0  # how many nats of log likelihood a weight must bring to move by 1: it is expected within 0.3
SAMPLE = 60  # new pairings held out: fewer do not tell what carries over
CAUTION = 0.5  # so many standard errors ``carry`` may be behind the best
STEPS = 40  # of the weights between 0 and 1
EVEN = 1.25  # how many times longer than its share the largest learner may take for each to have a thread of its own


Predict = Callable[[Variational, Pairs], tuple[Doubles, Doubles]]
"""Gives mean and variance of the margins of comparisons, as a learner believes them."""


class Weights(NamedTuple):
    """What margins are made of: so much of the learner's and so much of the scores'.

    ``carry`` is what is left of them for two items that nobody compared.
    """

    learner: float = 1.0
    scores: float = 0.0
    carry: float = 1.0


class Told(NamedTuple):
    """What is said of held-out comparisons: margins by the learner, with their variance, and by scores per ridge.

    ``counts`` is how much each counts for comparisons to come, ``new`` whether its pairing is none of the others'.
    """

    mean: Doubles
    variance: Doubles
    scores: Doubles  # (ridges, comparisons)
    counts: Doubles
    weight: Doubles
    new: NDArray[np.bool_]
    pairing: NDArray[np.int64]


@dataclass
class Fold:
    """A copy of the learner, and the comparisons that it has not seen."""

    learners: list[Variational]  # one without factors last, where there is one
    held_out: Pairs  # users by their position in the fold
    train: Pairs
    counts: Doubles
    new: NDArray[np.bool_]

    def scores(self, items: int) -> Doubles:
        """Return the margins of what is held out by plain scores, one row for every ridge."""
        paths = score_path(self.train, items)
        return np.asarray(paths[:, self.held_out.winner] - paths[:, self.held_out.loser])


class Stack:
    """A learner and its folds, which make their sweeps together; what a run of sweeps takes.

    The arguments are those of :class:`~sadrec.training.variational.Variational`.
    """

    def __init__(
        self,
        pairs: Pairs,
        users: int,
        items: int,
        factors: int,
        seed: int,
        rivals: bool = True,
        threads: int = 1,
        executor: Executor | None = None,
        sweeps: int = SWEEPS,
        features: tuple[Any, Any] = (None, None),
        network: int | None = None,
    ) -> None:
        pairs = _counting(pairs)
        self.pairs, self._items = pairs, items
        parts = list(_folds(pairs, users, items, factors, seed)) if len(pairs) >= STATEMENT else []
        sizes = [len(pairs), *(len(part[0]) for part in parts)]
        # Where they keep all threads busy, every learner has one: that wastes less than sharing each step of each.
        apart = executor is not None and threads * max(sizes) <= EVEN * sum(sizes)
        self._executor = executor if apart else None
        rest = rivals, threads, None if apart else executor, sweeps
        more: dict[str, Any] = {"features": features, "network": network}
        self.learner = Variational(pairs, users, items, factors, seed, *rest, **more)
        self._plain: list[Variational] = []
        self.folds: list[Fold] = []
        alone = all(side is None for side in features)  # features tell factors more than scores
        lengths = [factors, 0] if users > 1 and len(pairs) <= MOST and alone else [factors]
        for train, held_out, known, counts, new in parts:
            own = None if features[0] is None else features[0][known], features[1]
            more = {"learns": True, "features": own, "network": network}
            learners = [Variational(train, len(known), items, length, seed, *rest, **more) for length in lengths]
            self.folds.append(Fold(learners, held_out, train, counts, new))
        if self.folds and len(lengths) > 1:
            self._plain = [Variational(pairs, users, items, 0, seed, *rest, learns=True)]
        give_back()  # what sorting took

    @property
    def rows(self) -> Rows:
        """The comparisons of the learner."""
        return self.learner.rows

    @property
    def sweep(self) -> int:
        """How many sweeps are made."""
        return self.learner.sweep

    def advance(self) -> float:
        """Make a sweep of all; return what the learner's returns."""
        each: Any = map if self._executor is None else self._executor.map
        with on_one_thread():  # else what NumPy adds up depends on how many others do so at the time
            likelihood, *_ = each(Variational.advance, [self.learner, *self._others()])
        give_back()
        return float(likelihood)

    def finish(self) -> None:
        """Give up what only another sweep needs."""
        for learner in (self.learner, *self._plain):
            learner.finish()

    def weigh(self, predict: Predict) -> tuple[Variational, Weights, Doubles | None]:
        """Return the learner to take, the weights, and the scores where they count."""
        if not self.folds:
            return self.learner, Weights(), None
        with on_one_thread():
            scores = [fold.scores(self._items) for fold in self.folds]
        told = [self._told(number, predict, scores) for number in range(1 + len(self._plain))]
        found = [weights_of(of_learner) for of_learner in told]
        counts = told[0].counts * told[0].weight
        chosen = int(np.argmin([counts @ _losses(*each) for each in zip(told, found, strict=True)]))
        weights, ridge = found[chosen]
        with on_one_thread():
            of_all = score_path(self.pairs, self._items)[ridge] if weights.scores else None
        return (self.learner, *self._plain)[chosen], weights, of_all

    def _told(self, number: int, predict: Predict, scores: list[Doubles]) -> Told:
        """Return what the learners of that number say of what their folds hold out, and the scores of the folds."""
        parts = []
        for fold, by_scores in zip(self.folds, scores, strict=True):
            held_out = fold.held_out
            weight = np.ones(len(held_out)) if held_out.weight is None else held_out.weight.astype(np.float64)
            pairing = pairing_keys(held_out.winner, held_out.loser, self._items)
            said = predict(fold.learners[number], held_out)
            parts.append(Told(*said, by_scores, fold.counts, weight, fold.new, pairing))
        joined = [np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in Told._fields]
        return Told(*joined)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the next sweep depends on: plain values and arrays."""
        values, arrays = self.learner.state()
        values["folds"] = []
        for number, learner in enumerate(self._others()):
            of_learner, more = learner.state()
            values["folds"].append(of_learner)
            arrays |= {f"fold{number}_{name}": array for name, array in more.items()}
        return values, arrays

    def _others(self) -> list[Variational]:
        """Return all learners but the first."""
        return [*(learner for fold in self.folds for learner in fold.learners), *self._plain]

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go to a state that :meth:`state` gave; see :meth:`Variational.restore`."""
        others = self._others()
        if len(values["folds"]) != len(others):
            raise ValueError(f"there are {len(values['folds'])} learners in folds")
        steps = []
        for number, (learner, of_fold) in enumerate(zip(others, values["folds"], strict=True)):
            start = f"fold{number}_"
            own = {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
            if of_fold["sweep"] != values["sweep"]:
                raise ValueError(f"fold {number} is at sweep {of_fold['sweep']}")
            steps.append(learner.checked(of_fold, own))
        steps.append(self.learner.checked(values, arrays))
        for step in steps:  # all of them, or none: an older state is used where one is refused
            step()


def _counting(pairs: Pairs) -> Pairs:
    """Return the comparisons whose weight is not 0: the others say nothing."""
    if pairs.weight is None or pairs.weight.all():
        return pairs
    return _part(pairs, np.flatnonzero(pairs.weight))


def _part(pairs: Pairs, rows: NDArray[np.int64]) -> Pairs:
    weight = None if pairs.weight is None else pairs.weight[rows]
    return Pairs(pairs.user[rows], pairs.winner[rows], pairs.loser[rows], weight)


def _folds(pairs: Pairs, users: int, items: int, factors: int, seed: int) -> Any:
    """Yield of each fold what to learn from and what is held out, its users, and what held-out rows are.

    A comparison that is held out with all of its pairing counts as often as a comparison to come is of a new pairing.
    """
    rng = np.random.default_rng((seed, 10))
    rows = np.arange(len(pairs))
    if users > 1 and len(pairs) > MOST:
        of_user = np.bincount(pairs.user, minlength=users)
        mixed = rng.permutation(users)
        rows = np.flatnonzero(np.isin(pairs.user, mixed[np.cumsum(of_user[mixed]) <= MOST]))
        if not len(rows):
            return
    vectors = len(np.unique(pairs.user[rows])) + len(np.unique((pairs.winner[rows], pairs.loser[rows])))
    cost = (OF_SEVERAL if users > 1 else 1) * len(rows) + OF_VECTOR * (factors + 1) ** 3 * vectors
    folds = min(max(int(COST / cost), 1), FOLDS)
    _, pairing = np.unique(pairing_keys(pairs.winner[rows], pairs.loser[rows], items), return_inverse=True)
    by_row, by_pairing = rng.random(len(rows)), rng.random(pairing.max() + 1)[pairing]
    for fold in range(folds):
        single = (by_row >= fold * SHARE) & (by_row < (fold + 1) * SHARE)
        whole = (by_pairing >= fold * SHARE) & (by_pairing < (fold + 1) * SHARE)
        held = single | whole
        if held.all() or not held.any():
            continue
        new = ~np.isin(pairing, pairing[~held])
        share = float(new[single & ~whole].mean()) if (single & ~whole).any() else 1.0
        counts = np.where(whole, share, 1.0)[held]
        known, user = np.unique(pairs.user[rows], return_inverse=True)
        if users > 1 and len(known) == 1:  # one user alone would be the population
            known = np.append(known, (known[0] + 1) % users)
        part = _part(pairs, rows)
        part = Pairs(user.astype(np.int32), part.winner, part.loser, part.weight)
        yield _part(part, np.flatnonzero(~held)), _part(part, np.flatnonzero(held)), known, counts, new[held]


def score_path(pairs: Pairs, items: int) -> Doubles:
    """Return the scores of Bradley and Terry (1952) for every ridge; each row starts from the one before.

    The ridge is that of choix: ``penalty * sum(scores ** 2)`` is added to the negative log likelihood.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    parts = slices(len(pairs))

    def part_of_loss(b: Doubles, rows: slice) -> tuple[float, Doubles]:
        winner, loser = pairs.winner[rows], pairs.loser[rows]
        weight = np.ones(len(winner)) if pairs.weight is None else pairs.weight[rows].astype(np.float64)
        x = b[winner] - b[loser]
        slope = -weight * expit(-x)
        gradient = np.bincount(winner, slope, items) - np.bincount(loser, slope, items)
        return float(weight @ np.logaddexp(0, -x)), np.asarray(gradient, np.float64)

    def loss(b: Doubles, ridge: float) -> tuple[float, Doubles]:
        losses, gradients = zip(*(part_of_loss(b, rows) for rows in parts), strict=True)
        return sum(losses) + ridge * float(b @ b), sum(gradients[1:], gradients[0]) + 2 * ridge * b

    path, scores = [], np.zeros(items)
    for ridge in RIDGES:
        options = {"maxiter": 200, "maxfun": 400}
        scores = minimize(loss, scores, (ridge,), jac=True, method="L-BFGS-B", options=options).x
        path.append(scores)
    return np.asarray(path)


def weights_of(told: Told) -> tuple[Weights, int]:
    """Return the weights that predict held-out comparisons best, and the place of the ridge.

    The weights of learner, scores and a coin sum to 1. They keep near the learner as long as the comparisons say little
    else. ``carry`` is the least that is within ``CAUTION`` standard errors of the best. The error is what pairings add
    to that of single comparisons: the games of one pairing are no independent evidence. Where most comparisons are of
    new pairings anyway, the weights are made for those, and all carries over; as it does where few were held out.
    """
    counts = told.weight * told.counts
    ridge = int(np.argmin([counts @ np.logaddexp(0, -scores) for scores in told.scores]))
    scores = told.scores[ridge]

    def losses(learner: float, plain: float, carry: float = 1.0) -> Doubles:
        return _weighed_losses(told.mean, told.variance, scores, learner, plain, carry)

    def loss(learner: float, plain: float) -> float:
        return float(counts @ losses(learner, plain)) + DOUBT * ((1 - learner) ** 2 + plain**2)

    learner, plain = _least(loss)
    usual = told.counts == 1
    known, pairing = np.unique(told.pairing[told.new], return_inverse=True)
    if len(known) < SAMPLE or np.average(told.new[usual], weights=told.weight[usual]) > 0.5:
        return Weights(learner, plain), ridge
    tried = np.linspace(0, 1, STEPS + 1)
    rows = np.array([(told.weight * losses(learner, plain, carry))[told.new] for carry in tried])
    total = rows.sum(axis=1) + DOUBT * (1 - tried) ** 2
    best = int(np.argmin(total))
    more = rows - rows[best]
    by_pairing = np.array([np.bincount(pairing, row) for row in more])
    excess = np.sqrt(np.maximum((by_pairing**2).sum(axis=1) - (more**2).sum(axis=1), 0.0))
    near = total - total[best] <= CAUTION * excess
    return Weights(learner, plain, float(tried[np.argmax(near)])), ridge


def _weighed_losses(
    mean: Doubles, variance: Doubles, scores: Doubles, learner: float, plain: float, carry: Any = 1.0
) -> Doubles:
    """Return the log loss of comparisons whose margins are weighed."""
    mean = carry * (learner * mean + plain * scores)
    odds = mean / np.sqrt(1 + np.pi / 8 * (carry * learner) ** 2 * variance)
    return np.asarray(np.logaddexp(0, -odds))


def _losses(told: Told, found: tuple[Weights, int]) -> Doubles:
    """Return the log loss of every held-out comparison with some weights and a ridge."""
    weights, ridge = found
    carry = np.where(told.new, weights.carry, 1.0)
    return _weighed_losses(told.mean, told.variance, told.scores[ridge], weights.learner, weights.scores, carry)


def _least(loss: Callable[[float, float], float]) -> tuple[float, float]:
    """Return two weights, not negative and at most 1 together, of least loss: by steps that get shorter."""
    at, step = (STEPS, 0), STEPS // 4
    best = loss(1.0, 0.0)
    while step:
        moves = ((step, 0), (-step, 0), (0, step), (0, -step), (step, -step), (-step, step))
        places = [(at[0] + a, at[1] + b) for a, b in moves]
        tried = [(loss(a / STEPS, b / STEPS), (a, b)) for a, b in places if min(a, b) >= 0 and a + b <= STEPS]
        value, place = min(tried)
        if value < best:
            best, at = value, place
        else:
            step //= 2
    return at[0] / STEPS, at[1] / STEPS
