"""A visitor who answers "this or that": what is known of their taste, how surely, and what to ask next.

With the items' parameters fixed, what is known of a visitor after some answers is nearly a normal distribution of their
vector: the mean is that of :mod:`~sadrec.ranking.fold_in`, the covariance Laplace's approximation. Every margin is
linear in the vector, so it is normal too, and every question below has a short answer.

Answers that contradict each other are noise or a cycle. Which of the two is a matter of probability: that every step of
the cycle holds, given all answers. Asking a step again settles it.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._check import share, whole
from sadrec._types import Doubles, Positions
from sadrec.ranking.cycles import Cycle, cycles
from sadrec.ranking.fold_in import average_user, fold_in_comparisons, pair_design
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.parameters import Parameters, item_positions
from sadrec.ranking.tournament import Tournament, tournament
from sadrec.ranking.vectors import item_vectors

DRAWS = 1000
"""How many vectors are drawn for what has no formula: places in a list, and whether a cycle is real."""

SURPRISING = 0.1
"""An answer is asked again if the other answers gave it a smaller probability than this."""

SURE = 0.9
"""From which probability on an order counts as known; a cycle below 1 - SURE as noise."""

_EVERY = 4
"""Every which question tests a cycle that is suspected."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)


@dataclass(frozen=True, eq=False)
class Question:
    """Two items to choose from."""

    item: int
    rival: int
    bits: float  # what the answer is expected to tell, at most 1
    probability: float  # that the item is chosen
    reason: str = "new"  # "new", "step" of a cycle that is suspected; or why it is asked again: "cycle", "surprise"


@dataclass(frozen=True, eq=False)
class Contradiction:
    """Answers that form a cycle."""

    cycle: Cycle  # its margins are how much more often each step was answered so than the other way round
    probability: float  # that every step is what the visitor prefers

    @property
    def verdict(self) -> str:
        """Say "cycle" or "noise" where that is known to nine in ten, else "open"."""
        return "cycle" if self.probability >= SURE else "noise" if self.probability <= 1 - SURE else "open"


