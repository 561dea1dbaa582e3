"""A vector for a new user: from what they liked, or from what they said they prefer.

With the items' parameters fixed, the likelihood in a user's vector is that of a logistic regression. In training each
liked item meets one sampled negative per epoch and pays ``regularization * |xi|^2`` each time. So the vector of
a new user maximises

``sum_i [ mean_j log sigmoid(x_ij) - regularization |xi|^2 ]``, i over the liked items and j over their negatives,

which is concave and has one maximum. Newton's method reaches it in a few steps of factors squared times pairs.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._check import whole
from sadrec._memory import need
from sadrec._types import Doubles, Floats, Positions
from sadrec.ranking.logistic import Design, Estimate, check_regularization, inverse, maximise, polish
from sadrec.ranking.parameters import Parameters, average_user, item_positions

_PAIRS, _FEWEST = 4096, 8
"""Pairs for a user, and at least how many negatives for each liked item, when their number is left open."""

_MANY, _STAGED = 512, 4
"""About how many pairs a search starts with that has many more, and how many times as many that is."""
_NEARLY = 1e-4
"""What a step may promise to gain, relative to the objective, for it to be the last with these pairs."""
_TURNS = ((16, 6), (4, 4), (1, 2))
"""Against hard negatives: every how many-th pair is looked at, and how many steps are made."""
_LEAST = 64
"""Pairs that a part of them must have, to start with it."""
_GRAM = 512
"""About how many pairs the curvature is computed from, until the last."""
_ANEW = 3
"""Steps for which the curvature is computed anew, when nothing is known yet."""
_ROUGHLY = 3e-5
"""Against hard negatives: what a step may promise to gain, relative to the objective, for it to be left out."""
_SPARE = 512
"""Pairs beyond the usual ones that negatives are drawn for beforehand: with 300 liked items it takes 4,200."""
_FINE = 1e-3
"""How large a unit may be, relative to the usual size of an entry, for entries to be whole numbers of it."""
_CACHED, _MOST = 8 << 20, 64 << 20
"""Bytes of a catalogue that are read fast in any order; bytes that negatives drawn beforehand may take."""

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class FoldIn:
    """The vector of a new user."""

    estimate: Estimate = field(repr=False)
    pairs: int  # how many pairs it was computed from

    @property
    def vector(self) -> Doubles:
        """The vector, (factors,): a user for every function that takes one."""
        return self.estimate.vector

    @property
    def covariance(self) -> Doubles:
        """How uncertain the vector is, (factors, factors): Laplace's approximation."""
        return self.estimate.covariance

    @property
    def steps(self) -> int:
        """How many steps Newton's method took."""
        return self.estimate.steps

    def __repr__(self) -> str:
        size = float(np.linalg.norm(self.vector))
        return (
            f"FoldIn(vector of {self.vector.size} factors and length {size:.3g}, "
            f"pairs={self.pairs}, steps={self.steps})"
        )

    def deviation(self, parameters: Parameters, item: int, rival: int) -> float:
        """Return the standard deviation of the margin of an item against a rival, given what is known of the user."""
        z = pair_design(parameters, np.array([item]), np.array([rival]))[0][0]
        return float(np.sqrt(z @ self.covariance @ z))


