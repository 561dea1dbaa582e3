"""Factors of different draws brought together: matched, turned, and put into the form closest to tau = 1.

In every draw factors come in any order, and each pair (eta^h, tau^h) may be replaced by any other with the same wedge
product. Averages over draws mean something only after one choice has been made for all of them.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sadrec.posterior.draws import Draws

Floats = NDArray[np.float64]

_ROUNDS = 40
_SMALL = 1e-3


def wedge_products(eta: Floats, tau: Floats, other_eta: Floats, other_tau: Floats) -> Floats:
    """Return the inner products of the matrices ``eta^h tau^h' - tau^h eta^h'`` of two sets of factors, (k, k)."""
    return np.asarray(2 * ((eta.T @ other_eta) * (tau.T @ other_tau) - (eta.T @ other_tau) * (tau.T @ other_eta)))


def tensor_products(one: tuple[Floats, Floats, Floats], other: tuple[Floats, Floats, Floats]) -> float:
    """Return the inner product of two tensors X, given by their factors (xi, eta, tau)."""
    return float(((one[0].T @ other[0]) * wedge_products(*one[1:], *other[1:])).sum())


def closest_to_one(eta: Floats, tau: Floats) -> tuple[Floats, Floats]:
    """Bring factors into the form whose tau is closest to 1, in the sum of absolute differences.

    Of all pairs with the same wedge product this is the one the paper's l1 penalty asks for. tau is regressed on
    (1, eta) by least absolute deviations (least squares with weights, repeated); with ``tau = a + b eta + rest`` the
    pair becomes ``(a eta, (tau - b eta) / a)``.

    Parameters
    ----------
    eta, tau
        (..., items, factors).
    """
    weight = np.ones_like(tau)
    for _ in range(_ROUNDS):
        total, first, second = weight.sum(axis=-2), (weight * eta).sum(axis=-2), (weight * eta * eta).sum(axis=-2)
        right, mixed = (weight * tau).sum(axis=-2), (weight * eta * tau).sum(axis=-2)
        determinant = total * second - first * first
        usable = determinant > 1e-12 * total * second
        safe = np.where(usable, determinant, 1.0)
        a = np.where(usable, (right * second - mixed * first) / safe, right / total)
        b = np.where(usable, (mixed * total - right * first) / safe, 0.0)
        weight = 1 / np.maximum(np.abs(tau - a[..., None, :] - b[..., None, :] * eta), _SMALL)
    middle = np.median(tau, axis=-2)
    sound = a > 0.05 * tau.mean(axis=-2)
    a, b = np.where(sound, a, np.maximum(middle, 1e-6))[..., None, :], np.where(sound, b, 0.0)[..., None, :]
    return a * eta, (tau - b * eta) / a


def match(
    reference: tuple[Floats, Floats, Floats], found: tuple[Floats, Floats, Floats]
) -> tuple[NDArray[np.int64], Floats]:
    """Return which factor of ``found`` stands for each of the reference, and the sign it takes there.

    Factors are matched by the cosine of the tensors they contribute, ``xi^h`` times a wedge product.
    """
    wedges = wedge_products(*reference[1:], *found[1:])
    products = (reference[0].T @ found[0]) * wedges
    sizes = [
        np.sqrt(np.maximum(np.einsum("uh,uh->h", one[0], one[0]) * np.diag(wedge_products(*one[1:], *one[1:])), 1e-300))
        for one in (reference, found)
    ]
    _, order = linear_sum_assignment(-products / np.outer(*sizes))
    sign = np.where(wedges[np.arange(len(order)), order] < 0, -1.0, 1.0)
    return order, sign


def aligned(draws: Draws, reference: int = -1) -> tuple[Floats, Floats, Floats]:
    """Return xi, eta, tau of all draws with factors in the order of one draw and in the form closest to tau = 1.

    The preferences of every draw stay what they are.

    Parameters
    ----------
    draws
        The draws.
    reference
        The draw that gives the order.
    """
    all_xi, all_eta, all_tau = (array.astype(np.float64) for array in draws.flat())
    target = all_xi[reference].copy(), all_eta[reference].copy(), all_tau[reference].copy()
    for d in range(len(all_xi)):
        order, sign = match(target, (all_xi[d], all_eta[d], all_tau[d]))
        all_xi[d], all_eta[d], all_tau[d] = (
            all_xi[d][:, order] * sign,
            all_eta[d][:, order] * sign,
            all_tau[d][:, order],
        )
    eta, tau = closest_to_one(all_eta, all_tau)
    # What is left of the freedom: eta may take up multiples of tau, and xi a scale.
    eta -= (eta * tau).sum(axis=1, keepdims=True) / (tau * tau).sum(axis=1, keepdims=True) * tau
    scale = np.sqrt((eta * eta).mean(axis=1, keepdims=True)).clip(1e-12)
    return all_xi * scale, eta / scale, tau
