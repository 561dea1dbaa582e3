"""What happens inside the namespace: fits on a real cluster, compared with fits on one machine."""

import numpy as np
import polars as pl

from sadrec import SAD, Comparisons, Interactions
from sadrec.cluster import Ray

SMALL = {"factors": 6, "iterations": 3, "learning_rate": 0.1, "blocks": 5, "random_state": 3, "num_threads": 1}
SMALL |= {"regularization": 0.01, "rival_regularization": 0.002}


def clicks(users=61, items=47):
    rng = np.random.default_rng(0)
    return Interactions.from_csr(np.where(rng.random((users, items)) < 0.2, rng.integers(1, 6, (users, items)), 0))


def said(data):
    rng = np.random.default_rng(1)
    user, winner = (rng.integers(count, size=400) for count in data.matrix.shape)
    loser = (winner + 1) % data.matrix.shape[1]
    columns = {"user": data.users[user], "winner": data.items[winner], "loser": data.items[loser]}
    return Comparisons.from_frame(pl.DataFrame(columns))


def same(one, other):
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("user_factors", "item_factors", "rival_factors")]
    pairs += [] if one.item_bias is None else [(one.item_bias, other.item_bias)]
    return all(np.array_equal(a, b) for a, b in pairs)


def same_bits(made):
    data, result = clicks(), {}
    whole = SAD(**SMALL).fit(data, show_progress=False)
    for workers in (2, 3):
        model = SAD(**SMALL).fit(data, show_progress=False, engine=Ray(workers=workers))
        likelihood = [figures["log_likelihood"] for figures in model.history]
        result[f"{workers} workers"] = same(model, whole) and likelihood == [
            figures["log_likelihood"] for figures in whole.history
        ]
    mixed = {**SMALL, "order_share": 0.4, "bias": False}
    more = {"comparisons": said(data), "weights": np.linspace(0, 2, data.matrix.nnz).astype(np.float32)}
    whole, model = (SAD(**mixed).fit(data, False, engine=engine, **more) for engine in (None, Ray(workers=3)))
    return {**result, "with pairs": same(model, whole)}
