"""Parameters for a new item, from who liked it.

With all else fixed, x is linear in the item's eta, tau and bias together: a logistic regression again, with the
penalties of training (l2 on eta and the bias, l1 on tau around 1, tau >= 0). As in training the item plays both parts.
It wins against negatives of the users who liked it, and it is a negative for the liked items of all other users, as
often as a uniform draw among the items a user has not liked brings it up: without the second part a new item would look
better than any old one.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sadrec._check import positions, whole
from sadrec._sparse import as_csr
from sadrec._types import Doubles, Positions
from sadrec.ranking.fold_in import draw, even_points
from sadrec.ranking.logistic import check_regularization, maximise, maximise_sparse
from sadrec.ranking.parameters import Parameters

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class NewItem:
    """The parameters of a new item."""

    item_factors: Doubles = field(repr=False)  # eta, (factors,)
    rival_factors: Doubles = field(repr=False)  # tau, (factors,): 1 wherever the data do not ask for more
    item_bias: float  # 0 for a model without biases
    covariance: Doubles = field(repr=False)  # of eta, and of the bias if there is one, given tau (Laplace)
    users: int  # how many users liked it

    def __repr__(self) -> str:
        size = float(np.linalg.norm(self.item_factors))
        return (
            f"NewItem(vector of {self.item_factors.size} factors and length {size:.3g}, "
            f"item_bias={self.item_bias:.3g}, users={self.users})"
        )

    def added_to(self, parameters: Parameters) -> Parameters:
        """Return parameters with this item after all others."""
        dtype = parameters.item_factors.dtype
        eta = np.vstack([parameters.item_factors, self.item_factors.astype(dtype)])
        tau, bias = parameters.rival_factors, parameters.item_bias
        if tau is not None:
            tau = np.vstack([tau, self.rival_factors.astype(tau.dtype)])
        if bias is not None:
            bias = np.append(bias, bias.dtype.type(self.item_bias))
        return replace(parameters, item_factors=eta, rival_factors=tau, item_bias=bias)


def fold_in_item(
    parameters: Parameters,
    users: ArrayLike,
    liked: "csr_matrix",
    *,
    regularization: float = 0.01,
    rival_regularization: float = 0.001,
    pairs: int = 8192,
    centre: tuple[Doubles, Doubles, float] | None = None,
) -> NewItem:
    """Compute the parameters of a new item from who liked it, at least one user.

    ``liked`` is what all users liked of the known items, a row per user. ``pairs`` is how many pairs to use for each of
    the item's two parts. ``centre`` are eta, tau and the bias that features predict: the penalties hold the item to
    them, in place of 0 and 1.
    """
    likers = np.unique(positions(users, parameters.n_users, "users"))
    if not likers.size:
        raise ValueError("users is empty, but a new item needs at least one user who liked it")
    if liked.shape != (parameters.n_users, parameters.n_items):
        raise ValueError(
            f"liked must have a row per user and a column per item, shape {(parameters.n_users, parameters.n_items)}, "
            f"not {liked.shape}"
        )
    check_regularization(regularization)
    if not 0 <= rival_regularization < np.inf:
        raise ValueError(f"rival_regularization must be a number of at least 0, not {rival_regularization!r}")
    pairs = whole(pairs, "pairs", least=1)
    known = as_csr(liked, "liked").astype(bool).astype(np.float64)
    sizes = np.diff(known.indptr).astype(np.int64)

    # As the winner: each of these users once per epoch, against negatives spread over what the user has not liked.
    each = min(parameters.n_items, max(1, pairs // likers.size))
    winner_users = np.repeat(likers, each)
    negatives = draw(winner_users.size, parameters.n_items)
    unknown = np.asarray(known[winner_users, negatives]).ravel() == 0
    winner_users, negatives = winner_users[unknown], negatives[unknown]
    winner_weight = 1.0 / np.bincount(winner_users, minlength=parameters.n_users)[winner_users]

    # As the negative: user by user, each liked item brings the new one up with probability 1 / (items not liked).
    others = np.setdiff1d(np.flatnonzero(sizes > 0), likers, assume_unique=True)
    meetings = sizes[others] / np.maximum(parameters.n_items + 1 - sizes[others], 1)
    total = float(meetings.sum())
    drawn = others[draw(pairs if total else 0, others.size, shares=meetings / total if total else None)]
    winners = known.indices[known.indptr[drawn] + (even_points(drawn.size, 2**0.5) * sizes[drawn]).astype(np.int64)]
    loser_weight = np.full(drawn.size, total / max(1, drawn.size))

    design, offset = _design(parameters, winner_users, negatives)
    against_design, against_offset = _design(parameters, drawn, winners)
    factors, width = parameters.n_factors, design.shape[1]
    own = factors + (parameters.item_bias is not None)
    design, offset = np.vstack([design, -against_design]), np.concatenate([offset, -against_offset])
    weight = np.concatenate([winner_weight, loser_weight])
    touched = likers.size + total
    tau_part = np.arange(width) >= own
    penalty = np.where(tau_part, 0.0, regularization * touched)
    middle = np.zeros(width)
    if centre is not None:
        eta, tau, bias = centre
        middle[:factors], middle[factors:own], middle[own:] = eta, bias, (tau - 1)[: width - own]
        offset = offset + design @ middle
    if width > own:
        l1, lowest = np.where(tau_part, rival_regularization * touched, 0.0), np.where(tau_part, -1.0 - middle, -np.inf)
        estimate = maximise_sparse(design, offset, weight, penalty, l1, lowest)
    else:
        estimate = maximise(design, offset, weight, penalty)
    vector = middle + estimate.vector
    return NewItem(
        vector[:factors],
        1.0 + vector[own:] if width > own else np.ones(factors),
        float(vector[factors]) if own > factors else 0.0,
        estimate.covariance[:own, :own],
        int(likers.size),
    )


def _design(parameters: Parameters, users: Positions, rivals: Positions) -> tuple[Doubles, Doubles]:
    """Return what eta, bias and tau - 1 of the new item are multiplied with in its margins, and what is added."""
    xi = parameters.extend_users(parameters.user_factors[users].astype(np.float64))
    eta, tau = parameters.extend_items(rivals)
    against = xi * eta
    parts = [xi * tau]
    if parameters.rival_factors is not None:
        parts.append(-against[:, : parameters.n_factors])
    return np.hstack(parts), -against.sum(axis=1)
