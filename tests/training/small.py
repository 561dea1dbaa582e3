"""Small fits, for the tests of training here and on workers."""

import numpy as np

from sadrec.training.checkpoint import LocalCheckpoints
from sadrec.training.loop import run as run_step
from sadrec.training.settings import Settings
from sadrec.training.sgd.factors import initial_factors
from sadrec.training.sgd.given import Pairs
from sadrec.training.sgd.samplers import Stated
from sadrec.training.sgd.trainer import Trainer


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


def pairs(seed, count=400):
    rng = np.random.default_rng(seed)
    user, winner = rng.integers(10, size=count), rng.integers(30, size=count)
    loser = (winner + rng.integers(1, 30, count)) % 30
    swap = winner > loser  # the truth: small numbers win
    winner, loser = np.where(swap, loser, winner), np.where(swap, winner, loser)
    return Pairs(user.astype(np.int32), winner.astype(np.int32), loser.astype(np.int32))


def trainer(**changed):
    values = {
        "factors": 4,
        "iterations": 8,
        "regularization": 0.001,
        "rival_regularization": 0.01,
        "blocks": 2,
        "seed": 1,
    }
    resolved = settings(**{**values, "bias": True, **changed})
    factors = initial_factors(10, 30, 4, 0.1, True, True, 1)
    return Trainer(factors, resolved, None, [Stated(pairs(0))], 1)


def run(work, validation=None, **options):
    work._validation = validation
    return run_step(work, **options)


def bits(work):
    return work.factors.users.tobytes() + work.factors.items.tobytes() + work.factors.bias.tobytes()


def loaded(folder, like):
    """Return factors and epoch of the newest checkpoint that suits a trainer, or None."""
    step = Trainer(like.factors.copy(), like.settings)
    checkpoints = LocalCheckpoints(folder, {})
    return checkpoints.newest(lambda values, arrays: (step.load(values, arrays), (step.factors, step.done))[1])
