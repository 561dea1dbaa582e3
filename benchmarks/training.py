"""Training speed and memory: SAD and BPR here, against implicit's and Cornac's BPR and the streaming limit.

    make bench                                # everything, about half an hour on two cores
    python benchmarks/training.py --quick     # MovieLens 1M shapes, fewer repeats
    python benchmarks/training.py --only startup memory

Contenders take turns in one run and the best of several turns counts, because machines are shared and noisy. All count
updates really made: implicit and Cornac sample negatives the user has interacted with and skip them. The streaming
limit is our loop without the arithmetic: it samples the same negatives and reads and writes the same rows in the same
order, once.

MovieLens 1M is read from SADREC_DATA when it is there; otherwise interactions of its size are simulated.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from contenders import SIZES, fit_implicit, implicit_model, interactions
from sadrec import BPR, SAD
from sadrec._core.kernel import kernel
from sadrec._core.random import stream_key
from sadrec.training.defaults import default_blocks
from sadrec.training.sgd import schedule
from sadrec.training.sgd.factors import initial_factors
from sadrec.training.sgd.negatives import AHEAD, claimed_cells, deal, draw, fetch, room_for_triples
from turns import best_rate


@kernel
def stream(cells, claimed, dealt, xi, rows, one):
    """Sample the same negatives, read and write the same rows in the same order, and compute nothing."""
    k = xi.shape[1]
    triples = room_for_triples(dealt)
    who, what, _, negatives, _ = triples
    for number, shard, block in claimed_cells(cells, claimed):
        state = stream_key(dealt.seed, dealt.epoch, number, 0)
        s, stop = dealt.shard_start[shard], dealt.shard_start[shard + 1]
        while s < stop:
            s, drawn, state, _ = draw(s, stop, block, dealt, state, triples)
            for t in range(drawn):
                coming = t + AHEAD
                if coming < drawn:
                    if who[coming] != who[coming - 1]:
                        fetch(xi[who[coming]])
                    fetch(rows[what[coming]])
                    fetch(rows[negatives[coming, 0]])
                user, i, j = xi[who[t]], what[t], negatives[t, 0]
                eta_i, tau_i, eta_j, tau_j = rows[i][:k], rows[i][k:], rows[j][:k], rows[j][k:]
                for h in range(k):
                    user[h] = user[h] * one
                    eta_i[h] = eta_i[h] * one
                    tau_i[h] = tau_i[h] * one
                    eta_j[h] = eta_j[h] * one
                    tau_j[h] = tau_j[h] * one


def faster(epochs):
    """Return updates and seconds of the faster epoch."""
    return max(epochs, key=lambda epoch: epoch[0] / epoch[1])


class Ours:
    """Epochs of SAD or BPR."""

    def __init__(self, model, matrix, k, threads, epochs):
        self.fit = model(
            factors=k, iterations=epochs, num_threads=threads, loss="pairwise", negative_candidates=1, bias=False
        ).fit
        self.matrix = matrix

    def turn(self):
        """Return updates and seconds of the faster epoch."""
        epochs = []

        def note(epoch, figures, model):
            epochs.append((figures["updates"], figures["seconds"]))

        self.fit(self.matrix, show_progress=False, callbacks=[note])
        return faster(epochs)


class Stream:
    """Epochs of the streaming limit."""

    def __init__(self, matrix, k, threads, epochs):
        from concurrent.futures import ThreadPoolExecutor

        self.matrix, self.threads, self.epochs, self.place = matrix, threads, epochs, None
        self.factors = initial_factors(*matrix.shape, k, 0.1, True, False, 0)
        self.pool = ThreadPoolExecutor(threads)

    def turn(self):
        """Return updates and seconds of the faster epoch."""
        return faster([self.epoch() for _ in range(self.epochs)])

    def epoch(self):
        """Return updates and seconds."""
        began = time.perf_counter()
        matrix, threads = self.matrix, self.threads
        blocks = default_blocks("interactions", *matrix.shape, matrix.nnz)
        indptr = matrix.indptr.astype(np.int64)
        spread = map if threads == 1 else self.pool.map
        dealt = deal((indptr, matrix.indices, None), matrix.shape[1], blocks, 1, 0, 0, self.place, spread)
        self.place = dealt.place

        def run(cells, claimed):
            stream(cells, claimed, dealt, self.factors.users, self.factors.items, np.float32(1))

        for cells in schedule.drawn_negatives(blocks):
            list(spread(run, [cells] * threads, [np.zeros(1, np.int64)] * threads))
        return matrix.nnz, time.perf_counter() - began


class Implicit:
    """Epochs of implicit's BPR, which skips draws that are not negative."""

    def __init__(self, matrix, k, threads, epochs):
        self.matrix = matrix
        self.settings = {"factors": k, "iterations": epochs, "num_threads": threads, "verify_negative_samples": True}

    def turn(self):
        """Return updates and seconds of the faster epoch."""
        epochs = []

        def note(epoch, seconds, correct, skipped):
            epochs.append((self.matrix.nnz - skipped, seconds))

        fit_implicit(implicit_model("BPR", **self.settings), self.matrix, note)
        return faster(epochs)


