"""Pictures of comparisons (needs matplotlib: the ``plot`` extra)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sadrec._core.picture import new_figure
from sadrec.evaluation.tables import measure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sadrec.evaluation.compare_result import CompareResult

COLOURS = ("#1f5fa8", "#c4501b", "#3a7d44", "#7a4fa3", "#8c6d1f", "#a33b5e", "#4a4a4a")


def dots_and_intervals(comparison: "CompareResult", measures: Sequence[str]) -> "Figure":
    """Draw a panel per measure: every split as a faint dot below the mean, the mean as a dot with its 95 % interval."""
    from scipy import stats

    models = comparison.models
    columns = min(4, max(1, len(measures)))
    rows = -(-max(1, len(measures)) // columns)
    figure = new_figure(2.2 + 2.6 * columns, 0.9 + rows * (0.7 + 0.28 * len(models)))
    panels: Any = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for panel in panels.ravel()[len(measures) :]:
        panel.set_axis_off()
    for panel, name in zip(panels.ravel(), measures, strict=False):
        measure = measure_of(name)
        for place, model in enumerate(models):
            values = np.array([measure.shown(v) for v in comparison.values(model, name).values()])
            colour = COLOURS[place % len(COLOURS)]
            if len(values) == 0:
                panel.text(0.5, place, "no result", ha="center", va="center", color="#888888",
                           fontsize=8, transform=panel.get_yaxis_transform())  # fmt: skip
                continue
            panel.plot(values, np.full(len(values), place + 0.22), "o", color=colour, alpha=0.35, markersize=3)
            mean = values.mean()
            if len(values) > 1:
                half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
                panel.plot([mean - half, mean + half], [place, place], "-", color=colour, linewidth=2)
            panel.plot([mean], [place], "o", color=colour, markersize=6)
        arrow = {1: " →", -1: " ←", 0: ""}[measure.better]
        panel.set_title(measure.heading + arrow, fontsize=10)
        panel.set_yticks(range(len(models)), models)
        panel.set_ylim(len(models) - 0.5, -0.5)
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
    return figure
