"""The simulation study on one page: the paper's claims, what we find, and the figures; Markdown and HTML."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import polars as pl

from sadrec.evaluation._store import write_atomically
from studies.simulation.claims import SETTINGS, Claim, Verdict
from studies.simulation.fits import MODELS, SCENARIOS

_MARKS = {True: "holds", False: "does not hold", None: "not run"}
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .6rem; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
img { max-width: 100%; display: block }
figure { margin: 1.5rem 0 } figcaption { color: #555; font-size: 14px }
.holds { color: #14602a; font-weight: 600 } .does { color: #a01818; font-weight: 600 } .not { color: #777 }
"""

_INTRODUCTION = (
    "{users} users compare {items} items; k = {factors}. Mean over {seeds} seeds. Paper's setting: learning rate 0.05 "
    "throughout, l1 0.01, l2 0.005, 20 epochs, first values of Ξ and H from N(0, 1), of T from exp(N(0, 1)); "
    "the steps are those of our trainer, whose l1 step is proximal and which keeps T from going negative. "
    "Ours: what `SAD(factors={factors}, adaptive=True).fit(comparisons)` does by default. Factors are compared after "
    "permuting, flipping (Ξ and H together), scaling and adding multiples of T to H, none of which changes X."
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


def write_report(
    folder: Path, claims: Sequence[Claim], final: pl.DataFrame, captions: Mapping[str, str]
) -> tuple[Path, Path]:
    """Write ``report.md`` and ``report.html`` and return their paths.

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
    markdown, html = folder / "report.md", folder / "report.html"
    write_atomically(markdown, _markdown(claims, final, captions).encode())
    write_atomically(html, _html(claims, final, captions).encode())
    return markdown, html


def _markdown(claims: Sequence[Claim], final: pl.DataFrame, captions: Mapping[str, str]) -> str:
    lines = ["# Simulation study", "", introduction(final), "", "## The paper's claims", ""]
    lines += _table(
        ["Claim", "Taken to mean", *(title.capitalize() for title in SETTINGS.values()), "Figure"],
        [
            [
                claim.text,
                claim.criterion,
                *(f"**{_MARKS[verdict.holds]}**: {verdict.numbers}" for verdict in claim.verdicts.values()),
                f"[{claim.figure}]({claim.figure}.png)" if claim.figure in captions else "",
            ]
            for claim in claims
        ],
    )
    lines += ["", "The criteria are ours: the paper gives no numbers.", "", "## Results after the last epoch", ""]
    lines += _table(*final_rows(final))
    lines += [
        "",
        divergence(final),
        "",
        "`final.csv` and `curves.csv` hold the numbers, the second epoch by epoch.",
        "",
        "## Figures",
        "",
    ]
    for name, caption in captions.items():
        lines += [f"![{name}]({name}.png)", "", caption, ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(header), line(["---"] * len(header)), *map(line, rows)]


def _html(claims: Sequence[Claim], final: pl.DataFrame, captions: Mapping[str, str]) -> str:
    def cells(values: Sequence[str], tag: str, number: int = 99) -> str:
        kinds = (' class="number"' if tag == "td" and place >= number else "" for place in range(len(values)))
        return "".join(f"<{tag}{kind}>{value}</{tag}>" for kind, value in zip(kinds, values, strict=True))

    def verdict(found: Verdict) -> str:
        mark = _MARKS[found.holds]
        return f'<span class="{mark.split()[0]}">{mark}</span>: {escape(found.numbers)}'

    header, rows = final_rows(final)
    claim_rows = "".join(
        "<tr>"
        + cells(
            [
                escape(claim.text),
                escape(claim.criterion),
                *(verdict(found) for found in claim.verdicts.values()),
                f'<a href="#{claim.figure}">{claim.figure}</a>' if claim.figure in captions else "",
            ],
            "td",
        )
        + "</tr>\n"
        for claim in claims
    )
    claim_header = cells(
        ["Claim", "Taken to mean", *(title.capitalize() for title in SETTINGS.values()), "Figure"], "th"
    )
    result_rows = "".join(f"<tr>{cells([escape(cell) for cell in row], 'td', 3)}</tr>\n" for row in rows)
    figures = "".join(
        f'<figure id="{name}"><img src="{name}.png" alt="{name}"><figcaption>{escape(caption)}</figcaption></figure>\n'
        for name, caption in captions.items()
    )
    text = escape(introduction(final)).replace("`", "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Simulation study</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Simulation study</h1>\n<p>{text}</p>\n"
        f"<h2>The paper's claims</h2>\n<table><tr>{claim_header}</tr>\n{claim_rows}</table>\n"
        "<p>The criteria are ours: the paper gives no numbers.</p>\n"
        f"<h2>Results after the last epoch</h2>\n<table><tr>{cells(header, 'th')}</tr>\n{result_rows}</table>\n"
        f"<p>{escape(divergence(final)).replace('`', '')}</p>\n"
        "<p><a href='final.csv'>final.csv</a> and <a href='curves.csv'>curves.csv</a> hold the numbers, the second "
        f"epoch by epoch.</p>\n<h2>Figures</h2>\n{figures}</body></html>\n"
    )
