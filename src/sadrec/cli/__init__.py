"""The same verbs on the command line: one command per verb, each loaded when it is asked for."""

import importlib
import os
import warnings
from typing import Any, cast

import click

import sadrec

# The module of each command; a command costs its imports only when it is run.
COMMANDS = {
    "demo": "demo",
    "describe": "fit",
    "fit": "fit",
    "tune": "tune",
    "recommend": "ask",
    "prefer": "ask",
    "cycles": "ask",
    "explain": "ask",
    "similar": "ask",
    "posterior": "posterior",
    "evaluate": "evaluate",
    "compare": "evaluate",
    "serve": "serve",
    "key": "serve",
}


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

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the user can mend is said in one line, without a traceback."""
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **rest: Any) -> None:
            if issubclass(category, UserWarning):
                click.echo(f"Warning: {message}", err=True)
            else:
                usual(message, category, *where, **rest)

        try:
            with warnings.catch_warnings():
                warnings.showwarning = show
                return super().invoke(ctx)
        except (ValueError, TypeError, OSError, ImportError) as error:
            if os.environ.get("SADREC_DEBUG"):
                raise
            raise click.ClickException(" ".join(str(error).split()) or type(error).__name__) from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(130)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(sadrec.__version__, prog_name="sadrec")
def main() -> None:
    """Recommendations when taste does not run in a straight line.

    Learn from a file of clicks, ratings or comparisons, then ask: what to show, what is preferred to what, where
    taste runs in cycles.

    Set SADREC_DEBUG=1 to see the traceback of an error.
    """
