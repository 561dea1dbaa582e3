"""Seconds that ``SAD().fit`` takes on comparisons, beside ``BPR()`` and the sampler.

    python benchmarks/comparisons.py --data FOLDER            # or set SADREC_DATA; a minute on two threads
    python benchmarks/comparisons.py --sets pokemon --turns 3
    python benchmarks/comparisons.py --simulated              # arenas (users x items x comparisons), beside L-BFGS

All comparisons of each set are fitted, kernels being compiled before. Best of several turns: machines are shared and
noisy. Both learners (training/variational/learners.py) are counted in.
"""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np

from sadrec import BPR, SAD, Comparisons
from sadrec.posterior import GibbsSAD
from turns import best

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from studies.comparisons.baselines import fit_scores

BAR = 15.0
RIDGE = 0.3
SETS = "sushi-users,pokemon"
SIMULATED = "1x100x1000000,1x1000x1000000,1000x100x100000,10000x100x1000000"


def warm_up() -> None:
    """Compile the kernels, for one user and for two."""
    rng = np.random.default_rng(0)
    winner = rng.integers(5, size=300)
    loser = (winner + rng.integers(1, 5, size=300)) % 5
    for users in (1, 2):
        answers = Comparisons.from_indices(np.arange(300) % users, winner, loser, users=range(users), items=range(5))
        for model in (SAD(iterations=20), BPR(iterations=20), GibbsSAD(factors=8, draws=2, warmup=2, chains=1)):
            model.fit(answers, show_progress=False)


def find(folder: Path, name: str) -> Path:
    """Return the file of a data set, in the folder or in a folder of it."""
    for path in (folder / name, *(inner / name for inner in sorted(folder.iterdir()) if inner.is_dir())):
        if (path / "comparisons.parquet").is_file():
            return path / "comparisons.parquet"
    raise SystemExit(f"there is no {name}/comparisons.parquet in {folder}")


def simulated(users: int, items: int, count: int) -> Comparisons:
    """Return comparisons of items whose scores differ, and differ between users by half as much."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(items) + 0.5 * rng.standard_normal((users, items))
    user, first = rng.integers(users, size=count), rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    won = rng.random(count) < 1 / (1 + np.exp(scores[user, second] - scores[user, first]))
    sides = np.where(won, first, second), np.where(won, second, first)
    return Comparisons.from_indices(user, *sides, users=range(users), items=range(items))


def show_simulated(sizes: str, threads: int, turns: int) -> None:
    """Print the seconds of ``SAD()`` on simulated arenas, and those of Bradley-Terry by L-BFGS on the same rows."""
    print(f"threads: {threads}; seconds, best of {turns}\n")
    print("| users | items | comparisons | SAD() | Bradley-Terry | ratio |\n|---:|---:|---:|---:|---:|---:|")
    for size in sizes.split(","):
        users, items, count = map(int, size.split("x"))
        answers, model = simulated(users, items, count), SAD(num_threads=threads)
        fits = {"SAD": partial(model.fit, answers, show_progress=False), "scores": partial(fit_scores, answers, RIDGE)}
        seconds = best(fits, turns, warm_up=False)
        ratio = seconds["SAD"] / seconds["scores"]
        figures = f"{seconds['SAD']:.1f} | {seconds['scores']:.1f} | {ratio:.1f}"
        print(f"| {users:,} | {items:,} | {count:,} | {figures} |", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("SADREC_DATA"))
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--simulated", nargs="?", const=SIMULATED)
    chosen = parser.parse_args()
    if chosen.simulated:
        warm_up()
        show_simulated(chosen.simulated, chosen.threads, chosen.turns)
        return
    if chosen.data is None:
        parser.error("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    warm_up()
    print(f"threads: {chosen.threads}; seconds, best of {chosen.turns}; bar of SAD(): {BAR:g} s\n")
    print("| set | comparisons | users | items | BPR() | SAD() | within the bar | GibbsSAD, 600 sweeps |")
    print("|---|---:|---:|---:|---:|---:|---|---:|")
    for name in chosen.sets.split(","):
        answers = Comparisons.read(find(Path(chosen.data), name))
        threads = {"num_threads": chosen.threads}
        models = (
            BPR(**threads),
            SAD(**threads),
            GibbsSAD(factors=8, draws=300, warmup=300, chains=1, **threads),
        )
        seconds = []
        for model, turns in zip(models, (1, chosen.turns, 1), strict=True):
            fit = {"fit": partial(model.fit, answers, show_progress=False)}
            seconds.append(best(fit, turns, warm_up=False)["fit"])
        bpr, sad, gibbs = seconds
        size = f"{len(answers):,} | {len(answers.users):,} | {len(answers.items):,}"
        print(
            f"| {name} | {size} | {bpr:.1f} | {sad:.1f} | {'yes' if sad <= BAR else 'no'} | {gibbs:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
