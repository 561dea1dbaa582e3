"""Options and data sets that several studies share."""

import functools
import os
from collections.abc import Callable
from contextlib import nullcontext
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import click

from sadrec import Interactions
from studies._tools import resumable

Command = TypeVar("Command", bound=Callable[..., Any])

MOVIELENS = ("movielens-1m", "movielens-100k")


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


def study(name: str) -> Callable[[Command], Study]:
    """Make a function the command of a study; print the text, or the report in the file, that it returns.

    Of the options that studies share it has those that it takes. One with results (``output``) can be interrupted.
    """
    folder = click.Path(file_okay=False, path_type=Path)
    shared = {
        "data_folder": click.option(
            "--data",
            "data_folder",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            envvar="SADREC_DATA",
            show_envvar=True,
            help="Folder that holds the data sets, one folder each. Without it MovieLens is fetched, and nothing else.",
        ),
        "output": click.option(
            *("-o", "--output"),
            type=folder,
            default=Path(f"{name}-study"),
            show_default=True,
            help="Folder for tables, figures and the report.",
        ),
        "quick": click.option("--quick", is_flag=True, help="Small and rough: to see that it works."),
        "num_threads": click.option("--num-threads", type=click.IntRange(min=0), default=0, help="0 means all cores."),
        "quiet": click.option("--quiet", is_flag=True, help="No progress bar."),
    }

    def command(function: Command) -> Study:
        @functools.wraps(function)
        def run(**options: Any) -> None:
            with resumable(options["output"]) if "output" in options else nullcontext():
                report = function(**options)
            if isinstance(report, Path):
                click.echo(report.read_text())
                click.echo(f"Report: {report}")
            elif report is not None:
                click.echo(report)

        decorated: Any = run
        for option in reversed([shared[name] for name in signature(function).parameters if name in shared]):
            decorated = option(decorated)
        return click.command(name, cls=Study)(decorated)

    return command


def listed(context: Any, option: Any, text: str) -> list[str]:
    """Return the parts of a text with commas between them: the callback of an option."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def load_ratings(name: str, data_folder: Path | None) -> Interactions:
    """Load a data set from the folder of data sets, or from where its makers publish it."""
    from sadrec.data import load

    folder = None if data_folder is None else data_folder / name
    return load(name, folder if folder is not None and folder.is_dir() else None)
