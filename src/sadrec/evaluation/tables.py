"""The display of measures, and a summary of models by measures as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

_SHARES = ("match", "match_per_user", "unequal_accuracy", "m1", "m2", "m_margin", "sampled_auc", "accuracy")
_MORE = ("mean_margin", "ndcg", "recall", "precision", "hit_rate", "mrr", "map", "coverage")
_LESS = ("brier", "log_loss", "outcome_log_loss", "rated_brier", "rated_log_loss")
MEANINGS = {
    "ndcg": "Gain of the held-out items in the user's best N of the catalogue, less for lower places; 1 is perfect.",
    "recall": "Share of the user's held-out items among their best N of the catalogue.",
    "log_loss": "Mean of -log P of what happened; a coin has 0.693.",
    "outcome_log_loss": "Mean of -log P of the outcome: win, loss or tie.",
    "accuracy": "Share of held-out comparisons whose winner has P above one half; equal ones count half.",
    "mean_margin": "Mean margin of the held-out item over the user's items, in the direction of their ratings.",
    "match": "Share of the user's items whose order against the held-out item is that of the ratings.",
    "match_per_user": "Median over users of that share.",
    "m1": "How often fewer than 20 of 100 sampled items are preferred to the held-out item.",
    "m2": "The same, where items are ranked by how many of the user's items they beat.",
}
"""Definitions of measures, in one line each."""


@dataclass(frozen=True)
class Measure:
    """The display of a measure; ``better`` is 1 if more is better, -1 if less is, else 0."""

    name: str
    share: bool = False  # shown in per cent
    better: int = 0

    @property
    def heading(self) -> str:
        """The name with its unit."""
        return f"{self.name} (%)" if self.share else self.name

    @property
    def meaning(self) -> str:
        """The definition in one line, with whether more or less is better; empty for an unknown measure."""
        text = MEANINGS.get(self.name.partition("@")[0], "")
        return text and f"{self.name}: {text} {'More' if self.better > 0 else 'Less'} is better."

    @property
    def digits(self) -> int:
        """Number of displayed decimals."""
        return 1 if self.share else 3

    def shown(self, value: float) -> float:
        """Return the value in the unit it is shown in."""
        return 100.0 * value if self.share else value


def measure_of(name: str) -> Measure:
    """Return how a measure is shown; of ``"ndcg@10"`` the part before the @ decides.

    Examples
    --------
    >>> measure_of("ndcg@10").better, measure_of("log_loss").better, measure_of("m1").heading
    (1, -1, 'm1 (%)')
    """
    base = name.partition("@")[0]
    better = 1 if base in (*_SHARES, *_MORE) else -1 if base in _LESS else 0
    return Measure(name, base in _SHARES, better)


def render(summary: pl.DataFrame, models: Sequence[str], measures: Sequence[str]) -> str:
    """Return a table with a row per model and a column per measure, from what :meth:`CompareResult.summary` returns.

    Cells show mean ± standard deviation over splits, with the best mean in bold.
    """
    cells = {(row["model"], row["measure"]): row for row in summary.iter_rows(named=True)}
    notes = {row["model"]: row["note"] for row in summary.iter_rows(named=True)}
    shown = [measure_of(name) for name in measures]
    best = {measure.name: _best(cells, models, measure) for measure in shown}
    with_notes = any(notes.get(model) for model in models)
    header = ["Model", *[measure.heading for measure in shown], *(["Note"] if with_notes else [])]
    rows = []
    for model in models:
        row = [model]
        for measure in shown:
            cell = cells.get((model, measure.name))
            row.append("" if cell is None else _cell(cell, measure, model in best[measure.name]))
        rows.append(row + ([notes.get(model, "")] if with_notes else []))
    return markdown(header, rows)


def _cell(cell: dict[str, Any], measure: Measure, bold: bool) -> str:
    digits = measure.digits
    text = f"{measure.shown(cell['mean']):.{digits}f}"
    if cell["sd"] is not None:
        text += f" ± {measure.shown(cell['sd']):.{digits}f}"
    return f"**{text}**" if bold else text


def _best(cells: dict[Any, dict[str, Any]], models: Sequence[str], measure: Measure) -> set[str]:
    if not measure.better:
        return set()
    means = {
        model: round(measure.better * measure.shown(cells[model, measure.name]["mean"]), measure.digits)
        for model in models
        if (model, measure.name) in cells
    }
    return {model for model, mean in means.items() if mean == max(means.values())} if len(means) > 1 else set()


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first column and a column "Note" are texts, the others numbers.

    Examples
    --------
    >>> print(markdown(["Model", "m1 (%)"], [["SAD", "89.1"]]), end="")
    | Model | m1 (%) |
    |---|---:|
    | SAD | 89.1 |
    """
    escaped = [" | ".join(text.replace("|", r"\|") for text in row) for row in [header, *rows]]
    rule = "".join("---|" if place == 0 or name == "Note" else "---:|" for place, name in enumerate(header))
    lines = [f"| {escaped[0]} |", f"|{rule}", *(f"| {row} |" for row in escaped[1:])]
    return "\n".join(lines) + "\n"
