"""The baselines by name: what each is, where it comes from, what it learns from, and what may be searched over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The grids of the paper's appendix.
_RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
_ITERATIONS = (2, 5, 10, 20, 50)
_PENALTIES = (0.05, 0.01, 0.005, 0.001)
_BATCHES = (128, 256, 512, 1024)
_SGD_GRID = {"learning_rate": _RATES, "iterations": _ITERATIONS, "regularization": _PENALTIES}

_EVERY_CELL = "every cell of the matrix: an interaction is 1, any other cell is 0"
_SAMPLED_CELLS = "every interaction as 1 and, drawn once, {zeros} empty cells as 0 for each"


@dataclass(frozen=True)
class BaselineSpec:
    """What is known about a baseline before it runs.

    Attributes
    ----------
    name
        What :func:`studies.baselines.make` and the command line call it.
    title
        What a table calls it.
    library
        The package it comes from; ``"sadrec"`` for our own.
    learns_from
        What it is trained on with its default settings; :meth:`trained_on` has the sentence for any settings.
    score
        What its scores are.
    defaults
        Its settings and their default values.
    grid
        Values to search over: the paper's for the paper's models.
    paper
        What the paper calls it; ``None`` for models the paper does not have.
    environment
        The environment its library lives in; ``None`` when it needs nothing but sadrec.
    program
        The module of :mod:`studies.baselines.programs` that runs it.
    modules
        What must be importable for it to run in this very process.
    features
        Whether it learns from features of users and items, too.
    """

    name: str
    title: str
    library: str
    learns_from: str
    score: str
    defaults: Mapping[str, Any]
    grid: Mapping[str, tuple[Any, ...]]
    paper: str | None = None
    environment: str | None = None
    program: str = ""
    modules: tuple[str, ...] = field(default=())
    features: bool = False

    def trained_on(self, settings: Mapping[str, Any] | None = None) -> str:
        """Say what the baseline is trained on with these settings.

        Examples
        --------
        >>> BASELINES["svd"].trained_on({"cells": "sampled", "zeros": 4})
        'every interaction as 1 and, drawn once, 4 empty cells as 0 for each'
        """
        chosen = {**self.defaults, **(settings or {})}
        if chosen.get("cells") == "sampled":
            return _SAMPLED_CELLS.format(zeros=chosen["zeros"])
        return self.learns_from.format(**chosen)


_CELL_VALUE = "predicted value of the cell, not clipped"
_SGD = {"factors": 64, "iterations": 20, "learning_rate": 0.02, "regularization": 0.01}
_CELLS = {"cells": "all", "zeros": 4, "random_state": 0}
_THREADS = {"num_threads": 0, "random_state": 0}
_BATCH_GRID = {"iterations": _ITERATIONS, "batch_size": _BATCHES}
_NCF = {
    "factors": 64,
    "iterations": 10,
    "learning_rate": 0.001,
    "batch_size": 1024,
    "layers": [128, 64, 32],
    "zeros": 4,
}
_VAE = {"factors": 64, "iterations": 50, "beta": 0.01, "batch_size": 128, "hidden": 512}

_SPECS = (
    BaselineSpec(
        "popularity", "Popularity", "sadrec",
        "how often each item was touched", "logarithm of one more than the count",
        defaults={}, grid={},
    ),
    BaselineSpec(
        "svd", "SVD", "scikit-surprise", _EVERY_CELL, _CELL_VALUE,
        defaults={**_SGD, **_CELLS}, grid=_SGD_GRID,
        paper="SVD", environment="light", program="svd", modules=("surprise",),
    ),
    BaselineSpec(
        "mf", "MF", "cornac", _EVERY_CELL, _CELL_VALUE,
        defaults={**_SGD, **_CELLS}, grid=_SGD_GRID,
        paper="MF", environment="light", program="mf", modules=("cornac",),
    ),
    BaselineSpec(
        "pmf", "PMF", "cornac", _EVERY_CELL, "log odds of the predicted value of the cell",
        defaults={**_SGD, "iterations": 10, "learning_rate": 0.005, "regularization": 0.001, **_CELLS}, grid=_SGD_GRID,
        paper="PMF", environment="light", program="pmf", modules=("cornac",),
    ),
    BaselineSpec(
        "fm", "FM", "rankfm",
        "every interaction against an item drawn uniformly from those the user has not touched",
        "utility: item bias plus inner product",
        defaults={**_SGD, "learning_rate": 0.05, "loss": "bpr", "random_state": 0}, grid=_SGD_GRID,
        paper="FM", environment="rankfm", program="fm", modules=("rankfm",),
    ),
    BaselineSpec(
        "ncf", "NCF", "recommenders",
        "every interaction as 1 and, drawn anew every epoch, {zeros} empty cells as 0 for each",
        "log odds of an interaction",
        defaults={**_NCF, "layers": [128, 64, 32], "zeros": 4, **_THREADS},
        grid={"learning_rate": _RATES, **_BATCH_GRID},
        paper="NCF", environment="recommenders", program="ncf", modules=("recommenders", "tensorflow", "tf_slim"),
    ),
    BaselineSpec(
        "vae", "beta-VAE", "recommenders",
        "every user's row of the matrix: an interaction is 1, any other cell is 0",
        "logarithm of the decoded probability, up to a constant of the user",
        defaults={**_VAE, **_THREADS}, grid={"beta": _RATES, **_BATCH_GRID},
        paper="beta-VAE", environment="recommenders", program="vae", modules=("recommenders", "tensorflow"),
    ),
    BaselineSpec(
        "implicit-bpr", "BPR (implicit)", "implicit",
        "every interaction against an item drawn by popularity", "inner product plus item bias",
        defaults={**_SGD, "iterations": 100, "learning_rate": 0.01, **_THREADS}, grid=_SGD_GRID,
        environment="light", program="implicit_bpr", modules=("implicit",),
    ),
    BaselineSpec(
        "als", "ALS (implicit)", "implicit",
        "every cell of the matrix: an interaction is 1 and weighs {alpha:g}, any other cell is 0, weight 1",
        "inner product: the predicted value of the cell",
        defaults={"factors": 64, "iterations": 15, "regularization": 0.05, "alpha": 10.0, **_THREADS},
        grid={"regularization": (0.01, 0.05, 1.0, 10.0), "alpha": (1.0, 5.0, 10.0, 40.0), "iterations": (15,)},
        environment="light", program="als", modules=("implicit", "threadpoolctl"),
    ),
    BaselineSpec(
        "lightfm", "LightFM", "lightfm-next",
        "every interaction against an item drawn from those the user has not touched",
        "inner product plus item bias",
        defaults={
            **_SGD, "iterations": 30, "learning_rate": 0.05, "regularization": 0.0, "loss": "warp", "own_factors": True,
            "num_threads": 1, "random_state": 0,
        },
        grid={"learning_rate": (0.02, 0.05), "iterations": (10, 30, 100), "regularization": (0.0, 1e-6, 1e-5, 1e-4)},
        environment="lightfm", program="lightfm_hybrid", modules=("lightfm",), features=True,
    ),
    BaselineSpec(
        "ease", "EASE", "sadrec", _EVERY_CELL, "predicted value of the cell",
        defaults={"regularization": 500.0}, grid={"regularization": (50.0, 100.0, 200.0, 500.0, 1000.0)},
    ),
)  # fmt: skip

BASELINES: Mapping[str, BaselineSpec] = {spec.name: spec for spec in _SPECS}
"""All baselines by name, in the order of a table: the floor, the paper's, today's."""


def find(name: str) -> BaselineSpec:
    """Look a baseline up by its name.

    Raises
    ------
    ValueError
        When there is no such baseline.
    """
    try:
        return BASELINES[name]
    except KeyError:
        raise ValueError(f"there is no baseline {name!r}: there are {', '.join(BASELINES)}") from None
