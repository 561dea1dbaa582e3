"""``sadrec evaluate`` and ``sadrec compare``: how good a model is, and which is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from sadrec._output import json_option, print_json, print_table, resumable

_file = click.Path(exists=True, dir_okay=False, path_type=Path)
PAPER_MEASURES = ("mean_margin", "match", "match_per_user", "m1", "m2")


@click.command("evaluate")
@click.argument("model", type=_file)
@click.option("--train", type=_file, required=True, help="What the model was fitted on.")
@click.option("--test", type=_file, required=True, help="What was held out.")
@click.option(
    "--top-n", type=click.IntRange(min=1), help="Judge lists of this length over the whole catalogue instead."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the sampled items.")
@json_option
def evaluate_command(model: Path, train: Path, test: Path, top_n: int | None, seed: int, as_json: bool) -> None:
    """Evaluate the fitted MODEL on held-out interactions.

    Users and items that the model does not know are left out, and counted.
    """
    from sadrec import SAD, Interactions
    from sadrec.evaluation import evaluate, evaluate_top_n

    fitted = SAD.load(model)
    unknown = {}
    kept, unknown["train"] = in_ids_of(fitted, Interactions.read(train), str(train))
    held_out, unknown["test"] = in_ids_of(fitted, Interactions.read(test), str(test))
    if fitted.seen is not None and (shared := abs(fitted.seen).multiply(held_out.matrix != 0).nnz):
        raise ValueError(
            f"{shared:,} of the {held_out.matrix.nnz:,} interactions in {test} are what {model} was fitted on: hold "
            "them out before fitting (are --train and --test the right way round?)"
        )
    result = (
        evaluate_top_n(fitted, kept, held_out, top_n, seed=seed) if top_n else evaluate(fitted, kept, held_out, seed)
    )
    rows = result.to_frame().rows()
    if as_json:
        figures = {name: {"value": value, "error": error, "users": users} for name, value, error, users in rows}
        print_json({"model": str(model), "measures": figures, "left_out": unknown})
        return
    for name, count in unknown.items():
        if count:
            click.echo(f"{count:,} interactions of {name} are of users or items the model does not know: left out")
    print_table(("measure", "value", "error", "users"), rows)


def in_ids_of(model: Any, data: Any, name: str = "the data") -> tuple[Any, int]:
    """Return the interactions in the rows and columns of a model, and how many had to be left out.

    Raises
    ------
    ValueError
        When none is left; ``name`` says of what.
    """
    import numpy as np
    from scipy.sparse import csr_matrix

    from sadrec import Interactions

    matrix = data.matrix.tocoo()
    places = []
    for known, ids, at in ((model.users, data.users, matrix.row), (model.items, data.items, matrix.col)):
        if known.dtype.kind != ids.dtype.kind and "U" in (known.dtype.kind, ids.dtype.kind):
            known, ids = known.astype(str), ids.astype(str)
        order = np.argsort(known, kind="stable")
        spot = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
        found = np.where(known[order[spot]] == ids, order[spot], -1)
        places.append(found[at])
    both = (places[0] >= 0) & (places[1] >= 0)
    if not both.any():
        raise ValueError(
            f"{name} holds no interaction of users and items that the model knows: its users are such as "
            f"{data.users[0].item()!r}, its items such as {data.items[0].item()!r}, those of the model "
            f"{model.users[0].item()!r} and {model.items[0].item()!r}"
        )
    shape = (len(model.users), len(model.items))
    kept = csr_matrix((matrix.data[both], (places[0][both], places[1][both])), shape=shape)
    return Interactions.from_csr(kept, model.users, model.items, allow_negative=True), int((~both).sum())


@click.command("compare")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--models", default="sad,bpr,ease,popularity", show_default=True, help="Names, separated by commas.")
@click.option("--splits", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--factors", type=click.IntRange(min=1), default=64, show_default=True, help="Of SAD and BPR.")
@click.option("--top-n", type=click.IntRange(min=1), help="Judge lists of this length on random 80/20 splits instead.")
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), help="Seconds for one fit and its evaluation.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path),
              help="Folder for tables, a picture and finished work: a killed comparison goes on.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress bar.")
@json_option
def compare_command(
    file: Path,
    models: str,
    splits: int,
    factors: int,
    top_n: int | None,
    budget: float | None,
    seed: int,
    output: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit several models on random splits of FILE and compare them, with their default settings."""
    from sadrec.evaluation import compare

    names = [name.strip() for name in models.split(",") if name.strip()]
    with resumable(output):
        result = compare(
            compared_models(names, factors),
            _read(file),
            splits,
            protocol="top_n" if top_n else "leave_one_out",
            N=top_n or 10,
            seed=seed,
            path=None if output is None else output / "runs",
            budget=budget,
            progress=not quiet,
        )
    shown = None if top_n else [name for name in PAPER_MEASURES if name in result.measures]
    if output is not None:
        result.save(output)
    if as_json:
        print_json({"splits": splits, "summary": result.summary().to_dicts()})
    else:
        click.echo(result.table(measures=shown))


def compared_models(names: Sequence[str], factors: int) -> dict[str, Any]:
    """Make the models to compare, by the titles of the table; ``factors`` are those of SAD and BPR."""
    from sadrec import BPR, SAD
    from sadrec.evaluation import EASE, Popularity

    makers: dict[str, tuple[str, Callable[[], Any]]] = {
        # ratings are masked: their order is not for training
        "sad": (f"SAD (k={factors})", lambda: SAD(factors=factors, order_share=0.0)),
        "bpr": (f"BPR (k={factors})", lambda: BPR(factors=factors, order_share=0.0)),
        "ease": ("EASE", EASE),
        "popularity": ("Popularity", Popularity),
    }
    for name in names:
        if name not in makers:
            raise ValueError(f"there is no model {name!r}: there are {', '.join(makers)}")
    return {makers[name][0]: makers[name][1]() for name in names}


def _read(place: Path) -> Any:
    from sadrec import Interactions
    from sadrec.data.datasets.parquet_folder import is_parquet_folder, parquet_folder

    return parquet_folder(place) if place.is_dir() and is_parquet_folder(place) else Interactions.read(place)
