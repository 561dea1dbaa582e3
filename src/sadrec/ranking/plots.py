"""Pictures of a user's tournament and of how intransitive users are. Needs the ``plot`` extra (matplotlib)."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sadrec._core.picture import new_figure
from sadrec.ranking.cycles import Cycle, cycles
from sadrec.ranking.tournament import Tournament

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _RING, _FILL = "#22272e", "#c0392b", "#eaf1f8"
_BEND = 0.2


def plot_tournament(
    game: Tournament,
    cycle: Cycle | None = None,
    names: Sequence[str] | None = None,
    title: str | None = None,
    *,
    minimum: float = 0.0,
) -> "Figure":
    """Draw who beats whom, with a cycle as a ring.

    On the left the items of the cycle stand in a ring, each beating the next in the direction of the arrows, whose
    width is the margin. On the right are the margins of all items, in order of wins; a dot marks a win of a lower item
    over a higher one.

    Parameters
    ----------
    game
        As from ``SAD.tournament``; up to about 20 items can be read.
    cycle
        The cycle to draw; default, the strongest one of the tournament, if there is any.
    names
        What to write for each item of the tournament; default, its label.
    minimum
        The margin a win needs to count in the search for that cycle.

    Returns
    -------
    Figure
        A matplotlib figure, attached to no window: save it with ``figure.savefig(path)``.
    """
    if not len(game):
        raise ValueError("the tournament has no items: there is nothing to draw")
    texts = [_short(text) for text in (names if names is not None else map(str, game.items))]
    if len(texts) != len(game):
        raise ValueError(f"names must name each of the {len(game)} items, but there are {len(texts)}")
    if cycle is None:
        cycle = next(iter(cycles(game, minimum)), None)
    figure = new_figure(13.5, 5.8)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    if cycle is None:
        text = f"No cycle of wins\nby more than {minimum:g}" if minimum else "No cycle:\nthese items have an order"
        left.text(0.5, 0.5, text, ha="center", va="center", fontsize=13, color=_INK, transform=left.transAxes)
        left.axis("off")
    else:
        where = {item: place for place, item in enumerate(game.items.tolist())}
        draw_cycle(left, cycle, [texts[where[item]] for item in cycle.path.tolist()])
    _matrix(figure, right, game, texts)
    if title:
        figure.suptitle(title, color=_INK, fontsize=14)
    return figure


def plot_leaderboard(table: "pl.DataFrame", probability: ArrayLike, names: Sequence[str]) -> "Figure":
    """Draw the strongest items of a leaderboard: strengths as dots with intervals, and match-ups as a heat map.

    ``table`` is what ``SAD.leaderboard`` returns, ``names`` what its items are called, and ``probability`` that of the
    strongest items to win against each other, in the same order. At most 40 are shown. The matplotlib figure is
    attached to no window: save it with ``figure.savefig(path)``.
    """
    chance = np.asarray(probability, np.float64)
    size = min(40, len(table), len(chance))
    if not size:
        raise ValueError("the leaderboard has no items: there is nothing to draw")
    shown, texts, places = table.head(size), [_short(name) for name in names[:size]], np.arange(size)
    figure = new_figure(13.5, max(4.0, 0.26 * size + 1.6))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    strength = shown["strength"].to_numpy()
    if shown["lower"].null_count() == 0:
        left.hlines(places, shown["lower"].to_numpy(), shown["upper"].to_numpy(), color="#5b8db8", linewidth=2)
    left.plot(strength, places, "o", color=_INK, markersize=5)
    left.axvline(0, color="#cccccc", linewidth=1, zorder=0)
    left.set_yticks(
        places, [f"{text}  {place + 1}" for place, text in enumerate(texts)], fontsize=9 if size > 20 else 10
    )
    left.set_ylim(size - 0.5, -0.5)
    left.set_xlabel("strength: mean margin over the field, in log-odds", color=_INK)
    left.spines[["top", "right", "left"]].set_visible(False)
    left.tick_params(axis="y", length=0)
    image = right.imshow(chance[:size, :size], cmap="RdBu_r", vmin=0, vmax=1)
    right.set_yticks(places, [str(place + 1) for place in places], fontsize=8)
    right.set_xticks(places, [str(place + 1) for place in places], fontsize=8, rotation=90 if size > 20 else 0)
    right.tick_params(length=0, labeltop=True, labelbottom=False)
    right.spines[:].set_visible(False)
    right.set_xlabel("probability that the row wins against the column", color=_INK)
    bar = figure.colorbar(image, ax=right, shrink=0.8)
    bar.outline.set_visible(False)
    return figure


def plot_intransitivity(shares: ArrayLike, title: str | None = None) -> "Figure":
    """Draw how the share of preferences that no scores explain is distributed over users.

    ``shares`` is what ``SAD.intransitivity`` returns, one number from 0 to 1 per user. The matplotlib figure is
    attached to no window: save it with ``figure.savefig(path)``.
    """
    values = np.asarray(shares, np.float64).ravel()
    if not values.size or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("shares must hold at least one number, all of them between 0 and 1")
    figure = new_figure(8, 4.5)
    axes = figure.subplots()
    percent = 100 * values
    highest = max(float(percent.max()), 1e-3)
    axes.hist(
        percent, bins=min(60, max(10, int(values.size**0.5))), range=(0, highest), color="#5b8db8", edgecolor="white"
    )
    middle = float(np.median(percent))
    axes.axvline(middle, color=_RING, linewidth=1.5)
    text, top = f"half of the users above {middle:.2g} %", (middle, axes.get_ylim()[1])
    axes.annotate(text, top, (6, -6), textcoords="offset points", ha="left", va="top", color=_RING)
    axes.set_xlabel("preferences that no scores can explain, % of their squared size")
    axes.set_ylabel(f"users (of {values.size:,})")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(left=0)
    if title:
        axes.set_title(title, color=_INK, loc="left")
    return figure


def draw_cycle(axes: "Axes", cycle: Cycle, texts: list[str]) -> None:
    """Draw the path of a cycle clockwise as a ring, with a text for each of its items."""
    from matplotlib.patches import FancyArrowPatch

    size = len(texts)
    angle = np.pi / 2 - 2 * np.pi * np.arange(size) / size
    box = {"boxstyle": "round,pad=0.45", "facecolor": _FILL, "edgecolor": _INK, "linewidth": 0.8}
    boxes = [
        axes.text(x, y, fill(text, 18), ha="center", va="center", fontsize=10, color=_INK, bbox=box)
        for x, y, text in zip(np.cos(angle).tolist(), np.sin(angle).tolist(), texts, strict=True)
    ]
    widest = float(cycle.margins.max())
    weakest = int(cycle.margins.argmin())
    for step in range(size):
        start, end = boxes[step], boxes[(step + 1) % size]
        colour = _RING if step == weakest else _INK
        axes.add_patch(
            FancyArrowPatch(
                start.get_position(),
                end.get_position(),
                patchA=start.get_bbox_patch(),
                patchB=end.get_bbox_patch(),
                connectionstyle=f"arc3,rad={-_BEND}",
                arrowstyle="-|>",
                mutation_scale=16,
                shrinkA=3,
                shrinkB=3,
                linewidth=1.0 + 2.5 * cycle.margins[step] / widest,
                color=colour,
                zorder=4,  # after the boxes, which know where they end only once they are drawn
            )
        )
        between = float(angle[step] - np.pi / size)
        reach = np.cos(np.pi / size) + _BEND * np.sin(np.pi / size) - (0.22 if size == 3 else 0.3)
        text = f"{cycle.margins[step]:.2g}\n{100 * cycle.probabilities[step]:.0f} %"
        x, y = reach * np.cos(between), reach * np.sin(between)
        axes.text(x, y, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_title(f"each beats the next\nthe weakest step, in red: {cycle.strength:.2g}", color=_INK, fontsize=11)
    axes.set_xlim(-1.45, 1.45)
    axes.set_ylim(-1.2, 1.2)
    axes.set_aspect("equal")
    axes.axis("off")


def _matrix(figure: "Figure", axes: "Axes", game: Tournament, texts: list[str]) -> None:
    """Draw the margins as a matrix, items in order of wins: everything red below the diagonal is out of order."""
    order = np.lexsort((-game.mean_margins(), -game.wins()))
    margins = game.margins[np.ix_(order, order)]
    limit = max(float(np.abs(margins).max()), 1e-9)
    image = axes.imshow(margins, cmap="RdBu", vmin=-limit, vmax=limit)
    labels = [texts[place] for place in order]
    size = 10 if len(labels) <= 16 else 8
    axes.set_yticks(range(len(labels)), [f"{text}  {place + 1}" for place, text in enumerate(labels)], fontsize=size)
    axes.set_xticks(range(len(labels)), [str(place + 1) for place in range(len(labels))], fontsize=size)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for row, column in np.argwhere(np.triu(margins < 0, 1)).tolist():
        axes.plot(column, row, marker="o", markersize=5, color="black")
    axes.set_xlabel("margin of the row over the column, items by wins; dots: wins against that order", color=_INK)
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.outline.set_visible(False)


def _short(text: str, longest: int = 34) -> str:
    """Cut a text that is too long for a label."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
