"""What ``SAD().fit(data)`` should do: its defaults beside alternatives, on validation splits of several data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sadrec import BPR, SAD, Interactions
from sadrec.evaluation import EASE, Popularity, evaluate, evaluate_top_n
from studies._tools import (
    Record,
    Unit,
    digest,
    markdown_table,
    run,
    settings_of,
    summarise,
    write_tables,
    write_whole,
)

MEASURES = ("ndcg@10", "ndcg@20", "recall@50", "coverage@10", "m1", "m2", "unequal_accuracy")

CANDIDATES: Mapping[str, Mapping[str, Any]] = {
    "default settings": {},
    "pairwise": {"loss": "pairwise"},
    "softmax": {"loss": "softmax"},
    "length 1.5": {"loss": "softmax", "length": 1.5},
    "length 2": {"loss": "softmax", "length": 2.0},
    "length 2.5": {"loss": "softmax", "length": 2.5},
    "length 3": {"loss": "softmax", "length": 3.0},
    "length 3.5": {"loss": "softmax", "length": 3.5},
    "negatives as drawn": {"loss": "pairwise", "negative_candidates": 1},
    "hardest of 2": {"loss": "pairwise", "negative_candidates": 2},
    "hardest of 4": {"loss": "pairwise", "negative_candidates": 4},
    "hardest of 8": {"loss": "pairwise", "negative_candidates": 8},
    "l2 0.01": {"regularization": 0.01},
    "l2 0.02": {"regularization": 0.02},
    "l2 0.03": {"regularization": 0.03},
    "no bias": {"bias": False},
    "user_balance 0": {"user_balance": 0.0},
    "user_balance 0.5": {"user_balance": 0.5},
    "128 factors": {"factors": 128},
}
"""What is changed in ``SAD()``, by name."""

# Settings that follow the data.
FOLLOWING = ("loss", "factors", "regularization", "negative_candidates", "negatives", "length", "user_balance")

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 2

# EASE is left out above so many items.
MOST_ITEMS = 10_000


@dataclass(frozen=True, eq=False)
class DefaultsStudy:
    """The results of the study.

    Attributes
    ----------
    summaries
        By data set: every measure of every candidate.
    report
        The Markdown report; tables are in the same folder.
    """

    summaries: Mapping[str, pl.DataFrame]
    report: Path


def defaults_study(
    folder: str | Path,
    data: Mapping[str, Interactions],
    *,
    candidates: Mapping[str, Mapping[str, Any]] = CANDIDATES,
    num_threads: int = 0,
    show_progress: bool = True,
) -> DefaultsStudy:
    """Compare the defaults with alternatives on a validation split of each data set.

    Parameters
    ----------
    folder
        Where tables and report are written; records of finished fits are kept in ``runs``, and a study that was killed
        continues from them.
    data
        Training parts by name: an eighth of each is split off for validation.
    candidates
        Changes to the defaults, by name.
    num_threads
        Threads of a fit; 0 means all cores. The result does not depend on it.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    folder = Path(folder)
    summaries, pieces, overview = {}, [], []
    for name, train in data.items():
        models: dict[str, Any] = {"Popularity": Popularity()}
        if train.shape[1] <= MOST_ITEMS:
            models["EASE"] = EASE()
        models["BPR()"] = BPR(num_threads=num_threads)
        for title, change in candidates.items():
            shown = "SAD()" if not change else f"SAD: {title}"
            models[shown] = SAD(num_threads=num_threads).set_params(**change)
        parts = train.split(test=0.125, seed=1)
        units = [_unit(f"{name}-{place:02d}", model, parts) for place, model in enumerate(models.values())]
        records = run(folder, units, name, show_progress=show_progress)
        rows = [(title, record["figures"]) for title, record in zip(models, records, strict=True)]
        summaries[name] = summarise(rows, {})
        table = write_tables(folder, name, summaries[name], MEASURES)
        used = settings_of(SAD(), parts[0])
        shown = ", ".join(
            f"{setting} {value if isinstance(value, str) else f'{value:.3g}'}"
            for setting, value in ((name, used[name]) for name in FOLLOWING)
        )
        pieces.append(f"## {name}\n\n{train!r}. `SAD()` takes {shown}.\n\n{table}")
        overview.append(_overview(name, used, rows))
    report = folder / "report.md"
    table = markdown_table(_OVERVIEW, overview, numbers=range(1, len(_OVERVIEW)))
    write_whole(report, "\n".join([_INTRODUCTION, table + "\n", *pieces]))
    return DefaultsStudy(summaries, report)


_INTRODUCTION = """# Defaults

One validation split (an eighth of the training part) per data set; test data is not seen. ndcg, recall and coverage are
those of lists from the whole catalogue; m1, m2 and unequal_accuracy are measured as in the paper, with 100 sampled
items. `SAD: ...` is `SAD()` with that one change. The best of them is that by ndcg@20.
"""

_OVERVIEW = ("", "factors", "length", "Popularity", "EASE", "SAD()", "best change", "SAD() / best", "which")


def _overview(name: str, used: Mapping[str, Any], rows: Sequence[tuple[str, Mapping[str, float | None]]]) -> list[str]:
    """Return one line of the first table: ndcg@20 of the default settings beside that of the best change."""
    ndcg = {title: figures["ndcg@20"] or 0.0 for title, figures in rows}
    ours = {title: value for title, value in ndcg.items() if title.startswith("SAD")}
    best = max(ours, key=lambda title: ours[title])
    shown = [f"{ndcg[title]:.4f}" if title in ndcg else "" for title in ("Popularity", "EASE", "SAD()", best)]
    share = ndcg["SAD()"] / max(ndcg[best], 1e-12)
    return [name, str(used["factors"]), str(used["length"]), *shown, f"{share:.3f}", best.removeprefix("SAD: ")]


def _unit(name: str, model: Any, parts: Sequence[Interactions]) -> Unit:
    """Return the unit that fits a model and evaluates it both ways."""
    train, held_out = parts

    def compute() -> Record:
        model.fit(train, show_progress=False)
        lists = evaluate_top_n(model, train, held_out, N=(10, 20, 50))
        pairs = evaluate(model, train, held_out)
        figures = {**lists, **pairs}
        return {"figures": {measure: figures[measure] for measure in MEASURES}}

    identity = {"format": FORMAT, "data": digest(train, held_out), "model": type(model).__name__}
    return Unit(f"defaults-{name}", {**identity, "settings": settings_of(model, train)}, compute)
