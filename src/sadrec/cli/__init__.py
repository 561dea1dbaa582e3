"""The same verbs on the command line: one command per verb, each loaded when it is used."""

import importlib
import os
import re
import sys
import warnings
from difflib import get_close_matches
from typing import Any, cast

import click

import sadrec
from sadrec._core.words import one_line

# The module of each command; a command costs its imports only when it is run.
COMMANDS = {
    "demo": "demo",
    "describe": "fit",
    "split": "split",
    "fit": "fit",
    "tune": "tune",
    "recommend": "ask",
    "prefer": "ask",
    "leaderboard": "leaderboard",
    "cycles": "ask",
    "explain": "ask",
    "similar": "ask",
    "posterior": "posterior",
    "evaluate": "evaluate",
    "compare": "evaluate",
    "export": "export",
    "serve": "serve",
    "key": "serve",
}


_CALL = re.compile(r"\w+\.(?:read|from_frame)\(\w+, ([^()]*)\)")
"""A call that names columns: the command line has an option for each."""


class Verbs(click.Group):
    """A group whose commands are imported on demand and whose user errors are one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command."""
        if name not in COMMANDS:
            return None
        return cast(click.Command, getattr(importlib.import_module(f"sadrec.cli.{COMMANDS[name]}"), f"{name}_command"))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest one for a misspelt name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if not (near := get_close_matches(args[0], COMMANDS, 1)):
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; show an error that the user can mend in one line, without a traceback."""
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **rest: Any) -> None:
            if issubclass(category, UserWarning):
                click.echo(f"Warning: {one_line(message)}", err=True)
            else:
                usual(message, category, *where, **rest)

        try:
            with warnings.catch_warnings():
                warnings.showwarning = show
                warnings.simplefilter("default", UserWarning)  # also with PYTHONWARNINGS=error
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader of a pipe, such as head, has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
            ctx.exit(0)
        except (click.ClickException, click.Abort, click.exceptions.Exit, SystemExit):
            raise
        except BaseException as error:  # a panic of compiled code is no Exception
            if os.environ.get("SADREC_DEBUG"):
                raise
            raise click.ClickException(message_of(error)) from error


def _as_options(call: re.Match[str]) -> str:
    return re.sub(r"(\w+)=(\w+),?", lambda given: f"--{given[1].replace('_', '-')} {given[2]}", call[1])


def message_of(error: BaseException) -> str:
    """Return the message of an error in one line; with its class where no check has foreseen it."""
    text = one_line(_CALL.sub(_as_options, " ".join(str(error).split())))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else one_line(f"{error.filename}: {error.strerror}")
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {text or 'this process may not take what it needs'}"
    if isinstance(error, ValueError | TypeError | OSError | ImportError):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text} (an unexpected error: please report what SADREC_DEBUG=1 prints)"


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(sadrec.__version__, prog_name="sadrec")
def main() -> None:
    """Recommendations when taste does not run in a straight line.

    Learn from a file of clicks, ratings or comparisons, then ask: what to show, what is preferred to what, where
    taste runs in cycles.

    Set SADREC_DEBUG=1 to see the traceback of an error.
    """
