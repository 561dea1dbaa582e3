"""How well the model does on triples it is not trained on, epoch by epoch."""

from math import exp, log1p
from typing import Any

import numpy as np

from sadrec._kernel import kernel
from sadrec._random import advance, below, hashed, nth_absent, stream_key
from sadrec.training.factors import Factors
from sadrec.training.given import Pairs, drawn_pairs
from sadrec.training.samplers import Rows
from sadrec.training.step import margin

# Negatives drawn for each held-out interaction: enough to compare epochs, cheap beside an epoch.
NEGATIVES = 4


def held_out_pairs(known: Rows, held_out: Rows, items: int, seed: int) -> Pairs:
    """Turn held-out interactions into triples against items that are not among what the user is known to have touched.

    The triples are the same for the same seed.
    """
    most = NEGATIVES * len(held_out[1])
    return drawn_pairs(draw_unknown, most, known, held_out, items, np.uint64(seed), NEGATIVES)


@kernel
def draw_unknown(
    known: Any, held_out: Any, items: int, seed: Any, negatives: int, user: Any, winner: Any, loser: Any
) -> int:
    """Write ``negatives`` triples for each held-out interaction and return how many there are."""
    (known_start, known_items), (held_start, held) = known, held_out
    count = 0
    for u in range(held_start.shape[0] - 1):
        run = known_items[known_start[u] : known_start[u + 1]]
        free = items - run.shape[0]
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


def validation_figures(factors: Factors, pairs: Pairs) -> dict[str, float]:
    """Return the mean log likelihood of the triples and the share that is ordered rightly (equals count half)."""
    l1 = None if factors.tau is None else 0.0
    likelihood, right, weight = score_pairs(
        pairs.user, pairs.winner, pairs.loser, pairs.weight, factors.users, factors.items, factors.bias, l1
    )
    return {"validation_log_likelihood": likelihood / weight, "validation_accuracy": right / weight}


@kernel
def score_pairs(
    users: Any, winners: Any, losers: Any, weights: Any, xi: Any, items: Any, bias: Any, l1: Any
) -> tuple[float, float, float]:
    """Return the weighted sums of log sigmoid(x), of 1(x > 0) + 1(x = 0) / 2, and of the weights."""
    likelihood, right, total = 0.0, 0.0, 0.0
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
    return likelihood, right, total
