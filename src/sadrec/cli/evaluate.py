"""``sadrec evaluate`` and ``sadrec compare``: how good a model is, and which is better."""

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from sadrec._core.words import one_line
from sadrec.cli.options import (
    Reading,
    a_file,
    a_folder,
    json_option,
    model_argument,
    quiet_option,
    reading_options,
    seed_option,
)
from sadrec.cli.output import check_replacing, overwrite_option, print_json, print_table, resumable, saved_kind

LIST_MEASURES = {"ndcg@10": 10, "recall@20": 20}
COMPARISON_MEASURES = ("log_loss", "accuracy")
PAPER_MEASURES = ("mean_margin", "match", "match_per_user", "m1", "m2")
RECORD = "comparison.json"
"""Name of the file that records the data and the question of the tables in its folder."""


@click.command("evaluate")
@model_argument
@click.option("--train", type=a_file, help="The training data. Interactions need it: items seen in training are left "
                                           "out of the test. For comparisons it checks that no held-out row was "
                                           "trained on.")  # fmt: skip
@click.option("--test", type=a_file, required=True, help="The held-out data.")
@click.option(
    "--top-n",
    type=click.IntRange(min=1),
    help="Measure the best N items of the whole catalogue instead (nDCG, recall, ...).",
)
@seed_option
@reading_options
@json_option
def evaluate_command(
    model: Path, train: Path | None, test: Path, top_n: int | None, seed: int, reading: Reading, as_json: bool
) -> None:
    """Evaluate a fitted MODEL on held-out data.

    MODEL is a model or a saved posterior. Unknown users and items are left out, and counted.
    """
    from sadrec import SAD, Comparisons
    from sadrec.data import DataWarning
    from sadrec.evaluation import evaluate, evaluate_comparisons, evaluate_top_n
    from sadrec.posterior import GibbsSAD

    fitted: Any = GibbsSAD.load(model) if saved_kind(model) == "posterior" else SAD.load(model)
    data = reading.read(test)
    unknown = {}
    if isinstance(data, Comparisons):
        if top_n is not None:
            raise click.UsageError(f"--top-n is for interactions, and {test} holds comparisons")
        held_out, unknown["test"] = in_ids_of(fitted, data, str(test))
        if train is None:
            warnings.warn(
                f"without --train FILE it cannot be checked whether {test} was trained on", DataWarning, stacklevel=1
            )
        else:
            kept, unknown["train"] = in_ids_of(fitted, reading.read(train, "comparisons"), str(train))
            refuse_shared(kept, held_out, str(train), str(test))
        result = evaluate_comparisons(fitted, held_out)
    else:
        if train is None:
            raise click.UsageError("give --train FILE: items seen in training are left out of the test")
        kept, unknown["train"] = in_ids_of(fitted, reading.interactions(train), str(train))
        held_out, unknown["test"] = in_ids_of(fitted, data, str(test))
        if top_n:
            result = evaluate_top_n(fitted, kept, held_out, top_n, seed=seed)
        else:
            result = evaluate(fitted, kept, held_out, seed)
    rows = result.to_frame().rows()
    if as_json:
        figures = {name: {"value": value, "error": error, result.counted: count} for name, value, error, count in rows}
        print_json({"model": str(model), "measures": figures, "left_out": unknown})
        return
    for name, count in unknown.items():
        if count:
            click.echo(f"left out of {name}, with a user or an item that the model does not know: {count:,}")
    print_table(("measure", "value", "error", result.counted), rows)


def refuse_shared(train: Any, held_out: Any, train_name: str, name: str) -> None:
    """Raise if more held-out comparisons occur in ``train`` than repeated answers explain.

    By chance, held-out rows repeat rows of ``train`` as often as the rows of ``train`` repeat each other.
    """
    import polars as pl

    columns = ["user", "winner", "loser"]
    train_rows, test_rows = (data.decided.to_frame().select(columns) for data in (train, held_out))
    counts = train_rows.group_by(columns).len()
    repeated = counts.filter(pl.col("len") > 1)["len"].sum() / len(train_rows)
    shared = test_rows.join(counts, on=columns, how="semi").height
    chance = repeated + 3 * (repeated * (1 - repeated) / len(test_rows)) ** 0.5 + 0.05
    if shared / len(test_rows) > chance:
        raise ValueError(
            f"{shared:,} of the {len(test_rows):,} comparisons in {name} are rows of {train_name}, where "
            f"{repeated:.0%} of rows occur more than once: hold them out before fitting"
        )


