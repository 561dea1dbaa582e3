"""The result of ``compare``: tidy frame, summary, paired tests, tables, pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec._core.files import plain, write_whole
from sadrec._core.record import Arrays
from sadrec.evaluation.significance import holm, paired_test
from sadrec.evaluation.tables import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class SplitRun:
    """One model on one split: settings, seconds, and figures or an error."""

    model: str
    split: int
    status: str = "done"
    message: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    fit_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    train_size: int = 0
    test_size: int = 0
    sparsity: float | None = None  # share of T within 0.05 of 1
    figures: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_record(self) -> dict[str, Any]:
        """Return the run in plain values; what is not a number is null."""
        return dict(plain(asdict(self)))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "SplitRun":
        """Return the run that :meth:`to_record` wrote."""
        values = {entry.name: record[entry.name] for entry in fields(cls)}
        for name in ("figures", "errors"):
            values[name] = {key: np.nan if value is None else value for key, value in values[name].items()}
        return cls(**values)


_TEXTS = ("model", "measure", "status", "message", "note")
_COUNTS = ("split", "splits", "users", "n")


def _frame(rows: Sequence[tuple[Any, ...]], *columns: str) -> pl.DataFrame:
    """Return rows as a frame whose columns have a type even where all is null; NaN becomes null."""
    types: dict[str, Any] = dict.fromkeys(_TEXTS, pl.String) | dict.fromkeys(_COUNTS, pl.Int64)
    schema = {name: types.get(name, pl.Float64) for name in columns}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.selectors.float().fill_nan(None))


class CompareResult:
    """The result of ``compare``: figures by model, split and measure.

    Attributes
    ----------
    runs
        One per (model, split), in the order they were made.
    frame
        Tidy polars frame: model, split, measure, value, error (standard error over users), users, fit_seconds,
        evaluate_seconds, status, message. A run without figures has one row whose measure is null.
    """

    def __init__(self, runs: Sequence[SplitRun], per_user: Mapping[tuple[str, int], Arrays] | None = None) -> None:
        self.runs = list(runs)
        self._per_user = dict(per_user or {})
        rows: list[tuple[Any, ...]] = []
        for run in self.runs:
            about = (run.fit_seconds, run.evaluate_seconds, run.status, run.message)
            for name, value in run.figures.items():
                error, users = run.errors.get(name, np.nan), run.counts.get(name, 0)
                rows.append((run.model, run.split, name, value, error, users, *about))
            if not run.figures:
                rows.append((run.model, run.split, None, None, None, None, *about))
        times = ("fit_seconds", "evaluate_seconds", "status", "message")
        self.frame = _frame(rows, "model", "split", "measure", "value", "error", "users", *times)

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order they were given."""
        return list(dict.fromkeys(run.model for run in self.runs))

    @property
    def measures(self) -> list[str]:
        """Names of the measures that at least one model has."""
        return list(dict.fromkeys(name for run in self.runs for name, v in run.figures.items() if not np.isnan(v)))

    def values(self, model: str, measure: str) -> dict[int, float]:
        """Return the figure of a model on every split it finished."""
        return {
            run.split: run.figures[measure]
            for run in self.runs
            if run.model == model and not np.isnan(run.figures.get(measure, np.nan))
        }

    def notes(self, model: str) -> str:
        """Return the errors of a model with the number of splits; empty if there are none."""
        bad = [run for run in self.runs if run.model == model and run.status != "done"]
        if not bad:
            return ""
        total = sum(run.model == model for run in self.runs)
        where = "" if len(bad) == total else f" on {len(bad)} of {total} splits"
        return f"{bad[0].status}{where}: {bad[0].message}"

    def summary(self) -> pl.DataFrame:
        """Return mean and spread over splits: model, measure, mean, sd, error, splits, fit_seconds, note.

        ``sd`` is the standard deviation over splits (what the paper prints after ±), ``error`` the standard error of
        the mean. A model without figures has one row whose measure is null.
        """
        rows: list[tuple[Any, ...]] = []
        for model in self.models:
            note = self.notes(model)
            seconds = [run.fit_seconds for run in self.runs if run.model == model and run.status == "done"]
            fit = float(np.mean(seconds)) if seconds else None
            for measure in self.measures:
                values = np.array(list(self.values(model, measure).values()))
                if len(values):
                    sd = float(values.std(ddof=1)) if len(values) > 1 else None
                    error = None if sd is None else sd / np.sqrt(len(values))
                    rows.append((model, measure, float(values.mean()), sd, error, len(values), fit, note))
            if not seconds:
                rows.append((model, None, None, None, None, 0, None, note))
        return _frame(rows, "model", "measure", "mean", "sd", "error", "splits", "fit_seconds", "note")

    def significance(
        self,
        against: str | None = None,
        measures: Sequence[str] | None = None,
        unit: Literal["splits", "users", "rows"] = "splits",
    ) -> pl.DataFrame:
        """Test every other model against one, paired.

        Parameters
        ----------
        against
            The model the others are compared with; the first one by default. Positive differences are in its favour
            where more is better.
        measures
            Which measures; all by default.
        unit
            ``"splits"``: pairs are splits, with the variance corrected for overlapping training parts (Nadeau and
            Bengio, 2003). ``"users"``: pairs are users, each averaged over the splits first; says whether the
            difference would hold for other users of the same kind. ``"rows"``: pairs are held-out comparisons.

        Returns
        -------
        polars.DataFrame
            model, measure, difference (``against`` minus model), error, low, high, p_t, p_wilcoxon, p_holm (of p_t,
            over the models), n.
        """
        first = self._existing(against or self.models[0])
        others = [model for model in self.models if model != first]
        rows: list[tuple[Any, ...]] = []
        for measure in self.measures if measures is None else measures:
            tests = []
            for model in others:
                ours, theirs, ratio = self._pairs(first, model, measure, unit)
                tests.append(paired_test(ours, theirs, ratio))
            adjusted = holm(np.array([test.p_t for test in tests]))
            for model, test, p in zip(others, tests, adjusted.tolist(), strict=True):
                figures = (test.difference, test.error, test.low, test.high, test.p_t, test.p_wilcoxon, p)
                rows.append((model, measure, *figures, test.n))
        names = ("difference", "error", "low", "high", "p_t", "p_wilcoxon", "p_holm", "n")
        return _frame(rows, "model", "measure", *names)

    def per_user(self, model: str, measure: str) -> dict[Any, float]:
        """Return every user's figure, averaged over the splits in which the user has one."""
        values: dict[Any, list[float]] = {}
        for (name, _), arrays in self._per_user.items():
            if name == model and f"of {measure}" in arrays:
                for user, value in zip(arrays["users"].tolist(), arrays[f"of {measure}"].tolist(), strict=True):
                    if value == value:
                        values.setdefault(user, []).append(value)
        return {user: sum(figures) / len(figures) for user, figures in values.items()}

    def per_row(self, model: str, measure: str) -> dict[tuple[int, int], float]:
        """Return the figure of every held-out comparison, by split and place in its test part."""
        return {
            (split, row): value
            for (name, split), arrays in self._per_user.items()
            if name == model and f"row {measure}" in arrays
            for row, value in enumerate(arrays[f"row {measure}"].tolist())
            if value == value
        }

    def table(self, measures: Sequence[str] | None = None) -> str:
        """Return mean ± standard deviation over splits in Markdown, the best mean in bold."""
        return render(self.summary(), self.models, list(measures or self.measures))

    def plot(self, measures: Sequence[str] | None = None) -> "Figure":
        """Draw one panel per measure: a dot for each model's mean, its 95 % interval, and every split behind it."""
        from sadrec.evaluation.pictures import dots_and_intervals

        return dots_and_intervals(self, list(measures or self.measures))

    def save(self, folder: str | Path, measures: Sequence[str] | None = None, picture: bool = True) -> list[Path]:
        """Write table.md, results.csv and, if wanted, comparison.png; return the paths."""
        folder = Path(folder)
        contents = {
            "table.md": self.table(measures).encode(),
            "results.csv": self.frame.write_csv().encode(),
        }
        if picture:
            from io import BytesIO

            buffer = BytesIO()
            self.plot(measures).savefig(buffer, format="png", dpi=120)
            contents["comparison.png"] = buffer.getvalue()
        for name, content in contents.items():
            write_whole(folder / name, content)
        return [folder / name for name in contents]

    def __repr__(self) -> str:
        splits = len({run.split for run in self.runs})
        return f"CompareResult({len(self.models)} models, {splits} splits)\n{self.table()}"

    def _existing(self, model: str) -> str:
        if model not in self.models:
            raise ValueError(f"there is no model {model!r} here; there are {', '.join(self.models)}")
        return model

    def _pairs(
        self, first: str, second: str, measure: str, unit: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        kinds: dict[str, Callable[[str, str], Mapping[Any, float]]] = {
            "splits": self.values,
            "users": self.per_user,
            "rows": self.per_row,
        }
        if unit not in kinds:
            raise ValueError(f"unit must be 'splits', 'users' or 'rows', got {unit!r}")
        ours, theirs = (kinds[unit](model, measure) for model in (first, second))
        overlap = np.mean([run.test_size / max(1, run.train_size) for run in self.runs])
        ratio = float(overlap) if unit == "splits" else 0.0
        common = [key for key in ours if key in theirs]
        return np.array([ours[key] for key in common]), np.array([theirs[key] for key in common]), ratio
