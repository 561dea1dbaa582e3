"""Alignment of the factors of draws, and one model that stands for all draws.

In every draw factors come in any order, and each pair (eta^h, tau^h) may be replaced by any other with the same wedge
product. Averages over draws mean something only after one choice has been made for all of them.
"""

from collections.abc import Sequence

import numpy as np

from sadrec._core.types import Doubles
from sadrec.posterior.draws import Draws
from sadrec.ranking.alignment import Matrices, contribution_products, factors_of, match, wedge_products

_ABSOLUTE = (0.0,) * 25
_SPARSE = tuple(np.repeat([1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.13, 0.1], 4).tolist())


def closest_to_one(eta: Doubles, tau: Doubles) -> tuple[Doubles, Doubles]:
    """Transform factors (..., items, factors) into the form in which most of tau is close to 1.

    What tau can become without a change of preferences is ``p tau + q eta``, for any p and q. They are chosen so that
    this sum is small: ``sum_i log(e^2 + (p tau_i + q eta_i - 1)^2)``. The number of entries away from 1 counts more
    than their distance, so the sparsest form wins. (The paper's penalty, a sum of absolute differences, would rather
    move everything a little than leave a few large entries large.) Weighted least squares search the minimum from two
    starts; e falls from 1 to 0.1.
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

    The preferences of every draw stay what they are. A bias takes no part.
    """
    all_xi, all_eta, all_tau = (array[..., : draws.factors].astype(np.float64) for array in draws.flat())
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


MOST_DRAWS = 400
"""The number of draws used in place of all."""
ROUNDS = 10
"""Of alternating least squares, at most."""
ENOUGH = 0.01
"""A round that lowers what is missed by a smaller share is the last."""
PASSES = 8
"""Number of passes over the coordinates of tau."""


def mean_factors(draws: Draws) -> tuple[Matrices, float]:
    """Return factors (xi, eta, tau) of one model whose margins are close to their posterior means, and what they miss.

    That is the share of the squared size of these means that the model misses; the bias, whose mean is exact, counts in
    this size. As a rule no SAD model with k factors has the means exactly; mean factors have other margins. Two starts
    are tried: the items of the draw nearest to the mean, and the mean of the aligned items. xi is fitted to both; the
    closer one is taken. Alternating least squares (one item after the other, tau >= 0; then xi) bring it nearer. The
    means are known through the factors of all draws side by side: no items x items matrix is made.
    """
    some = draws.at_most(MOST_DRAWS)
    xi, all_eta, all_tau = (np.concatenate(side, 1) for side in zip(*map(factors_of, some.side_by_side()), strict=True))
    every = xi, all_eta, all_tau
    own = size = _product(every, every)
    if some.bias is not None:
        mean = some.bias.mean(axis=(0, 1), dtype=np.float64)[:, None]
        bias = np.ones((len(xi), 1)), mean, np.ones((len(mean), 1))
        size += 2 * _product(every, bias) + _product(bias, bias)

    def missed(one: Matrices) -> float:
        return (own - 2 * _product(every, one) + _product(one, one)) / max(size, 1e-300)

    _, eta, tau = aligned(some)
    _, nearest_eta, nearest_tau = min(map(factors_of, some), key=missed)
    items = (eta.mean(axis=0), tau.mean(axis=0).clip(0)), (nearest_eta, nearest_tau)
    best = min((_with_best_users(one, other, every) for one, other in items), key=missed)
    rest = missed(best)
    held = bool(some.rival.min() == some.rival.max())  # BPR stays BPR
    for _ in range(ROUNDS):
        before, new = rest, _with_best_users(*_with_best_items(best, every, held), every)
        if (after := missed(new)) < before:
            best, rest = new, after
        if rest > (1 - ENOUGH) * before:
            break
    return best, rest


def _product(one: Matrices, other: Matrices) -> float:
    """Return the inner product of two tensors X."""
    return float(contribution_products(one, other).sum())


def _with_best_users(eta: Doubles, tau: Doubles, every: Matrices) -> Matrices:
    """Return eta and tau with the xi that comes closest to the mean."""
    gram = wedge_products(eta, tau, eta, tau)
    target = every[0] @ wedge_products(*every[1:], eta, tau)
    ridge = 1e-9 * np.trace(gram) / len(gram)
    xi = np.linalg.solve(gram + ridge * np.eye(len(gram)), target.T).T
    return np.ascontiguousarray(xi), eta, tau


def _with_best_items(one: Matrices, every: Matrices, held: bool) -> tuple[Doubles, Doubles]:
    """Return eta and tau, those of each item in turn moved to what comes closest to the mean, given all others and xi.

    X is linear in the vectors (eta_i, tau_i) of an item: with ``p = (tau_j, -eta_j)`` for the others j, the normal
    equations have the matrix ``sum_j p p'`` times the products of xi. Those of tau_i with eta_i eliminated are solved
    coordinate by coordinate, tau_i >= 0, from where it is: what is missed never grows. ``held`` leaves tau as it is.
    """
    xi, items = one[0], np.concatenate((one[2], -one[1]), axis=1)  # p of all items, side by side
    k = xi.shape[1]
    within = np.tile(xi.T @ xi, (2, 2))
    across = np.tile(every[0].T @ xi, 2)
    gram, by_item, by_rival = items.T @ items, every[1].T @ items, every[2].T @ items
    for i in range(len(items)):
        own = items[i].copy()
        # An item is not compared with itself; the mean has a zero there as well.
        normal = within * (gram - np.outer(own, own))
        normal[np.diag_indices(2 * k)] += 1e-9 * np.trace(normal) / (2 * k) + 1e-300
        target = np.einsum("q,qh,qh->h", every[1][i], across, by_rival)
        target -= np.einsum("q,qh,qh->h", every[2][i], across, by_item)
        solved = np.linalg.solve(normal[:k, :k], np.column_stack((normal[:k, k:], target[:k])))
        inner, wanted = normal[k:, k:] - normal[k:, :k] @ solved[:, :k], target[k:] - normal[k:, :k] @ solved[:, k]
        tau = own[:k]
        for h in np.tile(np.arange(k), 0 if held else PASSES):
            tau[h] = max(0.0, tau[h] + (wanted[h] - inner[h] @ tau) / inner[h, h])
        eta = solved[:, k] - solved[:, :k] @ tau
        step = np.concatenate((tau, -eta)) - items[i]
        items[i] += step
        both = np.outer(items[i], step)  # the outer product of the item with itself grows by this, both ways
        gram = items.T @ items if i % 64 == 63 else gram + (both + both.T - np.outer(step, step))
        by_item += np.outer(every[1][i], step)
        by_rival += np.outer(every[2][i], step)
    return -items[:, k:], items[:, :k]
