"""``python -m studies.simulation``: see whether SAD recovers the truth that data was simulated from."""

import os
from pathlib import Path

import click

from studies._options import study

ALL_MISSING = tuple(range(0, 100, 10))
QUICK_SEEDS, QUICK_MISSING = 2, (0, 50, 80)


@study("simulation")
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds.  [default: 20]")
@click.option("--missing", metavar="LIST", help="Percentages left out, e.g. 0,50,80.  [default: 0,10,...,90]")
@click.option(
    "--authors-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The authors' raw.npz; by default authors-sim2/raw.npz in the folder that SADREC_DATA names, if it is there.",
)
@click.option("--workers", type=click.IntRange(min=0), default=0, help="Processes; 0 means one per core.")
def simulation_command(
    seeds: int | None,
    output: Path,
    missing: str | None,
    authors_file: Path | None,
    quick: bool,
    workers: int,
    quiet: bool,
) -> None:
    """See whether SAD recovers the truth that data was simulated from.

    Simulates people who compare items, fits SAD and BPR with the paper's settings and with ours, and writes figures
    (PNG), their numbers (CSV) and a Markdown report that says which of the paper's claims hold. Interrupted
    with Ctrl-C or killed, the same command continues.
    """
    from studies.simulation.study import simulation_study

    shares = (QUICK_MISSING if quick else ALL_MISSING) if missing is None else parse_missing(missing)
    done = simulation_study(
        output,
        seeds=seeds or (QUICK_SEEDS if quick else 20),
        missing=shares,
        authors_file=authors_file or find_authors_file(),
        workers=workers,
        show_progress=not quiet,
    )
    for claim in done.claims:
        click.echo(claim.text)
        for setting, verdict in claim.verdicts.items():
            mark = {True: "holds", False: "does not hold", None: "not run"}[verdict.holds]
            click.echo(f"  {setting:<6} {mark}: {verdict.numbers}")
    click.echo(f"Report: {done.report}")


def parse_missing(text: str) -> tuple[int, ...]:
    """Read percentages separated by commas.

    >>> parse_missing("0, 50,80")
    (0, 50, 80)
    """
    try:
        shares = tuple(int(part) for part in text.split(","))
    except ValueError:
        shares = ()
    if not shares or min(shares) < 0 or max(shares) > 99:
        raise click.BadParameter(
            f"{text!r} is no list of whole percentages from 0 to 99: write 0,50,80", param_hint="--missing"
        )
    return shares


def find_authors_file() -> Path | None:
    """Return the authors' file in the folder that SADREC_DATA names, if it is there."""
    folder = os.environ.get("SADREC_DATA")
    path = None if not folder else Path(folder) / "authors-sim2" / "raw.npz"
    return path if path is not None and path.is_file() else None


if __name__ == "__main__":
    simulation_command(prog_name="python -m studies.simulation")
