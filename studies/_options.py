"""Options and data sets that several studies share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sadrec import Interactions

Command = TypeVar("Command", bound=Callable[..., Any])

MOVIELENS = ("movielens-1m", "movielens-100k")


data_option = click.option(
    "--data",
    "data_folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="SADREC_DATA",
    show_envvar=True,
    help="Folder that holds the data sets, one folder each. Without it MovieLens is fetched, and nothing else.",
)


class Study(click.Command):
    """A command whose user errors are one line, as those of ``sadrec`` are; SADREC_DEBUG=1 shows the traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the study."""
        try:
            return super().invoke(ctx)
        except (ValueError, TypeError, OSError, ImportError) as error:
            if os.environ.get("SADREC_DEBUG"):
                raise
            raise click.ClickException(" ".join(str(error).split()) or type(error).__name__) from error


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
