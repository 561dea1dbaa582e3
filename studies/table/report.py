"""The report of the study: one page of Markdown, and its pictures."""

import math
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from platform import machine, python_version, system
from typing import Any

from sadrec.evaluation.tables import measure_of
from studies._tools import markdown_table, png_of, write_whole
from studies.table.calibration import plot_calibration
from studies.table.claims import against_bpr, against_paper, bpr_sentence
from studies.table.paper import MEASURES, PAPER, PUBLISHED, printed
from studies.table.study import CHOSEN_BY, TableStudy

FURTHER = ("unequal_accuracy", "m_margin", "sampled_auc", "log_loss", "brier", "rated_log_loss")
_NOT_SHOWN = ("num_threads", "seed", "learn_rivals", "name", "timeout", "where")
_PACKAGES = ("sadrec", "numpy", "scipy", "numba", "polars")


def write_report(study: TableStudy, folder: str | Path, command: str = "") -> Path:
    """Write ``report.md``, ``results.csv`` and the pictures; return the path of the report."""
    folder = Path(folder)
    write_whole(folder / "measures.png", png_of(study.comparison.plot(list(MEASURES)), dpi=90))
    if study.calibrations:
        write_whole(folder / "calibration.png", png_of(plot_calibration(dict(study.calibrations)), dpi=90))
    write_whole(folder / "results.csv", study.comparison.frame.write_csv())
    write_whole(folder / "report.md", report_text(study, command))
    return folder / "report.md"


def report_text(study: TableStudy, command: str = "") -> str:
    """Return everything the report says, as Markdown."""
    parts = [f"# Evaluation on {study.data.title}"]
    if command:
        parts.append(f"Made by `{command}`.")
    parts += ["## Data", _properties(study), _sets(study)]
    parts += ["## Results", markdown_table(*main_table(study), numbers=range(1, len(MEASURES) + 3)), _legend(study)]
    parts.append(f"![{_DOTS}](measures.png)")
    parts += ["## Further measures", _further_table(study), _FURTHER_LEGEND]
    if study.data.published is not None:
        parts += ["## The paper's own set 00 alone", _first_set(study)]
    if claims := against_paper(study):
        parts += ["## SAD against the best of the paper's models", markdown_table(*claims, numbers=(1, 2))]
    header, rows = against_bpr(study)
    if rows:
        parts += ["## SAD against BPR", _figures_table(header, rows), bpr_sentence(study)]
    parts += _examples(study)
    if study.calibrations:
        parts.append(f"![{_CALIBRATION}](calibration.png)")
    parts += ["## Models and settings", _model_table(study), _choice(study), "## Versions", _versions()]
    return "\n\n".join(parts) + "\n"


def _figures_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table of numbers with names in the first column."""
    return markdown_table(header, rows, numbers=range(1, len(header)))


_DOTS = "The paper's measures: means with 95 % intervals; faint dots are single sets."
_CALIBRATION = (
    "When a model says 70 %, is it right in 70 of 100 cases? Held-out against sampled items, first set, first number "
    "of factors."
)
_FURTHER_LEGEND = (
    "unequal_accuracy: over pairs with different ratings only. m_margin: the comparisons of m2 ranked by mean margin, "
    "without ties. sampled_auc, log_loss and brier: the held-out item against the sampled ones (a probability of one "
    "half scores log 2 = 0.693 and 0.25); rated_log_loss: against the user's own unequally rated items. Only models "
    "that give probabilities have the last three."
)


def _properties(study: TableStudy) -> str:
    facts, in_paper = study.data.interactions.describe(), PUBLISHED.get(study.data.name)
    names = ("users", "items", "ratings", "sparsity", "ratings per user: min/5 %/median/95 %/max", "per item")

    def cells(what: Any) -> list[str]:
        spread = ["/".join(f"{value:,.0f}" for value in values) for values in (what.per_user, what.per_item)]
        return [f"{what.users:,}", f"{what.items:,}", f"{what.ratings:,}", f"{what.sparsity:.2%}", *spread]

    published = [""] * len(names) if in_paper is None else cells(in_paper)
    rows = [list(row) for row in zip(names, cells(facts), published, strict=True)]
    return _figures_table(["", "here", "published"], rows)


def _sets(study: TableStudy) -> str:
    count = len({run.split for run in study.comparison.runs})
    text = f"Selected: {study.data.selection}.\n\n" if study.data.selection else ""
    text += (
        f"{count} leave-one-out {'set' if count == 1 else 'sets'}: one random interaction of every user with at least "
        "two is held out. Ratings are masked in training (`order_share=0`) and used to judge consistency only."
    )
    if study.data.published is not None:
        text += " Set 0 is the paper's own set 00; the others are drawn from its union."
    return text


def main_table(study: TableStudy) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: every model with our figures and the paper's, sets, seconds and what went wrong."""
    comparison = study.comparison
    means = _means(study)
    header = ["Model", *[measure_of(name).heading for name in MEASURES], "Sets", "Fit (s)", "Note"]
    rows = []
    for model in study.models:
        cells = [model.title]
        for name in MEASURES:
            ours = _cell(means, study, model.title, name)
            paper = printed(study.data.name, model.paper, name)
            cells.append(f"{ours or '-'} ({paper})" if paper else ours)
        runs = [run for run in comparison.runs if run.model == model.title]
        done = [run for run in runs if run.status == "done"]
        fit = f"{sum(run.fit_seconds for run in done) / len(done):.1f}" if done else ""
        rows.append([*cells, f"{len(done)} of {study.splits.usual}", fit, comparison.notes(model.title)])
    return header, rows


