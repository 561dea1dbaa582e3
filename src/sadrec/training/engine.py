"""What runs a fit somewhere else than in this process, with the same result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from sadrec._files import Pieces
from sadrec._types import Floats, Positions
from sadrec.data import Comparisons
from sadrec.data.ids import IdArray
from sadrec.data.parquet import ParquetFiles
from sadrec.training.defaults import Described
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures


@dataclass(frozen=True)
class Course:
    """How a fit elsewhere goes, beside what it learns from: see :func:`sadrec.training.loop.run`.

    ``identity`` is all that the result depends on, to know a checkpoint by; ``history`` is filled.
    """

    identity: Mapping[str, Any]
    checkpoint: str | Path | None
    checkpoint_seconds: float
    after_epoch: Callable[[int, Figures], bool]
    show_progress: bool
    title: str
    history: list[Figures]


class Learnt(NamedTuple):
    """What was learnt elsewhere: ids and items are here, and large arrays come a piece at a time."""

    users: IdArray
    items: IdArray
    user_factors: Pieces
    item_rows: Floats  # eta and, where rivals are learnt, tau
    item_bias: Floats | None
    seen_indptr: Positions
    seen_indices: Pieces
    seen_data: Pieces


Keep = Callable[[Learnt], None]


class SharedFeedback(Described, Protocol):
    """Interactions that workers hold and train on."""

    @property
    def repeated(self) -> tuple[int, bool]:
        """How many rows repeat a pair without anybody having said what becomes of them, and whether rows have times."""
        ...

    def fingerprint(self) -> str:
        """Return a digest of all of it."""
        ...

    def train(self, settings: Settings, course: Course, keep: Keep) -> None:
        """Train to the end, fill the history, and call ``keep`` with what was learnt; again where that is lost."""
        ...

    def end(self) -> None:
        """Let go of all of it."""
        ...


class Engine(Protocol):
    """Trains elsewhere: ``sadrec.cluster.Ray`` does."""

    @property
    def output(self) -> str | Path | None:
        """The file that a fitted model is written to; None: it comes to the memory of this process."""
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
