"""How sure a model is: the distribution of every margin, and probabilities that take it into account.

A margin that is known to be 2 makes the item win in 88 % of the cases; one that may as well be 0 or 4 in fewer. So
``P(i over j) = E[sigmoid(x_uij)]``, which is ``sigmoid(mean / sqrt(1 + pi variance / 8))`` but for a hundredth (MacKay,
1992).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._types import Doubles, Floats, Positions
from sadrec.ranking.pairs import preference, sigmoid
from sadrec.ranking.parameters import Parameters

_DRAWS = 4000
"""Draws that tell how probable it is that several preferences hold at once."""


class Distributed:
    """What knows mean and variance of margins, and hence probabilities that take both into account."""

    def distribution(self, parameters: Parameters, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return mean and variance of margins, for positions that broadcast against each other."""
        raise NotImplementedError

    def draws(self, parameters: Parameters, user: int, items: Positions, rivals: Positions) -> Doubles:
        """Return draws of one user's margins for items over rivals, all at once: (draws, items)."""
        raise NotImplementedError

    def beside_factors(self, parameters: Parameters, users: Any, items: Any, rivals: Any) -> tuple[Any, Any]:
        """Return mean and variance of what is added to the margins of the factors, for positions that broadcast."""
        return 0.0, 0.0

    def together(self, parameters: Parameters, user: int, items: Positions, rivals: Positions) -> float:
        """Return the probability that a user prefers every item to its rival, all uncertainty counted."""
        return float((self.draws(parameters, user, items, rivals) > 0).all(axis=1).mean())

    def probability(self, parameters: Parameters, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the probability that users prefer items to rivals, averaged over what is not known."""
        return np.asarray(sigmoid(self.log_odds(parameters, users, items, rivals)))

    def log_odds(self, parameters: Parameters, users: Any, items: Any, rivals: Any) -> Doubles:
        """Return the log-odds of :meth:`probability`."""
        from sadrec._moments import moderated

        return moderated(*self.distribution(parameters, users, items, rivals))


@dataclass(frozen=True, eq=False)
class VisitorUncertainty(Distributed):
    """What is not known of one visitor's vector; the parameters of the items are taken as known."""

    covariance: Doubles  # (factors, factors)

    def distribution(self, parameters: Parameters, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return mean and variance of margins, for positions that broadcast against each other."""
        mean = preference(parameters, users, items, rivals)
        _, item, rival = np.broadcast_arrays(users, items, rivals)
        z = parameters.wedge(item.ravel(), rival.ravel())[:, : parameters.n_factors]
        variance = np.einsum("ph,ph->p", z @ self.covariance, z)
        return mean, np.maximum(variance, 0.0).reshape(mean.shape)

    def draws(self, parameters: Parameters, user: int, items: Positions, rivals: Positions) -> Doubles:
        """Return draws of one user's margins for items over rivals, all at once: (draws, items)."""
        z = parameters.wedge(items, rivals)[:, : parameters.n_factors]
        noise = _normal(np.random.default_rng(0), self.covariance[None])[:, 0]
        return np.asarray(preference(parameters, user, items, rivals) + noise @ z.T)


@dataclass(frozen=True, eq=False)
class Uncertainty(Distributed):
    """What is not known of the parameters of a model with an item bias, which is the first factor here.

    Pairings are pairs of items that were compared, and by how much the item of lower position is preferred beside what
    the factors say. Own scores are what users think of items they compared, beside the factors.
    """

    user_covariance: Floats  # (users, 1 + k, 1 + k): of (1, xi)
    item_covariance: Floats  # (items, 2 + 2 k, 2 + 2 k): of (b, eta, 1, tau)
    population: Doubles  # (4, k): mean and deviation of xi over users, deviations of eta around 0 and tau around 1
    pairings: NDArray[np.int64]  # the keys of the pairings, in order
    pairing_mean: Floats
    pairing_variance: Floats
    pairing_scale: float  # the variance of such a margin for two items that were never compared
    own: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # user * items + item, in order
    own_mean: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    own_variance: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    own_scale: float = 0.0  # the variance of such a score of a user and an item they never compared

    def distribution(self, parameters: Parameters, users: Any, items: Any, rivals: Any) -> tuple[Doubles, Doubles]:
        """Return mean and variance of margins, for positions that broadcast against each other."""
        from sadrec._moments import margin_distribution  # numba is worth loading only now

        user, item, rival = np.broadcast_arrays(*(np.asarray(side, np.int64) for side in (users, items, rivals)))
        for side, size, what in (
            (user, parameters.n_users, "user"),
            (item, parameters.n_items, "item"),
            (rival, parameters.n_items, "rival"),
        ):
            if side.size and not 0 <= side.min() <= side.max() < size:  # compiled code would read foreign memory
                raise IndexError(f"a {what} is at none of the positions 0 to {size - 1}")
        shape = user.shape
        sides = (np.array(side.ravel()) for side in (user, item, rival))
        mean, variance = np.empty(user.size), np.empty(user.size)
        who, first, second = sides
        asked, row = np.unique(who, return_inverse=True)
        margin_distribution(0, user.size, row, first, second, self._beliefs(parameters, asked), mean, variance)
        added, uncertain = self.beside_factors(parameters, who, first, second)
        mean += added
        variance += uncertain
        same = first == second
        mean[same], variance[same] = 0.0, 0.0
        return mean.reshape(shape), variance.reshape(shape)

    def beside_factors(self, parameters: Parameters, users: Any, items: Any, rivals: Any) -> tuple[Any, Any]:
        """Return mean and variance of what is added to the margins of the factors, for positions that broadcast."""
        users, items, rivals = np.broadcast_arrays(users, items, rivals)
        mean, variance = self._pairing(parameters, items, rivals)
        of_item, of_rival = (self._own(parameters, users, side) for side in (items, rivals))
        # In this order, exchanging item and rival changes the sign and nothing else.
        return mean + (of_item[0] - of_rival[0]), variance + (of_item[1] + of_rival[1])

    def _pairing(self, parameters: Parameters, items: Any, rivals: Any) -> tuple[Any, Any]:
        """Return mean and variance of what items have against rivals on their own."""
        from sadrec._moments import pairing_keys

        known = self.pairings, self.pairing_mean, self.pairing_variance, self.pairing_scale
        mean, variance = _look_up(pairing_keys(items, rivals, parameters.n_items), *known)
        return np.where(items < rivals, 1, -1) * mean, variance

    def _own(self, parameters: Parameters, users: Any, items: Any) -> tuple[Any, Any]:
        """Return mean and variance of what users think of items beside the factors."""
        known = self.own, self.own_mean, self.own_variance, self.own_scale
        return _look_up(np.asarray(users, np.int64) * parameters.n_items + items, *known)

    def draws(self, parameters: Parameters, user: int, items: Positions, rivals: Positions) -> Doubles:
        """Return draws of one user's margins for items over rivals, all at once: (draws, items).

        What two items have on their own is drawn for each pair, what the user thinks of an item once for each item.
        """
        rng = np.random.default_rng(0)
        involved, places = np.unique(np.concatenate([items, rivals]), return_inverse=True)
        one, other = np.split(places, 2)
        beliefs = self._beliefs(parameters, np.array([user]))
        xi = beliefs.user[0] + _normal(rng, self.user_covariance[[user]])[:, 0]
        item = beliefs.item[involved] + _normal(rng, self.item_covariance[involved])
        eta, tau = np.split(item, 2, axis=-1)
        x = np.einsum("dh,dph->dp", xi, eta[:, one] * tau[:, other] - eta[:, other] * tau[:, one])
        mean, _ = self.beside_factors(parameters, user, items, rivals)
        variance, own_variance = self._pairing(parameters, items, rivals)[1], self._own(parameters, user, involved)[1]
        own = np.sqrt(own_variance) * rng.standard_normal((_DRAWS, len(involved)))
        own_part = own[:, one] - own[:, other]
        return np.asarray(x + mean + own_part + np.sqrt(variance) * rng.standard_normal(x.shape))

    def of_visitor(self, covariance: Doubles) -> "Uncertainty":
        """Return the same for one visitor, of whose vector the covariance is given."""
        wider = np.zeros((1, len(covariance) + 1, len(covariance) + 1), np.float32)
        wider[0, 1:, 1:] = covariance
        nobody = {name: getattr(self, name)[:0] for name in ("own", "own_mean", "own_variance")}
        visitor = replace(self, user_covariance=wider, **nobody)
        visitor.__dict__["_kept_items"] = self._kept_items  # the same items
        return visitor

    def with_users(self, count: int) -> "Uncertainty":
        """Return the same with ``count`` more users, known by their features only."""
        more = np.zeros((count, *self.user_covariance.shape[1:]), np.float32)
        more[:, 1:, 1:] = np.diag(self.population[1] ** 2)
        return replace(self, user_covariance=np.concatenate((self.user_covariance, more)))

    def with_items(self, count: int, bias_variance: float) -> "Uncertainty":
        """Return the same with ``count`` more items, known by their features only."""
        items = len(self.item_covariance)
        spread = np.concatenate(([bias_variance], self.population[2] ** 2, [0.0], self.population[3] ** 2))
        more = np.tile(np.diag(spread).astype(np.float32), (count, 1, 1))

        def moved(keys: NDArray[np.int64]) -> NDArray[np.int64]:  # a key counts in items
            return np.asarray(keys // items * (items + count) + keys % items)

        covariance = np.concatenate((self.item_covariance, more))
        return replace(self, item_covariance=covariance, pairings=moved(self.pairings), own=moved(self.own))

    def _beliefs(self, parameters: Parameters, users: NDArray[np.int64]) -> Any:
        """Return means and second moments of some users and of all items, as the kernel takes them."""
        from sadrec._moments import Beliefs

        xi = np.hstack((np.ones((len(users), 1)), parameters.user_factors[users]), dtype=np.float64)
        return Beliefs(xi, _moment(xi, self.user_covariance[users]), *self._item_side(parameters))

    def _item_side(self, parameters: Parameters) -> tuple[Doubles, Doubles]:
        """Return means and second moments of the items; kept as long as they are the same."""
        kept, eta = self._kept_items, parameters.item_factors
        if not kept or kept[0] is not eta:
            tau, bias = parameters.rival_factors, parameters.item_bias
            if bias is None:
                raise ValueError("the uncertainty belongs to a model with an item bias")
            rivals = np.ones(eta.shape) if tau is None else tau
            items = np.hstack((bias[:, None], eta, np.ones((len(eta), 1)), rivals), dtype=np.float64)
            kept[:] = eta, items, _moment(items, self.item_covariance)
        return kept[1], kept[2]

    @cached_property
    def _kept_items(self) -> list[Any]:
        return []

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_kept")}


def _normal(rng: np.random.Generator, covariance: Any) -> Doubles:
    """Return draws of vectors around 0, one for each covariance: (draws, vectors, length)."""
    values, axes = np.linalg.eigh(np.asarray(covariance, np.float64))
    scaled = axes * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.asarray(np.einsum("vij,dvj->dvi", scaled, rng.standard_normal((_DRAWS, *values.shape))))


def _look_up(
    keys: NDArray[np.int64], known: NDArray[np.int64], mean: Floats, variance: Floats, scale: float
) -> tuple[Any, Any]:
    """Return mean and variance of what has these keys; of what is not known 0 and ``scale``."""
    if not len(known):
        return 0.0, scale
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    there = known[at] == keys
    return np.where(there, mean[at], 0.0), np.where(there, variance[at], scale)


def _moment(mean: Doubles, covariance: Floats) -> Doubles:
    """Return the second moments, one matrix per row."""
    return np.ascontiguousarray(covariance + mean[:, :, None] * mean[:, None, :])
