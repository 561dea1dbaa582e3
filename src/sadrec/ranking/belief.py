"""Beliefs about margins: mean, variance, and the probability that the item wins.

There are three kinds of belief. A *point* knows means alone: stochastic gradient ascent leaves one. A *Gaussian* has a
mean and a covariance for each user and each item: the variational solver leaves one, and a visitor always has one. The
third kind, *draws*, is that of the sampler (``sadrec.posterior``).

If the margin is known to be 2, the item wins in 88 % of the cases. If it is 0 or 4 with equal chance, the item wins in
74 %. So ``P(i over j) = E[sigmoid(x_uij)]``, which is ``sigmoid(mean / sqrt(1 + pi variance / 8))`` to within 0.02
(MacKay, 1992).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.memory import need
from sadrec._core.types import Doubles, Floats, Positions
from sadrec.ranking.controls import Controls
from sadrec.ranking.logistic import curvature, maximise
from sadrec.ranking.pairs import margins, preference, sigmoid
from sadrec.ranking.parameters import Parameters, average_user, item_vectors, mean_margins, user_vectors
from sadrec.ranking.results import Results
from sadrec.ranking.ties import Outcome, Ties
from sadrec.ranking.tournament import Tournament, tournament

_DRAWS = 4000
"""Draws from which the probability that several preferences hold at once is computed."""

_NUMBERS = 1 << 23
"""Margins that are held at a time."""

_NODES = 20
"""Points at which the distribution of a margin is evaluated."""


class Belief:
    """A belief about margins. Users, items and rivals are positions that broadcast against each other."""

    parameters: Parameters
    """The means of the parameters."""
    has_variance = True
    """Whether margins have a variance; only those of a point have none."""
    ties: Ties | None = None
    """The probability of ties; None if no comparison was a tie."""
    controls: Controls | None = None
    """Coefficients of the features of comparisons; None where they had none."""
    has_pairs = False
    """Whether margins have parts for single pairs of items, or of a user and an item, that no factors hold."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.parameters.n_users

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.parameters.n_items

    @cached_property
    def by_product(self) -> bool:
        """Whether scores are products of users' vectors and :attr:`item_vectors`, so that an index can search them."""
        return True

    def mean(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the means of margins, in log-odds."""
        return np.asarray(preference(self.parameters, users, items, rivals) + self.pair_part(users, items, rivals)[0])

    def distribution(self, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return mean and variance of margins."""
        raise NotImplementedError

    def log_odds(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the log-odds of :meth:`probability`."""
        from sadrec._core.moments import moderated

        return moderated(*self.distribution(users, items, rivals))

    def probability(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the probability that users prefer items to rivals, averaged over the uncertainty."""
        return sigmoid(self.log_odds(users, items, rivals))

    def tie_probability(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the probability that users call it a tie; an item ties with itself."""
        if self.ties is None:
            raise ValueError("no tie was learnt: fit comparisons with ties (ties='keep'), with solver='variational'")
        users, items, rivals = np.broadcast_arrays(users, items, rivals)
        p = self.ties.probability(users, items, rivals, *self.distribution(users, items, rivals))
        return np.asarray(np.where(items == rivals, 1.0, p))

    def outcome(self, users: Any, items: Any, rivals: Any, *, outcome: Outcome | None = None) -> Doubles:
        """Return the probability that the item wins, loses or ties; None: that it wins where it is no tie."""
        if outcome == "tie":
            return self.tie_probability(users, items, rivals)
        p = self.probability(users, items, rivals)
        if outcome is None:
            return p
        return (p if outcome == "win" else 1 - p) * (1 - self.tie_probability(users, items, rivals))

    def draws(self, user: Any, items: Positions, rivals: Positions) -> Doubles:
        """Return joint draws of one user's margins for items over rivals, (draws, items)."""
        raise NotImplementedError

    def together(self, user: Any, items: Positions, rivals: Positions) -> float:
        """Return the probability that a user prefers every item to its rival at once."""
        return float((self.draws(user, items, rivals) > 0).all(axis=1).mean())

    def information(self, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return the expected information of answers in bits, and the probability that the item wins."""
        return information(*self.distribution(users, items, rivals))

    def pair_part(self, users: Any, items: Any, rivals: Any) -> tuple[Any, Any]:
        """Return mean and variance of the parts of margins that no factors hold."""
        return 0.0, 0.0

    def own_scores(self, users: Any, items: Any) -> tuple[Any, Any]:
        """Return mean and variance of the users' own scores of items, which their vectors do not give."""
        return 0.0, 0.0

    def margins(self, user: Any, items: ArrayLike | None, rivals: ArrayLike | None) -> NDArray[Any]:
        """Return the mean margins of some items (rows) over some rivals (columns); None for the catalogue."""
        x = margins(self.parameters, user, items, rivals)
        if self.has_pairs:
            every = np.arange(self.parameters.n_items)
            rows, columns = (every if side is None else np.asarray(side) for side in (items, rivals))
            x += self.pair_part(user, rows[:, None], columns)[0]
        return x

    def tournament(self, user: Any, items: Positions, labels: ArrayLike) -> Tournament:
        """Return the tournament of items for a user, by mean margins."""
        game = tournament(self.parameters, user, items, labels)
        if not self.has_pairs:
            return game
        return replace(game, margins=game.margins + self.pair_part(user, items[:, None], items)[0])

    def mean_margins(self, items: Positions, field: Positions) -> Doubles:
        """Return the mean margins of user 0 for items over a field."""
        if not self.has_pairs:
            return mean_margins(self.parameters, 0, items, field)
        step = max(1, _NUMBERS // len(field))
        parts = [self.margins(0, items[at : at + step], field).mean(axis=1) for at in range(0, len(items), step)]
        return np.concatenate(parts)

    @cached_property
    def item_vectors(self) -> NDArray[Any]:
        """One vector per item whose product with a user's vector is the mean margin over the catalogue."""
        return item_vectors(self.parameters)

    def scores(self, users: Any) -> NDArray[Any]:
        """Return the mean margin of every item over the catalogue, (users, items)."""
        return np.asarray(user_vectors(self.parameters, users) @ self.item_vectors.T)

    def with_answers(self, winners: Positions, losers: Positions, weight: ArrayLike | None) -> "Belief":
        """Return the belief about one user after this user's comparisons. They change own scores; the vector stays."""
        return self

    @property
    def user_profiles(self) -> NDArray[Any]:
        """One vector per user; users with similar preferences have similar vectors."""
        return self.parameters.user_factors

    @cached_property
    def average(self) -> "Belief":
        """The belief about the average user, who is user 0 of it."""
        return self.of_user(average_user(self.parameters))

    def of_user(self, vector: Doubles, covariance: Doubles | None = None) -> "Belief":
        """Return the belief about one user, with a mean vector and its covariance; None: the vector is certain."""
        alone = self._alone(vector)
        return Point(alone) if covariance is None else Visitor(alone, np.asarray(covariance, np.float64))

    def of_group(self, users: Positions) -> "Belief":
        """Return the belief about margins averaged over some users. It has one user, user 0, who stands for them."""
        return self.of_user(self.parameters.user_factors[users].mean(axis=0, dtype=np.float64))

    def strengths(
        self, users: Positions | None, items: Positions, field: Positions, results: Results | None = None
    ) -> Doubles:
        """Return joint draws of the mean margins of items over a field, (draws, items).

        ``users`` are one or several, whose margins are averaged; None is the average user. ``results`` are what the
        belief was learnt from.
        """
        raise NotImplementedError

    def user_covariance_of(self, user: int) -> Doubles | None:
        """Return the covariance of a user's vector; None where it is not known."""
        return None

    def _alone(self, vector: Doubles) -> Parameters:
        """Return the parameters with one user in place of all."""
        row = np.asarray(vector, np.float32)[None]
        row.flags.writeable = False
        mean = average_user(self.parameters).astype(np.float32)
        return replace(self.parameters, user_factors=row, user_mean=mean)


@dataclass(frozen=True, eq=False)
class Point(Belief):
    """Means alone: nothing is known about their uncertainty."""

    parameters: Parameters
    has_variance = False

    def distribution(self, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Raise a ValueError: a point has no variance."""
        raise ValueError(
            "this fit has no uncertainty: fit comparisons with solver='variational', ask about a "
            "model.visitor(...), or fit a GibbsSAD"
        )

    def log_odds(self, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the means."""
        return self.mean(users, items, rivals)


@dataclass(frozen=True, eq=False)
class Visitor(Belief):
    """One visitor whose vector is uncertain; the parameters of the items are taken as known."""

    parameters: Parameters
    covariance: Doubles  # (factors, factors)

    def distribution(self, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return mean and variance of margins."""
        mean = preference(self.parameters, users, items, rivals)
        _, item, rival = np.broadcast_arrays(users, items, rivals)
        z = self.parameters.wedge(item.ravel(), rival.ravel())[:, : self.parameters.n_factors]
        variance = np.einsum("ph,ph->p", z @ self.covariance, z)
        return mean, np.maximum(variance, 0.0).reshape(mean.shape)

    def draws(self, user: Any, items: Positions, rivals: Positions) -> Doubles:
        """Return joint draws of the visitor's margins for items over rivals, (draws, items)."""
        z = self.parameters.wedge(items, rivals)[:, : self.parameters.n_factors]
        noise = _normal(np.random.default_rng(0), self.covariance[None])[:, 0]
        return np.asarray(preference(self.parameters, user, items, rivals) + noise @ z.T)

    def of_group(self, users: Positions) -> Belief:
        """Return the belief itself: the visitor is the only user."""
        return self

    def strengths(
        self, users: Positions | None, items: Positions, field: Positions, results: Results | None = None
    ) -> Doubles:
        """Return joint draws of the mean margins of items over a field; see :meth:`Belief.strengths`."""
        parameters = self.parameters
        directions = item_vectors(parameters, field)[items, : parameters.n_factors].astype(np.float64)
        noise = _normal(np.random.default_rng(0), self.covariance[None])[:, 0]
        return np.asarray(mean_margins(parameters, 0, items, field) + noise @ directions.T)

    def user_covariance_of(self, user: int) -> Doubles | None:
        """Return the covariance of the visitor's vector."""
        return self.covariance


@dataclass(frozen=True, eq=False)
class Gaussian(Belief):
    """A normal distribution of each user's and each item's parameters; the item bias is the first factor here.

    Pairings are pairs of items that were compared. Each has a margin of its own, in favour of the item of lower
    position. Own scores are what users think of single items that they compared. Both are added to the factors' margin.
    """

    parameters: Parameters
    user_covariance: Floats  # (users, 1 + k, 1 + k): of (1, xi)
    item_covariance: Floats  # (items, 2 + 2 k, 2 + 2 k): of (b, eta, 1, tau)
    population: Doubles  # (4, k): mean and deviation of xi over users, deviations of eta around 0 and tau around 1
    pairings: NDArray[np.int64]  # the keys of the pairings, in order
    pairing_mean: Floats
    pairing_variance: Floats
    pairing_scale: float  # the variance of the own margin of two items that were never compared
    own: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # user * items + item, in order
    own_mean: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    own_variance: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    own_scale: float = 0.0  # the variance of the own score of an item that the user never compared
    ties: Ties | None = None
    controls: Controls | None = None

    has_pairs = True

    @cached_property
    def by_product(self) -> bool:
        """Whether there are no own scores, which belong to one user and one item."""
        return not len(self.own)

    def distribution(self, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return mean and variance of margins."""
        from sadrec._core.moments import margin_distribution  # numba is worth loading only now

        user, item, rival = np.broadcast_arrays(*(np.asarray(side, np.int64) for side in (users, items, rivals)))
        for side, size, what in (
            (user, self.parameters.n_users, "user"),
            (item, self.parameters.n_items, "item"),
            (rival, self.parameters.n_items, "rival"),
        ):
            if side.size and not 0 <= side.min() <= side.max() < size:  # compiled code would read foreign memory
                raise IndexError(f"positions of a {what} must be from 0 to {size - 1}")
        shape = user.shape
        who, first, second = (np.array(side.ravel()) for side in (user, item, rival))
        mean, variance = np.empty(user.size), np.empty(user.size)
        rows, row = np.unique(who, return_inverse=True)
        margin_distribution(0, user.size, row, first, second, self._moments(rows), mean, variance)
        added, uncertain = self.pair_part(who, first, second)
        mean += added
        variance += uncertain
        same = first == second
        mean[same], variance[same] = 0.0, 0.0
        return mean.reshape(shape), variance.reshape(shape)

    def pair_part(self, users: Any, items: Any, rivals: Any) -> tuple[Any, Any]:
        """Return mean and variance of pairings and own scores."""
        users, items, rivals = np.broadcast_arrays(users, items, rivals)
        mean, variance = self._pairing(items, rivals)
        of_item, of_rival = (self.own_scores(users, side) for side in (items, rivals))
        # In this order, exchanging item and rival changes the sign and nothing else.
        return mean + (of_item[0] - of_rival[0]), variance + (of_item[1] + of_rival[1])

    def _pairing(self, items: Any, rivals: Any) -> tuple[Any, Any]:
        """Return mean and variance of the own margins of items against rivals."""
        from sadrec._core.moments import pairing_keys

        table = self.pairings, self.pairing_mean, self.pairing_variance, self.pairing_scale
        mean, variance = _look_up(pairing_keys(items, rivals, self.parameters.n_items), *table)
        return np.where(items < rivals, 1, -1) * mean, variance

    def own_scores(self, users: Any, items: Any) -> tuple[Any, Any]:
        """Return mean and variance of the own scores of items."""
        table = self.own, self.own_mean, self.own_variance, self.own_scale
        return _look_up(np.asarray(users, np.int64) * self.parameters.n_items + items, *table)

    @cached_property
    def item_vectors(self) -> NDArray[Any]:
        """The vectors of the factors, with the mean own margin of each item added to its bias, the last column."""
        vectors, items = item_vectors(self.parameters), self.parameters.n_items
        first, second = np.divmod(self.pairings, items)
        total = np.bincount(first, self.pairing_mean, items) - np.bincount(second, self.pairing_mean, items)
        vectors[:, -1] += (total / items).astype(vectors.dtype)
        return vectors

    def scores(self, users: Any) -> NDArray[Any]:
        """Return the mean margin of every item over the catalogue, (users, items), own scores included."""
        scores = super().scores(users)
        if self.by_product:
            return scores
        own, _ = self.own_scores(np.reshape(users, (-1, 1)), np.arange(self.parameters.n_items))
        return np.asarray(scores + (own - own.mean(axis=1, keepdims=True)))

    def draws(self, user: Any, items: Positions, rivals: Positions) -> Doubles:
        """Return joint draws of one user's margins for items over rivals, (draws, items).

        The own margin of two items is drawn for each pair, the own score of an item once for each item.
        """
        rng = np.random.default_rng(0)
        involved, places = np.unique(np.concatenate([items, rivals]), return_inverse=True)
        one, other = np.split(places, 2)
        moments = self._moments(np.array([user]))
        xi = moments.user[0] + _normal(rng, self.user_covariance[[user]])[:, 0]
        item = moments.item[involved] + _normal(rng, self.item_covariance[involved])
        eta, tau = np.split(item, 2, axis=-1)
        x = np.einsum("dh,dph->dp", xi, eta[:, one] * tau[:, other] - eta[:, other] * tau[:, one])
        mean, _ = self.pair_part(user, items, rivals)
        variance, own_variance = self._pairing(items, rivals)[1], self.own_scores(user, involved)[1]
        own = np.sqrt(own_variance) * rng.standard_normal((_DRAWS, len(involved)))
        own_part = own[:, one] - own[:, other]
        return np.asarray(x + mean + own_part + np.sqrt(variance) * rng.standard_normal(x.shape))

    def of_user(self, vector: Doubles, covariance: Doubles | None = None) -> "Gaussian":
        """Return the belief about one user who has no own scores; see :meth:`Belief.of_user`."""
        wider = np.zeros((1, len(vector) + 1, len(vector) + 1), np.float32)
        if covariance is not None:
            wider[0, 1:, 1:] = covariance
        nobody: dict[str, Any] = {name: getattr(self, name)[:0] for name in ("own", "own_mean", "own_variance")}
        nobody["ties"] = None if self.ties is None else self.ties.of_user()
        alone = replace(self, parameters=self._alone(vector), user_covariance=wider, **nobody)
        alone.__dict__["_item_side"] = self._item_side  # the same items
        return alone

    def of_group(self, users: Positions) -> "Gaussian":
        """Return the belief about the mean margins of some users, own scores included."""
        count, items = len(users), self.parameters.n_items
        covariance = self.user_covariance[users, 1:, 1:].sum(axis=0, dtype=np.float64) / count**2
        alone = self.of_user(self.parameters.user_factors[users].mean(axis=0, dtype=np.float64), covariance)
        if not len(self.own):
            return alone
        chosen = np.isin(self.own // items, users)
        item = self.own[chosen] % items
        mean, variance = (np.bincount(item, side[chosen], items) for side in (self.own_mean, self.own_variance))
        unknown = (count - np.bincount(item, minlength=items)) * self.own_scale
        values = [side.astype(np.float32) for side in (mean / count, (variance + unknown) / count**2)]
        group = replace(alone, own=np.arange(items), own_mean=values[0], own_variance=values[1])
        group.__dict__["_item_side"] = self._item_side
        return group

    def strengths(
        self, users: Positions | None, items: Positions, field: Positions, results: Results | None = None
    ) -> Doubles:
        """Return joint draws of the mean margins of items over a field; see :meth:`Belief.strengths`."""
        from sadrec.ranking._strengths import strength_covariance

        alone = self.average if users is None else self.of_group(users)
        covariance = strength_covariance(self, alone, items, field, results)
        return alone.mean_margins(items, field) + normal_draws(covariance)

    def with_answers(self, winners: Positions, losers: Positions, weight: ArrayLike | None) -> "Gaussian":
        """Return the belief about one user with the own scores inferred from their comparisons.

        Where the fit has own scores, their mode is found with the factors held, by Newton's method. The variance of one
        is that with the others held, as in the fit.
        """
        if not self.own_scale:
            return self
        items, place = np.unique(np.concatenate((winners, losers)), return_inverse=True)
        won, lost = np.split(place, 2)
        need(16 * len(won) * len(items), f"{len(won):,} comparisons of {len(items):,} items", "give fewer")
        design, rows = np.zeros((len(won), len(items))), np.arange(len(won))
        design[rows, won], design[rows, lost] = 1.0, -1.0
        weights = np.ones(len(won)) if weight is None else np.asarray(weight, np.float64)
        offset, penalty = self.mean(0, winners, losers), np.full(len(items), 0.5 / self.own_scale)
        score = maximise(design, offset, weights, penalty).vector
        variance = 1 / np.diagonal(curvature(score, design, offset, weights, penalty))
        own: dict[str, Any] = {"own": items.astype(np.int64), "own_mean": score.astype(np.float32)}
        updated = replace(self, **own, own_variance=variance.astype(np.float32))
        updated.__dict__["_item_side"] = self._item_side  # the same items
        return updated

    @property
    def user_profiles(self) -> NDArray[Any]:
        """The users' factors, and their own scores of all items."""
        users, items = self.parameters.n_users, self.parameters.n_items
        if self.by_product:
            return self.parameters.user_factors
        need(8 * users * items, f"scores of {items:,} items for {users:,} users", "ask about a model with factors")
        scores = np.zeros((users, items), np.float32)
        scores.flat[self.own] = self.own_mean
        return np.hstack((self.parameters.user_factors, scores))

    def user_covariance_of(self, user: int) -> Doubles | None:
        """Return the covariance of a user's vector."""
        return self.user_covariance[user, 1:, 1:].astype(np.float64)

    def with_users(self, parameters: Parameters) -> "Gaussian":
        """Return the belief with more users, the last ones of ``parameters``, which have features only."""
        added = np.zeros((parameters.n_users - len(self.user_covariance), *self.user_covariance.shape[1:]), np.float32)
        added[:, 1:, 1:] = np.diag(self.population[1] ** 2)
        covariance = np.concatenate((self.user_covariance, added))
        return replace(self, parameters=parameters, user_covariance=covariance, ties=self._ties_of(parameters))

    def _ties_of(self, parameters: Parameters) -> Ties | None:
        return None if self.ties is None else self.ties.enlarged(parameters.n_users, parameters.n_items)

    def with_items(self, parameters: Parameters, bias_variance: float) -> "Gaussian":
        """Return the belief with more items, the last ones of ``parameters``, which have features only."""
        items = len(self.item_covariance)
        spread = np.concatenate(([bias_variance], self.population[2] ** 2, [0.0], self.population[3] ** 2))
        added = np.tile(np.diag(spread).astype(np.float32), (parameters.n_items - items, 1, 1))

        def moved(keys: NDArray[np.int64]) -> NDArray[np.int64]:  # a key counts in items
            return np.asarray(keys // items * parameters.n_items + keys % items)

        return replace(
            self,
            parameters=parameters,
            item_covariance=np.concatenate((self.item_covariance, added)),
            pairings=moved(self.pairings),
            own=moved(self.own),
            ties=self._ties_of(parameters),
        )

    def _moments(self, users: NDArray[np.int64]) -> Any:
        """Return means and second moments of some users and of all items, as the kernel takes them."""
        from sadrec._core.moments import Beliefs

        xi = np.hstack((np.ones((len(users), 1)), self.parameters.user_factors[users]), dtype=np.float64)
        return Beliefs(xi, _moment(xi, self.user_covariance[users]), *self._item_side)

    @cached_property
    def _item_side(self) -> tuple[Doubles, Doubles]:
        """Means and second moments of the items."""
        eta, tau, bias = self.parameters.item_factors, self.parameters.rival_factors, self.parameters.item_bias
        if bias is None:
            raise ValueError("a Gaussian belief needs parameters with an item bias")
        rivals = np.ones(eta.shape) if tau is None else tau
        items = np.hstack((bias[:, None], eta, np.ones((len(eta), 1)), rivals), dtype=np.float64)
        return items, _moment(items, self.item_covariance)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("_item_side", "average", "item_vectors")
        }


def information(mean: ArrayLike, variance: ArrayLike) -> tuple[Doubles, Doubles]:
    """Return the expected information of an answer in bits, and the probability that the item wins.

    With ``x ~ N(mean, variance)`` and H the entropy of a yes or no: ``H(E sigmoid(x)) - E H(sigmoid(x))``.

    >>> bits, probability = information([0.0, 0.0, 5.0], [4.0, 0.0, 4.0])
    >>> bits.round(3), probability.round(3)
    (array([0.333, 0.   , 0.064]), array([0.5  , 0.5  , 0.968]))
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    deviation = np.sqrt(np.maximum(np.asarray(variance, np.float64), 0.0))
    p = sigmoid(np.asarray(mean, np.float64)[..., None] + deviation[..., None] * nodes)
    weights = weights / weights.sum()
    chance = p @ weights
    return np.maximum(entropy(chance) - entropy(p) @ weights, 0.0), chance


def entropy(p: Doubles) -> Doubles:
    """Return the entropy of a yes or no, in bits."""
    from scipy.special import entr

    return np.asarray((entr(p) + entr(1 - p)) / np.log(2))


def _normal(rng: np.random.Generator, covariance: Any) -> Doubles:
    """Return draws of vectors around 0, one for each covariance: (draws, vectors, length)."""
    values, axes = np.linalg.eigh(np.asarray(covariance, np.float64))
    scaled = axes * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.asarray(np.einsum("vij,dvj->dvi", scaled, rng.standard_normal((_DRAWS, *values.shape))))


def normal_draws(covariance: Doubles) -> Doubles:
    """Return joint draws around 0, (draws, length)."""
    ridge = 1e-9 * max(float(np.trace(covariance)) / max(len(covariance), 1), 1e-12)
    root = np.linalg.cholesky(covariance + ridge * np.eye(len(covariance)))
    return np.asarray(np.random.default_rng(0).standard_normal((_DRAWS, len(covariance))) @ root.T)


def _look_up(
    keys: NDArray[np.int64], stored: NDArray[np.int64], mean: Floats, variance: Floats, scale: float
) -> tuple[Any, Any]:
    """Return mean and variance by key; 0 and ``scale`` for keys that are not among ``stored``."""
    if not len(stored):
        return 0.0, scale
    at = np.minimum(np.searchsorted(stored, keys), len(stored) - 1)
    there = stored[at] == keys
    return np.where(there, mean[at], 0.0), np.where(there, variance[at], scale)


def _moment(mean: Doubles, covariance: Floats) -> Doubles:
    """Return the second moments, one matrix per row."""
    return np.ascontiguousarray(covariance + mean[:, :, None] * mean[:, None, :])
