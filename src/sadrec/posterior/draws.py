"""The draws of all chains, and preferences computed from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]
Floats = NDArray[np.float64]

_CHUNK = 1 << 22
"""How many numbers are held at a time while preferences are computed."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the posterior, in float32.

    Attributes
    ----------
    user, item, rival
        xi (chains, draws, users, factors), eta and tau (chains, draws, items, factors).
    scales
        (chains, draws, 3): standard deviations of the prior of xi, eta and tau.
    """

    user: Singles
    item: Singles
    rival: Singles
    scales: Singles

    @classmethod
    def empty(cls, chains: int, draws: int, users: int, items: int, factors: int) -> "Draws":
        """Make room for draws."""
        return cls(
            np.zeros((chains, draws, users, factors), np.float32),
            np.zeros((chains, draws, items, factors), np.float32),
            np.zeros((chains, draws, items, factors), np.float32),
            np.zeros((chains, draws, 3), np.float32),
        )

    @property
    def chains(self) -> int:
        """How many chains there are."""
        return len(self.user)

    def __len__(self) -> int:
        """How many draws there are, of all chains together."""
        return len(self.user) * int(self.user.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.user.nbytes + self.item.nbytes + self.rival.nbytes + self.scales.nbytes

    def first(self, draws: int) -> "Draws":
        """Return the first draws of every chain."""
        return Draws(self.user[:, :draws], self.item[:, :draws], self.rival[:, :draws], self.scales[:, :draws])

    def one(self, chain: int, draw: int) -> "Draws":
        """Return a single draw."""
        at = slice(chain, chain + 1), slice(draw, draw + 1)
        return Draws(self.user[at], self.item[at], self.rival[at], self.scales[at])

    def at_most(self, count: int) -> "Draws":
        """Return evenly spaced draws of every chain, at most ``count`` altogether (but one per chain)."""
        per_chain = self.user.shape[1]
        keep = max(1, min(per_chain, count // self.chains))
        chosen = np.linspace(0, per_chain - 1, keep).round().astype(np.int64)
        return Draws(self.user[:, chosen], self.item[:, chosen], self.rival[:, chosen], self.scales[:, chosen])

    def crowd(self) -> "Draws":
        """Return the draws of a single user, the mean over all."""
        mean = self.user.mean(axis=2, keepdims=True, dtype=np.float64).astype(np.float32)
        return Draws(mean, self.item, self.rival, self.scales)

    def flat(self) -> tuple[Singles, Singles, Singles]:
        """Return xi, eta, tau with chains and draws in one axis, chain after chain."""
        rows = len(self)
        return (
            self.user.reshape(rows, *self.user.shape[2:]),
            self.item.reshape(rows, *self.item.shape[2:]),
            self.rival.reshape(rows, *self.rival.shape[2:]),
        )

    def user_vectors(self, user: int | None) -> Floats:
        """Return xi of a user, (draws, factors); for None the mean over all users."""
        xi, _, _ = self.flat()
        return np.asarray(xi.mean(axis=1, dtype=np.float64) if user is None else xi[:, user].astype(np.float64))

    def preference(self, user: Any, item: Any, rival: Any) -> Floats:
        """Return ``x_uij`` for rows that broadcast, (draws, ...); user None is the mean over all users."""
        if user is None:
            return self.crowd().preference(0, item, rival)
        xi, eta, tau = self.flat()
        u, i, j = (np.asarray(rows) for rows in np.broadcast_arrays(user, item, rival))
        shape, u, i, j = i.shape, u.ravel(), i.ravel(), j.ravel()
        result = np.empty((len(self), len(i)))
        step = max(1, _CHUNK // (len(self) * eta.shape[-1]))
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            a, b = i[part], j[part]
            difference = eta[:, a].astype(np.float64) * tau[:, b] - eta[:, b].astype(np.float64) * tau[:, a]
            result[:, part] = np.einsum("dpk,dpk->dp", difference, xi[:, u[part]])
        return result.reshape(len(self), *shape)

    def margins(self, user: int | None, items: NDArray[np.int64]) -> Floats:
        """Return the preferences of a user among some items, (draws, items, items)."""
        xi = self.user_vectors(user)
        _, eta, tau = self.flat()
        half = np.einsum("dik,djk->dij", eta[:, items] * xi[:, None], tau[:, items].astype(np.float64), optimize=True)
        return np.asarray(half - half.transpose(0, 2, 1))

    def scores(self, user: int | None, items: NDArray[np.int64]) -> Floats:
        """Return the mean margin of some items over each other (themselves included, as 0), (draws, items)."""
        xi = self.user_vectors(user)
        _, all_eta, all_tau = self.flat()
        eta, tau = all_eta[:, items].astype(np.float64), all_tau[:, items].astype(np.float64)
        score = np.einsum("dik,dk->di", eta, xi * tau.mean(axis=1))
        return np.asarray(score - np.einsum("dik,dk->di", tau, xi * eta.mean(axis=1)))
