"""Draw the figures of the site as SVG files in docs/images: ``make figures``.

Each has a ground of its own and colours for light and dark, so that it can be read on either.
"""

import re
from math import cos, log2, log10, pi, sin
from pathlib import Path

import numpy as np

from sadrec import SAD, Comparisons
from sadrec.training.sgd.schedule import drawn_negatives, round_robin

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
STYLE = """
  :root { --ground: #ffffff; --ink: #24292f; --soft: #6e7781; --line: #d0d7de; --a: #0969da; --b: #bc4c00; --c: #1a7f37; --d: #8250df; }
  @media (prefers-color-scheme: dark) {
    :root { --ground: #1b1f24; --ink: #e6edf3; --soft: #9da7b3; --line: #444c56; --a: #58a6ff; --b: #f0883e; --c: #56d364; --d: #bc8cff; }
  }
  text { font: 14px system-ui, sans-serif; fill: var(--ink); } .soft { fill: var(--soft); } .small { font-size: 12px; }
  .middle { text-anchor: middle; } .end { text-anchor: end; } .ground { fill: var(--ground); }
  .line { stroke: var(--line); fill: none; } .ink { stroke: var(--ink); fill: none; }
  .a { fill: var(--a); } .b { fill: var(--b); } .c { fill: var(--c); } .d { fill: var(--d); }
  .sa { stroke: var(--a); } .sb { stroke: var(--b); } .sc { stroke: var(--c); } .sd { stroke: var(--d); }
  .stroke { fill: none; stroke-width: 2; } .hollow { fill: var(--ground); stroke-width: 1.5; }
"""  # noqa: E501
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L10 5L0 10z" class="c"/></marker></defs>'
)


def text(x: float, y: float, words: str, style: str = "") -> str:
    """Return a text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str = "line", more: str = "") -> str:
    """Return a straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}" {more}/>'


def box(x: float, y: float, width: float, height: float, style: str) -> str:
    """Return a rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" class="{style}"/>'


def dot(x: float, y: float, radius: float, style: str) -> str:
    """Return a disc."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{style}"/>'


