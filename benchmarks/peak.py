"""How much memory a fit takes at its peak, option by option, over its data and parameters. Linux only.

    python benchmarks/peak.py                             # every option at 5 million interactions, about ten minutes
    python benchmarks/peak.py --count 500000 dislikes     # some options, at another size

Each option is fitted in a process of its own, on one thread, for an epoch, with negative_candidates=1, which saves time
and no memory; by the variational solver for three sweeps, the last of which learns what comes last. The process
simulates its data and fits twice: the first time imports and compiles everything, then it gives back what is free, and
the second time is measured. *Data* are the bytes of the arrays that are handed to
``fit`` (ids included), *parameters* those of what it learns: of the variational solver means, covariances and the
margins of pairings. What was seen, which a model keeps, too, does not count among them; but ``partial_fit`` is handed
a model, and there it counts on both sides. *Peak* is the data plus the growth of the resident memory during the fit
(VmHWM over VmRSS before): everything but the interpreter and the libraries. *Ratio* is the peak over data and
parameters, *bar* what it is not to exceed.

Other benchmarks use the functions::

    before = measure_from()
    ...
    print(grown(before))
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COUNT, USERS, ITEMS = 5_000_000, 50_000, 10_000
OPTIONS: dict[str, dict[str, Any]] = {
    "default settings": {},
    "BPR": {"model": "BPR"},
    "weights": {"weights": True},
    "loss='softmax'": {"settings": {"loss": "softmax", "factors": 64, "advanced": {"negatives": 32}}},
    "user_balance=0": {"settings": {"advanced": {"user_balance": 0.0}}},
    "adaptive": {"settings": {"advanced": {"adaptive": True}}},
    "validation, a tenth": {"validation": True},
    "checkpoint": {"checkpoint": True},
    "partial_fit": {"partial": True},
    "with comparisons, a fifth": {"beside": True},
    "order_share=0.34": {"settings": {"order_share": 0.34}, "bar": 2.0},
    "order_share=0.9": {"settings": {"order_share": 0.9}, "bar": 2.0},
    "order_share=1": {"settings": {"order_share": 1.0}, "bar": 2.0},
    "dislikes=2.5": {"dislikes": 2.5, "bar": 2.0},
    "dislikes, a tenth beside": {"dislikes": "given", "bar": 2.5},
    "200,000 users, factors=8": {"users": 200_000, "settings": {"factors": 8}},
    "comparisons, sgd": {"comparisons": True, "settings": {"solver": "sgd"}},
    "comparisons, variational": {
        "comparisons": True,
        "settings": {"factors": 8, "iterations": 3},
        "first": 0.02,
        "bar": 2.0,
    },
    "recommend_all": {"lists": True, "first": 0.1},
    "GibbsSAD, a tenth, 200 draws": {"draws": 200, "first": 0.1, "bar": 2.0},
    "GibbsSAD, a tenth, 20 draws": {"draws": 20, "first": 0.1, "bar": 4.1},  # what GibbsSAD.memory says beforehand
}
"""What is measured: the options of the fit, how many users there are, how much the first fit needs, and the bar."""


def memory(what: str) -> int:
    """Return VmRSS (resident now) or VmHWM (at most so far) of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


