"""Output of commands: tables for people, JSON for programs, and how to continue after Ctrl-C."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NoReturn

import click

from sadrec._core.words import one_line


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    from sadrec._core.files import plain

    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value == value else ""
    return one_line(value)


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under a header, numbers to the right, and nothing for NaN."""
    texts = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(header), *texts]) for column in range(len(header))]
    right = [all(isinstance(row[column], Real) for row in rows) for column in range(len(header))]
    for cells in (header, ["-" * width for width in widths], *texts):
        padded = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        )
        click.echo("  ".join(padded).rstrip())


overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an existing OUTPUT of other data or of another kind."
)


def check_replacing(paths: Sequence[Path], record: Path, about: dict[str, Any], overwrite: bool) -> None:
    """Raise if outputs exist, unless the JSON file ``record`` says that they were made from the same inputs."""
    there = next((path for path in paths if path.exists()), None)
    if there is None or overwrite:
        return
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        same = about.items() <= content.items()
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        same = False
    if not same:
        raise click.UsageError(
            f"{there} exists and holds results for other data or settings: choose another name, or replace it with "
            "--overwrite"
        )


def is_folder(output: str) -> bool:
    """Whether an output is a folder: an existing one, or a name that ends in a slash."""
    return output.endswith(("/", os.sep)) or Path(output).is_dir()


def saved_kind(path: Path) -> str | None:
    """Return "model" or "posterior" for a file that sadrec saved, by its content; None for any other file."""
    from sadrec._core.files import kind_of_sadrec_file

    if not path.is_file():
        return None
    with path.open("rb") as file:
        return kind_of_sadrec_file(file)


def check_place_of_model(path: Path, overwrite: bool = False, kind: Literal["model", "posterior"] = "model") -> None:
    """Raise if the output exists and is not a sadrec file of this kind: what is named by mistake would be lost."""
    if path.is_dir():
        raise click.UsageError(f"{path} is a folder: name the file to write")
    if path.is_file() and path.stat().st_size and not overwrite and saved_kind(path) != kind:
        raise click.UsageError(
            f"{path} exists but is not a sadrec {kind}: choose another name, or replace it with --overwrite"
        )


def check_place_of_table(path: Path, columns: Sequence[str]) -> None:
    """Raise if the output exists and is not a table with these columns."""
    import polars as pl

    if not path.is_file() or not path.stat().st_size:
        return
    there: Iterable[str] = ()
    with without_panics(), suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        there = pl.read_csv(path, n_rows=0).columns if path.suffix == ".csv" else pl.read_parquet_schema(path)
    if not set(columns) <= set(there):
        _refuse_to_replace(path, f"table of {', '.join(columns)}")


def check_place_of_picture(path: Path) -> None:
    """Raise if the output exists and is not a picture."""
    starts = b"\x89PNG", b"%PDF", b"%!PS", b"<svg", b"<?xml", b"\xff\xd8", b"RIFF", b"II*", b"MM"
    if (start := _start_of(path)) and not start.lstrip().startswith(starts):
        _refuse_to_replace(path, "picture")


def check_place_of_page(path: Path) -> None:
    """Raise if the output exists and is not a leaderboard in HTML or Markdown."""
    start = _start_of(path)
    is_ours = b"<title>Leaderboard of " in start if path.suffix == ".html" else start.startswith(b"| rank | item |")
    if start and not is_ours:
        _refuse_to_replace(path, "leaderboard")


def _start_of(path: Path) -> bytes:
    """Return the first bytes of a file; none where there is no file."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(4096)


def _refuse_to_replace(path: Path, kind: str) -> NoReturn:
    raise click.UsageError(f"{path} exists but is not a {kind}: choose another name, or remove it")


@contextmanager
def without_panics() -> Iterator[None]:
    """Suppress what compiled code prints about its panics: they are raised as errors, too."""
    usual = sys.stderr
    usual.flush()
    kept = None
    with suppress(OSError):  # there is no such stream, or it is no file
        same = usual.fileno() == 2
        kept = os.dup(2)
    if kept is None:
        yield
        return
    with os.fdopen(kept, "w") as shown, Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)
        sys.stderr = shown if same else usual
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            sys.stderr = usual


@contextmanager
def discarded_when_done(folder: Path | None) -> Iterator[None]:
    """Remove a folder of checkpoints when the work is done, or when nothing can go on from it."""
    from sadrec._core.record import discard
    from sadrec.data import NothingLearnt
    from sadrec.models import DivergedError, checkpoints_in

    try:
        yield
    except BaseException as error:  # after a divergence, other settings cannot go on
        if folder is not None and (isinstance(error, NothingLearnt | DivergedError) or not checkpoints_in(folder)):
            discard(folder)
        raise
    if folder is not None:
        discard(folder)


@contextmanager
def resumable(output: Path | None) -> Iterator[None]:
    """Turn Ctrl-C into a message that says how to continue, or, without a folder, that nothing was kept."""
    try:
        yield
    except KeyboardInterrupt:
        if output is None:
            how = "nothing was kept: give a folder with -o to be able to continue"
        elif not any(output.glob("[!.]*")):  # a lock is no result
            how = "nothing was computed yet. Run the same command again"
        else:
            how = f"what was computed is in {output}. Run the same command again to continue"
        click.echo(f"Interrupted; {how}.", err=True)
        raise SystemExit(130) from None
