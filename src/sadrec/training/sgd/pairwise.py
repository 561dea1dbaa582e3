r"""The pairwise step, in two halves: user ``u`` prefers item ``i`` to one rival ``j``.

It trains with ``loss="pairwise"``, and on all given pairs. ``SAD().fit(interactions)`` takes the step of
:mod:`sadrec.training.sgd.softmax` (``update_chunk``).

With :math:`x = \sum_h \xi_h (\eta_{ih} \tau_{jh} - \eta_{jh} \tau_{ih}) + b_i - b_j` and :math:`w = \sigma(-x)`,
the step goes up the gradient of :math:`\log \sigma(x)` with l2 on xi, eta and b (``- 2 w2 theta``, as in the paper)
and a proximal l1 step around 1 for tau, ``max(min(tau + s, 1), tau - s)``, which is then projected on ``tau >= 0``.
With features, l2 holds rows to a centre of their own in place of 0: they also move by ``2 w2 centre`` (:func:`pull`).

An item's row holds ``eta | tau`` side by side; for BPR it holds ``eta`` only. What a model does not have is ``None``,
and the compiler removes the code for it in every function that gets it as an argument of its own: BPR's step never
touches tau.
"""

from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from sadrec._core.kernel import inlined, kernel
from sadrec._core.types import Floats

_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
# exp() in single precision neither overflows nor turns the likelihood into log(0) inside these limits.
_LIMIT = np.float32(80.0)

Centre = tuple[Floats | None, Floats | None, Floats | None]
"""What features predict: where l2 holds users, items and the bias."""


@kernel
def margin(xi: Any, first: Any, second: Any, l1: Any) -> Any:
    """Return how strongly the user prefers the first item to the second (without the bias)."""
    k = xi.shape[0]
    x = _ZERO
    if l1 is None:
        for h in range(k):
            x += xi[h] * (first[h] - second[h])
    else:
        eta_i, tau_i = first[:k], first[k:]
        eta_j, tau_j = second[:k], second[k:]
        for h in range(k):
            x += xi[h] * (eta_i[h] * tau_j[h] - eta_j[h] * tau_i[h])
    return x


class Penalties(NamedTuple):
    """The penalties of a step."""

    l2: float  # on xi, eta and the bias
    l1: float | None  # towards tau = 1; None for BPR, where tau stays at 1
    l1_weights: Floats | None  # a factor on l1 for each entry of tau, (m, k), or None for 1
    user_centre: Floats | None = None  # what l2 holds xi to, (n, k), or None for 0
    item_centre: Floats | None = None  # what it holds eta to, (m, k), or None for 0
    bias_centre: Floats | None = None  # what it holds the bias to, (m,), or None for 0


@inlined
def likelihood_of(xi: Any, items: Any, bias: Any, i: int, j: int, l1: Any) -> Any:
    """Return the likelihood of the triple, ``sigmoid(x)``, and the residual, ``sigmoid(-x)``.

    The step itself is :func:`update`. Between the two a kernel does something that needs neither: the processor waits
    for the second number otherwise.
    """
    x = margin(xi, items[i], items[j], l1) + (bias_of(bias, i) - bias_of(bias, j))
    odds = exp(-min(max(x, -_LIMIT), _LIMIT))
    likelihood = _ONE / (_ONE + odds)
    return likelihood, odds * likelihood


@inlined
def bias_of(bias: Any, i: int) -> Any:
    """Return the bias of an item; 0 where there is none."""
    if bias is None:
        return _ZERO
    return bias[i]


@inlined
def weight_of(weights: Any, t: int) -> Any:
    """Return how much a triple counts; 1 where there are no weights. Flags weigh 0 and 1."""
    if weights is None:
        return _ONE
    return np.float32(weights[t])


@inlined
def add_log(total: float, product: float, likelihood: Any) -> tuple[float, float]:
    """Add the logarithm of a likelihood to ``total + log(product)``; a logarithm is taken once in many calls."""
    product *= likelihood
    if product < 1e-100:
        return total + log(product), 1.0
    return total, product


@inlined
def update(
    u: int, xi: Any, items: Any, bias: Any, i: int, j: int, gradient_scale: Any, rate: float, penalties: Penalties
) -> None:
    """Update the parameters in place for one triple: user ``u`` prefers item ``i`` to its rival ``j``, never the same.

    ``gradient_scale`` is the residual (see :func:`likelihood_of`), times how much the triple counts.
    """
    g = np.float32(rate) * gradient_scale
    decay = np.float32(1.0 - 2.0 * rate * penalties.l2)
    move_bias(bias, i, decay, g)
    move_bias(bias, j, decay, -g)
    update_rows(xi, items, i, j, g, decay, rate, penalties.l1, penalties.l1_weights)
    pull(xi, penalties.user_centre, u, decay)
    for item in (i, j):
        pull(items[item], penalties.item_centre, item, decay)
        pull_bias(bias, penalties.bias_centre, item, decay)


@inlined
def pull(row: Any, centre: Any, at: int, decay: Any) -> None:
    """Undo the decay of a row towards 0 where it has a centre, so that it shrinks to the centre."""
    if centre is not None:
        own, share = centre[at], _ONE - decay
        for h in range(own.shape[0]):
            row[h] += share * own[h]


@inlined
def pull_bias(bias: Any, centre: Any, i: int, decay: Any) -> None:
    """Undo the decay of an item's bias towards 0 where it has a centre."""
    if centre is not None:
        bias[i] += (_ONE - decay) * centre[i]


@inlined
def move_bias(bias: Any, i: int, decay: Any, moved: Any) -> None:
    """Update the bias of an item, if there is one."""
    if bias is not None:
        bias[i] = decay * bias[i] + moved


@inlined
def update_rows(xi: Any, items: Any, i: int, j: int, g: Any, decay: Any, rate: float, l1: Any, l1_weights: Any) -> None:
    """Update the rows of the user and of both items."""
    k = xi.shape[0]
    if l1 is None:
        eta_i, eta_j = items[i], items[j]
        for h in range(k):
            push = g * xi[h]
            xi[h] = decay * xi[h] + g * (eta_i[h] - eta_j[h])
            eta_i[h] = decay * eta_i[h] + push
            eta_j[h] = decay * eta_j[h] - push
    else:
        eta_i, tau_i = items[i][:k], items[i][k:]
        eta_j, tau_j = items[j][:k], items[j][k:]
        s = np.float32(rate * l1)
        for h in range(k):
            push = g * xi[h]
            a, b, c, d = eta_i[h], tau_i[h], eta_j[h], tau_j[h]
            xi[h] = decay * xi[h] + g * (a * d - c * b)
            eta_i[h] = decay * a + push * d
            eta_j[h] = decay * c - push * b
            tau_i[h] = towards_one(b - push * c, held_by(s, l1_weights, i, h))
            tau_j[h] = towards_one(d + push * a, held_by(s, l1_weights, j, h))


@inlined
def held_by(s: Any, l1_weights: Any, i: int, h: int) -> Any:
    """Return by how much an entry of tau is drawn to 1."""
    if l1_weights is None:
        return s
    return s * l1_weights[i, h]


@inlined
def towards_one(tau: Any, s: Any) -> Any:
    """Return an entry of tau after a step of at most ``s`` towards 1, and not below 0."""
    return max(max(min(tau + s, _ONE), tau - s), _ZERO)
