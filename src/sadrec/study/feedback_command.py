"""``sadrec study comparisons | order | top-n | defaults``: what is learnt from which feedback, measured."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sadrec import Interactions
from sadrec._output import resumable

Command = TypeVar("Command", bound=Callable[..., Any])

MOVIELENS = ("movielens-1m", "movielens-100k")
TRAINING = (*MOVIELENS, "food-com-loo00")
# Trials of each model: a fit to the smaller data takes a tenth of the time.
TRIALS = {"movielens-1m": 12, "movielens-100k": 30}


data_option = click.option(
    "--data",
    "data_folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="SADREC_DATA",
    show_envvar=True,
    help="Folder that holds the data sets, one folder each. Without it MovieLens is fetched, and nothing else.",
)


def output_option(name: str) -> Callable[[Command], Command]:
    """Return the option that names the folder of results."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(name),
        show_default=True,
        help="Folder for tables, figures and the report.",
    )


quick_option = click.option("--quick", is_flag=True, help="Small and rough: to see that it works.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress bar.")
threads_option = click.option("--num-threads", type=click.IntRange(min=0), default=0, help="0 means all cores.")


def load_ratings(name: str, data_folder: Path | None) -> Interactions:
    """Load a data set from the folder of data sets, or from where its makers publish it."""
    from sadrec.data import load

    folder = None if data_folder is None else data_folder / name
    return load(name, folder if folder is not None and folder.is_dir() else None)


def load_training(name: str, data_folder: Path | None) -> Interactions:
    """Load what may be trained on: Food.com's published training part, or the first 80/20 split of MovieLens."""
    if name in MOVIELENS:
        return load_ratings(name, data_folder).split(test=0.2, seed=0)[0]
    from sadrec.data import load_split

    if data_folder is None or not (data_folder / name).is_dir():
        raise click.UsageError(f"{name} cannot be fetched: put it into a folder and name that folder, --data FOLDER")
    return load_split(data_folder / name)[0]


@click.command("comparisons")
@data_option
@output_option("comparisons-study")
@click.option("--name", "names", multiple=True, help="Only this data set; may be given several times.")
@click.option("--splits", type=click.IntRange(min=1), help="Random splits.  [default: 5]")
@quick_option
@quiet_option
def comparisons_command(
    data_folder: Path | None, output: Path, names: tuple[str, ...], splits: int | None, quick: bool, quiet: bool
) -> None:
    """Predict held-out comparisons: SAD, T = 1 and Bradley-Terry.

    With and without knowing the judges. Interrupted with Ctrl-C or killed, the same command goes on where it was.
    """
    from sadrec.study.comparisons import DATA, comparisons_study

    if data_folder is None:
        raise click.UsageError("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    chosen = names or (("llmfao",) if quick else tuple(DATA))
    with resumable(output):
        study = comparisons_study(
            output, data_folder, names=chosen, splits=splits or (1 if quick else 5), show_progress=not quiet
        )
    click.echo(study.report.read_text())
    click.echo(f"Report: {study.report}")


@click.command("order")
@data_option
@output_option("order-study")
@click.option("--splits", type=click.IntRange(min=1), help="Splits for the chosen model.  [default: 3]")
@quick_option
@threads_option
@quiet_option
def order_command(
    data_folder: Path | None, output: Path, splits: int | None, quick: bool, num_threads: int, quiet: bool
) -> None:
    """Learn the order inside ratings: what it gains and what it costs.

    MovieLens 1M (100K when quick), one item of each user left out, a curve over the share of ordered pairs. Interrupted
    with Ctrl-C or killed, the same command goes on where it was.
    """
    from sadrec.study.order import CANDIDATES, SETTINGS, SHARES, order_study

    data = load_ratings(MOVIELENS[1] if quick else MOVIELENS[0], data_folder)
    with resumable(output):
        study = order_study(
            output,
            data,
            shares=(0.0, 0.4) if quick else SHARES,
            candidates=CANDIDATES[:2] if quick else CANDIDATES,
            settings={**SETTINGS, "factors": 16, "iterations": 10} if quick else SETTINGS,
            splits=splits or (1 if quick else 3),
            num_threads=num_threads,
            show_progress=not quiet,
        )
    click.echo(study.report.read_text())
    click.echo(f"Report: {study.report}")


@click.command("top-n")
@data_option
@output_option("top-n-study")
@click.option("--name", "names", multiple=True, type=click.Choice(MOVIELENS), help="Only this data set.")
@click.option("--model", "models", multiple=True, help="Only this model; may be given several times.")
@click.option(
    "--trials", type=click.IntRange(min=1), help="Settings each model tries.  [default: 12 on 1M, 30 on 100K]"
)
@click.option("--seeds", type=click.IntRange(min=1), help="Random splits.  [default: 3]")
@quick_option
@threads_option
@quiet_option
def top_n_command(
    data_folder: Path | None,
    output: Path,
    names: tuple[str, ...],
    models: tuple[str, ...],
    trials: int | None,
    seeds: int | None,
    quick: bool,
    num_threads: int,
    quiet: bool,
) -> None:
    """Compare the best N of the whole catalogue with EASE, ALS and others.

    All models are tuned with as many trials on the same validation split. Interrupted with Ctrl-C or killed, the same
    command goes on where it was.
    """
    from sadrec.study.top_n import TITLES, top_n_study

    for name in names or (MOVIELENS[1:] if quick else MOVIELENS):
        data = load_ratings(name, data_folder)
        with resumable(output):
            study = top_n_study(
                output,
                data,
                name,
                models=models or tuple(TITLES),
                trials=trials or (2 if quick else TRIALS[name]),
                seeds=seeds or (1 if quick else 3),
                num_threads=num_threads,
                show_progress=not quiet,
            )
        click.echo(study.report.read_text())
        click.echo(f"Report: {study.report}")


@click.command("defaults")
@data_option
@output_option("defaults-study")
@click.option("--name", "names", multiple=True, type=click.Choice(TRAINING), help="Only this data set.")
@quick_option
@threads_option
@quiet_option
def defaults_command(
    data_folder: Path | None, output: Path, names: tuple[str, ...], quick: bool, num_threads: int, quiet: bool
) -> None:
    """Compare the defaults of SAD with alternatives, on validation data.

    Interrupted with Ctrl-C or killed, the same command goes on where it was.
    """
    from sadrec.study.defaults import CANDIDATES, defaults_study

    data = {name: load_training(name, data_folder) for name in names or (TRAINING[1:2] if quick else TRAINING)}
    with resumable(output):
        study = defaults_study(
            output,
            data,
            candidates={name: CANDIDATES[name] for name in list(CANDIDATES)[: 2 if quick else None]},
            num_threads=num_threads,
            show_progress=not quiet,
        )
    click.echo(study.report.read_text())
    click.echo(f"Report: {study.report}")
