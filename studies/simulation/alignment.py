r"""Lay the factors of an estimate beside those of the truth.

A factor contributes :math:`\xi_{uh} (\eta_{ih} \tau_{jh} - \eta_{jh} \tau_{ih})` to the preferences, and they do not
change when

- the factors are permuted;
- xi and eta of a factor change their sign together;
- xi, eta and tau of a factor are multiplied by a, b and c with ``a b c = 1``;
- a multiple of tau is added to eta (a shear: BPR's "a constant may be added to all scores" is the case tau = 1).

The last two belong to a larger family: the wedge product of eta and tau is the same after any 2 x 2 matrix of
determinant 1. The rest of it (adding eta to tau) is left alone, because the l1 penalty, which holds most of tau at 1,
has already chosen there. So an aligned estimate has exactly the preferences it had before; alignment cannot improve it.

Where tau is 1 throughout, the factors may be rotated into each other as well: then only the preferences can be
compared, not the factors.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sadrec.ranking import Parameters
from sadrec.ranking.alignment import factors_of, match

Floats = NDArray[np.float64]


class HasFactors(Protocol):
    """What is aligned: a model, a simulation, or parameters."""

    @property
    def user_factors(self) -> NDArray[Any]:
        """Xi, (users, factors)."""
        ...

    @property
    def item_factors(self) -> NDArray[Any]:
        """H, (items, factors)."""
        ...

    @property
    def rival_factors(self) -> NDArray[Any] | None:
        """T, (items, factors); None means ones."""
        ...


@dataclass(frozen=True, eq=False)
class Alignment:
    """An estimate, its factors brought beside those of the truth.

    Attributes
    ----------
    parameters
        The aligned estimate; its preferences are those of the estimate.
    order
        Which factor of the estimate stands at each place.
    similarity
        Of each factor: the cosine between its contribution to the preferences in the estimate and in the truth.
    user_correlation, item_correlation, rival_correlation
        Correlation of all entries of Xi, H and T with the truth; NaN where one of the two is constant.
    """

    parameters: Parameters
    order: NDArray[np.int64]
    similarity: Floats
    user_correlation: float
    item_correlation: float
    rival_correlation: float


def align(estimate: HasFactors, truth: HasFactors) -> Alignment:
    """Permute, flip, scale and shear the factors of an estimate to lie beside those of the truth.

    Factors are paired so that the cosines of their contributions to the preferences add up to the most, which none of
    the transformations changes. Then each gets the lengths of tau and of eta across tau from its partner, as far as
    ``a b c = 1`` allows (what xi and eta disagree about is shared equally), and eta its component along tau. An item
    bias stays as it is.

    Parameters
    ----------
    estimate, truth
        Anything with ``user_factors``, ``item_factors`` and ``rival_factors`` over the same users and items, in the
        same order, with the same number of factors.

    Examples
    --------
    >>> from sadrec.data import simulate
    >>> truth = simulate("sim2", n=8, m=10, k=3)
    >>> order, signs = [2, 0, 1], [1, -1, -1]
    >>> shuffled = Parameters(
    ...     2 * truth.user_factors[:, order] * signs,
    ...     truth.item_factors[:, order] * signs / 2,
    ...     truth.rival_factors[:, order],
    ... )
    >>> aligned = align(shuffled, truth)
    >>> aligned.order
    array([1, 2, 0])
    >>> bool(np.allclose(aligned.parameters.item_factors, truth.item_factors))
    True
    """
    (xi, eta, tau), (xi0, eta0, tau0) = _factors(estimate), _factors(truth)
    if xi.shape != xi0.shape or eta.shape != eta0.shape:
        raise ValueError(
            f"an estimate with users and items {xi.shape} and {eta.shape} cannot be laid beside a truth with "
            f"{xi0.shape} and {eta0.shape}: they need the same users, items and number of factors"
        )
    order, similarity = match((xi0, eta0, tau0), (xi, eta, tau))
    xi, eta, tau = xi[:, order], eta[:, order], tau[:, order]

    c = _ratio(tau0, tau)
    tau = tau * c
    across, across0 = _across(eta, tau), _across(eta0, tau0)
    a = np.sqrt(_ratio(xi0, xi) / (_ratio(across0, across) * c))
    # a b c = 1 keeps the contribution, so the sign is a joint one: the one that suits xi and eta together.
    agree = _cosine_columns(xi, xi0) + _cosine_columns(across, across0)
    a = np.where(agree < 0, -a, a)
    xi, eta = xi * a, eta / (a * c)
    eta = eta + tau * (_along(eta0, tau) - _along(eta, tau))
    return Alignment(
        Parameters(xi, eta, tau, getattr(estimate, "item_bias", None)),
        order,
        similarity,
        _correlation(xi, xi0),
        _correlation(eta, eta0),
        _correlation(tau, tau0),
    )


def _factors(owner: HasFactors) -> tuple[Floats, Floats, Floats]:
    """Return Xi, H and T in double precision."""
    return factors_of(Parameters(owner.user_factors, owner.item_factors, owner.rival_factors))


def _ratio(wanted: Floats, given: Floats) -> Floats:
    """Return the factor that gives each column the wanted length; 1 where one of them has none."""
    long, short = np.linalg.norm(wanted, axis=0), np.linalg.norm(given, axis=0)
    result: Floats = np.divide(long, short, out=np.ones_like(long), where=(long > 0) & (short > 0))
    return result


def _along(eta: Floats, tau: Floats) -> Floats:
    """Return how much of each column of tau there is in that of eta."""
    square = (tau * tau).sum(axis=0)
    result: Floats = np.divide((eta * tau).sum(axis=0), square, out=np.zeros_like(square), where=square > 0)
    return result


def _across(eta: Floats, tau: Floats) -> Floats:
    """Return eta without its component along tau: what a shear cannot change."""
    return np.asarray(eta - tau * _along(eta, tau))


def _cosine_columns(one: Floats, other: Floats) -> Floats:
    """Return the cosine of each pair of columns; 0 where one has no length."""
    lengths = np.linalg.norm(one, axis=0) * np.linalg.norm(other, axis=0)
    result: Floats = np.divide((one * other).sum(axis=0), lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return result


def _correlation(one: Floats, other: Floats) -> float:
    """Return the correlation of all entries, NaN where one side is constant."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])
