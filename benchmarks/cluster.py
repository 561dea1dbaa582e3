"""The engine Ray against threads of one machine: time and bytes of an epoch, bits, memory of the program.

    python -m benchmarks.cluster bits                  # MovieLens 1M: the same bits with 2 and 3 workers
    python -m benchmarks.cluster speed --pairs 20e6    # 2 workers against 2 threads, an epoch
    python -m benchmarks.cluster traffic               # bytes counted and by formula, 1 to 4 workers
    python -m benchmarks.cluster driver                # memory of the program at 2 and at 20 million interactions
    python -m benchmarks.cluster cost                  # the model of cost for large data; needs no cluster

The cluster is started on this machine, in a network namespace with nothing but loopback.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.contenders import interactions
from campaigns import _namespace
from sadrec import SAD

SETTINGS = {
    "learning_rate": 0.05,
    "regularization": 0.01,
    "rival_regularization": 0.001,
    "loss": "pairwise",
    "negative_candidates": 1,
}


def formula(users, items, interactions, factors, workers, blocks, bias=True):
    """Return the bytes that workers get from each other in an epoch: blocks passed on, and rows that are dealt anew."""
    item, user = 4 * (2 * factors + bias), 4 * factors
    passed = 0 if workers == 1 else workers * items * item * (blocks - 1) / blocks
    sent = 4 * (interactions + users)
    return passed, (items * item + users * user + sent) * (workers - 1) / workers


def simulated(pairs, users=138_493, items=26_744, seed=0):
    """Return interactions with skewed popularity."""
    matrix = interactions("synthetic-20m") if pairs >= 20_000_000 else None
    if matrix is None:
        rng = np.random.default_rng(seed)
        row, column = rng.integers(users, size=pairs), (items * rng.random(pairs) ** 3).astype(np.int64)
        import scipy.sparse as sp

        matrix = sp.csr_matrix((np.ones(pairs, np.float32), (row, column)), shape=(users, items))
    return matrix


@contextmanager
def on_disk(matrix):
    """Write interactions to a file, for workers to read, and yield its path."""
    entries = matrix.tocoo()
    with tempfile.TemporaryDirectory() as folder:
        columns = {"user": entries.row, "item": entries.col, "rating": entries.data}
        pl.DataFrame(columns).write_parquet(Path(folder) / "data.parquet")
        yield folder


def fit(data, engine=None, epochs=3, factors=64, threads=2, blocks=16):
    """Fit, and return the model and the figures of every epoch, with timings."""
    seen = []
    model = SAD(factors, iterations=epochs, num_threads=threads, blocks=blocks, **SETTINGS)
    model.fit(data, False, engine=engine, callbacks=[lambda epoch, figures, model: seen.append(figures)])
    return model, seen


def same(one, other):
    """Tell whether two models have the same bits."""
    names = ("user_factors", "item_factors", "rival_factors", "item_bias")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def bits(options):
    """Compare the bits on MovieLens 1M."""
    from sadrec.cluster import Ray

    with on_disk(interactions("movielens-1m")) as data:
        whole, _ = fit(data, epochs=5)
        for workers in (2, 3):
            model, figures = fit(data, Ray(workers=workers), epochs=5)
            print(f"{workers} workers: {'the same bits' if same(whole, model) else 'OTHER BITS'}, {said(figures)}")


def said(figures):
    """Say how workers spent the epochs after the first."""
    parts = (
        f"{name} {np.mean([f[f'{name}_share'] for f in figures[1:]]):.0%}" for name in ("training", "moving", "waiting")
    )
    return ", ".join(parts)


def speed(options):
    """Compare an epoch on two workers with one on two threads."""
    from sadrec.cluster import Ray

    matrix = simulated(int(options.pairs))
    print(f"{matrix.nnz:,} interactions of {matrix.shape[0]:,} users with {matrix.shape[1]:,} items")
    with on_disk(matrix) as data:
        whole, local = fit(data, epochs=options.epochs)
        model, remote = fit(data, Ray(workers=2), epochs=options.epochs)
    one, two = (min(f["seconds"] for f in figures[1:]) for figures in (local, remote))
    print(f"an epoch on 2 threads {one:.2f} s, on 2 workers {two:.2f} s: {two / one:.2f} times; {said(remote)}")
    print("the same bits" if same(whole, model) else "OTHER BITS")


def traffic(options):
    """Count bytes."""
    from sadrec.cluster import Ray

    print(f"{'workers':>7} {'passed on + dealt anew, MB':>28} {'counted, MB':>12} {'ratio':>6}")
    for users, items in ((20_000, 5_000), (5_000, 20_000)):
        matrix = simulated(400_000, users, items)
        matrix.sum_duplicates()
        with on_disk(matrix) as data:
            for workers in (1, 2, 3, 4):
                model, figures = fit(data, Ray(workers=workers), epochs=3)
                expected = formula(len(model.users), len(model.items), matrix.nnz, 64, workers, 16)
                counted = figures[-1]["moved_bytes"]
                ratio = counted / sum(expected) if sum(expected) else 1.0
                passed, dealt = (part / 1e6 for part in expected)
                print(f"{workers:>7} {passed:>13.2f} + {dealt:>12.2f} {counted / 1e6:>12.2f} {ratio:>6.3f}")


def write_table(folder, pairs, users, items=26_744):
    """Write interactions to ten files."""
    rng = np.random.default_rng(0)
    for number in range(10):
        user = (users * rng.random(pairs // 10) ** 1.5).astype(np.int64)
        item = (items * rng.random(pairs // 10) ** 3).astype(np.int64)
        pl.DataFrame({"user": user, "item": item}).write_parquet(folder / f"part-{number}.parquet")


def driver(options):
    """Fit on files and save, each size in a program of its own, and compare the most memory that these have taken."""
    import ray

    sizes = []
    for pairs, users in ((2_000_000, 13_849), (20_000_000, 138_493)):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data").mkdir()
            write_table(Path(folder) / "data", pairs, users)
            address = ray.get_runtime_context().gcs_address
            command = [sys.executable, "-m", "benchmarks.cluster", "driver", "--program", address, folder]
            began = time.perf_counter()
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            sizes.append(int(answer[0]))
            print(
                f"{pairs:>12,} rows, {int(answer[1]):>12,} interactions, {int(answer[2]):>8,} users: {sizes[-1]} MB, "
                f"{time.perf_counter() - began:.0f} s"
            )
    print(f"the program takes {sizes[1] / sizes[0]:.3f} times as much")


def program(address, folder):
    """Fit and write the model; print the most memory of this process, in MB, and the size of the data.

    Pages of files and of Ray's store, which other processes share, are not counted.
    """
    from sadrec.cluster import Ray

    own, over = [], threading.Event()

    def sample():
        while not over.wait(0.01):
            status = Path("/proc/self/status").read_text().splitlines()
            own.append(int(next(line for line in status if line.startswith("RssAnon")).split()[1]) // 1024)

    sampler = threading.Thread(target=sample)
    sampler.start()
    model = SAD(64, iterations=2, blocks=16, **SETTINGS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*rows repeat a")
        model.fit(f"{folder}/data", False, engine=Ray(workers=2, address=address, output=f"{folder}/model.sad"))
    over.set()
    sampler.join()
    print(max(own), model.state.seen.nnz, len(model.users))


def cost(options):
    """Print the model of cost."""
    heads = ("nodes", "GB in an epoch, each", "of it blocks", "GB of memory, each", "training, s", "moving, s")
    print("  ".join(heads))
    pairs, users, items, factors, blocks = 1e9, 1e8, 1e7, 64, 64
    for nodes in (1, 8, 64):
        passed, dealt = formula(users, items, pairs, factors, nodes, blocks)
        rows = (users * 4 * factors + 2 * items * 4 * (2 * factors + 1)) / nodes  # the blocks here, and one copy
        # At home items and ratings, in an epoch items and then places of 2 bytes; of all users, where they are.
        data = pairs * (8 + 4 + 2) / nodes + users * (2 * (blocks + 1) + 8) / nodes + 16 * users
        seconds, moving = (
            pairs / (nodes * options.cores * options.rate),
            (passed + dealt) / nodes / (options.gigabits * 1.25e8),
        )
        values = (passed + dealt) / nodes / 1e9, passed / nodes / 1e9, (2 * rows + data) / 1e9, seconds, moving
        line = (f"{value:>{len(head)}.1f}" for head, value in zip(heads[1:], values, strict=True))
        print("  ".join((f"{nodes:>5}", *line)))


def main():
    """Run what is asked for, in a namespace where it needs a cluster."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bits", "speed", "traffic", "driver", "cost"])
    parser.add_argument("--pairs", type=float, default=20e6)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--cores", type=int, default=16, help="cores of a node, for the model of cost")
    parser.add_argument("--rate", type=float, default=5e6, help="updates a second on a core, for the model of cost")
    parser.add_argument("--gigabits", type=float, default=10.0, help="of the network, for the model of cost")
    parser.add_argument("--program", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        program(*options.program)
        return
    if options.what == "cost":
        cost(options)
        return
    if not _namespace.inside():
        if reason := _namespace.reason_against():
            sys.exit(reason)
        sys.exit(_namespace.run(sys.executable, "-m", "benchmarks.cluster", *sys.argv[1:]).returncode)
    began = time.perf_counter()
    made = _namespace.start(2, cpus=2, store=(700 if options.what == "driver" else 400) * 2**20)
    print(f"two nodes started in {time.perf_counter() - began:.0f} s")
    {"bits": bits, "speed": speed, "traffic": traffic, "driver": driver}[options.what](options)
    _namespace.end(made)


if __name__ == "__main__":
    main()
