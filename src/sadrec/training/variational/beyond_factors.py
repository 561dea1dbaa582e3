"""What margins hold beyond the factors: pairings, a margin of two items, and own scores, of a user and an item."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.moments import divided
from sadrec._core.types import Doubles, Floats
from sadrec.training.variational.arrays import Rows
from sadrec.training.variational.priors import learnt_variance, variance_of

FIRST_SCALE = 0.1  # of the variance of pairings and own scores
_PART = 16_384  # comparisons that are computed, and added up, at once; threads take these parts in turn


class Part(NamedTuple):
    """Some users, and their comparisons; or some comparisons of one user."""

    first: int
    last: int  # the user after the last
    rows: slice

    @property
    def ends(self) -> tuple[int, int]:
        """The first row, and the row after the last."""
        return self.rows.start, self.rows.stop


def slices(count: int) -> list[slice]:
    """Return slices of bounded length that cover ``count`` numbers."""
    return [slice(start, min(start + _PART, count)) for start in range(0, count, _PART)]


def parts_of_users(rows: Rows) -> list[Part]:
    """Return the users in parts of not too many comparisons each, unless one user has more."""
    users = len(rows.start) - 1
    if users == 1:
        return [Part(0, 1, part) for part in slices(len(rows.user))]
    cuts = np.searchsorted(rows.start, np.arange(0, len(rows.user), _PART))
    bounds = np.unique((*cuts, users)).tolist()
    return [Part(first, last, slice(*rows.start[[first, last]].tolist())) for first, last in pairwise(bounds)]


class OwnScores:
    """Own scores of users for the items they compared: normal around 0, with a learnt variance."""

    def __init__(self, rows: Rows, items: int) -> None:
        count = len(rows.user)
        self.places = Places(np.empty(len(rows.start), np.int64), np.empty(count, np.int32), np.empty(count, np.int32))
        find_places(rows, self.places)
        self.mean: Any = np.zeros(self.places.start[-1])
        self.scale = 0.0  # the learnt variance; 0 until it is learnt
        self.precision = np.inf  # that of the prior, when the scores were learnt
        self.variance: Floats | None = None  # once no sweep follows
        self._rows, self._items = rows, items

    def keys(self) -> NDArray[np.int64]:
        """Return the keys of the scores, ascending: user * items + item."""
        keys, rows = np.empty(len(self.mean), np.int64), self._rows
        for part in slices(len(rows.user)):
            user = rows.user[part].astype(np.int64) * self._items
            keys[self.places.item[part]] = user + rows.item[part]
            keys[self.places.rival[part]] = user + rows.rival[part]
        return keys

    def finish(self, parts: list[Part], rows: Rows) -> None:
        """Convert to single precision, and keep of the comparisons what ``rows`` holds."""
        self._rows = rows
        self.variance = self.find_variance(parts)
        self.mean = self.mean.astype(np.float32)

    def release(self, rows: Rows) -> None:
        """Release the places of comparisons."""
        self._rows = rows
        self.places = Places(self.places.start, rows.item, rows.rival)

    def find_variance(self, parts: list[Part]) -> Floats:
        """Return the variances of all scores, in single precision."""
        if self.variance is not None:
            return self.variance
        variance = np.empty(len(self.mean), np.float32)
        for part in parts:
            variance[self.places.start[part.first] : self.places.start[part.last]] = self.variances(part)
        return variance

    def variances(self, part: Part) -> Doubles:
        """Return the variances of the scores of some users; parabolas have not changed since they were learnt."""
        first, last = part.first, part.last
        variance = np.empty(self.places.start[last] - self.places.start[first])
        own_variances(first, last, self._rows, self.places, self.precision, variance)
        return variance

    def margins(self, part: slice) -> Doubles:
        """Return what the scores add to the margins of comparisons."""
        return np.asarray(self.mean[self.places.item[part]] - self.mean[self.places.rival[part]])

    def sides(self, part: Part) -> list[tuple[Doubles, Doubles]]:
        """Return mean and variance of what the score of each side, the item and the rival, adds to margins."""
        variance, start = self.variances(part), self.places.start[part.first]
        sides = ((1.0, self.places.item[part.rows]), (-1.0, self.places.rival[part.rows]))
        return [(sign * self.mean[at], variance[at - start]) for sign, at in sides]

    def margin_variances(self, part: Part) -> Doubles:
        """Return by how much the scores make the margins of comparisons uncertain."""
        variance, start = self.variances(part), self.places.start[part.first]
        item, rival = (side[part.rows] - start for side in (self.places.item, self.places.rival))
        return np.asarray(variance[item] + variance[rival])

    def update(self, each: Callable[[Callable[[Part], float]], list[float]], rest: Callable[[slice], Doubles]) -> None:
        """Fit the scores to the unexplained part of the margins, and learn their variance.

        ``each`` calls a function with every part of the comparisons.
        """
        self.scale = self.scale or FIRST_SCALE
        self.precision = 1.0 / self.scale

        def update(part: Part) -> float:
            scores = self._rows, self.places, rest(part.rows), self.precision, self.mean
            update_own_scores(part.first, part.last, *scores)
            return float(self.variances(part).sum())

        determined = len(self.mean) - sum(each(update)) / self.scale
        squares = float(self.mean @ self.mean)
        # By a factor of 4 at most: longer steps may jump between a large and a small variance.
        self.scale = min(max(learnt_variance(squares, determined), self.scale / 4), self.scale * 4)


class Places(NamedTuple):
    """Index of the users' own scores of items: user by user, then by item."""

    start: NDArray[np.int64]  # (users + 1): where those of each user begin
    item: NDArray[np.int32]  # of each row: the place of (user, item)
    rival: NDArray[np.int32]


