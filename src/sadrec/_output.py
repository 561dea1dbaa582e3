"""What commands print: a table for people, JSON for programs, and how to go on after Ctrl-C."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under a header, numbers to the right."""
    texts = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(header), *texts]) for column in range(len(header))]
    right = [all(isinstance(row[column], (int, float, np.number)) for row in rows) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    click.echo(line(list(header)))
    click.echo("  ".join("-" * width for width in widths))
    for cells in texts:
        click.echo(line(cells))


@contextmanager
def resumable(output: Path | None) -> Iterator[None]:
    """Turn Ctrl-C into a message that says how to go on; without a folder of finished work there is no way."""
    try:
        yield
    except KeyboardInterrupt:
        how = "nothing was kept: give a folder with -o to be able to go on"
        if output is not None:
            how = f"what was computed is in {output}. Run the same command again to go on"
        click.echo(f"Interrupted; {how}.", err=True)
        raise SystemExit(130) from None
