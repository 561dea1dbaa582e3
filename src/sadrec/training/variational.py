"""Learn from comparisons how much to learn: beliefs about every parameter, and priors that the data sets.

People shrink towards a population whose mean and spread are learnt, factor by factor; scores shrink towards equal and
rival factors towards 1, by scales that are learnt, too. A factor that the data does not support shrinks to nothing and
is dropped; one that is the same for everybody, with rival factors of 1, becomes a part of the item bias. What is left
of two items that met often is a margin of their own (:class:`Pairings`): the games of one series are no independent
evidence about anything else. (BPR, which explains everything by scores, has none.)

One sweep fits a parabola to every comparison (see ``beliefs.py``), then solves for every user and every item, and sets
the priors to what is believed. There is no learning rate. The first sweeps take parabolas that are bounds: they cannot
overshoot.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._moments import Beliefs, margin_distribution, moderated, pairing_keys
from sadrec._types import Doubles
from sadrec.training.beliefs import HELD, Entries, Prior, Rows, fit_parabolas, update_items, update_users
from sadrec.training.given import Pairs
from sadrec.training.layout import lay_out

SWEEPS = 60
BOUNDED = 15  # sweeps whose parabolas are bounds
SETTLED = 5  # sweeps before the priors are learnt
PAIRED = 30  # sweeps before pairings have margins of their own: the factors explain what they can first
PRUNED = (28, 45)  # sweeps after which factors that carry nothing are dropped
STEP = 0.5  # how far a parabola moves towards the one that fits, once it is no bound
LEAST = 0.03  # root mean square of a factor's part of the margins below which it carries nothing
STRAIGHT = 0.25  # spread of a factor's rival factors around 1 below which they are 1
ALIKE = 0.1  # spread of users around their mean, as a share of it, below which they are all alike
STATEMENT = 100.0  # fewer comparisons are no sample to learn priors from: they are taken as they stand
_SPREAD = 0.5  # of the first means
_STATED = 2.0  # of eta and tau where they are not learnt
_FEW, _SMALL = 1.0, 1e-3  # the scales' own prior: so many numbers of this variance
_GROUP, _GROUPS = 32, 64  # items that are updated at once, where there are few; groups of them, where there are many
_FIRST_SCALE = 0.1  # of the variance of pairings
_AT_ONCE = 65_536  # comparisons whose parts are added up at once
_ROUNDS = 20  # of the search for the variance of pairings, in every sweep


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


class Variational:
    """Beliefs about the parameters of a model of comparisons, sweep after sweep.

    ``factors`` is the length of the vectors at the start, beside the bias; ``seed`` that of the first means, which
    differ between items so that they can part. Rival factors are learnt or held at 1 (BPR). The result does not depend
    on the number of threads.
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
    ) -> None:
        self._users, self.rivals = users, rivals
        self._threads, self._executor = 1 if executor is None else threads, executor
        if pairs.weight is not None and not pairs.weight.all():  # a comparison of weight 0 says nothing
            counts = pairs.weight > 0
            pairs = Pairs(pairs.user[counts], pairs.winner[counts], pairs.loser[counts], pairs.weight[counts])
        if not len(pairs):
            raise ValueError("all comparisons have the weight 0: there is nothing to learn from")
        laid = lay_out(pairs, users, items)
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight[laid.order].astype(np.float64)
        rest = 0.25 * weight, 0.5 * weight, np.zeros(len(pairs)), np.zeros(len(pairs))
        self.rows = Rows(laid.user_start, laid.user, laid.winner, laid.loser, weight, *rest)
        self._entries = Entries(laid.item_start, laid.row, laid.other, np.where(laid.won, 1.0, -1.0))
        self.pairings = Pairings.of(self.rows.winner, self.rows.loser, items)
        self._asked = np.diff(self.rows.start) > 0
        self._met = np.diff(self._entries.start) > 0
        self._learns = float(self.rows.weight.sum()) >= STATEMENT
        rng = np.random.default_rng((seed, 8))
        k = factors + 1
        user_held, rival_held = self._held(k)
        user = np.where(user_held, 1.0, _SPREAD * (1 + rng.standard_normal((users, k))))
        eta = _SPREAD * rng.standard_normal((items, k))
        tau = np.where(rival_held, 1.0, np.abs(1 + _SPREAD * rng.standard_normal((items, k))))
        item = np.hstack((eta, tau))
        self.beliefs = Beliefs(user, _outer(user), item, _outer(item))
        self.prior = Prior(
            np.where(user_held | (not self._learns), 1.0, _SPREAD),
            np.where(user_held, HELD, 1.0),
            np.full(k, 1.0 if self._learns else _STATED**-2),
            np.where(rival_held, HELD, _SPREAD**-2 if self._learns else _STATED**-2),
        )
        self._order = rng.permutation(np.flatnonzero(self._met))
        self.sweep = 0
        self._expect_of_unseen()

    def _held(self, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell for which factors xi is held at 1, and for which tau.

        The first is the bias. One user is the population: nothing tells xi from eta then.
        """
        bias = np.arange(k) == 0
        return bias | (self._users == 1), bias | (not self.rivals)

    # -- a sweep ------------------------------------------------------------------------------------------------------

    def advance(self) -> float:
        """Make a sweep; return the mean log likelihood of the comparisons, averaged over what is not known."""
        bound = self.sweep < BOUNDED
        self._share(fit_parabolas, len(self.rows.user), self.rows, self.beliefs, bound, 1.0 if bound else STEP)
        if self._users > 1:
            self._share(update_users, self._users, self.rows, self.beliefs, self.prior)
        self._update_items()
        self.sweep += 1
        if self._learns and self.sweep > SETTLED:
            self._learn_prior()
        if self._learns and self.sweep in PRUNED:
            self._drop(self._move_to_bias() | self._idle())
        self._expect_of_unseen()
        mean, variance = self._margins()
        if self._learns and self.rivals and self.sweep > PAIRED:
            self._update_pairings(mean)
        mean, variance = mean + self.rows.offset, variance + self.rows.offset_variance
        likelihoods = -np.logaddexp(0, -moderated(mean, variance))
        return float(np.average(likelihoods, weights=self.rows.weight))

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

    def _margins(self) -> tuple[Doubles, Doubles]:
        """Return mean and variance of the margins of all comparisons, by the factors alone."""
        rows = self.rows
        mean, variance = np.empty(len(rows.user)), np.empty(len(rows.user))
        sides = rows.user, rows.winner, rows.loser
        self._share(margin_distribution, len(rows.user), *sides, self.beliefs, mean, variance)
        return mean, variance

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
        rows.offset[:] = pairings.sign * pairings.mean[pairings.of_row]
        rows.offset_variance[:] = pairings.variance[pairings.of_row]

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
            user_precision = np.where(user_held, HELD, 1.0 / _half_way(spread))
        self.prior = Prior(user_mean, user_precision, 1.0 / _half_way(eta), np.where(rival_held, HELD, 1.0 / tau))

    # -- how many factors ---------------------------------------------------------------------------------------------

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

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the next sweep depends on: plain values and arrays."""
        rows, pairings = self.rows, self.pairings
        arrays = {**self.beliefs._asdict(), **{f"prior_{name}": value for name, value in self.prior._asdict().items()}}
        arrays |= {name: getattr(rows, name) for name in ("curvature", "slope", "offset", "offset_variance")}
        arrays |= {"pairing_mean": pairings.mean, "pairing_variance": pairings.variance}
        return {"sweep": self.sweep, "scale": pairings.scale}, arrays

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go to a state that :meth:`state` gave, refusing arrays of other shapes or types and what is not finite."""
        k = len(arrays["prior_user_mean"])
        n, m, size = len(self.beliefs.user), len(self.beliefs.item), len(self.rows.user)
        shapes = {"user": (n, k), "user_moment": (n, k, k), "item": (m, 2 * k), "item_moment": (m, 2 * k, 2 * k)}
        shapes |= {f"prior_{name}": (k,) for name in Prior._fields}
        shapes |= dict.fromkeys(("curvature", "slope", "offset", "offset_variance"), (size,))
        shapes |= {f"pairing_{name}": (len(self.pairings.keys),) for name in ("mean", "variance")}
        copies = {}
        for name, shape in shapes.items():
            array = arrays[name]
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} is not made of {shape} finite numbers")
            copies[name] = np.array(array)
        self.sweep, self.pairings.scale = int(values["sweep"]), float(values["scale"])
        self.beliefs = Beliefs(*(copies[name] for name in Beliefs._fields))
        self.prior = Prior(*(copies[f"prior_{name}"] for name in Prior._fields))
        for name in ("curvature", "slope", "offset", "offset_variance"):
            getattr(self.rows, name)[:] = copies[name]
        self.pairings.mean, self.pairings.variance = copies["pairing_mean"], copies["pairing_variance"]


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
