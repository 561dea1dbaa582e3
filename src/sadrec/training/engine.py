"""What runs a fit somewhere else than in this process, with the same result."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from sadrec.training.dataset import TrainingData
from sadrec.training.factors import Factors
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures


class Engine(Protocol):
    """Trains elsewhere: ``sadrec.cluster.Ray`` does."""

    def run(
        self,
        data: TrainingData,
        settings: Settings,
        factors: Factors,
        *,
        identity: Mapping[str, Any],
        checkpoint: str | Path | None,
        checkpoint_seconds: float,
        after_epoch: Callable[[int, Figures], bool],
        show_progress: bool,
        title: str,
        history: list[Figures],
    ) -> None:
        """Train to the end, from ``factors`` and into them, and fill ``history``: see :func:`sadrec.training.run.run`.

        ``identity`` is all that the result depends on, to know a checkpoint by.
        """
        ...


def refuse_elsewhere(settings: Settings, validation: Any, patience: int | None, features: bool = False) -> None:
    """Refuse what only this process can do."""
    if features:
        raise ValueError(
            "item_features and user_features need all parameters in one place after every epoch: leave them out with "
            "an engine, or fit in this process"
        )
    if settings.solver == "variational":
        raise ValueError("solver='variational' learns in this process alone: set solver='sgd', or leave engine out")
    if validation is not None or patience is not None:
        raise ValueError(
            "validation and patience need all parameters in one place after every epoch: leave them out with an "
            "engine, and evaluate the model when it is fitted"
        )
