"""The order inside ratings: what is gained on seen items, and what it costs on unseen ones, by the share of pairs.

A share q of the training pairs comes from the user's own unequal ratings, the rest are interacted over not. The study
draws the whole curve over q, and looks for one model that is good at both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sadrec import SAD, Interactions
from sadrec.evaluation import Popularity, evaluate
from studies._tools import (
    COLOURS,
    Record,
    Unit,
    digest,
    markdown_table,
    new_figure,
    png_of,
    run,
    settings_of,
    summarise,
    whole,
    write_tables,
    write_whole,
)

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
MEASURES = ("unequal_accuracy", "match", "match_per_user", "m1", "m2", "m_margin")

SETTINGS: Mapping[str, Any] = {
    "factors": 128,
    "iterations": 40,
    "learning_rate": 0.05,
    "regularization": 0.007,
    "rival_regularization": 0.001,
    "negative_candidates": 2,
    "bias": True,
    "user_balance": 0.0,
    "loss": "pairwise",
}
"""Of every model of the curve; chosen on the validation split."""

CANDIDATES: Sequence[Mapping[str, Any]] = (
    {"order_share": 0.34},
    {"order_share": 0.37},
    {"order_share": 0.4},
    {"order_share": 0.4, "negative_candidates": 3},
)
"""What the one model good at both is chosen from, on validation items: changes to :data:`SETTINGS`."""

WANTED_ACCURACY, WANTED_M1 = 0.75, 0.90
POPULARITY = "Popularity"
CHOSEN = "Chosen"

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 1


@dataclass(frozen=True, eq=False)
class OrderStudy:
    """The results of the study.

    Attributes
    ----------
    curve
        Mean of every measure by model on held-out items: popularity, each q, and the chosen model.
    chosen
        The settings of the chosen model.
    report
        The Markdown report; table and figure are in the same folder.
    """

    curve: pl.DataFrame
    chosen: Mapping[str, Any]
    report: Path


def order_study(
    folder: str | Path,
    data: Interactions,
    *,
    shares: Sequence[float] = SHARES,
    candidates: Sequence[Mapping[str, Any]] = CANDIDATES,
    settings: Mapping[str, Any] = SETTINGS,
    splits: int = 3,
    num_threads: int = 0,
    show_progress: bool = True,
) -> OrderStudy:
    """Measure what training on the order inside ratings gains and costs, leaving one item of each user out.

    Parameters
    ----------
    folder
        Where table, figure and report are written; records of finished fits are kept in ``runs``, and a study that was
        killed continues from them.
    data
        Interactions with ratings.
    shares
        Values of ``order_share``, each fitted to the first split.
    candidates
        Changes to ``settings`` among which one model is chosen on a validation split inside the first training part.
    settings
        Of all models.
    splits
        On how many splits the chosen model (and popularity) is evaluated.
    num_threads
        Threads of a fit; 0 means all cores. The result does not depend on it.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    new_figure(1, 1)  # say now, not after minutes, that matplotlib is missing
    if not data.has_ratings:
        raise ValueError("the order inside ratings needs ratings, and the data has none")
    whole(splits, "splits", least=1)
    if not shares or not candidates:
        raise ValueError("give at least one share and one candidate")
    folder = Path(folder)
    parts = [data.leave_one_out(seed=seed) for seed in range(splits)]
    inner = parts[0][0].leave_one_out(seed=1)
    tried = [
        _unit(f"validation-{place}", {**settings, **change}, inner, 0, num_threads)
        for place, change in enumerate(candidates)
    ]
    validation = run(folder, tried, "order, validation", show_progress=show_progress)
    place = choose([record["figures"] for record in validation])
    chosen = {**settings, **candidates[place]}

    units, titles = [], []
    for seed, part in enumerate(parts):
        units.append(_unit(f"popularity-{seed}", None, part, seed, num_threads))
        titles.append(POPULARITY)
    for share in shares:
        units.append(_unit(f"share-{share:g}", {**settings, "order_share": share}, parts[0], 0, num_threads))
        titles.append(f"q = {share:g}")
    for seed, part in enumerate(parts):
        units.append(_unit(f"chosen-{seed}", chosen, part, seed, num_threads))
        titles.append(CHOSEN)
    records = run(folder, units, "order, held out", show_progress=show_progress)
    rows = [
        (title, {measure: record["figures"][measure] for measure in MEASURES})
        for title, record in zip(titles, records, strict=True)
    ]
    curve = summarise(rows, {})
    table = write_tables(folder, "curve", curve, MEASURES)
    _draw(folder / "curve.png", curve)
    report = folder / "report.md"
    write_whole(report, _report(data, settings, candidates, validation, place, table, splits))
    return OrderStudy(curve, chosen, report)


