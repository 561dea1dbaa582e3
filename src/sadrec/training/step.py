r"""The one step of stochastic gradient ascent, in two halves: user ``u`` prefers item ``i`` to rival ``j``.

With :math:`x = \sum_h \xi_h (\eta_{ih} \tau_{jh} - \eta_{jh} \tau_{ih}) + b_i - b_j` and :math:`w = \sigma(-x)`,
the step goes up the gradient of :math:`\log \sigma(x)` with l2 on xi, eta and b (``- 2 w2 theta``, as in the paper)
and a proximal l1 step around 1 for tau, ``max(min(tau + s, 1), tau - s)``, which is then projected on ``tau >= 0``.

An item's row holds ``eta | tau`` side by side; for BPR it holds ``eta`` only. What a model does not have is passed as
``None``, and the compiler removes the code for it: BPR's step never touches tau.
"""

from math import exp
from typing import Any

import numpy as np

from sadrec._kernel import inlined, kernel

_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
# exp() in single precision neither overflows nor turns the likelihood into log(0) inside these limits.
_LIMIT = np.float32(80.0)


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


@inlined
def chance(xi: Any, items: Any, bias: Any, i: int, j: int, l1: Any) -> Any:
    """Return the likelihood of the triple, ``sigmoid(x)``, and what it lacks to 1, ``sigmoid(-x)``.

    The arguments are those of :func:`move`, which makes the step. Between the two a kernel does something that needs
    neither: the processor waits for the second number otherwise.
    """
    x = margin(xi, items[i], items[j], l1)
    if bias is not None:
        x += bias[i] - bias[j]
    odds = exp(-min(max(x, -_LIMIT), _LIMIT))
    likelihood = _ONE / (_ONE + odds)
    return likelihood, odds * likelihood


@inlined
def move(
    xi: Any, items: Any, bias: Any, i: int, j: int, pull: Any, rate: Any, l2: Any, l1: Any, l1_weights: Any
) -> None:
    """Update the parameters in place for one triple.

    Parameters
    ----------
    xi
        The user's row, (k,).
    items
        Rows ``eta | tau``, (m, 2k), or ``eta`` alone, (m, k), when ``l1`` is None.
    bias
        (m,) or None.
    i, j
        The item preferred and its rival, never the same.
    pull
        What the likelihood lacks to 1 (see :func:`chance`), times how much the triple counts.
    rate, l2, l1
        Learning rate and penalties. ``l1=None``: tau is 1 and stays it.
    l1_weights
        A factor on l1 for each entry of tau, (m, k), or None for 1.
    """
    k = xi.shape[0]
    g = np.float32(rate) * pull
    decay = np.float32(1.0 - 2.0 * rate * l2)
    if bias is not None:
        bias[i] = decay * bias[i] + g
        bias[j] = decay * bias[j] - g
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
        if l1_weights is None:
            for h in range(k):
                push = g * xi[h]
                a, b, c, d = eta_i[h], tau_i[h], eta_j[h], tau_j[h]
                xi[h] = decay * xi[h] + g * (a * d - c * b)
                eta_i[h] = decay * a + push * d
                eta_j[h] = decay * c - push * b
                b -= push * c
                d += push * a
                tau_i[h] = max(max(min(b + s, _ONE), b - s), _ZERO)
                tau_j[h] = max(max(min(d + s, _ONE), d - s), _ZERO)
        else:
            w_i, w_j = l1_weights[i], l1_weights[j]
            for h in range(k):
                push = g * xi[h]
                a, b, c, d = eta_i[h], tau_i[h], eta_j[h], tau_j[h]
                xi[h] = decay * xi[h] + g * (a * d - c * b)
                eta_i[h] = decay * a + push * d
                eta_j[h] = decay * c - push * b
                b -= push * c
                d += push * a
                s_i, s_j = s * w_i[h], s * w_j[h]
                tau_i[h] = max(max(min(b + s_i, _ONE), b - s_i), _ZERO)
                tau_j[h] = max(max(min(d + s_j, _ONE), d - s_j), _ZERO)
