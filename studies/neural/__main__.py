"""``python -m studies.neural``: a network whose linear part is SAD, against SAD."""

from pathlib import Path

import click

from studies._options import listed, study


@study("neural")
@click.option("--sets", callback=listed, help="Only these data sets, with commas between them.  [default: all]")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Random splits.")
def neural_command(
    data_folder: Path | None, output: Path, sets: list[str], seeds: int, quick: bool, quiet: bool
) -> str:
    """Train an anti-symmetric network whose linear part is SAD, and compare it with SAD() on the same splits.

    It needs PyTorch: python -m studies.baselines install neural. Interrupted with Ctrl-C or killed, the same command
    continues.
    """
    from studies.baselines import BaselineError
    from studies.neural.study import LISTS, SETS, neural_study

    try:
        return neural_study(
            output,
            data_folder,
            sets=sets or (*SETS, LISTS),
            seeds=[0] if quick else list(range(seeds)),
            most=2000 if quick else None,
            show_progress=not quiet,
        )
    except BaselineError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    neural_command(prog_name="python -m studies.neural")
