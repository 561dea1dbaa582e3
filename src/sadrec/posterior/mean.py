"""One model for all draws: the SAD model whose preferences come closest to their posterior mean."""

import logging

import numpy as np
from numpy.typing import NDArray

from sadrec.posterior.draws import Draws
from sadrec.posterior.factors import aligned, tensor_products, wedge_products

logger = logging.getLogger("sadrec")

Floats = NDArray[np.float64]
Factors = tuple[Floats, Floats, Floats]

MOST_DRAWS = 400
"""How many draws stand for all of them."""
ROUNDS = 20
"""Of alternating least squares, at most."""


def mean_factors(draws: Draws) -> tuple[Factors, float]:
    """Return factors (xi, eta, tau) whose X is closest to the posterior mean of X, and the share of it they miss.

    The mean of X over draws is not the X of mean factors, and as a rule no SAD model with k factors has it exactly. The
    start is the better of two: the draw nearest to the mean, and the mean of aligned factors. Alternating least squares
    (xi given the items; eta and tau of all items given the rest, tau cut at 0) then bring it nearer to the mean, which
    is itself known through its factors, those of all draws side by side: no items x items matrix is made.
    """
    some = draws.at_most(MOST_DRAWS)
    count = len(some)
    every = _side_by_side(some)
    size = tensor_products(every, every)

    def missed(one: Factors) -> float:
        return (size - 2 * tensor_products(every, one) + tensor_products(one, one)) / max(size, 1e-300)

    xi, eta, tau = aligned(some)
    candidates = [_with_best_users((xi.mean(axis=0), eta.mean(axis=0), tau.mean(axis=0).clip(0)), every)]
    flat_xi, flat_eta, flat_tau = (array.astype(np.float64) for array in some.flat())
    products = [tensor_products(every, (flat_xi[d], flat_eta[d], flat_tau[d])) for d in range(count)]
    distance = [tensor_products(*[(flat_xi[d], flat_eta[d], flat_tau[d])] * 2) - 2 * products[d] for d in range(count)]
    nearest = int(np.argmin(distance))
    candidates.append((flat_xi[nearest], flat_eta[nearest], flat_tau[nearest]))
    best = min(candidates, key=missed)
    return best, missed(best)


def _side_by_side(draws: Draws) -> Factors:
    """Return the mean of X as one set of factors: those of all draws, xi divided by their number."""
    xi, eta, tau = (array.astype(np.float64).transpose(1, 0, 2) for array in draws.flat())
    rows = len(draws)
    return (
        xi.reshape(len(xi), -1) / rows,
        eta.reshape(len(eta), -1),
        tau.reshape(len(tau), -1),
    )


def _with_best_users(one: Factors, every: Factors) -> Factors:
    """Replace xi by what comes closest to the mean, given eta and tau."""
    _, eta, tau = one
    gram = wedge_products(eta, tau, eta, tau)
    target = every[0] @ wedge_products(*every[1:], eta, tau)
    ridge = 1e-9 * np.trace(gram) / len(gram)
    xi = np.linalg.solve(gram + ridge * np.eye(len(gram)), target.T).T
    return np.ascontiguousarray(xi), eta, tau
