"""Intransitivity: the share of a user's preferences that no scores can explain.

For a user, the margins X are the sum of a part that scores explain, ``s_i - s_j`` with s the mean margins, and a rest R
that runs in cycles (the curl of the flow X). The two are orthogonal, so ``|R|^2 / |X|^2`` is the share of the
preferences that no ranking accounts for. With C the matrix that takes column means away, ``R = C X C``, hence the rest
is the same sum of wedge products as X, of centred columns:

``X = sum_h xi_h (eta^h tau^h' - tau^h eta^h')``, ``R = sum_h xi_h (C eta^h (C tau^h)' - C tau^h (C eta^h)')``,

and ``|R|^2 = 2 xi' [(H'H * T'T) - (H'T * T'H)] xi`` for centred H and T (``*`` elementwise): factors squared per user,
for any number of items. A bias is a factor with tau = 1, whose centred column is 0: it has no part in R.

This is not a count of cycles: R can be there without one sign out of order.
See :func:`~sadrec.ranking.cycles.cyclic_triads` for that.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.check import whole
from sadrec._core.types import Doubles
from sadrec.ranking.parameters import Parameters, User, user_vector, user_vectors

_ROUNDING = 1e-13


def intransitivity(parameters: Parameters, users: User | ArrayLike | None = None) -> Doubles:
    """Compute the share of users' preferences that no scores can explain: from 0 (a ranking says it all) to 1.

    One number per user, without an axis for a single user. It is 0 for BPR, and for a user without preferences.

    >>> rock_paper_scissors = Parameters(np.ones((1, 3)), np.eye(3), np.roll(np.eye(3), -1, axis=0))
    >>> intransitivity(rock_paper_scissors)
    array([1.])
    """
    vectors, single = _vectors(parameters, users)
    form, scores = _forms(parameters)
    rest = _quadratic(form, vectors)
    share = _divide(rest, rest + parameters.n_items * _quadratic(scores, vectors))
    return np.asarray(share[0] if single else share)


def share_of_margins(margins: Doubles) -> float:
    """Compute the share of anti-symmetric margins, in squares, that no scores can explain.

    >>> share_of_margins(np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]]))
    1.0
    """
    total = float((margins**2).sum())
    explained = 2 * len(margins) * float((margins.mean(axis=1) ** 2).sum())
    return max(1 - explained / total, 0.0) if total else 0.0


@dataclass(frozen=True, eq=False)
class ItemCounterEffects:
    """Which items take part in what no scores can explain.

    >>> ItemCounterEffects(np.array([0.2, 0.1]), np.array([0.8, 0.2]))
    ItemCounterEffects of 2 items: largest 0.2 (item 0, 80 % of all)
    """

    size: Doubles = field(repr=False)  # root mean square of what scores leave unexplained of the item's margins
    share: Doubles = field(repr=False)  # the item's part of the sum of squares; they add up to 1, or are all 0

    def strongest(self, N: int = 10) -> NDArray[np.int64]:
        """Return the positions of the N items with the largest counter-effect, largest first."""
        return np.argsort(-self.size, kind="stable")[: whole(N, "N")]

    def __repr__(self) -> str:
        if not self.size.size:
            return "ItemCounterEffects of 0 items"
        first = int(self.strongest(1)[0])
        return (
            f"ItemCounterEffects of {self.size.size} items: largest {self.size[first]:.3g} "
            f"(item {first}, {100 * self.share[first]:.3g} % of all)"
        )


def item_counter_effects(parameters: Parameters, users: User | ArrayLike | None = None) -> ItemCounterEffects:
    """Measure how much of each item's margins no scores can explain: the norm of its row of R."""
    vectors, _ = _vectors(parameters, users)
    items = parameters.n_items
    if not len(vectors) or not items:
        return ItemCounterEffects(np.zeros(items), np.zeros(items))
    moments = vectors.T @ vectors / len(vectors)
    eta, tau = (side.astype(np.float64) for side in parameters.extend_items())
    rest = _row_norms(eta - eta.mean(0), tau - tau.mean(0), moments)
    return ItemCounterEffects(np.sqrt(rest / items), _divide(rest, np.full(items, rest.sum())))


def _forms(parameters: Parameters) -> tuple[Doubles, Doubles]:
    """Return quadratic forms in a user's vector: half the squared size of R, and of the scores' part per item.

    Without rival factors (BPR) there is no R, and both are 0.
    """
    if parameters.rival_factors is None:
        none = np.zeros((parameters.n_factors + (parameters.item_bias is not None),) * 2)
        return none, none
    eta, tau = (side.astype(np.float64) for side in parameters.extend_items())
    mean_eta, mean_tau = parameters.mean_items()
    scores = eta * mean_tau - tau * mean_eta
    eta -= mean_eta
    tau -= mean_tau
    cross = eta.T @ tau
    return (eta.T @ eta) * (tau.T @ tau) - cross * cross.T, scores.T @ scores


def _vectors(parameters: Parameters, users: User | ArrayLike | None) -> tuple[Doubles, bool]:
    """Return users' vectors with a 1 for the bias, in double precision, and whether a single user was asked about."""
    given = None if users is None else np.asarray(users)
    single = given is not None and given.ndim == (1 if given.dtype.kind == "f" and given.size else 0)
    if single and given is not None:
        given = user_vector(parameters, given)[None, :]
    return user_vectors(parameters, given).astype(np.float64), single


def _quadratic(form: Doubles, vectors: Doubles) -> Doubles:
    """Return v' form v for every row v, at least 0; 0 where only rounding errors of cancelling terms are left."""
    value = np.einsum("uh,uh->u", vectors @ form, vectors)
    terms = np.einsum("uh,uh->u", np.abs(vectors) @ np.abs(form), np.abs(vectors))
    return np.where(value > _ROUNDING * terms, value, 0.0)


def _row_norms(eta: Doubles, tau: Doubles, moments: Doubles) -> Doubles:
    """Return the mean over users of the squared norm of each item's row of margins."""
    by_eta = np.einsum("ih,ih->i", eta @ (moments * (tau.T @ tau)), eta)
    by_tau = np.einsum("ih,ih->i", tau @ (moments * (eta.T @ eta)), tau)
    between = np.einsum("ih,ih->i", eta @ (moments * (tau.T @ eta)), tau)
    return np.asarray(np.maximum(by_eta + by_tau - 2 * between, 0.0))


def _divide(part: Doubles, whole: Doubles) -> Doubles:
    """Return part / whole, 0 where both are 0."""
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole != 0)
