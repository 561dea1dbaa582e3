"""Choose the number of factors and the length of vectors from the interactions, before a fit.

The length is found by a race: models of different lengths learn two epochs on a part of the users, a tenth of whose
interactions are held out, and rank these. After two epochs lengths are ordered as after a whole fit.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.types import Doubles
from sadrec.training.drawn import Positives
from sadrec.training.factors import Factors, initial_factors
from sadrec.training.samplers import balance
from sadrec.training.settings import Settings
from sadrec.training.spectrum import decompose, factors_above_chance, start_items, start_users
from sadrec.training.trainer import Trainer

MIDDLE, STEP = 2.0, 1.25
"""Lengths of the race are ``MIDDLE * STEP**k``."""
_SHORTEST, _LONGEST = -3, 4
TOLERANCE = 0.5
"""The loss of a shorter length than the best, in its standard errors, up to which it is taken."""
HELD_OUT, EPOCHS = 0.1, 2
USERS, JUDGED = 5000, 3000
"""A third of the users take part, or this number where that is more; the lists of at most ``JUDGED`` are judged."""
_CUT = 20  # of the lists
_SCORES = 1 << 22  # held at a time


class Survey(NamedTuple):
    """The settings that suit the data."""

    factors: int
    length: float


def survey(chosen: Any, settings: Settings, factors: int | None, length: float | None, threads: int) -> Survey:
    """Return the number of factors that the spectrum supports, and the length that wins the race, where not given.

    ``chosen`` has a row for each user; ``settings`` are those of the fit, whose factors and length do not count.
    """
    if factors is None:
        factors = factors_above_chance(chosen)
    return Survey(factors, _best_length(chosen, settings, factors, threads) if length is None else length)


def _best_length(chosen: Any, settings: Settings, factors: int, threads: int) -> float:
    """Climb from the middle of the ladder to the length with the best lists, then take a shorter one as good."""
    users = np.random.default_rng(0).permutation(chosen.shape[0])
    part = chosen[np.sort(users[: max(len(users) // 3, USERS)])]
    kept, held_out = _held_out(part)
    if not held_out.nnz:
        return MIDDLE
    spectrum = decompose(kept, min(factors, len(users), chosen.shape[1]))
    values = vars(settings) | {"factors": len(spectrum.values), "learn_rivals": False, "adaptive": False}
    values |= {"iterations": EPOCHS, "order_share": 0.0}
    rows = kept.indptr.astype(np.int64), kept.indices.astype(np.int32), None
    weights = balance(np.diff(rows[0]), settings.user_balance).astype(np.float32) if settings.user_balance else None
    gains: dict[int, Doubles] = {}

    def gain(step: int) -> float:
        """Return the mean nDCG of the lists of a length; 0 beyond the ends of the ladder, and where a fit diverges."""
        if not _SHORTEST <= step <= _LONGEST:
            return 0.0
        if step not in gains:
            one = Settings(**values | {"length": MIDDLE * STEP**step})
            model = initial_factors(kept.shape[0], kept.shape[1], one.factors, 0.0, False, one.bias, 0)
            start_items(model, spectrum, slice(None), one.length)
            start_users(model.users, spectrum, rows, one.length)
            trainer = Trainer(model, one, Positives(*rows, weights), num_threads=threads)
            for _ in range(EPOCHS):
                trainer.train_epoch(lambda: None)
            gains[step] = _gains(model, kept, held_out) if model.finite() else np.zeros(1)
        return float(gains[step].mean())

    best = 0
    for direction in (1, -1):
        while gain(best + direction) > gain(best):
            best += direction
    shorter = best
    while shorter > _SHORTEST:
        gain(shorter - 1)
        lost = gains[best] - gains[shorter - 1]  # of each user
        if lost.mean() > TOLERANCE * lost.std() / np.sqrt(len(lost)):
            break
        shorter -= 1
    return round(MIDDLE * STEP**shorter, 3)


def _gains(model: Factors, kept: Any, held_out: Any) -> Doubles:
    """Return the nDCG of the lists of users with held-out items."""
    from threadpoolctl import threadpool_limits

    users = np.flatnonzero(np.diff(held_out.indptr))
    if len(users) > JUDGED:
        users = np.sort(np.random.default_rng(0).permutation(users)[:JUDGED])
    discounts = 1 / np.log2(np.arange(2, _CUT + 2))
    ideal = np.cumsum(discounts)
    gains = np.zeros(len(users))
    step = max(_SCORES // kept.shape[1], 1)
    with threadpool_limits(1, "blas"):  # sums in another order have other bits
        for first in range(0, len(users), step):
            scores = model.users[users[first : first + step]] @ model.eta.T
            if model.bias is not None:
                scores += model.bias
            for row, user in enumerate(users[first : first + step].tolist()):
                own = scores[row]
                own[kept.indices[kept.indptr[user] : kept.indptr[user + 1]]] = -np.inf
                wanted = own[held_out.indices[held_out.indptr[user] : held_out.indptr[user + 1]]]
                ranks = np.count_nonzero(own > wanted[:, None], axis=1)
                gained = discounts[ranks[ranks < _CUT]].sum()
                gains[first + row] = gained / ideal[min(len(wanted), _CUT) - 1]
    return gains


def _held_out(chosen: Any) -> tuple[Any, Any]:
    """Split the choices of users with three or more at random."""
    lengths = np.diff(chosen.indptr)
    users = np.repeat(np.arange(chosen.shape[0]), lengths)
    out = (np.random.default_rng(0).random(chosen.nnz) < HELD_OUT) & (lengths[users] > 2)
    return _part(chosen, users, ~out), _part(chosen, users, out)


def _part(chosen: Any, users: NDArray[np.int64], kept: NDArray[np.bool_]) -> Any:
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users[kept], minlength=chosen.shape[0]))])
    return sp.csr_matrix((chosen.data[kept], chosen.indices[kept], indptr), chosen.shape)
