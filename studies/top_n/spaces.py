"""What the models of top-N are tuned over, and what each tries first."""

from collections.abc import Mapping, Sequence
from typing import Any

Space = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
"""Values by setting; or several such spaces, of which each gets its share of the trials."""

SGD_SPACE: Mapping[str, Sequence[Any]] = {
    "loss": ("pairwise",),
    "factors": (64, 128),
    "iterations": (60, 100),
    "learning_rate": (0.05,),
    "regularization": (0.012, 0.013, 0.014, 0.016),
    "negative_candidates": (6, 8, 10),
    "bias": (False,),
    "user_balance": (0.1, 0.2, 0.3),
}
SPACES: Mapping[str, Space] = {
    "sad": {**SGD_SPACE, "rival_regularization": (0.0003, 0.001, 0.003)},
    "bpr": SGD_SPACE,
    "ease": {"regularization": (500.0, 25.0, 50.0, 100.0, 150.0, 200.0, 300.0, 400.0, 650.0, 800.0, 1000.0, 2000.0)},
    "als": {
        "factors": (32, 64, 128, 256),
        "regularization": (0.1, 1.0, 5.0, 10.0, 20.0, 40.0),
        "alpha": (1.0, 2.0, 5.0, 10.0),
    },
    "implicit-bpr": {
        "factors": (32, 64, 128),
        "iterations": (50, 100, 200),
        "learning_rate": (0.01, 0.03, 0.05, 0.1),
        "regularization": (0.001, 0.005, 0.01, 0.02, 0.05),
    },
    "popularity": {},
}
"""What each model is tuned over; all values of a setting are equally likely."""

_SGD_START: Mapping[str, Any] = {
    "loss": "pairwise",
    "factors": 128,
    "iterations": 100,
    "learning_rate": 0.05,
    "regularization": 0.014,
    "negative_candidates": 8,
    "bias": False,
    "user_balance": 0.2,
}
START: Mapping[str, Mapping[str, Any]] = {
    "sad": {**_SGD_START, "rival_regularization": 0.001},
    "bpr": _SGD_START,
    "ease": {"regularization": 500.0},
    "als": {"factors": 64, "regularization": 5.0, "alpha": 2.0},
    "implicit-bpr": {"factors": 64, "iterations": 100, "learning_rate": 0.05, "regularization": 0.01},
    "popularity": {},
}
"""The first trial of each model."""

SMALL_SGD_SPACE: Mapping[str, Sequence[Any]] = {
    "loss": ("pairwise",),
    "factors": (128,),
    "iterations": (60,),
    "learning_rate": (0.05,),
    "regularization": (0.02, 0.022, 0.024, 0.026),
    "negative_candidates": (4, 5, 6),
    "bias": (False, True),
    "user_balance": (0.1, 0.2, 0.3),
    "blocks": (4, 8),
}
SMALL_SOFTMAX_SPACE: Mapping[str, Sequence[Any]] = {
    "loss": ("softmax",),
    "factors": (128,),
    "iterations": (20, 40),
    "learning_rate": (0.05, 0.1),
    "regularization": (0.02, 0.05),
    "length": (1.9, 2.0, 2.1),
    "negatives": (256,),
    "user_balance": (0.15, 0.3, 0.45),
}
SMALL_SPACES: Mapping[str, Space] = {
    **SPACES,
    "sad": (
        {**SMALL_SGD_SPACE, "rival_regularization": (0.0003, 0.001, 0.003)},
        {**SMALL_SOFTMAX_SPACE, "rival_regularization": (0.03,)},
    ),
    "bpr": (SMALL_SGD_SPACE, SMALL_SOFTMAX_SPACE),
}
"""The same for some hundred users, with both losses."""

_SMALL_SGD_START: Mapping[str, Any] = {
    "loss": "pairwise",
    "factors": 128,
    "iterations": 60,
    "learning_rate": 0.05,
    "regularization": 0.022,
    "negative_candidates": 5,
    "bias": False,
    "user_balance": 0.2,
    "blocks": 4,
}
SMALL_START: Mapping[str, Mapping[str, Any]] = {
    **START,
    "sad": {**_SMALL_SGD_START, "rival_regularization": 0.001},
    "bpr": _SMALL_SGD_START,
}

SPARSE_SGD_SPACE: Mapping[str, Sequence[Any]] = {
    "loss": ("softmax",),
    "factors": (128, 256),
    "iterations": (20, 30),
    "learning_rate": (0.3,),
    "length": (3.2, 3.5),
    "negatives": (256,),
    "user_balance": (0.3, 0.5),
}
SPARSE_SPACES: Mapping[str, Space] = {
    **SPACES,
    "sad": {**SPARSE_SGD_SPACE, "rival_regularization": (0.03,)},
    "bpr": SPARSE_SGD_SPACE,
    "als": {
        "factors": (64, 128, 256),
        "regularization": (0.1, 1.0, 5.0, 20.0),
        "alpha": (2.0, 5.0, 10.0, 40.0),
    },
}
"""The same for catalogues of many items with little data on each, where a fit takes minutes."""

_SPARSE_SGD_START: Mapping[str, Any] = {
    "loss": "softmax",
    "factors": 128,
    "iterations": 20,
    "learning_rate": 0.3,
    "length": 3.2,
    "negatives": 256,
    "user_balance": 0.5,
}
SPARSE_START: Mapping[str, Mapping[str, Any]] = {
    **START,
    "sad": {**_SPARSE_SGD_START, "rival_regularization": 0.03},
    "bpr": _SPARSE_SGD_START,
    "als": {"factors": 128, "regularization": 1.0, "alpha": 10.0},
}

OF_SETS: Mapping[str, tuple[Mapping[str, Space], Mapping[str, Mapping[str, Any]]]] = {
    "movielens-1m": (SPACES, START),
    "movielens-100k": (SMALL_SPACES, SMALL_START),
    "gowalla": (SPARSE_SPACES, SPARSE_START),
}
"""Spaces and first trials by data set."""
