"""Factors of different draws brought together: matched, turned, and put into the form with most of tau near 1.

In every draw factors come in any order, and each pair (eta^h, tau^h) may be replaced by any other with the same wedge
product. Averages over draws mean something only after one choice has been made for all of them.
"""

from collections.abc import Sequence

import numpy as np

from sadrec._types import Doubles
from sadrec.posterior.draws import Draws
from sadrec.ranking.alignment import match, wedge_products

_ABSOLUTE = (0.0,) * 25
_SPARSE = tuple(np.repeat([1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.13, 0.1], 4).tolist())


def closest_to_one(eta: Doubles, tau: Doubles) -> tuple[Doubles, Doubles]:
    """Bring factors (..., items, factors) into the form in which most of tau is close to 1.

    What tau can become without a change of preferences is ``p tau + q eta``, for any p and q. Those are taken that make
    ``sum_i log(e^2 + (p tau_i + q eta_i - 1)^2)`` small, which counts entries away from 1 more than how far away they
    are: the sparsest form. (The paper's penalty, a sum of absolute differences, would rather move everything a little
    than leave a few large entries large.) Least squares with weights seek the minimum from two starts, e falling to
    0.1.
    """
    one = np.ones_like(tau)
    starts = []
    # tau regressed on (1, eta) and 1 regressed on (tau, eta), both by least absolute deviations.
    a, b = _robust_fit(tau, one, eta, _ABSOLUTE)
    a = np.where(a > 0.05 * tau.mean(axis=-2, keepdims=True), a, np.median(tau, axis=-2, keepdims=True).clip(1e-6))
    starts.append((1 / a, -b / a))
    starts.append(_robust_fit(one, tau, eta, _ABSOLUTE))
    fits = [_robust_fit(one, tau, eta, _SPARSE, start) for start in starts]
    loss = [np.log(_SPARSE[-1] ** 2 + (p * tau + q * eta - 1) ** 2).sum(axis=-2, keepdims=True) for p, q in fits]
    p, q = (np.where(loss[0] <= loss[1], first, second) for first, second in zip(*fits, strict=True))
    return _in_form(eta, tau, p, q)


def _in_form(eta: Doubles, tau: Doubles, p: Doubles, q: Doubles) -> tuple[Doubles, Doubles]:
    """Return the pair whose tau is ``p tau + q eta``, with the same wedge product."""
    return (p * eta - q * tau) / np.maximum(p * p + q * q, 1e-300), p * tau + q * eta


def _robust_fit(
    target: Doubles,
    first: Doubles,
    second: Doubles,
    widths: Sequence[float],
    start: tuple[Doubles, Doubles] | None = None,
) -> tuple[Doubles, Doubles]:
    """Fit ``target = p first + q second`` along the axis of items, by least squares with weights.

    A width above 0 gives weights ``1 / (width^2 + rest^2)``, 0 those of least absolute deviations.
    """
    weight = np.ones_like(target)
    p, q = (np.zeros(()), np.zeros(())) if start is None else start
    for turn, width in enumerate(widths):
        if turn or start is not None:
            rest = np.abs(p * first + q * second - target)
            weight = 1 / (width * width + rest * rest) if width else 1 / np.maximum(rest, 1e-3)
        ff, fs, ss = _sum(weight * first * first), _sum(weight * first * second), _sum(weight * second * second)
        f, s = _sum(weight * first * target), _sum(weight * second * target)
        determinant = ff * ss - fs * fs
        usable = determinant > 1e-12 * ff * ss
        safe = np.where(usable, determinant, 1.0)
        p = np.where(usable, (f * ss - s * fs) / safe, f / np.maximum(ff, 1e-300))
        q = np.where(usable, (s * ff - f * fs) / safe, 0.0)
    return p, q


def _sum(values: Doubles) -> Doubles:
    return np.asarray(values.sum(axis=-2, keepdims=True))


def aligned(draws: Draws, reference: int = -1) -> tuple[Doubles, Doubles, Doubles]:
    """Return xi, eta, tau of all draws, factors in the order of one draw and in one form, most of tau near 1.

    The preferences of every draw stay what they are.
    """
    all_xi, all_eta, all_tau = (array.astype(np.float64) for array in draws.flat())
    target = all_xi[reference].copy(), all_eta[reference].copy(), all_tau[reference].copy()
    for xi, eta, tau in zip(all_xi, all_eta, all_tau, strict=True):
        order, _ = match(target, (xi, eta, tau))
        xi[:], eta[:], tau[:] = xi[:, order], eta[:, order], tau[:, order]
        flipped = np.diag(wedge_products(*target[1:], eta, tau)) < 0
        xi[:, flipped] *= -1
        eta[:, flipped] *= -1
    eta, tau = closest_to_one(all_eta, all_tau)
    # Where two forms are about as sparse, draws differ in which they took: all take that of the majority.
    usual = np.broadcast_to(np.median(tau, axis=0), tau.shape)
    eta, tau = _in_form(eta, tau, *_robust_fit(usual, tau, eta, _ABSOLUTE))
    # What is left of the freedom: eta may take up multiples of tau, and xi a scale.
    eta -= (eta * tau).sum(axis=1, keepdims=True) / (tau * tau).sum(axis=1, keepdims=True) * tau
    scale = np.sqrt((eta * eta).mean(axis=1, keepdims=True)).clip(1e-12)
    return all_xi * scale, eta / scale, tau