def measure_from() -> int:
    """Give what is free back to the system, forget the peak so far, and return what is resident."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed would otherwise be used again and not be seen to grow
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def grown(before: int) -> int:
    """Return by how much the peak since :func:`measure_from` is above what was resident then."""
    return memory("VmHWM") - before


def interactions(count: int, users: int, items: int, seed: int) -> Any:
    """Simulate ratings from 1 to 5; some users are far more active, and some items more popular, than others."""
    import numpy as np
    import scipy.sparse as sp

    from sadrec import Interactions

    rng = np.random.default_rng(seed)
    active = rng.lognormal(0.0, 1.0, users)
    user = rng.choice(users, size=int(1.5 * count) + users, p=active / active.sum()).astype(np.int64)
    item = (items * rng.random(len(user)) ** 2).astype(np.int64)
    keys = rng.permutation(np.unique(user * items + item))[:count]
    ratings = rng.integers(1, 6, len(keys)).astype(np.float32)
    return Interactions.from_csr(sp.csr_matrix((ratings, (keys // items, keys % items)), shape=(users, items)))


def comparisons(count: int, users: int, items: int, seed: int) -> Any:
    """Simulate comparisons."""
    import numpy as np

    from sadrec import Comparisons

    rng = np.random.default_rng(seed)
    winner = rng.integers(items, size=count)
    loser = (winner + rng.integers(1, items, size=count)) % items
    user = rng.integers(users, size=count)
    return Comparisons.from_indices(user, winner, loser, users=np.arange(users), items=np.arange(items))


def arrays_of(*parts: Any) -> list[Any]:
    """Return the arrays of interactions, comparisons, sparse matrices, models, and arrays themselves."""
    arrays: list[Any] = []
    for part in parts:
        if hasattr(part, "indptr"):
            arrays += [part.data, part.indices, part.indptr]
        elif hasattr(part, "matrix"):
            arrays += [*arrays_of(part.matrix), part.users, part.items]
        elif hasattr(part, "winner_index"):
            arrays += [part.user_index, part.winner_index, part.loser_index, part.users, part.items]
        elif hasattr(part, "drawn"):
            arrays += [value for value in vars(part.drawn).values() if hasattr(value, "nbytes")]
        elif hasattr(part, "state"):
            values = [value for one in (part.state.parameters, part.state.belief) for value in vars(one).values()]
            arrays += [value for value in values if hasattr(value, "nbytes")] + arrays_of(part.state.seen)
        elif part is not None:
            arrays.append(part)
    return arrays


def total(arrays: list[Any], but: Sequence[Any] = ()) -> int:
    """Return the bytes of arrays, but for those that share memory with others."""
    import numpy as np

    return sum(array.nbytes for array in arrays if not any(np.may_share_memory(array, other) for other in but))


def prepare(option: dict[str, Any], count: int, users: int, items: int, folder: str) -> tuple[Any, list[Any]]:
    """Return what fits, as a function, and the arrays that are handed to it."""
    import numpy as np

    import sadrec

    settings = {"iterations": 1, "num_threads": 1, **option.get("settings", {})}
    if not option.get("comparisons") and settings.get("loss") != "softmax":
        settings |= {"loss": "pairwise", "negative_candidates": 1}
    model = getattr(sadrec, option.get("model", "SAD"))(**settings)
    if option.get("draws"):
        from sadrec.posterior import GibbsSAD

        model = GibbsSAD(factors=8, draws=option["draws"], warmup=1, chains=1, num_threads=1)
        data = comparisons(count // 10, users // 10, items // 10, 0)
        return lambda: model.fit(data, show_progress=False), arrays_of(data)
    if option.get("comparisons"):
        data = comparisons(count, users, items, 0)
        return lambda: model.fit(data, show_progress=False), arrays_of(data)
    data, beside = interactions(count, users, items, 0), {}
    if option.get("lists"):
        model.fit(data, show_progress=False)

        def write() -> None:
            model.recommend_all(output=Path(folder) / "lists", show_progress=False)

        return write, arrays_of(model)
    if option.get("weights"):
        beside["weights"] = np.random.default_rng(1).random(data.matrix.nnz, np.float32)
    if option.get("beside"):
        beside["comparisons"] = comparisons(count // 5, users, items, 2)
    if option.get("validation"):
        data, beside["validation"] = data.split(test=0.1, seed=0)
    if option.get("dislikes") == "given":
        data, beside["dislikes"] = data.split(test=0.1, seed=0)
    elif "dislikes" in option:
        beside["dislikes"] = option["dislikes"]
    parts = [data, *(part for part in beside.values() if not isinstance(part, float))]
    if option.get("checkpoint"):
        beside["checkpoint"] = folder
    if option.get("partial"):
        data, new = data.split(test=0.1, seed=0)
        model.fit(data, show_progress=False)
        return lambda: model.partial_fit(new, show_progress=False), arrays_of(new, model)
    return lambda: model.fit(data, show_progress=False, **beside), arrays_of(*parts)


def measure(name: str, count: int) -> dict[str, Any]:
    """Measure one option; meant for a fresh process."""
    option = OPTIONS[name]
    users, items = option.get("users", USERS) * count // COUNT, ITEMS * count // COUNT
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as folder:
        share = option.get("first", 1)  # enough to compile everything
        prepare(option, *(int(share * size) for size in (count, users, items)), first)[0]()
        fit, handed = prepare(option, count, users, items, folder)
        data = total(handed)
        before, began = measure_from(), time.perf_counter()
        model = fit()
        seconds = time.perf_counter() - began
        peak = data + grown(before)
    seen = arrays_of(model.state.seen) if hasattr(model, "seen") and not option.get("partial") else []
    learnt = total(arrays_of(model), [*handed, *seen])
    result = {"option": name, "users": users, "items": items, "data": data, "parameters": learnt, "peak": peak}
    return {**result, "ratio": peak / (data + learnt), "bar": option.get("bar", 1.5), "seconds": seconds}


def main() -> None:
    """Measure each option in a process of its own and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "options", nargs="*", metavar="OPTION", help=f"of {', '.join(OPTIONS)}; a part of the name does"
    )
    parser.add_argument(
        "--count", type=int, default=COUNT, help="interactions or comparisons; users and items in proportion"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.count)))
        return
    names = [name for name in OPTIONS if not arguments.options or any(part in name for part in arguments.options)]
    users, items = (number * arguments.count // COUNT for number in (USERS, ITEMS))
    print(f"{arguments.count:,} interactions or comparisons, {users:,} users, {items:,} items, factors=64; in MB\n")
    print("| option | data | parameters | peak | ratio | bar |\n|---|---:|---:|---:|---:|---:|")
    rows = []
    for name in names:
        command = [sys.executable, __file__, "--count", str(arguments.count), "--child", name]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        row = json.loads(out.splitlines()[-1])
        rows.append(row)
        sizes = " | ".join(f"{row[part] / 1e6:.0f}" for part in ("data", "parameters", "peak"))
        print(f"| {name} | {sizes} | {row['ratio']:.2f} | {row['bar']:.1f} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
