"""Arenas whose truth is known: how often intervals hold it, and how fast a ranking is found."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from sadrec import SAD, Comparisons

ARENAS: dict[str, tuple[int, int, float, int | None]] = {
    "20 items, 400 games": (20, 400, 0.0, None),
    "20 items, 400 games, cycles": (20, 400, 1.0, None),
    "20 items, 4,000 games, cycles": (20, 4000, 1.0, None),
    "40 items, 600 games": (40, 600, 0.0, None),
    "40 items, 600 games, weak cycles": (40, 600, 0.5, None),
    "60 items, 1,500 games": (60, 1500, 0.0, None),
    "60 items, 1,500 games, weak cycles": (60, 1500, 0.5, None),
    "40 items, 2,000 games": (40, 2000, 0.0, None),
    "40 items, 2,000 games, cycles": (40, 2000, 1.0, None),
    "40 items, 2,000 games, near items only": (40, 2000, 0.0, 3),
}
"""Items, games, the size of what runs in cycles, and how near in the list items are that meet."""

NORMAL_90 = 1.645
"""Deviations on each side of the mean that hold 90 % of a normal distribution."""


def truth(items: int, cyclic: float, seed: int, spread: float = 1.0) -> NDArray[Any]:
    """Return true margins: differences of scores, and a part that runs in cycles."""
    rng = np.random.default_rng(seed)
    score, one, other = spread * rng.standard_normal(items), *rng.standard_normal((2, items, 2))
    return np.asarray(score[:, None] - score + cyclic * (one @ other.T - other @ one.T) / 2)


def play(margins: NDArray[Any], one: Any, other: Any, rng: np.random.Generator) -> NDArray[Any]:
    """Return winners and losers."""
    won = rng.random(len(one)) < 1 / (1 + np.exp(-margins[one, other]))
    return np.stack((np.where(won, one, other), np.where(won, other, one)))


def fitted(sides: NDArray[Any], items: int) -> SAD:
    """Fit a model to winners and losers."""
    data = Comparisons.from_indices(np.zeros(sides.shape[1], np.int64), *sides, users=[0], items=np.arange(items))
    return SAD(random_state=0, num_threads=1).fit(data, show_progress=False)


def coverage(count: int, report: Callable[[str], None]) -> str:
    """Return a table of how often 90 % intervals hold true strengths, ranks, and margins of pairs."""
    header = (
        "simulated",
        "strengths held",
        "ranks held",
        "mean width of a rank interval",
        "pairs that met",
        "other pairs",
    )
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for name, (items, games, cyclic, near) in ARENAS.items():
        rows: list[Any] = []
        pairs: tuple[list[bool], list[bool]] = [], []
        for seed in range(count):
            margins, rng = truth(items, cyclic, seed), np.random.default_rng((seed, 1))
            one, other = np.triu_indices(items, 1)
            if near is not None:
                one, other = (side[other - one <= near] for side in (one, other))
            pair = rng.integers(len(one), size=games)
            model = fitted(play(margins, one[pair], other[pair], rng), items)
            table = model.leaderboard().sort("item")
            strength = margins.mean(axis=1)
            rank = (-strength).argsort().argsort() + 1
            held = [
                ((table[low].to_numpy() <= true) & (true <= table[high].to_numpy())).mean()
                for low, high, true in (("lower", "upper", strength), ("rank_lower", "rank_upper", rank))
            ]
            every = np.triu_indices(items, 1)
            off = np.abs(model.preference(0, *every) - margins[every]) / model.deviation(0, *every)
            met = np.zeros((items, items), np.bool_)
            met[one[pair], other[pair]] = True
            for side, of_side in zip(pairs, (met[every], ~met[every]), strict=True):
                side.extend(off[of_side] < NORMAL_90)
            rows.append([*held, (table["rank_upper"] - table["rank_lower"] + 1).to_numpy().mean()])
        strengths, ranks, width = np.mean(rows, axis=0)
        of_pairs = " | ".join(f"{np.mean(side):.0%}" if side else "-" for side in pairs)
        lines.append(f"| {name} | {strengths:.0%} | {ranks:.0%} | {width:.1f} | {of_pairs} |")
        report(lines[-1])
    return "\n".join(lines)


def questions(count: int, report: Callable[[str], None], items: int = 40, batch: int = 50, rounds: int = 12) -> str:
    """Return a table of how many comparisons it takes to reach the rank correlation that random pairs end with."""
    lines = ["| simulated | rank correlation | random pairs | chosen pairs | share |", "|---|---|---|---|---|"]
    for spread, cyclic in ((1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (2.0, 0.5)):
        curves = [
            np.mean([_curve(seed, spread, cyclic, chosen, (items, batch, rounds)) for seed in range(count)], axis=0)
            for chosen in (False, True)
        ]
        total = batch * np.arange(2, rounds + 2)
        # Both curves are made to rise; the goal is what random pairs have reached in the end.
        random, chosen = (np.maximum.accumulate(curve) for curve in curves)
        goal = min(random[-1], chosen[-1])
        needed = [_reached(curve, goal, total) for curve in (random, chosen)]
        name = f"{items} items, scores of deviation {spread:g}{', cycles' if cyclic else ''}"
        cells = name, f"{goal:.3f}", f"{needed[0]:.0f}", f"{needed[1]:.0f}", f"{needed[1] / needed[0]:.0%}"
        lines.append(f"| {' | '.join(cells)} |")
        report(lines[-1])
    return "\n".join(lines)


def _reached(curve: NDArray[Any], goal: float, total: NDArray[Any]) -> float:
    """Return after how many comparisons a rising curve first reaches a goal, between two batches in proportion."""
    after = int(np.argmax(curve >= goal))
    part = slice(max(after - 1, 0), after + 1)
    return float(np.interp(goal, curve[part], total[part]))


def _curve(seed: int, spread: float, cyclic: float, chosen: bool, size: tuple[int, int, int]) -> list[float]:
    """Return Kendall's rank correlation with the truth after each batch."""
    items, batch, rounds = size
    margins, rng = truth(items, cyclic, seed, spread), np.random.default_rng((seed, 2))
    pairs = np.stack(np.triu_indices(items, 1))

    def random_pairs(number: int) -> NDArray[Any]:
        return np.asarray(pairs[:, rng.integers(pairs.shape[1], size=number)])

    one, other = random_pairs(2 * batch)
    sides = play(margins, one, other, rng)
    curve = []
    for _ in range(rounds):
        model = fitted(sides, items)
        curve.append(float(kendalltau(model.margins(None, None, None).mean(axis=1), margins.mean(axis=1))[0]))
        table = model.ask_next(N=batch, about="ranking")
        one, other = (table[side].to_numpy() for side in ("item", "rival")) if chosen else random_pairs(batch)
        sides = np.concatenate((sides, play(margins, one, other, rng)), axis=1)
    return curve
