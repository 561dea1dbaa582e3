"""``sadrec describe`` and ``sadrec fit``: from a file to a model."""

import json
import warnings
from pathlib import Path
from typing import Any

import click

from sadrec._core.words import one_line
from sadrec.cli import options
from sadrec.cli.output import (
    check_place_of_model,
    discarded_when_done,
    overwrite_option,
    print_json,
    print_table,
    resumable,
)
from sadrec.models import TrainingSettings


@click.command("describe")
@options.file_argument
@options.reading_options
@options.json_option
def describe_command(file: Path, reading: options.Reading, as_json: bool) -> None:
    """Show users, items, ratings and sparsity of FILE."""
    data, columns = reading.read_with_columns(file)
    if as_json:
        print_json({**data.describe().as_dict(), "columns": columns})
    else:
        click.echo(str(data.describe()))
        click.echo(f"(columns read as {', '.join(f'{role}: {one_line(name)}' for role, name in columns.items())})")


@click.command("fit")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True,
              help="Where to write the model. An existing model is replaced after the fit succeeds.")  # fmt: skip
@overwrite_option
@click.option("--model", type=click.Choice(["sad", "bpr"]), help="Which model.  [default: sad]")
@click.option("--settings", "settings_file", type=options.a_file, help="JSON file, such as `sadrec tune` writes.")
@options.settings_options(TrainingSettings)
@click.option(
    "--dislikes", metavar="NUMBER|FILE", help="Ratings below this number, or a file of disliked interactions."
)
@options.features_options
@click.option("--validation", type=options.a_share, help="Hold out this share and keep the best epoch.")
@click.option("--patience", type=int, help="Stop when the held-out figure has not risen for this number of epochs.")
@click.option("--checkpoint", type=options.a_folder,
              help="Folder to resume from; by default OUTPUT.checkpoint, removed after the fit.")  # fmt: skip
