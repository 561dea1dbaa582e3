"""``sadrec describe`` and ``sadrec fit``: from a file to a model."""

import shutil
from pathlib import Path
from typing import Any

import click

from sadrec._output import json_option, print_json, print_table
from sadrec.cli.reading import READING, file_argument, read_data, reading_options


@click.command("describe")
@file_argument
@reading_options
@json_option
def describe_command(file: Path, kind: str, as_json: bool, **reading: Any) -> None:
    """Show what is in FILE: users, items, ratings, sparsity, how much each user did."""
    data = read_data(file, kind, reading)
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
@click.option("--user-balance", type=float, default=0.0, help="1: users count alike; 0: by what they did.")
@click.option("--bias/--no-bias", default=None, help="An item bias.")
@click.option("--adaptive", is_flag=True, help="A second phase with a weight per rival factor.")
@click.option("--schedule", type=click.Choice(["linear", "constant"]), default="linear", show_default=True)
@click.option("--blocks", type=int, help="Item blocks of the schedule.")
@click.option("--threads", "num_threads", type=click.IntRange(min=0), default=0, help="0 means all cores.")
@click.option("--seed", "random_state", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--validation",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Hold out this share and keep the best epoch.",
)
@click.option("--patience", type=int, help="Stop when the held-out figure has not risen for so many epochs.")
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to resume from; by default OUTPUT.checkpoint, removed when the model is written.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@reading_options
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
    from sadrec.models import DivergedError
    from sadrec.training.checkpoint import checkpoints_in

    reading = {name: options.pop(name) for name in READING}
    if model == "bpr":
        for name, unset in (("rival_regularization", None), ("adaptive", False)):
            if options.pop(name) != unset:
                raise click.UsageError(f"--{name.replace('_', '-')} is for SAD: BPR has no rival factors")
    if output.is_dir():
        raise click.UsageError(f"{output} is a folder: name the file to write")
    data = read_data(file, kind, reading)
    held_out = None
    if validation is not None:
        data, held_out = data.split(test=validation, seed=options["random_state"])
    estimator = (SAD if model == "sad" else BPR)(**options)
    folder = checkpoint or output.with_name(f"{output.name}.checkpoint")
    if not quiet and (there := checkpoints_in(folder)):
        click.echo(f"Going on from {there[0]}.", err=True)
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
        kept = f"what was computed is in {folder}" if checkpoints_in(folder) else "nothing was computed yet"
        click.echo(f"Interrupted; {kept}. Run the same command again to go on.", err=True)
        raise SystemExit(130) from None
    except DivergedError:
        if checkpoint is None:  # it would stand in the way of other settings
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if checkpoint is None and not checkpoints_in(folder):
            shutil.rmtree(folder, ignore_errors=True)
    estimator.save(output)
    if checkpoint is None:
        shutil.rmtree(folder, ignore_errors=True)
    epoch, figures = kept_epoch(estimator.history)
    if as_json:
        settings = estimator.settings.as_dict() if estimator.settings is not None else None
        print_json({"model": str(output), "settings": settings, "epoch": epoch, "figures": figures})
        return
    click.echo(f"{type(estimator).__name__} with {estimator.factors} factors written to {output}")
    shown = ("log_likelihood", "validation_log_likelihood", "validation_accuracy", "sparsity", "updates_per_second")
    rows = [(name, figures[name]) for name in shown if name in figures]
    print_table(("figure", f"epoch {epoch} of {len(estimator.history)}"), rows)


def kept_epoch(history: list[dict[str, float]]) -> tuple[int, dict[str, float]]:
    """Return which epoch the model is of, counted from 1, and its figures: with a validation set the best one."""
    if not history:
        return 0, {}
    held_out = [figures.get("validation_log_likelihood") for figures in history]
    scores = [score for score in held_out if score is not None]
    epoch = held_out.index(max(scores)) + 1 if scores else len(history)
    return epoch, history[epoch - 1]
