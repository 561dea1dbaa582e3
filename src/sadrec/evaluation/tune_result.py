"""One trial of tuning, and the outcome of all: which settings are chosen."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sadrec._core.files import plain, write_whole
from sadrec.evaluation.protocol import copied

ChoiceRule = Literal["best", "one_error"]
SettingsPoint = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One point of the space: its settings, its score on every fold, or why there is none.

    ``status`` is "done", "failed" or "out of time".
    """

    settings: Mapping[str, Any]
    scores: tuple[float, ...] = ()
    error: float = math.nan
    seconds: float = 0.0
    status: str = "done"
    message: str = ""

    @property
    def score(self) -> float:
        """Mean over folds; NaN when the trial has none."""
        return float(np.mean(self.scores)) if self.scores else math.nan


class TuneResult:
    """The outcome of tuning: ``trials``, one per point in order, and ``model`` with the chosen settings, not fitted."""

    def __init__(
        self,
        model: Any,
        trials: Sequence[Trial],
        metric: str,
        better: int,
        rule: ChoiceRule = "best",
        about: Mapping[str, str] | None = None,
    ) -> None:
        self._given, self.trials, self.metric, self._better, self.rule = model, list(trials), metric, better, rule
        self._about = dict(about or {})  # the kind of the data, and its fingerprint

    @property
    def best_trial(self) -> Trial:
        """The chosen trial: the best score, or the first within one standard error of it (see ``rule``)."""
        scored = [trial for trial in self.trials if math.isfinite(trial.score)]
        if not scored:
            reasons = sorted({trial.message for trial in self.trials if trial.message})
            raise ValueError(
                f"none of {len(self.trials)} trials could be scored by {self.metric}"
                + (f": {'; '.join(reasons)}" if reasons else "")
            )
        top = max(scored, key=lambda trial: self._better * trial.score)
        if self.rule == "best" or not math.isfinite(top.error):
            return top
        return next(trial for trial in scored if self._better * (top.score - trial.score) <= top.error)

    @property
    def settings(self) -> dict[str, Any]:
        """The chosen settings."""
        return dict(self.best_trial.settings)

    @property
    def score(self) -> float:
        """The score of the chosen settings (on the validation data that chose them, so a little too good)."""
        return self.best_trial.score

    @property
    def model(self) -> Any:
        """The model with the chosen settings, not fitted."""
        return copied(self._given, **self.settings)

    @property
    def frame(self) -> pl.DataFrame:
        """One row per trial: its settings, score, error, seconds, status and message."""
        numbers = ("score", "error", "seconds")
        rows = [
            {
                **{name: plain(value) for name, value in trial.settings.items()},
                **{name: plain(float(getattr(trial, name))) for name in numbers},
                "status": trial.status,
                "message": trial.message,
            }
            for trial in self.trials
        ]
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(numbers, pl.Float64), infer_schema_length=None)

    def save(self, path: str | Path) -> None:
        """Write the chosen model's settings as JSON, which ``sadrec fit --settings`` takes."""
        settings = {name: plain(value) for name, value in self.model.get_params().items() if value is not None}
        content: dict[str, Any] = {"model": type(self._given).__name__.lower(), "settings": settings}
        content |= {"metric": self.metric, "score": self.score, "trials": len(self.trials), **self._about}
        write_whole(path, json.dumps(content, indent=1) + "\n")

    def __repr__(self) -> str:
        return f"TuneResult({len(self.trials)} trials by {self.metric}; best {self.score:.4f} with {self.settings})"


def from_record(settings: SettingsPoint, record: Mapping[str, Any], _: Any = None) -> Trial:
    """Return the trial that a folder of results has kept."""
    values = {**record, "settings": settings}
    values["scores"] = tuple(math.nan if value is None else float(value) for value in record["scores"])
    values["error"] = math.nan if record["error"] is None else float(record["error"])
    values["seconds"] = float(record["seconds"])
    return Trial(**values)
