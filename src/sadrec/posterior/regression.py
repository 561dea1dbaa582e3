"""One stage of a sweep: what features predict of users and items, drawn with the rest.

With features f of rows, ``theta_i ~ N(m + W' f_i, s^2)`` and ``W ~ N(0, w^2)``, w half normal with scale 1. The prior
of W does not change under rotations, so W is drawn along the principal directions of the features, where its entries do
not depend on each other given theta:

- of xi and eta: w by slice sampling with W integrated out, then W, which is normal;
- of tau, which is restricted to tau >= 0: its density has the divisor ``Phi(mean / s)``, so each factor's column of W
  is moved by elliptical slice sampling (Murray, Adams and MacKay, 2010) around its normal part; then w.

Rows without data are no part of the chain. Those of a draw come from the prior with the W of that draw: what the
features predict, and as uncertain as what is a row's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from sadrec._types import Doubles
from sadrec.posterior.layout import State

MOST = 4096
"""Most principal directions of features."""
_LEAST = 1e-9  # of the largest: directions with a smaller square carry nothing
_SHRINKS = 200  # of a bracket: after so many it is the point itself, in all its digits
_WIDTH = 1.0  # of the first bracket of a slice, in the logarithm of a scale


@dataclass(frozen=True, eq=False)
class Basis:
    """Features of the users, or of the items, along their principal directions; rows have a mean square of 1."""

    known: Doubles  # (rows with data, directions), orthogonal columns
    squares: Doubles  # (directions,): of the columns
    new: Doubles  # (rows without data, directions)
    beyond: Doubles  # (rows without data, more directions): what no row with data has

    @staticmethod
    def of(rows: Any, cold: NDArray[np.bool_], what: str) -> "Basis":
        """Return the basis of encoded features, CSR; ``cold`` are the rows without data."""
        known, new = rows[~cold].tocsr(), rows[cold].tocsr()
        count, width = known.shape
        if min(count, width) > MOST or (width > count and new.shape[0] > MOST):
            raise ValueError(
                f"{what}_features has {width:,} columns for {rows.shape[0]:,} {what}s, and the sampler takes {MOST:,} "
                "of one or of the other: raise minimum (sadrec.features.Features), or leave tags out"
            )
        mean = np.asarray(known.sum(axis=0)).ravel() / count
        if width <= count:
            values, vectors = np.linalg.eigh((known.T @ known).toarray() - count * np.outer(mean, mean))
            kept = values > _LEAST * max(float(values[-1]), 1e-300)
            along, rest = vectors[:, kept], vectors[:, ~kept]
            own, others = (part @ along - mean @ along for part in (known, new))
            squares, beyond = values[kept], new @ rest - mean @ rest
        else:
            level = float(mean @ mean)
            cross = [np.asarray(part @ mean).ravel() for part in (known, new)]
            gram = (known @ known.T).toarray() - cross[0][:, None] - cross[0] + level
            values, vectors = np.linalg.eigh(gram)
            kept = values > _LEAST * max(float(values[-1]), 1e-300)
            squares, root = values[kept], np.sqrt(values[kept])
            own = vectors[:, kept] * root
            others = ((new @ known.T).toarray() - cross[1][:, None] - cross[0] + level) @ (vectors[:, kept] / root)
            left = (new @ new.T).toarray() - cross[1][:, None] - cross[1] + level - others @ others.T
            values, vectors = np.linalg.eigh(left) if len(left) else (np.empty(0), np.empty((0, 0)))
            more = values > _LEAST * squares.max(initial=1e-300)
            beyond = vectors[:, more] * np.sqrt(values[more])
        size = float(np.sqrt(max(squares.sum() / count, 1e-300)))
        sides = (np.ascontiguousarray(side) / size for side in (own, others, beyond))
        known, new, beyond = sides
        return Basis(known, squares / size**2, new, beyond)


def slice_step(rng: np.random.Generator, density: Callable[[float], float], at: float) -> float:
    """Return the next point of a chain with this log density (Neal 2003: stepping out, shrinking)."""
    level = density(at) + np.log(rng.random())
    low = at - _WIDTH * rng.random()
    high = low + _WIDTH
    while density(low) > level:
        low -= _WIDTH
    while density(high) > level:
        high += _WIDTH
    for _ in range(_SHRINKS):
        new = low + (high - low) * rng.random()
        if density(new) > level:
            return float(new)
        low, high = (new, high) if new < at else (low, new)
    return at


def _scale_prior(log_scale: float) -> float:
    """Log density of the logarithm of a scale that is half normal; nothing lies so far out that it overflows."""
    return float(log_scale - 0.5 * np.exp(2 * min(log_scale, 300.0)))


def draw_weights(
    rng: np.random.Generator, basis: Basis, own: Doubles, precision: float, spread: float
) -> tuple[Doubles, float]:
    """Draw weights, (directions, factors), and their precision, given rows less their means and the rows' precision."""
    along, factors = basis.known.T @ own, own.shape[1]
    noise, explained = 1 / precision, (along**2).sum(axis=1) / basis.squares

    def density(log_scale: float) -> float:
        variance = noise + np.exp(2 * min(log_scale, 300.0)) * basis.squares
        return _scale_prior(log_scale) - 0.5 * float((factors * np.log(variance) + explained / variance).sum())

    spread = float(np.exp(-2 * slice_step(rng, density, -0.5 * np.log(spread))))
    weight = precision * basis.squares + spread
    drawn = precision * along / weight[:, None] + rng.standard_normal(along.shape) / np.sqrt(weight)[:, None]
    return drawn, spread