def drawing(width: int, height: int, title: str, parts: list[str]) -> str:
    """Return a whole file."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
        f'<title>{title}</title><style>{STYLE}</style><rect width="{width}" height="{height}" rx="8" class="ground"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def schedule() -> str:
    """Draw the cells of an epoch: drawn negatives with four blocks, given pairs with four teams."""
    parts = [text(24, 32, "Drawn negatives: the coloured cells of a sub-epoch run at the same time")]
    colours, size = "abcd", 30
    for step, cells in enumerate(drawn_negatives(4)):
        left, top = 70 + step * 175, 78
        parts.append(text(left + 2 * size, top - 26, f"sub-epoch {step + 1}", "soft small middle"))
        parts += [box(left + b * size, top + s * size, size - 2, size - 2, "line") for s in range(4) for b in range(4)]
        for _, shard, block in cells.tolist():
            parts.append(box(left + block * size, top + shard * size, size - 2, size - 2, colours[shard]))
        parts.append(text(left + 2 * size, top - 8, "blocks of items", "soft small middle"))
    parts += [text(62, 78 + s * size + 20, f"shard {s + 1}", "soft small end") for s in range(4)]
    parts.append(text(24, 246, "Given pairs: two blocks of items meet in a cell, as teams do in a round robin"))
    for matching, pairs in enumerate(round_robin(4)):
        left, top = 110 + matching * 235, 286
        places = [(left, top), (left + 90, top), (left + 90, top + 70), (left, top + 70)]
        parts.append(text(left + 45, top - 18, f"matching {matching + 1}", "soft small middle"))
        for pair in range(2):
            (x1, y1), (x2, y2) = (places[team] for team in np.flatnonzero(pairs == pair))
            parts.append(line(x1, y1, x2, y2, f"s{colours[pair]}", 'stroke-width="5"'))
        for team, (x, y) in enumerate(places):
            parts += [dot(x, y, 14, "hollow ink"), text(x, y + 5, str(team + 1), "middle")]
    return drawing(760, 400, "Which cells of an epoch run at the same time", parts)


def tournament() -> str:
    """Draw the game of the page about ranking: a cycle of three, and a fourth item that all of them beat."""
    eta = [[2, 0, 0, 1], [0, 0, 1, 1], [0, 3, 0, 1], [0, 0, 0, 0]]
    tau = [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 1]]
    names = ["rock", "paper", "scissors", "air"]
    game = SAD.from_factors([[1, 1, 1, 1]], eta, tau, users=["ann"], items=names)
    (cycle,) = game.cycles("ann")
    middle = (190.0, 190.0)
    places = {
        name: (middle[0] + 125 * sin(2 * pi * place / 3), middle[1] - 125 * cos(2 * pi * place / 3))
        for place, name in enumerate(cycle.path)
    }
    places["air"] = middle
    parts = [ARROW]
    margins = game.margins("ann", names, names)
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            if margins[i, j] <= 0:
                continue
            (x1, y1), (x2, y2) = places[first], places[second]
            length = np.hypot(x2 - x1, y2 - y1)
            cut = 40 / length
            ends = x1 + cut * (x2 - x1), y1 + cut * (y2 - y1), x2 - cut * (x2 - x1), y2 - cut * (y2 - y1)
            inner = "air" in (first, second)
            parts.append(line(*ends, "line" if inner else "stroke sc", "" if inner else 'marker-end="url(#arrow)"'))
            if not inner:
                x, y = (x1 + x2) / 2, (y1 + y2) / 2
                out = 1 + 26 / np.hypot(x - middle[0], y - middle[1])
                x, y = middle[0] + out * (x - middle[0]), middle[1] + out * (y - middle[1])
                parts.append(text(x, y + 5, f"+{margins[i, j]:g}", "middle"))
    for name, (x, y) in places.items():
        parts += [dot(x, y, 36, "hollow ink"), text(x, y + 5, name, "middle small")]
    size, left, top = 62, 480, 96
    parts.append(text(left + 2 * size, 40, "x: by how much the row beats the column", "soft middle"))
    for i, first in enumerate(names):
        parts += [
            text(left - 10, top + i * size + 36, first, "end"),
            text(left + i * size + 30, top - 10, first, "middle"),
        ]
        for j in range(4):
            x = float(margins[i, j])
            style = "line" if x == 0 else "c" if x > 0 else "b"
            fade = f' opacity="{0.25 + 0.2 * abs(x):.2f}"' if x else ""
            parts.append(f"<g{fade}>{box(left + j * size, top + i * size, size - 3, size - 3, style)}</g>")
            parts.append(text(left + j * size + 30, top + i * size + 36, f"{x:+g}" if x else "0", "middle"))
    return drawing(760, 380, "A cycle: rock beats scissors beat paper beats rock, and all beat air", parts)


def axes(ticks_x: dict[float, str], ticks_y: dict[float, str], frame: tuple[float, float, float]) -> list[str]:
    """Draw the lines and labels of two axes; ticks are given by where they are, the frame by left, right, bottom."""
    left, right, bottom = frame
    parts = [line(left, y, right, y) for y in ticks_y]
    parts += [text(left - 8, y + 5, words, "soft small end") for y, words in ticks_y.items()]
    return parts + [text(x, bottom + 20, words, "soft small middle") for x, words in ticks_x.items()]


def shrinkage() -> str:
    """Draw what wins alone say of items, what the model makes of it, and the truth, over the number of games."""
    rng = np.random.default_rng(4)
    items = 40
    truth = rng.normal(scale=0.6, size=items)
    share = np.geomspace(1, 80, items)
    first, second = (rng.choice(items, size=1500, p=share / share.sum()) for _ in range(2))
    first, second = first[first != second], second[first != second]
    won = rng.random(len(first)) < 1 / (1 + np.exp(truth[second] - truth[first]))
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    names = np.arange(items)
    said = Comparisons.from_indices(np.zeros(len(winner), int), winner, loser, users=[0], items=names)
    model = SAD().fit(said, show_progress=False)
    wins, losses = np.bincount(winner, minlength=items), np.bincount(loser, minlength=items)
    games = wins + losses
    raw = np.log((wins + 0.5) / (losses + 0.5))
    believed = model.margins(0, names, names).mean(axis=1)
    frame = (70.0, 730.0, 330.0)

    def x_of(n: float) -> float:
        return 90 + 620 * log10(max(n, 1) / 3) / log10(400 / 3)

    def y_of(value: float) -> float:
        return 190 - 46 * value

    shown = [item for item in range(items) if games[item] >= 3]
    parts = axes(
        {x_of(n): str(n) for n in (3, 10, 30, 100, 300)},
        {y_of(v): f"{v:+d}" if v else "0" for v in range(-3, 4)},
        frame,
    )
    for item in shown:
        x = x_of(games[item])
        parts.append(line(x, y_of(raw[item]), x, y_of(believed[item]), "line"))
        parts.append(dot(x, y_of(raw[item]), 4, "hollow sb"))
        parts.append(dot(x, y_of(believed[item]), 4, "a"))
        parts.append(line(x - 6, y_of(truth[item]), x + 6, y_of(truth[item]), "ink", 'stroke-width="1.5"'))
    parts += [
        dot(90, 26, 4, "hollow sb"), text(102, 31, "wins alone"), dot(210, 26, 4, "a"), text(222, 31, "SAD()"),
        line(300, 26, 314, 26, "ink", 'stroke-width="1.5"'), text(322, 31, "the truth"),
        text(730, 31, "log-odds against the others, over games known", "soft end"),
    ]  # fmt: skip
    errors = [np.sqrt(np.mean((guess - truth)[shown] ** 2)) for guess in (raw, believed)]
    words = f"root mean square error: wins alone {errors[0]:.2f}, SAD() {errors[1]:.2f}"
    parts.append(text(400, 376, words, "middle"))
    return drawing(760, 396, f"How few games are shrunk most; {words}", parts)


def cost() -> str:
    """Draw the time of an update over the number of factors, from docs/results/speed/README.md."""
    found = re.findall(
        r"^(\S+), k = (\d+), 2 thread\(s\): million updates/s\n((?:  .*\n)+)",
        (DOCS / "results/speed/README.md").read_text(),
        re.MULTILINE,
    )
    curves: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for data, k, rows in found:
        for name, speed in re.findall(r"^  (SAD|BPR|implicit BPR|Cornac BPR) +([\d.]+)$", rows, re.MULTILINE):
            curves.setdefault((name, data), []).append((int(k), 1 / float(speed)))

    def x_of(k: float) -> float:
        return 100 + 480 * log2(k / 64) / log2(500 / 64)

    def y_of(microseconds: float) -> float:
        return 320 - 130 * log10(microseconds / 0.02)

    ticks = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    parts = axes({x_of(k): str(k) for k in (64, 128, 256, 500)}, {y_of(t): f"{t:g}" for t in ticks}, (70, 600, 330))
    parts.append(text(24, 34, "Microseconds for one update, over the number of factors (two threads)"))
    for (name, data), points in curves.items():
        style = dict(zip(("SAD", "BPR", "implicit BPR", "Cornac BPR"), "abcd", strict=True))[name]
        dashes = 'stroke-dasharray="5 4"' if data != "movielens-1m" else ""
        path = " ".join(f"{x_of(k):.1f},{y_of(t):.1f}" for k, t in points)
        parts.append(f'<polyline points="{path}" class="stroke s{style}" {dashes}/>')
        parts += [dot(x_of(k), y_of(t), 3.5, style) for k, t in points]
        if not dashes:
            parts.append(text(592, y_of(points[-1][1]) + 5, name, f"small {style}"))
    parts += [
        line(110, 362, 150, 362, "stroke ink"), text(158, 367, "MovieLens 1M", "small"),
        line(290, 362, 330, 362, "stroke ink", 'stroke-dasharray="5 4"'),
        text(338, 367, "20 million simulated interactions", "small"),
    ]  # fmt: skip
    return drawing(
        700,
        384,
        "The time of an update grows with the number of factors, and much less with the size of the data",
        parts,
    )


FIGURES = {"schedule": schedule, "tournament": tournament, "shrinkage": shrinkage, "cost": cost}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (IMAGES / f"{name}.svg").write_text(draw(), encoding="utf-8")
