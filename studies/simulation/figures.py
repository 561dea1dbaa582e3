"""The figures of the simulation study."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from studies._tools import Record, new_figure, png_of, write_whole
from studies.simulation.fits import MODELS, SCENARIOS

SETTINGS = {"The paper's setting": ("sad-paper", "bpr-paper"), "Ours": ("sad", "bpr")}


def draw_figures(folder: Path, records: Sequence[Record], curves: pl.DataFrame, final: pl.DataFrame) -> dict[str, str]:
    """Write the figures as PNG files and return their captions by name (without the ending).

    Parameters
    ----------
    folder
        Where to.
    records
        Of the fits; those of seed 0 carry factors to draw.
    curves, final
        The tables of :mod:`studies.simulation.summary`.

    Raises
    ------
    ImportError
        Without matplotlib, which the extra ``plot`` installs.
    """
    captions: dict[str, str] = {}

    def keep(name: str, figure: Any, caption: str) -> None:
        write_whole(folder / f"{name}.png", png_of(figure))
        captions[name] = caption

    shown = _records_of_factors(records)
    if shown:
        scenario = SCENARIOS[shown[0]["scenario"]]
        keep("rivals", rivals_figure(shown), f"T and T̂ (complete data; {scenario}; seed 0), factors aligned.")
        keep(
            "factors", factors_figure(shown), f"Ξ̂ and Ĥ against the truth (complete data; {scenario}; seed 0), aligned."
        )
    for scenario in final["scenario"].unique(maintain_order=True):
        part = curves.filter(pl.col("scenario") == scenario)
        true_sparsity = float(final.filter(pl.col("scenario") == scenario)["true_sparsity"][0])
        keep(
            f"convergence-{scenario}",
            convergence_figure(part, true_sparsity),
            f"{SCENARIOS[scenario]}: log likelihood of SAD and sparsity of T by epoch; mean and standard deviation "
            "over the seeds. The black line is the true value.",
        )
        keep(
            f"error-{scenario}",
            error_figure(part),
            f"{SCENARIOS[scenario]}: distance of X̂ from X by epoch, SAD (solid) and BPR (dashed).",
        )
    keep("missing", missing_figure(final), "After the last epoch, by how much is missing; mean and standard deviation.")
    return captions


def _figure(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """Return a figure that belongs to no window, and its axes as a matrix."""
    figure = new_figure(width, height)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _records_of_factors(records: Sequence[Record]) -> list[Record]:
    """Return the records, SAD of both settings, whose factors are drawn: complete data of Sim2, seed 0."""
    for scenario in ("authors", "sim2"):
        shown = [
            record
            for name in ("sad-paper", "sad")
            for record in records
            if record["scenario"] == scenario
            and record["model"] == name
            and record["missing"] == 0
            and record["aligned"] is not None
        ]
        if shown:
            return shown
    return []


def rivals_figure(records: Sequence[Record]) -> Any:
    """Draw T as a map of factors by items: the truth, then each estimate."""
    figure, axes = _figure(1 + len(records), 1, 8, 1.5 * (1 + len(records)), sharex=True)
    maps = [("T", records[0]["truth"])] + [(f"T̂: {MODELS[record['model']]}", record["aligned"]) for record in records]
    for (title, factors), axis in zip(maps, axes[:, 0], strict=True):
        image = axis.imshow(
            np.array(factors["rival_factors"]).T, aspect="auto", cmap="PuOr_r", vmin=-3, vmax=5, interpolation="nearest"
        )
        axis.set(title=title, ylabel="factor", yticks=[])
    axes[-1, 0].set_xlabel("item")
    figure.colorbar(image, ax=axes[:, 0].tolist(), boundaries=np.linspace(0, 5, 101), ticks=[0, 1, 2, 3, 4, 5])
    return figure


def factors_figure(records: Sequence[Record]) -> Any:
    """Draw every entry of Xi and H against its true value."""
    figure, axes = _figure(len(records), 3, 8, 2.7 * len(records))
    for record, row in zip(records, axes, strict=True):
        for axis, (symbol, name) in zip(
            row, (("Ξ", "user_factors"), ("H", "item_factors"), ("T", "rival_factors")), strict=True
        ):
            true, estimate = (np.array(record[side][name]).ravel() for side in ("truth", "aligned"))
            low, high = min(true.min(), estimate.min()), max(true.max(), estimate.max())
            axis.plot([low, high], [low, high], color="0.6", linewidth=1)
            axis.plot(true, estimate, ".", markersize=3)
            axis.set(xlabel=f"{symbol}, true", ylabel="estimated")
            axis.set_title(f"{symbol}: {MODELS[record['model']]}", fontsize=9)
    return figure


def convergence_figure(curves: pl.DataFrame, true_sparsity: float) -> Any:
    """Draw log likelihood and sparsity of SAD by epoch, a line per missing share (the paper's Figure 4, a and b)."""
    rows = (
        ("log_likelihood_gain", "log likelihood\nover epoch 0"),
        ("log_likelihood_to_truth", "log likelihood\nover the truth's"),
        ("sparsity", "sparsity of T"),
    )
    figure, axes = _figure(len(rows), 2, 8, 7, sharex="col", sharey="row")
    for column, (title, (sad, _)) in enumerate(SETTINGS.items()):
        axes[0, column].set_title(title)
        axes[-1, column].set_xlabel("epoch")
        for (name, label), axis in zip(rows, axes[:, column], strict=True):
            _draw_lines(axis, curves, sad, name, "-")
            if column == 0:
                axis.set_ylabel(label)
        axes[1, column].axhline(0, color="black", linewidth=1)
        axes[2, column].axhline(true_sparsity, color="black", linewidth=1)
        axes[2, column].set_ylim(0, 1.03)
    # Fits on their way to divergence, or back from it, would flatten everything else.
    axes[0, 0].set_ylim(-0.2, 1.1 * float(curves["log_likelihood_gain"].to_numpy().max()))
    axes[1, 0].set_ylim(-1, 0.5)
    _legend(figure, axes[0, 0])
    return figure


def error_figure(curves: pl.DataFrame) -> Any:
    """Draw the distance of X from the truth by epoch, SAD solid and BPR dashed (the paper's Figure 4, c and d)."""
    figure, axes = _figure(2, 2, 8, 5.5, sharex="col", sharey="row")
    for column, (title, (sad, bpr)) in enumerate(SETTINGS.items()):
        axes[0, column].set_title(title)
        axes[-1, column].set_xlabel("epoch")
        for name, axis in zip(("frobenius", "mse"), axes[:, column], strict=True):
            axis.set_yscale("log")
            _draw_lines(axis, curves, bpr, name, "--")
            _draw_lines(axis, curves, sad, name, "-")
    axes[0, 0].set_ylabel("Frobenius distance")
    axes[1, 0].set_ylabel("MSE of X")
    _legend(figure, axes[0, 0])
    return figure


def missing_figure(final: pl.DataFrame) -> Any:
    """Draw error and sparsity after the last epoch by missing share, all models."""
    scenarios = final["scenario"].unique(maintain_order=True).to_list()
    figure, axes = _figure(2, len(scenarios), 3.3 * len(scenarios), 5.5, sharex=True, sharey="row")
    styles = {"sad": "C0-", "bpr": "C1-", "sad-paper": "C0--", "bpr-paper": "C1--"}
    for scenario, column in zip(scenarios, axes.T, strict=True):
        column[0].set_title(SCENARIOS[scenario], fontsize=9)
        column[1].set_xlabel("missing, %")
        for model, style in styles.items():
            part = final.filter((pl.col("scenario") == scenario) & (pl.col("model") == model)).sort("missing")
            for axis, name in zip(column, ("relative_mse", "sparsity"), strict=True):
                if name == "relative_mse" or model.startswith("sad"):
                    axis.errorbar(
                        part["missing"].to_numpy(),
                        part[name].to_numpy(),
                        part[f"{name}_sd"].to_numpy(),
                        fmt=style,
                        linewidth=1.2,
                        capsize=2,
                        label=MODELS[model],
                    )
            column[1].axhline(float(part["true_sparsity"][0]), color="black", linewidth=1)
        column[0].set_yscale("log")
        column[1].set_ylim(0, 1.03)
    axes[0, 0].set_ylabel("MSE over variance of X")
    axes[1, 0].set_ylabel("sparsity of T")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _draw_lines(axis: Any, curves: pl.DataFrame, model: str, name: str, style: str) -> None:
    """Draw a line with a band of one standard deviation for each missing share."""
    from matplotlib import colormaps

    colours = colormaps["viridis"]
    for (missing,), part in curves.filter(pl.col("model") == model).group_by(["missing"], maintain_order=True):
        epoch, mean, spread = (part[column].to_numpy() for column in ("epoch", name, f"{name}_sd"))
        colour = colours(float(missing) / 100)
        axis.plot(epoch, mean, style, color=colour, linewidth=1, label=f"{missing} %")
        low = np.maximum(mean - spread, mean / 3) if axis.get_yscale() == "log" else mean - spread
        axis.fill_between(epoch, low, mean + spread, color=colour, alpha=0.12, linewidth=0)


def _legend(figure: Any, axis: Any) -> None:
    """Say which line is which missing share, each once."""
    handles, labels = axis.get_legend_handles_labels()
    solid = {label: handle for handle, label in zip(handles, labels, strict=True) if handle.get_linestyle() == "-"}
    figure.legend(solid.values(), solid.keys(), title="missing", loc="outside right upper", fontsize=8)
