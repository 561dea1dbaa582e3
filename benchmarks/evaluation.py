"""How long the paper's evaluation takes: all five measures for all users of MovieLens 1M at k = 500.

    python benchmarks/evaluation.py            # seconds against the limit of 30
    python benchmarks/evaluation.py --json

The factors are random: evaluation does not care. The best of several turns counts, because machines are shared.
MovieLens 1M is read from SADREC_DATA when it is there; otherwise ratings of its size are simulated.
"""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sadrec import BPR, SAD, Interactions
from sadrec.evaluation import evaluate
from turns import best

LIMIT = 30.0
PAPER = ("mean_margin", "match", "match_per_user", "m1", "m2")


def movielens():
    """Return MovieLens 1M, or simulated ratings of its size, and a name for it."""
    folder = os.environ.get("SADREC_DATA")
    if folder and (Path(folder) / "movielens-1m" / "ratings.parquet").is_file():
        return Interactions.read(Path(folder) / "movielens-1m" / "ratings.parquet"), "MovieLens 1M"
    rng = np.random.default_rng(0)
    active = rng.lognormal(0.0, 1.2, 6_040)
    user = rng.choice(6_040, size=1_350_000, p=active / active.sum()).astype(np.int64)
    item = np.minimum((3_706 * rng.random(len(user)) ** 2.5).astype(np.int64), 3_705)
    keys = rng.permutation(np.unique(user * 3_706 + item))[:1_000_209]
    stars = rng.integers(1, 6, len(keys)).astype(np.float32)
    matrix = sp.csr_matrix((stars, (keys // 3_706, keys % 3_706)), shape=(6_040, 3_706))
    return Interactions.from_csr(matrix), "simulated ratings of the size of MovieLens 1M"


def models(data, factors):
    """Return SAD and BPR with random factors."""
    rng = np.random.default_rng(1)
    users, items = data.shape

    def drawn(rows):
        return rng.normal(0, 0.1, (rows, factors)).astype(np.float32)

    xi, eta, tau = drawn(users), drawn(items), np.exp(drawn(items))
    ids = {"users": data.users, "items": data.items}
    return {
        "SAD": SAD.from_factors(xi, eta, tau, **ids),
        "BPR": BPR.from_factors(xi, eta, **ids),
    }


def main():
    """Time evaluate() on both models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--factors", type=int, default=500)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0 means all cores")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    data, name = movielens()
    train, held_out = data.leave_one_out(seed=0)
    results = {}
    judged = {}

    def judge(name, model):
        judged[name] = evaluate(model, train, held_out, num_threads=given.threads)

    contenders = {name: partial(judge, name, model) for name, model in models(data, given.factors).items()}
    for model_name, seconds in best(contenders, given.turns, warm_up=False).items():
        result = judged[model_name]
        users = result.counts["m1"]
        missing = [measure for measure in PAPER if not np.isfinite(result[measure])]
        if missing:
            sys.exit(f"{model_name}: no figure for {', '.join(missing)}")
        results[model_name] = {"seconds": round(seconds, 2), "users": users, "limit": LIMIT}
    if given.json:
        print(
            json.dumps({"data": name, "factors": given.factors, "cores": os.cpu_count(), "models": results}, indent=2)
        )
    else:
        print(f"{name}, k = {given.factors}, {os.cpu_count()} cores; {', '.join(PAPER)} and the others")
        for model_name, line in results.items():
            ratio = line["seconds"] / results["BPR"]["seconds"]
            print(
                f"{model_name}: {line['users']:,} users in {line['seconds']:.1f} s (limit {LIMIT:.0f} s), "
                f"{ratio:.2f} times BPR"
            )
    if max(line["seconds"] for line in results.values()) > LIMIT:
        sys.exit(1)


if __name__ == "__main__":
    main()
