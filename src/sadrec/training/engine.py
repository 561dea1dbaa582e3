"""What runs a fit somewhere else than in this process, with the same result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from sadrec._types import Floats
from sadrec.data import Comparisons
from sadrec.data.ids import IdArray
from sadrec.data.parquet import ParquetFiles
from sadrec.training.dataset import TrainingData
from sadrec.training.defaults import Described
from sadrec.training.factors import Factors
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures


@dataclass(frozen=True)
class Course:
    """How a fit elsewhere goes, beside what it learns from: see :func:`sadrec.training.run.run`.

    ``identity`` is all that the result depends on, to know a checkpoint by; ``history`` is filled.
    """

    identity: Mapping[str, Any]
    checkpoint: str | Path | None
    checkpoint_seconds: float
    after_epoch: Callable[[int, Figures], bool]
    show_progress: bool
    title: str
    history: list[Figures]


class SharedFeedback(Described, Protocol):
    """Interactions that those hold who train on them, and what they learn."""

    @property
    def repeated(self) -> tuple[int, bool]:
        """How many rows repeat a pair without anybody having said what becomes of them, and whether rows have times."""
        ...

    def fingerprint(self) -> str:
        """Return a digest of all of it."""
        ...

    def train(self, settings: Settings, course: Course) -> None:
        """Train to the end, and fill the history."""
        ...

    def items(self) -> tuple[IdArray, Floats, Floats | None]:
        """Bring the items here: ids, rows of eta and tau, and bias."""
        ...

    def users(self) -> tuple[Floats, IdArray, Any]:
        """Bring the users here: factors, ids and what was seen."""
        ...

    def write_users(self, folder: Path, token: str) -> list[Any]:
        """Have the users written to files of a folder whose names have a token in them; return what they hold."""
        ...

    def end(self) -> None:
        """Let go of all of it."""
        ...


class Engine(Protocol):
    """Trains elsewhere: ``sadrec.cluster.Ray`` does."""

    @property
    def collect(self) -> bool:
        """Whether what was learnt from files is brought to this process at the end."""
        ...

    def run(self, data: TrainingData, settings: Settings, factors: Factors, course: Course) -> None:
        """Train to the end, from ``factors`` and into them, and fill the history."""
        ...

    def read(self, files: ParquetFiles, comparisons: Comparisons | None = None) -> SharedFeedback:
        """Have files read by those who train, with comparisons beside of users and items in them."""
        ...


def refuse_features() -> NoReturn:
    """Refuse features of items and users."""
    raise ValueError(
        "item_features and user_features need all parameters in one place after every epoch: leave them out with "
        "an engine, or fit in this process"
    )


def refuse_elsewhere(settings: Settings, validation: Any, patience: int | None, features: bool = False) -> None:
    """Refuse what only this process can do."""
    if features:
        refuse_features()
    if settings.solver == "variational":
        raise ValueError("solver='variational' learns in this process alone: set solver='sgd', or leave engine out")
    if validation is not None or patience is not None:
        raise ValueError(
            "validation and patience need all parameters in one place after every epoch: leave them out with an "
            "engine, and evaluate the model when it is fitted"
        )
