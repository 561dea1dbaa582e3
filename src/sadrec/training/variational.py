"""Learn from comparisons how much to learn: beliefs about every parameter, and priors that the data sets.

People shrink towards a population whose mean and spread are learnt, factor by factor; scores shrink towards what items
have that met as many others (in sports, those who play more are better), and rival factors towards 1, by scales that
are learnt, too. Where there is one user, one factor comes first, and the others, a sweep later, with smaller scores:
all alike, they share what one could explain alone until none is worth keeping. A factor that the data does not support
shrinks to nothing and is dropped; one that is the same for everybody, with rival factors of 1, becomes a part of the
item bias.

What is left of two items that met often is a margin of their own (:class:`Pairings`): the games of one series are no
independent evidence about anything else. (BPR, which explains everything by scores, has none.) What is left of a user
and an item is a score of its own (:class:`~sadrec.training.own_scores.OwnScores`).

Comparisons may be many, so that what can be computed again for a part of them is not kept for all.

One sweep fits a parabola to every comparison (see ``beliefs.py``), then solves for every user and every item, and sets
the priors to what is believed. There is no learning rate. The first sweeps take parabolas that are bounds: they cannot
overshoot.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._memory import give_back
from sadrec._moments import Beliefs, divided, margin_distribution, pairing_keys
from sadrec._types import Doubles, Floats
from sadrec.features.ridge import Ridge
from sadrec.training.beliefs import (
    HELD,
    Entries,
    Expected,
    Prior,
    Rows,
    bias_margins,
    factor_variance,
    fit_parabolas,
    learnt_variance,
    log_likelihood_of,
    update_biases,
    update_items,
    update_scores,
    update_users,
    variance_of,
)
from sadrec.training.controls import Coefficients
from sadrec.training.layout import Counts, list_by_item, log_meetings, starts
from sadrec.training.own_scores import FIRST_SCALE, OwnScores, Part, parts_of_users, slices

SWEEPS = 80
BOUNDED = 15  # sweeps whose parabolas are bounds
SETTLED = 10  # sweeps before the priors are learnt; where factors come one after the other, as many as are bounded
GROWN = 1  # sweeps with one factor, before the others come with smaller scores, where there is one user
PAIRED = 30  # sweeps before pairings have margins of their own
PRUNED = (30, 40, 50, 65)  # sweeps after which factors that carry nothing are dropped
OWN = 65  # sweeps before users have scores of their own: the factors, which stay from then on, explain what they can
MUTUAL = 0.5  # share of the others' variance that is noise: they depend on each other, so all of it is too much,
# except in the sweeps before PAIRED, which look for what there is
STEP = 0.5  # how far a parabola moves towards the one that fits, once it is no bound
LEAST = 0.03  # root mean square of a factor's part of the margins below which it carries nothing
STRAIGHT = 0.25  # spread of a factor's rival factors around 1 below which they are 1
ALIKE = 0.1  # spread of users around their mean, as a share of it, below which they are all alike
_SPREAD = 0.5  # of the first means
_NEW_VARIANCE, _NEW_SPREAD = 0.3, 0.3  # of the scores of factors that come later: expected, and at first
_TREND = 0.25  # standard deviation of the scores' rise with the logarithm of how many others an item met
_GROUP, _GROUPS = 32, 64  # items that are updated at once, where there are few; groups of them, where there are many
_WORTH_SHARING = 2000  # comparisons of a group of items that threads share
_AT_ONCE = 16_384  # comparisons whose parts by factor are added up at once
_ROWS = 1024  # items whose covariances are changed at once
_OF_ROWS = ("curvature", "slope", "mean", "variance")  # of a comparison, what the next sweep depends on
_HOLD = 1e6  # times all weights: what holds a parameter whatever the data says


@dataclass
class Pairings:
    """Margins of single pairings beside those of the factors: normal around 0, with a learnt variance."""

    mean: Any
    variance: Any
    scale: float = 0.0  # the learnt variance; 0 until it is learnt


class Stages(NamedTuple):
    """After how many sweeps what happens; see the constants of these names. Fewer sweeps have the stages earlier."""

    bounded: int
    settled: int
    grown: int
    paired: int
    pruned: tuple[int, ...]
    own: int

    @staticmethod
    def of(sweeps: int) -> "Stages":
        """Return the stages of a run of ``sweeps`` sweeps.

        >>> Stages.of(20)
        Stages(bounded=4, settled=2, grown=1, paired=8, pruned=(8, 10, 12, 16), own=16)
        """

        def at(stage: int) -> int:
            return max(round(stage * min(sweeps / SWEEPS, 1.0)), 1)

        return Stages(at(BOUNDED), at(SETTLED), at(GROWN), at(PAIRED), tuple(map(at, PRUNED)), at(OWN))


class Variational:
    """Beliefs about the parameters of a model of comparisons, sweep after sweep.

    ``factors`` is the length of the vectors beside the bias, once all have come; ``seed`` that of the first means,
    which differ between items so that they can part. Rival factors are learnt or held at 1 (BPR). The result does not
    depend on the number of threads. ``sweeps`` is how many there will be. ``features`` are those of users and of
    items, CSR, or None: what they predict takes the place of the priors' means.
    """

    def __init__(
        self,
        counts: Counts,
        users: int,
        items: int,
        factors: int,
        seed: int,
        rivals: bool = True,
        threads: int = 1,
        executor: Executor | None = None,
        sweeps: int = SWEEPS,
        features: tuple[Any, Any] = (None, None),
    ) -> None:
        self._users, self.rivals, self._seed = users, rivals, seed
        self._threads, self._executor = 1 if executor is None else threads, executor
        user, item, rival, weight, wins, controls = counts
        self.controls = None if controls is None else Coefficients(controls, weight)
        keys, places = np.unique(pairing_keys(item, rival, items), return_inverse=True)
        pairing = places.astype(np.int32)
        del places
        self.pairings = Pairings(np.zeros(len(keys)), np.zeros(len(keys)))
        self._kept_keys: dict[str, NDArray[np.int64]] = {}  # once no sweep follows
        zeros = np.zeros(len(user)), np.zeros(len(user)), np.zeros((len(user), 3))
        parabolas = 0.25 * weight, wins - 0.5 * weight
        self.rows = Rows(starts(user, users), user, item, rival, weight, wins, pairing, *parabolas, *zeros)
        ends = np.zeros(items + 1, np.int64)
        sides = np.empty(2 * len(user), np.int32), np.empty(2 * len(user), np.int32), np.empty(2 * len(user), np.bool_)
        self._entries = Entries(ends, *sides)
        list_by_item(item, rival, ends[1:], *sides)
        self._asked = np.diff(self.rows.start) > 0
        self._met = np.diff(self._entries.start) > 0
        observed = np.diff(self.rows.start), np.diff(self._entries.start)
        self._user_side, self._item_side = (
            None if rows is None or not many else Ridge.observed(rows, counts.astype(np.float64))
            for rows, counts, many in zip(features, observed, (users > 1, True), strict=True)
        )
        self.total = float(weight.sum())
        self._hold = max(HELD, _HOLD * self.total)
        self.own: OwnScores | None = None  # until the factors stay
        self.trend = 0.0  # how much higher the scores of items are that met e times as many others
        self.meetings = self._logarithms_of_meetings(keys, items)
        del keys
        self.parts = parts_of_users(self.rows)
        rng = np.random.default_rng((seed, 8))
        if users == 1 and not rivals:
            factors = 0  # all would become a part of the bias
        self._factors = factors
        self._grows = users == 1
        self._stages = Stages.of(sweeps)
        self._settled = self._stages.bounded if self._grows else self._stages.settled
        k = 1 + (min(factors, 1) if self._grows else factors)
        user_held, rival_held = self._held(k)
        xi = np.where(user_held, 1.0, _SPREAD * (1 + rng.standard_normal((users, k))))
        eta = _SPREAD * rng.standard_normal((items, k))
        tau = np.where(rival_held, 1.0, np.abs(1 + _SPREAD * rng.standard_normal((items, k))))
        both = np.hstack((eta, tau))
        self.beliefs = Beliefs(xi, _outer(xi), both, _outer(both))
        self.prior = Prior(
            np.where(user_held, 1.0, _SPREAD),
            np.where(user_held, self._hold, 1.0),
            np.ones(k),
            np.where(rival_held, self._hold, _SPREAD**-2),
        )
        self._order = rng.permutation(np.flatnonzero(self._met))
        self.sweep = 0
        self._find_centres()
        self._expect_of_unseen()
        self._find_margins()

    @property
    def pairing_keys(self) -> NDArray[np.int64]:
        """The keys of the pairings, ascending."""
        if "pairing" in self._kept_keys:
            return self._kept_keys["pairing"]
        keys, rows = np.empty(len(self.pairings.mean), np.int64), self.rows
        for part in slices(len(rows.pairing)):
            keys[rows.pairing[part]] = pairing_keys(rows.item[part], rows.rival[part], len(self.beliefs.item))
        return keys

    @property
    def own_keys(self) -> NDArray[np.int64]:
        """The keys of the users' own scores, ascending: user * items + item."""
        if "own" in self._kept_keys:
            return self._kept_keys["own"]
        return np.empty(0, np.int64) if self.own is None else self.own.keys()

    @property
    def own_variance(self) -> Floats:
        """The variances of the users' own scores, in single precision."""
        return np.empty(0, np.float32) if self.own is None else self.own.find_variance(self.parts)

    @property
    def last_stage(self) -> int:
        """The sweep after which the model only gets better at what it has: no part of it comes or goes."""
        return self._stages.own if self._users > 1 else self._stages.pruned[-1]

    def _held(self, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell for which factors xi is held at 1, and for which tau.

        The first is the bias. One user is the population: nothing tells xi from eta then.
        """
        bias = np.arange(k) == 0
        return bias | (self._users == 1), bias | (not self.rivals)

    def _logarithms_of_meetings(self, keys: NDArray[np.int64], items: int) -> Doubles:
        """Return of every item how many others it met, as :func:`~sadrec.training.layout.log_meetings` has it."""
        logarithm = log_meetings(
            np.bincount(keys // items, minlength=items) + np.bincount(keys % items, minlength=items)
        )
        if self._item_side is not None:  # features tell more of an item that is new
            logarithm[~self._met] = 0.0
        return logarithm

    # -- a sweep ------------------------------------------------------------------------------------------------------

    def advance(self) -> float:
        """Make a sweep; return the mean log likelihood of the comparisons, averaged over what is not known."""
        stages = self._stages
        if self._grows and self.sweep == stages.grown:
            self._grow()
            self._find_margins()
        bound, final = self.sweep < stages.bounded, self._users > 1 and self.sweep >= stages.own
        if final:
            self._learn_own_scores()
        self._fit_parabolas(bound, 1.0 if bound else STEP)
        if not final:
            self._find_centres()
            mutual = 1.0 if self.sweep < stages.paired else MUTUAL
            if self._users > 1 and len(self.prior.user_mean) > 1:  # the bias is the same for all
                self._share(update_users, self._users, self.rows, self.beliefs, self._expected(), mutual)
            self._update_items(mutual)
        self.sweep += 1
        if not final:
            if self.sweep > self._settled:
                self._learn_prior()
            if self.sweep in stages.pruned:
                self._drop(self._move_to_bias() | self._idle())
                self._find_centres()
            self._expect_of_unseen()
            self._find_margins()
            if self.sweep > self._settled:
                self._update_trend()
            if self.controls is not None:
                self._update_controls(self.controls)
        if self.rivals and self.sweep > stages.paired:
            self._update_pairings()
        if self.own is not None:
            mean = self.rows.mean
            self.own.update(self.parts, lambda rows: mean[rows] + self.common_part(rows) + self._pairing_part(rows))
        return sum(map(self._log_likelihood, self.parts)) / self.total

    def rise(self, rows: slice) -> Doubles:
        """Return by how much more the items of rows met others than their rivals."""
        return np.asarray(self.meetings[self.rows.item[rows]] - self.meetings[self.rows.rival[rows]])

    def common_part(self, rows: slice) -> Doubles:
        """Return what trend and features of comparisons add to the margins of rows, for all users alike."""
        part = self.trend * self.rise(rows)
        return part if self.controls is None else part + self.controls.margins(rows)

    def _pairing_part(self, rows: slice) -> Doubles:
        """Return what the margins of pairings add to those of rows."""
        return np.asarray(self.pairings.mean[self.rows.pairing[rows]])

    def _own_part(self, rows: slice) -> Doubles | float:
        """Return what the users' own scores add to the margins of comparisons."""
        return 0.0 if self.own is None else self.own.margins(rows)

    def _offsets(self, part: Part) -> tuple[Doubles, Doubles]:
        """Return what is added to mean and variance of the margins by the factors."""
        rows = part.rows
        offset = self.common_part(rows) + self._pairing_part(rows) + self._own_part(rows)
        variance = self.pairings.variance[self.rows.pairing[rows]]
        if self.own is not None:
            variance += self.own.margin_variances(part)
        return np.asarray(offset), variance

    def beside_factors(self, part: Part) -> list[tuple[Doubles, Doubles]]:
        """Return mean and variance of each part of the margins of rows that is not one of the factors."""
        at = self.rows.pairing[part.rows]
        parts = [(self.pairings.mean[at], self.pairings.variance[at])] if self.pairings.scale else []
        return parts if self.own is None else [*parts, *self.own.sides(part)]

    def _fit_parabolas(self, bound: bool, step: float) -> None:
        """Fit the parabolas of all comparisons."""
        for part in self.parts:
            offset, variance = self._offsets(part)
            bounds = part.rows.start, part.rows.stop
            self._share(fit_parabolas, bounds, part.rows.start, self.rows, offset, variance, bound, step)

    def _log_likelihood(self, part: Part) -> float:
        """Return the log likelihood of comparisons, averaged over what is not known."""
        rows = part.rows
        return float(log_likelihood_of(rows.start, rows.stop, rows.start, self.rows, *self._offsets(part)))

    def _learn_own_scores(self) -> OwnScores:
        """From now on users have scores of their own, and the factors stay: what only they need is given up."""
        if self.own is None:
            self._keep_factors()
            self.own = OwnScores(self.rows, len(self.beliefs.item))
        return self.own

    def _keep_factors(self) -> None:
        self.rows = self.rows._replace(sites=np.empty((0, 3)))
        self._entries = self._nothing_listed()
        give_back()

    def _nothing_listed(self) -> Entries:
        return Entries(self._entries.start, np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.bool_))

    def finish(self) -> None:
        """Give up what only another sweep needs; what a model keeps is then in its precision."""
        nothing, none, pairings = np.empty(0), np.empty(0, np.int32), self.pairings
        self.rows = self.rows._replace(slope=nothing, mean=nothing, variance=nothing, sites=np.empty((0, 3)))
        if self.own is not None:
            self.own.finish(self.parts, self.rows)
        self.rows = self.rows._replace(curvature=nothing)
        pairings.mean = pairings.mean.astype(np.float32)
        pairings.variance = pairings.variance.astype(np.float32)
        self._kept_keys["pairing"] = self.pairing_keys
        self.rows = self.rows._replace(pairing=none)
        self._kept_keys["own"] = self.own_keys
        self.rows = self.rows._replace(item=none, rival=none)
        self._entries = self._nothing_listed()
        if self.own is not None:
            self.own.release(self.rows)
        give_back()

    def _update_trend(self) -> None:
        """Learn how scores rise with the number of meetings, which changes the margins of the factors.

        Twice: given what is left of the scores, and given the scores, which is fast where the other is slow.
        """
        rows, expected = self.rows, _TREND**-2

        def risen(part: slice) -> float:
            known = rows.mean[part] + self._pairing_part(part)
            if self.controls is not None:
                known = known + self.controls.margins(part)
            rest = rows.slope[part] - rows.curvature[part] * known
            return float(self.rise(part) @ rest)

        def determined(part: slice) -> float:
            return float(rows.curvature[part] @ self.rise(part) ** 2)

        count = len(rows.user)
        self.trend = _summed(count, risen) / (expected + _summed(count, determined))
        precision, meetings = self.prior.item_precision[0], np.where(self._met, self.meetings, 0.0)
        scores = self.beliefs.item[:, 0]
        if self._item_centre is not None:
            scores = scores - self._item_centre[:, 0]
        more = precision * float(meetings @ scores) - expected * self.trend
        more /= precision * float(meetings @ meetings) + expected
        self.trend += more
        self._move_scores(-more * meetings)

    def _update_controls(self, controls: Coefficients) -> None:
        """Learn what features of comparisons add, together with the scores."""
        rows, whole = self.rows, slice(None)
        rest = rows.slope - rows.curvature * (rows.mean + self.common_part(whole) + self._pairing_part(whole))
        precision = np.full(len(self._met), self.prior.item_precision[0])
        self._move_scores(controls.step(rows.item, rows.rival, rows.curvature, rest, precision))

    def control_moments(self) -> tuple[Doubles, Doubles] | None:
        """Return mean and covariance of the coefficients of features; None where there are no features."""
        if self.controls is None:
            return None
        rows, unknown = self.rows, np.zeros(len(self.rows.user))
        for part in self.parts:
            unknown[part.rows] = sum((variance for _, variance in self.beside_factors(part)), unknown[part.rows])
        precision = np.full(len(self._met), self.prior.item_precision[0])
        seen = rows.curvature / (1 + rows.curvature * unknown)
        return self.controls.moments(rows.item, rows.rival, seen, precision)

    def _move_scores(self, moved: Doubles) -> None:
        """Add something to the scores of items."""
        item, moment, rows = self.beliefs.item, self.beliefs.item_moment, self.rows
        moment[:, 0, :] += moved[:, None] * item
        item[:, 0] += moved
        moment[:, :, 0] += moved[:, None] * item
        for part in slices(len(rows.user)):
            rows.mean[part] += moved[rows.item[part]] - moved[rows.rival[part]]

    def _share(self, stage: Callable[..., Any], among: int | tuple[int, int], *arguments: Any) -> None:
        """Run a stage on ranges of users, items or rows, on all threads."""
        first, last = among if isinstance(among, tuple) else (0, among)
        if self._executor is None:
            stage(first, last, *arguments)
            return
        bounds = np.linspace(first, last, 1 + 4 * self._threads).astype(np.int64)
        list(self._executor.map(lambda first, last: stage(first, last, *arguments), bounds[:-1], bounds[1:]))

    def _update_items(self, mutual: float) -> None:
        """Update items in groups; those of a group see each other's old beliefs, so that threads may share them."""
        count = len(self._order)
        size = max(min(count // 16, _GROUP), count // _GROUPS, 1)
        beliefs, expected = self.beliefs, self._expected()
        update: Any = partial(update_items if self.rivals else update_scores, self._users == 1)
        if len(self.prior.user_mean) == 1:
            update = update_biases
        worth_sharing = size * len(self._entries.row) > _WORTH_SHARING * count
        for start in range(0, count, size):
            group = self._order[start : start + size]
            mean = np.empty((len(group), beliefs.item.shape[1]))
            moment = np.empty((len(group), *beliefs.item_moment.shape[1:]))
            share, given = np.empty(len(group)), (self.rows, self._entries, beliefs, expected, mutual)
            if self._executor is None or not worth_sharing:
                update(group, mean, moment, share, *given)
            else:
                bounds = np.linspace(0, len(group), 1 + self._threads).astype(int)
                parts = [(group[a:b], mean[a:b], moment[a:b], share[a:b], *given) for a, b in pairwise(bounds)]
                list(self._executor.map(update, *zip(*parts, strict=True)))
            beliefs.item[group] = mean
            beliefs.item_moment[group] = moment

    def _find_margins(self) -> None:
        """Write mean and variance of the margins of all comparisons, by the factors alone."""
        rows = self.rows
        if len(self.prior.user_mean) == 1:  # the bias is the same for all
            variance = self.beliefs.item_moment[:, 0, 0] - self.beliefs.item[:, 0] ** 2
            self._share(bias_margins, len(rows.user), rows, self.beliefs.item[:, 0].copy(), np.maximum(variance, 0.0))
            return
        sides = rows.user, rows.item, rows.rival
        self._share(margin_distribution, len(rows.user), *sides, self.beliefs, rows.mean, rows.variance)

    def _update_pairings(self) -> None:
        """Set the margins of pairings to what everything else leaves unexplained, and learn their variance.

        Factors that are fitted to a row leave less of it unexplained than they would of a new one. So once they stay,
        the variance is that of what they leave when the row is taken out of them.
        """
        rows, pairings = self.rows, self.pairings
        final = self.sweep > self._stages.pruned[-1]
        information, linear = pairings.variance, pairings.mean  # until they are known, in the same place
        spread, left = (np.zeros(len(linear)) for _ in range(2)) if final else (information, linear)
        information[:], linear[:] = 0.0, 0.0
        scale = pairings.scale or FIRST_SCALE
        for part in self.parts:
            at = part.rows
            curvature, pairing = rows.curvature[at], rows.pairing[at].astype(np.intp)
            own, mean = self._own_part(at), rows.mean[at] + self.common_part(at)
            rest = rows.slope[at] - curvature * (mean + own)
            np.add.at(information, pairing, curvature)
            np.add.at(linear, pairing, rest)
            if final:
                unknown = 0.0 if self.own is None else self.own.margin_variances(part)
                seen = curvature / (1 + curvature * (scale + unknown))
                target = rows.slope[at] / curvature - own
                mean, variance = divided(mean, rows.variance[at], seen, seen * target, left=1.0)
                known = 1 / (1 / curvature + variance + unknown)
                np.add.at(spread, pairing, known)
                np.add.at(left, pairing, known * (target - mean))
        pairings.scale = variance_of(spread, left)
        pairings.variance += 1.0 / pairings.scale
        np.divide(1.0, pairings.variance, out=pairings.variance)
        pairings.mean *= pairings.variance

    def _learn_prior(self) -> None:
        """Set means and scales of the priors to those of the beliefs.

        The variance of a factor lies half way between its own and the mean of all: alone, those of weak factors run
        away to 0; in common, those of strong ones are held back.
        """
        beliefs, k = self.beliefs, len(self.prior.user_mean)
        user_held, rival_held = self._held(k)
        h = np.arange(k)
        met = self._met
        square, rival = beliefs.item_moment[:, h, h][met], beliefs.item_moment[:, k + h, k + h][met]
        if self._item_centre is None:
            eta, tau = _variance(square, bias=True), _variance(rival - 2 * beliefs.item[met, k:] + 1)
        else:
            mean, centre = beliefs.item[met], self._item_centre[met]
            eta = _variance(square - 2 * mean[:, :k] * centre[:, :k] + centre[:, :k] ** 2, bias=True)
            tau = _variance(rival - 2 * mean[:, k:] * centre[:, k:] + centre[:, k:] ** 2)
        user_mean: Any = self.prior.user_mean
        user_precision: Any = self.prior.user_precision
        if self._users > 1:
            user, square = beliefs.user[self._asked], beliefs.user_moment[:, h, h][self._asked]
            user_mean = np.where(user_held, 1.0, user.mean(axis=0))
            centre = user_mean if self._user_centre is None else self._user_centre[self._asked]
            spread = _variance(square - 2 * user * centre + centre**2)
            user_precision = np.where(user_held, self._hold, 1.0 / _half_way(spread))
        rival_precision = np.where(rival_held, self._hold, 1.0 / tau)
        self.prior = Prior(user_mean, user_precision, 1.0 / _half_way(eta), rival_precision)

    def _find_centres(self) -> None:
        """Find what the features predict, from what is believed; nothing before the priors are learnt."""
        beliefs, k = self.beliefs, len(self.prior.user_mean)
        self._user_centre = self._item_centre = None
        learns = self.sweep >= self._settled
        user_held, rival_held = self._held(k)
        if self._user_side is not None:
            centre = np.tile(self.prior.user_mean, (len(beliefs.user), 1))
            if learns:
                centre = self._user_side.fit(beliefs.user, (k,)).predict(self._user_side.rows)
            self._user_centre = np.where(user_held, 1.0, centre)
        if self._item_side is not None:
            centre = np.tile(np.repeat([0.0, 1.0], k), (len(beliefs.item), 1))
            if learns:
                groups = tuple(size for size in (1, k - 1, k) if size)  # the bias, eta and tau
                centre = self._item_side.fit(beliefs.item, groups).predict(self._item_side.rows)
            centre[:, k:] = np.where(rival_held, 1.0, np.maximum(centre[:, k:], 0.0))
            self._item_centre = centre

    def _expected(self) -> Expected:
        return Expected(*self.prior, self._user_centre, self._item_centre)

    # -- how many factors ---------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        """Add the factors that come later, with scores near 0."""
        beliefs, prior, k = self.beliefs, self.prior, len(self.prior.user_mean)
        users, items, more = len(beliefs.user), len(beliefs.item), self._factors + 1 - k
        if more <= 0:
            return
        rng = np.random.default_rng((self._seed, 9))
        user_held, rival_held = (held[k:] for held in self._held(k + more))
        user = np.where(user_held, 1.0, _SPREAD * (1 + rng.standard_normal((users, more))))
        eta = _NEW_SPREAD * rng.standard_normal((items, more))
        tau = np.where(rival_held, 1.0, np.abs(1 + _SPREAD * rng.standard_normal((items, more))))
        first = np.concatenate((np.arange(k), k + more + np.arange(k)))

        def grown(mean: Doubles, moment: Doubles, wider: Doubles, at: NDArray[np.int64]) -> Doubles:
            result = _outer(wider)
            result[:, at[:, None], at] += moment - _outer(mean)
            return result

        all_users = np.hstack((beliefs.user, user))
        all_items = np.hstack((beliefs.item[:, :k], eta, beliefs.item[:, k:], tau))
        user_moment = grown(beliefs.user, beliefs.user_moment, all_users, first[:k])
        self.beliefs = Beliefs(
            all_users, user_moment, all_items, grown(beliefs.item, beliefs.item_moment, all_items, first)
        )
        self.prior = Prior(
            np.append(prior.user_mean, np.where(user_held, 1.0, _SPREAD)),
            np.append(prior.user_precision, np.where(user_held, self._hold, 1.0)),
            np.append(prior.item_precision, np.full(more, 1.0 / _NEW_VARIANCE)),
            np.append(prior.rival_precision, np.where(rival_held, self._hold, _SPREAD**-2)),
        )

    def _idle(self) -> NDArray[np.bool_]:
        """Tell which factors carry nothing."""
        beliefs, rows, k = self.beliefs, self.rows, len(self.prior.user_mean)
        squares = np.zeros(k)
        for start in range(0, len(rows.user), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            item, rival = beliefs.item[rows.item[part]], beliefs.item[rows.rival[part]]
            parts = beliefs.user[rows.user[part]] * (item[:, :k] * rival[:, k:] - rival[:, :k] * item[:, k:])
            squares += rows.weight[part] @ parts**2
        idle = np.sqrt(squares / self.total) < LEAST
        idle[0] = False
        return np.asarray(idle)

    def _move_to_bias(self) -> NDArray[np.bool_]:
        """Add factors that are the same for everybody, and have rival factors of 1, to the bias; tell which."""
        prior, beliefs = self.prior, self.beliefs
        common = prior.rival_precision > STRAIGHT**-2
        common &= np.sqrt(prior.user_precision) * np.abs(prior.user_mean) > 1 / ALIKE
        common[0] = False
        if common.any():
            at = np.concatenate(([0], np.flatnonzero(common)))
            weights = prior.user_mean[at]
            scores = beliefs.item[:, at] @ weights
            for start in range(0, len(beliefs.item), _ROWS):
                item, covariance = (array[start : start + _ROWS] for array in (beliefs.item, beliefs.item_moment))
                covariance -= _outer(item)
                item[:, 0] = scores[start : start + _ROWS]
                covariance[:, 0, :] = np.einsum("p,ipq->iq", weights, covariance[:, at, :])
                covariance[:, :, 0] = np.einsum("p,iqp->iq", weights, covariance[:, :, at])
                covariance += _outer(item)
            prior.item_precision[0] = 1.0 / float(weights**2 @ (1.0 / prior.item_precision[at]))
        return np.asarray(common)

    def _drop(self, dropped: NDArray[np.bool_]) -> None:
        """Go on without some factors."""
        if dropped.any():
            kept = np.flatnonzero(~dropped)
            both = np.concatenate((kept, len(dropped) + kept))
            self.beliefs = self.beliefs._replace(
                user=np.ascontiguousarray(self.beliefs.user[:, kept]),
                user_moment=np.ascontiguousarray(self.beliefs.user_moment[:, kept[:, None], kept]),
            )
            self.beliefs = self.beliefs._replace(
                item=np.ascontiguousarray(self.beliefs.item[:, both]),
                item_moment=np.ascontiguousarray(self.beliefs.item_moment[:, both[:, None], both]),
            )
            self.prior = Prior(*(values[kept] for values in self.prior))

    def _expect_of_unseen(self) -> None:
        """Believe of users and items without comparisons what the prior says."""
        prior, k = self.prior, len(self.prior.user_mean)
        item = np.repeat([0.0, 1.0], k)[None] if self._item_centre is None else self._item_centre[~self._met]
        spread = np.diag(1.0 / np.concatenate((prior.item_precision, prior.rival_precision)))
        self.beliefs.item[~self._met] = item
        self.beliefs.item_moment[~self._met] = _outer(item) + spread
        user = prior.user_mean[None] if self._user_centre is None else self._user_centre[~self._asked]
        self.beliefs.user[~self._asked] = user
        self.beliefs.user_moment[~self._asked] = _outer(user) + np.diag(1.0 / prior.user_precision)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the next sweep depends on: plain values and arrays."""
        rows, pairings, own = self.rows, self.pairings, self.own
        arrays = {**self.beliefs._asdict(), **{f"prior_{name}": value for name, value in self.prior._asdict().items()}}
        arrays |= {name: getattr(rows, name) for name in _OF_ROWS}
        arrays |= {"pairing_mean": pairings.mean, "pairing_variance": pairings.variance}
        if self.controls is not None:
            arrays["coefficients"] = self.controls.mean
        values: dict[str, Any] = {"sweep": self.sweep, "trend": self.trend, "pairing_scale": pairings.scale}
        if own is not None:
            arrays["own_mean"] = own.mean
            values |= {"own_scale": own.scale, "own_precision": own.precision}
        return values, arrays

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go to a state that :meth:`state` gave, refusing arrays of other shapes or types and what is not finite."""
        self.checked(values, arrays)()

    def checked(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Callable[[], None]:
        """Return what goes to a state; one that is refused has changed nothing, and an older one can be used."""
        k = len(arrays["prior_user_mean"])
        n, m, size = len(self.beliefs.user), len(self.beliefs.item), len(self.rows.user)
        shapes = {"user": (n, k), "user_moment": (n, k, k), "item": (m, 2 * k), "item_moment": (m, 2 * k, 2 * k)}
        shapes |= {f"prior_{name}": (k,) for name in Prior._fields}
        shapes |= dict.fromkeys(_OF_ROWS, (size,))
        shapes |= dict.fromkeys(("pairing_mean", "pairing_variance"), (len(self.pairings.mean),))
        if self.controls is not None:
            shapes["coefficients"] = self.controls.mean.shape
        sweep, own = int(values["sweep"]), None
        numbers = {name: float(values[name]) for name in ("trend", "pairing_scale")}
        if self._users > 1 and sweep > self._stages.own:
            own = self.own or OwnScores(self.rows._replace(sites=np.empty((0, 3))), m)
            shapes["own_mean"] = own.mean.shape
            numbers |= {name: float(values[name]) for name in ("own_scale", "own_precision")}
        elif self.own is not None:
            raise ValueError(f"it is of sweep {sweep}, and what only earlier sweeps need is gone")
        copies = {}
        for name, shape in shapes.items():
            array = arrays[name]
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} is not made of {shape} finite numbers")
            copies[name] = np.array(array)
        for name, number in numbers.items():
            if not np.isfinite(number) or (name == "own_precision" and number <= 0):
                raise ValueError(f"{name} is {number}")
        for name in ("curvature", "variance", "pairing_variance"):
            if copies[name].min() < 0:
                raise ValueError(f"{name} is below 0")

        def go() -> None:
            self.sweep, self.trend = sweep, numbers["trend"]
            self.beliefs = Beliefs(*(copies[name] for name in Beliefs._fields))
            self.prior = Prior(*(copies[f"prior_{name}"] for name in Prior._fields))
            for name in _OF_ROWS:
                getattr(self.rows, name)[:] = copies[name]
            if self.controls is not None:
                self.controls.mean = copies["coefficients"]
            pairings = self.pairings
            pairings.mean, pairings.variance = copies["pairing_mean"], copies["pairing_variance"]
            pairings.scale = numbers["pairing_scale"]
            if own is not None:
                if self.own is None:
                    self._keep_factors()
                    self.own = own
                own.mean, own.scale, own.precision = copies["own_mean"], numbers["own_scale"], numbers["own_precision"]

        return go


def _summed(count: int, of_part: Callable[[slice], float]) -> float:
    """Return the sum of a function over slices of ``count`` numbers."""
    return float(sum(map(of_part, slices(count))))


def _variance(squares: Doubles, bias: bool = False) -> Doubles:
    """Return the variance of each factor, given squares by row; with ``bias``, the first is that of the bias."""
    learnt = [learnt_variance if bias and not h else factor_variance for h in range(squares.shape[1])]
    return np.array([of(total, len(squares)) for of, total in zip(learnt, squares.sum(axis=0), strict=True)])


def _half_way(variance: Doubles) -> Doubles:
    """Return variances half way to the mean of all but the first, which is that of the bias."""
    if len(variance) < 2:
        return variance
    return np.append(variance[:1], (variance[1:] + variance[1:].mean()) / 2)


def _outer(vectors: Doubles) -> Doubles:
    """Return the products of every vector with itself."""
    return np.ascontiguousarray(vectors[:, :, None] * vectors[:, None, :])