@options.engine_options
@options.quiet_option
@options.reading_options
@options.json_option
def fit_command(
    files: tuple[Path, ...],
    output: Path,
    overwrite: bool,
    model: str | None,
    settings_file: Path | None,
    settings: dict[str, Any],
    dislikes: str | None,
    item_features: Path | None,
    user_features: Path | None,
    tags: tuple[str, ...],
    validation: float | None,
    patience: int | None,
    checkpoint: Path | None,
    engine: Any,
    quiet: bool,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Learn from FILE and write the model to OUTPUT.

    FILE holds interactions (user, item[, rating][, timestamp]) or comparisons (user, winner, loser); csv, tsv, dat,
    JSON lines or parquet. Several FILEs, or a folder, are Parquet with interactions; with --engine the workers read
    Parquet themselves. Interrupted with Ctrl-C or killed, the same command continues where it stopped.
    """
    from dataclasses import replace

    from sadrec import Interactions
    from sadrec.data import NothingLearnt
    from sadrec.models import checkpoints_in

    file, elsewhere = files[0], engine is not None
    estimator = new_model(model, settings, settings_file)
    check_place_of_model(output, overwrite)
    here = {"dislikes": dislikes, "validation": validation, "item-features": item_features}
    here["user-features"] = user_features
    if elsewhere and (refused := [name for name, value in here.items() if value is not None]):
        raise click.UsageError(f"--{refused[0]} does not go with --engine: it needs all data in one process")
    data, weights = reading.read_to_learn(files, elsewhere)
    if elsewhere:
        engine = replace(engine, output=output)
    holds = "interactions" if elsewhere or isinstance(data, Interactions) else "comparisons"
    tuned = None if settings_file is None else settings_in(settings_file).get("kind", holds)
    if tuned not in (None, holds):
        raise click.UsageError(
            f"{settings_file} was tuned on {tuned}, and {file} holds {holds}: tune on such data first"
        )
    extra: dict[str, Any] = {}
    if isinstance(data, Interactions):
        extra["dislikes"] = read_dislikes(dislikes, reading)
    elif not elsewhere and dislikes is not None:
        raise click.UsageError("--dislikes goes with interactions")
    tables = {"item": item_features, "user": user_features}
    if not elsewhere:
        extra |= options.read_features(tables, {"item": data.items, "user": data.users}, tags)
    held_out = None
    if validation is not None:
        share = {"test": validation, "seed": estimator.random_state}
        data, held_out = data.split(**share)
        weights = None if weights is None else weights.split(**share)[0]
    if weights is not None:
        extra["weights"] = weights.matrix.data
    folder = checkpoint or output.with_name(f"{output.name}.checkpoint")
    if not quiet and (there := checkpoints_in(folder)):
        click.echo(f"Going on from {there[0]}.", err=True)
    speed: dict[str, float] = {}

    def note(epoch: int, figures: dict[str, float], model: Any) -> None:
        if (updates := figures.get("updates_per_second")) is not None:
            speed["updates_per_second"] = updates

    try:
        with (
            discarded_when_done(None if checkpoint else folder),
            resumable(folder),
            warnings.catch_warnings(action="error", category=NothingLearnt),
        ):
            estimator.fit(
                data,
                callbacks=[note],
                show_progress=not quiet,
                validation=held_out,
                patience=patience,
                checkpoint=folder,
                checkpoint_seconds=0 if checkpoint else 5,
                engine=engine,
                **extra,
            )
            if not elsewhere:
                estimator.save(output)
    except NothingLearnt as error:
        raise ValueError(
            f"{file}: {error}; no model is written: add users, or items that some users did not touch"
        ) from None
    epoch, figures = kept_epoch(estimator.state.history, estimator.settings.solver)
    figures = {**figures, **speed}
    if as_json:
        used = estimator.settings.as_dict() if estimator.settings is not None else None
        print_json({"model": str(output), "settings": used, "epoch": epoch, "figures": figures})
        return
    count = estimator.user_factors.shape[1]
    click.echo(f"{type(estimator).__name__} with {count} factor{'s' * (count != 1)} written to {output}")
    for what in ("item", "user"):
        side = getattr(estimator.state.features, what, None)
        if side is not None:
            columns, new = len(side.encoder.columns), int(side.cold.sum())
            click.echo(f"{columns:,} columns of features of {what}s; {new:,} {what}s have no history")
    shown = ("log_likelihood", "validation_log_likelihood", "validation_accuracy", "sparsity", "updates_per_second")
    rows = [({"sparsity": "share of T at 1"}.get(name, name), figures[name]) for name in shown if name in figures]
    print_table(("figure", f"epoch {epoch} of {len(estimator.state.history)}"), rows)


def new_model(name: str | None, settings: dict[str, Any], settings_file: Path | None = None) -> Any:
    """Make an unfitted model; settings on the command line override those in a file."""
    from sadrec import BPR, SAD
    from sadrec._core.settings import checked, declared, opened
    from sadrec.posterior import GibbsSAD

    kinds: dict[str, Any] = {"gibbssad": GibbsSAD} if name == "gibbs" else {"sad": SAD, "bpr": BPR}
    stored: Any = {}
    chosen = name if name in kinds else None
    if settings_file is not None:
        content = settings_in(settings_file)
        stored, written = content.get("settings", content), content.get("model")
        if not isinstance(stored, dict) or written not in (None, *kinds):
            classes = " or ".join(kind.__name__ for kind in kinds.values())
            raise ValueError(f"{settings_file} does not hold the settings of {classes}, but of {written!r}")
        chosen = chosen or written
    kind = kinds[chosen or next(iter(kinds))]
    settable = {**declared(kind), **opened(kind)}
    if unknown := [name for name in settings if name not in settable]:
        names = ", ".join(map(options.spelled, declared(kind)))
        why = " (BPR has no rival factors)" if kind is BPR and unknown[0] in declared(SAD) else ""
        raise click.UsageError(
            f"{options.spelled(unknown[0])} is no setting of {kind.__name__}{why}, which has {names}"
        )
    model = kind().set_params(**{**stored, **settings})
    checked(model)
    return model


def settings_in(file: Path) -> dict[str, Any]:
    """Return the settings in a JSON file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} does not hold settings as JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError(f'{file} does not hold settings as JSON: it must be a mapping, as in {{"factors": 16}}')
    return content


def read_dislikes(dislikes: str | None, reading: options.Reading) -> Any:
    """Return dislikes as ``fit`` takes them: the number that their ratings are below, or interactions from a file."""
    if dislikes is None:
        return None
    try:
        return float(dislikes)
    except ValueError:
        pass
    if not Path(dislikes).is_file():
        raise click.UsageError(f"--dislikes {dislikes} is neither a number nor a file")
    return reading.interactions(Path(dislikes))


def kept_epoch(history: list[dict[str, float]], solver: str = "sgd") -> tuple[int, dict[str, float]]:
    """Return the epoch of the model (with validation the best, else the last), counted from 1, and its figures."""
    if not history:
        return 0, {}
    held_out = [figures.get("validation_log_likelihood") for figures in history]
    scores = [score for score in held_out if score is not None and solver == "sgd"]
    epoch = held_out.index(max(scores)) + 1 if scores else len(history)
    return epoch, history[epoch - 1]
