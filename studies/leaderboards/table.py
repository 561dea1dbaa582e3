"""Speed and log loss of sadrec and of other packages, on the same rows."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sadrec import SAD, Comparisons
from studies.baselines import environments
from studies.baselines.programs import arena
from studies.leaderboards.arenas import play, truth

SETS = ("llmfao", "matchups/ptcg-2026", "matchups/corewar", "matchups/bc-tennis", "matchups/gambles-2012")
OTHERS = tuple(arena.PACKAGES)
MOST = 400
"""Items up to which leaderbot is asked: its optimiser takes minutes for more."""


def table(data_folder: Path | None, quick: bool, report: Callable[[str], None]) -> str:
    """Return a table of log loss and seconds."""
    python = environments.install("arena")
    header = ["set", "items", "comparisons", "sadrec", *OTHERS]
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    SAD(random_state=0).fit([("a", "b"), ("b", "c"), ("a", "c")], show_progress=False).leaderboard()  # loads all code
    for name, data in _sets(python, data_folder, quick):
        train, test = data.split(test=0.2, seed=0)
        decided = test.decided
        start = time.process_time()
        model = SAD(random_state=0, num_threads=1).fit(train, show_progress=False)
        model.leaderboard()
        seconds = time.process_time() - start
        winners, losers = test.items[decided.winner_index], test.items[decided.loser_index]
        chance = model.probability(test.users[decided.user_index], winners, losers)
        own = float(-np.log(chance).mean())
        cells = [f"{own:.4f} ({seconds:.1f} s)"]
        fits = _others(python, train)
        for other in (fits[package] for package in OTHERS):
            if "scores" not in other:
                cells.append(str(other.get("error", "-")).split(":")[0])
                continue
            scores = np.array(other["scores"])
            margins = scores[decided.winner_index] - scores[decided.loser_index]
            loss = float(np.logaddexp(0, -margins).mean())
            cells.append(f"{loss:.4f} ({other['seconds']:.1f} s)")
        lines.append(f"| {name} | {len(data.items):,} | {len(data):,} | {' | '.join(cells)} |")
        report(lines[-1])
    return "\n".join(lines)


def _sets(python: Path, data_folder: Path | None, quick: bool) -> Iterator[tuple[str, Comparisons]]:
    """Yield the data sets by name: a simulated arena, the votes that leaderbot ships, and those of the data folder."""
    margins, rng = truth(100, 0.5, 0), np.random.default_rng(0)
    one, other = np.triu_indices(100, 1)
    pair = rng.integers(len(one), size=20_000 if quick else 1_000_000)
    sides = play(margins, one[pair], other[pair], rng)
    yield "simulated", Comparisons.from_indices(np.zeros(len(pair), int), *sides, users=[0], items=np.arange(100))
    if not quick:
        yield "chatbot arena, August 2024", _votes(python)
    if data_folder is not None:
        for name in SETS[:1] if quick else SETS:
            path = data_folder / name / "comparisons.parquet"
            if path.is_file():
                yield name, Comparisons.read(path, show_progress=False)


def _votes(python: Path) -> Comparisons:
    """Return the votes of the chatbot arena, a row each."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "votes.npz"
        _run(python, "votes", path)
        held = np.load(path)
        pairs, counts, names = held["pairs"], held["counts"].astype(np.int64), held["names"]
    (one, other), result = np.repeat(pairs, 3, axis=0).T, np.tile([0, 1, 2], len(pairs))
    one, other, result = (np.repeat(side, counts.ravel()) for side in (one, other, result))
    sides = np.where(result == 1, other, one), np.where(result == 1, one, other)
    return Comparisons.from_indices(np.zeros(len(one), int), *sides, users=[0], items=names, tied=result == 2)


def _others(python: Path, train: Comparisons) -> dict[str, dict[str, Any]]:
    """Return what the other packages say of the rows, judges left out."""
    tied = np.zeros(len(train), np.bool_) if train.tied is None else train.tied
    swapped = np.random.default_rng(0).random(len(train)) < 0.5
    left, right = np.where(swapped, (train.loser_index, train.winner_index), (train.winner_index, train.loser_index))
    outcome = np.where(tied, 0.5, np.where(swapped, 0.0, 1.0))
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "games.npz", Path(folder) / "scores.json"
        games = {"left": left.astype(np.int64), "right": right.astype(np.int64), "outcome": outcome}
        np.savez(source, **games, items=len(train.items), most=MOST)
        _run(python, "scores", source, target)
        answer: dict[str, dict[str, Any]] = json.loads(target.read_text())
    return {name: answer.get(name, {}) for name in OTHERS}


def _run(python: Path, *words: str | Path) -> None:
    """Run the program of the other packages, on one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
    command = [str(word) for word in (python, "-I", arena.__file__, *words)]
    subprocess.run(command, check=True, env={**os.environ, **one, **flags}, stdout=subprocess.DEVNULL)
