"""The simulation study on one page: the paper's claims, what we find, and the figures, as Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from studies._tools import markdown_table, write_whole
from studies.simulation.claims import SETTINGS, Claim
from studies.simulation.fits import MODELS, SCENARIOS

_MARKS = {True: "holds", False: "does not hold", None: "not run"}

_INTRODUCTION = (
    "{users} users compare {items} items; k = {factors}. Mean over {seeds} seeds. Paper's setting: learning rate 0.05 "
    "throughout, l1 0.01, l2 0.005, 20 epochs, first values of Ξ and H from N(0, 1), of T from exp(N(0, 1)); "
    "the steps are those of our trainer, whose l1 step is proximal and which keeps T from going negative. "
    'Ours: `SAD(factors={factors}, solver="sgd", advanced={{"adaptive": True}}).fit(comparisons)`. '
    "Factors are compared after permuting, flipping (Ξ and H together), scaling and "
    "adding multiples of T to H, none of which changes X."
)


def introduction(final: pl.DataFrame) -> str:
    """Say what was done."""
    return _INTRODUCTION.format(users=20, items=50, factors=5, seeds=max(final["seeds"].to_list()))


def divergence(final: pl.DataFrame) -> str:
    """Say which fits diverged; they are left out of every mean."""
    counts = final.group_by("model", maintain_order=True).agg(pl.col("diverged", "seeds").sum())
    parts = [
        f"{row['diverged']} of the {row['seeds']} fits of {MODELS[row['model']]}"
        for row in counts.filter(pl.col("diverged") > 0).iter_rows(named=True)
    ]
    if not parts:
        return "No fit diverged."
    return f"Diverged, and in no mean: {'; '.join(parts)} (by scenario and missing share: `final.csv`)."


def final_rows(final: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of the table of results."""
    header = [
        "Scenario",
        "Missing",
        "Model",
        "MSE of X",
        "MSE / var X",
        "Sparsity of T",
        "corr. T",
        "corr. Ξ",
        "corr. H",
    ]
    rows = []
    for row in final.sort("missing", maintain_order=True).iter_rows(named=True):
        correlations = [row[f"{name}_correlation"] for name in ("rival", "user", "item")]
        sad, finished = row["model"].startswith("sad"), row["diverged"] < row["seeds"]
        rows.append(
            [
                SCENARIOS[row["scenario"]],
                f"{row['missing']} %",
                MODELS[row["model"]],
                f"{row['mse']:.3g} ± {row['mse_sd']:.2g}" if finished else "diverged",
                f"{row['relative_mse']:.3g}" if finished else "",
                f"{row['sparsity']:.1%} ± {row['sparsity_sd']:.1%}" if sad and finished else "",
                *(
                    f"{value:.3f}" if sad and value is not None and row["true_sparsity"] < 1 else ""
                    for value in correlations
                ),
            ]
        )
    order = {title: place for place, title in enumerate(SCENARIOS.values())}
    return header, sorted(rows, key=lambda cells: order[cells[0]])


def write_report(folder: Path, claims: Sequence[Claim], final: pl.DataFrame, captions: Mapping[str, str]) -> Path:
    """Write ``report.md`` and return its path.

    Parameters
    ----------
    folder
        Where the figures are.
    claims
        The paper's claims with our verdicts.
    final
        The table of results.
    captions
        Of the figures, by name.
    """
    header = ["Claim", "Taken to mean", *(title.capitalize() for title in SETTINGS.values()), "Figure"]
    rows = [
        [
            claim.text,
            claim.criterion,
            *(f"**{_MARKS[verdict.holds]}**: {verdict.numbers}" for verdict in claim.verdicts.values()),
            f"[{claim.figure}]({claim.figure}.png)" if claim.figure in captions else "",
        ]
        for claim in claims
    ]
    parts = ["# Simulation study", introduction(final), "## The paper's claims", markdown_table(header, rows)]
    parts += ["The criteria are ours: the paper gives no numbers.", "## Results after the last epoch"]
    parts += [markdown_table(*final_rows(final)), divergence(final)]
    parts += [
        "`final.csv` holds the numbers; the study also writes `curves.csv`, with those of every epoch.",
        "## Figures",
    ]
    for name, caption in captions.items():
        parts += [f"![{name}]({name}.png)", caption]
    report = folder / "report.md"
    write_whole(report, "\n\n".join(parts) + "\n")
    return report