def fold_in(
    parameters: Parameters,
    liked: ArrayLike,
    *,
    regularization: float = 0.01,
    negatives: int | None = None,
    popularity: ArrayLike | None = None,
    candidates: int = 1,
    spread: Doubles | None = None,
    drawn: "Negatives | None" = None,
    packed: "Side | None" = None,
) -> FoldIn:
    """Compute the vector of a new user from the items they liked.

    ``negatives`` is how many negatives each liked item meets, spread evenly over all other items; ``None`` for 4096
    pairs in all, but at least 8 each. ``popularity`` says how often each item is a negative, for a model that was
    trained so. ``candidates`` is for a model trained against the hardest of that many negatives: each pair is the
    hardest of as many, for the resulting vector, and the problem stays concave. ``spread`` is by how much users differ
    in each factor: given, the vector stays near the average user by as much, and ``regularization`` is not used.
    For many calls, ``drawn`` are negatives of the same kind that were drawn beforehand (:meth:`Negatives.drawn_from`),
    or ``packed`` are the rows of all items (:func:`pack`).

    >>> tastes = Parameters(np.zeros((0, 2)), np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-0.1, 0.9]]))
    >>> fold_in(tastes, [0, 1]).vector.round(2)
    array([ 1.81, -1.63])
    """
    chosen = np.unique(item_positions(parameters, liked, "liked"))
    if not chosen.size:
        raise ValueError(
            "liked is empty: give ids of items; for a user without history, recommend(None) gives what is popular"
        )
    check_regularization(regularization)
    candidates = whole(candidates, "candidates", least=1)
    penalty = np.full(parameters.n_factors, regularization * chosen.size)
    each = _each(chosen.size)
    if drawn is not None and negatives is None and chosen.size * each * candidates <= len(drawn.items):
        theirs, scale = drawn.side, drawn.scale
        pool = drawn.rows(chosen, chosen.size * each * candidates)
    else:
        winners, pool, each = liked_pairs(parameters, chosen, negatives, popularity, candidates)
        if candidates == 1 and parameters.dtype != np.float32:
            design, offset = pair_design(parameters, winners, pool)
            weight = np.full(winners.size, 1.0 / each)
            return FoldIn(_solve_around(parameters, design, offset, weight, penalty, spread), winners.size)
        items = None
        if packed is None and pool.size < parameters.n_items:
            items, pool = np.unique(pool, return_inverse=True)
        theirs, scale = packed or pack(parameters, items), 1.0
    ours, winners = pack(parameters, chosen, scale), np.repeat(np.arange(chosen.size), each)
    pool = pool.reshape(-1, candidates)
    if candidates > 1:
        estimate = _solve_hardest(ours, theirs, winners, pool, 1.0 / each, penalty)
    else:
        problem = _side_design(ours, theirs, winners, pool.ravel(), parameters.n_factors)
        estimate = _solve_around(parameters, *problem, np.full(winners.size, 1.0 / each), penalty, spread)
    if not np.isfinite(estimate.vector).all():  # squares of products of two factors, in single precision
        raise ValueError("the factors of the items are too large to compute a vector with: scale them down")
    return FoldIn(estimate, winners.size)


def fold_in_comparisons(
    parameters: Parameters,
    winners: ArrayLike,
    losers: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    regularization: float = 0.01,
    spread: Doubles | None = None,
) -> FoldIn:
    """Compute the vector of a user who stated preferences between pairs of items.

    ``weight`` is how much each comparison counts, ``None`` for 1; ``regularization`` is paid once per comparison;
    ``spread`` is as for :func:`fold_in`.
    """
    i = item_positions(parameters, winners, "winners")
    j = item_positions(parameters, losers, "losers")
    if i.size != j.size:
        raise ValueError(f"there must be a loser for every winner, but there are {i.size} winners and {j.size} losers")
    if not i.size:
        raise ValueError("there are no comparisons; average_user gives the vector whose margins are everybody's mean")
    if (i == j).any():
        raise ValueError(f"item {int(i[i == j][0])} is compared with itself: give two different items")
    check_regularization(regularization)
    _check_design(parameters, i.size, 1, f"folding in {i.size:,} comparisons", "give fewer")
    weights = np.ones(i.size) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != i.shape or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weight must hold one number, 0 or more, for each of the {i.size} comparisons")
    penalty = np.full(parameters.n_factors, regularization * i.size)
    return FoldIn(_solve_around(parameters, *pair_design(parameters, i, j), weights, penalty, spread), i.size)


def _check_design(parameters: Parameters, pairs: int, candidates: int, what: str, remedy: str) -> None:
    """Refuse pairs whose features, and the negatives that they are chosen from, do not fit into memory."""
    need(8 * pairs * (2 * parameters.n_factors + 3 * candidates), what, remedy)


