"""``python -m studies.leaderboards``: intervals that hold the truth, what to compare next, and other packages."""

from pathlib import Path

import click

from studies._options import study


@study("leaderboards")
@click.argument("question", type=click.Choice(["coverage", "questions", "table"]))
@click.option("--arenas", type=click.IntRange(min=1), help="Arenas to simulate.  [default: 100; 12 for questions]")
def leaderboards_command(question: str, arenas: int | None, data_folder: Path | None, quick: bool) -> str:
    """Print a table about leaderboards.

    "coverage": how often intervals hold the truth of simulated arenas. "questions": how many comparisons chosen pairs
    save. "table": log loss and seconds of other packages on the same rows, which `python -m studies.baselines install
    arena` installs.
    """
    from studies.leaderboards.arenas import coverage, questions
    from studies.leaderboards.table import table

    def report(line: str) -> None:
        click.echo(line, err=True)

    if question == "table":
        return table(data_folder, quick, report)
    count = arenas or {"coverage": 100, "questions": 12}[question]
    return {"coverage": coverage, "questions": questions}[question](3 if quick else count, report)


if __name__ == "__main__":
    leaderboards_command()
