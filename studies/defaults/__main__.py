"""``python -m studies.defaults``: compare the defaults of SAD with alternatives, on validation data."""

from pathlib import Path

import click

from sadrec import Interactions
from studies._options import (
    MOVIELENS,
    Study,
    data_option,
    load_ratings,
    output_option,
    quick_option,
    quiet_option,
    threads_option,
)
from studies._tools import resumable

TRAINING = (*MOVIELENS, "food-com-loo00")


def load_training(name: str, data_folder: Path | None) -> Interactions:
    """Load what may be trained on: Food.com's published training part, or the first 80/20 split of MovieLens."""
    if name in MOVIELENS:
        return load_ratings(name, data_folder).split(test=0.2, seed=0)[0]
    from sadrec.data import load_split

    if data_folder is None or not (data_folder / name).is_dir():
        raise click.UsageError(f"{name} cannot be fetched: put it into a folder and name that folder, --data FOLDER")
    return load_split(data_folder / name)[0]


@click.command("defaults", cls=Study)
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

    Interrupted with Ctrl-C or killed, the same command continues.
    """
    from studies.defaults.study import CANDIDATES, defaults_study

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


if __name__ == "__main__":
    defaults_command(prog_name="python -m studies.defaults")
