"""Simulated comparisons whose truth is known: the paper's simulation study, at any size."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sadrec._core import check
from sadrec._core.types import Doubles
from sadrec.data.comparisons import Comparisons

Scenario = Literal["sim1", "sim2"]
DrawnPairs = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Rows of users and of the two items that each compares."""

SHARE_OFF_ONE = 0.14
"""Share of T that is not 1 in the second scenario."""
MAX_TENSOR_BYTES = 4 * 2**30
"""Largest tensor X that is made."""
MAX_COMPARISONS = 200_000_000
"""Largest number of comparisons that are simulated."""

# Each kind of draw has a stream of its own: the truth does not depend on what is observed of it, nor the
# observations on what is missing.
_TRUTH, _PAIRS, _OUTCOMES, _MISSING = range(4)


@dataclass(frozen=True, eq=False)
class Simulation:
    """Comparisons and the parameters they came from.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih)``, and user u prefers i to j with probability
    ``sigmoid(x_uij)``. Users and items have the ids 0, 1, ...

    Attributes
    ----------
    comparisons
        What was observed.
    user_factors, item_factors, rival_factors
        Xi (users, factors), H and T (items, factors).
    """

    comparisons: Comparisons
    user_factors: Doubles
    item_factors: Doubles
    rival_factors: Doubles

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of users, items and factors."""
        return (len(self.user_factors), len(self.item_factors), self.user_factors.shape[1])

    def __repr__(self) -> str:
        users, items, factors = self.shape
        return f"Simulation({users} users x {items} items, {factors} factors, {len(self.comparisons):,} comparisons)"

    @cached_property
    def X(self) -> Doubles:
        """The preferences of all users, (users, items, items), computed at the first access.

        Raises
        ------
        ValueError
            When it would not fit; :meth:`margins` and :meth:`preference` give parts of it.
        """
        users, items, _ = self.shape
        size = users * items**2 * 8
        if size > MAX_TENSOR_BYTES:
            raise ValueError(
                f"X of {users} users and {items} items would take {size / 2**30:,.1f} GiB, more than "
                f"{MAX_TENSOR_BYTES / 2**30:.0f}: use margins(user), a user at a time, or "
                "preference(user, item, rival) for the entries you need"
            )
        tensor = np.empty((users, items, items))
        for user in range(users):
            tensor[user] = self.margins(user)
        tensor.flags.writeable = False
        return tensor

    def margins(self, user: int) -> Doubles:
        """Return the preferences of one user, (items, items)."""
        half = (self.item_factors * self.user_factors[user]) @ self.rival_factors.T
        return np.asarray(half - half.T)

    def preference(self, user: Any, item: Any, rival: Any) -> Doubles:
        """Return ``x_uij`` for rows of users, items and rivals; arrays broadcast."""
        return _preference(self.user_factors, self.item_factors, self.rival_factors, user, item, rival)


def simulate(
    scenario: Scenario = "sim2",
    n: int = 20,
    m: int = 50,
    k: int = 5,
    missing: float = 0.0,
    seed: int = 0,
    *,
    comparisons_per_user: int | None = None,
    common: float = 0.0,
) -> Simulation:
    """Simulate people who compare items, as in the paper's simulation study.

    Xi and H are uniform on [-2, 2]. In "sim1" T is 1 throughout, and the truth is a BPR model; in "sim2"
    14 % of its entries are 0.01 or 5. Every user compares every pair of items once, and prefers i to j with
    probability ``sigmoid(x_uij)``.

    Parameters
    ----------
    scenario
        "sim1" or "sim2".
    n, m, k
        Number of users, items and factors.
    missing
        Share of the comparisons left out, at random, in [0, 1). With the same seed, what is missing at a
        smaller share is missing at a larger one too, and truth and outcomes are the same.
    seed
        Seed of everything.
    comparisons_per_user
        Draw this many different pairs for each user instead of taking all of them: for many items.
    common
        What the tastes of all users have in common, 0 or more, added to every entry of Xi: it makes some items popular.

    Examples
    --------
    >>> simulation = simulate("sim2", missing=0.5, seed=1)
    >>> simulation.comparisons
    Comparisons(12,250 of 20 users over 50 items)
    >>> simulation.X.shape, float((simulation.rival_factors == 1).mean())
    ((20, 50, 50), 0.86)
    """
    check.one_of(scenario, "scenario", get_args(Scenario))
    for name, value, least in (("n", n, 1), ("m", m, 2), ("k", k, 1)):
        check.whole(value, name, least)
    rng = _stream(seed, _TRUTH)
    xi, eta = rng.random((n, k)) * 4 - 2 + check.number(common, "common"), rng.random((m, k)) * 4 - 2
    tau = np.ones((m, k))
    if scenario == "sim2":
        chosen = np.argsort(rng.random(m * k), kind="stable")[: round(SHARE_OFF_ONE * m * k)]
        tau.ravel()[chosen] = np.where(rng.random(len(chosen)) < 0.5, 0.01, 5.0)
    pairs = _draw_pairs(n, m, comparisons_per_user, seed)
    won = np.empty(len(pairs[0]), dtype=np.bool_)
    rng = _stream(seed, _OUTCOMES)
    for start in range(0, len(won), 2**18):
        part = slice(start, start + 2**18)
        x = _preference(xi, eta, tau, *(rows[part] for rows in pairs))
        with np.errstate(over="ignore"):
            won[part] = rng.random(len(x)) < 1 / (1 + np.exp(-x))
    return Simulation(_compare(pairs, won, (n, m), missing, seed), xi, eta, tau)


def _draw_pairs(n: int, m: int, per_user: int | None, seed: int) -> DrawnPairs:
    pairs = m * (m - 1) // 2
    each = pairs if per_user is None else check.whole(per_user, "comparisons_per_user", 1, pairs)
    if n * each > MAX_COMPARISONS:
        raise ValueError(
            f"{n} users with {each:,} comparisons each are {n * each:,}, more than {MAX_COMPARISONS:,}: "
            "pass a smaller comparisons_per_user"
        )
    user = np.repeat(np.arange(n, dtype=np.int32), each)
    if per_user is None:
        one, other = np.triu_indices(m, 1)
        return user, np.tile(one.astype(np.int32), n), np.tile(other.astype(np.int32), n)
    rng = _stream(seed, _PAIRS)
    drawn = np.concatenate([rng.choice(pairs, size=each, replace=False) for _ in range(n)])
    # Pair number p, counted by the larger item: p = other (other - 1) / 2 + one, with one < other.
    other = ((1 + np.sqrt(1 + 8 * drawn.astype(np.float64))) / 2).astype(np.int64)
    other -= other * (other - 1) // 2 > drawn
    other += other * (other + 1) // 2 <= drawn
    return user, (drawn - other * (other - 1) // 2).astype(np.int32), other.astype(np.int32)


def _compare(
    pairs: DrawnPairs, won: NDArray[np.bool_], shape: tuple[int, int], missing: float, seed: int
) -> Comparisons:
    """Make comparisons of the second and third of ``pairs`` by the users that come first, leaving a share out."""
    user, one, other = pairs
    kept = len(user) - round(check.share(missing, "missing") * len(user))
    if kept == 0:
        raise ValueError(f"no comparison is left of {len(user)} with missing={missing}")
    if kept < len(user):
        order = np.argsort(_stream(seed, _MISSING).random(len(user)), kind="stable")
        keep = np.sort(order[:kept])
        user, one, other, won = user[keep], one[keep], other[keep], won[keep]
    return Comparisons.from_indices(
        user, np.where(won, one, other), np.where(won, other, one), users=np.arange(shape[0]), items=np.arange(shape[1])
    )


def _preference(xi: Doubles, eta: Doubles, tau: Doubles, user: Any, item: Any, rival: Any) -> Doubles:
    difference = eta[item] * tau[rival] - eta[rival] * tau[item]
    return np.asarray((xi[user] * difference).sum(axis=-1))


def _stream(seed: int, kind: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([check.whole(seed, "seed"), kind])))