class Cornac:
    """Epochs of Cornac's BPR, which skips draws that are not negative."""

    def __init__(self, matrix, k, threads, epochs):
        import cornac

        self.epochs = epochs
        coo = matrix.tocoo()
        self.data = cornac.data.Dataset(
            matrix.shape[0],
            matrix.shape[1],
            {u: u for u in range(matrix.shape[0])},
            {i: i for i in range(matrix.shape[1])},
            (coo.row.astype(np.int32), coo.col.astype(np.int32), coo.data.astype(np.float32)),
            seed=0,
        )
        degrees = np.diff(matrix.indptr).astype(float)
        self.updates = matrix.nnz - (degrees**2).sum() / matrix.shape[1]  # expected
        self.make = lambda epochs: cornac.models.BPR(
            k=k, max_iter=epochs, num_threads=threads, seed=0, verbose=False, use_bias=True
        )

    def turn(self):
        """Return updates and seconds of the epochs by which two fits differ."""
        seconds = []
        for epochs in (1, 1 + self.epochs):
            model = self.make(epochs)
            began = time.perf_counter()
            model.fit(self.data)
            seconds.append(time.perf_counter() - began)
        return self.epochs * self.updates, max(seconds[1] - seconds[0], 1e-9)


def baselines():
    """Return the baselines that are installed."""
    installed = {}
    for name, contender, module in (("implicit BPR", Implicit, "implicit"), ("Cornac BPR", Cornac, "cornac")):
        try:
            __import__(module)
            installed[name] = contender
        except ImportError:
            print(f"{name} is not installed (pip install sadrec[bench]): left out", file=sys.stderr)
    return installed


def speed(name, ranks, threads_list, repeats):
    """Return one row per contender, rank and number of threads: million updates a second, the best of several."""
    matrix = interactions(name)
    epochs = 2 if matrix.nnz < 5e6 else 1  # of a turn; a long one has its own quiet and noisy stretches
    rows = []
    for k in ranks:
        for threads in threads_list:
            contenders = {
                "SAD": Ours(SAD, matrix, k, threads, epochs),
                "BPR": Ours(BPR, matrix, k, threads, epochs),
                "streaming limit": Stream(matrix, k, threads, epochs),
                **{baseline: make(matrix, k, threads, epochs) for baseline, make in baselines().items()},
            }
            rows += [
                {"data": name, "k": k, "threads": threads, "model": label, "rate": rate / 1e6}
                for label, rate in best_rate(contenders, repeats).items()
            ]
            print_speed(rows[-len(contenders) :])
    return rows


def print_speed(rows):
    """Print one group of contenders with the ratios that matter."""
    rate = {row["model"]: row["rate"] for row in rows}
    baseline = max((rate[name] for name in ("implicit BPR", "Cornac BPR") if name in rate), default=float("nan"))
    head = f"{rows[0]['data']}, k = {rows[0]['k']}, {rows[0]['threads']} thread(s)"
    print(f"\n{head}: million updates/s")
    for label, value in rate.items():
        print(f"  {label:<16} {value:6.2f}")
    print(
        f"  SAD / faster baseline {rate['SAD'] / baseline:.2f}   BPR / faster baseline {rate['BPR'] / baseline:.2f}   "
        f"SAD / streaming limit {rate['SAD'] / rate['streaming limit']:.2f}"
    )
    sys.stdout.flush()


def threading_gain(rows):
    """Print and return what a second thread brings SAD."""
    results = []
    for row in rows:
        same = [r for r in rows if (r["model"], r["k"], r["data"]) == ("SAD", row["k"], row["data"])]
        single = next((r["rate"] for r in same if r["threads"] == 1), None)
        if single and row["model"] == "SAD" and row["threads"] == 2:
            results.append({"data": row["data"], "k": row["k"], "gain": row["rate"] / single})
            print(f"a second thread, {row['data']}, k = {row['k']}: {results[-1]['gain']:.2f}x")
    return results


