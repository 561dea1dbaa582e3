"""The draws of all chains, and preferences computed from them. Users and items are rows; user None is the mean user."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from sadrec._kernel import kernel
from sadrec._types import Doubles, Floats, Positions
from sadrec.posterior.truncated import normal_cdf
from sadrec.ranking import Parameters
from sadrec.ranking.pairs import margins
from sadrec.ranking.vectors import item_vectors, user_vectors

SCALES = ("user", "item", "rival", "bias")
"""What the scales of the prior are those of; the last one where there is a bias."""
Quantity = Literal["preference", "probability", "beats"]
_QUANTITIES = {"preference": 0, "probability": 1, "beats": 2}

_CHUNK = 1 << 22
"""How many numbers are held at a time while preferences are computed."""
_TOGETHER = 64
"""How many draws stand side by side where their mean is wanted: a matrix product of that many pays."""
_WORTH_SHARING = 1 << 18
"""Draws of preferences per thread below which handing work out costs more than it saves."""


class Flat(NamedTuple):
    """The draws of all chains in one axis, chain after chain; the last column of eta may be the bias."""

    xi: Floats
    eta: Floats
    tau: Floats


class Pairs(NamedTuple):
    """Rows of users, items and rivals."""

    user: Positions
    item: Positions
    rival: Positions


@kernel
def add_up(draws: Flat, pairs: Pairs, quantity: int, total: Doubles, first: int, last: int) -> None:
    """Add to ``total`` what pairs first, ..., last - 1 have in every draw: x, Phi(x), or 1 where x > 0."""
    xi, eta, tau = draws.xi, draws.eta, draws.tau
    user, item, rival = pairs.user, pairs.item, pairs.rival
    factors = tau.shape[2]
    bias = eta.shape[2] > factors
    for d in range(eta.shape[0]):
        users, appeal, effect = xi[d], eta[d], tau[d]
        for p in range(first, last):
            one, i, j = users[user[p]], item[p], rival[p]
            eta_i, tau_i, eta_j, tau_j = appeal[i], effect[i], appeal[j], effect[j]
            x = np.float64(eta_i[factors]) - np.float64(eta_j[factors]) if bias else 0.0
            for h in range(factors):
                x += np.float64(one[h]) * (np.float64(eta_i[h]) * tau_j[h] - np.float64(eta_j[h]) * tau_i[h])
            if quantity == 0:
                total[p] += x
            elif quantity == 1:
                total[p] += normal_cdf(x)
            elif x > 0.0:
                total[p] += 1.0


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
        """How many chains there are."""
        return len(self.user)

    @property
    def per_chain(self) -> int:
        """How many draws each chain has."""
        return int(self.user.shape[1])

    @property
    def factors(self) -> int:
        """How many factors there are, beside the bias."""
        return int(self.rival.shape[3])

    @property
    def bias(self) -> Floats | None:
        """The bias of every item, (chains, draws, items); None where there is none."""
        return self.item[..., self.factors] if self.item.shape[3] > self.factors else None

    def __len__(self) -> int:
        """How many draws there are, of all chains together."""
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

    def of(self, user: Any) -> tuple["Draws", Any]:
        """Return draws and the row of a user in them; None is the average user."""
        return (self, user) if user is not None else (self.averaged(), 0)

    def averaged(self, users: Any = slice(None)) -> "Draws":
        """Return draws of one user, the mean of xi over all users, or some."""
        mean = self.user[:, :, users].mean(axis=2, keepdims=True, dtype=np.float64).astype(np.float32)
        return Draws(mean, self.item, self.rival, self.scales)

    def flat(self) -> Flat:
        """Return xi, eta with the bias, and tau, chains and draws in one axis, chain after chain."""
        return Flat(*(side.reshape(len(self), *side.shape[2:]) for side in (self.user, self.item, self.rival)))

    def preference(self, user: Any, item: Any, rival: Any) -> Doubles:
        """Return ``x_uij`` for rows that broadcast, (draws, ...)."""
        draws, user = self.of(user)
        (xi, eta, tau), k = draws.flat(), self.factors
        u, i, j = (np.asarray(rows) for rows in np.broadcast_arrays(user, item, rival))
        shape, u, i, j = i.shape, u.ravel(), i.ravel(), j.ravel()
        result = np.empty((len(self), len(i)))
        step = max(1, _CHUNK // (len(self) * eta.shape[-1]))
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            a, b = i[part], j[part]
            one, other = eta[:, a].astype(np.float64), eta[:, b].astype(np.float64)
            wedge = one[..., :k] * tau[:, b] - other[..., :k] * tau[:, a]
            result[:, part] = np.einsum("dpk,dpk->dp", wedge, xi[:, u[part]])
            result[:, part] += (one[..., k:] - other[..., k:]).sum(axis=2)
        return result.reshape(len(self), *shape)

    def mean(self, user: Any, item: Any, rival: Any, of: Quantity = "preference", num_threads: int = 0) -> Doubles:
        """Return the mean over draws of x, of Phi(x) or of x > 0 ("beats"), for rows that broadcast.

        No draw of a preference is held, so any number of pairs may be asked for.
        """
        draws, user = self.of(user)
        rows = np.broadcast_arrays(user, item, rival)
        pairs = Pairs(*(np.array(side, np.int64).ravel() for side in rows))
        total = np.zeros(pairs.user.size)
        work = partial(add_up, draws.flat(), pairs, _QUANTITIES[of], total)
        most = max(1, total.size * len(self) // _WORTH_SHARING)
        parts = min(num_threads or os.cpu_count() or 1, most, max(1, total.size))
        bounds = np.linspace(0, total.size, parts + 1).astype(int).tolist()
        if parts == 1:
            work(0, total.size)
        else:
            with ThreadPoolExecutor(parts) as pool:
                list(pool.map(lambda ends: work(*ends), pairwise(bounds)))
        return (total / max(1, len(self))).reshape(rows[0].shape)

    def side_by_side(self, users: Any = slice(None), items: Any = slice(None)) -> Iterator[Parameters]:
        """Yield the posterior mean of X for some users and items in parts, whose X add up to it.

        A part has the factors of several draws side by side, xi divided by the number of all draws.
        """
        (xi, all_eta, tau), k = self.flat(), self.factors
        for start in range(0, len(self), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            eta = all_eta[part, items]
            sides = xi[part, users] / np.float32(len(self)), eta[..., :k], tau[part, items]
            wide = [side.transpose(1, 0, 2).reshape(side.shape[1], -1) for side in sides]
            bias = None if self.bias is None else eta[..., k].sum(axis=0) / np.float32(len(self))
            yield Parameters(wide[0], wide[1], wide[2], bias)

    def margins(self, user: int | None, items: Positions, rivals: Positions) -> Doubles:
        """Return the posterior mean margins of some items over some rivals, (items, rivals)."""
        draws, user = self.of(user)
        total = np.zeros((len(items), len(rivals)))
        places = np.arange(len(items) + len(rivals))
        for part in draws.side_by_side([user], np.concatenate([items, rivals])):
            total += margins(part, 0, places[: len(items)], places[len(items) :])
        return total

    def scores(self, user: int | None, items: Positions, field: Positions | None = None) -> Doubles:
        """Return draws of the mean margin of some items over a field, by default each other, (draws, items)."""
        draws, user = self.of(user)
        (all_xi, all_eta, all_tau), k = draws.flat(), self.factors
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
