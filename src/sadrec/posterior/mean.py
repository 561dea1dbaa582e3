"""One model for all draws: the SAD model whose preferences come closest to their posterior mean."""

import numpy as np

from sadrec._types import Doubles
from sadrec.posterior.draws import Draws
from sadrec.posterior.factors import aligned
from sadrec.ranking.alignment import Factors, contribution_products, factors_of, wedge_products

MOST_DRAWS = 400
"""How many draws stand for all of them."""
ROUNDS = 10
"""Of alternating least squares, at most."""
ENOUGH = 0.01
"""A round that lowers what is missed by a smaller share is the last."""
PASSES = 8
"""How many times the coordinates of tau are gone through."""


def mean_factors(draws: Draws) -> tuple[Factors, float]:
    """Return factors (xi, eta, tau) whose X is close to the posterior mean of X, and the share of it they miss.

    The mean of X over draws is not the X of mean factors, and as a rule no SAD model with k factors has it exactly. The
    start has the items of the draw nearest to the mean or the mean of the aligned factors, whichever comes closer when
    xi is fitted to them. Alternating least squares (one item after the other, tau >= 0; then xi) bring it nearer. The
    mean is known through the factors of all draws side by side: no items x items matrix is made.
    """
    some = draws.at_most(MOST_DRAWS)
    xi, all_eta, all_tau = (np.concatenate(side, 1) for side in zip(*map(factors_of, some.side_by_side()), strict=True))
    every = xi, all_eta, all_tau
    size = _product(every, every)

    def missed(one: Factors) -> float:
        return (size - 2 * _product(every, one) + _product(one, one)) / max(size, 1e-300)

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


def _product(one: Factors, other: Factors) -> float:
    """Return the inner product of two tensors X."""
    return float(contribution_products(one, other).sum())


def _with_best_users(eta: Doubles, tau: Doubles, every: Factors) -> Factors:
    """Return eta and tau with the xi that comes closest to the mean."""
    gram = wedge_products(eta, tau, eta, tau)
    target = every[0] @ wedge_products(*every[1:], eta, tau)
    ridge = 1e-9 * np.trace(gram) / len(gram)
    xi = np.linalg.solve(gram + ridge * np.eye(len(gram)), target.T).T
    return np.ascontiguousarray(xi), eta, tau


def _with_best_items(one: Factors, every: Factors, held: bool) -> tuple[Doubles, Doubles]:
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
        gram = items.T @ items if i % 64 == 63 else gram + _symmetric(items[i], step)
        by_item += np.outer(every[1][i], step)
        by_rival += np.outer(every[2][i], step)
    return -items[:, k:], items[:, :k]


def _symmetric(new: Doubles, step: Doubles) -> Doubles:
    """Return by how much the outer product of a vector with itself grew, given its new value and the last step."""
    both = np.outer(new, step)
    return np.asarray(both + both.T - np.outer(step, step))