def choose(figures: Sequence[Mapping[str, float]]) -> int:
    """Return the place of the candidate whose weaker side, unequal_accuracy or m1, is furthest above what is wanted.

    Examples
    --------
    >>> choose([{"unequal_accuracy": 0.76, "m1": 0.901}, {"unequal_accuracy": 0.754, "m1": 0.905}])
    1
    """
    weaker = [min(each["unequal_accuracy"] - WANTED_ACCURACY, each["m1"] - WANTED_M1) for each in figures]
    return weaker.index(max(weaker))


def _unit(
    name: str,
    settings: Mapping[str, Any] | None,
    parts: tuple[Interactions, Interactions],
    seed: int,
    num_threads: int,
) -> Unit:
    """Return the unit that fits a model (popularity, without settings) and evaluates it."""
    train, held_out = parts
    given = {**(settings or {}), "random_state": seed, "num_threads": num_threads}
    model: Any = Popularity() if settings is None else SAD().set_params(**given)

    def compute() -> Record:
        model.fit(train, show_progress=False)
        return {"figures": dict(evaluate(model, train, held_out, seed=seed, num_threads=num_threads))}

    about = {"model": type(model).__name__, "settings": settings_of(model, train)}
    identity = {"format": FORMAT, "data": digest(train, held_out), **about, "seed": seed}
    return Unit(f"order-{name}", identity, compute)


def _draw(path: Path, curve: pl.DataFrame) -> None:
    """Draw m1 and m2 against unequal_accuracy, a point per q."""
    means = {(row["model"], row["measure"]): 100 * row["mean"] for row in curve.iter_rows(named=True)}
    models = curve["model"].unique(maintain_order=True).to_list()
    figure = new_figure(5.2, 3.8)
    panel: Any = figure.subplots()
    for place, measure in enumerate(("m1", "m2")):
        line = [(means[model, "unequal_accuracy"], means[model, measure]) for model in models if model[0] == "q"]
        panel.plot(*zip(*line, strict=True), "o-", color=COLOURS[place], label=measure, markersize=4)
        for model, marker in ((POPULARITY, "s"), (CHOSEN, "*")):
            point = means[model, "unequal_accuracy"], means[model, measure]
            panel.plot(*point, marker, color=COLOURS[place], markersize=9 if marker == "*" else 5)
            if place == 0:
                panel.annotate(model.lower(), point, textcoords="offset points", xytext=(7, 4), fontsize=8)
    for model in models:
        if model[0] == "q":
            point = means[model, "unequal_accuracy"], means[model, "m1"]
            panel.annotate(model[4:], point, textcoords="offset points", xytext=(-4, 7), fontsize=8)
    panel.set_xlabel("accuracy over unequally rated pairs (%)")
    panel.set_ylabel("held-out item ahead of 80 of 100 (%)")
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False)
    write_whole(path, png_of(figure))


def _report(
    data: Interactions,
    settings: Mapping[str, Any],
    candidates: Sequence[Mapping[str, Any]],
    validation: Sequence[Record],
    place: int,
    table: str,
    splits: int,
) -> str:
    names = ("unequal_accuracy", "m1", "m2")
    rows = [
        [_shown(change), *(f"{100 * record['figures'][name]:.1f}" for name in names)]
        for change, record in zip(candidates, validation, strict=True)
    ]
    parts = [
        "# The order inside ratings",
        f"{data!r}, one item of each user held out. All models: `SAD({_shown(settings)})`. The curve over "
        f"q = `order_share` is measured on the first split, popularity and the chosen model on {splits}.",
        table.rstrip(),
        "![m1 and m2 against unequal_accuracy](curve.png)",
        f"Chosen on validation items (of the first training part) to be good at both: candidate {place + 1}.",
        markdown_table(["Candidate", "unequal_accuracy (%)", "m1 (%)", "m2 (%)"], rows, numbers=(1, 2, 3)),
    ]
    return "\n\n".join(parts) + "\n"


def _shown(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())
