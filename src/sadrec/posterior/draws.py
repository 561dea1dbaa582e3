"""The draws of all chains, and preferences computed from them. Users and items are rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sadrec._core.kernel import kernel
from sadrec._core.types import Doubles, Floats, Positions
from sadrec.ranking import Parameters
from sadrec.ranking.pairs import margins
from sadrec.ranking.parameters import item_vectors, user_vectors

SCALES = ("user", "item", "rival", "bias")
"""Names of the scales of the prior; the last one with a bias."""
_TOGETHER = 64
"""The number of draws joined in one matrix product to compute their mean."""


class Flat(NamedTuple):
    """The draws of all chains in one axis, chain after chain; the last column of eta may be the bias."""

    xi: Floats
    eta: Floats
    tau: Floats


@kernel
def fill_margins(draws: Flat, user: Positions, item: Positions, rival: Positions, margins: Doubles) -> None:
    """Write the margins of pairs in every draw, (draws, pairs)."""
    xi, eta, tau = draws.xi, draws.eta, draws.tau
    factors = tau.shape[2]
    bias = eta.shape[2] > factors
    for d in range(eta.shape[0]):
        for p in range(user.shape[0]):
            one, eta_i, tau_i = xi[d, user[p]], eta[d, item[p]], tau[d, item[p]]
            eta_j, tau_j = eta[d, rival[p]], tau[d, rival[p]]
            x = np.float64(eta_i[factors]) - np.float64(eta_j[factors]) if bias else 0.0
            for h in range(factors):
                x += np.float64(one[h]) * (np.float64(eta_i[h]) * tau_j[h] - np.float64(eta_j[h]) * tau_i[h])
            margins[d, p] = x


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the posterior, in float32. ``draws[d]`` is one of them, as parameters of a model.

    An item bias is a factor whose xi and tau are 1 (as in ``Parameters.extended``): the last column of eta.
    """

    user: Floats  # xi, (chains, draws, users, factors)
    item: Floats  # eta, (chains, draws, items, factors), or one more with a bias
    rival: Floats  # tau, (chains, draws, items, factors)
    scales: Floats  # (chains, draws, 3 or 4): standard deviations of the prior, see SCALES

    @classmethod
    def empty(cls, chains: int, draws: int, users: int, items: int, factors: int, bias: bool = False) -> "Draws":
        """Make room for draws."""
        shapes = (users, factors), (items, factors + bias), (items, factors), (3 + bias,)
        return cls(*(np.zeros((chains, draws, *shape), np.float32) for shape in shapes))

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.user)

    @property
    def per_chain(self) -> int:
        """Number of draws of each chain."""
        return int(self.user.shape[1])

    @property
    def factors(self) -> int:
        """Number of factors, without the bias."""
        return int(self.rival.shape[3])

    @property
    def bias(self) -> Floats | None:
        """The bias of every item, (chains, draws, items); None where there is none."""
        return self.item[..., self.factors] if self.item.shape[3] > self.factors else None

    def __len__(self) -> int:
        """Number of draws of all chains."""
        return self.chains * self.per_chain

    def __getitem__(self, draw: int) -> Parameters:
        if not 0 <= draw < len(self):
            raise IndexError(f"there are {len(self)} draws, and no draw {draw}")
        at = divmod(draw, self.per_chain)
        bias = None if self.bias is None else self.bias[at]
        return Parameters(self.user[at], self.item[at][:, : self.factors], self.rival[at], bias)

    def __iter__(self) -> Iterator[Parameters]:
        """Iterate over the draws, chain after chain."""
        return (self[draw] for draw in range(len(self)))

    def _of_each_chain(self, chosen: Any) -> "Draws":
        return Draws(self.user[:, chosen], self.item[:, chosen], self.rival[:, chosen], self.scales[:, chosen])

    def first(self, draws: int) -> "Draws":
        """Return the first draws of every chain."""
        return self._of_each_chain(slice(draws))

    def at_most(self, count: int) -> "Draws":
        """Return evenly spaced draws of every chain, at most ``count`` altogether (but one per chain)."""
        keep = max(1, min(self.per_chain, count // self.chains))
        return self._of_each_chain(np.linspace(0, self.per_chain - 1, keep).round().astype(np.int64))

    def averaged(self, users: Any = slice(None)) -> "Draws":
        """Return draws of one user, the mean of xi over all users, or some."""
        mean = self.user[:, :, users].mean(axis=2, keepdims=True, dtype=np.float64).astype(np.float32)
        return Draws(mean, self.item, self.rival, self.scales)

    def flat(self) -> Flat:
        """Return xi, eta with the bias, and tau, chains and draws in one axis, chain after chain."""
        return Flat(*(side.reshape(len(self), *side.shape[2:]) for side in (self.user, self.item, self.rival)))

    def preference(self, user: Any, item: Any, rival: Any) -> Doubles:
        """Return ``x_uij`` for rows that broadcast, (draws, ...)."""
        rows = np.broadcast_arrays(user, item, rival)
        for side, size in zip(rows, (self.user.shape[2], *[self.item.shape[2]] * 2), strict=True):
            if side.size and not 0 <= side.min() <= side.max() < size:  # compiled code would read foreign memory
                raise IndexError(f"rows must be from 0 to {size - 1}")
        margins = np.empty((len(self), rows[0].size))
        users, items, rivals = (np.array(side, np.int64).ravel() for side in rows)
        fill_margins(self.flat(), users, items, rivals, margins)
        return margins.reshape(len(self), *rows[0].shape)

    def side_by_side(self, users: Any = slice(None), items: Any = slice(None)) -> Iterator[Parameters]:
        """Yield models of some users and items whose margins add up to the posterior mean margins.

        Each puts the factors of up to 64 draws side by side; xi is divided by the number of all draws.
        """
        (xi, all_eta, tau), k = self.flat(), self.factors
        for start in range(0, len(self), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            eta = all_eta[part, items]
            sides = xi[part, users] / np.float32(len(self)), eta[..., :k], tau[part, items]
            wide = [side.transpose(1, 0, 2).reshape(side.shape[1], -1) for side in sides]
            bias = None if self.bias is None else eta[..., k].sum(axis=0) / np.float32(len(self))
            yield Parameters(wide[0], wide[1], wide[2], bias)

    def margins(self, user: int, items: Positions, rivals: Positions) -> Doubles:
        """Return the posterior mean margins of some items over some rivals, (items, rivals)."""
        total = np.zeros((len(items), len(rivals)))
        places = np.arange(len(items) + len(rivals))
        for part in self.side_by_side([user], np.concatenate([items, rivals])):
            total += margins(part, 0, places[: len(items)], places[len(items) :])
        return total

    def scores(self, user: int, items: Positions, field: Positions | None = None) -> Doubles:
        """Return draws of the mean margin of some items over a field, by default each other, (draws, items)."""
        (all_xi, all_eta, all_tau), k = self.flat(), self.factors
        xi = all_xi[:, user].astype(np.float64)
        eta, tau = all_eta[:, items].astype(np.float64), all_tau[:, items].astype(np.float64)
        rivals = (eta, tau) if field is None else (all_eta[:, field], all_tau[:, field])
        mean_eta, mean_tau = (side.mean(axis=1, dtype=np.float64) for side in rivals)
        eta, bias = eta[..., :k], eta[..., k:].sum(axis=2)
        score = bias - mean_eta[:, k:].sum(axis=1, keepdims=True) + np.einsum("dik,dk->di", eta, xi * mean_tau)
        return np.asarray(score - np.einsum("dik,dk->di", tau, xi * mean_eta[:, :k]))

    def mean_scores(self, users: Positions) -> Doubles:
        """Return the posterior mean of the mean margin over the catalogue, (users, items)."""
        total = np.zeros((len(users), self.item.shape[2]))
        for part in self.side_by_side(users):
            total += user_vectors(part) @ item_vectors(part).T
        return total