def rows_in(own: Any, ids: Any) -> Any:
    """Return the row of each id among those of a model, or -1; 7 and "7" are the same where one side is text."""
    from sadrec.data import Ids

    if own.dtype.kind != ids.dtype.kind and "U" in (own.dtype.kind, ids.dtype.kind):
        own, ids = own.astype(str), ids.astype(str)
    return Ids(own).rows(ids)


def in_ids_of(model: Any, data: Any, name: str = "the data") -> tuple[Any, int]:
    """Return interactions or comparisons in the rows and columns of a model, and the number of those left out."""
    import numpy as np
    from scipy.sparse import csr_matrix

    from sadrec import Comparisons, Interactions

    users, items = rows_in(model.users, data.users), rows_in(model.items, data.items)
    if isinstance(data, Comparisons):
        places = [users[data.user_index], items[data.winner_index], items[data.loser_index]]
        values = data.weight
    else:
        entries = data.matrix.tocoo()
        places, values = [users[entries.row], items[entries.col]], entries.data
    inside = np.all([place >= 0 for place in places], axis=0)
    if not inside.any():
        raise ValueError(
            f"{name} has no users and items of the model: its users are such as "
            f"{data.users[0].item()!r}, its items such as {data.items[0].item()!r}, those of the model "
            f"{model.users[0].item()!r} and {model.items[0].item()!r}"
        )
    places, values = [place[inside] for place in places], None if values is None else values[inside]
    left_out = int((~inside).sum())
    if isinstance(data, Comparisons):
        tied = None if data.tied is None else data.tied[inside]
        aligned = Comparisons.from_indices(*places, users=model.users, items=model.items, weight=values, tied=tied)
        return aligned, left_out
    matrix = csr_matrix((values, tuple(places)), shape=(len(model.users), len(model.items)))
    return Interactions.from_csr(matrix, model.users, model.items, allow_negative=True), left_out