def pair_design(parameters: Parameters, items: Positions, rivals: Positions) -> tuple[Doubles, Doubles]:
    """Return what a user's vector is multiplied with to give margins, (pairs, factors), and what is added: the bias."""
    bias = parameters.item_bias
    offset = np.zeros(len(items)) if bias is None else np.subtract(bias[items], bias[rivals], dtype=np.float64)
    return replace(parameters, item_bias=None).wedge(items, rivals), offset


Tables = tuple[Floats, Floats, Floats]
"""eta, tau and bias of items as kernels take them; the last two are empty for a model without."""
Rows = NDArray[np.float32] | NDArray[np.int16]
Side = tuple[Rows, Floats]
"""Rows of items as kernels read them in one piece, tau and then eta, or eta alone for a model without; and the bias."""


def _tables(parameters: Parameters, items: Positions | None = None) -> Tables:
    """Return eta, tau and bias of all items, or of some."""
    sides = (parameters.item_factors, 2), (parameters.rival_factors, 2), (parameters.item_bias, 1)
    eta, tau, bias = (
        np.empty((0,) * dimensions, np.float32)
        if side is None
        else np.ascontiguousarray(side if items is None else side[items], np.float32)
        for side, dimensions in sides
    )
    return eta, tau, bias


def pack(parameters: Parameters, items: Positions | None = None, scale: float = 1.0) -> Side:
    """Return the rows of all items, or of some, with tau beside eta, times ``scale`` where there is a tau."""
    eta, tau, bias = _tables(parameters, items)
    return (np.hstack((tau, eta)) * np.float32(scale) if tau.size else eta), bias


def pack_small(parameters: Parameters) -> Side | None:
    """Return the rows of all items; None where the catalogue is so large that they would not be read fast."""
    return pack(parameters) if _bytes(parameters) <= _CACHED else None


def _bytes(parameters: Parameters) -> int:
    """Return how many bytes the rows of all items take."""
    return 4 * parameters.n_items * parameters.n_factors * (1 + (parameters.rival_factors is not None))


def _side_design(
    ours: Side, theirs: Side, winners: Positions, losers: Positions, factors: int
) -> tuple[Design, Doubles]:
    """Return what :func:`pair_design` does, of rows; of many pairs in single precision, in which they are solved."""
    from sadrec.ranking._descent import wedge_rows  # numba is worth loading only now

    precision = np.float32 if winners.size >= _STAGED * _MANY else np.float64
    design, offset = np.empty((winners.size, factors), precision), np.zeros(winners.size)
    wedge_rows(ours, theirs, winners, losers, design)
    if ours[1].size:
        np.subtract(ours[1][winners], theirs[1][losers], out=offset, dtype=np.float64)
    return design, offset