def _further_table(study: TableStudy) -> str:
    means = _means(study)
    shown = [name for name in FURTHER if name in study.comparison.measures]
    rows = [[model.title, *[_cell(means, study, model.title, name) for name in shown]] for model in study.models]
    return _figures_table(["Model", *[measure_of(name).heading for name in shown]], rows)


def _first_set(study: TableStudy) -> str:
    shown = (*MEASURES, "log_loss")
    rows = []
    for model in study.models:
        values = [study.comparison.values(model.title, name).get(0) for name in shown]
        rows.append([model.title, *[_figure(name, value) for name, value in zip(shown, values, strict=True)]])
    return _figures_table(["Model", *[measure_of(name).heading for name in shown]], rows)


def _means(study: TableStudy) -> dict[tuple[str, str], tuple[float, float | None]]:
    return {
        (row["model"], row["measure"]): (row["mean"], row["sd"])
        for row in study.comparison.summary().iter_rows(named=True)
        if row["measure"] is not None
    }


def _cell(means: Mapping[tuple[str, str], tuple[float, float | None]], study: TableStudy, title: str, name: str) -> str:
    cell = means.get((title, name))
    if cell is None:
        return ""
    measure, (mean, sd) = measure_of(name), cell
    text = _figure(name, mean) + ("" if sd is None else f" ± {_figure(name, sd)}")
    everyone = [means[model.title, name][0] for model in study.models if (model.title, name) in means]
    best = max(everyone, key=lambda value: measure.better * value)
    return f"**{text}**" if measure.better and _figure(name, best) == _figure(name, mean) else text


def _figure(name: str, value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    measure = measure_of(name)
    return f"{measure.shown(value):.{1 if measure.share else 3}f}"


def _legend(study: TableStudy) -> str:
    text = "Mean ± standard deviation over the sets, the best mean in bold; fits are timed as they were run, perhaps "
    text += "several at a time."
    if study.data.name in PAPER:
        text += " In brackets the paper's figures (20 sets, k = 500)."
    fewer = [model.title for model in study.models if study.splits.of(model) < study.splits.usual]
    if fewer:
        text += f" On fewer sets, for want of time: {', '.join(fewer)}."
    return text


def _examples(study: TableStudy) -> list[str]:
    if study.consistency is None:
        return []
    return [
        "## Examples: SAD right, BPR wrong",
        f"First set. {study.consistency}",
        study.consistency.table(10, strongest=True).rstrip(),
        "The item rated higher comes first; these are the pairs with the widest gap of ratings, then of margins.",
    ]


def _model_table(study: TableStudy) -> str:
    rows = []
    for model in study.models:
        chosen = study.settings[model.title]
        settings = model.resolved(chosen, study.train)
        shown = ", ".join(f"{name}={value}" for name, value in settings.items() if name not in _NOT_SHOWN)
        tried = len(study.searches[model.name].trials) if model.name in study.searches else 1
        rows.append([model.title, model.library, model.trained_on(chosen, study.train), shown, str(tried)])
    return markdown_table(["Model", "Library", "Trained on", "Settings", "Settings tried"], rows, numbers=(4,))


def _choice(study: TableStudy) -> str:
    label = measure_of(CHOSEN_BY).name
    parts = []
    for name, search in study.searches.items():
        scores = [trial.score for trial in search.trials if not math.isnan(trial.score)]
        if scores:
            parts.append(f"{name} {100 * min(scores):.1f} to {100 * max(scores):.1f}")
    text = (
        f"Where several settings were tried, the first of the list within one standard error of the best {label} on a "
        "validation set was taken: one further interaction of every user, held out of the training part of set 0. The "
        "held-out items of set 0 had no say; the other sets "
        "are drawn from the same data, as in the paper, so an item held out there may have been in that training or "
        "validation part. SAD and BPR were searched at their first number of factors, from one list in common, which "
        "was itself drawn up from earlier trials on validation sets of MovieLens 1M and Food.com; of baselines, the "
        "defaults come first, then points of their grid drawn at random. A model with one setting tried ran with the "
        "first of its list, for baselines their defaults or what was given, and was not tuned on this data here."
    )
    return text + (f" {label} on validation, worst to best setting: {'; '.join(parts)}." if parts else "")


def _versions() -> str:
    named = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    return (
        f"Python {python_version()} on {system()} {machine()}; {named}. The baselines' libraries are pinned by their "
        "locked environments."
    )
