"""Default values of settings, for each loss and kind of data.

docs/defaults.md says where the numbers come from.
"""

import math
from typing import Any

from sadrec.training.settings import Kind, Loss

# Interactions. The number of factors and the length come from the data: see :mod:`sadrec.training.sgd.survey`.
SOFTMAX: dict[str, Any] = {
    "iterations": 12,
    "learning_rate": 0.15,
    "regularization": 0.02,
    "rival_regularization": 0.03,
    "init_scale": 0.1,
    "bias": True,
    "negative_candidates": 1,
    "negatives": 256,
    "user_balance": 0.5,
}

# Interactions with loss="pairwise"; l2 is that for 300 of them per vector.
PAIRWISE: dict[str, Any] = {
    "factors": 64,
    "iterations": 50,
    "learning_rate": 0.05,
    "regularization": 0.012,
    "rival_regularization": 0.001,
    "init_scale": 0.1,
    "bias": True,
    "negative_candidates": 8,
    "negatives": 256,
    "length": 0.0,
    "user_balance": 0.3,
}

# Comparisons with solver="sgd"; the penalties are those for 1000 of them per vector.
COMPARISONS: dict[str, Any] = {
    "iterations": 60,
    "learning_rate": 0.05,
    "regularization": 0.0005,
    "rival_regularization": 0.01,
    "init_scale": 0.1,
    "bias": False,
    "negative_candidates": 1,
    "negatives": 256,
    "length": 0.0,
    "user_balance": 0.0,
}

# The learning rate for vectors whose length is free: what a length bounds would diverge.
FREE_RATE = 0.05

# With loss="pairwise": a negative candidate for this number of interactions per vector, and the strongest l2.
PER_CANDIDATE, STRONGEST = 25.0, 0.02

# Fewer comparisons are taken as they stand: they are no sample that tells how scarce the data is.
STATEMENT = 100
# Comparisons per vector below which what one judge says is mostly noise, and what becomes of the settings then: a bias
# learns what all judges agree on, and their own vectors start near 0 and stay there unless there is a reason.
SCARCE_PER_VECTOR = 100.0
SCARCE: dict[str, Any] = {"regularization": 0.03, "rival_regularization": 0.01, "init_scale": 0.01, "bias": True}

MOST_BLOCKS = 16


def defaults(kind: Kind, users: int, items: int, pairs: int, loss: Loss) -> dict[str, Any]:
    """Return what settings left at None become for data of this kind and size.

    Interactions follow the data in factors and length alone, which are not among these. With the pairwise loss, the
    more is known per vector, the harder the negatives it can be trained against and the less it has to be held back.

    Comparisons: each moves the vectors of one user and two items, and a penalty is paid at every step. So that it
    amounts to the same prior however much is known, l2 is divided by the comparisons per vector: 0.0005 at 1000 of them
    is a standard normal prior. The l1 penalty, which separates signal from noise in tau, falls with their fourth root
    (measured: docs/simulation.md). Where there are few, as when many judges say a little each, an item bias takes over
    (measured: docs/feedback.md).

    >>> round(defaults("comparisons", users=20, items=50, pairs=4_900, loss="pairwise")["regularization"], 6)
    0.002381
    >>> defaults("comparisons", users=600, items=500, pairs=12_000, loss="pairwise")["bias"]
    True
    """
    per_vector = 3 * pairs / max(users + items, 1)
    if kind == "interactions":
        if loss == "softmax":
            return dict(SOFTMAX)
        l2 = min(PAIRWISE["regularization"] * math.sqrt(300 / max(per_vector, 1)), STRONGEST)
        candidates = min(max(round(per_vector / PER_CANDIDATE), 1), PAIRWISE["negative_candidates"])
        return PAIRWISE | {"regularization": l2, "negative_candidates": candidates}
    if pairs < STATEMENT:
        return dict(COMPARISONS)
    if per_vector < SCARCE_PER_VECTOR:
        return COMPARISONS | SCARCE
    l2, l1 = COMPARISONS["regularization"], COMPARISONS["rival_regularization"]
    scarcity = 1000 / per_vector
    return COMPARISONS | {"regularization": l2 * scarcity, "rival_regularization": l1 * scarcity**0.25}


def default_blocks(kind: Kind, users: int, items: int, pairs: int) -> int:
    """Return a number of blocks that suits the data: 1 for tiny data, at most 16.

    >>> default_blocks("interactions", users=6040, items=3706, pairs=1_000_000)
    16
    >>> default_blocks("comparisons", users=20, items=50, pairs=24_500)
    1
    """
    blocks = min(users // 32, items // 64, MOST_BLOCKS)
    if kind == "comparisons":
        blocks = 2 * min(blocks // 2, pairs // 100_000)
    return max(blocks, 1)
