"""Engines: a fit in other processes, with the same result.

Engines import everything they need of training from here; most imports below are for them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from sadrec._core.files import Pieces
from sadrec._core.types import Floats, Positions
from sadrec.data import Comparisons
from sadrec.data.ids import IdArray
from sadrec.data.parquet import ParquetFiles
from sadrec.training.checkpoint import Checkpoints, by_epoch
from sadrec.training.loop import Figures, Step, diverged
from sadrec.training.resolve import DataFacts
from sadrec.training.settings import Kind, Settings
from sadrec.training.sgd import schedule, softmax, trainer
from sadrec.training.sgd.factors import Factors, aligned, initial_rows
from sadrec.training.sgd.given import (
    Buffers,
    Pairs,
    Round,
    arrange,
    cells_of,
    deal_round,
    read_only,
    rounds_of,
    train_given,
)
from sadrec.training.sgd.negatives import Deal, Partition, Positives, Spread, group, partition
from sadrec.training.sgd.samplers import PairSource, Stated, balance_scale, marked
from sadrec.training.sgd.spectrum import Spectrum, choices, decompose, sample_users, start_items, start_users
from sadrec.training.sgd.survey import Survey, survey
from sadrec.training.sgd.trainer import epoch_figures, rate_at


class EngineResult(NamedTuple):
    """The result of an engine: ids and items are here, and large arrays come a piece at a time."""

    users: IdArray
    items: IdArray
    user_factors: Pieces
    item_rows: Floats  # eta and, where rivals are learnt, tau
    item_bias: Floats | None
    seen_indptr: Positions
    seen_indices: Pieces
    seen_data: Pieces


Keep = Callable[[EngineResult], Any]
"""Makes a state of the result of an engine."""


class SharedFeedback(DataFacts, Protocol):
    """Interactions that workers hold and train on."""

    @property
    def repeated(self) -> tuple[int, bool]:
        """The number of rows that repeat a pair without a chosen rule, and whether rows have times."""
        ...

    def fingerprint(self) -> str:
        """Return a digest of all of it."""
        ...

    def checkpoints(self, folder: str | Path, identity: Mapping[str, Any], seconds: float) -> Checkpoints:
        """Return the checkpoints of a fit; one of another ``identity`` is refused, one is due after some seconds."""
        ...

    def step(self, settings: Settings, folder: str | Path | None, keep: Keep) -> Step:
        """Return the step that trains on the workers and survives their loss; ``folder`` is that of checkpoints."""
        ...

    def end(self) -> None:
        """Release the data and the workers."""
        ...


class Engine(Protocol):
    """Trains in other processes, such as ``sadrec.cluster.Ray``."""

    @property
    def output(self) -> str | Path | None:
        """The file that a fitted model is written to; None: it comes to the memory of this process."""
        ...

    def read(self, files: ParquetFiles, comparisons: Comparisons | None = None) -> SharedFeedback:
        """Have the workers read files; comparisons must be about users and items in them."""
        ...


def refuse_features() -> NoReturn:
    """Refuse features of items and users."""
    raise ValueError(
        "item_features and user_features need all parameters in one place after every epoch: leave them out with "
        "an engine, or fit in this process"
    )


def refuse_elsewhere(settings: Settings, validation: Any, patience: int | None) -> None:
    """Raise on options that need all data in this process."""
    if settings.solver == "variational":
        raise ValueError("solver='variational' learns in this process alone: set solver='sgd', or leave engine out")
    if validation is not None or patience is not None:
        raise ValueError(
            "validation and patience need all parameters in one place after every epoch: leave them out with an "
            "engine, and evaluate the model when it is fitted"
        )
