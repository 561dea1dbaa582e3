"""``python -m studies.baselines``: see, install and remove the environments of other people's models."""

from functools import partial

import click

from studies.baselines.catalogue import BASELINES
from studies.baselines.environments import ENVIRONMENTS, Environment, environment_of, install, installed, remove
from studies.baselines.errors import BaselineError


@click.group()
def baselines() -> None:
    """See, install and remove the models of others that sadrec is compared with."""


@baselines.command("list")
def list_baselines() -> None:
    """Show every baseline: where it comes from, what it learns from, and whether it is installed."""
    for spec in BASELINES.values():
        environment = environment_of(spec.name)
        click.echo(f"{spec.name:<13} {spec.title:<15} {spec.library:<16} {_state(environment)}")
        click.echo(f"{'':<13} learns from {spec.trained_on()}")


def _state(environment: Environment | None) -> str:
    if environment is None:
        return "built in"
    if installed(environment) is not None:
        return f"installed ({environment.name})"
    return f"not installed ({environment.name}, about {environment.megabytes} MB)"


@baselines.command("install")
@click.argument("names", nargs=-1, required=True)
def install_baselines(names: tuple[str, ...]) -> None:
    """Install the baselines NAMES (or "all"), each group of them in an environment of its own.

    What is there and up to date is left as it is.
    """
    for environment in _environments(names):
        try:
            install(environment.name, partial(_show, environment.name))
        except BaselineError as error:
            raise click.ClickException(str(error)) from None
        click.echo(f"{environment.name}: {', '.join(environment.baselines)} can run")


def _show(name: str, step: str) -> None:
    click.echo(f"{name}: {step}", err=True)


@baselines.command("remove")
@click.argument("names", nargs=-1, required=True)
def remove_baselines(names: tuple[str, ...]) -> None:
    """Delete the environments of the baselines NAMES (or "all"), and with them those of their group."""
    for environment in _environments(names):
        done = "removed" if remove(environment.name) else "was not installed"
        click.echo(f"{environment.name} ({', '.join(environment.baselines)}) {done}")


def _environments(names: tuple[str, ...]) -> list[Environment]:
    """Find the environments of some baselines, each once, in the order they were named."""
    try:
        wanted = [environment_of(name) for name in (ENVIRONMENTS if "all" in names else names)]
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return list(dict.fromkeys(environment for environment in wanted if environment is not None))


if __name__ == "__main__":
    baselines(prog_name="python -m studies.baselines")
