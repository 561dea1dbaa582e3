"""What ``compare_with_bpr`` says of each comparison set and of MovieLens, and how long it takes to say it."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sadrec import Comparisons, Interactions
from sadrec.evaluation import compare_with_bpr
from studies._options import MOVIELENS, load_ratings
from studies._tools import Record, Unit, digest, markdown_table, run, write_whole
from studies.comparisons.models import warm_up
from studies.comparisons.study import find_sets

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 3


def verdicts_study(
    folder: Path,
    data_folder: Path,
    *,
    sets: Sequence[str] = (),
    most: int | None = None,
    show_progress: bool = True,
) -> Mapping[str, Record]:
    """Ask on every set whether rival factors pay, and write ``verdicts.md``; arguments as of ``comparisons_study``.

    Interactions are asked about, too, where the data folder has those of MovieLens.
    """
    units, names = [], []
    films = [name for name in MOVIELENS if (data_folder / name).is_dir() and (not sets or name in sets)]
    stated = [name for name in sets if name not in films]
    for name, path in find_sets(data_folder, stated).items() if stated or not sets else ():
        data = Comparisons.read(path, ties="drop")
        if most is not None and len(data) > most:
            data, _ = data.split(test=1 - most / len(data), seed=0)
        units.append(_unit(name, data))
        names.append(name)
    for name in films:
        units.append(_unit(name, load_ratings(name, data_folder), most))
        names.append(name)
    records = dict(zip(names, run(folder, units, "verdicts", show_progress=show_progress), strict=True))
    header = ["set", "rows", "advice", "log loss of T = 1 less that of SAD", "T within 0.05 of 1", "seconds"]
    rows = [
        [
            name,
            f"{record['rows']:,}",
            record["advice"],
            f"{record['gain']:+.4f} ± {record['error']:.4f}",
            f"{100 * record['sparsity']:.0f} %",
            f"{record['seconds']:.0f}",
        ]
        for name, record in records.items()
    ]
    write_whole(folder / "verdicts.md", markdown_table(header, rows, (1, 3, 4, 5)) + "\n")
    return records


def _unit(name: str, data: Comparisons | Interactions, most: int | None = None) -> Unit:
    options: dict[str, Any] = {} if most is None else {"most": most}

    def compute() -> Record:
        warm_up()
        start = time.perf_counter()
        verdict = compare_with_bpr(data, show_progress=False, **options)
        seconds = time.perf_counter() - start
        (test,) = (row for row in verdict.tests.iter_rows(named=True) if row["measure"] == "log_loss")
        return {
            "rows": len(data),
            "advice": verdict.advice,
            "gain": -test["difference"],
            "error": test["error"],
            "sparsity": verdict.sparsity,
            "seconds": seconds,
        }

    return Unit(f"{name}-verdict", {"format": FORMAT, "data": digest(data), **options}, compute)
