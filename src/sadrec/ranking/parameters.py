"""The parameters of a model, the users and items that functions of this folder accept, and mean margins.

The mean margin of an item against a set of rivals is linear in what the item is,

``mean_j x_uij = xi . (eta_i * mean_J(tau) - tau_i * mean_J(eta)) + b_i - mean_J(b)``,

so one inner product per item ranks a catalogue, and no two items tie by accident. Any index for nearest neighbours can
serve such vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.check import positions
from sadrec._core.types import Doubles, Positions

_CHUNK, _BLOCK = 1 << 15, 4096
"""Numbers gathered, and items worked on, at a time: they stay near the processor."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """The parameters of a model: three factor matrices and, possibly, an item bias.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) + b_i - b_j``

    Attributes
    ----------
    user_factors
        Xi, (users, factors).
    item_factors
        H, (items, factors): how strongly an item appeals.
    rival_factors
        T, (items, factors), not negative: what an item does to its rivals. ``None`` means all ones, which is BPR.
    item_bias
        b, (items,). ``None`` means zero.
    user_mean
        (factors,): what is expected of a user without data. ``None`` means the mean of all users.

    Examples
    --------
    >>> Parameters(np.ones((2, 3)), np.ones((5, 3)))
    Parameters(users=2, items=5, factors=3, rival_factors=no, item_bias=no)
    """

    user_factors: NDArray[Any]
    item_factors: NDArray[Any]
    rival_factors: NDArray[Any] | None = None
    item_bias: NDArray[Any] | None = None
    user_mean: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.item_factors.ndim != 2:
            raise ValueError(f"item_factors must be a matrix (items, factors), not of shape {self.item_factors.shape}")
        items, factors = self.item_factors.shape
        if self.user_factors.ndim != 2 or self.user_factors.shape[1] != factors:
            raise ValueError(
                f"user_factors must be a matrix (users, {factors}) to match item_factors, "
                f"not of shape {self.user_factors.shape}" + self._transposed()
            )
        if self.rival_factors is not None and self.rival_factors.shape != (items, factors):
            raise ValueError(
                f"rival_factors must have the shape of item_factors, {(items, factors)}, "
                f"not {self.rival_factors.shape}; leave it out (None) for all ones"
            )
        if self.item_bias is not None and self.item_bias.shape != (items,):
            raise ValueError(f"item_bias must hold one number per item, shape {(items,)}, not {self.item_bias.shape}")
        if self.user_mean is not None and self.user_mean.shape != (factors,):
            raise ValueError(
                f"user_mean must hold one number per factor, shape {(factors,)}, not {self.user_mean.shape}"
            )

    def _transposed(self) -> str:
        """Return a remedy where the matrices have a row for each factor, as the paper writes them."""
        transposed = self.user_factors.shape[:1] == self.item_factors.shape[:1]
        return "; the first axes agree: transpose matrices that have a row for each factor" if transposed else ""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.user_factors.shape[0])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.item_factors.shape[0])

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return int(self.item_factors.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that products of the factors are computed in."""
        return np.result_type(self.user_factors.dtype, self.item_factors.dtype, np.float32)

    def extended(self) -> "Parameters":
        """Return equal parameters without special cases: rival factors in full, the bias as the last factor.

        A bias is a factor with xi = 1 and tau = 1. Whatever holds for
        ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih)`` then holds for every model.
        """
        return Parameters(self.extend_users(self.user_factors), *self.extend_items())

    def extend_users(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """Return users' vectors, (users, factors), with a last column of ones if there is a bias."""
        if self.item_bias is None:
            return vectors
        answer = np.ones((len(vectors), self.n_factors + 1), vectors.dtype)
        answer[:, :-1] = vectors
        return answer

    def extend_items(self, items: NDArray[Any] | slice = slice(None)) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return eta and tau of some items as :meth:`extended` has them."""
        eta = self.item_factors[items]
        tau = None if self.rival_factors is None else self.rival_factors[items]
        if self.item_bias is not None:
            eta = np.hstack([eta, self.item_bias[items, None]])
            tau = None if tau is None else np.hstack([tau, np.ones((len(tau), 1), tau.dtype)])
        # Ones that take no memory.
        return eta, np.broadcast_to(np.ones((), eta.dtype), eta.shape) if tau is None else tau

    def mean_items(self, items: NDArray[Any] | None = None) -> tuple[Doubles, Doubles]:
        """Return the means of eta and tau over some items, or all, as :meth:`extended` has them; 0 over no items."""
        if items is None and not self.item_factors.flags.writeable:
            return self._catalogue_means  # nobody can change what they are computed from
        return self._mean_items(slice(None) if items is None else items)

    @cached_property
    def _catalogue_means(self) -> tuple[Doubles, Doubles]:
        return self._mean_items(slice(None))

    def _mean_items(self, items: NDArray[Any] | slice) -> tuple[Doubles, Doubles]:
        def mean(values: NDArray[Any]) -> Doubles:
            chosen = values[items]
            return np.asarray(chosen.sum(axis=0, dtype=np.float64) / max(1, len(chosen)))

        eta = mean(self.item_factors)
        tau = np.ones(eta.size) if self.rival_factors is None else mean(self.rival_factors)
        if self.item_bias is None:
            return eta, tau
        return np.append(eta, mean(self.item_bias)), np.append(tau, 1.0)

    def wedge(
        self, items: NDArray[Any], rivals: NDArray[Any], precision: type[np.floating] = np.float64
    ) -> NDArray[Any]:
        """Return ``eta_i tau_j - eta_j tau_i`` for pairs of positions, (pairs, factors), and last ``b_i - b_j``.

        Its product with a user's vector, which has a 1 for the bias, is ``x_uij``. Exchanging items and rivals changes
        the sign and nothing else, in double precision to the last bit. There is no last column without a bias.
        """
        eta, tau, bias = self.item_factors, self.rival_factors, self.item_bias
        factors = self.n_factors
        # Products of doubles that hold floats are exact, and both sides of the difference are rounded alike whichever
        # item comes first.
        parts = np.empty((len(items), factors + (bias is not None)), precision)
        step = max(1, _CHUNK // factors)
        for start in range(0, len(items), step):
            i, j, part = items[start : start + step], rivals[start : start + step], parts[start : start + step]
            if tau is None:
                np.subtract(eta.take(i, 0), eta.take(j, 0), out=part[:, :factors], dtype=precision)
            else:
                np.multiply(eta.take(i, 0), tau.take(j, 0), out=part[:, :factors], dtype=precision)
                part[:, :factors] -= np.multiply(eta.take(j, 0), tau.take(i, 0), dtype=precision)
        if bias is not None:
            np.subtract(bias[items], bias[rivals], out=parts[:, factors], dtype=precision)
        return parts

    def __repr__(self) -> str:
        return (
            f"Parameters(users={self.n_users}, items={self.n_items}, factors={self.n_factors}, "
            f"rival_factors={'no' if self.rival_factors is None else 'yes'}, "
            f"item_bias={'no' if self.item_bias is None else 'yes'})"
        )


def average_user(parameters: Parameters) -> Doubles:
    """Return the vector of a user without data: the prior mean, or the mean of all users."""
    if parameters.user_mean is not None:
        return parameters.user_mean.astype(np.float64)
    return np.asarray(parameters.user_factors.sum(axis=0, dtype=np.float64) / max(1, parameters.n_users))


User = int | np.integer[Any] | NDArray[Any] | Sequence[float]
"""A user: the position of a row of ``user_factors``, or, for a new user, a vector of floats, one per factor."""


class HasItems(Protocol):
    """Anything with items."""

    @property
    def n_items(self) -> int:
        """Number of items."""


def item_positions(parameters: HasItems, items: ArrayLike | None, name: str = "items") -> Positions:
    """Return a 1-D array of item positions; ``None`` stands for the whole catalogue."""
    if items is None:
        return np.arange(parameters.n_items)
    array = positions(items, parameters.n_items, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a list of positions, not an array of shape {array.shape}")
    return array


def is_vector(user: object) -> bool:
    """Whether ``user`` is a vector of factors, not a position or positions."""
    return np.asarray(user).dtype.kind == "f"


def user_vector(parameters: Parameters, user: User) -> NDArray[Any]:
    """Return xi, the vector of a user given by position or, for a new user, by the vector itself."""
    if not is_vector(user):
        position = positions(user, parameters.n_users, "user")
        if position.ndim != 0 or position.size != 1:
            raise ValueError(f"user must be one position or one vector of {parameters.n_factors} floats, not {user!r}")
        vector: NDArray[Any] = parameters.user_factors[int(position)]
        return vector
    vector = np.asarray(user)
    if vector.shape != (parameters.n_factors,):
        raise ValueError(
            f"a user's vector must hold one float per factor, shape {(parameters.n_factors,)}, not {vector.shape}"
        )
    with np.errstate(over="ignore"):
        vector = vector.astype(parameters.dtype, copy=False)
    if not np.isfinite(vector).all():
        raise ValueError("a user's vector must be finite, but this one holds NaN or infinity")
    return vector


# -- mean margins as inner products ----------------------------------------------------------------------------------


def item_vectors(parameters: Parameters, rivals: ArrayLike | None = None) -> NDArray[Any]:
    """Compute one vector per item whose inner product with a user's vector is the item's mean margin over ``rivals``.

    By default rivals are the whole catalogue, the item itself included (its margin against itself is 0). A last column
    stands for the bias if there is one: :func:`user_vectors` has a 1 there.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> user_vectors(model) @ item_vectors(model).T
    array([[ 0.5, -0.5],
           [-1.5,  1.5]])
    """
    mean_eta, mean_tau = (mean.astype(parameters.dtype) for mean in parameters.mean_items(_rivals(parameters, rivals)))
    answer = np.empty((parameters.n_items, mean_eta.size), parameters.dtype)
    for start in range(0, parameters.n_items, _BLOCK):
        part = slice(start, start + _BLOCK)
        eta, tau = parameters.extend_items(part)
        np.multiply(eta, mean_tau, out=answer[part])
        answer[part] -= tau * mean_eta
    return answer


def user_vectors(parameters: Parameters, users: ArrayLike | None = None) -> NDArray[Any]:
    """Compute the vectors of users, given as positions or as vectors, that go with :func:`item_vectors`."""
    if users is None:
        vectors = parameters.user_factors
    else:
        given = np.asarray(users)
        if given.dtype.kind == "f" and given.size:
            if given.ndim != 2 or given.shape[1] != parameters.n_factors:
                raise ValueError(
                    f"users' vectors must be a matrix (users, {parameters.n_factors}), not of shape {given.shape}"
                )
            vectors = given
        else:
            vectors = parameters.user_factors[np.atleast_1d(positions(given, parameters.n_users, "users"))]
    return np.ascontiguousarray(parameters.extend_users(vectors), parameters.dtype)


def nearest_bpr(parameters: Parameters) -> Parameters:
    """Return the parameters with T = 1 whose margins are nearest: of every margin, the part that scores explain.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[1.0, 1.0], [1.0, 2.0]]))
    >>> nearest_bpr(model).item_factors
    array([[ 0.5, -1.5],
           [-0.5,  1.5]])
    """
    k = parameters.n_factors
    vectors = item_vectors(parameters)
    bias = None if parameters.item_bias is None else vectors[:, k]
    return replace(parameters, item_factors=vectors[:, :k], rival_factors=None, item_bias=bias)


def mean_margins(
    parameters: Parameters, user: User, items: ArrayLike | None, rivals: ArrayLike | None = None
) -> Doubles:
    """Compute the mean margin of items against a set of rivals, in double precision."""
    xi = parameters.extend_users(user_vector(parameters, user)[None, :])[0].astype(np.float64)
    chosen = item_positions(parameters, items)
    mean_eta, mean_tau = parameters.mean_items(_rivals(parameters, rivals))
    strength, against = xi * mean_tau, xi * mean_eta
    x = np.empty(chosen.size)
    for start in range(0, chosen.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        eta, tau = parameters.extend_items(chosen[part])
        x[part] = eta @ strength
        x[part] -= tau @ against if parameters.rival_factors is not None else against.sum()
    return x


def _rivals(parameters: Parameters, rivals: ArrayLike | None) -> Positions | None:
    """Return positions of rivals, of which there must be one at least, or None for all."""
    if rivals is None:
        return None
    j = item_positions(parameters, rivals, "rivals")
    if not j.size:
        raise ValueError("rivals is empty, but a mean margin needs at least one rival; None stands for all items")
    return j