@dataclass(frozen=True, eq=False)
class Visitor:
    """What is known of a visitor who has answered some questions.

    Items and rivals are positions.

    Attributes
    ----------
    parameters
        Of the model.
    vector, covariance
        Mean and covariance of the visitor's xi.
    winners, losers
        The answers, in order.

    Examples
    --------
    >>> tastes = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-0.1, 0.9]]))
    >>> known = visitor(tastes, [0, 1], [2, 3])
    >>> float(known.probability(0, 3).round(2))
    0.61
    >>> known.ask_next(np.arange(4)).reason
    'new'
    """

    parameters: Parameters
    vector: Doubles = field(repr=False)
    covariance: Doubles = field(repr=False)
    winners: Positions = field(repr=False)
    losers: Positions = field(repr=False)

    # -- one item against another -------------------------------------------------------------------------------------

    def margin(self, items: ArrayLike, rivals: ArrayLike) -> tuple[Doubles, Doubles]:
        """Return mean and standard deviation of the margins of items over rivals, which broadcast."""
        i, j = np.broadcast_arrays(np.asarray(items), np.asarray(rivals))
        design, offset = pair_design(self.parameters, i.ravel(), j.ravel())
        mean = design @ self.vector + offset
        variance = np.einsum("ph,ph->p", design @ self.covariance, design)
        return mean.reshape(i.shape), np.sqrt(np.maximum(variance, 0)).reshape(i.shape)

    def probability(self, items: ArrayLike, rivals: ArrayLike) -> Doubles:
        """Return the probability that the visitor chooses items over rivals, averaged over what is not known."""
        mean, deviation = self.margin(items, rivals)
        return _chance(mean, deviation**2)

    # -- the list ------------------------------------------------------------------------------------------------------

    @cached_property
    def draws(self) -> Doubles:
        """Vectors that the visitor may have, (draws, factors), always the same ones."""
        noise = np.random.default_rng(0).standard_normal((DRAWS, self.vector.size))
        values, axes = np.linalg.eigh(self.covariance)
        return np.asarray(self.vector + (noise * np.sqrt(np.maximum(values, 0))) @ axes.T)

    @cached_property
    def _scores(self) -> tuple[Doubles, Doubles]:
        """Mean and standard deviation of the mean margin of every item over the catalogue."""
        vectors = item_vectors(self.parameters).astype(np.float64)
        k = self.vector.size
        mean = vectors[:, :k] @ self.vector + (vectors[:, k] if vectors.shape[1] > k else 0.0)
        variance = np.einsum("ih,ih->i", vectors[:, :k] @ self.covariance, vectors[:, :k])
        return mean, np.sqrt(np.maximum(variance, 0))

    def best(self, N: int = 10, hopeful: bool = False) -> Positions:
        """Return the N items of the highest mean margin; or, if ``hopeful``, of the highest that is not unlikely."""
        mean, deviation = self._scores
        score = mean + deviation if hopeful else mean
        return np.argsort(-score, kind="stable")[: whole(N, "N")]

    def places(self, N: int = 10, *, among: int = 200, level: float = 0.9) -> dict[str, NDArray[Any]]:
        """Return the best N items with their mean margin, and between which places each is with probability ``level``.

        The keys are ``items``, ``scores``, ``deviations``, ``lower`` and ``upper`` (places among the best ``among``,
        from 1) and ``first``, the probability that the item is the best of them.
        """
        tail = (1 - share(level, "level", inside=True)) / 2
        mean, deviation = self._scores
        candidates = self.best(max(N, among))
        vectors = item_vectors(self.parameters)[candidates].astype(np.float64)
        k = self.vector.size
        scores = self.draws @ vectors[:, :k].T + (vectors[:, k] if vectors.shape[1] > k else 0.0)
        order = np.argsort(-scores, axis=1, kind="stable")
        places = np.empty(order.shape, np.int64)
        np.put_along_axis(places, order, np.arange(1, len(candidates) + 1)[None], axis=1)
        items = candidates[:N]
        lower, upper = np.quantile(places[:, :N], (tail, 1 - tail), axis=0, method="nearest")
        return {
            "items": items,
            "scores": mean[items],
            "deviations": deviation[items],
            "lower": lower.astype(np.int64),
            "upper": upper.astype(np.int64),
            "first": (places[:, :N] == 1).mean(axis=0),
        }

    def sureness(self, N: int = 10) -> float:
        """Return the share of the pairs among the best N items whose order is known with a probability of 0.9."""
        items = self.best(N)
        one, other = np.triu_indices(len(items), 1)
        if not one.size:
            return 0.0
        mean, deviation = self.margin(items[one], items[other])
        from scipy.special import ndtr

        known = ndtr(np.abs(mean) / np.maximum(deviation, np.finfo(np.float64).tiny))
        return float((known >= SURE).mean())

    # -- cycles --------------------------------------------------------------------------------------------------------

    def cycle_probability(self, path: ArrayLike) -> float:
        """Return the probability that every item of a path is preferred to the next, and the last to the first."""
        items = item_positions(self.parameters, path, "path")
        design, offset = pair_design(self.parameters, items, np.roll(items, -1))
        return float(((self.draws @ design.T + offset) > 0).all(axis=1).mean())

    def cycles(self, N: int = 30) -> list[Cycle]:
        """Return the cycles among the visitor's best N items, strongest first: see ``sadrec.SAD.cycles``."""
        return cycles(tournament(self.parameters, self.vector, self.best(N)))

    @cached_property
    def contradictions(self) -> list[Contradiction]:
        """The cycles that the answers themselves form, a pair answered both ways counting by its majority."""
        items, at = np.unique(np.concatenate([self.winners, self.losers]), return_inverse=True)
        net = np.zeros((len(items), len(items)))
        half = len(self.winners)
        np.add.at(net, (at[:half], at[half:]), 1.0)
        found = cycles(Tournament(items, net - net.T))
        return [Contradiction(cycle, self.cycle_probability(cycle.path)) for cycle in found]

    @cached_property
    def surprise(self) -> Doubles:
        """The probability of each answer by all the other answers; the smaller, the more it contradicts them.

        One answer is taken out of Laplace's approximation by a single Newton step.
        """
        mean, deviation = self.margin(self.winners, self.losers)
        spread = deviation**2
        p = sigmoid(mean)
        left = np.maximum(1 - p * (1 - p) * spread, 0.05)
        return _chance(mean - spread * (1 - p) / left, spread / left)

    # -- what to ask ---------------------------------------------------------------------------------------------------

    def questions(self, items: ArrayLike | None = None, N: int = 1) -> list[Question]:
        """Return the N pairs of items, not yet asked about, whose answer is expected to tell most of the vector.

        What an answer tells is the mutual information of answer and vector, in bits. Items left out are the best 60
        that the visitor may have.
        """
        pool = self.best(60, hopeful=True) if items is None else item_positions(self.parameters, items)
        one, other = np.triu_indices(len(pool), 1)
        i, j = pool[one], pool[other]
        asked = _keys(self.winners, self.losers, self.parameters.n_items)
        new = ~np.isin(_keys(i, j, self.parameters.n_items), asked)
        i, j = i[new], j[new]
        bits = _information(*self.margin(i, j))
        order = np.argsort(-bits, kind="stable")[: whole(N, "N")]
        chance = self.probability(i[order], j[order])
        rows = zip(i[order].tolist(), j[order].tolist(), bits[order].tolist(), chance.tolist(), strict=True)
        return [Question(*row) for row in rows]

    def ask_next(self, items: ArrayLike | None = None, wait: int = 2) -> Question | None:
        """Return what to ask next, or None if there is nothing to ask.

        A cycle among the answers of which it is open whether it is noise is asked about again, its least sure step
        first, and so is an answer that the others make improbable; each pair once more, and not before ``wait`` other
        answers. Every fourth question is the least sure step of the strongest cycle among the visitor's best items that
        has not been asked about: so cycles are tested. Otherwise it is the first of :meth:`questions` that is not about
        the two items just shown.
        """
        return self._again(wait) or self._step() or self._new(items)

    def _again(self, wait: int) -> Question | None:
        n_items = self.parameters.n_items
        keys = _keys(self.winners, self.losers, n_items)
        times = {int(key): int(count) for key, count in zip(*np.unique(keys, return_counts=True), strict=True)}
        recent = set(keys[len(keys) - wait :].tolist()) if wait else set()
        waiting: list[tuple[int, int, str]] = []
        for contradiction in self.contradictions:
            if contradiction.verdict == "open":
                path = np.asarray(contradiction.cycle.path)
                steps = np.argsort(self.probability(path, np.roll(path, -1)), kind="stable")
                waiting.extend((int(path[step]), int(np.roll(path, -1)[step]), "cycle") for step in steps)
        once = np.array([times[key] == 1 for key in keys.tolist()], bool)
        if once.any() and self.surprise[once].min() < SURPRISING:  # the most surprising one alone: it upsets the others
            answer = np.flatnonzero(once)[self.surprise[once].argmin()]
            waiting.append((int(self.winners[answer]), int(self.losers[answer]), "surprise"))
        for item, rival, reason in waiting:
            key = int(_keys(np.array([item]), np.array([rival]), n_items)[0])
            if times[key] == 1 and key not in recent:
                chance = float(self.probability(item, rival))
                bits = float(_information(*self.margin([item], [rival]))[0])
                # The other way round than at first: who always takes the left one is found out.
                return Question(rival, item, bits, 1 - chance, reason)
        return None

    def _step(self) -> Question | None:
        if len(self.winners) % _EVERY != _EVERY - 1 or len(self.winners) < 2 * _EVERY - 1:
            return None
        asked = set(_keys(self.winners, self.losers, self.parameters.n_items).tolist())
        for cycle in self.cycles()[:1]:
            path, after = np.asarray(cycle.path), np.roll(cycle.path, -1)
            keys = _keys(path, after, self.parameters.n_items)
            chance = self.probability(path, after)
            bits = _information(*self.margin(path, after))
            for step in np.argsort(chance, kind="stable"):
                if int(keys[step]) not in asked:
                    return Question(int(path[step]), int(after[step]), float(bits[step]), float(chance[step]), "step")
        return None

    def _new(self, items: ArrayLike | None) -> Question | None:
        shown = {*self.winners[-1:].tolist(), *self.losers[-1:].tolist()}
        found = self.questions(items, N=200)
        return next((one for one in found if not shown & {one.item, one.rival}), found[0] if found else None)