def linearity(repeats):
    """Return how much longer twice the interactions take: of twice the people, and of the same people."""
    whole = interactions("synthetic-20m")
    kept = np.random.default_rng(1).random(whole.nnz) < 0.5
    thinned = sp.csr_matrix((whole.data[kept], whole.nonzero()[1][kept], np.append(0, np.cumsum(kept))[whole.indptr]))
    parts = {"all": whole, "twice the people": whole[: whole.shape[0] // 2], "the same people": thinned}
    contenders = {name: Ours(SAD, matrix, 64, 2, 3) for name, matrix in parts.items()}
    rate = best_rate(contenders, repeats)
    results = {name: 2 * rate[name] / rate["all"] for name in parts if name != "all"}
    for name, ratio in results.items():
        print(f"\ntwice the interactions, of {name}, take {ratio:.2f} times as long")
    return results


MEMORY = """
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from peak import grown, measure_from
from contenders import interactions
from sadrec import SAD, Interactions
SAD(factors=int(sys.argv[3]), iterations=1).fit(np.eye(50), show_progress=False)
data = Interactions.from_csr(interactions(sys.argv[2]))
held = data.matrix.data.nbytes + data.matrix.indices.nbytes + data.matrix.indptr.nbytes
before = measure_from()
model = SAD(factors=int(sys.argv[3]), iterations=3, num_threads=2).fit(data, show_progress=False)
used = held + grown(before)
parameters = sum(a.nbytes for a in (model.user_factors, model.item_factors, model.rival_factors))
print(json.dumps({"data": held, "parameters": parameters, "used": used}))
"""


def memory(name, k):
    """Return the memory during fit over that of data and parameters, measured in a process of its own."""
    here = str(Path(__file__).parent)
    out = subprocess.run([sys.executable, "-c", MEMORY, here, name, str(k)], capture_output=True, text=True, check=True)
    results = json.loads(out.stdout)
    results["ratio"] = results["used"] / (results["data"] + results["parameters"])
    print(
        f"memory during fit, {name}, k = {k}: {results['used'] / 2**20:.0f} MiB, {results['ratio']:.2f} x "
        f"(data {results['data'] / 2**20:.0f} + parameters {results['parameters'] / 2**20:.0f} MiB)"
    )
    return {"data_set": name, "k": k, **results}


STARTUP = """
import time
began = time.perf_counter()
import numpy as np
from sadrec import SAD
SAD(factors=8, iterations=1).fit(np.eye(300), show_progress=False).recommend(0)
print(time.perf_counter() - began)
"""


def startup():
    """Return the seconds from nothing to a first recommendation: after installation, and from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}

        def once():
            out = subprocess.run(
                [sys.executable, "-c", STARTUP], capture_output=True, text=True, env=environment, check=True
            )
            return float(out.stdout)

        first, later = once(), min(once() for _ in range(5))
    print(f"\nfrom import to the first recommendation: {first:.1f} s compiling, {later:.2f} s from the cache")
    return {"first": first, "later": later}


def main():
    """Run what was asked for and print tables, or JSON at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="MovieLens 1M only, three turns each")
    parser.add_argument("--data", nargs="+", choices=list(SIZES), help="only these sets")
    parser.add_argument("--only", nargs="+", choices=["speed", "linearity", "memory", "startup"])
    parser.add_argument("--factors", nargs="+", type=int, default=[64, 128, 500])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=0, help="turns of each contender")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    parts = arguments.only or ["startup", "speed", "linearity", "memory"]
    results = {}
    if "startup" in parts:
        results["startup"] = startup()
    if "speed" in parts:
        rows = []
        for name in arguments.data or (list(SIZES)[:1] if arguments.quick else SIZES):
            turns = 2 if name == "synthetic-20m" else 3 if arguments.quick else 7
            rows += speed(name, arguments.factors, arguments.threads, arguments.repeats or turns)
        results["speed"] = rows
        results["second thread"] = threading_gain(rows)
    if "linearity" in parts and not arguments.quick:
        results["linearity"] = linearity(arguments.repeats or 4)
    if "memory" in parts:
        sets = [("movielens-1m", 64)] + ([] if arguments.quick else [("synthetic-20m", 64), ("synthetic-20m", 128)])
        results["memory"] = [memory(*entry) for entry in sets]
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
