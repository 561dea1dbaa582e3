"""``sadrec describe`` and ``sadrec fit``: from a file to a model."""

import shutil
from pathlib import Path
from typing import Any

import click

from sadrec._output import json_option, print_json, print_table

file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))

_COLUMNS = ("user", "item", "rating", "timestamp", "winner", "loser", "weight")


def columns_option(command: Any) -> Any:
    """Add options that name the columns of the file."""
    for name in reversed(_COLUMNS):
        command = click.option(f"--{name}", metavar="COLUMN", help=f"The column of the {name}s.")(command)
    return command


def read_data(file: Path, kind: str, columns: dict[str, str | None]) -> Any:
    """Read interactions, or comparisons where the file has a column of winners."""
    from sadrec import Comparisons, Interactions

    given = {name: column for name, column in columns.items() if column is not None}
    if kind == "auto":
        kind = "comparisons" if "winner" in given or "winner" in header(file) else "interactions"
    reader: Any = Comparisons.read if kind == "comparisons" else Interactions.read
    names = ("user", "winner", "loser", "weight") if kind == "comparisons" else ("user", "item", "rating", "timestamp")
    if odd := sorted(set(given) - set(names)):
        raise click.UsageError(f"--{odd[0]} does not go with {kind}; their columns are {', '.join(names)}")
    return reader(file, **given)


def header(file: Path) -> list[str]:
    """Return the names of the columns, lower case; what cannot be read is left to the reader to complain about."""
    import polars as pl

    try:
        if file.suffix == ".parquet":
            names = pl.read_parquet_schema(file)
        else:
            names = pl.read_csv(file, n_rows=0, separator="\t" if ".tsv" in file.suffixes else ",").schema
    except (pl.exceptions.PolarsError, OSError):
        return []
    return [name.strip().lower() for name in names]


kind_option = click.option(
    "--kind",
    type=click.Choice(["auto", "interactions", "comparisons"]),
    default="auto",
    show_default=True,
    help="What the file holds; auto looks for a column of winners.",
)


@click.command("describe")
@file_argument
@kind_option
@columns_option
@json_option
def describe_command(file: Path, kind: str, as_json: bool, **columns: str | None) -> None:
    """Show what is in FILE: users, items, ratings, sparsity, how much each user did."""
    data = read_data(file, kind, columns)
    if as_json:
        print_json(data.describe().as_dict())
    else:
        click.echo(str(data.describe()))


@click.command("fit")
@file_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Where to write the model.")
@click.option("--model", type=click.Choice(["sad", "bpr"]), default="sad", show_default=True)
@click.option("--factors", type=int, default=64, show_default=True, help="Length of the vectors.")
@click.option("--iterations", type=int, help="Epochs.")
@click.option("--learning-rate", type=float)
@click.option("--regularization", type=float, help="l2 on users and items.")
@click.option("--rival-regularization", type=float, help="l1 that holds rival factors to 1.")
@click.option("--negative-candidates", type=int, help="Train against the hardest of so many drawn rivals.")
@click.option("--order-share", type=float, default=0.0, help="Share of pairs from the order inside ratings.")
@click.option("--bias/--no-bias", default=None, help="An item bias.")
@click.option("--adaptive", is_flag=True, help="A second phase with a weight per rival factor.")
@click.option("--schedule", type=click.Choice(["linear", "constant"]), default="linear", show_default=True)
@click.option("--blocks", type=int, help="Item blocks of the schedule.")
@click.option("--threads", "num_threads", type=int, default=0, help="0 means all cores.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@click.option("--validation", type=float, metavar="SHARE", help="Hold out this share and keep the best epoch.")
@click.option("--patience", type=int, help="Stop when the held-out figure has not risen for so many epochs.")
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to resume from; by default OUTPUT.checkpoint, removed when the model is written.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@kind_option
@columns_option
@json_option
def fit_command(
    file: Path,
    output: Path,
    model: str,
    validation: float | None,
    patience: int | None,
    checkpoint: Path | None,
    quiet: bool,
    kind: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn from FILE and write the model to OUTPUT.

    FILE holds interactions (user, item[, rating][, timestamp]) or comparisons (user, winner, loser); csv, tsv, dat or
    parquet. Interrupted with Ctrl-C or killed, the same command goes on where it was.
    """
    from sadrec import BPR, SAD

    columns = {name: options.pop(name) for name in _COLUMNS}
    if model == "bpr":
        for name, unset in (("rival_regularization", None), ("adaptive", False)):
            if options.pop(name) != unset:
                raise click.UsageError(f"--{name.replace('_', '-')} is for SAD: BPR has no rival factors")
    if output.is_dir():
        raise click.UsageError(f"{output} is a folder: name the file to write")
    data = read_data(file, kind, columns)
    held_out = None
    if validation is not None:
        data, held_out = data.split(test=validation, seed=options["random_state"])
    estimator = (SAD if model == "sad" else BPR)(**options)
    folder = checkpoint or output.with_name(f"{output.name}.checkpoint")
    try:
        estimator.fit(
            data,
            show_progress=not quiet,
            validation=held_out,
            patience=patience,
            checkpoint=folder,
            checkpoint_seconds=0 if checkpoint else 5,
        )
    except KeyboardInterrupt:
        click.echo(f"Interrupted; what was computed is in {folder}. Run the same command again to go on.", err=True)
        raise SystemExit(130) from None
    estimator.save(output)
    if checkpoint is None:
        shutil.rmtree(folder, ignore_errors=True)
    last = estimator.history[-1] if estimator.history else {}
    if as_json:
        print_json({"model": str(output), "settings": estimator.get_params(), "figures": last})
        return
    click.echo(f"{type(estimator).__name__} with {estimator.factors} factors written to {output}")
    shown = ("log_likelihood", "validation_log_likelihood", "validation_accuracy", "sparsity", "updates_per_second")
    print_table(("figure", "last epoch"), [(name, last[name]) for name in shown if name in last])
