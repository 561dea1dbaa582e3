"""The draws of all chains, and preferences computed from them. Users and items are rows; user None is the mean user."""

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._kernel import kernel
from sadrec._types import Doubles, Floats, Positions
from sadrec.posterior.beside import NEVER, Beside, add_margins, beside, mean_over
from sadrec.posterior.truncated import normal_cdf
from sadrec.ranking import Parameters
from sadrec.ranking.pairs import margins
from sadrec.ranking.vectors import item_vectors, user_vectors

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


class Margins(NamedTuple):
    """The margins of pairings in all draws, (draws, pairings), and their scale; no pairings where there are none."""

    margin: Floats
    scale: Floats


class Pairs(NamedTuple):
    """Rows of users, items and rivals."""

    user: Positions
    item: Positions
    rival: Positions


@kernel
def add_up(
    draws: Flat,
    margins: Margins,
    pairs: Pairs,
    pairings: Beside,
    quantity: int,
    total: Doubles,
    first: int,
    last: int,
) -> None:
    """Add to ``total`` what pairs first, ..., last - 1 have in every draw: x, Phi(x), or 1 where x > 0.

    Where nobody compared the two, the mean of that over the margin they may have.
    """
    xi, eta, tau = draws.xi, draws.eta, draws.tau
    user, item, rival = pairs.user, pairs.item, pairs.rival
    factors = tau.shape[2]
    bias = eta.shape[2] > factors
    for d in range(eta.shape[0]):
        users, appeal, effect, margin, scale = xi[d], eta[d], tau[d], margins.margin[d], np.float64(margins.scale[d])
        for p in range(first, last):
            one, i, j = users[user[p]], item[p], rival[p]
            eta_i, tau_i, eta_j, tau_j = appeal[i], effect[i], appeal[j], effect[j]
            x = np.float64(eta_i[factors]) - np.float64(eta_j[factors]) if bias else 0.0
            for h in range(factors):
                x += np.float64(one[h]) * (np.float64(eta_i[h]) * tau_j[h] - np.float64(eta_j[h]) * tau_i[h])
            place = pairings.place[p]
            if place >= 0:
                x += pairings.sign[p] * np.float64(margin[place])
            if quantity == 0:
                total[p] += x
            elif quantity == 1:
                total[p] += normal_cdf(x / math.sqrt(1.0 + scale * scale) if place == NEVER else x)
            elif place == NEVER and scale > 0.0:
                total[p] += normal_cdf(x / scale)
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
    scales: Floats  # (chains, draws, 3 to 5): standard deviations of the prior, see scale_names
    pairing: Floats | None = None  # (chains, draws, pairings): the margins of pairings, where there are these
    keys: NDArray[np.int64] | None = None  # of the pairings, in order

    @classmethod
    def empty(
        cls,
        chains: int,
        draws: int,
        users: int,
        items: int,
        factors: int,
        bias: bool = False,
        keys: NDArray[np.int64] | None = None,
    ) -> "Draws":
        """Make room for draws; ``keys`` are those of the pairings that have margins."""

        def room(*shape: int) -> Floats:
            return np.zeros((chains, draws, *shape), np.float32)

        sides = room(users, factors), room(items, factors + bias), room(items, factors)
        if keys is None:
            return cls(*sides, room(3 + bias))
        return cls(*sides, room(4 + bias), room(len(keys)), keys)

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

    @property
    def scale_names(self) -> tuple[str, ...]:
        """What the scales of the prior are those of."""
        bias, pairings = self.bias is not None, self.pairing is not None
        return ("user", "item", "rival", *["bias"] * bias, *["pairing"] * pairings)

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
        sides = self.user[:, chosen], self.item[:, chosen], self.rival[:, chosen], self.scales[:, chosen]
        return Draws(*sides, None if self.pairing is None else self.pairing[:, chosen], self.keys)

    def first(self, draws: int) -> "Draws":
        """Return the first draws of every chain."""
        return self._of_each_chain(slice(draws))

    def at_most(self, count: int) -> "Draws":
        """Return evenly spaced draws of every chain, at most ``count`` altogether (but one per chain)."""
        keep = max(1, min(self.per_chain, count // self.chains))
        return self._of_each_chain(np.linspace(0, self.per_chain - 1, keep).round().astype(np.int64))

    def of(self, user: Any) -> tuple["Draws", Any]:
        """Return draws and the row of a user in them; None is the average user, the mean of xi over all."""
        if user is not None:
            return self, user
        mean = self.user.mean(axis=2, keepdims=True, dtype=np.float64).astype(np.float32)
        return replace(self, user=mean), 0

    def flat(self) -> Flat:
        """Return xi, eta with the bias, and tau, chains and draws in one axis, chain after chain."""
        return Flat(*(side.reshape(len(self), *side.shape[2:]) for side in (self.user, self.item, self.rival)))

    def pairings(self) -> Margins:
        """Return the margins of pairings, chains and draws in one axis, chain after chain."""
        if self.pairing is None:
            return Margins(np.zeros((len(self), 0), np.float32), np.zeros(len(self), np.float32))
        return Margins(self.pairing.reshape(len(self), -1), np.ascontiguousarray(self.scales[..., -1]).ravel())

    def add_pairings(self, x: Doubles, item: Positions, rival: Positions, first: int = 0) -> None:
        """Add the margins of pairings to preferences, (draws, pairs), those of the draws from ``first`` on."""
        if self.keys is not None:
            margin, scale = self.pairings()
            part = slice(first, first + len(x))
            add_margins(x, beside(self.keys, item, rival, self.item.shape[2], True), margin[part], scale[part], first)

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
        self.add_pairings(result, i, j)
        return result.reshape(len(self), *shape)

    def mean(
        self,
        user: Any,
        item: Any,
        rival: Any,
        of: Quantity = "preference",
        num_threads: int = 0,
        pairings: bool = True,
    ) -> Doubles:
        """Return the mean over draws of x, of Phi(x) or of x > 0 ("beats"), for rows that broadcast.

        No draw of a preference is held, so any number of pairs may be asked for. Without ``pairings``, as if nobody had
        compared the two.
        """
        draws, user = self.of(user)
        rows = np.broadcast_arrays(user, item, rival)
        pairs = Pairs(*(np.ascontiguousarray(side, np.int64).ravel() for side in rows))
        total = np.zeros(pairs.user.size)
        known = beside(self.keys, pairs.item, pairs.rival, self.item.shape[2], pairings)
        work = partial(add_up, draws.flat(), draws.pairings(), pairs, known, _QUANTITIES[of], total)
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
        if self.keys is not None:
            one, other = np.broadcast_arrays(np.asarray(items)[:, None], np.asarray(rivals))
            known = beside(self.keys, one, other, self.item.shape[2], True)
            total += known.sign * np.where(known.place >= 0, self._mean_pairing[np.maximum(known.place, 0)], 0.0)
        return total

    def scores(self, user: int | None, items: Positions) -> Doubles:
        """Return draws of the mean margin of some items over each other (themselves included, as 0), (draws, items)."""
        (all_xi, all_eta, all_tau), k = self.flat(), self.factors
        xi = (all_xi.mean(axis=1, dtype=np.float64) if user is None else all_xi[:, user]).astype(np.float64)
        eta, tau = all_eta[:, items].astype(np.float64), all_tau[:, items].astype(np.float64)
        eta, bias = eta[..., :k], eta[..., k:].sum(axis=2)
        score = bias - bias.mean(axis=1, keepdims=True) + np.einsum("dik,dk->di", eta, xi * tau.mean(axis=1))
        score -= np.einsum("dik,dk->di", tau, xi * eta.mean(axis=1))
        if self.keys is not None:
            among, share = mean_over(self.keys, items, self.item.shape[2])
            score += (share @ self.pairings().margin[:, among].T).T
        return np.asarray(score)

    def mean_scores(self, users: Positions) -> Doubles:
        """Return the posterior mean of the mean margin over the catalogue, (users, items)."""
        total = np.zeros((len(users), self.item.shape[2]))
        for part in self.side_by_side(users):
            total += user_vectors(part) @ item_vectors(part).T
        return np.asarray(total + self._pairing_scores(self._mean_pairing))

    def draw_scores(self, draw: int, users: Positions) -> Doubles:
        """Return the mean margin over the catalogue in one draw, (users, items)."""
        one, margin = self[draw], self.pairings().margin[draw]
        return np.asarray(user_vectors(one, users) @ item_vectors(one).T + self._pairing_scores(margin))

    @cached_property
    def _mean_pairing(self) -> Doubles:
        return np.asarray(self.pairings().margin.mean(axis=0, dtype=np.float64))

    def _pairing_scores(self, margin: Any) -> Any:
        """Return what the margins of pairings add to the mean margin of every item over the catalogue."""
        if self.keys is None:
            return 0.0
        among, share = mean_over(self.keys, np.arange(self.item.shape[2]), self.item.shape[2])
        return share @ margin[among]
