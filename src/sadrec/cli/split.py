"""``sadrec split``: a training and a test file, for ``sadrec fit`` and ``sadrec evaluate``."""

from pathlib import Path

import click

from sadrec.cli.options import (
    Reading,
    a_share,
    an_output,
    file_argument,
    json_option,
    quiet_option,
    reading_options,
    seed_option,
)
from sadrec.cli.output import check_place_of_table, print_json


@click.command("split")
@file_argument
@click.option("--train", type=an_output, required=True, help="File to write the training part to: .csv or .parquet.")
@click.option("--test", type=an_output, required=True, help="File to write the test part to.")
@click.option("--share", type=a_share, default=0.2, help="Share of the rows in the test part.")
@click.option(
    "--by",
    type=click.Choice(["row", "pairing", "user", "time"]),
    default="row",
    help="What is held out. row: random rows; pairing: all rows of some pairs of items (comparisons); user: one row "
    "of every user, without --share (interactions); time: the latest rows (interactions).",
)
@seed_option
@quiet_option
@reading_options
@json_option
def split_command(
    file: Path, train: Path, test: Path, share: float, by: str, seed: int, quiet: bool, reading: Reading, as_json: bool
) -> None:
    """Split FILE into a training and a test file.

    Then: sadrec fit TRAIN -o m.sad, and sadrec evaluate m.sad --train TRAIN --test TEST.
    """
    from sadrec import Comparisons
    from sadrec._core.files import write_frame

    for path in (train, test):
        if path.suffix not in (".csv", ".parquet"):
            raise click.UsageError(f"{path} must end in .csv or .parquet")
    if len({file.resolve(), train.resolve(), test.resolve()}) < 3:
        raise click.UsageError(f"FILE, --train and --test must be three files: {file}, {train}, {test}")
    data = reading.read(file)
    stated = isinstance(data, Comparisons)
    if by not in (("row", "pairing") if stated else ("row", "user", "time")):
        raise click.UsageError(f"--by {by} is for {'interactions' if stated else 'comparisons'}, unlike {file}")
    parts = {
        "row": lambda: data.split(share, seed),
        "pairing": lambda: data.split(share, seed, by="pairing"),
        "user": lambda: data.leave_one_out(seed),
        "time": lambda: data.split_by_time(test=share),
    }[by]()
    frames = [part.to_frame() for part in parts]
    for path, frame in zip((train, test), frames, strict=True):
        if not len(frame):
            raise ValueError(f"{path} would have no rows: {file} has {len(data):,} in all; change --share or --by")
        check_place_of_table(path, frame.columns)
    for path, frame in zip((train, test), frames, strict=True):
        write_frame(path, frame)
    rows = {"train": len(frames[0]), "test": len(frames[1])}
    if as_json:
        print_json({"train": str(train), "test": str(test), "rows": rows})
    else:
        click.echo(f"{rows['train']:,} rows written to {train}, {rows['test']:,} to {test}")