@dataclass(frozen=True, eq=False)
class Negatives:
    """Negatives drawn once for many new users, with their rows side by side, in the order in which they are met.

    In a large catalogue, looking up some ten thousand rows takes several times as long as computing with them. Their
    entries are whole numbers of 16 bits, in units of ``scale``, where that is fine enough: half as much to read.
    """

    items: Positions
    side: Side = field(repr=False)
    scale: float
    _by_item: tuple[Positions, Positions] = field(repr=False)  # draws in the order of their items, and these items

    @classmethod
    def drawn_from(
        cls, parameters: Parameters, popularity: ArrayLike | None = None, candidates: int = 1
    ) -> "Negatives | None":
        """Draw as :func:`fold_in` does; None where the catalogue is small, or the negatives would take much memory."""
        size, number = _bytes(parameters), (_PAIRS + _SPARE) * candidates
        if size <= _CACHED or number * (size // parameters.n_items) > _MOST:
            return None
        every = np.arange(parameters.n_items)
        items = draw(number, every.size, None if popularity is None else _shares(parameters, popularity, every))
        order = np.argsort(items, kind="stable")
        (rows, bias), scale = pack(parameters, items), 1.0
        if parameters.rival_factors is not None:
            unit = float(np.abs(rows).max()) / np.iinfo(np.int16).max
            sides = np.hsplit(rows, 2)
            if 0 < unit <= _FINE * min(float(np.sqrt(np.mean(np.square(side)))) for side in sides):
                rows, scale = np.rint(rows / np.float32(unit)).astype(np.int16), unit
        return cls(items, (rows, bias), scale, (order, items[order]))

    def rows(self, liked: Positions, number: int) -> Positions:
        """Return the first draws; in the place of a liked item stands the next draw that is none."""
        rows = np.arange(number)
        order, items = self._by_item
        starts, stops = (items.searchsorted(liked, side) for side in ("left", "right"))
        if not (stops - starts).any():
            return rows
        wrong = np.sort(np.concatenate([order[a:b] for a, b in zip(starts, stops, strict=True)]))
        free = np.ones(len(self.items), np.bool_)
        free[wrong] = False
        if not free.any():
            raise ValueError("popularity is 0 for every item that could be a negative")
        right = np.flatnonzero(free)
        wrong = wrong[wrong < number]
        rows[wrong] = right[right.searchsorted(wrong) % right.size]
        return rows


def _each(liked: int) -> int:
    """Return how many negatives each of some liked items meets, when that is left open."""
    return max(_FEWEST, -(-_PAIRS // liked))


def liked_pairs(
    parameters: Parameters,
    liked: Positions,
    negatives: int | None = None,
    popularity: ArrayLike | None = None,
    candidates: int = 1,
) -> tuple[Positions, Positions, int]:
    """Pair liked items with negatives among all other items, as training would, but without chance.

    Returns winners, in which every liked item stands ``each`` times in a row; a negative for each, or (pairs,
    candidates) of them; and ``each``.
    """
    others = parameters.n_items - liked.size
    if not others:
        raise ValueError(f"liked holds all {parameters.n_items} items: there is no other item to compare them with")
    each = _each(liked.size) if negatives is None else whole(negatives, "negatives", least=1)
    plain = popularity is None and candidates == 1
    if plain:
        each = min(each, others)
    what = f"folding in {liked.size:,} liked items against {each:,} negatives each (candidates={candidates})"
    _check_design(parameters, liked.size * each, candidates, what, "give fewer")
    winners = np.repeat(liked, each)
    if plain and each == others:
        return winners, np.tile(_not_liked(np.arange(others), liked), liked.size), each
    shares = None
    if popularity is not None:
        shares = _shares(parameters, popularity, _not_liked(np.arange(others), liked))
    losers = _not_liked(draw(winners.size * candidates, others, shares), liked)
    return winners, losers if candidates == 1 else losers.reshape(-1, candidates), each


def _not_liked(places: Positions, liked: Positions) -> Positions:
    """Return the items at some places among those that are not liked; ``liked`` are positions in order."""
    return places + (liked - np.arange(liked.size)).searchsorted(places, "right")


def draw(number: int, size: int, shares: Doubles | None = None) -> Positions:
    """Draw positions below ``size`` without chance, as often as ``shares`` say: every run of draws is spread out."""
    points = even_points(number)
    drawn = (points * size).astype(np.int64) if shares is None else np.cumsum(shares).searchsorted(points, "right")
    return np.minimum(drawn, size - 1)


def even_points(number: int, step: float = _GOLDEN) -> Doubles:
    """Return points of [0, 1), each run of which covers it evenly: multiples of an irrational number."""
    if step == _GOLDEN:
        return _golden_points(1 << max(12, (number - 1).bit_length()))[:number]
    return np.asarray(((np.arange(number) + 0.5) * step) % 1.0, np.float64)


@lru_cache(maxsize=4)
def _golden_points(number: int) -> Doubles:
    points = ((np.arange(number) + 0.5) * _GOLDEN) % 1.0
    points.flags.writeable = False
    return np.asarray(points)


def _solve_around(
    parameters: Parameters,
    design: Design,
    offset: Doubles,
    weight: Doubles,
    penalty: Doubles,
    spread: Doubles | None,
) -> Estimate:
    """Return the best vector: near 0 by ``penalty``, or near the average user by how much users differ."""
    if spread is None:
        return _solve(design, offset, weight, penalty)
    average = average_user(parameters)
    estimate = _solve(
        design, offset + design @ average.astype(design.dtype), weight, 0.5 / np.maximum(spread, 1e-4) ** 2
    )
    return Estimate(average + estimate.vector, estimate.covariance_at, estimate.steps)


def _solve(design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Estimate:
    """Return the best vector; of many pairs, some lead near it, and the curvature there serves for the last steps."""
    every = len(design) // _MANY
    if every < _STAGED or not weight[::every].any():
        return maximise(design.astype(np.float64, copy=False), offset, weight, penalty)
    scale = float(weight.sum() / weight[::every].sum())
    some: Design = design[::every].copy()
    rough = maximise(some, offset[::every].copy(), scale * weight[::every], penalty, near=_NEARLY)
    return polish(rough, design, offset, weight, penalty)


def _solve_hardest(
    ours: Side, theirs: Side, winners: Positions, pool: Positions, weight: float, penalty: Doubles
) -> Estimate:
    """Return the best vector when each pair is the hardest of several, (pairs, negatives), for the vector at hand.

    ``log sigmoid`` of the least of several margins is the least of concave functions: concave, with corners. Newton's
    direction for the pairs at hand leads too far, because other pairs are the hardest there, and full steps would go
    back and forth. So it is corrected by what was learnt on the steps before, and followed to where the slope along it
    vanishes. Margins are linear in the vector: those along a direction are computed once. The search starts with few of
    the pairs and ends with all of them.
    """
    from sadrec.ranking import _descent  # numba is worth loading only now

    vector, steps = np.zeros(len(penalty)), 0
    for every, turns in _TURNS:
        if every > 1 and winners.size < _LEAST * every:
            continue
        count = -(-winners.size // every)
        each = weight * winners.size / count
        x, least = np.empty((pool.shape[1], count), np.float32), np.empty(count, np.float32)
        chosen, limits = np.empty(count, np.int64), (turns, 1 if steps else _ANEW, _GRAM, _ROUGHLY)
        steps += _descent.climb(vector, ours, theirs, winners, pool, every, each, penalty, limits, x, least, chosen)

    def covariance() -> Doubles:
        factors = len(vector)
        shape = _descent.hardest_curvature(factors, least, ours, theirs, winners, pool, 1, weight, chosen, 1)
        shape[np.diag_indices(factors)] += 2 * penalty
        return inverse(shape)

    return Estimate(vector, covariance, steps)


class Pool:
    """Pairs of a winner and several negatives, of which the hardest counts: the one that the winner beats by least.

    ``winners`` and ``negatives`` are positions, (pairs,) and (pairs, negatives). Their rows are copied once.
    """

    def __init__(self, parameters: Parameters, winners: Positions, negatives: Positions) -> None:
        self.items = np.arange(parameters.n_items)
        if negatives.size < parameters.n_items:
            self.items = np.unique(np.append(negatives, winners))
            winners, negatives = np.searchsorted(self.items, winners), np.searchsorted(self.items, negatives)
        self.winners, self.negatives = winners, negatives
        self._tables = _tables(parameters, self.items)

    def hardest(self, vector: Doubles, every: int = 1) -> tuple[Positions, Doubles, Doubles]:
        """Return the hardest negatives of the pairs, or of every n-th, with :func:`pair_design` of these pairs."""
        from sadrec.ranking._descent import hardest_pairs  # numba is worth loading only now

        winners, negatives = self.winners[::every], np.ascontiguousarray(self.negatives[::every])
        chosen, design, offset = np.empty_like(winners), np.empty((winners.size, vector.size)), np.empty(winners.size)
        hardest_pairs(vector.astype(np.float32), self._tables, winners, negatives, chosen, design, offset)
        return self.items[chosen], design, offset


def _shares(parameters: Parameters, popularity: ArrayLike, others: Positions) -> Doubles:
    """Return how often each of some items is drawn, adding up to 1."""
    given: NDArray[Any] = np.asarray(popularity, np.float64)
    if given.shape != (parameters.n_items,) or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(f"popularity must hold one number, 0 or more, for each of the {parameters.n_items} items")
    total = given[others].sum()
    if not total > 0:
        raise ValueError("popularity is 0 for every item that could be a negative")
    return np.asarray(given[others] / total)
