"""The result of an evaluation: a mapping of figures with their standard errors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, float]):
    """Figures of one model on one split: ``result["m1"]``; shares are 0..1.

    Attributes
    ----------
    figures
        The figures by name; NaN where a figure is not defined (no rating differs, no probability is offered).
    errors
        Standard error of each figure over users; NaN for figures that are not averages over users.
    counts
        How many users, or of comparisons how many of these, stand behind each figure.
    users
        Ids of the users evaluated, in the order of ``per_user``.
    per_user
        One array per figure that is an average over users: the value of each user, NaN where it has none.
    per_row
        Of comparisons: one array per figure, the value of each held-out comparison in its order, for paired tests.
    """

    figures: Mapping[str, float]
    errors: Mapping[str, float]
    counts: Mapping[str, int]
    users: NDArray[Any]
    per_user: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    per_row: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def __repr__(self) -> str:
        lines = [f"{'measure':<22} {'value':>9} {'error':>8} {self.counted:>11}"]
        for name, value in self.figures.items():
            error = self.errors.get(name, np.nan)
            shown = f"{error:8.4f}" if np.isfinite(error) else " " * 8
            lines.append(f"{name:<22} {value:9.4f} {shown} {self.counts.get(name, 0):11d}")
        return "\n".join(lines)

    @property
    def counted(self) -> str:
        """Return what :attr:`counts` are of: "users" or "comparisons"."""
        return "comparisons" if self.per_row else "users"

    def to_frame(self) -> pl.DataFrame:
        """Return the figures as a frame with the columns measure, value, error, and users or comparisons."""
        schema = {"measure": pl.String, "value": pl.Float64, "error": pl.Float64, self.counted: pl.Int64}
        rows = [
            (name, float(value), float(self.errors.get(name, np.nan)), int(self.counts.get(name, 0)))
            for name, value in self.figures.items()
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")


def mean_and_error(values: NDArray[np.float64]) -> tuple[float, float, int]:
    """Return mean, standard error and count of the values that are not NaN.

    >>> mean_and_error(np.array([1.0, 3.0, np.nan]))
    (2.0, 1.0, 2)
    """
    valid = values[~np.isnan(values)]
    if len(valid) == 0:
        return float("nan"), float("nan"), 0
    error = float(valid.std(ddof=1) / np.sqrt(len(valid))) if len(valid) > 1 else float("nan")
    return float(valid.mean()), error, len(valid)


def median_and_error(values: NDArray[np.float64]) -> tuple[float, float, int]:
    """Return median, its standard error and the count of the values that are not NaN.

    The error is that of McKean and Schrader (Comm. Stat. B 13, 1984): a quarter of the width of the 95 % interval whose
    ends are order statistics.

    >>> median_and_error(np.array([0.0, 1.0, 5.0, np.nan]))[0]
    1.0
    """
    valid = np.sort(values[~np.isnan(values)])
    n = len(valid)
    if n == 0:
        return float("nan"), float("nan"), 0
    low = max(int(np.round((n + 1) / 2 - 1.959964 * np.sqrt(n / 4))), 1)
    error = float((valid[n - low] - valid[low - 1]) / (2 * 1.959964))
    return float(np.median(valid)), error, n