def draw_rival_weights(
    rng: np.random.Generator,
    basis: Basis,
    own: Doubles,
    precision: float,
    mean: float,
    weights: Doubles,
    spread: float,
) -> tuple[Doubles, float]:
    """Draw the weights of tau and their precision, given tau less ``mean``, from where they are."""
    scale = np.sqrt(precision)
    weight = precision * basis.squares + spread
    centre = precision * (basis.known.T @ own) / weight[:, None]
    drawn = np.empty_like(weights)
    for h in range(weights.shape[1]):
        now, noise = weights[:, h] - centre[:, h], rng.standard_normal(len(weight)) / np.sqrt(weight)
        fixed, moved, other = (basis.known @ part for part in (centre[:, h], now, noise))

        def density(angle: float, fixed: Doubles = fixed, moved: Doubles = moved, other: Doubles = other) -> float:
            return -float(log_ndtr(scale * (mean + fixed + np.cos(angle) * moved + np.sin(angle) * other)).sum())

        level = density(0.0) + np.log(rng.random())
        angle = 2 * np.pi * rng.random()
        low, high = angle - 2 * np.pi, angle
        for _ in range(_SHRINKS):
            if density(angle) > level:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + (high - low) * rng.random()
        else:
            angle = 0.0
        drawn[:, h] = centre[:, h] + np.cos(angle) * now + np.sin(angle) * noise
    squares, count = float((drawn**2).sum()), drawn.size

    def density_of_scale(log_scale: float) -> float:
        return _scale_prior(log_scale) - count * log_scale - 0.5 * squares * float(np.exp(-2 * max(log_scale, -300.0)))

    return drawn, float(np.exp(-2 * slice_step(rng, density_of_scale, -0.5 * np.log(spread))))


class Regression(NamedTuple):
    """The features of users and of items; None for a side that has none."""

    user: Basis | None = None
    item: Basis | None = None

    def first(self, factors: int, bias: bool = False) -> dict[str, Doubles]:
        """Return centres, weights and spreads to start from, as parts of a state."""
        parts: dict[str, Doubles] = {"spread": np.ones(4)}
        if bias and self.item is not None:
            parts["bias_weights"] = np.zeros((len(self.item.squares), 1))
        for basis, names in ((self.user, ("user",)), (self.item, ("item", "rival"))):
            for name in names if basis is not None else ():
                assert basis is not None
                parts |= {f"{name}_centre": np.zeros((len(basis.known), factors))}
                parts |= {f"{name}_weights": np.zeros((len(basis.squares), factors))}
        return parts

    def draw(self, rng: np.random.Generator, state: State) -> None:
        """Draw the weights, and set the centres to what they predict."""
        prior, spread, factors = state.prior, state.spread, state.xi.shape[1]
        if self.user is not None:
            state.user_weights[:], spread[0] = draw_weights(rng, self.user, state.xi - state.mean, prior[0], spread[0])
            state.user_centre[:] = self.user.known @ state.user_weights
        if self.item is not None:
            eta, bias = state.eta[:, :factors], state.eta[:, factors:]
            state.item_weights[:], spread[1] = draw_weights(rng, self.item, eta, prior[1], spread[1])
            state.item_centre[:] = self.item.known @ state.item_weights
            if bias.size:
                line = prior[5] * state.meetings
                own = bias - line[:, None]
                state.bias_weights[:], spread[3] = draw_weights(rng, self.item, own, prior[4], spread[3])
                state.bias_centre[:] = line + (self.item.known @ state.bias_weights)[:, 0]
            if np.isfinite(prior[3]):
                given = state.tau - prior[2], prior[3], prior[2], state.rival_weights, spread[2]
                state.rival_weights[:], spread[2] = draw_rival_weights(rng, self.item, *given)
                state.rival_centre[:] = self.item.known @ state.rival_weights

    def new_users(self, rng: np.random.Generator, state: State) -> Doubles:
        """Draw xi of the users without data."""
        assert self.user is not None
        return self._new(rng, self.user, state.user_weights, state.spread[0], state.prior[0], state.mean)

    def new_items(self, rng: np.random.Generator, state: State) -> tuple[Doubles, Doubles]:
        """Draw eta, with the bias, and tau of the items without data."""
        assert self.item is not None
        eta = self._new(rng, self.item, state.item_weights, state.spread[1], state.prior[1], 0.0)
        mean, precision = state.prior[2:4]
        tau = np.full(eta.shape, mean)
        if not np.isinf(precision):
            tau = self._new_rivals(rng, state)
        if len(state.bias_weights):
            bias = self._new(rng, self.item, state.bias_weights, state.spread[3], state.prior[4], 0.0)
            eta = np.hstack((eta, bias))
        return eta, tau

    def _new_rivals(self, rng: np.random.Generator, state: State) -> Doubles:
        assert self.item is not None
        mean, precision = state.prior[2:4]
        expected = mean + self._predicted(rng, self.item, state.rival_weights, state.spread[2])
        scale = precision**-0.5
        u = 1 - rng.random(expected.shape)
        return np.asarray(np.maximum(expected - scale * ndtri_exp(np.log(u) + log_ndtr(expected / scale)), 0.0))

    @staticmethod
    def _predicted(rng: np.random.Generator, basis: Basis, weights: Doubles, spread: float) -> Doubles:
        more = rng.standard_normal((basis.beyond.shape[1], weights.shape[1])) * spread**-0.5
        return np.asarray(basis.new @ weights + basis.beyond @ more)

    def _new(
        self, rng: np.random.Generator, basis: Basis, weights: Doubles, spread: float, precision: float, mean: Any
    ) -> Doubles:
        predicted = self._predicted(rng, basis, weights, spread)
        return np.asarray(mean + predicted + rng.standard_normal(predicted.shape) * precision**-0.5)
