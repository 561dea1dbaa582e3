"""Speed of the Gibbs sampler: the paper's simulation, a million comparisons, many judges, and how time grows.

    python benchmarks/gibbs.py            # about two minutes on a quiet machine
    python benchmarks/gibbs.py --quick    # without the growth

A sweep draws the latent margin of every comparison, every user's vector, both vectors of every item, and moves along
the lines on which preferences are constant. Chains share the threads: with c chains on two threads, "per sweep" is the
wall time in which every chain makes one, divided by c. Best of several turns: machines are shared and noisy.
"""

import argparse
import json
import time
from functools import partial

import numpy as np

from sadrec import Comparisons
from sadrec.data import simulate
from sadrec.posterior import GibbsSAD
from sadrec.posterior.draws import Draws
from sadrec.posterior.sampling import Chain, _turn, shares
from sadrec.posterior.settings import GibbsSettings
from sadrec.posterior.triples import as_triples
from sadrec.training.sgd.given import Pairs
from turns import best


def settings(factors, chains, draws=1):
    """Return settings for a run whose draws are not kept."""
    return GibbsSettings(
        factors=factors,
        draws=draws,
        warmup=10**6,
        chains=chains,
        thin=1,
        user_scale=1.0,
        item_scale=1.0,
        rival_scale=1.0,
        user_mean=0.0,
        rival_mean=1.0,
        bias=True,
        negatives=1,
        random_state=0,
    )


def random_triples(users, items, count, seed=0):
    """Return comparisons of random pairs."""
    rng = np.random.default_rng(seed)
    winner = rng.integers(items, size=count)
    loser = (winner + rng.integers(1, items, size=count)) % items
    return as_triples(Pairs(rng.integers(users, size=count), winner, loser), users, items)


def seconds_per_sweep(triples, factors, chains, threads, sweeps, turns):
    """Return the best wall time of a sweep of one chain, ``chains`` of them sharing ``threads``."""
    from concurrent.futures import ThreadPoolExecutor

    chosen = settings(factors, chains)
    running = [Chain(triples, chosen, number) for number in range(chains)]
    draws = Draws.empty(chains, 1, triples.users, triples.items, factors, bias=True)
    parts = shares(threads, chains, len(triples))
    with ThreadPoolExecutor(min(threads, chains)) as runners, ThreadPoolExecutor(threads) as helpers:
        _turn(running, draws, 2, runners, helpers if parts > 1 else None, parts)
        sweep = partial(_turn, running, draws, sweeps, runners, helpers if parts > 1 else None, parts)
        return best({"sweep": sweep}, turns, warm_up=False)["sweep"] / (sweeps * chains)


def many_judges(users=5_000, items=10, count=100_000, pairs=1_000_000):
    """Return the seconds of a fit of many judges, 600 sweeps of one chain, and of a million predictions from it."""
    rng = np.random.default_rng(0)
    winner = rng.integers(items, size=count)
    loser = (winner + rng.integers(1, items, size=count)) % items
    answers = Comparisons.from_indices(
        rng.integers(users, size=count), winner, loser, users=range(users), items=range(items)
    )
    model = GibbsSAD(factors=8, draws=300, warmup=300, chains=1, num_threads=2)
    began = time.perf_counter()
    model.fit(answers, show_progress=False)
    fitted = time.perf_counter() - began
    model.probability(0, 0, 1)  # compiled by now
    user, item = rng.integers(users, size=pairs), rng.integers(items, size=pairs)
    began = time.perf_counter()
    model.probability(user, item, (item + rng.integers(1, items, size=pairs)) % items)
    return fitted, time.perf_counter() - began


def main():
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out how time grows")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    arguments = parser.parse_args()
    figures = {}

    answers = simulate("sim2", n=20, m=50, k=5).comparisons
    small = as_triples(Pairs(answers.user_index, answers.winner_index, answers.loser_index), 20, 50)
    large = random_triples(2_000, 1_000, 1_000_000)
    print(f"{'':44}{'chains':>7}{'threads':>8}{'per sweep':>12}{'bar':>10}")
    for name, triples, factors, sweeps, bar in (
        ("n=20, m=50, k=5, complete (24,500 triples)", small, 5, 40, 0.010),
        ("n=2,000, m=1,000, k=16 (1,000,000 triples)", large, 16, 2, 2.0),
    ):
        for chains, threads in ((1, 1), (1, 2), (2, 2)):
            spent = seconds_per_sweep(triples, factors, chains, threads, sweeps, turns=5)
            figures[f"{name}, {chains} chains, {threads} threads"] = spent
            limit = f"{bar * 1e3:.0f} ms" if threads == 2 else ""
            print(f"{name:44}{chains:>7}{threads:>8}{spent * 1e3:>9.2f} ms{limit:>10}")
    fit, predict = many_judges()
    figures |= {"fit of 5,000 judges": fit, "1,000,000 predictions": predict}
    print(f"\n{'5,000 judges, 10 items, 100,000 triples, k=8; two threads':60}{'seconds':>9}{'bar':>10}")
    print(f"{'fit: 300 + 300 sweeps of one chain':60}{fit:>9.1f}{'30 s':>10}")
    print(f"{'probability of 1,000,000 pairs, over 300 draws':60}{predict:>9.1f}")
    if not arguments.quick:
        print(f"\n{'triples (n=1,000, m=500, k=8; one thread)':44}{'per sweep':>12}{'ns per triple':>16}")
        for count in (31_250, 62_500, 125_000, 250_000, 500_000, 1_000_000, 2_000_000):
            spent = seconds_per_sweep(random_triples(1_000, 500, count), 8, 1, 1, 2, turns=4)
            figures[f"{count} triples"] = spent
            print(f"{count:<44,}{spent * 1e3:>9.2f} ms{spent / count * 1e9:>16.0f}")
    if arguments.json:
        from pathlib import Path

        Path(arguments.json).write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
