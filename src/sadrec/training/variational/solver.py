"""The variational solver: beliefs about every parameter of a model of comparisons, and priors learnt from the data.

Users shrink towards a population whose mean and spread are learnt, factor by factor. Scores shrink towards a line in
the logarithm of how many others an item met (in sports, those who play more are better), and rival factors towards 1;
these scales are learnt, too. A factor that the data does not support shrinks to nothing and is dropped; one that is the
same for everybody, with rival factors of 1, becomes a part of the item bias.

What the factors leave unexplained of two items is a margin of their own (:class:`Pairings`): the games of one series
are no independent evidence about anything else. (BPR, which explains everything by scores, has none.) What they leave
unexplained of a user and an item is a score of its own
(:class:`~sadrec.training.variational.beyond_factors.OwnScores`).

There may be many comparisons: what can be computed again for a part of them is not kept for all.

One sweep fits a parabola to every comparison (``bound.py``), then solves for every user and every item
(``updates.py``), and sets the priors to what is believed; what the data does not support goes (``priors.py``). There is
no learning rate. The first sweeps take parabolas that are bounds: they cannot overshoot.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.memory import give_back
from sadrec._core.moments import Beliefs, pairing_keys
from sadrec._core.types import Doubles, Floats
from sadrec.features.ridge import Ridge
from sadrec.training.variational.arrays import (
    AT_ONCE,
    Entries,
    Packed,
    Rows,
    find_margins,
    outer,
    pack_items,
    pack_users,
)
from sadrec.training.variational.beyond_factors import OwnScores, Pairings, Part, parts_of_users, slices
from sadrec.training.variational.bound import fit_parabolas, log_likelihood_of
from sadrec.training.variational.controls import Coefficients
from sadrec.training.variational.counts import Counts, list_by_item, log_meetings, starts
from sadrec.training.variational.priors import (
    CentredPrior,
    Prior,
    half_way,
    idle_factors,
    move_to_bias,
    variances,
    without,
)
from sadrec.training.variational.updates import update_items, update_users

SWEEPS = 80
BOUNDED = 15  # sweeps whose parabolas are bounds; priors are learnt, and factors dropped, after them
PAIRED = 30  # sweeps before pairings have margins of their own
OWN = 65  # sweeps before users have scores of their own: the factors, which stay from then on, explain what they can
QUIET = 1e-4  # root mean square of what a sweep moves margins by, below which nothing happens until the next stage
MUTUAL = 0.5  # share of the others' variance that counts as noise: they depend on each other, so all of it is too much;
# the sweeps before PAIRED, which find the factors, take all of it
PARABOLA_STEP = 0.5  # how far a parabola moves towards the one that fits, once it is no bound
_SPREAD = 0.5  # of the first means
_TREND = 0.25  # standard deviation of the scores' rise with the logarithm of how many others an item met
_GROUP, _GROUPS = 32, 64  # items that are updated at once, where there are few; groups of them, where there are many
_WORTH_SHARING = 2000  # comparisons of a group of items that threads share
_OF_ROWS = ("curvature", "slope", "mean", "variance")  # of a comparison, what the next sweep depends on
HELD = 1e9  # the precision of what does not move, at least
_HOLD = 1e6  # times all weights: what holds a parameter whatever the data says


class Stages(NamedTuple):
    """After which sweep each stage begins; see the constants of these names. With fewer sweeps they begin earlier."""

    bounded: int
    paired: int
    own: int

    @staticmethod
    def of(sweeps: int) -> "Stages":
        """Return the stages of a run of ``sweeps`` sweeps.

        >>> Stages.of(20)
        Stages(bounded=4, paired=8, own=16)
        """

        def at(stage: int) -> int:
            return max(round(stage * min(sweeps / SWEEPS, 1.0)), 1)

        return Stages(*map(at, (BOUNDED, PAIRED, OWN)))


class Variational:
    """Beliefs about the parameters of a model of comparisons, sweep after sweep.

    ``factors`` is the first number of factors, without the bias; ``seed`` is that of the first means,
    which differ between items so that they can part. Rival factors are learnt or held at 1 (BPR). The result does not
    depend on the number of threads. ``sweeps`` is the number of sweeps of the fit. ``features`` are those of users and
    of items, CSR, or None: their predictions take the place of the priors' means.
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
        self._users, self.rivals = users, rivals
        self._threads, self._executor = 1 if executor is None else threads, executor
        user, item, rival, weight, wins, controls = counts
        self.controls = None if controls is None else Coefficients(controls, weight)
        keys, places = np.unique(pairing_keys(item, rival, items), return_inverse=True)
        pairing = places.astype(np.int32)
        del places
        self.pairings = Pairings(len(keys))
        self._kept_keys: dict[str, NDArray[np.int64]] = {}  # once no sweep follows
        zeros = np.zeros(len(user)), np.zeros(len(user)), np.zeros((len(user), 3))
        parabolas = 0.25 * weight, wins - 0.5 * weight
        self.rows = Rows(starts(user, users), user, item, rival, weight, wins, pairing, *parabolas, *zeros)
        order = np.argsort(pairing, kind="stable")
        # Entries of one other item stand together, because comparisons are listed in the order of their pairings.
        self._entries = Entries(*list_by_item(item[order], rival[order], items))
        self._entries.row[:] = order[self._entries.row]
        del order
        self._has_data = np.diff(self.rows.start) > 0
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
        self._packed = Packed.empty(0, 0, 0)
        rng = np.random.default_rng((seed, 8))
        if users == 1 and not rivals:
            factors = 0  # all would become a part of the bias
        self._stages = Stages.of(sweeps)
        k = 1 + factors
        user_held, rival_held = self._held(k)
        xi = np.where(user_held, 1.0, _SPREAD * (1 + rng.standard_normal((users, k))))
        eta = _SPREAD * rng.standard_normal((items, k))
        tau = np.where(rival_held, 1.0, np.abs(1 + _SPREAD * rng.standard_normal((items, k))))
        both = np.hstack((eta, tau))
        self.beliefs = Beliefs(xi, outer(xi), both, outer(both))
        self.prior = Prior(
            np.where(user_held, 1.0, _SPREAD),
            np.where(user_held, self._hold, 1.0),
            np.ones(k),
            np.where(rival_held, self._hold, _SPREAD**-2),
        )
        self._order = rng.permutation(np.flatnonzero(self._met))
        self.sweep, self.likelihood, self.quiet = 0, 0.0, False
        self._find_centres()
        self._set_unseen_to_prior()
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
        """The last sweep that adds or removes a part of the model."""
        return self._stages.own

    def _held(self, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for which factors xi is held at 1, and for which tau is.

        The first is the bias. One user is the population: nothing tells xi from eta then.
        """
        bias = np.arange(k) == 0
        return bias | (self._users == 1), bias | (not self.rivals)

    def _logarithms_of_meetings(self, keys: NDArray[np.int64], items: int) -> Doubles:
        """Return of each item log(1 + how many others it met), less the mean."""
        logarithm = log_meetings(
            np.bincount(keys // items, minlength=items) + np.bincount(keys % items, minlength=items)
        )
        if self._item_side is not None:  # features tell more of an item that is new
            logarithm[~self._met] = 0.0
        return logarithm

    # -- a sweep ------------------------------------------------------------------------------------------------------

    def make_sweep(self) -> float:
        """Make a sweep; return the mean expected log likelihood of the comparisons.

        Where the last one of a stage moved nothing, those that are left of it have nothing to do.
        """
        stages = self._stages
        self.quiet = self.quiet and self.sweep not in stages
        if self.quiet:
            self.sweep += 1
            return self.likelihood
        bound, final = self.sweep < stages.bounded, self._users > 1 and self.sweep >= stages.own
        if final:
            self._learn_own_scores()
        self._fit_parabolas(bound)
        if not final:
            self._find_centres()
            self._pack()
            mutual = 1.0 if self.sweep < stages.paired else MUTUAL
            if self._users > 1 and len(self.prior.user_mean) > 1:  # the bias is the same for all
                self._update_users(mutual)
            self._update_items(mutual)
        self.sweep += 1
        if not final:
            learns = self.sweep > stages.bounded
            if learns:
                self._learn_prior()
                observed = np.diff(self.rows.start), np.diff(self._entries.start)
                dropped = idle_factors(self.beliefs, *observed)
                if stages.paired <= self.sweep <= stages.own:
                    dropped |= move_to_bias(self.beliefs, self.prior)
                if dropped.any():
                    self.beliefs, self.prior = without(dropped, self.beliefs, self.prior)
                    self._find_centres()
            self._set_unseen_to_prior()
            self.quiet = self._find_margins() < QUIET and learns
            if learns:
                self._update_trend()
            if self.controls is not None:
                self._update_controls(self.controls)
        if self.rivals and self.sweep > stages.paired:
            rest = self.parts, self.own, self.common_part, self.sweep > stages.own
            self.pairings.update(self.rows, *rest)
        if self.own is not None:
            mean = self.rows.mean
            self.own.update(self._each, lambda rows: mean[rows] + self.common_part(rows) + self._pairing_part(rows))
        self.likelihood = sum(self._each(self._log_likelihood)) / self.total
        return self.likelihood

    def rise(self, rows: slice) -> Doubles:
        """Return the differences in ``meetings`` between the items of rows and their rivals."""
        return np.asarray(self.meetings[self.rows.item[rows]] - self.meetings[self.rows.rival[rows]])

    def common_part(self, rows: slice) -> Doubles:
        """Return what trend and features of comparisons add to the margins of rows, for all users alike."""
        part = self.trend * self.rise(rows)
        return part if self.controls is None else part + self.controls.margins(rows)

    def _pairing_part(self, rows: slice) -> Doubles:
        """Return what the margins of pairings add to those of rows."""
        return np.asarray(self.pairings.mean[self.rows.pairing[rows]])

    def _offsets(self, part: Part) -> tuple[Doubles, Doubles]:
        """Return the mean and variance that are added to the margins by the factors."""
        rows = part.rows
        offset = self.common_part(rows) + self._pairing_part(rows)
        variance = self.pairings.variance[self.rows.pairing[rows]]
        if self.own is not None:
            offset = offset + self.own.margins(rows)
            variance += self.own.margin_variances(part)
        return np.asarray(offset), variance

    def beside_factors(self, part: Part) -> list[tuple[Doubles, Doubles]]:
        """Return mean and variance of each part of the margins of rows that is not one of the factors."""
        at = self.rows.pairing[part.rows]
        parts = [(self.pairings.mean[at], self.pairings.variance[at])] if self.pairings.scale else []
        return parts if self.own is None else [*parts, *self.own.sides(part)]

    def _each(self, stage: Callable[[Part], Any]) -> list[Any]:
        """Return what a stage returns for every part of the comparisons, on all threads."""
        return list((map if self._executor is None else self._executor.map)(stage, self.parts))

    def _fit_parabolas(self, bound: bool) -> None:
        """Fit the parabolas of all comparisons."""
        how = bound, 1.0 if bound else PARABOLA_STEP
        self._each(lambda part: fit_parabolas(*part.ends, self.rows, *self._offsets(part), *how))

    def _log_likelihood(self, part: Part) -> float:
        """Return the expected log likelihood of comparisons."""
        return float(log_likelihood_of(*part.ends, self.rows, *self._offsets(part)))

    def _learn_own_scores(self) -> None:
        """Start to learn own scores of users, with the factors fixed from now on."""
        if self.own is None:
            self.beliefs = self.widened()
            self._find_margins()
            self._keep_factors()
            self.own = OwnScores(self.rows, len(self.beliefs.item))

    def widened(self) -> Beliefs:
        """Return the beliefs with covariances of items in which the variance of pairings counts in full.

        In the sweeps a share of it counts (``MUTUAL``), or factors would shrink too far.
        """
        rows, beliefs = self.rows, self.beliefs
        if not len(rows.sites) or not self.pairings.scale:  # the factors stay, or pairings have nothing of their own
            return beliefs
        rows.sites.T[:] = rows.curvature, rows.slope, rows.variance  # another sweep writes them anew
        self._pack()
        item_moment, width = beliefs.item_moment.copy(), beliefs.item.shape[1]
        given = rows, self._entries, beliefs, self._packed, self._centred_prior(), MUTUAL, self.pairings.scale
        for start in range(0, len(self._order), AT_ONCE):
            items = self._order[start : start + AT_ONCE]
            mean, moment = np.empty((len(items), width)), np.empty((len(items), width, width))
            update_items(items, mean, moment, np.empty(len(items)), *given)
            item_moment[items] = moment - outer(mean) + outer(beliefs.item[items])
        return beliefs._replace(item_moment=item_moment)

    def _keep_factors(self) -> None:
        """Release what only another update of users and items needs."""
        self.rows = self.rows._replace(sites=np.empty((0, 3)))
        none, no = np.empty(0, np.int32), np.empty(0, np.bool_)
        self._entries, self._packed = Entries(self._entries.start, none, none, no), Packed.empty(0, 0, 0)
        give_back()

    def finish(self) -> None:
        """Release what only another sweep needs, and convert the rest to the precision of a model."""
        nothing, none, pairings = np.empty(0), np.empty(0, np.int32), self.pairings
        self.beliefs = self.widened()
        self._keep_factors()
        self.rows = self.rows._replace(slope=nothing, mean=nothing, variance=nothing)
        if self.own is not None:
            self.own.finish(self.parts, self.rows)
        self.rows = self.rows._replace(curvature=nothing)
        pairings.mean = pairings.mean.astype(np.float32)
        pairings.variance = pairings.variance.astype(np.float32)
        self._kept_keys["pairing"] = self.pairing_keys
        self.rows = self.rows._replace(pairing=none)
        self._kept_keys["own"] = self.own_keys
        self.rows = self.rows._replace(item=none, rival=none)
        if self.own is not None:
            self.own.release(self.rows)
        give_back()

    def _update_trend(self) -> None:
        """Learn how scores rise with the number of meetings, which changes the margins of the factors.

        Twice: given what is left of the scores, and given the scores, which is fast where the other is slow.
        """
        rows, prior_precision = self.rows, _TREND**-2

        def risen(part: Part) -> tuple[float, float]:
            at, rise = part.rows, self.rise(part.rows)
            explained = rows.mean[at] + self._pairing_part(at)
            if self.controls is not None:
                explained = explained + self.controls.margins(at)
            rest = rows.slope[at] - rows.curvature[at] * explained
            return float(rise @ rest), float(rows.curvature[at] @ rise**2)

        slope, determined = (sum(side) for side in zip(*self._each(risen), strict=True))
        self.trend = slope / (prior_precision + determined)
        precision, meetings = self.prior.item_precision[0], np.where(self._met, self.meetings, 0.0)
        scores = self.beliefs.item[:, 0]
        if self._item_centre is not None:
            scores = scores - self._item_centre[:, 0]
        change = precision * float(meetings @ scores) - prior_precision * self.trend
        change /= precision * float(meetings @ meetings) + prior_precision
        self.trend += change
        self._move_scores(-change * meetings)

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
        """Move the scores of items, and with them the margins of comparisons."""
        item, moment, rows = self.beliefs.item, self.beliefs.item_moment, self.rows
        moment[:, 0, :] += moved[:, None] * item
        item[:, 0] += moved
        moment[:, :, 0] += moved[:, None] * item

        def move(part: Part) -> None:
            at = part.rows
            rows.mean[at] += moved[rows.item[at]] - moved[rows.rival[at]]

        self._each(move)

    def _pack(self) -> None:
        """Pack the moments of all users and items."""
        sizes = len(self.beliefs.user), len(self.beliefs.item), len(self.prior.user_mean)
        if self._packed.user.shape[0] != sizes[0] or len(self._packed.twice) != sizes[2] * (sizes[2] + 1) // 2:
            self._packed = Packed.empty(*sizes)
        self._each(lambda part: pack_users(part.first, part.last, self.beliefs, self._packed))
        pack_items(np.arange(sizes[1]), self.beliefs, self._packed)

    def _update_users(self, mutual: float) -> None:
        """Update users, who do not depend on each other."""
        given = self.rows, self.beliefs, self._packed, self._centred_prior(), mutual
        self._each(lambda part: update_users(part.first, part.last, *given))

    def _update_items(self, mutual: float) -> None:
        """Update items in groups; those of a group see each other's old beliefs, so that threads may share them."""
        count = len(self._order)
        size = max(min(count // 16, _GROUP), count // _GROUPS, 1)
        beliefs = self.beliefs
        given = self.rows, self._entries, beliefs, self._packed, self._centred_prior(), mutual, 0.0
        worth_sharing = size * len(self._entries.row) > _WORTH_SHARING * count
        for start in range(0, count, size):
            group = self._order[start : start + size]
            mean, share = np.empty((len(group), beliefs.item.shape[1])), np.empty(len(group))
            moment = np.empty((len(group), *beliefs.item_moment.shape[1:]))
            if self._executor is None or not worth_sharing:
                update_items(group, mean, moment, share, *given)
            else:
                bounds = np.linspace(0, len(group), 1 + self._threads).astype(int)
                parts = [(group[a:b], mean[a:b], moment[a:b], share[a:b], *given) for a, b in pairwise(bounds)]
                list(self._executor.map(update_items, *zip(*parts, strict=True)))
            beliefs.item[group] = mean
            beliefs.item_moment[group] = moment
            pack_items(group, beliefs, self._packed)

    def _find_margins(self) -> float:
        """Write mean and variance of the margins of all comparisons by the factors; return how far they moved."""
        self._pack()
        squares = self._each(lambda part: find_margins(*part.ends, self.rows, self.beliefs, self._packed))
        return float(np.sqrt(sum(squares) / self.total))

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
            eta, tau = variances(square, bias=True), variances(rival - 2 * beliefs.item[met, k:] + 1)
        else:
            mean, centre = beliefs.item[met], self._item_centre[met]
            eta = variances(square - 2 * mean[:, :k] * centre[:, :k] + centre[:, :k] ** 2, bias=True)
            tau = variances(rival - 2 * mean[:, k:] * centre[:, k:] + centre[:, k:] ** 2)
        user_mean: Any = self.prior.user_mean
        user_precision: Any = self.prior.user_precision
        if self._users > 1:
            user, square = beliefs.user[self._has_data], beliefs.user_moment[:, h, h][self._has_data]
            user_mean = np.where(user_held, 1.0, user.mean(axis=0))
            centre = user_mean if self._user_centre is None else self._user_centre[self._has_data]
            spread = variances(square - 2 * user * centre + centre**2)
            user_precision = np.where(user_held, self._hold, 1.0 / half_way(spread))
        rival_precision = np.where(rival_held, self._hold, 1.0 / tau)
        self.prior = Prior(user_mean, user_precision, 1.0 / half_way(eta), rival_precision)

    def _find_centres(self) -> None:
        """Fit the predictions of features to the beliefs; nothing before the priors are learnt."""
        beliefs, k = self.beliefs, len(self.prior.user_mean)
        self._user_centre = self._item_centre = None
        learns = self.sweep >= self._stages.bounded
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

    def _centred_prior(self) -> CentredPrior:
        return CentredPrior(*self.prior, self._user_centre, self._item_centre)

    def _set_unseen_to_prior(self) -> None:
        """Set the beliefs about users and items without comparisons to the prior."""
        prior, k = self.prior, len(self.prior.user_mean)
        item = np.repeat([0.0, 1.0], k)[None] if self._item_centre is None else self._item_centre[~self._met]
        spread = np.diag(1.0 / np.concatenate((prior.item_precision, prior.rival_precision)))
        self.beliefs.item[~self._met] = item
        self.beliefs.item_moment[~self._met] = outer(item) + spread
        user = prior.user_mean[None] if self._user_centre is None else self._user_centre[~self._has_data]
        self.beliefs.user[~self._has_data] = user
        self.beliefs.user_moment[~self._has_data] = outer(user) + np.diag(1.0 / prior.user_precision)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the next sweep depends on: plain values and arrays."""
        rows, pairings, own = self.rows, self.pairings, self.own
        arrays = {**self.beliefs._asdict(), **{f"prior_{name}": value for name, value in self.prior._asdict().items()}}
        arrays |= {name: getattr(rows, name) for name in _OF_ROWS}
        arrays |= {"pairing_mean": pairings.mean, "pairing_variance": pairings.variance}
        if self.controls is not None:
            arrays["coefficients"] = self.controls.mean
        values: dict[str, Any] = {name: getattr(self, name) for name in ("sweep", "quiet", "likelihood", "trend")}
        values["pairing_scale"] = pairings.scale
        if own is not None:
            arrays["own_mean"] = own.mean
            values |= {"own_scale": own.scale, "own_precision": own.precision}
        return values, arrays

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state from :meth:`state`; raise on other shapes or types and on numbers that are not finite."""
        self.checked(values, arrays)()

    def checked(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Callable[[], None]:
        """Return a function that restores a state; a state that is refused changes nothing."""
        k = len(arrays["prior_user_mean"])
        n, m, size = len(self.beliefs.user), len(self.beliefs.item), len(self.rows.user)
        shapes = {"user": (n, k), "user_moment": (n, k, k), "item": (m, 2 * k), "item_moment": (m, 2 * k, 2 * k)}
        shapes |= {f"prior_{name}": (k,) for name in Prior._fields}
        shapes |= dict.fromkeys(_OF_ROWS, (size,))
        shapes |= dict.fromkeys(("pairing_mean", "pairing_variance"), (len(self.pairings.mean),))
        if self.controls is not None:
            shapes["coefficients"] = self.controls.mean.shape
        sweep, own = int(values["sweep"]), None
        numbers = {name: float(values[name]) for name in ("trend", "pairing_scale", "likelihood")}
        if "own_scale" in values:
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
            self.sweep, self.quiet = sweep, bool(values["quiet"])
            self.trend, self.likelihood = numbers["trend"], numbers["likelihood"]
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
