"""One model for all draws: the SAD model whose preferences come closest to their posterior mean."""

import numpy as np
from numpy.typing import NDArray

from sadrec.posterior.draws import Draws
from sadrec.posterior.factors import aligned, tensor_products, wedge_products

Floats = NDArray[np.float64]
Factors = tuple[Floats, Floats, Floats]

MOST_DRAWS = 400
"""How many draws stand for all of them."""


def mean_factors(draws: Draws) -> tuple[Factors, float]:
    """Return factors (xi, eta, tau) whose X is close to the posterior mean of X, and the share of it they miss.

    The mean of X over draws is not the X of mean factors, and as a rule no SAD model with k factors has it exactly. The
    items are those of the draw nearest to the mean or the mean of the aligned factors, whichever comes closer when xi
    is fitted to them by least squares. The mean itself is known through its factors, those of all draws side by side:
    no items x items matrix is made.
    """
    some = draws.at_most(MOST_DRAWS)
    every = _side_by_side(some)
    size = tensor_products(every, every)

    def missed(one: Factors) -> float:
        return (size - 2 * tensor_products(every, one) + tensor_products(one, one)) / max(size, 1e-300)

    _, eta, tau = aligned(some)
    parts = zip(*(array.astype(np.float64) for array in some.flat()), strict=True)
    _, nearest_eta, nearest_tau = min(parts, key=missed)
    items = (eta.mean(axis=0), tau.mean(axis=0).clip(0)), (nearest_eta, nearest_tau)
    best = min((_with_best_users(*pair, every) for pair in items), key=missed)
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


def _with_best_users(eta: Floats, tau: Floats, every: Factors) -> Factors:
    """Return eta and tau with the xi that comes closest to the mean."""
    gram = wedge_products(eta, tau, eta, tau)
    target = every[0] @ wedge_products(*every[1:], eta, tau)
    ridge = 1e-9 * np.trace(gram) / len(gram)
    xi = np.linalg.solve(gram + ridge * np.eye(len(gram)), target.T).T
    return np.ascontiguousarray(xi), eta, tau
