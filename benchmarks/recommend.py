"""Recommending: users a second and memory, against implicit and plain NumPy; and what single questions cost.

    python benchmarks/recommend.py                       # top 10 for all users of MovieLens 1M, 64 and 500 factors
    python benchmarks/recommend.py --factors 64 --json out.json
    python benchmarks/recommend.py --only questions memory
    python benchmarks/recommend.py --only refit          # is a folded-in vector what a fit would have learnt?
    python benchmarks/recommend.py --only everybody      # recommend_all here and on Ray, in a network namespace

Contenders take turns in one run and the best of several turns counts, because machines are shared and noisy. All answer
from the same vectors and leave out the same seen items. Ours starts from the three factor matrices every time; implicit
and NumPy are given the vectors ready-made. The NumPy line is a matrix product, the seen items masked, argpartition, and
a sort of what is left, block by block. implicit comes with the ``bench`` extra and is left out where it is missing.

MovieLens 1M is read from SADREC_DATA when it is there; otherwise interactions of its size are simulated. Factors are
random: what they say does not change how long it takes to find the largest.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from contenders import implicit_model, interactions
from peak import grown, measure_from
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Point
from sadrec.ranking.cycles import cycles
from sadrec.ranking.explain import explain
from sadrec.ranking.fold_in import fold_in
from sadrec.ranking.intransitivity import intransitivity
from sadrec.ranking.parameters import item_vectors, user_vectors
from sadrec.ranking.top_n import recommend
from sadrec.ranking.tournament import tournament
from turns import best


def random_parameters(users, items, factors):
    """Return parameters of a size, with T near 1 as training leaves it."""
    rng = np.random.default_rng(0)
    xi, eta = (0.3 * rng.standard_normal((n, factors), dtype=np.float32) for n in (users, items))
    moved = rng.random((items, factors)) < 0.1
    tau = np.maximum(1 + 0.5 * moved * rng.standard_normal((items, factors)), 0).astype(np.float32)
    return Parameters(xi, eta, tau)


def numpy_top(queries, vectors, seen, N, rows=2048):
    """Return the best N of every user, with NumPy alone."""
    best_rows = np.empty((len(queries), N), np.int64)
    for start in range(0, len(queries), rows):
        scores = queries[start : start + rows] @ vectors.T
        rows_seen = seen[start : start + rows]
        scores[np.repeat(np.arange(rows_seen.shape[0]), np.diff(rows_seen.indptr)), rows_seen.indices] = -np.inf
        best = np.argpartition(scores, -N, axis=1)[:, -N:]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
        best_rows[start : start + rows] = np.take_along_axis(best, order, 1)
    return best_rows


def implicit_top(queries, vectors):
    """Return a function that answers with implicit, or None where it is not installed."""
    try:
        model = implicit_model("ALS", factors=queries.shape[1])
    except ImportError:
        return None
    model.user_factors, model.item_factors = queries, vectors
    users = np.arange(len(queries))
    return lambda seen, N: model.recommend(users, seen, N=N)[0]


def bench_top_n(factors, turns, N=10):
    """Print and return users a second for the top N of all users."""
    seen = interactions()
    parameters = random_parameters(*seen.shape, factors)
    queries, vectors = user_vectors(parameters), item_vectors(parameters)
    other = implicit_top(queries, vectors)
    contenders = {
        "sadrec": lambda: recommend(Point(parameters), None, N, liked=seen)[0],
        "numpy": lambda: numpy_top(queries, vectors, seen, N),
    }
    if other is not None:
        contenders["implicit"] = lambda: other(seen, N)
    same = np.mean([set(a) == set(b) for a, b in zip(*(work() for work in list(contenders.values())[:2]), strict=True)])
    rates = {name: len(queries) / seconds for name, seconds in best(contenders, turns).items()}
    print(f"top {N} for {len(queries):,} users of {len(vectors):,} items, {factors} factors, users a second:")
    for name, rate in rates.items():
        print(f"  {name:10s} {rate:10,.0f}   x {rates['sadrec'] / rate:.2f}")
    print(f"  the same items as NumPy for {100 * same:.2f} % of the users")
    return {"factors": factors, "N": N, "users_per_second": rates, "same_as_numpy": float(same)}


def bench_methods(factors, turns, users=100):
    """Print and return users a second for each method of the second stage."""
    seen = interactions()[:users]
    parameters = random_parameters(users, seen.shape[1], factors)
    methods = ("margin", "wins", "liked", "markov", "nash")
    contenders = {
        method: partial(recommend, Point(parameters), None, 10, method=method, liked=seen) for method in methods
    }
    rates = {method: users / seconds for method, seconds in best(contenders, turns).items()}
    print(f"an exact tournament among the best 200, {factors} factors, users a second:")
    for method, rate in rates.items():
        print(f"  {method:10s} {rate:10,.0f}")
    return {"factors": factors, "users_per_second": rates}


def bench_questions(factors, turns):
    """Print and return what single questions cost, in milliseconds: the median over users of the best of several."""
    seen = interactions()
    parameters = random_parameters(*seen.shape, factors)
    liked = [seen[user].indices for user in range(0, 60, 4)]
    favourites, _ = recommend(Point(parameters), np.arange(0, 60, 4), 50, liked=seen[np.arange(0, 60, 4)])
    questions = {
        "fold_in": lambda n: fold_in(parameters, liked[n]),
        "recommend one": lambda n: recommend(Point(parameters), [n], 10, liked=seen[[n]]),
        "cycles among 50": lambda n: cycles(tournament(parameters, 4 * n, favourites[n])),
        "explain": lambda n: explain(parameters, 4 * n, int(favourites[n, 0]), int(favourites[n, 1]), liked=liked[n]),
        "intransitivity of all": lambda n: intransitivity(parameters),
    }
    print(f"single questions, {factors} factors, milliseconds:")
    cost = {}
    for name, work in questions.items():
        rounds = range(2) if name == "intransitivity of all" else range(len(liked))
        times = [best({name: lambda w=work, n=n: w(n)}, turns)[name] for n in rounds]
        cost[name] = 1000 * float(np.median(times))
        print(f"  {name:22s} {cost[name]:8.2f}")
    return {"factors": factors, "milliseconds": cost}


def bench_refit(factors, count=200):
    """Print and return how much the top 10 of some users agree: two fits, and a fit without them that folds them in."""
    from sadrec import SAD, Interactions

    seen = interactions()
    users = np.random.default_rng(0).choice(seen.shape[0], count, replace=False)
    without = sp.diags_array(1.0 - np.isin(np.arange(seen.shape[0]), users)).tocsr() @ seen
    without.eliminate_zeros()

    def fitted(matrix, seed):
        data = Interactions.from_csr(sp.csr_matrix(matrix))
        return SAD(factors=factors, random_state=seed).fit(data, show_progress=False)

    def top(parameters, who):
        return recommend(Point(parameters), who, 10, liked=seen[users])[0]

    def agreement(one, other):
        return float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(one, other, strict=True)]))

    first, second, blind = fitted(seen, 0), fitted(seen, 1), fitted(without, 0)
    vectors, seconds = [], []
    for user in users:
        began = time.perf_counter()
        vectors.append(blind.visitor(seen[[user]].indices).user_factors[0])
        seconds.append(time.perf_counter() - began)
    expected = top(first.state.parameters, users)
    answer = {
        "two fits": agreement(expected, top(second.state.parameters, users)),
        "fold-in": agreement(expected, top(blind.state.parameters, np.stack(vectors))),
    }
    print(f"top 10 of {count} users, share in common with a fit that knew them, {factors} factors:")
    for name, share in answer.items():
        print(f"  {name:10s} {share:.3f}   x {share / answer['two fits']:.2f}")
    milliseconds = 1000 * float(np.median(seconds))
    print(f"  a fold-in takes {milliseconds:.1f} ms (median)")
    return {"factors": factors, "milliseconds": milliseconds} | answer


def bench_memory(users, factors=64):
    """Return the memory that recommending to that many users adds to what holds the question and the answer, in MB."""
    parameters = random_parameters(users, 20_000, factors)
    recommend(Point(replace(parameters, user_factors=parameters.user_factors[:600])), None, 10)
    before = measure_from()
    items, scores = recommend(Point(parameters), None, 10)
    return (grown(before) - items.nbytes - scores.nbytes) / 2**20


def memory_table():
    """Print and return how memory grows with the number of users, each in a process of its own."""
    growth = {}
    for users in (2_000, 20_000, 200_000):
        call = [sys.executable, __file__, "--memory-of", str(users)]
        growth[users] = float(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
        whole = users * 20_000 * 4 / 2**20
        print(
            f"  {users:8,d} users x 20,000 items: {growth[users]:8.1f} MB more at the peak "
            f"(all scores: {whole:,.0f} MB)"
        )
    return growth


def on_ray_data(work, parts):
    """Write parts through Ray Data, as sadrec.cluster does not: a row of the data set is the number of a part."""
    import ray.data

    from sadrec.cluster.parts import write_part

    def write(row):
        return {"rows": write_part(work, parts[int(row["id"])], 1).rows}

    ray.data.DataContext.get_current().enable_progress_bars, two = False, ray.data.TaskPoolStrategy(size=2)
    ray.data.range(len(parts), override_num_blocks=len(parts)).map(write, num_cpus=1, compute=two).take_all()


def bench_everybody(copies, turns, factors=64, N=10):
    """Print and return users a second of recommend_all: threads here, tasks of Ray, Ray Data; two cores each."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from campaigns import _namespace
    from sadrec import SAD
    from sadrec.cluster import Ray
    from sadrec.models import ExportPart, ExportWork
    from sadrec.models.export import ListRequest

    if not _namespace.inside():
        if reason := _namespace.reason_against():
            print(reason)
            return None
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder) / "answer.json"
            call = [sys.executable, __file__, "--only", "everybody", "--copies", str(copies), "--turns", str(turns)]
            call = _namespace.alone(*call, "--json", str(answer))
            subprocess.run(call, env=_namespace.environment(folder), check=True)
            return json.loads(answer.read_text())["everybody"]
    made = _namespace.start(1, cpus=2, store=200 * 2**20)
    matrix = interactions()
    some = sp.csr_matrix(matrix.multiply(np.random.default_rng(0).random(matrix.shape) < 0.25))
    seen = sp.vstack([some] * copies, "csr")
    parameters = random_parameters(*seen.shape, factors)
    users = seen.shape[0]
    with tempfile.TemporaryDirectory() as folder:
        file, place = Path(folder) / "m.sad", Path(folder) / "lists"
        given = parameters.user_factors, parameters.item_factors, parameters.rival_factors
        SAD.from_factors(*given, seen=seen).save(file)
        model = SAD.load(file, mmap=True)
        work = ExportWork(file, model.state.file[1], None, ListRequest(N), place)
        parts = [ExportPart(number, range(users)[a : a + 8192]) for number, a in enumerate(range(0, users, 8192))]

        def anew(write):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            write()

        question = {"N": N, "output": place, "part_users": 8192, "show_progress": False}
        contenders = {
            "two threads": lambda: anew(lambda: model.recommend_all(**question)),
            "Ray, two tasks": lambda: anew(lambda: model.recommend_all(engine=Ray(workers=2), **question)),
            "Ray Data": lambda: anew(lambda: on_ray_data(work, parts)),
        }
        rates = {name: users / seconds for name, seconds in best(contenders, turns).items()}
    _namespace.end(made)
    print(f"top {N} for {users:,} users of {seen.shape[1]:,} items to a folder, {len(parts)} parts, users a second:")
    for name, rate in rates.items():
        print(f"  {name:14s} {rate:10,.0f}   x {rate / rates['two threads']:.2f}")
    return {"users": users, "parts": len(parts), "users_per_second": rates}


def main():
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factors", type=int, nargs="+", default=[64, 500])
    parser.add_argument("--turns", type=int, default=10, help="how often each contender runs")
    sections = ["top", "methods", "questions", "memory", "refit", "everybody"]
    parser.add_argument("--only", nargs="+", choices=sections, default=None)
    parser.add_argument("--copies", type=int, default=50, help="how often all users are there, for everybody")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(bench_memory(options.memory_of))
        return
    wanted = options.only or sections
    report = {"cores": os.cpu_count()}
    if "top" in wanted:
        report["top"] = [bench_top_n(factors, options.turns) for factors in options.factors]
    if "methods" in wanted:
        report["methods"] = [bench_methods(factors, 3) for factors in options.factors]
    if "questions" in wanted:
        report["questions"] = [bench_questions(factors, 3) for factors in options.factors]
    if "memory" in wanted:
        print("memory:")
        report["memory_mb"] = memory_table()
    if "refit" in wanted:
        report["refit"] = bench_refit(min(options.factors))
    if "everybody" in wanted:
        report["everybody"] = bench_everybody(options.copies, min(options.turns, 3))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
