"""Settings of small fits, for the tests of training here and on workers."""

from sadrec.training.settings import Settings


def settings(**changed):
    """Return settings that are resolved, with some of them changed."""
    values = {
        "factors": 6,
        "iterations": 4,
        "learning_rate": 0.1,
        "regularization": 0.01,
        "rival_regularization": 0.002,
        "blocks": 5,
        "seed": 3,
        "schedule": "linear",
        "init_scale": 0.1,
        "learn_rivals": True,
        "bias": False,
        "negative_candidates": 1,
        "order_share": 0.0,
        "adaptive": False,
        "user_balance": 0.0,
        "negatives": 1,
        "length": 0.0,
        "solver": "sgd",
        "loss": "pairwise",
    }
    return Settings(**{**values, **changed})