@kernel
def find_places(rows: Rows, places: Places) -> None:
    """Number the items that each user compared, and write where those of each comparison stand."""
    largest = 0
    for u in range(rows.start.shape[0] - 1):
        largest = max(largest, rows.start[u + 1] - rows.start[u])
    items = np.empty(2 * largest, np.int32)
    place = 0
    for u in range(rows.start.shape[0] - 1):
        first, last = rows.start[u], rows.start[u + 1]
        places.start[u] = place
        count = last - first
        items[:count] = rows.item[first:last]
        items[count : 2 * count] = rows.rival[first:last]
        compared = np.unique(items[: 2 * count])
        for t in range(first, last):
            places.item[t] = place + np.searchsorted(compared, rows.item[t])
            places.rival[t] = place + np.searchsorted(compared, rows.rival[t])
        place += compared.shape[0]
    places.start[rows.start.shape[0] - 1] = place


@kernel
def own_variances(first: int, last: int, rows: Rows, places: Places, precision: float, variance: Any) -> None:
    """Write the variances of the own scores of users first, ..., last - 1, from that of their first place on."""
    start = places.start[first]
    variance[: places.start[last] - start] = precision
    for side in (places.item, places.rival):
        for t in range(rows.start[first], rows.start[last]):
            variance[side[t] - start] += rows.curvature[t]
    for c in range(places.start[last] - start):
        variance[c] = 1.0 / variance[c]


@kernel
def update_own_scores(
    first: int, last: int, rows: Rows, places: Places, rest: Any, precision: float, mean: Any
) -> None:
    """Update the own scores of users first, ..., last - 1, one score after the other.

    ``rest`` is what else the margins are made of, from that of their first comparison on.
    """
    begin = rows.start[first]
    most, largest = 0, 0
    for u in range(first, last):
        most = max(most, places.start[u + 1] - places.start[u])
        largest = max(largest, rows.start[u + 1] - rows.start[u])
    end, row = np.empty(most + 1, np.int64), np.empty(2 * largest, np.int64)
    for u in range(first, last):
        # The rows of each place, those in which the item has the lower position first.
        start, count = places.start[u], places.start[u + 1] - places.start[u]
        end[: count + 1] = 0
        for side in (places.item, places.rival):
            for t in range(rows.start[u], rows.start[u + 1]):
                end[side[t] - start + 1] += 1
        for c in range(count):
            end[c + 1] += end[c]
        for side in (places.item, places.rival):
            for t in range(rows.start[u], rows.start[u + 1]):
                row[end[side[t] - start]] = t
                end[side[t] - start] += 1
        entry = 0
        for c in range(start, start + count):
            information, linear = precision, 0.0
            while entry < end[c - start]:
                t = row[entry]
                lower = places.item[t] == c
                other, sign = (places.rival[t], 1.0) if lower else (places.item[t], -1.0)
                curvature = rows.curvature[t]
                information += curvature
                linear += sign * (rows.slope[t] - curvature * rest[t - begin]) + curvature * mean[other]
                entry += 1
            mean[c] = linear / information


class Pairings:
    """Margins of single pairings beyond the factors: normal around 0, with a learnt variance."""

    def __init__(self, count: int) -> None:
        self.mean: Any = np.zeros(count)
        self.variance: Any = np.zeros(count)
        self.scale = 0.0  # the learnt variance; 0 until it is learnt

    def update(
        self, rows: Rows, parts: list[Part], own: OwnScores | None, common: Callable[[slice], Doubles], final: bool
    ) -> None:
        """Fit the margins to the unexplained part, and learn their variance.

        ``common`` is what is added to the margins by the factors, for all users alike. Factors that are fitted to a row
        leave less of it unexplained than they would of a new one. So once they stay (``final``), the variance is that
        of what they leave when the row is taken out of them.
        """
        information, linear = self.variance, self.mean  # until they are known, in the same place
        spread, left = (np.zeros(len(linear)) for _ in range(2)) if final else (information, linear)
        information[:], linear[:] = 0.0, 0.0
        scale = self.scale or FIRST_SCALE
        for part in parts:
            at = part.rows
            curvature, pairing = rows.curvature[at], rows.pairing[at].astype(np.intp)
            of_own, mean = 0.0 if own is None else own.margins(at), rows.mean[at] + common(at)
            rest = rows.slope[at] - curvature * (mean + of_own)
            np.add.at(information, pairing, curvature)
            np.add.at(linear, pairing, rest)
            if final:
                unknown = 0.0 if own is None else own.margin_variances(part)
                seen = curvature / (1 + curvature * (scale + unknown))
                target = rows.slope[at] / curvature - of_own
                mean, variance = divided(mean, rows.variance[at], seen, seen * target, left=1.0)
                precision = 1 / (1 / curvature + variance + unknown)
                np.add.at(spread, pairing, precision)
                np.add.at(left, pairing, precision * (target - mean))
        self.scale = variance_of(spread, left)
        self.variance += 1.0 / self.scale
        np.divide(1.0, self.variance, out=self.variance)
        self.mean *= self.variance
