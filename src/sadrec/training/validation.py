"""Validation figures on held-out triples, epoch by epoch."""

from collections.abc import Iterator
from itertools import pairwise
from math import exp, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.random import advance, below, hashed, nth_absent, stream_key
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.given import Pairs, drawn_pairs
from sadrec.training.sgd.pairwise import margin
from sadrec.training.sgd.samplers import RowStarts

# Negatives drawn for each held-out interaction: enough to compare epochs, and cheap compared with an epoch.
NEGATIVES = 4
_AT_ONCE = 2**16  # held-out interactions whose triples are drawn at once


class HeldOut:
    """Held-out interactions as triples against items that are not among what the user is known to have touched.

    What users touched in training and what is held out are given as ``(indptr, indices)`` with sorted rows. Iterating
    yields the triples in parts. They are drawn anew each time; the same seed gives the same triples.
    """

    def __init__(self, seen: RowStarts, held_out: RowStarts, items: int, seed: int):
        self._rows, self._items, self._seed = (seen, held_out), items, seed
        self._longest = sum(int(np.diff(start).max(initial=0)) for start, _ in self._rows)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The held-out data that the triples depend on."""
        return self._rows[1]

    def __iter__(self) -> Iterator[Pairs]:
        start, held = self._rows[1]
        bounds = np.searchsorted(start, np.arange(_AT_ONCE, len(held), _AT_ONCE))
        for first, last in pairwise((0, *np.unique(bounds).tolist(), len(start) - 1)):
            most = NEGATIVES * int(start[last] - start[first])
            given = *self._rows, first, last, self._longest, self._items
            yield drawn_pairs(draw_unknown, most, *given, np.uint64(self._seed), NEGATIVES)

    def all(self) -> Pairs:
        """Return all triples."""
        return Pairs.concatenate(list(self))


@kernel
def draw_unknown(
    seen: Any,
    held_out: Any,
    first: int,
    last: int,
    longest: int,
    items: int,
    seed: Any,
    negatives: int,
    user: Any,
    winner: Any,
    loser: Any,
) -> int:
    """Write ``negatives`` triples for each held-out interaction of some users and return their number."""
    (known_start, known_items), (held_start, held) = seen, held_out
    touched, count = np.empty(longest, np.int32), 0
    for u in range(first, last):
        if held_start[u] == held_start[u + 1]:
            continue
        size = join_rows(
            known_items[known_start[u] : known_start[u + 1]], held[held_start[u] : held_start[u + 1]], touched
        )
        run = touched[:size]
        free = items - size
        if free <= 0:
            continue
        state = stream_key(seed, u, 0, 4)
        for t in range(held_start[u], held_start[u + 1]):
            for _ in range(negatives):
                state = advance(state)
                user[count] = u
                winner[count] = held[t]
                loser[count] = nth_absent(run, below(hashed(state), free))
                count += 1
    return count


@kernel
def join_rows(one: Any, other: Any, both: Any) -> int:
    """Merge two sorted rows without repetitions, and return the length."""
    i, j, size = 0, 0, 0
    while i < one.shape[0] or j < other.shape[0]:
        first = j == other.shape[0] or (i < one.shape[0] and one[i] <= other[j])
        value = one[i] if first else other[j]
        both[size] = value
        size += 1
        while i < one.shape[0] and one[i] == value:
            i += 1
        while j < other.shape[0] and other[j] == value:
            j += 1
    return size


def validation_figures(factors: Factors, pairs: Pairs | HeldOut) -> dict[str, float]:
    """Return the mean log likelihood of the triples and the share that is ordered rightly (equals count half)."""
    l1 = None if factors.tau is None else 0.0
    sums = np.zeros(3)
    for part in [pairs] if isinstance(pairs, Pairs) else pairs:
        given = part.user, part.winner, part.loser, part.weight
        score_pairs(*given, factors.users, factors.items, factors.bias, l1, sums)
    likelihood, right, weight = sums.tolist()
    return {"validation_log_likelihood": likelihood / weight, "validation_accuracy": right / weight}


@kernel
def score_pairs(
    users: Any, winners: Any, losers: Any, weights: Any, xi: Any, items: Any, bias: Any, l1: Any, sums: Any
) -> None:
    """Add to ``sums`` the weighted sums of log sigmoid(x), of 1(x > 0) + 1(x = 0) / 2, and of the weights."""
    likelihood, right, total = sums[0], sums[1], sums[2]
    for t in range(users.shape[0]):
        weight = 1.0
        if weights is not None:
            weight = float(weights[t])
        i, j = winners[t], losers[t]
        x = float(margin(xi[users[t]], items[i], items[j], l1))
        if bias is not None:
            x += bias[i] - bias[j]
        likelihood += weight * (min(x, 0.0) - log1p(exp(-abs(x))))
        if x > 0:
            right += weight
        elif x == 0:
            right += 0.5 * weight
        total += weight
    sums[0], sums[1], sums[2] = likelihood, right, total
