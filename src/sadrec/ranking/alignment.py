"""Match the factors of one model to those of another.

The factors of a model come in any order, and each pair (eta^h, tau^h) may be replaced by any other with the same wedge
product ``eta^h tau^h' - tau^h eta^h'``. What a factor contributes to the preferences, xi^h times that wedge product,
depends on neither: factors are compared by the cosine of their contributions. A bias takes no part.
"""

import numpy as np

from sadrec._core.types import Doubles, Positions
from sadrec.ranking.parameters import Parameters

Matrices = tuple[Doubles, Doubles, Doubles]
"""xi (users, factors), eta and tau (items, factors)."""


def factors_of(parameters: Parameters) -> Matrices:
    """Return xi, eta and tau in double precision, tau in full."""
    xi, eta = (np.asarray(side, np.float64) for side in (parameters.user_factors, parameters.item_factors))
    tau = parameters.rival_factors
    return xi, eta, np.ones_like(eta) if tau is None else np.asarray(tau, np.float64)


def wedge_products(eta: Doubles, tau: Doubles, other_eta: Doubles, other_tau: Doubles) -> Doubles:
    """Return the inner products of the wedge products of two sets of factors, (factors, other factors)."""
    return np.asarray(2 * ((eta.T @ other_eta) * (tau.T @ other_tau) - (eta.T @ other_tau) * (tau.T @ other_eta)))


def contribution_products(one: Matrices, other: Matrices) -> Doubles:
    """Return the inner products of what factors contribute to X; their sum is the inner product of both X."""
    return np.asarray((one[0].T @ other[0]) * wedge_products(*one[1:], *other[1:]))


def cosines(one: Matrices, other: Matrices) -> Doubles:
    """Return the cosines between what factors contribute to X, (factors, other factors); 0 where one is zero."""
    sizes = np.outer(*(np.diag(contribution_products(each, each)) for each in (one, other)))
    lengths = np.sqrt(np.maximum(sizes, 0.0))
    return np.divide(contribution_products(one, other), lengths, out=np.zeros_like(lengths), where=lengths > 0)


def match(reference: Matrices, other: Matrices) -> tuple[Positions, Doubles]:
    """Return which factor of another model stands for each factor of the reference, and their cosines.

    The sum of the cosines is the largest possible.

    >>> rng = np.random.default_rng(0)
    >>> xi, eta, tau = (rng.random((8, 3)) for _ in range(3))
    >>> match((xi, eta, tau), (-xi[:, [2, 0, 1]], -eta[:, [2, 0, 1]], tau[:, [2, 0, 1]]))[0]
    array([1, 2, 0])
    """
    from scipy.optimize import linear_sum_assignment

    table = cosines(reference, other)
    rows, order = linear_sum_assignment(-table)
    return order.astype(np.int64), table[rows, order]