def visitor(
    parameters: Parameters,
    winners: ArrayLike = (),
    losers: ArrayLike = (),
    *,
    spread: Doubles | None = None,
) -> Visitor:
    """Return what is known of a visitor from their answers; without any, what is known of everybody.

    ``spread`` is by how much users differ in each factor, ``None`` for how much the model's users do.
    """
    i, j = (item_positions(parameters, np.asarray(side, np.int64), "answers") for side in (winners, losers))
    if spread is None:
        users = parameters.user_factors
        spread = np.std(users, axis=0, dtype=np.float64) if len(users) > 1 else np.ones(parameters.n_factors)
    if not i.size and not j.size:
        return Visitor(parameters, average_user(parameters), np.diag(np.maximum(spread, 1e-4) ** 2), i, j)
    folded = fold_in_comparisons(parameters, i, j, spread=spread)
    return Visitor(parameters, folded.vector, folded.covariance, i, j)


def _information(mean: Doubles, deviation: Doubles) -> Doubles:
    """Return how many bits a yes or no with log-odds N(mean, deviation^2) tells about the log-odds."""
    p = sigmoid(mean[:, None] + deviation[:, None] * _NODES)
    weights = _WEIGHTS / _WEIGHTS.sum()
    return np.asarray(np.maximum(_entropy(p @ weights) - _entropy(p) @ weights, 0.0))


def _entropy(p: Doubles) -> Doubles:
    """Return the entropy of a yes or no, in bits."""
    from scipy.special import entr

    return np.asarray((entr(p) + entr(1 - p)) / np.log(2))


def _keys(i: Positions, j: Positions, n_items: int) -> Positions:
    """Return one number for each pair of items, whichever comes first."""
    from sadrec._moments import pairing_keys  # numba is worth loading only now

    return pairing_keys(i, j, n_items)


def _chance(mean: Doubles, variance: Doubles) -> Doubles:
    """Return E[sigmoid(x)] for a normal x."""
    from sadrec._moments import moderated

    return np.asarray(sigmoid(moderated(mean, variance)))
