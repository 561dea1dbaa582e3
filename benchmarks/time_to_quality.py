"""CPU seconds until lists are as good as they get, and memory: SAD and BPR, implicit's ALS and BPR, EASE.

    python benchmarks/time_to_quality.py --data movielens-1m gowalla
    python benchmarks/time_to_quality.py --data movielens-1m --only SAD ALS --turns 3

Each contender is fitted in a process of its own, one at a time; with several turns they take turns, and the fastest
counts. Seconds are those of the processor, of all threads together: they hardly depend on what else the machine does,
and on a quiet one with a core for each thread they are the time by the clock, times the threads.

nDCG (of 10 on MovieLens 1M, random 80/20; of 20 on Gowalla, the published split) is measured in the course of the fit
on the same users, and the clock stands still meanwhile. Reported are the nDCG at the end, the seconds until it is
within 1 % of that, the seconds until it is within 1 % of the end of ALS, the seconds of the whole fit, and the memory
that a fit takes at its peak above the data, measured without looking at nDCG. SAD and BPR have default settings, the
others those that ``python -m studies.top_n`` chose. "SAD in haste" and "BPR in haste", on MovieLens 1M, have fewer
epochs at a higher learning rate: what to set where a good list soon is worth more than the best one.

EASE inverts a matrix of items x items. Where that takes more than ``--most-items``, it is fitted to so many of the most
popular items and half of them; seconds are estimated from there by the cube of the items, memory by their square.

The data is read from the folder that SADREC_DATA names.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from contenders import fit_implicit, implicit_model  # noqa: E402
from peak import grown, measure_from  # noqa: E402
from sadrec import BPR, SAD, Interactions  # noqa: E402
from sadrec.evaluation import EASE, evaluate_top_n  # noqa: E402
from sadrec.models import settings_for  # noqa: E402
from studies._options import load_ratings  # noqa: E402
from studies.top_n.published import load_gowalla  # noqa: E402

LENGTHS = {"movielens-1m": 10, "gowalla": 20}
# Chosen on the validation split of studies.top_n.
HASTE = {"loss": "pairwise", "iterations": 15, "learning_rate": 0.15}
# What studies.top_n chose on validation data.
SETTINGS = {
    "movielens-1m": {
        "SAD in haste": HASTE,
        "BPR in haste": HASTE,
        "ALS": {"factors": 128, "regularization": 40.0, "alpha": 2.0, "iterations": 15},
        "BPR (implicit)": {"factors": 64, "iterations": 50, "learning_rate": 0.01, "regularization": 0.001},
        "EASE": {"regularization": 1000.0},
    },
    "gowalla": {
        "ALS": {"factors": 256, "regularization": 0.1, "alpha": 5.0, "iterations": 15},
        "BPR (implicit)": {"factors": 64, "iterations": 100, "learning_rate": 0.05, "regularization": 0.01},
        "EASE": {"regularization": 500.0},
    },
}
OURS = {"SAD": SAD, "BPR": BPR, "SAD in haste": SAD, "BPR in haste": BPR}
CONTENDERS = (*OURS, "ALS", "BPR (implicit)", "EASE")
USERS, LOOKS = 2_000, 20
MIB = 2**20


def load(name):
    """Return what is trained on, and the test items of some users."""
    folder = Path(os.environ["SADREC_DATA"])
    if name == "gowalla":
        split = load_gowalla(folder)
        train, test = split.train, split.test
    else:
        train, test = load_ratings(name, folder).split(test=0.2, seed=0)
    having = np.flatnonzero(np.diff(test.matrix.indptr))
    chosen = np.zeros(test.shape[0], bool)
    chosen[np.random.default_rng(0).permutation(having)[:USERS]] = True
    kept = test.matrix.copy()
    kept.data[:] = np.repeat(chosen, np.diff(kept.indptr))
    kept.eliminate_zeros()
    return train, Interactions.from_csr(kept, test.users, test.items)


class Scores:
    """Factors of another library, as an evaluation takes them."""

    def __init__(self, model, data):
        self.model, self.users, self.items, self.user_ids = model, data.users, data.items, data.user_ids

    def scores(self, users):
        """Return inner products, users x items."""
        return self.model.user_factors[self.user_ids.positions(users)] @ self.model.item_factors.T


class Clock:
    """Counts the CPU seconds of training, and looks at nDCG now and then while it stands still."""

    def __init__(self, look, epochs):
        self.look, self.epochs, self.seconds, self.curve = look, epochs, 0.0, []
        self.began = time.process_time()

    def after(self, epoch, model):
        """Take note of an epoch (from 1)."""
        self.seconds += time.process_time() - self.began
        every = max(self.epochs // LOOKS, 1)
        if self.look is not None and (epoch % every == 0 or epoch == self.epochs):
            self.curve.append((self.seconds, self.look(model)))
        self.began = time.process_time()


def ours(kind, settings, train, look, threads, epochs=None):
    """Fit SAD or BPR, epoch by epoch."""
    model = kind(**settings, num_threads=threads)
    if epochs is not None:
        model.set_params(iterations=epochs)
    clock = Clock(look, settings_for(model, train).iterations)
    model.fit(train, show_progress=False, callbacks=[lambda epoch, figures, model: clock.after(epoch, model)])
    return clock.curve


def implicit(kind, settings, train, look, threads, epochs=None):
    """Fit a model of implicit, epoch by epoch."""
    from threadpoolctl import threadpool_limits

    settings = {**settings, **({} if epochs is None else {"iterations": epochs})}
    model = implicit_model(kind, **settings, num_threads=threads)
    clock = Clock(look, settings["iterations"])

    def after(epoch, *_):
        with threadpool_limits(threads, "blas"):
            clock.after(epoch + 1, Scores(model, train))

    fit_implicit(model, train.matrix, after)
    return clock.curve


def ease(settings, train, look, threads, epochs=None):
    """Fit EASE, which has no epochs."""
    clock = Clock(look, 1)
    model = EASE(**settings).fit(train)
    clock.after(1, model)
    return clock.curve


def fitted(contender, settings, train, look, threads, epochs=None):
    """Fit a contender; return how nDCG rose: (seconds, nDCG)."""
    if contender in OURS:
        return ours(OURS[contender], settings, train, look, threads, epochs)
    if contender == "EASE":
        return ease(settings, train, look, threads, epochs)
    return implicit(contender.removesuffix(" (implicit)"), settings, train, look, threads, epochs)


def most_popular(train, count):
    """Return the interactions with the most popular items."""
    popular = np.sort(np.argsort(-np.bincount(train.matrix.indices, minlength=train.shape[1]), kind="stable")[:count])
    return Interactions.from_csr(train.matrix[:, popular], train.users, train.items[popular])


def child(name, contender, what, threads, items):
    """Fit one contender in this process and print what was asked for, as JSON."""
    train, test = load(name)
    if items:
        train = most_popular(train, items)
    settings = SETTINGS[name].get(contender, {})
    fitted(contender, settings, most_popular(train, 60), None, threads, 1)  # compile and import what there is
    if what == "memory":
        before = measure_from()
        fitted(contender, settings, train, None, threads, 2)
        print(json.dumps(grown(before)))
        return

    def look(model):
        return evaluate_top_n(model, train, test, LENGTHS[name])["ndcg"]

    if items:  # the test items are others: only the seconds count
        began = time.process_time()
        fitted(contender, settings, train, None, threads)
        print(json.dumps([(time.process_time() - began, float("nan"))]))
    else:
        print(json.dumps(fitted(contender, settings, train, look, threads)))


def run_alone(name, contender, what, threads, items=0):
    """Run a contender in a process of its own."""
    command = [sys.executable, __file__, "--child", name, contender, what, str(threads), str(items)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return json.loads(out.stdout.splitlines()[-1])


def until(curve, level):
    """Return the seconds after which nDCG stays at a level or above it; NaN if it never does."""
    seconds = float("nan")
    for at, ndcg in reversed(curve):
        if ndcg < level:
            break
        seconds = at
    return seconds


def measured(name, contender, threads):
    """Return the curve of a contender and its memory, in words where it is estimated."""
    return {
        "curve": run_alone(name, contender, "curve", threads),
        "memory": run_alone(name, contender, "memory", threads),
    }


def estimated(name, threads, items, count):
    """Return what EASE would take with all items, from fits to the most popular ones."""
    parts = {}
    for some in (count // 2, count):
        ((seconds, _),) = run_alone(name, "EASE", "curve", threads, some)
        parts[some] = {"seconds": seconds, "memory": run_alone(name, "EASE", "memory", threads, some)}
        shown = f"{seconds:.1f} s, {parts[some]['memory'] / MIB:.0f} MiB"
        print(f"EASE with {some:,} of {items:,} items: {shown}", flush=True)
    whole = items / count
    seconds, memory = parts[count]["seconds"] * whole**3, parts[count]["memory"] * whole**2
    return {"curve": [(seconds, float("nan"))], "memory": memory, "estimated": True, "parts": parts}


def table(name, results):
    """Print the results of a data set, the end of ALS being the level that all are also timed against."""
    length = LENGTHS[name]
    als = results["ALS"]["curve"][-1][1] if "ALS" in results else float("nan")
    head = [f"ndcg@{length}", "within 1 % of its end", "within 1 % of ALS's end", "whole fit", "memory"]
    print(f"\n{name}, CPU seconds\n\n| | " + " | ".join(head) + " |\n|---|" + "---:|" * len(head))
    for contender, result in results.items():
        curve = result["curve"]
        seconds, ndcg = curve[-1]
        guess = " (estimated)" if result.get("estimated") else ""
        own, level = (f"{until(curve, 0.99 * value):.1f} s" for value in (ndcg, als))
        if guess:
            own, level = f"{seconds:.0f} s{guess}", ""
        row = [
            "" if np.isnan(ndcg) else f"{ndcg:.4f}",
            own,
            "never" if level == "nan s" else level,
            f"{seconds:.1f} s" if not guess else f"{seconds:.0f} s{guess}",
            f"{result['memory'] / MIB:.0f} MiB{guess}",
        ]
        print(f"| {contender} | " + " | ".join(row) + " |")
    sys.stdout.flush()


def main():
    """Run the contenders in turn and print a table for each data set."""
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        name, contender, what, threads, items = sys.argv[2:]
        child(name, contender, what, int(threads), int(items))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(LENGTHS), default=list(LENGTHS))
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=1, help="fits of each contender; the fastest counts")
    parser.add_argument("--most-items", type=int, default=10_000, help="EASE is estimated above so many")
    parser.add_argument("--json", type=Path, help="also write the curves to this file")
    arguments = parser.parse_args()
    if "SADREC_DATA" not in os.environ:
        parser.error("set SADREC_DATA to the folder that holds the data sets")
    everything = {}
    for name in arguments.data:
        items = load(name)[0].shape[1]
        results = {}
        for _ in range(arguments.turns):
            for contender in arguments.only:
                if contender.endswith("haste") and contender not in SETTINGS[name]:
                    continue
                if contender == "EASE" and items > arguments.most_items:
                    results.setdefault(contender, estimated(name, arguments.threads, items, arguments.most_items))
                    continue
                result = measured(name, contender, arguments.threads)
                print(f"{name}, {contender}: {result['curve'][-1][0]:.1f} s", file=sys.stderr, flush=True)
                fastest = results.get(contender)
                if fastest is None or result["curve"][-1][0] < fastest["curve"][-1][0]:
                    results[contender] = result
        table(name, results)
        everything[name] = results
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
