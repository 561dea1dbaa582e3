"""Learn from comparisons how much to learn: beliefs about every parameter, and priors that the data sets.

People shrink towards a population whose mean and spread are learnt, factor by factor; scores shrink towards what items
have that met as many others (in sports, those who play more are better), and rival factors towards 1, by scales that
are learnt, too. Where there is one user, one factor comes first, and the others, a sweep later, with smaller scores:
all alike, they share what one could explain alone until none is worth keeping. A factor that the data does not support
shrinks to nothing and is dropped; one that is the same for everybody, with rival factors of 1, becomes a part of the
item bias.

What is left of two items that met often is a margin of their own (:class:`Pairings`): the games of one series are no
independent evidence about anything else. (BPR, which explains everything by scores, has none.) What is left of a user
and an item is a score of its own (:class:`OwnScores`).

One sweep fits a parabola to every comparison (see ``beliefs.py``), then solves for every user and every item, and sets
the priors to what is believed. There is no learning rate. The first sweeps take parabolas that are bounds: they cannot
overshoot.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._moments import Beliefs, margin_distribution, moderated, pairing_keys
from sadrec._types import Doubles
from sadrec.training.beliefs import (
    HELD,
    Entries,
    Prior,
    Rows,
    fit_parabolas,
    update_items,
    update_own_scores,
    update_users,
)
from sadrec.training.given import Pairs
from sadrec.training.layout import lay_out, starts

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
STATEMENT = 100.0  # fewer comparisons are no sample to learn priors from: they are taken as they stand
_SPREAD = 0.5  # of the first means
_STATED = 2.0  # of eta and tau where they are not learnt
_FEW, _SMALL = 1.0, 1e-3  # the scales' own prior: so many numbers of this variance
_NEW_VARIANCE, _NEW_SPREAD = 0.3, 0.3  # of the scores of factors that come later: expected, and at first
_TREND = 0.25  # standard deviation of the scores' rise with the logarithm of how many others an item met
_GROUP, _GROUPS = 32, 64  # items that are updated at once, where there are few; groups of them, where there are many
_FIRST_SCALE = 0.1  # of the variance of pairings and own scores
_AT_ONCE = 65_536  # comparisons whose parts are added up at once
_ROUNDS = 20  # of the search for the variance of pairings, in every sweep
_OF_ROWS = ("curvature", "slope", "mean", "variance")  # of a comparison, what the next sweep depends on
_HOLD = 1e6  # times all weights: what holds a parameter whatever the data says


@dataclass
class Pairings:
    """Margins of single pairings beside those of the factors: normal around 0, with a learnt variance."""

    keys: NDArray[np.int64]  # of the pairings, ascending
    of_row: NDArray[np.int64]  # the pairing of each comparison
    sign: Doubles  # of each comparison: +1 where the winner is the item of lower position
    mean: Doubles
    variance: Doubles
    scale: float = 0.0  # the learnt variance; 0 until it is learnt

    @staticmethod
    def of(winner: NDArray[Any], loser: NDArray[Any], items: int) -> "Pairings":
        """Return the pairings of comparisons, with margins of 0."""
        keys, of_row = np.unique(pairing_keys(winner, loser, items), return_inverse=True)
        return Pairings(keys, of_row, np.where(winner < loser, 1.0, -1.0), np.zeros(len(keys)), np.zeros(len(keys)))


@dataclass
class OwnScores:
    """What people think of items they compared, beside the factors: normal around 0, with a learnt variance."""

    keys: NDArray[np.int64]  # user * items + item, ascending
    winner: NDArray[np.int64]  # of each comparison: the place of (user, winner)
    loser: NDArray[np.int64]
    start: NDArray[np.int64]  # where the entries of each place begin
    row: NDArray[np.int64]  # of an entry: its comparison,
    other: NDArray[np.int64]  # the place of the other item,
    sign: Doubles  # and whether the item won (1) or lost (-1)
    mean: Doubles
    variance: Doubles
    scale: float = 0.0  # the learnt variance; 0 until it is learnt

    @staticmethod
    def of(rows: Rows, items: int) -> "OwnScores":
        """Return the own scores of comparisons, all 0."""
        count, user = len(rows.user), rows.user.astype(np.int64) * items
        keys, places = np.unique(np.concatenate((user + rows.winner, user + rows.loser)), return_inverse=True)
        order = np.argsort(places, kind="stable")
        row, won = order % count, order < count
        winner, loser = places[:count], places[count:]
        other = np.where(won, loser[row], winner[row])
        start = starts(places[order], len(keys))
        zeros = np.zeros(len(keys)), np.zeros(len(keys))
        return OwnScores(keys, winner, loser, start, row, other, np.where(won, 1.0, -1.0), *zeros)

    def update(self, rows: Rows, rest: Doubles) -> None:
        """Set the scores to what the rest of the margins leaves unexplained, and learn their variance."""
        self.scale = self.scale or _FIRST_SCALE
        entries = self.start, self.row, self.other, self.sign
        update_own_scores(*entries, rows, rest, 1.0 / self.scale, self.mean, self.variance)
        determined = len(self.variance) - float(self.variance.sum()) / self.scale
        squares = float(self.mean @ self.mean)
        self.scale = min(max((squares + _FEW * _SMALL) / (determined + _FEW), 1e-4), 25.0)


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
        """Return the stages of a run of so many sweeps.

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
    depend on the number of threads. ``sweeps`` is how many there will be; ``learns`` says whether priors are learnt
    (by default, where there are enough comparisons).
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
        learns: bool | None = None,
    ) -> None:
        self._users, self.rivals, self._factors, self._seed = users, rivals, factors, seed
        self._threads, self._executor = 1 if executor is None else threads, executor
        if pairs.weight is not None and not pairs.weight.all():  # a comparison of weight 0 says nothing
            counts = pairs.weight > 0
            pairs = Pairs(pairs.user[counts], pairs.winner[counts], pairs.loser[counts], pairs.weight[counts])
        if not len(pairs):
            raise ValueError("all comparisons have the weight 0: there is nothing to learn from")
        laid = lay_out(pairs, users, items)
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight[laid.order].astype(np.float64)
        nothing = (np.zeros(len(pairs)) for _ in range(4))
        rest = 0.25 * weight, 0.5 * weight, *nothing, np.ones((len(pairs), 3))
        self.rows = Rows(laid.user_start, laid.user, laid.winner, laid.loser, weight, *rest)
        self._entries = Entries(laid.item_start, laid.row, laid.other, np.where(laid.won, 1.0, -1.0))
        self.pairings = Pairings.of(self.rows.winner, self.rows.loser, items)
        self._asked = np.diff(self.rows.start) > 0
        self._met = np.diff(self._entries.start) > 0
        total = float(self.rows.weight.sum())
        self._learns = total >= STATEMENT if learns is None else learns
        self._hold = max(HELD, _HOLD * total)
        self.own = OwnScores.of(self.rows, items) if users > 1 else None
        self.trend = 0.0  # how much higher the scores of items are that met e times as many others
        self.meetings = self._logarithms_of_meetings(items)
        self._rise = self.meetings[self.rows.winner] - self.meetings[self.rows.loser]
        rng = np.random.default_rng((seed, 8))
        self._grows = users == 1 and self._learns
        self._stages = Stages.of(sweeps)
        self._settled = self._stages.bounded if self._grows else self._stages.settled
        k = 1 + (min(factors, 1) if self._grows else factors)
        user_held, rival_held = self._held(k)
        user = np.where(user_held, 1.0, _SPREAD * (1 + rng.standard_normal((users, k))))
        eta = _SPREAD * rng.standard_normal((items, k))
        tau = np.where(rival_held, 1.0, np.abs(1 + _SPREAD * rng.standard_normal((items, k))))
        item = np.hstack((eta, tau))
        self.beliefs = Beliefs(user, _outer(user), item, _outer(item))
        self.prior = Prior(
            np.where(user_held | (not self._learns), 1.0, _SPREAD),
            np.where(user_held, self._hold, 1.0),
            np.full(k, 1.0 if self._learns else _STATED**-2),
            np.where(rival_held, self._hold, _SPREAD**-2 if self._learns else _STATED**-2),
        )
        self._order = rng.permutation(np.flatnonzero(self._met))
        self.sweep = 0
        self._expect_of_unseen()
        self._find_margins()

    @property
    def last_stage(self) -> int:
        """The sweep after which the model only gets better at what it has: no part of it comes or goes."""
        return (self._stages.own if self.own is not None else self._stages.pruned[-1]) if self._learns else 0

    def _held(self, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell for which factors xi is held at 1, and for which tau.

        The first is the bias. One user is the population: nothing tells xi from eta then.
        """
        bias = np.arange(k) == 0
        return bias | (self._users == 1), bias | (not self.rivals)

    def _logarithms_of_meetings(self, items: int) -> Doubles:
        """Return of every item the logarithm of 1 + how many others it met, less the mean; unknown ones have the least.

        What nobody compared is taken for something that was hardly ever compared.
        """
        keys = self.pairings.keys
        count = np.bincount(keys // items, minlength=items) + np.bincount(keys % items, minlength=items)
        logarithm = np.log1p(np.maximum(count, count[self._met].min()))
        return np.asarray(logarithm - logarithm[self._met].mean())

    # -- a sweep ------------------------------------------------------------------------------------------------------

    def advance(self) -> float:
        """Make a sweep; return the mean log likelihood of the comparisons, averaged over what is not known."""
        stages = self._stages
        if self._grows and self.sweep == stages.grown:
            self._grow()
            self._find_margins()
        bound, final = self.sweep < stages.bounded, self._learns and self.own is not None and self.sweep >= stages.own
        step, mutual = 1.0 if bound else STEP, -1.0 if final else 1.0 if self.sweep < stages.paired else MUTUAL
        self._share(fit_parabolas, len(self.rows.user), self.rows, self.beliefs, bound, step, mutual)
        if not final:
            if self._users > 1:
                self._share(update_users, self._users, self.rows, self.beliefs, self.prior)
            self._update_items()
        self.sweep += 1
        if self._learns and not final:
            if self.sweep > self._settled:
                self._learn_prior()
            if self.sweep in stages.pruned:
                self._drop(self._move_to_bias() | self._idle())
        if not final:
            self._expect_of_unseen()
            self._find_margins()
        rows = self.rows
        if self._learns:
            if self.sweep > self._settled and not final:
                self._update_trend()
            if self.rivals and self.sweep > stages.paired:
                self._update_pairings(rows.mean + self.trend * self._rise + self._own_part())
            if final and self.own is not None:
                self.own.update(rows, rows.mean + self.trend * self._rise + self._pairing_part())
            self._set_offsets()
        likelihoods = -np.logaddexp(0, -moderated(rows.mean + rows.offset, rows.variance + rows.offset_variance))
        return float(np.average(likelihoods, weights=rows.weight))

    def _pairing_part(self) -> Doubles:
        """Return what the margins of pairings add to those of the comparisons."""
        return self.pairings.sign * self.pairings.mean[self.pairings.of_row]

    def _own_part(self) -> Doubles | float:
        """Return what the users' own scores add to the margins of the comparisons."""
        own = self.own
        return 0.0 if own is None else own.mean[own.winner] - own.mean[own.loser]

    def _set_offsets(self) -> None:
        """Write what is added to the margins of the factors."""
        rows, own = self.rows, self.own
        rows.offset[:] = self.trend * self._rise + self._pairing_part() + self._own_part()
        rows.offset_variance[:] = self.pairings.variance[self.pairings.of_row]
        if own is not None:
            rows.offset_variance[:] += own.variance[own.winner] + own.variance[own.loser]

    def _update_trend(self) -> None:
        """Learn how scores rise with the number of meetings, which changes the margins of the factors.

        Twice: given what is left of the scores, and given the scores, which is fast where the other is slow.
        """
        rows, rise, expected = self.rows, self._rise, _TREND**-2
        rest = rows.slope - rows.curvature * (rows.mean + self._pairing_part() + self._own_part())
        self.trend = float(rise @ rest) / (expected + float(rows.curvature @ rise**2))
        precision, meetings = self.prior.item_precision[0], np.where(self._met, self.meetings, 0.0)
        scores = self.beliefs.item[:, 0]
        more = precision * float(meetings @ scores) - expected * self.trend
        more /= precision * float(meetings @ meetings) + expected
        self.trend += more
        moved = more * meetings
        item, moment = self.beliefs.item, self.beliefs.item_moment
        moment[:, 0, :] -= moved[:, None] * item
        item[:, 0] -= moved
        moment[:, :, 0] -= moved[:, None] * item
        rows.mean[:] -= more * rise

    def _share(self, stage: Callable[..., Any], count: int, *arguments: Any) -> None:
        """Run a stage on ranges of users or rows, on all threads."""
        bounds = np.linspace(0, count, 1 + 4 * self._threads).astype(np.int64)
        for _ in self._map(lambda first, last: stage(first, last, *arguments), bounds[:-1], bounds[1:]):
            pass

    def _map(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        return iter(map(function, *arguments)) if self._executor is None else self._executor.map(function, *arguments)

    def _update_items(self) -> None:
        """Update items in groups; those of a group see each other's old beliefs, so that threads may share them."""
        count = len(self._order)
        size = max(min(count // 16, _GROUP), count // _GROUPS, 1)
        threads = self._threads if size >= 8 else 1
        beliefs = self.beliefs
        for start in range(0, count, size):
            group = self._order[start : start + size]
            mean = np.empty((len(group), beliefs.item.shape[1]))
            moment = np.empty((len(group), *beliefs.item_moment.shape[1:]))
            bounds = np.linspace(0, len(group), 1 + threads).astype(int)
            parts = [(group[a:b], mean[a:b], moment[a:b]) for a, b in pairwise(bounds)]
            shared = self.rows, self._entries, beliefs, self.prior, self._users == 1
            for _ in self._map(update_items, *zip(*(part + shared for part in parts), strict=True)):
                pass
            beliefs.item[group] = mean
            beliefs.item_moment[group] = moment

    def _find_margins(self) -> None:
        """Write mean and variance of the margins of all comparisons, by the factors alone."""
        rows = self.rows
        sides = rows.user, rows.winner, rows.loser
        self._share(margin_distribution, len(rows.user), *sides, self.beliefs, rows.mean, rows.variance)

    def _update_pairings(self, by_factors: Doubles) -> None:
        """Set the margins of pairings to what the factors leave unexplained, and learn their variance."""
        rows, pairings = self.rows, self.pairings
        count = len(pairings.keys)
        information = np.bincount(pairings.of_row, rows.curvature, count)
        rest = pairings.sign * (rows.slope - rows.curvature * by_factors)
        linear = np.asarray(np.bincount(pairings.of_row, rest, count), np.float64)
        pairings.scale = pairings.scale or _FIRST_SCALE
        for _ in range(_ROUNDS):  # MacKay (1992): the squares over the number of margins that the data determines
            precision = 1.0 / pairings.scale + information
            determined = float(np.sum(information / precision))
            squares = float(np.sum((linear / precision) ** 2))
            pairings.scale = min(max((squares + _FEW * _SMALL) / (determined + _FEW), 1e-4), 25.0)
        pairings.variance = np.asarray(1.0 / (1.0 / pairings.scale + information), np.float64)
        pairings.mean = linear * pairings.variance

    def _learn_prior(self) -> None:
        """Set means and scales of the priors to those of the beliefs.

        The variance of a factor lies half way between its own and the mean of all: alone, those of weak factors run
        away to 0; in common, those of strong ones are held back.
        """
        beliefs, k = self.beliefs, len(self.prior.user_mean)
        user_held, rival_held = self._held(k)
        h = np.arange(k)
        eta = _variance(beliefs.item_moment[:, h, h][self._met])
        square = beliefs.item_moment[:, k + h, k + h][self._met]
        tau = _variance(square - 2 * beliefs.item[self._met, k:] + 1)
        user_mean: Any = self.prior.user_mean
        user_precision: Any = self.prior.user_precision
        if self._users > 1:
            user, square = beliefs.user[self._asked], beliefs.user_moment[:, h, h][self._asked]
            user_mean = np.where(user_held, 1.0, user.mean(axis=0))
            spread = _variance(square - 2 * user * user_mean + user_mean**2)
            user_precision = np.where(user_held, self._hold, 1.0 / _half_way(spread))
        rival_precision = np.where(rival_held, self._hold, 1.0 / tau)
        self.prior = Prior(user_mean, user_precision, 1.0 / _half_way(eta), rival_precision)

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
            item, rival = beliefs.item[rows.winner[part]], beliefs.item[rows.loser[part]]
            parts = beliefs.user[rows.user[part]] * (item[:, :k] * rival[:, k:] - rival[:, :k] * item[:, k:])
            squares += rows.weight[part] @ parts**2
        idle = np.sqrt(squares / rows.weight.sum()) < LEAST
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
            covariance = beliefs.item_moment - _outer(beliefs.item)
            beliefs.item[:, 0] = beliefs.item[:, at] @ weights
            covariance[:, 0, :] = np.einsum("p,ipq->iq", weights, covariance[:, at, :])
            covariance[:, :, 0] = np.einsum("p,iqp->iq", weights, covariance[:, :, at])
            beliefs.item_moment[...] = covariance + _outer(beliefs.item)
            prior.item_precision[0] = 1.0 / float(weights**2 @ (1.0 / prior.item_precision[at]))
        return np.asarray(common)

    def _drop(self, dropped: NDArray[np.bool_]) -> None:
        """Go on without some factors."""
        if dropped.any():
            kept = np.flatnonzero(~dropped)
            both = np.concatenate((kept, len(dropped) + kept))
            user, user_moment, item, item_moment = self.beliefs
            parts = user[:, kept], user_moment[:, kept][:, :, kept], item[:, both], item_moment[:, both][:, :, both]
            self.beliefs = Beliefs(*map(np.ascontiguousarray, parts))
            self.prior = Prior(*(values[kept] for values in self.prior))

    def _expect_of_unseen(self) -> None:
        """Believe of users and items without comparisons what the prior says."""
        prior, k = self.prior, len(self.prior.user_mean)
        item = np.repeat([0.0, 1.0], k)
        spread = np.diag(1.0 / np.concatenate((prior.item_precision, prior.rival_precision)))
        self.beliefs.item[~self._met] = item
        self.beliefs.item_moment[~self._met] = np.outer(item, item) + spread
        self.beliefs.user[~self._asked] = prior.user_mean
        self.beliefs.user_moment[~self._asked] = np.outer(prior.user_mean, prior.user_mean) + np.diag(
            1.0 / prior.user_precision
        )

    # -- checkpoints --------------------------------------------------------------------------------------------------

    @property
    def _learnt_margins(self) -> dict[str, Pairings | OwnScores]:
        return {"pairing": self.pairings} | ({} if self.own is None else {"own": self.own})

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the next sweep depends on: plain values and arrays."""
        rows = self.rows
        arrays = {**self.beliefs._asdict(), **{f"prior_{name}": value for name, value in self.prior._asdict().items()}}
        arrays |= {name: getattr(rows, name) for name in _OF_ROWS}
        values: dict[str, Any] = {"sweep": self.sweep, "trend": self.trend}
        for name, margins in self._learnt_margins.items():
            arrays |= {f"{name}_mean": margins.mean, f"{name}_variance": margins.variance}
            values[f"{name}_scale"] = margins.scale
        return values, arrays

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go to a state that :meth:`state` gave, refusing arrays of other shapes or types and what is not finite."""
        k = len(arrays["prior_user_mean"])
        n, m, size = len(self.beliefs.user), len(self.beliefs.item), len(self.rows.user)
        shapes = {"user": (n, k), "user_moment": (n, k, k), "item": (m, 2 * k), "item_moment": (m, 2 * k, 2 * k)}
        shapes |= {f"prior_{name}": (k,) for name in Prior._fields}
        shapes |= dict.fromkeys(_OF_ROWS, (size,))
        for name, margins in self._learnt_margins.items():
            shapes |= dict.fromkeys((f"{name}_mean", f"{name}_variance"), (len(margins.keys),))
        copies = {}
        for name, shape in shapes.items():
            array = arrays[name]
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} is not made of {shape} finite numbers")
            copies[name] = np.array(array)
        self.sweep, self.trend = int(values["sweep"]), float(values["trend"])
        self.beliefs = Beliefs(*(copies[name] for name in Beliefs._fields))
        self.prior = Prior(*(copies[f"prior_{name}"] for name in Prior._fields))
        for name in _OF_ROWS:
            getattr(self.rows, name)[:] = copies[name]
        for name, margins in self._learnt_margins.items():
            margins.mean, margins.variance = copies[f"{name}_mean"], copies[f"{name}_variance"]
            margins.scale = float(values[f"{name}_scale"])
        self._set_offsets()


def _variance(squares: Doubles) -> Doubles:
    """Return the mean of squares over rows, held a little to a small number."""
    return np.asarray((squares.sum(axis=0) + _FEW * _SMALL) / (len(squares) + _FEW))


def _half_way(variance: Doubles) -> Doubles:
    """Return variances half way to the mean of all but the first, which is that of the bias."""
    if len(variance) < 2:
        return variance
    return np.append(variance[:1], (variance[1:] + variance[1:].mean()) / 2)


def _outer(vectors: Doubles) -> Doubles:
    """Return the products of every vector with itself."""
    return np.ascontiguousarray(vectors[:, :, None] * vectors[:, None, :])
