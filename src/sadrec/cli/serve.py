"""``sadrec serve`` and ``sadrec key``: the same verbs over HTTP."""

from pathlib import Path
from typing import Any

import click

from sadrec.cli.options import a_file, an_output, model_argument


@click.command("serve")
@model_argument
@click.option("--posterior", type=a_file, help="A posterior of the same data: adds intervals, and what to ask next.")
@click.option(
    "--items", "--titles", type=a_file, help="Table of the items' titles and pictures: columns item, title, picture."
)
@click.option("--log", type=an_output, help="File to append people's answers to, for the next fit.")
@click.option("--log-megabytes", type=click.IntRange(min=0), default=64, help="Rotate the log at this size; 0: never.")
@click.option(
    "--keys", type=a_file, help="File of hashed API keys, which `sadrec key` makes; without it no key is needed."
)
@click.option(
    "--cors", multiple=True, metavar="ORIGIN", help="A web origin whose pages may call the service; can be repeated."
)
@click.option("--workers", type=click.IntRange(min=1, max=256), default=1, help="Processes that answer.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(min=0, max=65535), default=8000, help="Port to listen on; 0: any free one.")
@click.option(
    "--reload-seconds",
    type=click.FloatRange(min=0),
    default=2.0,
    help="How often to look for a changed model; 0: never.",
)
@click.option(
    "--stall-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    help="Close a connection that takes no byte of its answer for this long.",
)
@click.option(
    "--connections-per-address",
    type=click.IntRange(min=0),
    default=0,
    help="Connections of one address to a worker, at most; 0: any number, as behind a proxy.",
)
@click.option("--mmap", is_flag=True, help="Leave the model in its file, shared by all workers. Replace that file as "
                                           "a whole, as `sadrec fit` does; never write into it.")  # fmt: skip
def serve_command(model: Path, host: str, port: int, workers: int, **options: Any) -> None:
    """Serve MODEL over HTTP, with the explorer page.

    When the file of the model changes, the new one answers without a lost request. SIGHUP replaces the workers, SIGTERM
    ends them; neither loses a request.
    """
    raise SystemExit(serve(model, host, port, workers, **options))


def check_packages() -> None:
    """Raise an error that says what to install if a package of the service is missing."""
    try:
        import fastapi  # noqa: F401
        import orjson  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{error}: `sadrec serve` needs more packages: pip install 'sadrec[serve]'") from None


def serve(model: Path, host: str, port: int, workers: int, **options: Any) -> int:
    """Run the service until it is stopped; return the exit code."""
    from sadrec._core.files import checksum_of

    check_packages()
    from sadrec.serving import ServeSettings, Supervisor, log_without_waiting

    checksum_of(model)
    paths = {name: None if value is None else str(value) for name, value in options.items() if isinstance(value, Path)}
    settings = ServeSettings(str(model), **{**options, **paths})
    if settings.keys is not None:
        from sadrec.serving import Keys

        Keys(settings.keys)
    elif host not in ("127.0.0.1", "localhost", "::1"):
        click.echo(
            f"Warning: anybody who reaches {host} can use the service: give --keys, or --host 127.0.0.1", err=True
        )
    log_without_waiting()

    click.echo(f"Loading {model}; after an installation, kernels are compiled first, for up to a minute.", err=True)

    def say(port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"Serving {model} at http://{shown}:{port}/ (interface: /docs). Ctrl-C ends it.")

    return Supervisor(settings, host, port, workers, say).run()


@click.command("key")
@click.argument("file", type=an_output)
@click.option("--name", required=True, help="Whose key it is, or what for.")
def key_command(file: Path, name: str) -> None:
    """Make an API key for `sadrec serve --keys FILE`.

    The key is shown once and stored nowhere; its hash is appended to FILE. To withdraw it, remove its line.
    """
    from sadrec.serving import new_key

    click.echo(new_key(file, name))