@click.command("compare")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--models",
    help="Names, separated by commas: sad, bpr, gibbs, ease, popularity.  "
    "[default: sad,bpr,ease,popularity; of comparisons sad,bpr,popularity]",
)
@click.option(
    "--with-bpr",
    is_flag=True,
    help="Compare SAD with BPR (the same model with all rival factors T at 1), and recommend one of them. Above "
    "100,000 interactions a sample of users is taken.",
)
@click.option(
    "--splits",
    type=click.IntRange(min=1),
    help="How many random splits.  [default: 5; with --with-bpr fewer when the result is clear early]",
)
@click.option("--factors", type=click.IntRange(min=1), help="Number of factors.  [default: each model's own]")
@click.option(
    "--top-n", type=click.IntRange(min=1), help="Length of the lists to judge.  [default: ndcg@10, recall@20]"
)
@click.option(
    "--paper", is_flag=True, help="The paper's five measures instead, with one interaction of every user held out."
)
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), help="Seconds for one fit and its evaluation.")
@seed_option
@click.option("-o", "--output", type=a_folder, help="Folder for tables, a picture and what a killed run resumes from.")
@overwrite_option
@quiet_option
@reading_options
@json_option
def compare_command(
    file: Path,
    models: str | None,
    with_bpr: bool,
    splits: int | None,
    factors: int | None,
    top_n: int | None,
    paper: bool,
    budget: float | None,
    seed: int,
    output: Path | None,
    overwrite: bool,
    quiet: bool,
    reading: Reading,
    as_json: bool,
) -> None:
    """Compare models on random splits of FILE.

    FILE holds interactions or comparisons, or is a folder with a ratings.parquet. A fifth of its rows is held out in
    each split. Interactions are judged by the best items of the whole catalogue, comparisons by log loss and accuracy.
    """
    from sadrec import Comparisons
    from sadrec._core.files import write_whole
    from sadrec.evaluation import compare, compare_with_bpr, data_fingerprint, measure_of

    for option, value in (("--models", models), ("--top-n", top_n), ("--paper", paper or None), ("--budget", budget)):
        if with_bpr and value is not None:
            raise click.UsageError(f"{option} does not go with --with-bpr, which always compares SAD with BPR")
    if paper and top_n is not None:
        raise click.UsageError("--paper judges sampled items and --top-n lists of the catalogue: give one of them")
    data = reading.read(file / "ratings.parquet" if file.is_dir() else file)
    stated = isinstance(data, Comparisons)
    if stated and (top_n is not None or paper):
        raise click.UsageError(f"{'--paper' if paper else '--top-n'} is for interactions, and {file} holds comparisons")
    compared = {}
    if not with_bpr:
        names = models or ("sad,bpr,popularity" if stated else "sad,bpr,ease,popularity")
        compared = compared_models([name.strip() for name in names.split(",") if name.strip()], factors)
    lists = not (stated or paper or with_bpr)
    measures = LIST_MEASURES if top_n is None else {f"{name}@{top_n}": top_n for name in ("ndcg", "recall")}
    about = {"data": data_fingerprint(data), "top_n": top_n, "paper": paper}
    runs: dict[str, Any] = {"seed": seed, "path": None if output is None else output / "runs"}
    runs["show_progress"] = not quiet
    if output is not None:
        written = [output / name for name in ("table.md", "results.csv", "comparison.png")]
        check_replacing(written, output / RECORD, about, overwrite)
    verdict = None
    with resumable(output):
        if with_bpr:
            chosen: dict[str, Any] = {} if factors is None else {"factors": factors}
            verdict = compare_with_bpr(data, splits, **runs, **chosen)
            result = verdict.comparison
        else:
            runs["protocol"] = "top_n" if lists else None
            result = compare(compared, data, splits or 5, N=sorted(set(measures.values())), budget=budget, **runs)
    wanted = COMPARISON_MEASURES if stated else measures if lists else PAPER_MEASURES
    shown = [name for name in wanted if name in result.measures]
    if output is not None:
        result.save(output)
        write_whole(output / RECORD, json.dumps(about) + "\n")
    if as_json:
        advice = {} if verdict is None else {"advice": verdict.advice, "verdict": str(verdict)}
        print_json(
            {"splits": len({run.split for run in result.runs}), "summary": result.summary().to_dicts(), **advice}
        )
    elif verdict is not None:
        click.echo(f"{verdict.table()}\n\n{verdict}")
    else:
        click.echo(result.table(measures=shown))
        click.echo("\n".join(measure_of(name).meaning for name in shown))
    failed = [run for run in result.runs if run.status == "failed"]
    if failed:
        reasons = "; ".join(dict.fromkeys(f"{run.model}: {one_line(run.message)}" for run in failed))
        raise click.ClickException(f"{len(failed)} of {len(result.runs)} fits failed ({reasons})")


def compared_models(names: Sequence[str], factors: int | None) -> dict[str, Any]:
    """Make the models to compare, by the titles of the table; ``factors``, if given, for those that have factors."""
    from sadrec import BPR, SAD
    from sadrec.evaluation import EASE, Popularity
    from sadrec.posterior import GibbsSAD

    length: dict[str, Any] = {} if factors is None else {"factors": factors}
    k = "" if factors is None else f" (k={factors})"
    makers: dict[str, tuple[str, Callable[[], Any]]] = {
        "sad": (f"SAD{k}", lambda: SAD(**length)),
        "bpr": (f"BPR{k}", lambda: BPR(**length)),
        "gibbs": (f"GibbsSAD{k}", lambda: GibbsSAD(**length)),
        "ease": ("EASE", EASE),
        "popularity": ("Popularity", Popularity),
    }
    for name in names:
        if name not in makers:
            raise ValueError(f"there is no model {name!r}: there are {', '.join(makers)}")
    return {makers[name][0]: makers[name][1]() for name in names}
